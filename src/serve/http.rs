//! How the service is, over HTTP: `/health`, `/ready` and `/metrics`; and `/snapshot`, which asks
//! for one.
//!
//! In: an address. Out: 200 or 503 with a word, and Prometheus' text. Nothing that was
//! remembered is told here, so that nobody needs to prove who they are.

use std::{net::TcpListener, sync::Arc};

use axum::{
    Router,
    http::StatusCode,
    routing::{get, post},
};

use super::{ServeError, State};

/// Serves until the process ends.
///
/// # Errors
/// [`ServeError::Listen`] when the address cannot be had.
pub(super) fn start(listen: &str, state: Arc<State>) -> Result<(), ServeError> {
    let failed = |e: &dyn std::fmt::Display| ServeError::Listen { listen: listen.to_owned(), problem: e.to_string() };
    let listener = TcpListener::bind(listen).map_err(|e| failed(&e))?;
    listener.set_nonblocking(true).map_err(|e| failed(&e))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| failed(&e))?;
    let (ready, metrics, asked) = (Arc::clone(&state), Arc::clone(&state), state);
    let router = Router::new()
        .route("/health", get(|| async { "ok\n" }))
        .route(
            "/ready",
            get(move || async move {
                match ready.waiting_for() {
                    None => (StatusCode::OK, "ready\n".to_owned()),
                    Some(what) => (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {what}\n")),
                }
            }),
        )
        .route("/snapshot", post(move || async move { snapshot(&asked).await }))
        .route("/metrics", get(move || async move { metrics.metrics.text() }));
    let serving = move || {
        runtime.block_on(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            // It ends with the process; until then it goes on by itself.
            drop(axum::serve(listener, router).await);
        });
    };
    std::thread::Builder::new().name("http".to_owned()).spawn(serving).map_err(|e| failed(&e))?;
    Ok(())
}

async fn snapshot(state: &State) -> (StatusCode, String) {
    if let Some(what) = state.waiting_for() {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {what}\n"));
    }
    let Some(requests) = &state.snapshots else {
        return (StatusCode::NOT_FOUND, "none are written here: name a snapshot.directory\n".to_owned());
    };
    let (reply, answer) = tokio::sync::oneshot::channel();
    drop(requests.send(reply));
    match answer.await {
        Ok(Ok(taken)) => (StatusCode::OK, format!("{taken}\n")),
        Ok(Err(problem)) => (StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the service is stopping\n".to_owned()),
    }
}
