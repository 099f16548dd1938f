//! Work that blocks, beside the thread of a runtime.

use super::problem::{Code, Problem};

/// Does blocking work beside the runtime's thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let failed = |_| Problem::new(Code::Failed, "the request panicked; this is a defect, please report it");
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}
