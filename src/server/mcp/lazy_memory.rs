//! A memory that is opened when it is needed, and again when the process that had it open has ended.
//!
//! In: how to open the memory. Out: the open memory. Opening may take long, so the server answers its client before
//! that, and the first calls wait. If opening fails, the next call tries again.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::{
    memory_access::{McpMemoryAccess, run_blocking},
    tool_call_error::ToolCallError,
};

/// An open memory.
pub(super) struct AccessHandle {
    pub(super) access: McpMemoryAccess,
    /// Releases the directory, if this process has it open only for the tools.
    pub(super) release: Option<DirectoryRelease>,
}

/// Releases a directory.
pub(super) type DirectoryRelease = Box<dyn FnOnce() + Send + Sync>;
/// Opens the memory, or reaches the process that has it open.
type AccessOpener = dyn Fn() -> Result<AccessHandle, ToolCallError> + Send + Sync;

pub(super) struct LazyMemory {
    open: Arc<AccessOpener>,
    opened: Mutex<Option<Arc<AccessHandle>>>,
}

impl LazyMemory {
    pub(super) fn new(open: impl Fn() -> Result<AccessHandle, ToolCallError> + Send + Sync + 'static) -> Self {
        Self { open: Arc::new(open), opened: Mutex::default() }
    }

    /// Calls the memory. If the process that had it open has ended, opens it again and repeats the call, which
    /// therefore must be repeatable.
    pub(super) async fn with<T, F: Future<Output = Result<T, ToolCallError>>>(
        &self,
        call: impl Fn(Arc<AccessHandle>) -> F,
    ) -> Result<T, ToolCallError> {
        let opened = self.get().await?;
        match call(Arc::clone(&opened)).await {
            Err(ToolCallError::Gone(_)) => {
                self.drop_lost(&opened).await;
                call(self.get().await?).await
            }
            other => other,
        }
    }

    /// The open memory; opens it first if necessary.
    pub(super) async fn get(&self) -> Result<Arc<AccessHandle>, ToolCallError> {
        let mut opened = self.opened.lock().await;
        if let Some(opened) = &*opened {
            return Ok(Arc::clone(opened));
        }
        let open = Arc::clone(&self.open);
        Ok(Arc::clone(opened.insert(Arc::new(run_blocking(move || open()).await?))))
    }

    /// The memory, if it is open already.
    pub(super) fn opened(&self) -> Option<Arc<AccessHandle>> {
        self.opened.try_lock().ok()?.clone()
    }

    /// Releases the memory, from outside a runtime. A call that still runs keeps it open until the process ends.
    pub(super) fn close(&self) {
        let opened = self.opened.blocking_lock().take();
        if let Some(AccessHandle { access, release: Some(release), .. }) = opened.and_then(Arc::into_inner) {
            drop(access);
            release();
        }
    }

    /// Notes that the process that had the memory open has ended.
    pub(super) async fn drop_lost(&self, gone: &Arc<AccessHandle>) {
        let mut opened = self.opened.lock().await;
        if opened.as_ref().is_some_and(|known| Arc::ptr_eq(known, gone)) {
            *opened = None;
        }
    }
}
