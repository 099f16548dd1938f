//! What the threads of a service share: its metrics, whether it is ready, and what it cannot do.
//!
//! In: events of the memory and of its log. Out: metrics, readiness, and the state of each partition's extraction.
//! Nothing here names a bank or holds a word of what was said.

use crate::log_events;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    log_ends::LogEnds,
    recent_questions::RecentQuestions,
    single_flight::{SingleFlight, SingleFlightResult},
    source_status::SourceStatuses,
    telemetry::{Metrics, OutcomeLabel, PartitionLabel, PurposeLabel, WaitReasonLabel},
    webhooks::Webhooks,
};

use erasure::RetentionStatus;
use ingest::{CommittedTransaction, ExtractionEvent, ExtractionOrderSender, ExtractionStatus};
use logs::{Log, LogError, Topic};
use models::llm::{Contract, LlmClient};
use pipeline::PipelineError;
use replica::{QueryQueue, Replica, ShardStatus, SleepStatus};
use ripplemem::MemoryEvent;
use types::{
    config::{LLM, Pipeline, ServiceRole},
    model::{Evidence, ModelUsage},
    sync,
};

/// The average number of bytes of a context per token.
const BYTES_A_TOKEN: f64 = 4.0;

/// What the threads of a service share.
pub(super) struct ServiceState {
    pub(super) metrics: Metrics,
    /// How long questions take now.
    pub(super) questions: RecentQuestions,
    /// Whether the memory reflects what its log held at the start; true without `serve`.
    pub(super) loaded: AtomicBool,
    /// Whether this process is a member of the extractors' group; true without `extract`, and without a group.
    pub(super) joined: AtomicBool,
    /// The memory, once it is open; never without the role `serve`.
    pub(super) replica: OnceLock<Arc<Replica>>,
    /// The query queue, once questions are answered; it is dropped before this.
    pub(super) queue: OnceLock<Weak<QueryQueue>>,
    /// Takes orders for the extraction, if a language model extracts here.
    pub(super) orders: OnceLock<ExtractionOrderSender>,
    /// Takes what platforms send to their sources.
    pub(super) webhooks: Arc<Webhooks>,
    /// The states of the live sources that this process follows.
    pub(super) sources: SourceStatuses,
    /// `log.directory`.
    directory: PathBuf,
    /// The partitions that are extracted here.
    extraction: Mutex<ExtractionStatus>,
    /// The ends of the log, as they were found last.
    ends: SingleFlight<LogEnds>,
    /// Why the log refuses turns.
    refusing: Mutex<Option<String>>,
    /// Why no snapshot is written.
    no_snapshot: Mutex<Option<String>>,
    /// On Kafka, how many entries of operations that forget turns cannot be read.
    unreadable_operations: AtomicUsize,
    /// On Kafka, what retention did; `None` if it does not run.
    pub(super) retention: Mutex<Option<RetentionStatus>>,
}

impl ServiceState {
    /// The state at the start of a service.
    pub(super) fn new(pipeline: &Pipeline, webhooks: Arc<Webhooks>, by_group: bool) -> Self {
        let has = |role| pipeline.roles.contains(&role);
        Self {
            metrics: Metrics::new(),
            questions: RecentQuestions::default(),
            loaded: AtomicBool::new(!has(ServiceRole::Serve)),
            joined: AtomicBool::new(!by_group || !has(ServiceRole::Extract)),
            replica: OnceLock::new(),
            queue: OnceLock::new(),
            orders: OnceLock::new(),
            webhooks,
            sources: SourceStatuses::default(),
            directory: pipeline.log.directory.clone(),
            extraction: Mutex::default(),
            ends: SingleFlight::new(),
            refusing: Mutex::default(),
            no_snapshot: Mutex::default(),
            unreadable_operations: AtomicUsize::new(0),
            retention: Mutex::default(),
        }
    }

    /// What the service waits for before it can answer; `None` if it can.
    pub(super) fn loading(&self) -> Option<&'static str> {
        if !self.loaded.load(Ordering::Relaxed) {
            return Some("the memory to be loaded");
        }
        if !self.joined.load(Ordering::Relaxed) {
            return Some("the group of extractors");
        }
        let has_fallen = self.replica.get().is_some_and(|replica| !replica.can_answer());
        has_fallen.then_some("the memory, whose shards have all panicked; each is loaded again")
    }

    /// What a service that is not ready waits for: to be able to answer, or for a person to fix the log, which refuses
    /// writes. An unavailable endpoint or cluster comes back by itself, and what is durable waits for it.
    pub(super) fn waiting_for(&self) -> Option<String> {
        if let Some(what) = self.loading() {
            return Some(what.to_owned());
        }
        if sync::lock(&self.refusing).is_some() {
            return Some("the log, which refuses turns; its log lines say why".to_owned());
        }
        let refusing: Vec<String> = sync::lock(&self.extraction).refusing().iter().map(ToString::to_string).collect();
        (!refusing.is_empty()).then(|| {
            format!(
                "the log, which refuses what is extracted of partition {}; its log lines say why",
                refusing.join(", ")
            )
        })
    }

    /// The partitions of the memory that are stalled before a record that cannot be read, each with its offset. The
    /// others answer, so the service is ready.
    pub(super) fn stalled_partitions(&self) -> Option<String> {
        let shards = self.replica.get().map(|replica| replica.shards()).unwrap_or_default();
        let still = shards.iter().filter_map(|shard| Some((shard.partition, shard.waits_before?)));
        let named: Vec<String> = still
            .map(|(partition, offset)| format!("memory partition {partition} stands still before offset {offset}"))
            .collect();
        (!named.is_empty()).then(|| {
            format!(
                "{}: the record there cannot be read, and banks of the partition are answered as of before it; run the \
                 build that wrote it, or see `ripplemem repair`",
                named.join(", ")
            )
        })
    }

    /// Takes note of an event of the open memory.
    pub(super) fn note(&self, event: &MemoryEvent<'_>) {
        match event {
            MemoryEvent::Extraction(event) => self.note_extraction(event),
            MemoryEvent::Snapshot { is_written, took } => self.note_snapshot(is_written, *took),
        }
    }

    /// Takes note of an event of the extraction.
    pub(super) fn note_extraction(&self, event: &ExtractionEvent) {
        let metrics = &self.metrics;
        match event {
            ExtractionEvent::Joined => self.joined.store(true, Ordering::Relaxed),
            ExtractionEvent::TakenOver { took, .. } => drop(metrics.takeover_seconds.set(took.as_secs_f64())),
            ExtractionEvent::Left { partition } => {
                let of = PartitionLabel { partition: *partition };
                metrics.lag.remove(&of);
                metrics.llm_windows_waiting.remove(&of);
                metrics.watermark_seconds.remove(&of);
            }
            ExtractionEvent::Committed(committed) => count(metrics, committed),
            ExtractionEvent::Waiting { partition, windows, .. } => {
                metrics
                    .llm_windows_waiting
                    .get_or_create(&PartitionLabel { partition: *partition })
                    .set(*windows as i64);
            }
            ExtractionEvent::Failed { .. } => drop(metrics.aborts.inc()),
            ExtractionEvent::Recovered { .. } => {}
        }
        let mut extraction = sync::lock(&self.extraction);
        extraction.note(event);
        metrics.owned.set(extraction.positions().filter(|(_, position)| position.is_some()).count() as i64);
    }

    /// Takes note of an attempt to write snapshots.
    pub(super) fn note_snapshot(&self, is_written: &Result<bool, PipelineError>, took: Duration) {
        let metrics = &self.metrics;
        match is_written {
            Ok(true) => {
                metrics.snapshots.inc();
                metrics.snapshot_seconds.observe(took.as_secs_f64());
                metrics.snapshot_timestamp_seconds.set(jiff::Timestamp::now().as_millisecond() as f64 / 1_000.0);
            }
            Ok(false) => {}
            Err(_) => drop(metrics.snapshot_failures.inc()),
        }
        *sync::lock(&self.no_snapshot) = is_written.as_ref().err().map(|error| format!("no snapshot: {error}"));
    }

    /// Takes note of the answer to a question, or of the code of its refusal, and of how long it took.
    pub(super) fn note_answer(&self, answer: Result<&Evidence, &'static str>, took: Duration) {
        let (metrics, seconds) = (&self.metrics, took.as_secs_f64());
        let outcome = answer.err().unwrap_or("answered");
        metrics.questions.get_or_create(&OutcomeLabel { outcome }).inc();
        metrics.question_seconds.observe(seconds);
        self.questions.note(Instant::now(), took);
        let Ok(evidence) = answer else {
            return log_events::question_refused(outcome, seconds);
        };
        let tokens = evidence.context.len() as f64 / BYTES_A_TOKEN;
        metrics.answer_tokens.observe(tokens);
        if !evidence.supported {
            metrics.questions_unsupported.inc();
        }
        if let Some(took) = evidence.trace.llm {
            metrics.llm_question_tokens.observe(took.tokens() as f64);
            metrics.llm_question_seconds.observe(took.milliseconds as f64 / 1_000.0);
        }
        let (supported, units) = (evidence.supported, evidence.units.len());
        log_events::question_answered(outcome, seconds, supported, units, tokens as u64);
    }

    /// Takes note of the result of a write to the log.
    pub(super) fn note_write<T>(&self, written: &Result<T, PipelineError>) {
        match written {
            Ok(_) => *sync::lock(&self.refusing) = None,
            Err(error) if error.refuses_writes() => *sync::lock(&self.refusing) = Some(error.to_string()),
            Err(_) => {}
        }
    }

    /// Windows that wait for the language model.
    pub(super) fn waiting_for_model(&self) -> u64 {
        sync::lock(&self.extraction).waiting_for_model()
    }

    /// What goes wrong and is tried again. It may name a bank.
    pub(super) fn problem(&self) -> Option<String> {
        if let Some(problem) = sync::lock(&self.refusing).clone() {
            return Some(problem);
        }
        if let Some(still) = self.stalled_partitions() {
            return Some(still);
        }
        let snapshot = sync::lock(&self.no_snapshot).clone();
        let extraction = sync::lock(&self.extraction);
        let of_questions = self.queue.get().and_then(Weak::upgrade).and_then(|queue| queue.endpoint_problem());
        let problem = extraction.problem().or(of_questions.as_deref()).or(snapshot.as_deref());
        let problem = problem.or(extraction.model_problem()).map(str::to_owned);
        problem.or_else(|| match self.unreadable_operations.load(Ordering::Relaxed) {
            0 => None,
            some => Some(format!(
                "{some} records of operations that forget turns cannot be read, and are passed over; `ripplemem repair` \
                 shows them"
            )),
        })
    }

    /// Notes how many entries of operations that forget turns cannot be read.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "in a directory such an entry is damage"))]
    pub(super) fn note_unreadable_operations(&self, number: usize) {
        self.unreadable_operations.store(number, Ordering::Relaxed);
    }

    /// The ends of the log. If it does not answer within some seconds, the last known ones, and why there are no newer
    /// ones.
    pub(super) fn log_ends(&self, log: &Arc<dyn Log>) -> SingleFlightResult<LogEnds> {
        let extracted: BTreeSet<u32> =
            sync::lock(&self.extraction).positions().map(|(partition, _)| partition).collect();
        let (log, replica) = (Arc::clone(log), self.replica.get().cloned());
        self.ends.run_shared(move || {
            // On Kafka, the position of a partition that another instance extracts costs a read of its whole memory.
            let is_elsewhere = |partition: &u32| log.erasable().is_none() && !extracted.contains(partition);
            let followed = |partition| replica.as_ref().filter(|_| is_elsewhere(&partition))?.position(partition);
            LogEnds::of(&*log, &followed).map_err(|error| error.to_string())
        })
    }

    /// Measures what no event reports: the lag of the partitions that are extracted here, the shards, the free disk
    /// space and the waiting questions. While the cluster is unavailable, the last figures stay.
    pub(super) fn measure(&self, log: &dyn Log) {
        if let Ok(disk) = rustix::fs::statvfs(&self.directory) {
            self.metrics.disk_free_bytes.set((disk.f_bavail * disk.f_frsize).min(i64::MAX.unsigned_abs()) as i64);
        }
        let extracted: Vec<(u32, Option<u64>)> = sync::lock(&self.extraction).positions().collect();
        for (partition, position) in extracted {
            let lag = position.map_or_else(|| log.read_position(partition), Ok).and_then(|at| log.lag(partition, at));
            let lag = match lag {
                // Nobody knows how much of it is extracted, so all of it counts.
                Err(LogError::Unreadable { .. }) => log.end(Topic::Turns, partition),
                lag => lag,
            };
            if let Ok(lag) = lag {
                let lag = lag.min(i64::MAX.unsigned_abs());
                self.metrics.lag.get_or_create(&PartitionLabel { partition }).set(lag as i64);
            }
        }
        if let Some(replica) = self.replica.get() {
            self.measure_shards(log, replica);
            if let Some(status) = replica.sleep_status() {
                self.measure_sleep(&status);
            }
        }
        let shortened = &self.metrics.texts_shortened;
        shortened.inc_by(models::embed::shortened_texts().saturating_sub(shortened.get()));
        if let Some(queue) = self.queue.get().and_then(Weak::upgrade) {
            self.measure_questions(&queue);
        }
    }

    fn measure_questions(&self, queue: &QueryQueue) {
        let (load, metrics) = (queue.load(), &self.metrics);
        for (what, waiting) in [("thread", load.ready), ("turn", load.parked), ("apart", load.apart)] {
            metrics.questions_waiting.get_or_create(&WaitReasonLabel { what }).set(waiting as i64);
        }
        metrics.questions_in_progress.set(load.in_progress as i64);
        let counted =
            [(&metrics.question_panics, queue.panics()), (&metrics.question_embeddings, queue.embedded_texts())];
        for (counter, now) in counted {
            counter.inc_by(now.saturating_sub(counter.get()));
        }
    }

    fn measure_sleep(&self, status: &SleepStatus) {
        let metrics = &self.metrics;
        let gauges = [
            (&metrics.banks_awake, status.awake),
            (&metrics.banks_asleep, status.asleep),
            (&metrics.banks_awake_bytes, status.awake_bytes),
        ];
        for (gauge, now) in gauges {
            gauge.set(i64::try_from(now).unwrap_or(i64::MAX));
        }
        metrics.bank_wakes.inc_by(status.wakes.saturating_sub(metrics.bank_wakes.get()));
        let seconds = &metrics.bank_wake_seconds;
        seconds.inc_by((status.wake_microseconds as f64 / 1e6 - seconds.get()).max(0.0));
    }

    fn measure_shards(&self, log: &dyn Log, replica: &Replica) {
        let metrics = &self.metrics;
        let shards: BTreeMap<u32, ShardStatus> =
            replica.shards().into_iter().map(|shard| (shard.partition, shard)).collect();
        let awaited = replica.awaited();
        for partition in 0..log.partitions() {
            let of = PartitionLabel { partition };
            let shard = shards.get(&partition);
            let is = |what: fn(&ShardStatus) -> bool| i64::from(shard.is_some_and(what));
            metrics.shards_held.get_or_create(&of).set(i64::from(shard.is_some()));
            let loading = is(|shard| shard.loading) | i64::from(awaited.contains(&partition));
            metrics.shards_loading.get_or_create(&of).set(loading);
            metrics.shards_waiting.get_or_create(&of).set(is(|shard| shard.waits_before.is_some()));
            let quarantined = shard.map_or(0, |shard| shard.quarantined_banks);
            metrics.quarantined_banks.get_or_create(&of).set(quarantined as i64);
            let Some(shard) = shard else {
                metrics.shards_behind.remove(&of);
                continue;
            };
            let rebuilds = metrics.shard_rebuilds.get_or_create(&of);
            rebuilds.inc_by(shard.rebuilds.saturating_sub(rebuilds.get()));
            // A cluster that is away is asked again with the next measurement.
            drop(replica.pass_markers(log, partition));
            if let Ok(behind) = log.records_after(partition, shard.next_offset) {
                let behind = behind.min(i64::MAX.unsigned_abs());
                metrics.shards_behind.get_or_create(&of).set(behind as i64);
            }
        }
    }
}

/// Whether a language model extracts in a pipeline.
pub(super) fn extracts_by_model(pipeline: &Pipeline) -> bool {
    pipeline.roles.contains(&ServiceRole::Extract) && pipeline.extract.extractor == LLM
}

fn count(metrics: &Metrics, committed: &CommittedTransaction) {
    metrics.commits.inc();
    metrics.events.inc_by(committed.events);
    metrics.rejects.inc_by(committed.rejects);
    metrics.not_kept.inc_by(committed.not_kept);
    metrics.stale.inc_by(committed.stale);
    metrics.dead_letters.inc_by(committed.dead_letters);
    metrics.forwards.inc_by(committed.forwards);
    metrics.firings.inc_by(committed.windows);
    metrics.units.inc_by(committed.units);
    metrics.read_by_model.inc_by(committed.by_model);
    metrics.refused_by_model.inc_by(committed.refused);
    metrics.step_seconds.observe(committed.took.as_secs_f64());
    for usage in &committed.model_usage {
        metrics.llm_window_tokens.observe(usage.tokens() as f64);
        metrics.llm_window_seconds.observe(usage.milliseconds as f64 / 1_000.0);
    }
    if let Some(append_ms) = committed.append_ms {
        let of = PartitionLabel { partition: committed.partition };
        metrics.watermark_seconds.get_or_create(&of).set(append_ms as f64 / 1_000.0);
    }
}

/// Counts what the language model used.
pub(super) struct ModelMeter {
    llm: Option<Arc<LlmClient>>,
    counted: [ModelUsage; Contract::ALL.len()],
}

impl ModelMeter {
    /// The meter of a pipeline's model, if it names one.
    ///
    /// # Errors
    /// [`PipelineError::Llm`].
    pub(super) fn open(pipeline: &Pipeline) -> Result<Self, PipelineError> {
        let llm =
            pipeline.llm.is_set().then(|| LlmClient::open(&pipeline.llm, pipeline.response_directory())).transpose()?;
        Ok(Self { llm, counted: [ModelUsage::default(); Contract::ALL.len()] })
    }

    /// Adds what was used since the last call.
    pub(super) fn count(&mut self, metrics: &Metrics) {
        let Some(llm) = &self.llm else { return };
        for ((contract, now), before) in llm.spending().into_iter().zip(&mut self.counted) {
            let of = PurposeLabel { purpose: contract.name() };
            metrics.llm_calls.get_or_create(&of).inc_by(now.calls - before.calls);
            metrics.llm_tokens.get_or_create(&of).inc_by(now.tokens() - before.tokens());
            metrics.llm_seconds.get_or_create(&of).inc_by((now.milliseconds - before.milliseconds) as f64 / 1_000.0);
            *before = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> ServiceState {
        let state = ServiceState::new(&Pipeline::parse("version = 1").expect("a pipeline"), Arc::default(), false);
        state.loaded.store(true, Ordering::Relaxed);
        state
    }

    #[test]
    fn a_log_that_refuses_turns_is_not_ready_until_it_takes_them_again() {
        let state = ready();
        assert_eq!(state.waiting_for(), None);
        let full = LogError::Disk {
            directory: PathBuf::from("log"),
            doing: "writing",
            remedy: "make room",
            source: std::io::Error::other("no space left").into(),
        };
        state.note_write::<()>(&Err(full.into()));
        assert!(state.waiting_for().is_some_and(|what| what.contains("refuses turns")));
        assert!(state.problem().is_some_and(|problem| problem.contains("make room")));
        state.note_write(&Ok(()));
        assert_eq!((state.waiting_for(), state.problem()), (None, None));
    }

    #[test]
    fn a_cluster_that_is_away_leaves_the_service_ready() {
        let state = ready();
        let away = LogError::Cluster {
            brokers: "a:1".to_owned(),
            doing: "writing".to_owned(),
            problem: "no reply".to_owned(),
            remedy: "check it",
            retriable: true,
        };
        state.note_write::<()>(&Err(away.into()));
        assert_eq!(state.waiting_for(), None, "nobody would write, and so find out that it is back");
    }

    #[test]
    fn a_failed_partition_is_told_and_unready_only_where_the_log_refuses_writes() {
        let state = ready();
        let fail = |refuses_writes| {
            let problem = "bank zoe: full".to_owned();
            state.note_extraction(&ExtractionEvent::Failed { partition: 3, problem, refuses_writes });
        };
        fail(false);
        assert!(state.waiting_for().is_none() && state.problem().is_some());
        fail(true);
        let what = state.waiting_for().expect("it is not ready");
        assert!(what.contains("partition 3") && !what.contains("zoe"), "{what}");
        assert!(state.loading().is_none(), "it answers, and writes snapshots");
        assert_eq!(state.metrics.aborts.get(), 2);
        for event in [ExtractionEvent::Recovered { partition: 3 }, ExtractionEvent::Left { partition: 3 }] {
            fail(true);
            state.note_extraction(&event);
            assert_eq!((state.waiting_for(), state.problem()), (None, None));
        }
    }
}
