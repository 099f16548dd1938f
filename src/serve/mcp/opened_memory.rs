//! A memory that is opened when it is needed.
//!
//! In: how to open it. Out: the memory, for one call at a time or many. Opening may take long, so the
//! server answers its client before; the first calls wait. What cannot be opened is tried again at the
//! next call.

use std::sync::{Arc, Mutex};

use super::access::{MemoryAccess, ToolError};
use crate::sync;

/// Opens the memory, or reaches the process that holds it.
type Open = dyn Fn() -> Result<Arc<dyn MemoryAccess>, ToolError> + Send + Sync;

pub(super) struct OpenedMemory {
    open: Box<Open>,
    memory: Mutex<Option<Arc<dyn MemoryAccess>>>,
}

impl OpenedMemory {
    pub(super) fn new(open: impl Fn() -> Result<Arc<dyn MemoryAccess>, ToolError> + Send + Sync + 'static) -> Self {
        Self { open: Box::new(open), memory: Mutex::default() }
    }

    /// Opens the memory where that has not happened.
    pub(super) fn get(&self) -> Result<Arc<dyn MemoryAccess>, ToolError> {
        let mut memory = sync::lock(&self.memory);
        if let Some(memory) = &*memory {
            return Ok(Arc::clone(memory));
        }
        let opened = (self.open)()?;
        Ok(Arc::clone(memory.insert(opened)))
    }

    /// Releases the memory.
    pub(super) fn close(&self) {
        if let Some(memory) = sync::lock(&self.memory).take() {
            memory.close();
        }
    }
}
