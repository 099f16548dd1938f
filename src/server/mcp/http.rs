//! The tools at `/mcp` of a memory that is served over HTTP.
//!
//! In: the calls of an open memory. Out: a route. Each request stands for itself, in either revision of the
//! protocol, so a client may come back to another process; only what a client of revision 2025-11-25 follows
//! belongs to a session. Who may ask is checked before, for every path alike; a message is read within the
//! limits of all bodies.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing,
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};

use super::{
    access::Access,
    calls::Calls,
    opened_memory::{Opened, OpenedMemory},
    server::{Clients, Server},
    sessions::{self, Sessions},
};
use crate::{
    access::Caller,
    api::Api,
    v1::{Bodies, MAX_BYTES, Whole},
};
use nouns::{config::Pipeline, model::UniqueJson};
use serde_json::{Value, json};

/// Codes of JSON-RPC.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;

/// The route.
pub(crate) fn routes(api: &Arc<Api>, pipeline: &Pipeline, bodies: Bodies) -> Router {
    let (serving, api) = (Arc::clone(api), Arc::clone(api));
    let calls = Arc::new(Calls {
        answer_time: Duration::from_secs(pipeline.llm.timeout_seconds),
        language_model: pipeline.llm.is_set().then(|| pipeline.llm.model.clone()),
        memory: OpenedMemory::new(move || Ok(Opened { access: Access::Here(Arc::clone(&api)), release: None })),
    });
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BYTES)
        // The names of this address are checked before, with the port.
        .disable_allowed_hosts();
    let sessions = Sessions::new(serving, Arc::clone(&calls));
    let clients = Clients::Sessions(Arc::clone(&sessions));
    let server = move || Ok(Server::new(Arc::clone(&calls), None, clients.clone()));
    let messages = StreamableHttpService::new(server, Arc::new(NeverSessionManager::default()), config);
    let messages = routing::post_service(messages).layer(from_fn_with_state(bodies, read));
    let methods = messages.get(sessions::stream).delete(sessions::end);
    let methods = methods.layer(from_fn_with_state(Arc::clone(&sessions), sessions::named));
    Router::new().route("/mcp", methods).with_state(sessions)
}

/// Reads a message, whose room is free again once it is answered or its answer is a stream.
async fn read(
    State(bodies): State<Bodies>,
    Extension(who): Extension<Arc<Caller>>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    match bodies.read(body, who.name(), MAX_BYTES).await {
        Ok(Whole { bytes, room: _room }) => match check(&bytes) {
            Ok(()) => next.run(Request::from_parts(head, Body::from(bytes))).await,
            Err(error) => (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], error.to_string())
                .into_response(),
        },
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
            (status, problem.detail).into_response()
        }
    }
}

/// Whether a body is one message of JSON-RPC.
///
/// # Errors
/// The answer that says what is wrong with it.
fn check(bytes: &[u8]) -> Result<(), Value> {
    let error = |id: Value, code: i32, why: String| {
        Err(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": why}}))
    };
    let wrong = |why: &str| error(Value::Null, INVALID_REQUEST, why.to_owned());
    let message = match serde_json::from_slice::<UniqueJson>(bytes) {
        Ok(UniqueJson(Value::Object(message))) => message,
        Ok(UniqueJson(Value::Array(_))) => return wrong("several messages at once; send each in a request of its own"),
        Ok(_) => return wrong("not an object; send one message of JSON-RPC"),
        Err(e) if e.is_data() => return error(Value::Null, INVALID_REQUEST, format!("{e}; write each field once")),
        Err(e) => return error(Value::Null, PARSE_ERROR, format!("not JSON: {e}")),
    };
    let id = match message.get("id") {
        None => Value::Null,
        Some(id @ Value::String(_)) => id.clone(),
        Some(id) if id.is_i64() || id.is_u64() => id.clone(),
        Some(_) => return wrong("id: neither a text nor a whole number"),
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return error(id, INVALID_REQUEST, "jsonrpc: not \"2.0\"".to_owned());
    }
    let is_answer = message.contains_key("result") || message.contains_key("error");
    if !is_answer && !message.get("method").is_some_and(Value::is_string) {
        return error(id, INVALID_REQUEST, "method: not a text".to_owned());
    }
    if message.get("params").is_some_and(|params| !params.is_object() && !params.is_null()) {
        return error(id, INVALID_PARAMS, "params: not an object".to_owned());
    }
    if is_answer && id.is_null() {
        return wrong("id: missing; an answer names its request");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_answered_as_json_rpc_says() {
        let code = |body: &str| {
            check(body.as_bytes()).err().map(|error| (error["error"]["code"].clone(), error["id"].clone()))
        };
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        for good in [ping, &ping.replace('1', r#""a""#), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#] {
            assert_eq!(code(good), None, "{good}");
        }
        for (body, expected, id) in [
            ("", PARSE_ERROR, Value::Null),
            ("{", PARSE_ERROR, Value::Null),
            ("[]", INVALID_REQUEST, Value::Null),
            (&format!("[{ping}]"), INVALID_REQUEST, Value::Null),
            ("5", INVALID_REQUEST, Value::Null),
            (&ping.replace(":1,", ":true,"), INVALID_REQUEST, Value::Null),
            (&ping.replace(":1,", ":1.5,"), INVALID_REQUEST, Value::Null),
            (&ping.replace(":1,", ":null,"), INVALID_REQUEST, Value::Null),
            (&ping.replace(":1,", ":{},"), INVALID_REQUEST, Value::Null),
            (&ping.replace("2.0", "1.0"), INVALID_REQUEST, json!(1)),
            (&ping.replace("\"ping\"", "7"), INVALID_REQUEST, json!(1)),
            (&ping.replace("\"id\":1", "\"id\":1,\"id\":2"), INVALID_REQUEST, Value::Null),
            (&ping.replace("\"ping\"", "\"ping\",\"params\":[1]"), INVALID_PARAMS, json!(1)),
            (r#"{"jsonrpc":"2.0","result":{}}"#, INVALID_REQUEST, Value::Null),
        ] {
            assert_eq!(code(body), Some((json!(expected), id)), "{body}");
        }
    }
}
