//! Erases words of deleted turns from every place where this memory stores them.
//!
//! In: the log, the replica with its snapshots, the caches. Out: all of these without the words, and a report. A pass
//! covers every deletion that answers reflect, by any writer, every copy of a turn that was sent again after its
//! deletion, and, if the settings say so, every version that an edit replaced. Emptied records keep their offsets,
//! times and positions in their sessions, so a memory that is made again from the turns log is the same. Ids of deleted
//! turns with a phone number or a mail address are replaced by the hidden form. A pass that fails, or whose process
//! dies, is repeated as a whole.

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    ops::ControlFlow,
};

use super::{
    ErasureReport, ForgetOperationStore, MemoryProgress, PipelineError, Replica,
    dead_letter_erasure::{empty_dead_letters, is_named},
    imported_turns::each_imported_turn,
    operation::DELETED_AT_ONCE,
    turn_word_set::TurnWordSet,
};
use logs::{ErasableLog, Topic};
use memory::window::session_title;
use types::{
    model::{
        IdSalt, MemoryKey, RefusedWrite, SessionTitle, Turn, TurnDeletion, TurnEvent, WriteVerdict, holds_contact,
    },
    record_value::turns_of,
};

/// Records read at once.
const READ_AT_ONCE: usize = 1_024;
/// Replaces the words and the speaker of an emptied turn.
const EMPTIED: &str = "-";
/// The offset of a version that has no record in the turns log, because it came with an imported bank.
const IMPORTED: u64 = u64::MAX;

/// The places that hold words.
pub struct ErasureTargets<'p> {
    /// The operations of the log.
    pub forgets: ForgetOperationStore<'p>,
    /// The memory, whose snapshots are rewritten.
    pub replica: &'p Replica,
    /// Removes evicted vectors and responses from the files of the caches.
    pub erase_caches: &'p mut dyn FnMut() -> Result<(), PipelineError>,
}

/// The turns of a partition that are to be erased, by the hash of bank and id.
#[derive(Default)]
struct ErasureSet {
    /// The salt that hides ids: both forms of an id name the same turn.
    salt: IdSalt,
    /// The version of each turn up to which it is deleted.
    deleted: HashMap<[u8; 16], u64>,
    /// The banks of the deleted turns.
    banks: BTreeSet<String>,
    /// The current version of each turn: the highest, and among equal ones the last with different words. Only for
    /// banks in which edits erase the earlier text.
    current: HashMap<[u8; 16], CurrentTurnVersion>,
    /// Titles that were replaced or removed, by offset.
    titles: Vec<(u64, SessionTitle)>,
    /// Refused conditional writes that name an id with a number or an address, by offset.
    refusals: Vec<(u64, WriteVerdict)>,
}

/// The current version of a turn.
struct CurrentTurnVersion {
    version: u64,
    /// The offset of its first record; [`IMPORTED`] if it came with its bank.
    offset: u64,
    /// The hash of its content.
    content: [u8; 16],
}

impl ErasureTargets<'_> {
    /// Erases what was deleted, and notes it in the operations whose turns are hidden.
    ///
    /// # Errors
    /// [`PipelineError`]; some places may still hold words, and the next pass covers all of them.
    pub fn erase(&mut self, settled: &MemoryProgress<'_>) -> Result<ErasureReport, PipelineError> {
        self.log()?;
        let operations = self.forgets.settle(settled)?;
        let hidden = operations.into_iter().filter(|of| of.hidden_ms.is_some() && of.erased.is_none());
        let hidden: BTreeSet<String> = hidden.map(|of| of.operation).collect();
        let mut erased = ErasureReport::default();
        for partition in 0..self.forgets.log.partitions() {
            self.empty_turns(partition, &mut erased)?;
        }
        // The new snapshot has no rows of deleted turns, and replaces the earlier snapshots.
        self.replica.snapshot()?;
        self.replica.delete_old_snapshots()?;
        (self.erase_caches)()?;
        erased.rewritten_bytes = self.log()?.scrub()?;
        self.forgets.note_erased(&hidden, erased, settled.now_ms)?;
        Ok(erased)
    }

    /// The log, if its records can be erased.
    fn log(&self) -> Result<&dyn ErasableLog, PipelineError> {
        self.forgets.log.erasable().ok_or(PipelineError::NotEmbedded)
    }

    /// Whether the turns log holds words of a deleted turn, or a dead letter names one.
    pub(super) fn are_words_left(&self) -> Result<bool, PipelineError> {
        let mut found = false;
        for partition in 0..self.forgets.log.partitions() {
            let going = self.going(partition)?;
            found |= !going.titles.is_empty() || !going.refusals.is_empty();
            self.each(partition, &mut |offset, event| {
                found |= match &event {
                    TurnEvent::Turn(turn) => going.has_words_of(offset, turn),
                    TurnEvent::Deletion(deletion) => holds_contact(&deletion.turn),
                    _ => false,
                };
                Ok(())
            })?;
            found = found || going.deletes() && is_named(self.forgets.log, &|b, t, v| going.names(b, t, v))?;
        }
        Ok(found)
    }

    fn empty_turns(&self, partition: u32, erased: &mut ErasureReport) -> Result<(), PipelineError> {
        let going = self.going(partition)?;
        if going.is_empty() {
            return Ok(());
        }
        if going.deletes() {
            // This includes turns without words in the log: they were emptied before, imported, or never taken.
            let (log, none) = (self.forgets.log, TurnWordSet::default());
            erased.dead_letters += empty_dead_letters(log, &none, &|b, t, v| going.names(b, t, v))?;
        }
        let (mut some, mut words, mut deletions) = (Vec::new(), TurnWordSet::default(), Vec::new());
        self.each(partition, &mut |offset, event| {
            let turn = match event {
                TurnEvent::Turn(turn) => turn,
                TurnEvent::Deletion(deletion) if holds_contact(&deletion.turn) => {
                    let turn = going.salt.hidden(&deletion.turn);
                    let hidden = TurnEvent::Deletion(TurnDeletion { turn, ..deletion });
                    let json = serde_json::to_vec(&hidden).map_err(|e| self.unwritable(offset, &e))?;
                    deletions.push((offset, json));
                    return Ok(());
                }
                _ => return Ok(()),
            };
            if !going.has_words_of(offset, &turn) {
                return Ok(());
            }
            words.add_turn(&turn);
            some.push((offset, turn));
            if some.len() == DELETED_AT_ONCE {
                self.empty(partition, &going, &std::mem::take(&mut some), &std::mem::take(&mut words), erased)?;
            }
            Ok(())
        })?;
        self.empty(partition, &going, &some, &words, erased)?;
        self.empty_titles(partition, &going)?;
        // Written last: until then the deletions show which turns are to be erased.
        if deletions.is_empty() { Ok(()) } else { Ok(self.log()?.replace(Topic::Turns, partition, &deletions)?) }
    }

    /// Empties titles that no longer stand, and hides numbers and addresses in their sessions and in refused writes.
    fn empty_titles(&self, partition: u32, going: &ErasureSet) -> Result<(), PipelineError> {
        let mut emptied = Vec::new();
        for (offset, title) in &going.titles {
            let session = going.salt.hide(&title.session);
            let event = TurnEvent::SessionTitle(SessionTitle { session, title: String::new(), ..title.clone() });
            emptied.push((*offset, serde_json::to_vec(&event).map_err(|e| self.unwritable(*offset, &e))?));
        }
        for (offset, verdict) in &going.refusals {
            let hidden =
                |refused: &RefusedWrite| RefusedWrite { turn: going.salt.hide(&refused.turn), ..refused.clone() };
            let refused = verdict.refused.as_ref().map(hidden);
            let event = TurnEvent::Verdict(WriteVerdict { refused, ..verdict.clone() });
            emptied.push((*offset, serde_json::to_vec(&event).map_err(|e| self.unwritable(*offset, &e))?));
        }
        Ok(self.log()?.replace(Topic::Turns, partition, &emptied)?)
    }

    /// Leaves out the titles that stand: those whose session has this title now, whichever record gave it.
    fn drop_standing(&self, partition: u32, titles: &mut Vec<(u64, SessionTitle)>) -> Result<(), PipelineError> {
        if titles.is_empty() {
            return Ok(());
        }
        let mut standing = BTreeSet::new();
        let mut is_title = |key: &[u8], _: u64| {
            MemoryKey::from_bytes(key).is_ok_and(|key| key.window.session.0 == SessionTitle::RESERVED)
        };
        self.forgets.log.live_records(partition, &[], &mut is_title, &mut |record| {
            let turns = turns_of(record.value.as_deref().unwrap_or_default()).unwrap_or_default();
            standing.extend(turns.iter().filter_map(|of| {
                let (session, title) = session_title(&of.turn)?;
                Some((of.turn.bank.clone(), session.to_owned(), title.to_owned()))
            }));
            ControlFlow::Continue(())
        })?;
        titles.retain(|(_, of)| !standing.contains(&(of.bank.clone(), of.session.clone(), of.title.clone())));
        Ok(())
    }

    /// Empties the dead letters that hold words of these turns, and then the turns, so that a crash in between loses
    /// none of the words by which dead letters are found.
    fn empty(
        &self,
        partition: u32,
        going: &ErasureSet,
        turns: &[(u64, Turn)],
        words: &TurnWordSet,
        erased: &mut ErasureReport,
    ) -> Result<(), PipelineError> {
        if turns.is_empty() {
            return Ok(());
        }
        let ids: BTreeSet<(&str, &str)> = turns.iter().map(|(_, turn)| (turn.bank.as_str(), &*turn.turn)).collect();
        let goes = |bank: Option<&str>, turn: &str, _: u64| bank.is_some_and(|bank| ids.contains(&(bank, turn)));
        erased.dead_letters += empty_dead_letters(self.forgets.log, words, &goes)?;
        let mut emptied = Vec::with_capacity(turns.len());
        for (offset, turn) in turns {
            let json = serde_json::to_vec(&TurnEvent::Turn(going.emptied(turn)));
            emptied.push((*offset, json.map_err(|e| self.unwritable(*offset, &e))?));
        }
        self.log()?.replace(Topic::Turns, partition, &emptied)?;
        erased.turns += emptied.len() as u64;
        Ok(())
    }

    /// What the deletions and edits of a partition leave to erase, as far as answers reflect them. Those of an imported
    /// bank came with its records; the turns log may have older copies of the same turns.
    fn going(&self, partition: u32) -> Result<ErasureSet, PipelineError> {
        let ForgetOperationStore { log, settings } = self.forgets;
        let mut going = ErasureSet { salt: log.id_salt()?, ..ErasureSet::default() };
        each_imported_turn(log, partition, &[], &mut |held| match &*held.turn {
            turn if held.deleted => going.delete(turn.bank.as_str(), &turn.turn, turn.version),
            turn if settings.erases_edits_of(&turn.bank) => going.note(IMPORTED, turn),
            _ => {}
        })?;
        self.each(partition, &mut |offset, event| {
            match event {
                TurnEvent::Deletion(deletion) => {
                    going.delete(deletion.bank.as_str(), &deletion.turn, deletion.version);
                }
                TurnEvent::Turn(turn) if settings.erases_edits_of(&turn.bank) => going.note(offset, &turn),
                // What a hold covers stays, titles that others replaced included.
                TurnEvent::SessionTitle(title)
                    if !title.title.is_empty() && settings.hold_of(&title.bank).is_none() =>
                {
                    going.titles.push((offset, title));
                }
                TurnEvent::Verdict(verdict) if verdict.refused.as_ref().is_some_and(|of| holds_contact(&of.turn)) => {
                    going.refusals.push((offset, verdict));
                }
                _ => {}
            }
            Ok(())
        })?;
        self.drop_standing(partition, &mut going.titles)?;
        Ok(going)
    }

    /// Calls `each` with the events of a partition that answers reflect.
    fn each(
        &self,
        partition: u32,
        each: &mut dyn FnMut(u64, TurnEvent) -> Result<(), PipelineError>,
    ) -> Result<(), PipelineError> {
        let (progress, mut at) = (self.replica.progress(partition).unwrap_or_default(), 0);
        let end = progress.through;
        while at < end {
            let batch = self.forgets.log.read(Topic::Turns, partition, at, READ_AT_ONCE)?;
            for record in batch.records.iter().filter(|record| record.offset < end) {
                let event = serde_json::from_slice(record.value.as_deref().unwrap_or_default());
                let event: TurnEvent = event.map_err(|e| self.unwritable(record.offset, &e))?;
                if record.offset < progress.of(event.bank()) {
                    each(record.offset, event)?;
                }
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

fn key(bank: &str, turn: &str) -> [u8; 16] {
    let mut hash = blake3::Hasher::new();
    hash.update(&(bank.len() as u64).to_le_bytes()).update(bank.as_bytes()).update(turn.as_bytes());
    let mut key = [0; 16];
    hash.finalize_xof().fill(&mut key);
    key
}

impl ErasureSet {
    /// Whether there is nothing to erase.
    fn is_empty(&self) -> bool {
        let has_no_turn = self.deleted.is_empty() && self.current.is_empty();
        has_no_turn && self.titles.is_empty() && self.refusals.is_empty()
    }

    /// Whether any turn is deleted.
    fn deletes(&self) -> bool {
        !self.deleted.is_empty()
    }

    /// The key of a turn, the same for both forms of its id.
    fn key(&self, bank: &str, turn: &str) -> [u8; 16] {
        key(bank, &self.salt.hide(turn))
    }

    /// A record without the words of its turn; if the turn is deleted, also without numbers and addresses in ids.
    fn emptied(&self, turn: &Turn) -> Turn {
        let emptied = without_words(turn);
        if !self.names(Some(turn.bank.as_str()), &turn.turn, turn.version) {
            return emptied;
        }
        let hidden = |name: &Option<String>| name.as_ref().map(|name| self.salt.hide(name));
        let (session, thread, reply_to) = (hidden(&turn.session), hidden(&turn.thread), hidden(&turn.reply_to));
        Turn { turn: self.salt.hide(&turn.turn), session, thread, reply_to, ..emptied }
    }

    /// Notes the deletion of a turn up to a version.
    fn delete(&mut self, bank: &str, turn: &str, version: u64) {
        let deleted = self.deleted.entry(self.key(bank, turn)).or_default();
        *deleted = version.max(*deleted);
        if !self.banks.contains(bank) {
            self.banks.insert(bank.to_owned());
        }
    }

    /// Whether a version of a turn is deleted; without a bank, in any bank.
    fn names(&self, bank: Option<&str>, turn: &str, version: u64) -> bool {
        let is_deleted =
            |bank: &str| self.deleted.get(&self.key(bank, turn)).is_some_and(|deleted| version <= *deleted);
        match bank {
            Some(bank) => is_deleted(bank),
            None => self.banks.iter().any(|bank| is_deleted(bank)),
        }
    }

    /// Notes a version of a turn. Versions come in the order of the log.
    fn note(&mut self, offset: u64, turn: &Turn) {
        let found = CurrentTurnVersion { version: turn.version, offset, content: content(turn) };
        match self.current.entry(self.key(turn.bank.as_str(), &turn.turn)) {
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
        let is_deleted = || self.names(Some(turn.bank.as_str()), &turn.turn, turn.version);
        let is_replaced = || {
            let current = self.current.get(&self.key(turn.bank.as_str(), &turn.turn));
            current.is_some_and(|current| current.offset != offset && current.content != content(turn))
        };
        (is_deleted() || is_replaced()) && *turn != self.emptied(turn)
    }
}

/// The hash of a turn's content, without its version.
fn content(turn: &Turn) -> [u8; 16] {
    let mut hash = blake3::Hasher::new();
    hash.update(&serde_json::to_vec(&Turn { version: 0, ..turn.clone() }).unwrap_or_default());
    let mut content = [0; 16];
    hash.finalize_xof().fill(&mut content);
    content
}

/// A turn at the same position in its session, without its words.
fn without_words(turn: &Turn) -> Turn {
    let (speaker, text) = (EMPTIED.to_owned(), EMPTIED.to_owned());
    Turn { speaker, kind: None, text, attachments: Vec::new(), metadata: None, ..turn.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::{Bank, EventTime};

    fn said(version: u64, text: &str) -> Turn {
        let time = EventTime::parse("2024-05-06T09:00:00Z").unwrap();
        let turn = Turn::new(Bank::parse("b").unwrap(), "t", "Ann", text, time);
        Turn { version, ..turn }
    }

    /// The indexes of the records of one turn that are emptied.
    fn emptied(records: &[(u64, &str)]) -> Vec<usize> {
        let records: Vec<Turn> = records
            .iter()
            .map(|(version, text)| match *text {
                EMPTIED => without_words(&said(*version, "x")),
                text => said(*version, text),
            })
            .collect();
        let mut going = ErasureSet::default();
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

    #[test]
    fn a_version_that_came_with_its_bank_counts_among_those_of_the_log() {
        let goes = |imported: &Turn, log: &[Turn]| {
            let mut going = ErasureSet::default();
            going.note(IMPORTED, imported);
            log.iter().zip(0..).for_each(|(turn, offset)| going.note(offset, turn));
            log.iter().zip(0..).map(|(turn, offset)| going.has_words_of(offset, turn)).collect::<Vec<_>>()
        };
        let imported = said(3, "b");
        assert_eq!(goes(&imported, &[said(0, "a"), said(3, "b")]), [true, false], "an older copy");
        assert_eq!(goes(&imported, &[said(3, "c")]), [false], "of equal versions the last one counts");
        assert_eq!(goes(&imported, &[said(3, "c"), said(4, "d"), said(2, "a")]), [true, false, true]);
    }
}
