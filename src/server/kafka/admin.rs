//! The administration of a running service: `POST /v1/admin/snapshot` and `POST /v1/admin/reextract`.
//!
//! In: requests on a loopback address that show the token. Out: what the work gave, as a line of text.
//! A request without the token, under another host's name, or from a page of a browser starts nothing.
//! No response contains anything that was remembered.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use axum::{
    Router,
    extract::{Request, State as Shared},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::post,
};
use tokio::sync::oneshot;

use super::{
    admin_files::{service_token, write_address},
    error::ServeError,
    hosts::Hosts,
    http,
    state::State,
};
use nouns::{config::Pipeline, model::Bank};
use ripplemem::pipeline::ReextractRequest;

/// Serves until the process ends; gives the address.
///
/// # Errors
/// [`ServeError::Listen`] when the address is taken, [`ServeError::Admin`] without a token.
pub(super) fn start(pipeline: &Pipeline, state: Arc<State>) -> Result<SocketAddr, ServeError> {
    let listen = &pipeline.admin.listen;
    let token = service_token(pipeline)?;
    let listener = TcpListener::bind(listen).map_err(|e| ServeError::cannot_listen("admin.listen", listen, &e))?;
    let address = listener.local_addr().map_err(|e| ServeError::cannot_listen("admin.listen", listen, &e))?;
    if listen.ends_with(":0") {
        write_address(pipeline, &address.to_string())?;
    }
    http::serve("admin", "admin.listen", listener, routes(address, &token).with_state(state))?;
    Ok(address)
}

/// Every route below `/v1/admin`, behind the check.
fn routes(address: SocketAddr, token: &str) -> Router<Arc<State>> {
    let check = Arc::new(Check { hosts: Hosts::of(address, &[]), token: blake3::hash(token.as_bytes()) });
    let routes = Router::new().route("/snapshot", post(snapshot)).route("/reextract", post(reextract));
    Router::new().nest("/v1/admin", routes).layer(middleware::from_fn_with_state(check, checked))
}

/// What a request must show.
struct Check {
    hosts: Hosts,
    /// Two hashes compare in constant time.
    token: blake3::Hash,
}

impl Check {
    fn refusal(&self, headers: &HeaderMap) -> Option<(StatusCode, String)> {
        if let Some(problem) = self.hosts.refusal(headers) {
            return Some((StatusCode::FORBIDDEN, format!("{problem}\n")));
        }
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let shown = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        if blake3::hash(shown.trim().as_bytes()) != self.token {
            return Some((StatusCode::UNAUTHORIZED, "show the token: Authorization: Bearer TOKEN\n".to_owned()));
        }
        None
    }
}

async fn checked(Shared(check): Shared<Arc<Check>>, request: Request, next: Next) -> Response {
    match check.refusal(request.headers()) {
        None => next.run(request).await,
        Some((status @ StatusCode::UNAUTHORIZED, problem)) => {
            (status, [(header::WWW_AUTHENTICATE, "Bearer")], problem).into_response()
        }
        Some(refusal) => refusal.into_response(),
    }
}

async fn snapshot(Shared(state): Shared<Arc<State>>) -> (StatusCode, String) {
    if let Some(what) = state.waiting_for() {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {what}\n"));
    }
    let Some(requests) = &state.snapshots else {
        return (
            StatusCode::NOT_FOUND,
            "no snapshots are written: set snapshot.directory in the pipeline file\n".to_owned(),
        );
    };
    let (reply, answer) = oneshot::channel();
    drop(requests.send(reply));
    match answer.await {
        Ok(Ok(taken)) => (StatusCode::OK, format!("{taken}\n")),
        Ok(Err(problem)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")),
        Err(_) => stopping(),
    }
}

async fn reextract(Shared(state): Shared<Arc<State>>, bank: String) -> (StatusCode, String) {
    if let Some(what) = state.waiting_for() {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {what}\n"));
    }
    let Some(requests) = &state.reextractions else {
        return (
            StatusCode::NOT_FOUND,
            "no language model extracts here: set extract.extractor = \"llm\"\n".to_owned(),
        );
    };
    let bank = match Bank::parse(bank.trim()) {
        Ok(bank) => bank,
        Err(invalid) => return (StatusCode::BAD_REQUEST, format!("the body must be the name of a bank: {invalid}\n")),
    };
    let (reply, answer) = oneshot::channel();
    drop(requests.send(ReextractRequest { bank: bank.clone(), reply }));
    match answer.await {
        Ok(Ok(windows)) => (StatusCode::OK, format!("bank {bank}: {windows} windows are read again\n")),
        Ok(Err(problem)) => (StatusCode::NOT_FOUND, format!("{problem}\n")),
        Err(_) => stopping(),
    }
}

fn stopping() -> (StatusCode, String) {
    (StatusCode::SERVICE_UNAVAILABLE, "the service is stopping\n".to_owned())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream,
        sync::{Mutex, OnceLock, atomic::AtomicBool},
    };

    use super::*;
    use crate::telemetry::Metrics;

    fn state(snapshots: Option<crossbeam_channel::Sender<super::super::state::SnapshotReply>>) -> Arc<State> {
        Arc::new(State {
            metrics: Metrics::new(),
            loaded: AtomicBool::new(true),
            joined: AtomicBool::new(true),
            replica: OnceLock::new(),
            positions: Mutex::default(),
            snapshots,
            reextractions: None,
            webhooks: Arc::default(),
        })
    }

    /// The status and the body of a request, with these header lines.
    fn ask(address: SocketAddr, method: &str, path: &str, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n{headers}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    #[test]
    fn only_a_request_with_the_token_to_the_loopback_address_starts_anything() {
        let home = tempfile::tempdir().unwrap();
        let mut pipeline = Pipeline::parse("version = 1").unwrap();
        pipeline.log.directory = home.path().join("log");
        pipeline.admin.listen = "127.0.0.1:0".to_owned();
        let (requests_out, requests) = crossbeam_channel::unbounded();
        let address = start(&pipeline, state(Some(requests_out))).unwrap();
        let token = crate::admin_access(&pipeline).unwrap().unwrap().token;
        let shows = format!("Authorization: Bearer {token}\r\n");
        let host = format!("Host: {address}\r\n");
        let port = address.port();
        let path = "/v1/admin/snapshot";
        for (method, path, headers, status) in [
            ("POST", path, host.clone(), 401),
            ("POST", path, format!("{host}Authorization: Bearer {}\r\n", "0".repeat(64)), 401),
            ("POST", path, format!("{host}Authorization: Bearer {}\r\n", &token[..63]), 401),
            ("POST", path, format!("{host}Authorization: Basic {token}\r\n"), 401),
            ("POST", path, format!("Host: evil.example:{port}\r\n{shows}"), 403),
            ("POST", path, format!("Host: 127.0.0.1:1\r\n{shows}"), 403),
            ("POST", path, format!("{host}Origin: https://evil.example\r\n{shows}"), 403),
            ("POST", path, format!("{host}Origin: null\r\n{shows}"), 403),
            ("GET", path, format!("{host}{shows}"), 405),
            ("POST", "/v1/admin/nothing", host.clone(), 401),
            ("POST", "/v1/admin/nothing", format!("{host}{shows}"), 404),
            ("POST", "/v1/admin/reextract", format!("{host}{shows}"), 404),
        ] {
            let (found, body) = ask(address, method, path, &headers);
            assert_eq!(found, status, "{method} {path} {headers} {body}");
            assert!(requests.is_empty(), "{headers}");
            assert!(!body.contains(&token));
        }
        for headers in
            [format!("{host}{shows}"), format!("Host: localhost:{port}\r\nOrigin: http://{address}\r\n{shows}")]
        {
            let asked = std::thread::spawn(move || ask(address, "POST", path, &headers));
            let reply = requests.recv().unwrap();
            reply.send(Ok("snapshot 7".to_owned())).unwrap();
            assert_eq!(asked.join().unwrap(), (200, "snapshot 7\n".to_owned()));
        }
    }

    #[test]
    fn what_anybody_may_ask_is_not_the_administration() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        http::serve("http", "metrics.listen", listener, http::routes().with_state(state(None))).unwrap();
        assert_eq!(ask(address, "GET", "/health", "Host: any\r\n").0, 200);
        assert_eq!(ask(address, "GET", "/ready", "Host: any\r\n").0, 200);
        assert!(ask(address, "GET", "/metrics", "Host: any\r\n").1.contains("ripplemem_"));
        assert_eq!(ask(address, "POST", "/v1/admin/snapshot", "Host: any\r\n").0, 404, "not on this address");
    }
}
