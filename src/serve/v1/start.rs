//! Starts the listener of a memory.
//!
//! In: a pipeline and its memory. Out: the running listener at `http.listen`.

use std::{sync::Arc, time::Duration};

use super::{
    listener::{Listening, listen},
    routes::routes,
};
use crate::{
    config::Pipeline,
    pipeline::Memory,
    serve::{ServeError, api::Api, hosts::Hosts},
};

/// Serves a memory at `http.listen` until the result is dropped.
///
/// # Errors
/// [`ServeError::Listen`].
pub(in crate::serve) fn start(pipeline: &Pipeline, memory: Arc<Memory>) -> Result<Listening, ServeError> {
    let api = Arc::new(Api::new(memory, Duration::from_millis(pipeline.serve.deadline_ms)));
    listen("http.listen", &pipeline.http.listen, |address| routes(api, Hosts::of(address)))
}
