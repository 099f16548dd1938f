//! A memory that is open here, and that other processes reach over HTTP.
//!
//! In: a pipeline with an embedded log, an address. Out: its calls, for this process and, at the address that is
//! written beside the directory's lock, for others. At the end, requests that have begun are answered, a snapshot is
//! written, and the directory is released. A kill loses nothing that was acknowledged.

use crate::log_events;
use std::sync::{Arc, atomic::Ordering};

use super::{
    ServeError,
    api::MemoryApi,
    service_state::{ServiceState, extracts_by_model},
    v1::{self, ServerParts},
};
use pipeline::Progress;
use ripplemem::{Memory, MemoryOptions};
use types::config::Pipeline;

/// An open memory.
pub(super) struct ServedMemory {
    memory: Arc<Memory>,
    api: Arc<MemoryApi>,
    serving: v1::HttpServer,
}

impl ServedMemory {
    /// Opens the memory and listens on an address.
    ///
    /// # Errors
    /// [`ServeError`]: the directory is in use, the address is taken, or the memory cannot be opened.
    pub(super) fn open(
        pipeline: &Pipeline,
        listen: &str,
        state: &Arc<ServiceState>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, ServeError> {
        let heard = Arc::clone(state);
        let options = MemoryOptions { edges: None, tell: Box::new(move |event| heard.note(event)), progress };
        let memory = Arc::new(Memory::open_with(pipeline, options)?);
        state.replica.get_or_init(|| Arc::clone(memory.replica()));
        state.queue.get_or_init(|| Arc::downgrade(memory.query_queue()));
        if let Some(orders) = memory.extraction_orders().filter(|_| extracts_by_model(pipeline)) {
            state.orders.get_or_init(|| orders.clone());
        }
        state.loaded.store(true, Ordering::Relaxed);
        let (log, served) = (Arc::clone(memory.log()), Some(Arc::clone(&memory)));
        let parts = ServerParts { state: Arc::clone(state), log, memory: served, holders: None };
        let serving = v1::start(pipeline, listen, parts)?;
        // `parts` has a memory, so the server has its calls.
        let api = serving.api.clone().ok_or(ServeError::Ended("the service"))?;
        Ok(Self { memory, api, serving })
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(super) fn api(&self) -> &Arc<MemoryApi> {
        &self.api
    }

    /// Ends the server, and closes the memory.
    ///
    /// # Errors
    /// [`ServeError`] of the snapshot; nothing is lost.
    pub(super) fn close(self) -> Result<(), ServeError> {
        let Self { memory, api, serving } = self;
        drop(serving);
        drop(api);
        match Arc::into_inner(memory) {
            Some(memory) => memory.close()?,
            // A call that outlasted its connection ends with the process.
            None => log_events::request_left_open(),
        }
        Ok(())
    }
}
