//! Every metric's name and meaning, in one place.
//!
//! In: events of a running service. Out: the text that Prometheus scrapes. Counters end in `_total`,
//! units are in the names. A bank is never a label: it would reveal who uses the service.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

type SecondsGauge = Gauge<f64, AtomicU64>;

/// A partition of the turns topic, or of the memory topic: a shard.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PartitionLabel {
    /// Its number.
    pub partition: u32,
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    /// `answered`, or the code of the refusal.
    pub outcome: &'static str,
}

/// What questions wait for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WaitReasonLabel {
    /// `thread`: one that answers; `turn`: a turn that answers must reflect; `apart`: a thread for long questions and
    /// those about the past.
    pub what: &'static str,
}

/// A live source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SourceLabel {
    /// Its name in the pipeline file.
    pub source: String,
}

/// What a live source left out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SkippedTurnLabels {
    /// The source's name in the pipeline file.
    pub source: String,
    /// Why, such as `encrypted`.
    pub reason: &'static str,
}

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RefusalStatusLabel {
    /// The status: 401, 403 or 429.
    pub status: u16,
}

/// The purpose of a request to the language model.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PurposeLabel {
    /// `extract`, `cues`, `plan`, `answer` or `judge`.
    pub purpose: &'static str,
}

/// The metrics of a running service.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Events read from the turns topic.
    pub events: Counter,
    /// Events rejected to the dead-letter topic.
    pub rejects: Counter,
    /// Turns that were not kept because they had been deleted before.
    pub not_kept: Counter,
    /// Records that changed nothing because a newer version or a deletion stands.
    pub stale: Counter,
    /// Dead letters written: rejected events, records that no source could read, replies that could not be used.
    pub dead_letters: Counter,
    /// Events forwarded to their bank's partition.
    pub forwards: Counter,
    /// Windows that closed and were extracted.
    pub firings: Counter,
    /// Units written.
    pub units: Counter,
    /// Transactions committed.
    pub commits: Counter,
    /// Transactions aborted.
    pub aborts: Counter,
    /// Reads of a topic that failed because the cluster was unavailable.
    pub read_failures: Counter,
    /// Duration of a step: read, extract, embed, commit.
    pub step_seconds: Histogram,
    /// Turns that are not extracted yet, by partition.
    pub lag: Family<PartitionLabel, Gauge>,
    /// Append time of the last extracted turn, in seconds since 1970.
    pub watermark_seconds: Family<PartitionLabel, SecondsGauge>,
    /// Partitions assigned to this instance.
    pub owned: Gauge,
    /// Duration of the last takeover of a partition.
    pub takeover_seconds: SecondsGauge,
    /// Time from the start until the memory reflected its log.
    pub recovery_seconds: SecondsGauge,
    /// Records loaded from the memory topic.
    pub records: Counter,
    /// Banks with a record that cannot be read, by shard.
    pub quarantined_banks: Family<PartitionLabel, Gauge>,
    /// Banks in memory.
    pub banks_awake: Gauge,
    /// Banks that sleep.
    pub banks_asleep: Gauge,
    /// About the bytes of the banks in memory.
    pub banks_awake_bytes: Gauge,
    /// Banks that woke.
    pub bank_wakes: Counter,
    /// Seconds that it took to read them.
    pub bank_wake_seconds: Counter<f64, AtomicU64>,
    /// Whether this instance holds the shard.
    pub shards_held: Family<PartitionLabel, Gauge>,
    /// Whether the shard has not reached the end of its log yet.
    pub shards_loading: Family<PartitionLabel, Gauge>,
    /// Offsets of the memory topic that the shard has not read yet.
    pub shards_behind: Family<PartitionLabel, Gauge>,
    /// Whether the shard waits before a record that only a newer build reads.
    pub shards_waiting: Family<PartitionLabel, Gauge>,
    /// How often the shard was made again after a panic.
    pub shard_rebuilds: Family<PartitionLabel, Counter>,
    /// Windows that the language model has read.
    pub read_by_model: Counter,
    /// Windows whose reading by the language model could not be used.
    pub refused_by_model: Counter,
    /// Turns that were put over HTTP and are durable.
    pub turns_put: Counter,
    /// Requests over HTTP that were refused, by status.
    pub requests_refused: Family<RefusalStatusLabel, Counter>,
    /// Questions by outcome.
    pub questions: Family<OutcomeLabel, Counter>,
    /// Answered questions that nothing supports.
    pub questions_unsupported: Counter,
    /// Tokens of an answer's context, estimated.
    pub answer_tokens: Histogram,
    /// Time from a question's arrival to its answer.
    pub question_seconds: Histogram,
    /// Questions that wait, by what they wait for.
    pub questions_waiting: Family<WaitReasonLabel, Gauge>,
    /// Questions that are being answered.
    pub questions_in_progress: Gauge,
    /// Questions whose answer panicked.
    pub question_panics: Counter,
    /// Texts that were embedded for questions.
    pub question_embeddings: Counter,
    /// Texts of turns and questions that were embedded in a shorter form, because their model did not take them whole.
    pub texts_shortened: Counter,
    /// Requests that the language model answered; cached responses do not count.
    pub llm_calls: Family<PurposeLabel, Counter>,
    /// Tokens of their prompts and completions.
    pub llm_tokens: Family<PurposeLabel, Counter>,
    /// Seconds that these requests took.
    pub llm_seconds: Family<PurposeLabel, Counter<f64, AtomicU64>>,
    /// Language-model tokens of one window.
    pub llm_window_tokens: Histogram,
    /// Language-model time of one window.
    pub llm_window_seconds: Histogram,
    /// Language-model tokens of one question's cues and plans.
    pub llm_question_tokens: Histogram,
    /// Language-model time of one question's cues and plans.
    pub llm_question_seconds: Histogram,
    /// Closed windows that wait for the language model, by partition.
    pub llm_windows_waiting: Family<PartitionLabel, Gauge>,
    /// Turns, edits and deletions that live sources committed.
    pub source_events: Family<SourceLabel, Counter>,
    /// Records of live sources that became dead letters.
    pub source_rejects: Family<SourceLabel, Counter>,
    /// What live sources found that is not a turn, by the reason.
    pub source_skips: Family<SkippedTurnLabels, Counter>,
    /// Times that a live source lost its platform or its log, and was opened again.
    pub source_interruptions: Family<SourceLabel, Counter>,
    /// Changes written to the edges topic.
    pub edges: Counter,
    /// Records written as Parquet rows.
    pub replayed_rows: Counter,
    /// Parquet files finished.
    pub replayed_files: Counter,
    /// Snapshots written.
    pub snapshots: Counter,
    /// Snapshots that failed to be written.
    pub snapshot_failures: Counter,
    /// Time to write a snapshot; nothing else waits for it.
    pub snapshot_seconds: Histogram,
    /// When this process last wrote a snapshot, in seconds since 1970.
    pub snapshot_timestamp_seconds: SecondsGauge,
    /// Bytes that are free on the disk of the log's directory.
    pub disk_free_bytes: Gauge,
}

impl Metrics {
    /// All of them, at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("ripplemem");
        let step_seconds = Histogram::new(exponential_buckets(0.001, 2.0, 14));
        let snapshot_seconds = Histogram::new(exponential_buckets(0.01, 2.0, 14));
        let question_seconds = Histogram::new(exponential_buckets(0.001, 2.0, 14));
        let tokens = || Histogram::new(exponential_buckets(64.0, 2.0, 12));
        let seconds = || Histogram::new(exponential_buckets(0.1, 2.0, 11));
        macro_rules! named {
            ($name:literal, $help:literal, $metric:expr) => {{
                let metric = $metric;
                registry.register($name, $help, metric.clone());
                metric
            }};
        }
        Self {
            events: named!("turn_events", "Events read from the turns topic", Counter::default()),
            rejects: named!("rejects", "Events rejected to the dead-letter topic", Counter::default()),
            not_kept: named!(
                "turns_not_kept",
                "Turns that were not kept because they had been deleted before",
                Counter::default()
            ),
            stale: named!(
                "records_stale",
                "Records that changed nothing because a newer version or a deletion stands",
                Counter::default()
            ),
            dead_letters: named!("dead_letters", "Dead letters written", Counter::default()),
            forwards: named!("forwards", "Events forwarded to their bank's partition", Counter::default()),
            firings: named!("window_firings", "Windows that closed and were extracted", Counter::default()),
            units: named!("units_written", "Units written to the memory topic", Counter::default()),
            commits: named!("transactions", "Transactions committed", Counter::default()),
            aborts: named!("transaction_aborts", "Transactions aborted", Counter::default()),
            read_failures: named!(
                "read_failures",
                "Reads of a topic that failed because the cluster was unavailable",
                Counter::default()
            ),
            step_seconds: named!("step_seconds", "Duration of a step: read, extract, embed, commit", step_seconds),
            lag: named!("turns_lag", "Turns that are not extracted yet, by partition", Family::default()),
            watermark_seconds: named!(
                "watermark_timestamp_seconds",
                "Append time of the last extracted turn, in seconds since 1970",
                Family::default()
            ),
            owned: named!("owned_partitions", "Partitions assigned to this instance for extraction", Gauge::default()),
            takeover_seconds: named!(
                "takeover_seconds",
                "Duration of the last takeover of a partition",
                SecondsGauge::default()
            ),
            recovery_seconds: named!(
                "recovery_seconds",
                "Time from the start until the memory reflected its log",
                SecondsGauge::default()
            ),
            records: named!("memory_records", "Records loaded from the memory topic", Counter::default()),
            quarantined_banks: named!(
                "quarantined_banks",
                "Banks that are refused because a record of theirs cannot be read, by shard",
                Family::default()
            ),
            banks_awake: named!("banks_awake", "Banks in memory", Gauge::default()),
            banks_asleep: named!("banks_asleep", "Banks that sleep", Gauge::default()),
            banks_awake_bytes: named!("banks_awake_bytes", "About the bytes of the banks in memory", Gauge::default()),
            bank_wakes: named!("bank_wakes", "Banks that woke", Counter::default()),
            bank_wake_seconds: named!(
                "bank_wake_seconds",
                "Seconds that it took to read the banks that woke",
                Counter::default()
            ),
            shards_held: named!("shard_held", "Whether this instance holds the shard, by partition", Family::default()),
            shards_loading: named!(
                "shard_loading",
                "Whether the shard has not reached the end of its log yet, by partition",
                Family::default()
            ),
            shards_behind: named!(
                "shard_behind_offsets",
                "Offsets of the memory topic that the shard has not read yet, by partition",
                Family::default()
            ),
            shards_waiting: named!(
                "shard_waiting",
                "Whether the shard waits before a record that only a newer build reads, by partition",
                Family::default()
            ),
            shard_rebuilds: named!(
                "shard_rebuilds",
                "How often the shard was made again after a panic, by partition",
                Family::default()
            ),
            read_by_model: named!(
                "windows_read_by_model",
                "Windows that the language model has read",
                Counter::default()
            ),
            refused_by_model: named!(
                "windows_refused_by_model",
                "Windows whose reading by the language model could not be used",
                Counter::default()
            ),
            turns_put: named!("turns_put", "Turns, edits and deletions put over HTTP", Counter::default()),
            requests_refused: named!(
                "requests_refused",
                "Requests over HTTP that were refused, by status",
                Family::default()
            ),
            questions: named!("questions", "Questions by outcome", Family::default()),
            questions_unsupported: named!(
                "questions_unsupported",
                "Answered questions that nothing supports",
                Counter::default()
            ),
            answer_tokens: named!("answer_tokens", "Tokens of an answer's context, estimated", tokens()),
            question_seconds: named!(
                "question_seconds",
                "Time from a question's arrival to its answer",
                question_seconds
            ),
            questions_waiting: named!(
                "questions_waiting",
                "Questions that wait, by what they wait for",
                Family::default()
            ),
            questions_in_progress: named!(
                "questions_in_progress",
                "Questions that are being answered",
                Gauge::default()
            ),
            question_panics: named!("question_panics", "Questions whose answer panicked", Counter::default()),
            question_embeddings: named!(
                "question_embeddings",
                "Texts that were embedded for questions",
                Counter::default()
            ),
            texts_shortened: named!(
                "texts_shortened",
                "Texts that were embedded in a shorter form, because the model did not take them whole",
                Counter::default()
            ),
            llm_calls: named!(
                "llm_calls",
                "Requests that the language model answered, without cached responses",
                Family::default()
            ),
            llm_tokens: named!(
                "llm_tokens",
                "Tokens of prompts and completions, without cached responses",
                Family::default()
            ),
            llm_seconds: named!("llm_seconds", "Seconds that requests to the language model took", Family::default()),
            llm_window_tokens: named!("llm_window_tokens", "Language-model tokens of one window", tokens()),
            llm_window_seconds: named!("llm_window_seconds", "Language-model time of one window", seconds()),
            llm_question_tokens: named!(
                "llm_question_tokens",
                "Language-model tokens of one question's cues and plans",
                tokens()
            ),
            llm_question_seconds: named!(
                "llm_question_seconds",
                "Language-model time of one question's cues and plans",
                seconds()
            ),
            llm_windows_waiting: named!(
                "llm_windows_waiting",
                "Closed windows that wait for the language model, by partition",
                Family::default()
            ),
            source_events: named!(
                "source_events",
                "Turns, edits and deletions that live sources committed",
                Family::default()
            ),
            source_rejects: named!(
                "source_rejects",
                "Records of live sources that became dead letters",
                Family::default()
            ),
            source_skips: named!(
                "source_skips",
                "What live sources found that is not a turn, by the reason",
                Family::default()
            ),
            source_interruptions: named!(
                "source_interruptions",
                "Times that a live source was opened again after a failure",
                Family::default()
            ),
            edges: named!("edge_changes", "Changes written to the edges topic", Counter::default()),
            replayed_rows: named!("replayed_rows", "Records written as Parquet rows", Counter::default()),
            snapshots: named!("snapshots", "Snapshots written", Counter::default()),
            snapshot_failures: named!("snapshot_failures", "Snapshots that failed to be written", Counter::default()),
            snapshot_seconds: named!("snapshot_seconds", "Time to write a snapshot", snapshot_seconds),
            snapshot_timestamp_seconds: named!(
                "snapshot_timestamp_seconds",
                "When this process last wrote a snapshot, in seconds since 1970",
                SecondsGauge::default()
            ),
            disk_free_bytes: named!(
                "disk_free_bytes",
                "Bytes that are free on the disk of the log's directory",
                Gauge::default()
            ),
            replayed_files: named!("replayed_files", "Parquet files finished", Counter::default()),
            registry,
        }
    }

    /// The text form (`/metrics`).
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_their_units_and_counters_end_in_total() {
        let metrics = Metrics::new();
        metrics.questions.get_or_create(&OutcomeLabel { outcome: "answered" }).inc();
        metrics.lag.get_or_create(&PartitionLabel { partition: 3 }).set(7);
        let text = metrics.text();
        for expected in [
            "ripplemem_questions_total{outcome=\"answered\"} 1",
            "ripplemem_turns_lag{partition=\"3\"} 7",
            "# TYPE ripplemem_transactions counter",
            "ripplemem_recovery_seconds",
        ] {
            assert!(text.contains(expected), "{expected} is not in {text}");
        }
    }
}
