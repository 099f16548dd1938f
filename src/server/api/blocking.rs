//! Blocking work, on a thread of its own instead of the runtime's.

use super::problem::{Code, Problem};

/// Does blocking work on the runtime's pool of blocking threads.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let failed = |_| Problem::new(Code::Failed, "the request panicked; this is a defect, please report it");
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
