//! The results of the bench, and their table.
//!
//! In: what each step measured. Out: figures with their ratios, as JSON or as a table. A figure that this system does
//! not report is left out.

use serde::Serialize;

use super::bench_step::{EmptyMeasurement, IngestMeasurement, RestoreMeasurement};

/// What was measured.
#[derive(Serialize)]
pub(super) struct BenchSubject {
    /// The source.
    pub source: String,
    /// The model.
    pub model: String,
    /// Texts that the model reads at once.
    pub embed_threads: usize,
}

/// All figures.
#[derive(Serialize)]
pub(super) struct BenchFigures {
    #[serde(flatten)]
    subject: BenchSubject,
    turns: u64,
    banks: u64,
    units: u64,
    texts: u64,
    ingest: IngestFigures,
    memory: MemoryFigures,
    disk: DiskFigures,
    restore: RestoreFigures,
    ask: AskFigures,
}

#[derive(Serialize)]
struct IngestFigures {
    seconds: f64,
    turns_per_second: f64,
    texts_per_second: f64,
    embedder_alone_texts_per_second: f64,
    /// The time of the whole path, divided by that of the embedder alone for the same texts.
    over_embedder_alone: f64,
}

/// Resident bytes of a process.
#[derive(Serialize)]
struct MemoryFigures {
    /// With the model and one turn.
    empty_bytes: Option<u64>,
    /// Above the memory with the model and one turn, at the peak of the ingestion.
    peak: SpaceFigures,
    /// Above the memory with the model and one turn, after the ingestion.
    ingested: SpaceFigures,
    /// Above the memory with the model and one turn, in a new process that has read the snapshot and answered the
    /// questions.
    restored: SpaceFigures,
}

#[derive(Serialize)]
struct DiskFigures {
    /// The log, with its caches.
    log: SpaceFigures,
    snapshot: SpaceFigures,
}

/// Space in memory or on disk; `None` where the system does not report it.
#[derive(Serialize)]
struct SpaceFigures {
    bytes: Option<u64>,
    bytes_per_unit: Option<f64>,
    bytes_per_turn: Option<f64>,
}

#[derive(Serialize)]
struct RestoreFigures {
    seconds: f64,
    units_per_second: f64,
}

#[derive(Serialize)]
struct AskFigures {
    questions: u64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    without_embedding_p50_ms: Option<f64>,
    without_embedding_p99_ms: Option<f64>,
    /// The median time of a question, divided by that of embedding its texts.
    over_embedding: Option<f64>,
}

impl BenchFigures {
    /// The figures of all steps.
    pub(super) fn of(
        subject: BenchSubject,
        empty: &EmptyMeasurement,
        ingested: IngestMeasurement,
        restored: RestoreMeasurement,
    ) -> Self {
        let IngestMeasurement { turns, banks, units, texts, seconds, alone_texts_per_second, .. } = ingested;
        let room = |bytes: Option<u64>| SpaceFigures {
            bytes,
            bytes_per_unit: bytes.map(|bytes| bytes as f64 / units.max(1) as f64),
            bytes_per_turn: bytes.map(|bytes| bytes as f64 / turns.max(1) as f64),
        };
        let above = |bytes: Option<u64>, empty: Option<u64>| {
            room(bytes.zip(empty).map(|(bytes, empty)| bytes.saturating_sub(empty)))
        };
        let seconds = seconds.max(f64::MIN_POSITIVE);
        let texts_per_second = texts as f64 / seconds;
        let embedding: Vec<f64> =
            restored.asked_ms.iter().zip(&restored.without_embedding_ms).map(|(all, rest)| all - rest).collect();
        let p50 = percentile(&restored.asked_ms, 50);
        Self {
            subject,
            turns,
            banks,
            units,
            texts,
            ingest: IngestFigures {
                seconds,
                turns_per_second: turns as f64 / seconds,
                texts_per_second,
                embedder_alone_texts_per_second: alone_texts_per_second,
                over_embedder_alone: alone_texts_per_second / texts_per_second.max(f64::MIN_POSITIVE),
            },
            memory: MemoryFigures {
                empty_bytes: empty.resident_bytes,
                peak: above(ingested.peak_bytes, ingested.empty_bytes),
                ingested: above(ingested.settled_bytes, ingested.empty_bytes),
                restored: above(restored.resident_bytes, empty.resident_bytes),
            },
            disk: DiskFigures { log: room(Some(ingested.log_bytes)), snapshot: room(Some(ingested.snapshot_bytes)) },
            restore: RestoreFigures {
                seconds: restored.seconds,
                units_per_second: restored.units as f64 / restored.seconds.max(f64::MIN_POSITIVE),
            },
            ask: AskFigures {
                questions: restored.asked_ms.len() as u64,
                p50_ms: p50,
                p99_ms: percentile(&restored.asked_ms, 99),
                without_embedding_p50_ms: percentile(&restored.without_embedding_ms, 50),
                without_embedding_p99_ms: percentile(&restored.without_embedding_ms, 99),
                over_embedding: percentile(&embedding, 50).filter(|ms| *ms > 0.0).and_then(|ms| Some(p50? / ms)),
            },
        }
    }

    /// The figures as a table.
    pub(super) fn table(&self) -> String {
        let Self { subject, ingest, memory, disk, restore, ask, .. } = self;
        let mut rows: Vec<[String; 2]> = vec![
            ["measured".to_owned(), subject.source.clone()],
            [
                "turns".to_owned(),
                format!("{} in {} banks, {} units, {} texts", self.turns, self.banks, self.units, self.texts),
            ],
            ["model".to_owned(), format!("{}, {} threads", subject.model, subject.embed_threads)],
            [
                "ingest".to_owned(),
                format!("{:.1} turns/s, {:.1} texts/s", ingest.turns_per_second, ingest.texts_per_second),
            ],
            [
                "  over the embedder alone".to_owned(),
                format!(
                    "{:.2} times its time ({:.1} texts/s)",
                    ingest.over_embedder_alone, ingest.embedder_alone_texts_per_second
                ),
            ],
            ["memory of an empty process".to_owned(), memory.empty_bytes.map_or_else(not_told, megabytes)],
            ["  above it, at the peak".to_owned(), memory.peak.text()],
            ["  above it, after ingest".to_owned(), memory.ingested.text()],
            ["  above it, restored".to_owned(), memory.restored.text()],
            ["disk: log and caches".to_owned(), disk.log.text()],
            ["  snapshot".to_owned(), disk.snapshot.text()],
            ["restore".to_owned(), format!("{:.2} s, {:.0} units/s", restore.seconds, restore.units_per_second)],
        ];
        if let (Some(p50), Some(p99)) = (ask.p50_ms, ask.p99_ms) {
            rows.push(["ask".to_owned(), format!("p50 {p50:.2} ms, p99 {p99:.2} ms, {} questions", ask.questions)]);
        }
        if let (Some(p50), Some(p99)) = (ask.without_embedding_p50_ms, ask.without_embedding_p99_ms) {
            rows.push(["  without its embeddings".to_owned(), format!("p50 {p50:.2} ms, p99 {p99:.2} ms")]);
        }
        if let Some(ratio) = ask.over_embedding {
            rows.push(["  over its embeddings".to_owned(), format!("{ratio:.2} times their time")]);
        }
        rows.iter().map(|[name, figure]| format!("{name:<28}{figure}\n")).collect()
    }
}

impl SpaceFigures {
    fn text(&self) -> String {
        match (self.bytes, self.bytes_per_unit, self.bytes_per_turn) {
            (Some(bytes), Some(unit), Some(turn)) => {
                format!("{}, {unit:.0} bytes a unit, {turn:.0} a turn", megabytes(bytes))
            }
            _ => not_told(),
        }
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn not_told() -> String {
    "not reported by this system".to_owned()
}

/// The percentile at `hundredths`; `None` if there are no values.
pub(super) fn percentile(values: &[f64], hundredths: usize) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() * hundredths / 100).copied()
}
