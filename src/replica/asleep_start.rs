//! A start from a snapshot at which banks stay asleep: only the names of their turns and units are read.
//!
//! In: a log in a directory, its newest snapshot. Out: what the snapshot holds of the banks that are awake from the
//! start: those of which the log has more, those with a record that cannot be read, and those with a window that is to
//! be extracted again. Of the others, names.

use std::collections::BTreeSet;

use logs::Log;
use snapshots::{LogSnapshots, RestoredSnapshot};
use types::{
    config::{LLM, Pipeline},
    model::{Bank, IN_PART, MemoryKey},
};

use super::{PipelineError, log_events};

/// The newest snapshot of a partition, with the names alone of the banks that stay asleep; `None` if all must be
/// loaded: without a snapshot, if the settings of the edges have changed, and with a language model that extracts, which
/// may not have read all windows yet.
pub(super) fn newest_asleep(
    pipeline: &Pipeline,
    log: &dyn Log,
    snapshots: &LogSnapshots,
    partition: u32,
    window_turns: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Option<RestoredSnapshot>, PipelineError> {
    if pipeline.extract.extractor == LLM {
        return Ok(None);
    }
    let warn = &mut |problem: &str| log_events::snapshot_not_restored(partition, problem);
    let Some(mut restored) = snapshots.newest_names(partition, warn, progress)? else { return Ok(None) };
    let Some(keys) = log.live_keys(partition)?.filter(|_| restored.same_settings) else { return Ok(None) };
    let next = restored.manifest.reached.iter().find(|at| at.partition == partition).map_or(0, |at| at.next_offset);
    let mut awake: BTreeSet<Bank> = restored.manifest.unreadable.iter().map(|of| of.key.bank.clone()).collect();
    let mut live = BTreeSet::new();
    for (key, offset) in keys {
        // A key that cannot be read makes its partition wait; the start says so.
        let Ok(key) = MemoryKey::from_bytes(&key) else { return Ok(None) };
        if offset >= next {
            awake.insert(key.bank.clone());
        }
        live.insert(key);
    }
    let is_left = |extractor: &str| extractor.ends_with(IN_PART);
    let changed = restored.records.iter().filter(|of| is_left(&of.extractor) || !live.contains(&of.key));
    awake.extend(changed.map(|of| of.key.bank.clone()));
    if !awake.is_empty() {
        let whole = snapshots.banks_of(partition, &restored.manifest, &awake, window_turns)?;
        restored.records.retain(|record| !awake.contains(&record.key.bank));
        restored.records.extend(whole.records);
        restored.choices = whole.choices;
    }
    for record in &restored.records {
        for (turn, version) in record.names.iter().flat_map(|names| &names.deleted) {
            log.deletions().note(&record.key.bank, &log.deleted_form(turn)?, *version);
        }
    }
    Ok(Some(restored))
}
