//! A source that is listened to on its way into the memory.
//!
//! In: any source. Out: the same batches, unchanged, and a list of every turn and every
//! reject that passed, so that evidence can be checked against what the memory was given
//! and not against another reading of the file.

use std::collections::BTreeMap;

use super::score::Wanted;
use crate::{
    model::{Bank, DeadLetter, Turn, TurnEvent},
    source::{Batch, Progress, Source, SourceError},
};

/// What a source gave.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// The turns of each bank, by id.
    pub(crate) turns: BTreeMap<Bank, BTreeMap<String, HeardTurn>>,
    /// What was rejected.
    pub(crate) rejects: Vec<DeadLetter>,
}

/// One turn that was given to the memory.
#[derive(Debug, Clone)]
pub(crate) struct HeardTurn {
    /// Who said it.
    pub(crate) speaker: String,
    /// What was said, captions behind it.
    pub(crate) text: String,
    /// What of it a context must hold.
    pub(crate) wanted: Wanted,
}

impl Heard {
    /// A turn of a bank.
    pub(crate) fn turn(&self, bank: &Bank, id: &str) -> Option<&HeardTurn> {
        self.turns.get(bank)?.get(id)
    }

    /// How many turns there are.
    pub(crate) fn count(&self) -> u64 {
        self.turns.values().map(|t| t.len() as u64).sum()
    }

    fn take(&mut self, turn: &Turn) {
        let captions: Vec<&str> = turn.captions().collect();
        let text = std::iter::once(turn.text.trim()).chain(captions.iter().copied()).collect::<Vec<_>>().join(" ");
        let heard = HeardTurn { speaker: turn.speaker.clone(), text, wanted: Wanted::of(&turn.text, &captions) };
        self.turns.entry(turn.bank.clone()).or_default().insert(turn.turn.clone(), heard);
    }
}

/// A source with a listener.
pub(crate) struct Listening<'s> {
    inner: &'s mut dyn Source,
    heard: &'s mut Heard,
    /// False: marks that close windows are held back.
    closing: bool,
}

impl<'s> Listening<'s> {
    /// Listens to a source. Without `closing`, the marks that end sessions and close
    /// windows are left out, as in a dialogue that still goes on.
    pub(crate) fn to(inner: &'s mut dyn Source, heard: &'s mut Heard, closing: bool) -> Self {
        Self { inner, heard, closing }
    }
}

impl Source for Listening<'_> {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>, SourceError> {
        loop {
            let Some(mut batch) = self.inner.next(limit)? else { return Ok(None) };
            for event in &batch.events {
                if let TurnEvent::Turn(turn) = event {
                    self.heard.take(turn);
                }
            }
            self.heard.rejects.extend(batch.rejects.iter().cloned());
            if !self.closing {
                batch.events.retain(|e| !matches!(e, TurnEvent::SessionEnd(_) | TurnEvent::Idle(_)));
            }
            // A batch is never empty.
            if !(batch.events.is_empty() && batch.rejects.is_empty()) {
                return Ok(Some(batch));
            }
        }
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn progress(&self) -> Progress {
        self.inner.progress()
    }

    fn notice(&self) -> Option<String> {
        self.inner.notice()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Turns of these ids, given to one bank.
    pub(crate) fn heard(bank: &str, ids: &[&str]) -> Heard {
        let mut heard = Heard::default();
        let turn = HeardTurn { speaker: "Ada".into(), text: "said".into(), wanted: Wanted::of("said", &[]) };
        let turns = ids.iter().map(|id| ((*id).to_owned(), turn.clone())).collect();
        heard.turns.insert(Bank::parse(bank).unwrap(), turns);
        heard
    }
}
