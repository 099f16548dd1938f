//! The service's state over HTTP: `/health`, `/ready` and `/metrics`; `/snapshot`, which requests one,
//! and `/reextract`, which makes the language model extract a bank again.
//!
//! In: an address. Out: 200 or 503 with a line of text, and Prometheus' text. No response contains
//! anything from a bank. There is no authentication: keep the address private.

use std::{net::TcpListener, sync::Arc};

use axum::{
    Router,
    http::StatusCode,
    routing::{get, post},
};
use tokio::sync::oneshot;

use super::{error::ServeError, state::State};
use crate::{model::Bank, pipeline::ReextractRequest};

/// Serves until the process ends.
///
/// # Errors
/// [`ServeError::Listen`] when the address is taken or not of this machine.
pub(super) fn start(listen: &str, state: Arc<State>) -> Result<(), ServeError> {
    let failed = |e: &dyn std::fmt::Display| ServeError::Listen { listen: listen.to_owned(), problem: e.to_string() };
    let listener = TcpListener::bind(listen).map_err(|e| failed(&e))?;
    listener.set_nonblocking(true).map_err(|e| failed(&e))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| failed(&e))?;
    let (ready, metrics, asked, reads) = (Arc::clone(&state), Arc::clone(&state), Arc::clone(&state), state);
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
        .route("/reextract", post(move |bank: String| async move { reextract(&reads, &bank).await }))
        .route("/metrics", get(move || async move { metrics.metrics.text() }));
    let serving = move || {
        runtime.block_on(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            // It runs until the process ends.
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

async fn reextract(state: &State, bank: &str) -> (StatusCode, String) {
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
