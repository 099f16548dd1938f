//! Erasing: words of deleted turns out of every place where this memory stores them.
//!
//! In: the log, the replica with its snapshots, the caches. Out: each of these without the words, and how much that
//! took. A pass covers every deletion that answers reflect, whoever wrote it, and every copy of a turn that was sent
//! again after its deletion. Emptied records keep their offsets, times and places in their sessions, so that a memory
//! made again from the turns log is the same. A pass that fails, or whose process dies, is done again as a whole.

use std::collections::{BTreeSet, HashMap};

use super::{Erased, Forgets, PipelineError, Replica, Settled, operation::DELETED_AT_ONCE, shared_words::SharedWords};
use crate::log::Topic;
use nouns::model::{Bank, DeadLetter, Turn, TurnEvent};

/// Records read at once.
const READ_AT_ONCE: usize = 1_024;
/// What stands for the words and the speaker of an emptied turn.
const EMPTIED: &str = "-";
/// The reason of an emptied dead letter.
const EMPTIED_REASON: &str = "emptied: it held words of a turn that was deleted";

/// Where words lie.
pub(in crate::pipeline) struct Places<'p> {
    pub(in crate::pipeline) forgets: Forgets<'p>,
    pub(in crate::pipeline) replica: &'p Replica,
    /// Removes evicted vectors and responses from the files of the caches.
    pub(in crate::pipeline) erase_caches: &'p mut dyn FnMut() -> Result<(), PipelineError>,
}

/// Deletions of a partition: the version of each turn up to which it is deleted, by the hash of bank and id.
type Deletions = HashMap<[u8; 16], u64>;

impl Places<'_> {
    /// Erases what was deleted, and notes it in the operations that are hidden.
    ///
    /// # Errors
    /// [`PipelineError`]; some places may hold words still, and the next pass covers all of them.
    pub(in crate::pipeline) fn erase(&mut self, settled: &Settled<'_>) -> Result<Erased, PipelineError> {
        let operations = self.forgets.settle(settled)?;
        let hidden = operations.into_iter().filter(|of| of.hidden_ms.is_some() && of.erased.is_none());
        let hidden: BTreeSet<String> = hidden.map(|of| of.operation).collect();
        let mut erased = Erased::default();
        for partition in 0..self.forgets.log.partitions() {
            self.empty_turns(partition, &mut erased)?;
        }
        // Without the rows of deleted turns, and without the snapshots before.
        self.replica.snapshot()?;
        (self.erase_caches)()?;
        erased.rewritten_bytes = self.forgets.log.scrub()?;
        self.forgets.note_erased(&hidden, erased, settled.now_ms)?;
        Ok(erased)
    }

    /// Whether the turns log holds words of a turn that was deleted.
    pub(super) fn are_words_left(&self) -> Result<bool, PipelineError> {
        let mut found = false;
        for partition in 0..self.forgets.log.partitions() {
            let deletions = self.deletions(partition)?;
            self.each(partition, &mut |_, event| {
                found |= matches!(&event, TurnEvent::Turn(turn) if is_to_empty(&deletions, turn));
                Ok(())
            })?;
        }
        Ok(found)
    }

    fn empty_turns(&self, partition: u32, erased: &mut Erased) -> Result<(), PipelineError> {
        let deletions = self.deletions(partition)?;
        if deletions.is_empty() {
            return Ok(());
        }
        let (mut some, mut words) = (Vec::new(), SharedWords::default());
        self.each(partition, &mut |offset, event| {
            let TurnEvent::Turn(turn) = event else { return Ok(()) };
            if !is_to_empty(&deletions, &turn) {
                return Ok(());
            }
            std::iter::once(turn.text.as_str()).chain(turn.captions()).for_each(|text| words.add(text));
            some.push((offset, turn));
            if some.len() == DELETED_AT_ONCE {
                self.empty(partition, &std::mem::take(&mut some), &std::mem::take(&mut words), erased)?;
            }
            Ok(())
        })?;
        self.empty(partition, &some, &words, erased)
    }

    /// Empties the dead letters that hold words of these turns, and then the turns, so that a crash in between loses
    /// none of the words by which dead letters are found.
    fn empty(
        &self,
        partition: u32,
        turns: &[(u64, Turn)],
        words: &SharedWords,
        erased: &mut Erased,
    ) -> Result<(), PipelineError> {
        if turns.is_empty() {
            return Ok(());
        }
        let log = self.forgets.log;
        let ids: BTreeSet<(&str, &str)> = turns.iter().map(|(_, turn)| (turn.bank.as_str(), &*turn.turn)).collect();
        let mut at = 0;
        loop {
            let batch = log.read(Topic::DeadLetters, 0, at, READ_AT_ONCE)?;
            let mut emptied = Vec::new();
            for record in &batch.records {
                let read = serde_json::from_slice::<DeadLetter>(record.value.as_deref().unwrap_or_default());
                let Ok(letter) = read else { continue };
                if !letter.payload.is_empty() && holds(&letter, &ids, words) {
                    let reason = EMPTIED_REASON.to_owned();
                    let json = serde_json::to_vec(&DeadLetter { payload: String::new(), reason, ..letter });
                    emptied.push((record.offset, json.map_err(|e| self.unwritable(record.offset, &e))?));
                }
            }
            if !emptied.is_empty() {
                log.replace(Topic::DeadLetters, 0, &emptied)?;
                erased.dead_letters += emptied.len() as u64;
            }
            if batch.next == at {
                break;
            }
            at = batch.next;
        }
        let mut emptied = Vec::with_capacity(turns.len());
        for (offset, turn) in turns {
            let json = serde_json::to_vec(&TurnEvent::Turn(without_words(turn)));
            emptied.push((*offset, json.map_err(|e| self.unwritable(*offset, &e))?));
        }
        log.replace(Topic::Turns, partition, &emptied)?;
        erased.turns += emptied.len() as u64;
        Ok(())
    }

    /// The deletions of a partition that answers reflect.
    fn deletions(&self, partition: u32) -> Result<Deletions, PipelineError> {
        let mut deletions = Deletions::new();
        self.each(partition, &mut |_, event| {
            if let TurnEvent::Deletion(deletion) = event {
                let version = deletions.entry(key(&deletion.bank, &deletion.turn)).or_default();
                *version = deletion.version.max(*version);
            }
            Ok(())
        })?;
        Ok(deletions)
    }

    /// Calls `each` with the events of a partition that answers reflect.
    fn each(
        &self,
        partition: u32,
        each: &mut dyn FnMut(u64, TurnEvent) -> Result<(), PipelineError>,
    ) -> Result<(), PipelineError> {
        let (end, mut at) = (self.replica.position(partition).unwrap_or(0), 0);
        while at < end {
            let batch = self.forgets.log.read(Topic::Turns, partition, at, READ_AT_ONCE)?;
            for record in batch.records.iter().filter(|record| record.offset < end) {
                let event = serde_json::from_slice(record.value.as_deref().unwrap_or_default());
                each(record.offset, event.map_err(|e| self.unwritable(record.offset, &e))?)?;
            }
            if batch.next == at {
                break;
            }
            at = batch.next;
        }
        Ok(())
    }

    fn unwritable(&self, offset: u64, error: &serde_json::Error) -> PipelineError {
        let what = format!("the record at offset {offset} of the log");
        PipelineError::Forget { what, problem: format!("{error}; please report this") }
    }
}

fn key(bank: &Bank, turn: &str) -> [u8; 16] {
    let mut hash = blake3::Hasher::new();
    hash.update(&(bank.as_str().len() as u64).to_le_bytes()).update(bank.as_str().as_bytes()).update(turn.as_bytes());
    let mut key = [0; 16];
    hash.finalize_xof().fill(&mut key);
    key
}

fn is_to_empty(deletions: &Deletions, turn: &Turn) -> bool {
    deletions.get(&key(&turn.bank, &turn.turn)).is_some_and(|version| turn.version <= *version)
        && *turn != without_words(turn)
}

/// A turn that has the place of another one in its session, and none of its words.
fn without_words(turn: &Turn) -> Turn {
    let (speaker, text) = (EMPTIED.to_owned(), EMPTIED.to_owned());
    Turn { speaker, kind: None, text, attachments: Vec::new(), ..turn.clone() }
}

fn holds(letter: &DeadLetter, ids: &BTreeSet<(&str, &str)>, words: &SharedWords) -> bool {
    let record: serde_json::Value = serde_json::from_str(&letter.payload).unwrap_or_default();
    let field = |name: &str| record.get(name).and_then(serde_json::Value::as_str);
    let names = field("bank").zip(field("turn")).is_some_and(|of| ids.contains(&of));
    names
        || words.are_in(&letter.payload)
        || words.are_in(&letter.reason)
        || field("text").is_some_and(|text| words.are_in(text))
}
