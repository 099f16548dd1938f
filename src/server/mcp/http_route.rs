//! The tools at `/mcp` of a memory that is served over HTTP.
//!
//! In: the calls of an open memory. Out: a route. Each request is independent, in either revision of the protocol, so
//! the next one may reach another process; only the questions that a client of revision 2025-11-25 follows belong to a
//! session. A batch of an early revision is answered message by message. The caller is checked before, as for every
//! path. Messages have the same limits as all bodies.
//!
//! `rmcp` (3.11) answers each message. This file adds what `rmcp` lacks: it refuses a batch, any other `Content-Type`
//! than JSON and an `Accept` without both kinds, says so in plain text, and knows neither packed bodies nor the limit
//! on all bodies together.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing,
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::never::NeverSessionManager,
};
use serde_json::Value;

use super::{
    lazy_memory::{AccessHandle, LazyMemory},
    mcp_server::{ClientNotifiers, McpServer},
    memory_access::McpMemoryAccess,
    rpc_message::{INVALID_REQUEST, check, error, parse_message},
    sessions::{self, McpSessions},
    tool_calls::ToolCalls,
};
use crate::{
    access::Caller,
    api::MemoryApi,
    v1::{BodyReader, MAX_BYTES, RequestBody},
};
use types::config::Pipeline;

/// The route.
pub(crate) fn routes(api: &Arc<MemoryApi>, pipeline: &Pipeline, bodies: BodyReader) -> Router {
    let (serving, api) = (Arc::clone(api), Arc::clone(api));
    let calls = Arc::new(ToolCalls {
        answer_time: Duration::from_secs(pipeline.llm.timeout_seconds),
        language_model: pipeline.llm.is_set().then(|| pipeline.llm.model.clone()),
        memory: LazyMemory::new(move || {
            Ok(AccessHandle { access: McpMemoryAccess::Here(Arc::clone(&api)), release: None })
        }),
    });
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BYTES)
        // The Host header was checked before, with its port.
        .disable_allowed_hosts();
    let sessions = McpSessions::new(serving, Arc::clone(&calls));
    let clients = ClientNotifiers::Sessions(Arc::clone(&sessions));
    let server = move || Ok(McpServer::new(Arc::clone(&calls), None, clients.clone()));
    let messages = StreamableHttpService::new(server, Arc::new(NeverSessionManager::default()), config);
    let messages = routing::post_service(messages).layer(from_fn_with_state(bodies, read));
    let methods = messages.get(sessions::stream).delete(sessions::end);
    let methods = methods.layer(from_fn_with_state(Arc::clone(&sessions), sessions::add_session_id));
    Router::new().route("/mcp", methods).with_state(sessions)
}

/// Reads a message or a batch. Its bytes count against the limit on bodies until the response begins. `Content-Type`
/// does not matter, and `Accept` only has to allow JSON or an event stream: both are replaced by what the protocol
/// requires.
async fn read(
    State(bodies): State<BodyReader>,
    Extension(who): Extension<Arc<Caller>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut head, body) = request.into_parts();
    let RequestBody { bytes, room: _room } = match bodies.read_json(body, who.name(), MAX_BYTES).await {
        Ok(whole) => whole,
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
            return refused(status, &error(&Value::Null, INVALID_REQUEST, &problem.detail));
        }
    };
    if takes_json(&head.headers) {
        head.headers.insert(header::ACCEPT, HeaderValue::from_static(BOTH));
    }
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    // The body is unpacked, and its length may have changed.
    head.headers.remove(header::CONTENT_ENCODING);
    head.headers.remove(header::CONTENT_LENGTH);
    match parse_message(&bytes) {
        Err(error) => refused(StatusCode::BAD_REQUEST, &error),
        Ok(Value::Array(messages)) => batch(&who, &head, messages, &next).await,
        Ok(message) => match check(&message) {
            Err(error) => refused(StatusCode::BAD_REQUEST, &error),
            Ok(()) => {
                let response = next.run(Request::from_parts(head, Body::from(bytes))).await;
                in_json(response, message.get("id").unwrap_or(&Value::Null)).await
            }
        },
    }
}

/// A response whose refusal is in JSON.
async fn in_json(response: Response, id: &Value) -> Response {
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error()) || is_json(&response) {
        return response;
    }
    let said = to_bytes(response.into_body(), MAX_BYTES).await.unwrap_or_default();
    refused(status, &error(id, INVALID_REQUEST, String::from_utf8_lossy(&said).trim()))
}

fn is_json(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(JSON.as_bytes()))
}

/// Answers a batch message by message, each of which counts as a request of its token. Only the first revisions have
/// batches; their requests may lack the header.
async fn batch(who: &Caller, head: &Parts, messages: Vec<Value>, next: &Next) -> Response {
    /// The last revision with batches.
    const LAST: &str = "2025-03-26";
    /// Most messages of a batch.
    const MAX: usize = 100;
    let revision = head.headers.get(REVISION).and_then(|value| value.to_str().ok()).unwrap_or(LAST);
    if revision > LAST {
        let problem =
            format!("revision {revision} of the protocol has no batches; send each message in its own request");
        return refused(StatusCode::BAD_REQUEST, &error(&Value::Null, INVALID_REQUEST, &problem));
    }
    if messages.is_empty() || messages.len() > MAX {
        let problem = format!("a batch has 1 to {MAX} messages, not {}", messages.len());
        return refused(StatusCode::BAD_REQUEST, &error(&Value::Null, INVALID_REQUEST, &problem));
    }
    let mut answers = Vec::with_capacity(messages.len());
    for (at, message) in messages.into_iter().enumerate() {
        let id = message.get("id").cloned();
        if let Err(error) = check(&message) {
            answers.push(error);
            continue;
        }
        // The first one was counted before it was read.
        if at > 0
            && let Err(denied) = who.count_again()
        {
            answers.extend(id.map(|id| error(&id, INVALID_REQUEST, &denied.to_string())));
            continue;
        }
        let request = Request::from_parts(head.clone(), Body::from(message.to_string()));
        let response = next.clone().run(request).await;
        let status = response.status();
        let bytes = if is_json(&response) || !status.is_success() {
            to_bytes(response.into_body(), MAX_BYTES).await.unwrap_or_default()
        } else {
            Bytes::new()
        };
        // A notification has no answer.
        let Some(id) = id else { continue };
        answers.push(serde_json::from_slice(&bytes).unwrap_or_else(|_| {
            let said = String::from_utf8_lossy(&bytes);
            let problem =
                if said.trim().is_empty() { "no answer is possible in a batch; send it alone" } else { said.trim() };
            error(&id, INVALID_REQUEST, problem)
        }));
    }
    if answers.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    ([(header::CONTENT_TYPE, JSON)], Value::Array(answers).to_string()).into_response()
}

const JSON: &str = "application/json";
/// The `Accept` header that the protocol requires of clients.
const BOTH: &str = "application/json, text/event-stream";
const REVISION: &str = "mcp-protocol-version";

/// Whether a client accepts JSON or an event stream; true if it does not say.
fn takes_json(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(header::ACCEPT).iter().peekable();
    let takes = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        ["", "*/*", "application/*", "text/*", JSON, "text/event-stream"].contains(&kind.as_str())
    };
    accepted.peek().is_none() || accepted.any(|value| value.to_str().is_ok_and(|value| value.split(',').any(takes)))
}

/// The refusal of a whole request.
fn refused(status: StatusCode, error: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, JSON)], error.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_takes_json_or_does_not_say_is_answered() {
        let takes = |accept: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in accept {
                headers.append(header::ACCEPT, value.parse().expect("a header"));
            }
            takes_json(&headers)
        };
        for accept in
            [&[][..], &["*/*"], &["application/json"], &["text/event-stream"], &["text/html, */*;q=0.1"], &[BOTH]]
        {
            assert!(takes(accept), "{accept:?}");
        }
        assert!(!takes(&["text/html"]) && !takes(&["image/png", "text/plain"]));
    }
}
