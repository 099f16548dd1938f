//! The HTTP listeners of a service, and what anybody may ask: `/health`, `/ready` and `/metrics`.
//!
//! In: an address and routes. Out: a thread that serves them until the process ends. No response of
//! the open routes contains anything from a bank, and none of them starts work.
//!
//! A route is added where its work is: a module of `serve` gives a `Router<Arc<State>>`, and what the
//! handler needs stands in [`State`]. What anybody may ask is merged in [`routes`]. What changes
//! something or costs money goes below `/v1/admin`, into `admin::routes`, where every request is
//! checked first. A listener of its own is opened by [`serve`], from `service`.

use std::{net::TcpListener, sync::Arc};

use axum::{Router, extract::State as Shared, http::StatusCode, routing::get};

use super::{error::ServeError, state::State};

/// Serves the open routes until the process ends.
///
/// # Errors
/// [`ServeError::Listen`] when the address is taken or not of this machine.
pub(super) fn start(listen: &str, state: Arc<State>) -> Result<(), ServeError> {
    let listener = TcpListener::bind(listen).map_err(|e| ServeError::cannot_listen("metrics.listen", listen, &e))?;
    let router = routes().with_state(Arc::clone(&state));
    let router = router.merge(super::webhooks::routes(Arc::clone(&state.webhooks)));
    serve("http", "metrics.listen", listener, router)
}

/// What anybody may ask.
pub(super) fn routes() -> Router<Arc<State>> {
    Router::new()
        .route("/health", get(|| async { "ok\n" }))
        .route("/ready", get(ready))
        .route("/metrics", get(|Shared(state): Shared<Arc<State>>| async move { state.metrics.text() }))
}

/// Serves a router on a thread of its own until the process ends. `key` names the listener's setting.
///
/// # Errors
/// [`ServeError::Listen`].
pub(super) fn serve(thread: &str, key: &'static str, listener: TcpListener, router: Router) -> Result<(), ServeError> {
    let listen = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
    let failed = |e: &dyn std::fmt::Display| ServeError::cannot_listen(key, &listen, e);
    listener.set_nonblocking(true).map_err(|e| failed(&e))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| failed(&e))?;
    let serving = move || {
        runtime.block_on(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            // It runs until the process ends.
            drop(axum::serve(listener, router).await);
        });
    };
    std::thread::Builder::new().name(thread.to_owned()).spawn(serving).map_err(|e| failed(&e))?;
    Ok(())
}

async fn ready(Shared(state): Shared<Arc<State>>) -> (StatusCode, String) {
    match state.waiting_for() {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(what) => (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {what}\n")),
    }
}
