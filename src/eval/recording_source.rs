//! A source that records the turns that it passes to the memory.
//!
//! In: any source. Out: the same batches, and every turn and reject that passed through. Evidence is checked against
//! these turns, not against a second reading of the file. The batches are unchanged, unless the marks that close
//! windows should be left out.

use std::collections::BTreeMap;

use super::delivery::RequiredText;
use sources::{SourceBatch, SourceError, SourceProgress, TurnSource};
use types::model::{Bank, DeadLetter, Turn, TurnEvent};

/// The turns and rejects of a source.
#[derive(Debug, Default)]
pub(crate) struct BenchmarkTurns {
    /// The turns of each bank, by id.
    pub(crate) turns: BTreeMap<Bank, BTreeMap<String, BenchmarkTurn>>,
    /// The rejects.
    pub(crate) rejects: Vec<DeadLetter>,
}

/// One turn that the memory was given.
#[derive(Debug, Clone)]
pub(crate) struct BenchmarkTurn {
    /// Who said it.
    pub(crate) speaker: String,
    /// Its text, followed by its captions.
    pub(crate) text: String,
    /// The text that a context must contain to count as delivering this turn.
    pub(crate) required: RequiredText,
}

impl BenchmarkTurns {
    /// A turn of a bank.
    pub(crate) fn turn(&self, bank: &Bank, id: &str) -> Option<&BenchmarkTurn> {
        self.turns.get(bank)?.get(id)
    }

    /// The number of turns.
    pub(crate) fn count(&self) -> u64 {
        self.turns.values().map(|t| t.len() as u64).sum()
    }

    fn add(&mut self, turn: &Turn) {
        let captions: Vec<&str> = turn.captions().collect();
        let text = std::iter::once(turn.text.trim()).chain(captions.iter().copied()).collect::<Vec<_>>().join(" ");
        let required = RequiredText::of(&turn.text, &captions);
        let recorded = BenchmarkTurn { speaker: turn.speaker.clone(), text, required };
        self.turns.entry(turn.bank.clone()).or_default().insert(turn.turn.clone(), recorded);
    }
}

/// A source whose turns are recorded.
pub(crate) struct RecordingSource<'s> {
    inner: &'s mut dyn TurnSource,
    recorded: &'s mut BenchmarkTurns,
    close_windows: bool,
}

impl<'s> RecordingSource<'s> {
    /// Records a source. Without `close_windows`, the marks that end sessions and close windows
    /// are left out, as in a dialogue that is still going on.
    pub(crate) fn new(inner: &'s mut dyn TurnSource, recorded: &'s mut BenchmarkTurns, close_windows: bool) -> Self {
        Self { inner, recorded, close_windows }
    }
}

impl TurnSource for RecordingSource<'_> {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        loop {
            let Some(mut batch) = self.inner.next(limit)? else { return Ok(None) };
            for event in &batch.events {
                if let TurnEvent::Turn(turn) = event {
                    self.recorded.add(turn);
                }
            }
            self.recorded.rejects.extend(batch.rejects.iter().cloned());
            if !self.close_windows {
                batch.events.retain(|e| !matches!(e, TurnEvent::SessionEnd(_) | TurnEvent::Idle(_)));
            }
            // A source never returns an empty batch.
            if !(batch.events.is_empty() && batch.rejects.is_empty()) {
                return Ok(Some(batch));
            }
        }
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn progress(&self) -> SourceProgress {
        self.inner.progress()
    }

    fn notice(&self) -> Option<String> {
        self.inner.notice()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Turns with these ids, all in one bank.
    pub(crate) fn recorded(bank: &str, ids: &[&str]) -> BenchmarkTurns {
        let mut recorded = BenchmarkTurns::default();
        let turn =
            BenchmarkTurn { speaker: "Ada".into(), text: "said".into(), required: RequiredText::of("said", &[]) };
        let turns = ids.iter().map(|id| ((*id).to_owned(), turn.clone())).collect();
        recorded.turns.insert(Bank::parse(bank).unwrap(), turns);
        recorded
    }
}
