//! Where a bank's turns are in the log: to read a page of turns, or one turn, only the records that hold them are read.
//!
//! In: a log, banks. Out: pages of their turns, turns by their ids, the number of turns with the first and the last
//! time, its sessions with their titles. For each requested bank, memory holds the key and the offset of every record,
//! the time, the session and a hash of the id of every turn, and titles. It holds no words of a turn. Every call reads all keys of its banks, and the records that are new since the
//! last call; the first call for a bank reads every record. An answer is as of one moment.

#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    ops::{ControlFlow, RangeInclusive},
    sync::{Arc, Mutex},
};

use logs::{Log, LogRecord, partition_of};
use memory::window::{TITLE_SESSION, session_title};
use pipeline::{PipelineError, StoredTurn, stored_turns, turns_of_record};
use types::{
    model::{Bank, EventTime, MemoryKey},
    record_value::turns_of,
    sync,
};

/// How often the records of an answer are located again because they changed in the meantime. After that, all records
/// of the banks are read as of one moment.
const ATTEMPTS: usize = 3;

/// Which turns a page has, among those of some banks, the latest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnPageRequest {
    /// If set, only turns said at this time or earlier, in milliseconds since 1970. The page then has all turns of
    /// exactly this millisecond, and up to `limit` earlier ones.
    pub until_ms: Option<i64>,
    /// How many of the latest turns are left out.
    pub skip: usize,
    /// The maximum number of turns.
    pub limit: usize,
}

/// A page of turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnPage {
    /// The turns, each as last edited, in time order. Turns of the same time are in the order of their banks.
    pub turns: Vec<StoredTurn>,
    /// The number of turns on all pages.
    pub count: usize,
}

/// The number of a bank's turns, and the times of the first and the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnSpan {
    /// The number of turns, at least 1.
    pub count: usize,
    /// The time of the first.
    pub first: EventTime,
    /// The time of the last.
    pub last: EventTime,
}

/// A session of a bank that its turns or a title name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSpan {
    /// Its name.
    pub session: String,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Its turns; `None` if it has only a title.
    pub turns: Option<TurnSpan>,
}

/// A turn of a record.
struct TurnLocation {
    time: EventTime,
    id_hash: u64,
    session: Option<Arc<str>>,
}

/// A live record with turns.
struct RecordLocation {
    key: Vec<u8>,
    offset: u64,
    turns: Box<[TurnLocation]>,
    /// The session whose title it holds, and the title.
    title: Option<(String, String)>,
}

/// The records of a bank, by key.
type BankLocations = Arc<Vec<Arc<RecordLocation>>>;

/// Where the turns of each requested bank are.
#[derive(Default)]
pub(super) struct TurnLocator {
    banks: Mutex<HashMap<Bank, BankLocations>>,
    #[cfg(test)]
    pub(super) records_read: AtomicUsize,
}

/// A turn, with the index of its bank.
type TurnOfBank = (usize, StoredTurn);

impl TurnLocator {
    /// Forgets where the turns of a bank are; the next call for it reads every record again.
    pub(super) fn forget(&self, bank: &Bank) {
        sync::lock(&self.banks).remove(bank);
    }

    /// A page of the turns of some banks.
    ///
    /// # Errors
    /// As [`stored_turns`].
    pub(super) fn page(&self, log: &dyn Log, banks: &[Bank], of: TurnPageRequest) -> Result<TurnPage, PipelineError> {
        for _ in 0..ATTEMPTS {
            let places = self.places(log, banks)?;
            let Some(cut) = PageBounds::of(&places, of) else {
                let count = times(&places, of.until_ms).count();
                return Ok(TurnPage { turns: Vec::new(), count });
            };
            let wanted = |place: &TurnLocation| cut.times.contains(&place.time);
            if let Some(mut turns) = self.read(log, banks, &places, wanted)? {
                turns.retain(|(_, held)| cut.times.contains(&held.turn.time));
                return Ok(cut.page(turns));
            }
        }
        let mut turns: Vec<StoredTurn> = Vec::new();
        for bank in banks {
            turns.extend(stored_turns(log, bank, &|_| true, usize::MAX)?);
        }
        // The sort is stable: turns of the same moment keep the order of their banks.
        turns.sort_by_key(|held| held.turn.time);
        turns.retain(|held| of.until_ms.is_none_or(|until| held.turn.time.unix_ms <= until));
        let ties = turns.iter().filter(|held| Some(held.turn.time.unix_ms) == of.until_ms).count();
        let count = turns.len();
        turns.truncate(count.saturating_sub(of.skip));
        let turns = turns.split_off(turns.len().saturating_sub(of.limit.saturating_add(ties)));
        Ok(TurnPage { turns, count })
    }

    /// The turns of a bank with these ids, in time order, each as last edited. Ids that it does not hold are left out.
    ///
    /// # Errors
    /// As [`Self::page`].
    pub(super) fn by_ids(&self, log: &dyn Log, bank: &Bank, ids: &[String]) -> Result<Vec<StoredTurn>, PipelineError> {
        let hashes: HashSet<u64> = ids.iter().map(|id| hash(id)).collect();
        let ids: HashSet<&str> = ids.iter().map(String::as_str).collect();
        let banks = std::slice::from_ref(bank);
        for _ in 0..ATTEMPTS {
            let places = self.places(log, banks)?;
            let wanted = |place: &TurnLocation| hashes.contains(&place.id_hash);
            if let Some(turns) = self.read(log, banks, &places, wanted)? {
                let turns = turns.into_iter().map(|(_, held)| held);
                return Ok(turns.filter(|held| ids.contains(held.turn.turn.as_str())).collect());
            }
        }
        stored_turns(log, bank, &|id| ids.contains(id), ids.len())
    }

    /// The number of a bank's turns and their times; `None` if it has no turns.
    ///
    /// # Errors
    /// As [`Self::page`].
    pub(super) fn span(&self, log: &dyn Log, bank: &Bank) -> Result<Option<TurnSpan>, PipelineError> {
        let places = self.places(log, std::slice::from_ref(bank))?;
        let all = || times(&places, None);
        Ok(all().min().zip(all().max()).map(|(first, last)| TurnSpan { count: all().count(), first, last }))
    }

    /// The sessions of a bank whose names begin with `prefix`, from the name `from` on, at most `limit`, by name.
    ///
    /// # Errors
    /// As [`Self::page`].
    pub(super) fn sessions(
        &self,
        log: &dyn Log,
        bank: &Bank,
        prefix: &str,
        from: &str,
        limit: usize,
    ) -> Result<Vec<SessionSpan>, PipelineError> {
        let places = self.of_bank(log, bank)?;
        let first = prefix.max(from);
        let passes = |session: &str| session.starts_with(prefix) && session >= first;
        let mut found: BTreeMap<&str, (Option<&str>, Option<TurnSpan>)> = BTreeMap::new();
        for record in places.iter() {
            if let Some((session, title)) = record.title.as_ref().filter(|(session, _)| passes(session)) {
                found.entry(session).or_default().0 = Some(title);
            }
            for turn in &record.turns {
                let Some(session) = turn.session.as_deref().filter(|session| passes(session)) else { continue };
                let span = &mut found.entry(session).or_default().1;
                let time = turn.time;
                *span = Some(match span {
                    None => TurnSpan { count: 1, first: time, last: time },
                    Some(TurnSpan { count, first, last }) => {
                        TurnSpan { count: *count + 1, first: time.min(*first), last: time.max(*last) }
                    }
                });
            }
        }
        let view = |(session, (title, turns)): (&str, (Option<&str>, Option<TurnSpan>))| SessionSpan {
            session: session.to_owned(),
            title: title.map(str::to_owned),
            turns,
        };
        Ok(found.into_iter().take(limit).map(view).collect())
    }

    /// The turns of some sessions of a bank that were said at the time that is named for each, in time order.
    ///
    /// # Errors
    /// As [`Self::page`].
    pub(super) fn first_turns(
        &self,
        log: &dyn Log,
        bank: &Bank,
        sessions: &HashMap<&str, EventTime>,
    ) -> Result<Vec<StoredTurn>, PipelineError> {
        let is_asked = |session: Option<&str>, time| session.is_some_and(|name| sessions.get(name) == Some(&time));
        let banks = std::slice::from_ref(bank);
        for _ in 0..ATTEMPTS {
            let places = self.places(log, banks)?;
            let wanted = |place: &TurnLocation| is_asked(place.session.as_deref(), place.time);
            if let Some(turns) = self.read(log, banks, &places, wanted)? {
                let turns = turns.into_iter().map(|(_, held)| held);
                return Ok(turns.filter(|held| is_asked(held.turn.session.as_deref(), held.turn.time)).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Where all turns of some banks are now.
    fn places(&self, log: &dyn Log, banks: &[Bank]) -> Result<Vec<BankLocations>, PipelineError> {
        banks.iter().map(|bank| self.of_bank(log, bank)).collect()
    }

    fn of_bank(&self, log: &dyn Log, bank: &Bank) -> Result<BankLocations, PipelineError> {
        let before = sync::lock(&self.banks).get(bank).cloned().unwrap_or_default();
        let partition = partition_of(bank, log.partitions());
        let found = RefCell::new(Vec::with_capacity(before.len()));
        let (mut known, mut problem) = (before.iter().peekable(), None);
        // Both are in the order of the keys.
        let mut is_new = |key: &[u8], offset: u64| {
            while known.next_if(|known| known.key.as_slice() < key).is_some() {}
            let same = known.next_if(|known| known.key == key && known.offset == offset);
            found.borrow_mut().extend(same.cloned());
            same.is_none()
        };
        log.live_records(partition, &MemoryKey::prefix(bank), &mut is_new, &mut |record| {
            self.note_read();
            match turns_of_record(record) {
                Ok(turns) => {
                    // Most turns of a record have the session of the one before.
                    let mut last: Option<Arc<str>> = None;
                    let place = |held: StoredTurn| {
                        let turn = &held.turn;
                        let name = turn.session.as_deref();
                        if last.as_deref() != name {
                            last = name.map(Arc::from);
                        }
                        TurnLocation { time: turn.time, id_hash: hash(&turn.turn), session: last.clone() }
                    };
                    let turns = turns.map(place).collect();
                    let (key, offset) = (record.key.clone(), record.offset);
                    let title = title_of(record);
                    found.borrow_mut().push(Arc::new(RecordLocation { key, offset, turns, title }));
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    let (bank, offset) = (bank.clone(), record.offset);
                    problem = Some(PipelineError::Quarantined { bank, partition, offset, problem: error });
                    ControlFlow::Break(())
                }
            }
        })?;
        if let Some(problem) = problem {
            return Err(problem);
        }
        let mut found = found.into_inner();
        // The log may call `is_new` for all records before it reads one.
        found.sort_by(|a: &Arc<RecordLocation>, b| a.key.cmp(&b.key));
        let found: BankLocations = Arc::new(found);
        let mut banks = sync::lock(&self.banks);
        if found.is_empty() {
            banks.remove(bank);
        } else {
            banks.insert(bank.clone(), Arc::clone(&found));
        }
        Ok(found)
    }

    /// The turns of all records that have a wanted turn, in time order; `None` if one of these records has changed
    /// since `places` were found.
    fn read(
        &self,
        log: &dyn Log,
        banks: &[Bank],
        places: &[BankLocations],
        wanted: impl Fn(&TurnLocation) -> bool,
    ) -> Result<Option<Vec<TurnOfBank>>, PipelineError> {
        let mut found = Vec::new();
        for (index, (bank, records)) in banks.iter().zip(places).enumerate() {
            let partition = partition_of(bank, log.partitions());
            for place in records.iter().filter(|record| record.turns.iter().any(&wanted)) {
                let mut turns = None;
                // All keys of an open window begin with that of the window.
                let is_it = &mut |key: &[u8], offset: u64| key == place.key && offset == place.offset;
                log.live_records(partition, &place.key, is_it, &mut |record| {
                    self.note_read();
                    turns = turns_of_record(record).ok().map(|turns| turns.collect::<Vec<_>>());
                    ControlFlow::Break(())
                })?;
                let Some(turns) = turns else { return Ok(None) };
                found.extend(turns.into_iter().map(|held| (index, held)));
            }
        }
        found.sort_by(|(bank, a), (other, b)| (a.turn.time, bank, a.place()).cmp(&(b.turn.time, other, b.place())));
        Ok(Some(found))
    }

    fn note_read(&self) {
        #[cfg(test)]
        self.records_read.fetch_add(1, Ordering::Relaxed);
    }
}

/// The session whose title a record holds, and the title.
fn title_of(record: &LogRecord) -> Option<(String, String)> {
    let key = MemoryKey::from_bytes(&record.key).ok()?;
    if key.window.session.0 != TITLE_SESSION {
        return None;
    }
    let turns = turns_of(record.value.as_deref()?).ok()?;
    turns.iter().find_map(|of| session_title(&of.turn)).map(|(session, title)| (session.to_owned(), title.to_owned()))
}

/// Where a page begins and ends.
struct PageBounds {
    /// The times of its last and its first turn.
    times: RangeInclusive<EventTime>,
    /// How many turns of the latest time are on an earlier page.
    left_out: usize,
    length: usize,
    count: usize,
}

impl PageBounds {
    /// `None` if the page has no turns.
    fn of(places: &[BankLocations], TurnPageRequest { until_ms, skip, limit }: TurnPageRequest) -> Option<Self> {
        let mut times: Vec<EventTime> = times(places, until_ms).collect();
        let count = times.len();
        let ties = times.iter().filter(|time| Some(time.unix_ms) == until_ms).count();
        let end = skip.saturating_add(limit).saturating_add(ties).min(count);
        let last = end.checked_sub(1).filter(|last| skip <= *last)?;
        let (_, oldest, _) = times.select_nth_unstable_by(last, |a, b| b.cmp(a));
        let oldest = *oldest;
        let (later, newest, _) = times.get_mut(..end)?.select_nth_unstable_by(skip, |a, b| b.cmp(a));
        let newest = *newest;
        let left_out = later.iter().filter(|time| **time == newest).count();
        Some(Self { times: oldest..=newest, left_out, length: end - skip, count })
    }

    /// The page, from all turns of its times.
    fn page(&self, mut turns: Vec<TurnOfBank>) -> TurnPage {
        turns.truncate(turns.len().saturating_sub(self.left_out));
        let turns = turns.split_off(turns.len().saturating_sub(self.length));
        TurnPage { turns: turns.into_iter().map(|(_, held)| held).collect(), count: self.count }
    }
}

/// The times of the turns of banks up to a moment.
fn times(places: &[BankLocations], until_ms: Option<i64>) -> impl Iterator<Item = EventTime> {
    let turns = places.iter().flat_map(|records| records.iter()).flat_map(|record| record.turns.iter());
    turns.map(|turn| turn.time).filter(move |time| until_ms.is_none_or(|until| time.unix_ms <= until))
}

/// A hash that is the same within this process.
fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
