//! What the threads of a service share: readiness, metrics, and requests of the HTTP endpoint.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use crossbeam_channel::Sender;
use tokio::sync::oneshot;

use crate::telemetry::Metrics;
use ripplemem::pipeline::{ReextractRequest, Replica};

/// What the threads of a service share.
pub(super) struct State {
    pub(super) metrics: Metrics,
    /// Whether the memory reflects what its log held at the start; true without `serve`.
    pub(super) loaded: AtomicBool,
    /// Whether this instance is a member of the extractors' group; true without `extract`.
    pub(super) joined: AtomicBool,
    /// The memory, once it is open; never with another role than `serve`.
    pub(super) replica: OnceLock<Arc<Replica>>,
    /// The read position of each owned partition, to compute the lag.
    pub(super) positions: Mutex<BTreeMap<u32, u64>>,
    /// Takes requests for a snapshot, where snapshots are written.
    pub(super) snapshots: Option<Sender<SnapshotReply>>,
    /// Takes what platforms send to their sources.
    pub(super) webhooks: Arc<super::webhooks::Webhooks>,
    /// Takes requests to extract a bank again, where a language model extracts.
    pub(super) reextractions: Option<Sender<ReextractRequest>>,
}

/// Takes the result of a snapshot that was requested.
pub(super) type SnapshotReply = oneshot::Sender<Result<String, String>>;

impl State {
    /// What a service that is not ready waits for.
    pub(super) fn waiting_for(&self) -> Option<&'static str> {
        if !self.loaded.load(Ordering::Relaxed) {
            Some("the memory to be loaded")
        } else if !self.joined.load(Ordering::Relaxed) {
            Some("the group of extractors")
        } else if self.replica.get().is_some_and(|replica| !replica.can_answer()) {
            Some("the memory, whose shards have all panicked; each is loaded again")
        } else {
            None
        }
    }
}
