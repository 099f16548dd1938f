//! The snapshots of a service, for its administrators.
//!
//! In: the caller, with the right `admin` in every bank. Out: the newest snapshot of each shard; if the caller orders
//! it, new ones are written first.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocking_work::blocking,
    operations::ServiceOperations,
    problem::{ApiProblem, ProblemCode},
};
use crate::access::{AccessRight, Caller};
use snapshots::Manifest;
use types::model::LogPosition;

/// The newest snapshot of each shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotList {
    /// By partition; a shard without one is left out.
    pub snapshots: Vec<SnapshotView>,
}

/// A snapshot of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotView {
    /// The partition of the memory.
    pub partition: u32,
    /// Its number, from 1; it grows with each snapshot of the shard.
    pub number: u64,
    /// When it was written, in milliseconds since 1970.
    pub taken_ms: i64,
    /// The offsets that it reaches.
    pub reaches: Vec<LogPosition>,
    /// Live units in it.
    pub units: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

impl ServiceOperations {
    /// The newest snapshot of each shard.
    ///
    /// # Errors
    /// [`ApiProblem`] without the right, or if no place for snapshots is set or it cannot be read.
    pub async fn snapshots(&self, who: &Caller) -> Result<SnapshotList, ApiProblem> {
        who.may_everywhere(AccessRight::Admin)?;
        let memory = self.memory()?;
        blocking(move || {
            let manifests = memory.replica().snapshots()?.ok_or_else(no_snapshots_problem)?;
            Ok(SnapshotList { snapshots: manifests.iter().map(SnapshotView::of).collect() })
        })
        .await
    }

    /// Writes a snapshot of every shard whose snapshots this process writes. Returns once they are written.
    ///
    /// # Errors
    /// As [`Self::snapshots`]; [`ProblemCode::Loading`] while the service loads. The memory keeps answering.
    pub async fn take_snapshot(&self, who: &Caller) -> Result<SnapshotList, ApiProblem> {
        who.may_everywhere(AccessRight::Admin)?;
        let (memory, log) = (self.memory()?, Arc::clone(&self.log));
        if let Some(what) = self.state.loading() {
            return Err(ApiProblem::new(
                ProblemCode::Loading,
                format!("this service waits for {what}; ask again when it is ready"),
            ));
        }
        blocking(move || {
            memory.replica().snapshots()?.ok_or_else(no_snapshots_problem)?;
            // Takes over the snapshots of shards whose former writer has ended.
            memory.replica().take_over(&*log)?;
            let written = memory.replica().snapshot_on_request()?;
            let manifests = written.map(|written| written.manifests).unwrap_or_default();
            Ok(SnapshotList { snapshots: manifests.iter().map(SnapshotView::of).collect() })
        })
        .await
    }
}

fn no_snapshots_problem() -> ApiProblem {
    ApiProblem::invalid("no snapshots are written: set snapshot.directory in the pipeline file")
}

impl SnapshotView {
    fn of(manifest: &Manifest) -> Self {
        let position = |topic: &str, (partition, next_offset): (u32, u64)| LogPosition {
            topic: topic.to_owned(),
            partition,
            next_offset,
        };
        let memory = manifest.reached.iter().map(|at| position("memory", (at.partition, at.next_offset)));
        let turns = manifest.covers.iter().map(|at| position("turns", *at));
        Self {
            partition: manifest.reached.first().map_or(0, |at| at.partition),
            number: manifest.number,
            taken_ms: manifest.taken_ms,
            reaches: memory.chain(turns).collect(),
            units: manifest.live.units,
            bytes: manifest.bytes(),
        }
    }
}
