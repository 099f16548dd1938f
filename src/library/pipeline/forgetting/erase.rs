//! Erasing: words of deleted turns out of every place where this memory stores them.
//!
//! In: the log, the replica with its snapshots, the caches. Out: each of these without the words, and how much that
//! took. A pass covers every deletion that answers reflect, whoever wrote it, every copy of a turn that was sent again
//! after its deletion, and where the settings say so, every version that an edit replaced. Emptied records keep their
//! offsets, times and places in their sessions, so that a memory made again from the turns log is the same. A pass that
//! fails, or whose process dies, is done again as a whole.

use std::collections::{BTreeSet, HashMap, hash_map::Entry};

use super::{Erased, Forgets, PipelineError, Replica, Settled, operation::DELETED_AT_ONCE, shared_words::SharedWords};
use crate::log::{ErasableLog, Topic};
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

/// What of a partition's turns is to be erased, by the hash of bank and id.
#[derive(Default)]
struct Going {
    /// The version of each turn up to which it is deleted.
    deleted: HashMap<[u8; 16], u64>,
    /// The version of each turn that counts: the highest, and of equal ones the last with other words. Only of banks in
    /// which edits erase what was said before.
    current: HashMap<[u8; 16], Current>,
}

/// The version of a turn that counts.
struct Current {
    version: u64,
    /// Where it lies first.
    offset: u64,
    /// The hash of all that it says.
    content: [u8; 16],
}

impl Places<'_> {
    /// Erases what was deleted, and notes it in the operations that are hidden.
    ///
    /// # Errors
    /// [`PipelineError`]; some places may hold words still, and the next pass covers all of them.
    pub(in crate::pipeline) fn erase(&mut self, settled: &Settled<'_>) -> Result<Erased, PipelineError> {
        self.log()?;
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
        erased.rewritten_bytes = self.log()?.scrub()?;
        self.forgets.note_erased(&hidden, erased, settled.now_ms)?;
        Ok(erased)
    }

    /// The log, whose records can be erased.
    fn log(&self) -> Result<&dyn ErasableLog, PipelineError> {
        self.forgets.log.erasable().ok_or(PipelineError::NotEmbedded)
    }

    /// Whether the turns log holds words of a turn that was deleted.
    pub(super) fn are_words_left(&self) -> Result<bool, PipelineError> {
        let mut found = false;
        for partition in 0..self.forgets.log.partitions() {
            let going = self.going(partition)?;
            self.each(partition, &mut |offset, event| {
                found |= matches!(&event, TurnEvent::Turn(turn) if going.has_words_of(offset, turn));
                Ok(())
            })?;
        }
        Ok(found)
    }

    fn empty_turns(&self, partition: u32, erased: &mut Erased) -> Result<(), PipelineError> {
        let going = self.going(partition)?;
        if going.is_empty() {
            return Ok(());
        }
        let (mut some, mut words) = (Vec::new(), SharedWords::default());
        self.each(partition, &mut |offset, event| {
            let TurnEvent::Turn(turn) = event else { return Ok(()) };
            if !going.has_words_of(offset, &turn) {
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
        let log = self.log()?;
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

    /// What the deletions and edits of a partition, as answers reflect them, leave to erase.
    fn going(&self, partition: u32) -> Result<Going, PipelineError> {
        let mut going = Going::default();
        let settings = self.forgets.settings;
        self.each(partition, &mut |offset, event| {
            match event {
                TurnEvent::Deletion(deletion) => {
                    let version = going.deleted.entry(key(&deletion.bank, &deletion.turn)).or_default();
                    *version = deletion.version.max(*version);
                }
                TurnEvent::Turn(turn) if settings.erases_edits_of(&turn.bank) => going.note(offset, &turn),
                _ => {}
            }
            Ok(())
        })?;
        Ok(going)
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

impl Going {
    fn is_empty(&self) -> bool {
        self.deleted.is_empty() && self.current.is_empty()
    }

    /// Notes a version of a turn. Versions come in the order of the log.
    fn note(&mut self, offset: u64, turn: &Turn) {
        let found = Current { version: turn.version, offset, content: content(turn) };
        match self.current.entry(key(&turn.bank, &turn.turn)) {
            Entry::Vacant(place) => {
                place.insert(found);
            }
            Entry::Occupied(mut place) => {
                let current = place.get();
                let is_other = (found.version, found.content) != (current.version, current.content);
                // An emptied record replaces nothing.
                if found.version >= current.version && is_other && *turn != without_words(turn) {
                    place.insert(found);
                }
            }
        }
    }

    /// Whether a record has words, and they are to be erased.
    fn has_words_of(&self, offset: u64, turn: &Turn) -> bool {
        let key = key(&turn.bank, &turn.turn);
        let is_deleted = || self.deleted.get(&key).is_some_and(|version| turn.version <= *version);
        let is_replaced = || {
            self.current.get(&key).is_some_and(|current| current.offset != offset && current.content != content(turn))
        };
        (is_deleted() || is_replaced()) && *turn != without_words(turn)
    }
}

/// The hash of all that a turn says of itself, without its version.
fn content(turn: &Turn) -> [u8; 16] {
    let mut hash = blake3::Hasher::new();
    hash.update(&serde_json::to_vec(&Turn { version: 0, ..turn.clone() }).unwrap_or_default());
    let mut content = [0; 16];
    hash.finalize_xof().fill(&mut content);
    content
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

#[cfg(test)]
mod tests {
    use super::*;
    use nouns::model::EventTime;

    fn said(version: u64, text: &str) -> Turn {
        let time = EventTime::parse("2024-05-06T09:00:00Z").unwrap();
        let turn = Turn::new(Bank::parse("b").unwrap(), "t", "Ann", text, time);
        Turn { version, ..turn }
    }

    /// The places of the records of one turn that are emptied.
    fn emptied(records: &[(u64, &str)]) -> Vec<usize> {
        let records: Vec<Turn> = records
            .iter()
            .map(|(version, text)| match *text {
                EMPTIED => without_words(&said(*version, "x")),
                text => said(*version, text),
            })
            .collect();
        let mut going = Going::default();
        records.iter().zip(0..).for_each(|(turn, offset)| going.note(offset, turn));
        let goes = |(place, turn): &(usize, &Turn)| going.has_words_of(*place as u64, turn);
        records.iter().enumerate().filter(goes).map(|(place, _)| place).collect()
    }

    #[test]
    fn all_words_but_those_of_the_version_that_counts_go() {
        assert_eq!(emptied(&[(0, "a")]), [0; 0]);
        assert_eq!(emptied(&[(0, "a"), (3, "b")]), [0]);
        assert_eq!(emptied(&[(3, "b"), (0, "a")]), [1], "a late retry");
        assert_eq!(emptied(&[(0, "a"), (0, "b")]), [0], "of equal versions the last one counts");
        assert_eq!(emptied(&[(0, "a"), (0, "a")]), [0; 0], "sent again");
        assert_eq!(emptied(&[(0, "a"), (0, "b"), (0, "a")]), [1]);
        assert_eq!(emptied(&[(0, EMPTIED), (3, "b"), (0, EMPTIED)]), [0; 0], "a second pass finds nothing");
        assert_eq!(emptied(&[(0, EMPTIED), (3, "b"), (4, "c")]), [1]);
    }
}
