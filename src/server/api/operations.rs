//! How a service is, and what its administrators order: status, metrics, snapshots, another reading of a bank.
//!
//! In: who asks. Out: counts, for a token of some banks those of its banks alone; snapshots and what was ordered,
//! for those with the right `admin` in every bank. Works with and without a memory in this process. Nothing here
//! shows anything that was remembered.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    bank_status::{BankStatus, bank_status},
    blocking::blocking,
    problem::{Code, Problem},
};
use crate::{
    access::{Caller, Right},
    state::State,
};
use nouns::model::{Bank, Position};
use ripplemem::{
    log::{Log, Topic, Written},
    pipeline::{Erased, Memory, PipelineError},
    snapshot::Manifest,
};

/// Most banks that a status counts.
const MOST_BANKS: usize = 100;

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

/// A bank that the language model is to read again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reextract {
    /// The bank.
    pub bank: Bank,
}

/// What the language model reads again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reextracted {
    /// The bank.
    pub bank: Bank,
    /// Its closed windows. One that is not read again keeps its units.
    pub windows: usize,
}

/// How the memory is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Status {
    /// The version of the program.
    pub version: String,
    /// Partitions of the log.
    pub partitions: u32,
    /// The `after` of everything that is durable now; empty where nothing is, and for a token of some banks.
    pub after: String,
    /// Turns that are durable and that no answer reflects yet.
    pub behind: u64,
    /// Closed windows that wait for the language model. This and the counts below are of this process since its
    /// start; all are 0 for a token of some banks.
    pub waiting_for_model: u64,
    /// Windows that were closed and extracted.
    pub windows: u64,
    /// Units that were written.
    pub units: u64,
    /// Turns that were rejected.
    pub rejected: u64,
    /// Dead letters that were written: rejected turns, records that no source could read, replies of the language
    /// model that could not be used.
    pub dead_letters: u64,
    /// Windows that the language model has read.
    pub read_by_model: u64,
    /// Windows whose reading by the language model could not be used.
    pub refused_by_model: u64,
    /// What the service waits for before it is ready, as `/ready` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// What goes wrong in the background; it is tried again until it succeeds. Only a token of every bank sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// For a token of some banks: these, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub banks: Vec<BankStatus>,
}

/// The operations of one service.
pub struct Operations {
    pub(crate) state: Arc<State>,
    log: Arc<dyn Log>,
    /// None where this process has no memory, as without the role `serve`.
    memory: Option<Arc<Memory>>,
}

impl Operations {
    /// Of a service on this log.
    pub(crate) fn new(state: Arc<State>, log: Arc<dyn Log>, memory: Option<Arc<Memory>>) -> Self {
        Self { state, log, memory }
    }

    /// How the service is. To a token of some banks it counts their turns and units, and nothing else.
    ///
    /// # Errors
    /// [`Problem`] without the right to read, or where the log failed.
    pub async fn status(self: &Arc<Self>, who: &Arc<Caller>) -> Result<Status, Problem> {
        who.may(Right::Read)?;
        let (this, who) = (Arc::clone(self), Arc::clone(who));
        blocking(move || if who.sees_all(Right::Read) { this.whole_status() } else { this.status_of_banks(&who) }).await
    }

    fn whole_status(&self) -> Result<Status, Problem> {
        let mut after = Written::nothing(self.log.partitions());
        let mut behind = 0;
        for partition in 0..self.log.partitions() {
            let end = self.log.end(Topic::Turns, partition).map_err(PipelineError::from)?;
            if end > 0 {
                after.extend(partition, end);
            }
            let position = self.log.read_position(partition);
            // While the cluster is away its lag is not known.
            behind += position.and_then(|at| self.log.lag(partition, at)).unwrap_or_default();
        }
        let metrics = &self.state.metrics;
        Ok(Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            partitions: self.log.partitions(),
            after: after.to_string(),
            behind,
            waiting_for_model: self.state.waiting_for_model(),
            windows: metrics.firings.get(),
            units: metrics.units.get(),
            rejected: metrics.rejects.get(),
            dead_letters: metrics.dead_letters.get(),
            read_by_model: metrics.read_by_model.get(),
            refused_by_model: metrics.refused_by_model.get(),
            waiting_for: self.state.waiting_for(),
            problem: self.state.problem(),
            banks: Vec::new(),
        })
    }

    fn status_of_banks(&self, who: &Caller) -> Result<Status, Problem> {
        let mut status = Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            partitions: self.log.partitions(),
            waiting_for: self.state.waiting_for(),
            ..Status::default()
        };
        let Some(memory) = &self.memory else { return Ok(status) };
        let banks = memory.banks_where(&|bank| who.reaches(bank));
        status.banks = banks
            .into_iter()
            .take(MOST_BANKS)
            // A shard that moves to another instance in the meantime is left out.
            .filter_map(|bank| bank_status(memory, bank).ok())
            .collect::<Vec<BankStatus>>();
        status.behind = status.banks.iter().map(|bank| bank.behind).max().unwrap_or_default();
        Ok(status)
    }

    /// The metrics, as Prometheus reads them.
    ///
    /// # Errors
    /// [`Problem`] without the right to read in every bank.
    pub fn metrics(&self, who: &Caller) -> Result<String, Problem> {
        who.may_everywhere(Right::Read)?;
        Ok(self.state.metrics.text())
    }

    /// The newest snapshot of each shard.
    ///
    /// # Errors
    /// [`Problem`] without the right, without a place for snapshots, or where it cannot be read.
    pub async fn snapshots(&self, who: &Caller) -> Result<SnapshotList, Problem> {
        who.may_everywhere(Right::Admin)?;
        let memory = self.memory()?;
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
        let (memory, log) = (self.memory()?, Arc::clone(&self.log));
        if let Some(what) = self.state.loading() {
            return Err(Problem::new(
                Code::Loading,
                format!("this service waits for {what}; ask again when it is ready"),
            ));
        }
        blocking(move || {
            memory.replica().snapshots()?.ok_or_else(nowhere)?;
            // Another process may have written snapshots of shards, and have ended.
            memory.replica().take_over(&*log)?;
            let written = memory.replica().snapshot_on_request()?;
            let manifests = written.map(|written| written.manifests).unwrap_or_default();
            Ok(SnapshotList { snapshots: manifests.iter().map(SnapshotView::of).collect() })
        })
        .await
    }

    /// Erases the words of all turns that were deleted, from every stored byte; answered when it is done.
    ///
    /// # Errors
    /// [`Problem`] without the right, without a log in a directory, or where a place cannot be written.
    pub async fn erase(&self, who: &Caller) -> Result<Erased, Problem> {
        who.may_everywhere(Right::Admin)?;
        let memory = self.memory()?;
        if !memory.lists_turns() {
            return Err(Problem::invalid(
                "on Kafka, what is deleted leaves the topics as their retention and compaction say; see \
                 docs/forgetting.md",
            ));
        }
        blocking(move || Ok(memory.erase()?)).await
    }

    /// Has the language model read the closed windows of a bank again, in the background.
    ///
    /// # Errors
    /// [`Problem`] without the right, without a model that extracts here, or for an unknown bank.
    pub async fn reextract(&self, who: &Caller, Reextract { bank }: Reextract) -> Result<Reextracted, Problem> {
        who.may_everywhere(Right::Admin)?;
        let none = || {
            Problem::new(Code::NoModel, "no language model extracts here: set extract.extractor = \"llm\", and [llm]")
        };
        let orders = self.state.orders.get().ok_or_else(none)?;
        let windows = orders.reextract(bank.clone()).await?;
        Ok(Reextracted { bank, windows })
    }

    fn memory(&self) -> Result<Arc<Memory>, Problem> {
        let none =
            || Problem::invalid("this service has no memory; add \"serve\" to its roles, or ask one that has it");
        self.memory.clone().ok_or_else(none)
    }
}

fn nowhere() -> Problem {
    Problem::invalid("no snapshots are written: set snapshot.directory in the pipeline file")
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
