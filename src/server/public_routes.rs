//! All routes that need no token.
//!
//! In: requests. Out: whether the service lives and is ready, its metrics, what platforms send, and the files of the
//! console. No response contains anything from a bank, and none starts work. They answer only under the names of their
//! address; a request of a platform may use any name, since its signature is checked.
//!
//! `http.listen` has [`routes`]; `metrics.listen` has [`with_metrics`], for a monitoring system that has no token.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{Request, State as Shared},
    http::StatusCode,
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};

use super::{
    allowed_hosts::AllowedHosts,
    error::ServeError,
    service_state::ServiceState,
    v1::{HttpListener, connection_limit, listen},
    webhooks,
};
use types::config::Pipeline;

/// The public routes of `http.listen`. `connections` is the listener's limit.
pub(super) fn routes(state: &Arc<ServiceState>, hosts: AllowedHosts, connections: usize) -> Router {
    let routes = of_every_listener(state, hosts.clone(), connections);
    // A browser sends no token when it opens an address, so the page has to be here.
    #[cfg(feature = "console")]
    let routes = routes.merge(with_host_check(super::console::routes(), hosts.for_pages()));
    #[cfg(not(feature = "console"))]
    drop(hosts);
    routes
}

fn of_every_listener(state: &Arc<ServiceState>, hosts: AllowedHosts, connections: usize) -> Router {
    let health = Router::new()
        .route("/health", get(|| async { "ok\n" }))
        .route("/ready", get(ready))
        .with_state(Arc::clone(state));
    with_host_check(health, hosts).merge(webhooks::routes(Arc::clone(&state.webhooks), connections))
}

/// The routes of a listener for monitoring.
fn with_metrics(state: &Arc<ServiceState>, hosts: AllowedHosts, connections: usize) -> Router {
    let metrics = Router::new().route("/metrics", get(metrics)).with_state(Arc::clone(state));
    with_host_check(metrics, hosts.clone()).merge(of_every_listener(state, hosts, connections))
}

/// Listens at `metrics.listen`, if it is set.
///
/// # Errors
/// [`ServeError::Listen`] when the address is taken or not of this machine.
pub(super) fn start(pipeline: &Pipeline, state: &Arc<ServiceState>) -> Result<Option<HttpListener>, ServeError> {
    let address = &pipeline.metrics.listen;
    if address.is_empty() {
        return Ok(None);
    }
    let names = pipeline.http.names();
    let connections = connection_limit();
    let routes = |address: SocketAddr| with_metrics(state, AllowedHosts::for_monitoring(address, &names), connections);
    listen("metrics.listen", address, None, connections, routes).map(Some)
}

/// The metrics as text.
pub(super) async fn metrics(Shared(state): Shared<Arc<ServiceState>>) -> String {
    state.metrics.text()
}

async fn ready(Shared(state): Shared<Arc<ServiceState>>) -> (StatusCode, String) {
    match state.waiting_for() {
        None => match state.stalled_partitions() {
            None => (StatusCode::OK, "ready\n".to_owned()),
            Some(still) => (StatusCode::OK, format!("ready, but {still}\n")),
        },
        Some(what) => (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {what}\n")),
    }
}

/// Routes that answer only under these names.
pub(super) fn with_host_check(routes: Router, hosts: AllowedHosts) -> Router {
    routes.layer(middleware::from_fn_with_state(hosts, checked))
}

async fn checked(Shared(hosts): Shared<AllowedHosts>, request: Request, next: Next) -> Response {
    match hosts.refusal(&request) {
        Some(problem) => (StatusCode::FORBIDDEN, format!("{problem}\n")).into_response(),
        None => next.run(request).await,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream,
    };

    use super::*;

    /// The status and the body of a request.
    fn ask(address: SocketAddr, path: &str, host: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    #[test]
    fn health_needs_the_address_and_nothing_else() {
        let mut pipeline = Pipeline::parse("version = 1").unwrap();
        pipeline.metrics.listen = "127.0.0.1:0".to_owned();
        let state = Arc::new(ServiceState::new(&pipeline, Arc::default(), false));
        let listening = start(&pipeline, &state).unwrap().unwrap();
        let (address, ours) = (listening.address, listening.address.to_string());
        assert_eq!(ask(address, "/health", &ours), (200, "ok\n".to_owned()));
        assert_eq!(ask(address, "/ready", &ours).0, 503, "nothing is loaded");
        state.loaded.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(ask(address, "/ready", &ours), (200, "ready\n".to_owned()));
        assert!(ask(address, "/metrics", &ours).1.contains("ripplemem_"));
        for path in ["/health", "/ready", "/metrics"] {
            assert_eq!(ask(address, path, "evil.example").0, 403, "{path}");
        }
        for path in ["/v1/admin/snapshots", "/console/"] {
            assert_eq!(ask(address, path, &ours).0, 404, "{path} is not on this address");
        }
    }
}
