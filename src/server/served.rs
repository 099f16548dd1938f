//! A memory that is open here, and that other processes reach over HTTP.
//!
//! In: a pipeline with an embedded log, an address. Out: its calls, for this process and, at the address that
//! stands beside the directory's lock, for others. At the end requests that have begun are answered, a
//! snapshot is written, and the directory is free. A kill loses nothing that was acknowledged.

use std::{path::PathBuf, sync::Arc};

use axum::Router;

use super::{ServeError, address, api::Api, v1};
use nouns::config::Pipeline;
use ripplemem::pipeline::{Memory, MemoryOptions};

/// An open memory.
pub(super) struct Served {
    memory: Arc<Memory>,
    api: Arc<Api>,
    serving: v1::Serving,
    directory: PathBuf,
}

impl Served {
    /// Opens the memory and listens on an address; `open` as for [`v1::start`].
    ///
    /// # Errors
    /// [`ServeError`]: the directory is in use, the address is taken, or the memory cannot be opened.
    pub(super) fn open(
        pipeline: &Pipeline,
        listen: &str,
        options: MemoryOptions<'_>,
        open: Router,
    ) -> Result<Self, ServeError> {
        let memory = Arc::new(Memory::open_with(pipeline, options)?);
        let (api, serving) = v1::start(pipeline, listen, Arc::clone(&memory), open, None)?;
        let directory = pipeline.log.directory.clone();
        address::write(&directory, &serving.beside().to_string(), serving.local.as_ref())
            .map_err(|problem| ServeError::Address { directory: directory.clone(), problem })?;
        Ok(Self { memory, api, serving, directory })
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(super) fn api(&self) -> &Arc<Api> {
        &self.api
    }

    /// Where others reach it, for people.
    pub(super) fn url(&self) -> &str {
        &self.serving.url
    }

    /// Hands on what people should know meanwhile.
    pub(super) fn tell(&self, say: impl Fn(&str)) {
        self.serving.tell(say);
    }

    /// Ends it. `say` takes messages for people.
    ///
    /// # Errors
    /// [`ServeError`] of the snapshot; nothing is lost.
    pub(super) fn close(self, say: &dyn Fn(&str)) -> Result<(), ServeError> {
        let Self { memory, api, serving, directory } = self;
        // Nobody is sent to a listener that ends.
        address::remove(&directory);
        drop(serving);
        drop(api);
        match Arc::into_inner(memory) {
            Some(memory) => memory.close()?,
            // A call that outlasted its connection ends with the process.
            None => say("a request still ran at the end; what it was told holds"),
        }
        Ok(())
    }
}
