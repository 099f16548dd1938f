//! The status of a service, and its metrics.
//!
//! In: the caller, with the right `read`. Out: counts; a token for some banks gets only those of its banks, and no
//! metrics. Works without a memory in this process, and while the log does not answer, with what was last known of it.
//! Nothing here shows what was remembered.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    bank_status::{BankStatus, bank_status},
    blocking_work::blocking,
    operations::ServiceOperations,
    problem::ApiProblem,
    read_limiters::{ReadScope, queue_key},
};
use crate::{
    access::{AccessRight, Caller},
    recent_questions::RecentQuestions,
    single_flight::SingleFlightResult,
    source_status::SourceStatus,
};
use erasure::RetentionStatus;
use logs::WritePosition;
use pipeline::Cancellation;
use replica::SleepStatus;
use types::{model::Bank, sync};

/// Most banks in a status.
const MAX_BANKS: usize = 100;

/// How the memory is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Status")]
pub struct ServiceStatus {
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
    /// Turns that were not kept because their ids had been forgotten.
    #[serde(default)]
    pub not_kept: u64,
    /// Records that changed nothing because a newer version or a deletion stands, those of `not_kept` included.
    #[serde(default)]
    pub stale: u64,
    /// Dead letters that were written: rejected turns, records that no source could read, replies of the language
    /// model that could not be used.
    pub dead_letters: u64,
    /// Windows that the language model has read.
    pub read_by_model: u64,
    /// Windows whose reading by the language model could not be used.
    pub refused_by_model: u64,
    /// How many questions there were, and how long they take. Only a token of every bank sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub questions: Option<QuestionTimes>,
    /// What the service waits for before it is ready, as `/ready` says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// The banks in memory and those that sleep; absent if none sleeps. Only a token of every bank sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep: Option<BankSleepStatus>,
    /// What the rules of `[[retention]]` did; absent without a rule. Only a token of every bank sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionStatus>,
    /// What goes wrong in the background; it is tried again until it succeeds. Only a token of every bank sees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The live sources that this process follows, by name. Only a token of every bank sees them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceStatus>,
    /// For a token of some banks: these, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub banks: Vec<BankStatus>,
}

/// How many questions there were, and how long they take, from their arrival to their answer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionTimes {
    /// Questions since the start, refused ones included.
    pub total: u64,
    /// What half of those of the last five minutes took at most, in milliseconds; absent without any. Of many, the
    /// last 4,096 count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    /// The same for 99 of 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<f64>,
}

/// The banks in memory and those that sleep.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BankSleepStatus {
    /// Banks in memory.
    pub awake: u64,
    /// Banks that sleep.
    pub asleep: u64,
    /// About the bytes of the banks in memory.
    pub awake_bytes: u64,
    /// How often a bank woke since the start.
    pub wakes: u64,
    /// The mean time that it took to read a bank that woke, in milliseconds; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_wake_ms: Option<f64>,
    /// The longest of these times, in milliseconds; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_wake_ms: Option<f64>,
}

impl From<SleepStatus> for BankSleepStatus {
    fn from(of: SleepStatus) -> Self {
        let SleepStatus { awake, asleep, awake_bytes, wakes, wake_microseconds, longest_wake_microseconds } = of;
        let milliseconds = |microseconds: u64, count: u64| microseconds as f64 / 1e3 / count as f64;
        Self {
            awake,
            asleep,
            awake_bytes,
            wakes,
            mean_wake_ms: (wakes > 0).then(|| milliseconds(wake_microseconds, wakes)),
            longest_wake_ms: (wakes > 0).then(|| milliseconds(longest_wake_microseconds, 1)),
        }
    }
}

impl QuestionTimes {
    fn of(questions: &RecentQuestions) -> Self {
        let percentiles = questions.percentiles(Instant::now());
        let milliseconds = |time: Duration| time.as_secs_f64() * 1_000.0;
        Self {
            total: questions.total(),
            p50_ms: percentiles.map(|of| milliseconds(of.p50)),
            p99_ms: percentiles.map(|of| milliseconds(of.p99)),
        }
    }
}

impl ServiceOperations {
    /// The status of the service. A token for some banks gets counts of those banks only.
    ///
    /// # Errors
    /// [`ApiProblem`] without the right to read.
    pub async fn status(self: &Arc<Self>, who: &Arc<Caller>) -> Result<ServiceStatus, ApiProblem> {
        who.may(AccessRight::Read)?;
        let this = Arc::clone(self);
        if who.sees_all(AccessRight::Read) {
            return blocking(move || Ok(this.whole_status())).await;
        }
        let banks = match &self.memory {
            Some(memory) => {
                let (memory, who) = (Arc::clone(memory), Arc::clone(who));
                blocking(move || Ok(memory.banks_where(&|bank| who.reaches(bank)))).await?
            }
            None => Vec::new(),
        };
        let Some(first) = banks.first() else {
            return blocking(move || Ok(this.status_of_banks(Vec::new(), &Cancellation::default()))).await;
        };
        let lane = queue_key(who, first);
        let status = move |cancellation: &Cancellation| Ok(this.status_of_banks(banks, cancellation));
        self.reads.read(&lane, ReadScope::Little, status).await
    }

    fn whole_status(&self) -> ServiceStatus {
        let SingleFlightResult { found, problem } = self.state.log_ends(&self.log);
        let ends = found.unwrap_or_default();
        let metrics = &self.state.metrics;
        let here = sync::lock(&self.state.retention).clone();
        let retention = here.or_else(|| self.memory.as_ref().and_then(|memory| memory.retention()));
        ServiceStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            partitions: self.log.partitions(),
            after: ends.after().to_string(),
            behind: ends.behind(),
            waiting_for_model: self.state.waiting_for_model(),
            windows: metrics.firings.get(),
            units: metrics.units.get(),
            rejected: metrics.rejects.get(),
            not_kept: metrics.not_kept.get(),
            stale: metrics.stale.get(),
            dead_letters: metrics.dead_letters.get(),
            read_by_model: metrics.read_by_model.get(),
            refused_by_model: metrics.refused_by_model.get(),
            questions: Some(QuestionTimes::of(&self.state.questions)),
            waiting_for: self.state.waiting_for(),
            sleep: self.memory.as_ref().and_then(|memory| memory.replica().sleep_status()).map(BankSleepStatus::from),
            retention,
            problem: problem.or_else(|| self.state.problem()),
            sources: self.state.sources.all(),
            banks: Vec::new(),
        }
    }

    fn status_of_banks(&self, banks: Vec<Bank>, cancellation: &Cancellation) -> ServiceStatus {
        let mut status = ServiceStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            partitions: self.log.partitions(),
            waiting_for: self.state.waiting_for(),
            ..ServiceStatus::default()
        };
        let Some(memory) = &self.memory else { return status };
        let found = self.state.log_ends(&self.log).found;
        let end = found.map_or_else(|| WritePosition::nothing(self.log.partitions()), |ends| ends.ends());
        status.banks = banks
            .into_iter()
            .take(MAX_BANKS)
            // Nobody reads the rest.
            .take_while(|_| cancellation.check().is_ok())
            // Leaves out a bank whose shard moves to another instance in the meantime.
            .filter_map(|bank| bank_status(memory, bank, &end).ok())
            .collect::<Vec<BankStatus>>();
        status.behind = status.banks.iter().map(|bank| bank.behind).max().unwrap_or_default();
        status
    }

    /// The metrics, as Prometheus reads them.
    ///
    /// # Errors
    /// [`ApiProblem`] without the right to read in every bank.
    pub fn metrics(&self, who: &Caller) -> Result<String, ApiProblem> {
        who.may_everywhere(AccessRight::Read)?;
        Ok(self.state.metrics.text())
    }
}
