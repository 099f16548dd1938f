//! Where the snapshots of a memory are kept, and what they depend on.
//!
//! In: a pipeline, and the generation of its memory. Out: its snapshots, those of earlier generations deleted, and the
//! settings of its edges.

use std::collections::BTreeMap;

use logs::memory_name;
use snapshots::{LogSnapshots, SnapshotError};
use types::{
    config::{LogKind, Pipeline},
    model::SCHEMA_VERSION,
};

/// The snapshots of a generation of the memory: those of the first are in the configured place,
/// those of later generations in directories below it.
pub fn snapshots(pipeline: &Pipeline, partitions: u32, generation: u32) -> Result<LogSnapshots, SnapshotError> {
    let name = memory_name(generation);
    let mut log = match pipeline.log.kind {
        LogKind::Embedded => "an embedded log".to_owned(),
        LogKind::Kafka => format!("the topic {}.{name}", pipeline.log.kafka.prefix),
    };
    let mut place = pipeline.snapshot.directory.clone();
    if generation > 1 {
        place = format!("{}/{name}", place.trim_end_matches('/'));
        if pipeline.log.kind == LogKind::Embedded {
            log = format!("{name} of an embedded log");
        }
    }
    let settings = serde_json::json!([SCHEMA_VERSION, edge_settings(pipeline)]);
    let settings = blake3::hash(settings.to_string().as_bytes()).to_hex().to_string();
    LogSnapshots::open(&place, &log, partitions, settings)
}

/// Deletes the snapshots of the generations before this one: they hold turns that are deleted later.
pub fn delete_old_snapshots(pipeline: &Pipeline, partitions: u32, generation: u32) -> Result<(), SnapshotError> {
    if pipeline.snapshot.directory.is_empty() {
        return Ok(());
    }
    (1..generation).try_for_each(|old| snapshots(pipeline, partitions, old)?.delete())
}

/// The settings that a bank's edges depend on, besides its units.
pub fn edge_settings(pipeline: &Pipeline) -> BTreeMap<String, f64> {
    let m = &pipeline.memory;
    let named = [
        ("semantic_edges", m.semantic_edges as f64),
        ("structural_edges", m.structural_edges as f64),
        ("cue_neighbours", m.cue_neighbours as f64),
        ("structural_threshold", m.structural_threshold),
        ("participant_weight", m.participant_weight),
        ("location_weight", m.location_weight),
        ("time_weight", m.time_weight),
        ("time_decay_days", m.time_decay_days),
        ("semantic_threshold", pipeline.model().semantic_threshold),
    ];
    named.map(|(name, value)| (name.to_owned(), value)).into()
}
