//! Retention: forgets turns that rules no longer keep, as a request would.
//!
//! In: the rules, a log, and the time. Out: the turns that no rule keeps, and operations that forget them in batches. A
//! replay repeats them, because they are deletions in the turns log. The caller passes the time, so a scan of the same
//! log at the same time finds the same turns. What a hold covers is left out. Turns that are durable but not extracted
//! yet are not seen: a later scan finds them.

use crate::log_events;
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{ControlFlow, Range},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ForgetOperationStore, PipelineError, Replica, operation::DELETED_AT_ONCE, redacted_error,
    retention_rule::RetentionRule,
};
use logs::{Log, LogError, Topic, WritePosition, partition_of};
use pipeline::{StoredTurn, imported_ms, stored_turns};
use types::{
    config::{Pipeline, RetentionLimitSettings, RetentionSettings, RetentionTimeBasis},
    model::{Bank, MemoryKey, TurnEvent},
};

const DAY_MS: i64 = 86_400_000;
/// Records of the turns log that are read at once, for the times at which they were stored.
const READ_AT_ONCE: usize = 64;
/// The time between two scans of a partition.
const SCAN_INTERVAL: Duration = Duration::from_secs(86_400);
/// The longest time until a stop, or a partition that is new to this process, is noticed.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The pause after a failure: a bank with an unreadable record fails until an operator repairs it.
const PAUSE: Duration = Duration::from_secs(3_600);
/// After a pass, it rests for this many times the time that the pass took, so that questions have the machine.
const RESTS: u32 = 4;
/// The longest rest.
const MAX_REST: Duration = Duration::from_secs(60);
/// The longest wait until answers reflect some deletions.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Turns of a bank that rules no longer keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiredTurns {
    /// The bank.
    pub bank: Bank,
    /// Their ids, by rule, in the order of the pipeline file. A turn that several rules name is listed with the first
    /// of them.
    pub by_rule: Vec<(RetentionRule, BTreeSet<String>)>,
}

/// The result of scanning all banks.
#[derive(Debug)]
pub struct RetentionScan {
    /// The turns that no rule keeps, by bank; banks that keep all turns are left out.
    pub outlived: Vec<ExpiredTurns>,
    /// [`PipelineError::Quarantined`] for each bank that could not be scanned.
    pub quarantined: Vec<PipelineError>,
}

/// What retention did in this process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionStatus {
    /// How many turns it has deleted.
    pub deleted_turns: u64,
    /// When it had looked at every bank the last time; the next look begins a day later. Absent before the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub looked: Option<Timestamp>,
    /// Why it failed last; it is tried again after an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// An event of the retention thread.
#[derive(Debug)]
pub enum RetentionEvent {
    /// Turns were deleted.
    Deleted(u64),
    /// All banks were scanned.
    Looked(Timestamp),
    /// Why it failed; it is tried again.
    Failed(String),
}

impl RetentionStatus {
    /// Notes an event of the thread.
    pub fn note(&mut self, news: RetentionEvent) {
        match news {
            RetentionEvent::Deleted(turns) => self.deleted_turns += turns,
            RetentionEvent::Looked(at) => (self.looked, self.problem) = (Some(at), None),
            RetentionEvent::Failed(why) => self.problem = Some(why),
        }
    }
}

/// The rules of a pipeline, with its log.
pub struct RetentionRunner<'r> {
    forgets: ForgetOperationStore<'r>,
    log: &'r dyn Log,
    rules: &'r [RetentionSettings],
}

impl<'r> RetentionRunner<'r> {
    /// The rules of this pipeline.
    #[must_use]
    pub fn of(pipeline: &'r Pipeline, log: &'r dyn Log) -> Self {
        Self { forgets: ForgetOperationStore::of(log, &pipeline.forget), log, rules: &pipeline.retention }
    }

    /// The turns that no rule keeps at a time, in milliseconds since 1970.
    ///
    /// # Errors
    /// [`PipelineError`] if the log failed.
    pub fn scan(&self, now_ms: i64) -> Result<RetentionScan, PipelineError> {
        let (mut outlived, mut quarantined) = (Vec::new(), Vec::new());
        for partition in 0..self.log.partitions() {
            for bank in self.banks(partition)? {
                match self.look_at(bank, now_ms) {
                    Ok(of_bank) => outlived.extend(of_bank),
                    Err(error @ PipelineError::Quarantined { .. }) => quarantined.push(error),
                    Err(error) => return Err(error),
                }
            }
        }
        outlived.sort_by(|a: &ExpiredTurns, b| a.bank.cmp(&b.bank));
        Ok(RetentionScan { outlived, quarantined })
    }

    /// Deletes what a scan found, in operations of at most a thousand turns of one rule, and returns once that is
    /// durable.
    ///
    /// # Errors
    /// As [`Self::scan`]; some of it may be deleted.
    pub fn delete(&self, outlived: &ExpiredTurns, now_ms: i64) -> Result<(), PipelineError> {
        outlived.parts().try_for_each(|(rule, turns)| self.delete_some(&outlived.bank, rule, turns, now_ms).map(drop))
    }

    fn delete_some(
        &self,
        bank: &Bank,
        rule: &RetentionRule,
        turns: Vec<String>,
        now_ms: i64,
    ) -> Result<WritePosition, PipelineError> {
        Ok(self.forgets.begin(bank, turns, now_ms, Some(rule.clone()))?.written)
    }

    /// The banks of a partition of the memory that a rule covers and no hold covers whole.
    fn banks(&self, partition: u32) -> Result<BTreeSet<Bank>, PipelineError> {
        let mut banks = BTreeSet::new();
        // This reads no record.
        let mut note = |key: &[u8], _: u64| {
            banks.extend(MemoryKey::from_bytes(key).map(|key| key.bank));
            false
        };
        self.log.live_records(partition, &[], &mut note, &mut |_| ControlFlow::Continue(()))?;
        let settings = self.forgets.settings;
        let is_held = |bank: &Bank| settings.holds_of(bank).any(|hold| hold.select.is_none());
        banks.retain(|bank| !is_held(bank) && self.rules.iter().any(|rule| rule.covers(bank)));
        Ok(banks)
    }

    fn look_at(&self, bank: Bank, now_ms: i64) -> Result<Option<ExpiredTurns>, PipelineError> {
        let mut held = stored_turns(self.log, &bank, &|_| true, usize::MAX)?;
        let imported = imported(self.log, &bank, &held)?;
        if !imported.is_empty()
            && let Some(at_ms) = imported_ms(self.log, &bank)?
        {
            // The records of imported turns may have been written again since the import.
            for held in held.iter_mut().filter(|held| imported.contains(&held.turn.turn)) {
                held.recorded_ms = held.recorded_ms.min(at_ms);
            }
        }
        let mut times = AppendTimes::of(self.log, &bank);
        // What a hold covers counts among what a rule keeps, but does not go.
        let mut stay = BTreeSet::new();
        for select in self.forgets.settings.holds_of(&bank).filter_map(|hold| hold.select.as_ref()) {
            let selection = select.compile().map_err(|problem| PipelineError::Select { problem })?;
            stay.extend(held.iter().filter(|held| selection.takes(&held.turn)).map(|held| held.turn.turn.clone()));
        }
        let (mut named, mut by_rule) = (BTreeSet::new(), Vec::new());
        for (index, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.covers(&bank)) {
            let turns = outlived(rule, &held, &imported, now_ms, &mut |offset| times.at(offset))?;
            let turns: BTreeSet<String> =
                turns.into_iter().filter(|turn| !stay.contains(turn) && named.insert(turn.clone())).collect();
            if !turns.is_empty() {
                by_rule.push((RetentionRule::at(index, rule), turns));
            }
        }
        Ok((!by_rule.is_empty()).then_some(ExpiredTurns { bank, by_rule }))
    }

    /// Scans and deletes until `stopping`, whose thread may be unparked: in each partition of the memory that is
    /// `ours`, first soon after it became so, and then once a day. `replica` follows the log; it may hold only some of
    /// the partitions.
    pub fn retain_in_time(
        &self,
        replica: &Replica,
        ours: &dyn Fn(u32) -> bool,
        stopping: &AtomicBool,
        tell: &dyn Fn(RetentionEvent),
    ) {
        let goes_on = || !stopping.load(Ordering::Relaxed);
        // When to scan each partition next, and why the last scan failed.
        let mut looks: BTreeMap<u32, (Instant, Option<String>)> = BTreeMap::new();
        while goes_on() {
            let now = Instant::now();
            let is_due =
                |partition: &u32| ours(*partition) && looks.get(partition).is_none_or(|(next, _)| *next <= now);
            let due: Vec<u32> = (0..self.log.partitions()).filter(is_due).collect();
            for partition in &due {
                let failed = self.retain(*partition, replica, &goes_on, tell).err();
                let problem = failed.map(|error| {
                    log_events::retention_failed(&redacted_error(&error));
                    error.to_string()
                });
                let pause = if problem.is_some() { PAUSE } else { SCAN_INTERVAL };
                looks.insert(*partition, (Instant::now() + pause, problem));
            }
            if !due.is_empty() && goes_on() {
                let mut of_ours = looks.iter().filter(|(partition, _)| ours(**partition));
                let problem = of_ours.find_map(|(_, (_, problem))| problem.clone());
                tell(problem.map_or_else(|| RetentionEvent::Looked(Timestamp::now()), RetentionEvent::Failed));
            }
            rest(CHECK_INTERVAL, &goes_on);
        }
    }

    fn retain(
        &self,
        partition: u32,
        replica: &Replica,
        goes_on: &dyn Fn() -> bool,
        tell: &dyn Fn(RetentionEvent),
    ) -> Result<(), PipelineError> {
        let mut failed = None;
        for bank in self.banks(partition)? {
            if !goes_on() {
                return Ok(());
            }
            let begun = Instant::now();
            let looked = self.look_at(bank, now_ms());
            rest((begun.elapsed() * RESTS).min(MAX_REST), goes_on);
            let outlived = match looked {
                Ok(Some(outlived)) => outlived,
                Ok(None) => continue,
                // The rules apply to the other banks, too.
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            for (rule, turns) in outlived.parts() {
                if !goes_on() {
                    return Ok(());
                }
                let (begun, count) = (Instant::now(), turns.len() as u64);
                let written = self.delete_some(&outlived.bank, rule, turns, now_ms())?;
                log_events::retention_deleted(count);
                tell(RetentionEvent::Deleted(count));
                // The work that the deletions cause counts, too.
                let is_held =
                    written.partition_ends().all(|(partition, _)| replica.holds(partition % self.log.partitions()));
                let reflects = |until| !is_held || replica.wait_for(&written, until);
                while goes_on() && begun.elapsed() < MAX_WAIT && !reflects(Instant::now() + CHECK_INTERVAL) {}
                rest((begun.elapsed() * RESTS).min(MAX_REST), goes_on);
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

impl ExpiredTurns {
    /// Its turns with their rule, in batches of the size of one operation.
    fn parts(&self) -> impl Iterator<Item = (&RetentionRule, Vec<String>)> {
        self.by_rule.iter().flat_map(|(rule, turns)| {
            let mut turns = turns.iter();
            std::iter::from_fn(move || {
                let some: Vec<String> = turns.by_ref().take(DELETED_AT_ONCE).cloned().collect();
                (!some.is_empty()).then_some((rule, some))
            })
        })
    }
}

/// The times at which records of a bank were appended to the turns log.
struct AppendTimes<'l> {
    log: &'l dyn Log,
    bank: &'l Bank,
    /// Records before this offset are no longer in the log.
    first: u64,
    /// The offsets of the last read, and the times of the bank's records among them.
    span: Range<u64>,
    times: BTreeMap<u64, i64>,
}

impl<'l> AppendTimes<'l> {
    fn of(log: &'l dyn Log, bank: &'l Bank) -> Self {
        Self { log, bank, first: 0, span: 0..0, times: BTreeMap::new() }
    }

    /// The time of the record at an offset, in milliseconds since 1970; `None` if the log has no record of the bank
    /// there, or no longer has it.
    fn at(&mut self, offset: u64) -> Result<Option<i64>, PipelineError> {
        if offset < self.first {
            return Ok(None);
        }
        if !self.span.contains(&offset) {
            let partition = partition_of(self.bank, self.log.partitions());
            let batch = match self.log.read(Topic::Turns, partition, offset, READ_AT_ONCE) {
                Ok(batch) => batch,
                Err(LogError::Expired { earliest, .. }) => {
                    self.first = earliest;
                    return Ok(None);
                }
                Err(error) => return Err(error.into()),
            };
            let of_bank = batch.records.iter().filter(|record| record.key == self.bank.as_str().as_bytes());
            self.times = of_bank.map(|record| (record.offset, record.append_ms)).collect();
            self.span = offset..batch.next;
        }
        Ok(self.times.get(&offset).copied())
    }
}

/// The ids of the turns of a bank that an import brought. They have offset 0; if the turns log has a record there, it
/// is of another turn.
fn imported(log: &dyn Log, bank: &Bank, held: &[StoredTurn]) -> Result<BTreeSet<String>, PipelineError> {
    let first: Vec<&StoredTurn> = held.iter().filter(|held| held.offset == 0).collect();
    if first.is_empty() {
        return Ok(BTreeSet::new());
    }
    let records = match log.read(Topic::Turns, partition_of(bank, log.partitions()), 0, 1) {
        Ok(batch) => batch.records,
        Err(LogError::Expired { .. }) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let of_bank = records.iter().find(|record| record.offset == 0 && record.key == bank.as_str().as_bytes());
    let taken = match of_bank.map(|record| TurnEvent::from_log(record.value.as_deref().unwrap_or_default())) {
        Some(Ok(TurnEvent::Turn(turn))) => Some((turn.turn, turn.version)),
        _ => None,
    };
    let is_taken = |held: &StoredTurn| {
        taken.as_ref().is_some_and(|(id, version)| *id == held.turn.turn && *version == held.turn.version)
    };
    Ok(first.into_iter().filter(|held| !is_taken(held)).map(|held| held.turn.turn.clone()).collect())
}

/// The ids of the turns that a rule does not keep, among all turns of a bank in time order. `stored_ms` returns when
/// the record at an offset of the turns log was appended, if known; otherwise, and for `imported` turns, the time at
/// which the memory was written counts, which may be later. It is called only for turns to delete, and for one that
/// stays. Imported turns were stored before any turn of this log.
fn outlived(
    rule: &RetentionSettings,
    held: &[StoredTurn],
    imported: &BTreeSet<String>,
    now_ms: i64,
    stored_ms: &mut dyn FnMut(u64) -> Result<Option<i64>, PipelineError>,
) -> Result<Vec<String>, PipelineError> {
    let select = rule.selector();
    let selection = select.compile().map_err(|problem| PipelineError::Select { problem })?;
    let mut going: Vec<&StoredTurn> = held.iter().filter(|held| selection.takes(&held.turn)).collect();
    if rule.by == RetentionTimeBasis::Stored {
        going.sort_by_key(|held| (held.offset, !imported.contains(&held.turn.turn)));
    }
    let RetentionLimitSettings { days, turns } = rule.keep;
    let most = turns.map_or(usize::MAX, |turns| usize::try_from(turns).unwrap_or(usize::MAX));
    let latest = going.split_off(going.len().saturating_sub(most));
    if let Some(days) = days {
        let until_ms = now_ms.saturating_sub(i64::from(days) * DAY_MS);
        for held in latest {
            let known_ms = match rule.by {
                RetentionTimeBasis::Said => Some(held.turn.time.unix_ms),
                RetentionTimeBasis::Stored if imported.contains(&held.turn.turn) => None,
                RetentionTimeBasis::Stored => stored_ms(held.offset)?,
            };
            match known_ms {
                // The turns are in the order of these times, so the first one that stays ends the search.
                Some(at_ms) if at_ms > until_ms => break,
                None if held.recorded_ms > until_ms => {}
                _ => going.push(held),
            }
        }
    }
    Ok(going.into_iter().map(|held| held.turn.turn.clone()).collect())
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Waits, unless it is stopped.
fn rest(time: Duration, goes_on: &dyn Fn() -> bool) {
    let begun = Instant::now();
    while goes_on() && begun.elapsed() < time {
        std::thread::park_timeout(CHECK_INTERVAL.min(time.saturating_sub(begun.elapsed())));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use logs::EmbeddedLog;
    use types::model::{EventTime, Turn};

    const NOW: &str = "2024-06-30T00:00:00Z";

    fn ms(time: &str) -> i64 {
        EventTime::parse(time).unwrap().unix_ms
    }

    /// Turns in the order in which they were said; they were stored in another order, a day apart from 1 June on.
    fn held() -> Vec<StoredTurn> {
        let said = [
            ("a", "Ann", "2024-05-01T00:00:00Z", 3),
            ("b", "Bo", "2024-05-31T00:00:00Z", 0),
            ("c", "Ann", "2024-05-31T00:00:00.001Z", 1),
            ("d", "Bo", "2024-06-20T00:00:00Z", 2),
        ];
        let held = said.map(|(id, speaker, time, offset)| {
            let turn = Turn::new(Bank::parse("b").unwrap(), id, speaker, "x", EventTime::parse(time).unwrap());
            StoredTurn { turn: Arc::new(turn), offset, recorded_ms: ms("2024-06-10T00:00:00Z"), stored: None }
        });
        held.to_vec()
    }

    fn gone(keys: &str) -> Vec<String> {
        let file = format!("version = 1\n[[retention]]\nbank = \"b\"\n{keys}\n");
        let rules = Pipeline::parse(&file).unwrap().retention;
        let mut stored = |offset: u64| Ok(Some(ms("2024-06-01T00:00:00Z") + offset as i64 * DAY_MS));
        outlived(&rules[0], &held(), &BTreeSet::new(), ms(NOW), &mut stored).unwrap()
    }

    #[test]
    fn a_rule_takes_exactly_the_turns_that_are_older_or_more_than_it_keeps() {
        // A turn exactly as old as the limit is deleted.
        assert_eq!(gone("keep = { days = 30 }\nby = \"said\""), ["a", "b"]);
        assert_eq!(gone("keep = { days = 29 }\nby = \"stored\""), ["b"]);
        assert_eq!(gone("keep = { days = 27 }"), ["b", "c", "d"], "stored is the default");
        assert_eq!(gone("keep = { days = 30 }"), [""; 0]);
        assert_eq!(gone("keep = { turns = 3 }\nby = \"said\""), ["a"]);
        assert_eq!(gone("keep = { turns = 1 }"), ["b", "c", "d"]);
        assert_eq!(gone("keep = { turns = 4 }"), [""; 0]);
        assert_eq!(gone("keep = { turns = 1 }\nspeakers = [\"ann\"]"), ["c"], "of the turns that it takes");
        assert_eq!(gone("keep = { days = 1 }\nspeakers = [\"Cy\"]"), [""; 0]);
    }

    #[test]
    fn a_turn_whose_record_has_left_the_log_counts_from_when_the_memory_was_written() {
        let gone = |days: u32, left_before: u64| {
            let file = format!("version = 1\n[[retention]]\nbank = \"b\"\nkeep = {{ days = {days} }}\n");
            let rules = Pipeline::parse(&file).unwrap().retention;
            let known = ms("2024-06-01T00:00:00Z");
            let mut stored = |offset: u64| Ok((offset >= left_before).then_some(known + offset as i64 * DAY_MS));
            outlived(&rules[0], &held(), &BTreeSet::new(), ms(NOW), &mut stored).unwrap()
        };
        // Their memory was written on 10 June, twenty days ago.
        assert_eq!(gone(20, 4), ["b", "c", "d", "a"]);
        assert_eq!(gone(21, 4), [""; 0]);
        // A turn that stays for that reason does not keep others that are known to be old.
        assert_eq!(gone(27, 1), ["c", "d"]);
    }

    #[test]
    fn only_the_turns_that_go_and_one_more_are_looked_up() {
        let file = "version = 1\n[[retention]]\nbank = \"b\"\nkeep = { days = 29 }\n";
        let rules = Pipeline::parse(file).unwrap().retention;
        let mut asked = Vec::new();
        let mut stored = |offset: u64| {
            asked.push(offset);
            Ok(Some(ms("2024-06-01T00:00:00Z") + offset as i64 * DAY_MS))
        };
        outlived(&rules[0], &held(), &BTreeSet::new(), ms(NOW), &mut stored).unwrap();
        assert_eq!(asked, [0, 1]);
    }

    #[test]
    fn what_was_imported_was_stored_before_what_the_log_took() {
        let mut all = held();
        // What the log took first was said first, and has the offset that imported turns have.
        all.iter_mut().for_each(|held| held.offset = 0);
        let imported: BTreeSet<String> = ["b", "c", "d"].map(str::to_owned).into();
        let gone = |keep: &str| {
            let file = format!("version = 1\n[[retention]]\nbank = \"b\"\nkeep = {{ {keep} }}\n");
            let rules = Pipeline::parse(&file).unwrap().retention;
            let mut stored = |_: u64| Ok(Some(ms("2024-06-29T00:00:00Z")));
            outlived(&rules[0], &all, &imported, ms(NOW), &mut stored).unwrap()
        };
        assert_eq!(gone("turns = 1"), ["b", "c", "d"]);
        assert_eq!(gone("turns = 3"), ["b"]);
        assert_eq!(gone("days = 20"), ["b", "c", "d"], "the memory was written twenty days ago");
        assert_eq!(gone("days = 21"), [""; 0]);
    }

    #[test]
    fn a_turn_is_imported_that_is_not_the_first_of_the_log() {
        let home = tempfile::tempdir().unwrap();
        let mut settings = Pipeline::parse("version = 1").unwrap().log;
        settings.directory = home.path().join("log");
        let log = EmbeddedLog::open(&settings).unwrap();
        let bank = Bank::parse("b").unwrap();
        let of_log = || imported(&log, &bank, &held()).unwrap().into_iter().collect::<Vec<_>>();
        assert_eq!(of_log(), ["b"], "the log has no turn, and the others stand at later offsets");
        log.append_turns(&[TurnEvent::Turn(Turn::clone(&held()[0].turn))]).unwrap();
        assert_eq!(of_log(), ["b"], "the log's first turn is another one");
        let own = StoredTurn { offset: 0, ..held()[0].clone() };
        assert_eq!(imported(&log, &bank, &[own]).unwrap(), BTreeSet::new());
    }
}
