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
    http::StatusCode,
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
use nouns::config::Pipeline;

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
        Ok(Whole { bytes, room: _room }) => next.run(Request::from_parts(head, Body::from(bytes))).await,
        Err(problem) => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
            (status, problem.detail).into_response()
        }
    }
}
