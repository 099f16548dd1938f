//! Every metric's name and meaning, in one place.
//!
//! In: what happened. Out: the text that Prometheus reads. Counters end in `_total`, units
//! stand in the names, and a bank is never a label: it would tell who uses the service.

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

type Seconds = Gauge<f64, AtomicU64>;

/// A partition of the turns topic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfPartition {
    /// Its number.
    pub partition: u32,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Outcome {
    /// `answered`, or the code of the refusal.
    pub outcome: &'static str,
}

/// What a language model was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Purpose {
    /// `extract`, `cues`, `plan`, `answer` or `judge`.
    pub purpose: &'static str,
}

/// The metrics of a running service.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// Events read from the turns topic.
    pub events: Counter,
    /// Events that went to the dead letters.
    pub rejects: Counter,
    /// Events that were sent on to their bank's partition.
    pub forwards: Counter,
    /// Windows that fired as final.
    pub firings: Counter,
    /// Units written.
    pub units: Counter,
    /// Transactions committed.
    pub commits: Counter,
    /// Transactions given up.
    pub aborts: Counter,
    /// Reads of a topic that failed because the cluster was away.
    pub read_failures: Counter,
    /// Seconds of a step: read, extract, embed, commit.
    pub step_seconds: Histogram,
    /// Turns that are not extracted yet.
    pub lag: Family<OfPartition, Gauge>,
    /// Append time of the last turn that is extracted, in seconds since 1970.
    pub watermark_seconds: Family<OfPartition, Seconds>,
    /// Partitions that are ours.
    pub owned: Gauge,
    /// Seconds that the last taking over of a partition took.
    pub takeover_seconds: Seconds,
    /// Seconds from the start until the memory reflected its log.
    pub recovery_seconds: Seconds,
    /// Records that the memory took from its log.
    pub records: Counter,
    /// Questions by what became of them.
    pub questions: Family<Outcome, Counter>,
    /// Seconds from a question's arrival to its answer.
    pub question_seconds: Histogram,
    /// Answers of the language model that were paid for.
    pub llm_calls: Family<Purpose, Counter>,
    /// Tokens of their prompts and completions.
    pub llm_tokens: Family<Purpose, Counter>,
    /// Seconds that they took.
    pub llm_seconds: Family<Purpose, Counter<f64, AtomicU64>>,
    /// Tokens that the language model took for a window.
    pub llm_window_tokens: Histogram,
    /// Seconds that it took for a window.
    pub llm_window_seconds: Histogram,
    /// Tokens that it took for a question's cues and plans.
    pub llm_question_tokens: Histogram,
    /// Seconds that it took for a question's cues and plans.
    pub llm_question_seconds: Histogram,
    /// Closed windows that wait for it.
    pub llm_windows_waiting: Family<OfPartition, Gauge>,
    /// Changes written to the edges topic.
    pub edges: Counter,
    /// Records taken on their way to Parquet.
    pub replayed_rows: Counter,
    /// Files of Parquet that were finished.
    pub replayed_files: Counter,
    /// Snapshots written.
    pub snapshots: Counter,
    /// Snapshots that could not be written.
    pub snapshot_failures: Counter,
    /// Seconds that the writing of a snapshot took, while everything else went on.
    pub snapshot_seconds: Histogram,
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
            rejects: named!("rejects", "Events that went to the dead letters", Counter::default()),
            forwards: named!("forwards", "Events sent on to the partition of their bank", Counter::default()),
            firings: named!("window_firings", "Windows that fired as final", Counter::default()),
            units: named!("units_written", "Units written to the memory topic", Counter::default()),
            commits: named!("transactions", "Transactions committed", Counter::default()),
            aborts: named!("transaction_aborts", "Transactions given up", Counter::default()),
            read_failures: named!("read_failures", "Failed reads of a topic", Counter::default()),
            step_seconds: named!("step_seconds", "Read, extract, embed and commit", step_seconds),
            lag: named!("turns_lag", "Turns that are not extracted yet", Family::default()),
            watermark_seconds: named!(
                "watermark_timestamp_seconds",
                "Append time of the last turn that is extracted",
                Family::default()
            ),
            owned: named!("owned_partitions", "Partitions that this instance extracts", Gauge::default()),
            takeover_seconds: named!("takeover_seconds", "Taking over of the last partition", Seconds::default()),
            recovery_seconds: named!(
                "recovery_seconds",
                "From the start until the memory reflected its log",
                Seconds::default()
            ),
            records: named!("memory_records", "Records that the memory took from its log", Counter::default()),
            questions: named!("questions", "Questions by outcome", Family::default()),
            question_seconds: named!("question_seconds", "From a question's arrival to its answer", question_seconds),
            llm_calls: named!("llm_calls", "Answers of the language model that were paid for", Family::default()),
            llm_tokens: named!("llm_tokens", "Tokens of prompts and completions", Family::default()),
            llm_seconds: named!("llm_seconds", "Seconds that the language model took", Family::default()),
            llm_window_tokens: named!("llm_window_tokens", "Tokens of the language model, of a window", tokens()),
            llm_window_seconds: named!("llm_window_seconds", "Seconds of the language model, of a window", seconds()),
            llm_question_tokens: named!("llm_question_tokens", "Tokens of the language model, of a question", tokens()),
            llm_question_seconds: named!(
                "llm_question_seconds",
                "Seconds of the language model, of a question",
                seconds()
            ),
            llm_windows_waiting: named!(
                "llm_windows_waiting",
                "Closed windows that wait for the language model",
                Family::default()
            ),
            edges: named!("edge_changes", "Changes written to the edges topic", Counter::default()),
            replayed_rows: named!("replayed_rows", "Records taken on their way to Parquet", Counter::default()),
            snapshots: named!("snapshots", "Snapshots written", Counter::default()),
            snapshot_failures: named!("snapshot_failures", "Snapshots that could not be written", Counter::default()),
            snapshot_seconds: named!("snapshot_seconds", "Writing of a snapshot", snapshot_seconds),
            replayed_files: named!("replayed_files", "Files of Parquet that were finished", Counter::default()),
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
        metrics.questions.get_or_create(&Outcome { outcome: "answered" }).inc();
        metrics.lag.get_or_create(&OfPartition { partition: 3 }).set(7);
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
