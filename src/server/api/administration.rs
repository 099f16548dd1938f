//! What a bank holds and how far it reaches, and the snapshots of the whole memory.
//!
//! In: who asks, a bank. Out: counts with the offsets up to which turns are reflected; snapshots, for those
//! with the right `admin` in every bank. Nothing here shows anything that was remembered.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    calls::{Api, blocking},
    forms::Digest,
    problem::Problem,
};
use crate::access::{Caller, Right};
use nouns::model::{Bank, Position};
use ripplemem::{log::partition_of, snapshot::Manifest};

/// A bank, counted, and how far it reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BankStatus {
    /// What it holds.
    #[serde(flatten)]
    pub counts: Digest,
    /// Every turn of the bank before these offsets is reflected, and answers from now on reflect at least them.
    pub complete_through: Vec<Position>,
    /// Durable turns of the bank's partition that are not reflected yet; those of other banks count, too.
    pub behind: u64,
}

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
    pub reaches: Vec<Position>,
    /// Live units in it.
    pub units: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

impl Api {
    /// Counts of a bank, and how far it reaches.
    ///
    /// # Errors
    /// [`Problem`] for an unknown bank.
    pub async fn bank(&self, who: &Caller, bank: Bank) -> Result<BankStatus, Problem> {
        who.may_in(Right::Read, &bank)?;
        self.check_here(&bank)?;
        let memory = Arc::clone(&self.memory);
        blocking(move || {
            // In this order: what is counted reflects at least this.
            let complete_through = memory.replica().read_to(&bank);
            let counts = Digest::of(Some(bank.clone()), memory.replica().digest(Some(&bank))?);
            let partition = partition_of(&bank, memory.partitions());
            let end = memory.end()?.places().find_map(|(of, next)| (of == partition).then_some(next));
            let reflected = complete_through.iter().find(|at| at.topic == "turns").map_or(0, |at| at.next_offset);
            let behind = end.unwrap_or_default().saturating_sub(reflected);
            Ok(BankStatus { counts, complete_through, behind })
        })
        .await
    }

    /// The newest snapshot of each shard.
    ///
    /// # Errors
    /// [`Problem`] without the right, without a place for snapshots, or where it cannot be read.
    pub async fn snapshots(&self, who: &Caller) -> Result<SnapshotList, Problem> {
        who.may_everywhere(Right::Admin)?;
        let memory = Arc::clone(&self.memory);
        blocking(move || {
            let manifests = memory.replica().snapshots()?.ok_or_else(nowhere)?;
            Ok(SnapshotList { snapshots: manifests.iter().map(SnapshotView::of).collect() })
        })
        .await
    }

    /// Writes a snapshot of every shard that this process writes snapshots of; answered when it is written.
    ///
    /// # Errors
    /// As [`Self::snapshots`]; the memory keeps answering.
    pub async fn take_snapshot(&self, who: &Caller) -> Result<SnapshotList, Problem> {
        who.may_everywhere(Right::Admin)?;
        let memory = Arc::clone(&self.memory);
        blocking(move || {
            memory.replica().snapshots()?.ok_or_else(nowhere)?;
            let manifests =
                memory.replica().snapshot_on_request()?.map(|written| written.manifests).unwrap_or_default();
            Ok(SnapshotList { snapshots: manifests.iter().map(SnapshotView::of).collect() })
        })
        .await
    }
}

impl SnapshotView {
    fn of(manifest: &Manifest) -> Self {
        let position = |topic: &str, (partition, next_offset): (u32, u64)| Position {
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

fn nowhere() -> Problem {
    Problem::invalid("no snapshots are written: set snapshot.directory in the pipeline file")
}
