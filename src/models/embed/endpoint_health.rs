//! What this process knows of an endpoint of vectors.
//!
//! In: a `Retry-After`, the failure of a question, vectors that arrived. Out: until when the endpoint asks not to be
//! called, which texts it failed on, and why it returned no vector the last time. Extraction and questions have clients
//! of their own and share this, so that what one of them learns holds for the other. Never calls the endpoint.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex},
};

use endpoint::{RetryAfterGate, SuspectTexts};
use types::{config::ServedModelSettings, sync};

/// The state of an endpoint.
#[derive(Debug, Default)]
pub(super) struct EndpointHealth {
    /// The texts that it failed on.
    pub(super) suspects: SuspectTexts,
    /// When its `Retry-After` ends.
    pub(super) not_before: RetryAfterGate,
    /// Why it returned no vector the last time.
    problem: Mutex<Option<String>>,
}

/// Base URL, model, and the variable that holds the key: what an endpoint limits.
type EndpointKey = (String, String, String);

/// An entry for each endpoint that a pipeline file of this process names. No entry is removed, because it is all that
/// remains of a client that could not be opened.
static KNOWN: LazyLock<Mutex<HashMap<EndpointKey, Arc<EndpointHealth>>>> = LazyLock::new(Mutex::default);

impl EndpointHealth {
    /// The state of the endpoint that serves a model.
    pub(super) fn of(served: &ServedModelSettings) -> Arc<Self> {
        let key = (served.endpoint.clone(), served.model.clone(), served.key_env.clone());
        Arc::clone(sync::lock(&KNOWN).entry(key).or_default())
    }

    /// A question got no vector.
    pub(super) fn note_failure(&self, problem: String) {
        *sync::lock(&self.problem) = Some(problem);
    }

    /// Vectors have arrived, no matter who asked for them.
    pub(super) fn note_answer(&self) {
        *sync::lock(&self.problem) = None;
    }

    /// Why a question got no vector, until vectors arrive again.
    pub(super) fn problem(&self) -> Option<String> {
        sync::lock(&self.problem).clone()
    }
}
