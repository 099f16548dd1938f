//! The windows of banks that leave memory, and come back with the next event of their bank.
//!
//! In: banks that fell asleep, and the live records of a bank, read from the log by its key. Out: their windows as they
//! were. A bank falls asleep only while the stage has nothing to do for it, so its records state all that was done.

use std::ops::ControlFlow;

use logs::Log;
use models::llm::extractor;
use types::{
    config::{LLM, Pipeline},
    model::{Bank, MemoryKey, WindowId},
};

use super::{
    PipelineError,
    extraction_stage::{ExtractionStage, StageRecordFields},
    live_turns::{LiveTurns, RecordTurns},
    model_worker_pool::ExtractorSet,
};

/// How many banks are woken before other work.
const WOKEN_AT_ONCE: usize = 16;

/// Moves banks into the memory that this process asks, and out of it.
pub trait BankMoves {
    /// Makes sure that a bank is in memory. It stays there as long as it is busy.
    ///
    /// # Errors
    /// [`PipelineError`] if its records cannot be read; it then still sleeps.
    fn wake(&self, bank: &Bank) -> Result<(), PipelineError>;
    /// Whether a bank sleeps.
    fn is_asleep(&self, bank: &Bank) -> bool;
    /// Puts banks to sleep that are unused, and not busy by the given function; returns them.
    fn sleep_unused(&self, is_busy: &dyn Fn(&Bank) -> bool) -> Vec<Bank>;
}

/// Adds the live records of a bank, which a log in a directory finds by their key.
///
/// # Errors
/// [`PipelineError`] of the log. A record that cannot be read is noted: its turns are found elsewhere.
pub fn read_bank(live: &mut LiveTurns, log: &dyn Log, partition: u32, bank: &Bank) -> Result<(), PipelineError> {
    log.live_records(partition, &MemoryKey::prefix(bank), &mut |_, _| true, &mut |record| {
        if let Ok(key) = MemoryKey::from_bytes(&record.key) {
            match serde_json::from_slice::<StageRecordFields>(record.value.as_deref().unwrap_or_default()) {
                Ok(read) if read.bank == key.bank => live.apply(&key, Some((read.turns, &read.extractor))),
                _ => live.take_unreadable(&key),
            }
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}

impl ExtractionStage {
    /// Evicts responses about windows that changed while another process owned the partition.
    pub(super) fn evict_responses(&self, extractors: &ExtractorSet) -> Result<(), PipelineError> {
        let windows = self.windower.banks().flat_map(|bank| self.windower.closed_windows(bank));
        if extractors.model.is_some() {
            windows.into_iter().try_for_each(|w| extractors.evict_window(&w))
        } else {
            Ok(())
        }
    }

    /// Queues the closed windows of a bank for the model again, past the cache, and returns their number; `None` for a
    /// bank without a turn in this partition.
    pub fn reextract(&mut self, bank: &Bank) -> Option<usize> {
        if !self.windower.has_turns(bank) {
            return None;
        }
        let mut windows = self.windower.closed_windows(bank);
        windows.retain(extractor::has_turns);
        for window in &windows {
            self.waiting.add(bank, &window.id, true);
        }
        Some(windows.len())
    }

    /// Whether the windows of a bank are here. If not, it waits for [`Self::wake_banks`].
    pub(super) fn has_windows(&mut self, bank: &Bank) -> bool {
        let dropped = &mut self.dropped;
        if !dropped.may_sleep || self.windower.knows(bank) || dropped.without_records.contains(bank) {
            return true;
        }
        dropped.waited_for.insert(bank.clone());
        false
    }

    /// Wakes some of the banks whose events wait for that; returns whether there was one.
    pub(super) fn wake_banks(
        &mut self,
        pipeline: &Pipeline,
        log: &dyn Log,
        moves: &dyn BankMoves,
    ) -> Result<bool, PipelineError> {
        let mut any = false;
        for _ in 0..WOKEN_AT_ONCE {
            let Some(bank) = self.dropped.waited_for.first().cloned() else { break };
            self.wake_bank(pipeline, log, moves, &bank)?;
            self.dropped.waited_for.remove(&bank);
            any = true;
        }
        Ok(any)
    }

    /// Brings a bank and its windows into memory.
    pub(super) fn wake_bank(
        &mut self,
        pipeline: &Pipeline,
        log: &dyn Log,
        moves: &dyn BankMoves,
        bank: &Bank,
    ) -> Result<(), PipelineError> {
        moves.wake(bank)?;
        if self.windower.knows(bank) {
            return Ok(());
        }
        let mut live = LiveTurns::default();
        read_bank(&mut live, log, self.partition, bank)?;
        live.recover(self.partition, pipeline, log, &self.progress())?;
        self.windower.restore_bank(bank, live.records().map(|(key, of)| (key, of.turns.as_slice())));
        self.note_records(log, &live)?;
        if !self.windower.knows(bank) {
            self.dropped.without_records.insert(bank.clone());
        }
        Ok(())
    }

    /// Notes what restored records state besides their turns: deletions, and what is left to do.
    pub(super) fn note_records(&mut self, log: &dyn Log, live: &LiveTurns) -> Result<(), PipelineError> {
        for (key, RecordTurns { turns, provisional, in_part: lacks_units }) in live.records() {
            for hole in turns.iter().filter(|turn| turn.deleted) {
                let id = log.deleted_form(&hole.turn.turn)?;
                log.deletions().note(&key.bank, &id, hole.turn.version);
            }
            if *lacks_units {
                self.in_part.insert((key.bank.clone(), key.window.clone()));
            }
            if *provisional && self.extract.extractor == LLM {
                self.waiting.add(&key.bank, &key.window, false);
            }
            if key.part > 0 {
                let count = self.parts.entry(MemoryKey { part: 0, ..key.clone() }).or_default();
                *count = (*count).max(key.part + 1);
            }
        }
        Ok(())
    }

    /// From now on, windows are dropped with the banks that sleep; those of banks that sleep already are dropped now.
    pub(super) fn sleep_with(&mut self, moves: &dyn BankMoves) -> Result<(), PipelineError> {
        self.dropped.may_sleep = true;
        let asleep: Vec<Bank> = self.windower.banks().filter(|bank| moves.is_asleep(bank)).cloned().collect();
        for bank in asleep {
            // A bank with something to do is woken instead.
            if self.is_busy(&bank) || !self.windower.drop_bank(&bank) {
                moves.wake(&bank)?;
            }
        }
        Ok(())
    }

    /// Whether there is something to do for a bank, so that it must not sleep.
    pub(super) fn is_busy(&self, bank: &Bank) -> bool {
        let is_of = |of: &(Bank, WindowId)| of.0 == *bank;
        self.windower.has_changes(bank)
            || self.is_at_work(bank)
            || self.pending.holds(bank)
            || self.waiting.holds(bank)
            || self.in_part.iter().any(is_of)
            || self.results.iter().any(|result| result.window.bank == *bank)
    }

    /// Drops the windows of a bank that sleeps now.
    pub(super) fn drop_windows(&mut self, bank: &Bank) {
        self.windower.drop_bank(bank);
    }
}
