//! An operation: some turns of a bank that are to be forgotten, as one thing with an id (decision 55).
//!
//! In: a bank and ids of turns. Out: the operation, durable before the first of its deletions, and done with the last.
//! Its id is a function of what it names, so repeating it is harmless. The ids of turns stay beside it until their
//! deletions are written, in batches; a start writes what a crash left unwritten. No operation waits for another's
//! deletions, or for what is read before them. In a directory the ids are removed in the write of their deletions. On
//! Kafka they are removed after it, so a start may write up to a thousand deletions again, which changes nothing.

use crate::log_events;
use std::{
    collections::BTreeSet,
    sync::{Condvar, Mutex},
    time::Instant,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    PipelineError, Replica,
    dead_letter_erasure::empty_letters_of_imported,
    dead_letter_selection::{LetterSelector, empty_letters},
    fingerprints::keep_fingerprints,
    ledger::{ForgetLedger, LedgerLine},
    retention_rule::RetentionRule,
    settings_check::check_key,
};
use logs::{Log, LogEntry, WritePosition};
use types::{
    config::ForgetSettings,
    model::{Bank, TurnDeletion, TurnEvent, holds_contact},
    sync,
};

/// Most deletions of one write.
pub(super) const DELETED_AT_ONCE: usize = 1_000;
/// The prefixes of entries: of an operation until its last stage, and from then on; and of ids that are left to delete.
pub(super) const PENDING: &str = "forget ";
pub(super) const DONE: &str = "forgotten ";
pub(super) const LEFT: &str = "forget-turns ";
/// A prefix that no operation's id has.
const NONE: &str = "none";
/// The entry with the time at which dead letters were emptied whose bytes are still to be erased.
const LETTERS: &str = "emptied letters";
/// The entry with the time of the last scan for words to erase.
const SCANNED: &str = "looked for words";
const HOUR_MS: i64 = 3_600_000;

/// Held while operations are read and written back; never while one reads a bank or writes its deletions.
static CHANGING: Mutex<()> = Mutex::new(());
/// The ids of the operations that a thread is working on: each is carried out by one thread at a time.
static IN_HAND: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
/// Signals that a thread has finished its work on an operation.
static LET_GO: Condvar = Condvar::new();

/// This thread works on the operation until this is dropped. No thread waits for one while it holds [`CHANGING`].
struct OperationGuard(String);

impl OperationGuard {
    /// Waits until no other thread works on the operation.
    fn take(operation: &str) -> Self {
        let mut in_hand = sync::lock(&IN_HAND);
        while !in_hand.insert(operation.to_owned()) {
            in_hand = sync::wait(&LET_GO, in_hand);
        }
        Self(operation.to_owned())
    }
}

impl Drop for OperationGuard {
    fn drop(&mut self) {
        sync::lock(&IN_HAND).remove(&self.0);
        LET_GO.notify_all();
    }
}

/// What a pass took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Erased")]
pub struct ErasureReport {
    /// Records of the turns log that were emptied.
    pub turns: u64,
    /// Dead letters that were emptied.
    pub dead_letters: u64,
    /// Bytes that were written to replace the files of the log.
    pub rewritten_bytes: u64,
}

/// Turns of a bank that are forgotten together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetOperation {
    /// Its id: 32 hexadecimal digits, a function of the bank and the turns.
    pub operation: String,
    /// The bank.
    pub bank: Bank,
    /// How many turns it names.
    pub turns: u64,
    /// When it was asked for, in milliseconds since 1970.
    pub requested_ms: i64,
    /// The time by which their words are out of every stored byte; `None` if only a request erases, and on Kafka, where
    /// topic settings decide.
    pub due_ms: Option<i64>,
    /// Where its last deletion is, as text of [`WritePosition`]; `None` while some are still to be written.
    pub after: Option<String>,
    /// When answers stopped reflecting them.
    pub hidden_ms: Option<i64>,
    /// When the other turns of their windows were extracted again, by the language model if one extracts.
    pub rebuilt_ms: Option<i64>,
    /// When their words were out of every stored byte, and the report of that pass.
    pub erased: Option<(i64, ErasureReport)>,
    /// Dead letters that were emptied with it, because they state the same speaker or bank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letters: Option<u64>,
    /// The rule that deleted them; `None` if a person asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionRule>,
}

/// Deletions that are durable.
#[derive(Debug, Clone)]
pub struct DurableDeletion {
    /// Where they are; empty if they had been written before.
    pub written: WritePosition,
    /// Their operation.
    pub operation: ForgetOperation,
}

/// The progress of a memory, by which operations are settled.
pub struct MemoryProgress<'s> {
    /// Whether answers reflect what was written.
    pub reflects: &'s dyn Fn(&WritePosition) -> bool,
    /// Whether windows of a bank are to be extracted again.
    pub is_in_part: &'s dyn Fn(&Bank) -> bool,
    /// Closed windows that wait for the language model; `None` if only another process knows that.
    pub waiting_for_model: Option<u64>,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// The operations of a log.
#[derive(Clone, Copy)]
pub struct ForgetOperationStore<'l> {
    pub(super) log: &'l dyn Log,
    pub(super) settings: &'l ForgetSettings,
}

impl<'l> ForgetOperationStore<'l> {
    /// The operations of a log.
    pub fn of(log: &'l dyn Log, settings: &'l ForgetSettings) -> Self {
        Self { log, settings }
    }

    /// Forgets turns, by a rule if one is given, and returns once their deletions are durable. A repeated request does
    /// nothing again.
    pub fn begin(
        &self,
        bank: &Bank,
        turns: Vec<String>,
        now_ms: i64,
        retention: Option<RetentionRule>,
    ) -> Result<DurableDeletion, PipelineError> {
        let turns: BTreeSet<String> = turns.into_iter().collect();
        for (index, turn) in turns.iter().enumerate() {
            deletion(bank, turn).check().map_err(|problem| PipelineError::Turn { index, problem })?;
        }
        // Without the secret there is no receipt, so nothing is deleted.
        check_key(self.settings)?;
        let (operation, bank) = (id_of(bank, &turns), bank.clone());
        self.carry_out(LedgerLine { operation, bank, requested_ms: now_ms, turns, retention })
    }

    fn carry_out(&self, line: LedgerLine) -> Result<DurableDeletion, PipelineError> {
        let _in_hand = OperationGuard::take(&line.operation);
        if let Some(known) = self.find(&line.operation)? {
            return self.finish(known);
        }
        self.prepare(&line)?;
        let line = self.hidden(line)?;
        let operation = {
            let _changing = sync::lock(&CHANGING);
            if let Some(path) = &self.settings.ledger {
                ForgetLedger::at(path).add(&line)?;
            }
            self.put(line)?
        };
        self.finish(operation)
    }

    /// Writes deletions that a crash left unwritten, and those of the ledger that this log has never had, in banks that
    /// pass. Returns how many operations it finished.
    pub fn resume(&self, passes: &dyn Fn(&Bank) -> bool) -> Result<usize, PipelineError> {
        let lines = match &self.settings.ledger {
            Some(path) => {
                let _changing = sync::lock(&CHANGING);
                ForgetLedger::at(path).lines()?
            }
            None => Vec::new(),
        };
        for line in lines.into_iter().filter(|line| passes(&line.bank)) {
            let _in_hand = OperationGuard::take(&line.operation);
            if self.find(&line.operation)?.is_none() {
                self.prepare(&line)?;
                let _changing = sync::lock(&CHANGING);
                self.put(line)?;
            }
        }
        let is_begun = |of: &ForgetOperation| of.after.is_none() && passes(&of.bank);
        let mut count = 0;
        for begun in self.pending()?.into_iter().filter(is_begun) {
            let _in_hand = OperationGuard::take(&begun.operation);
            // A request may have finished it meanwhile.
            if let Some(operation) = self.find(&begun.operation)?.filter(is_begun) {
                count += usize::from(passed_over(self.log, self.finish(operation))?.is_some());
            }
        }
        Ok(count)
    }

    /// All operations, the latest first.
    pub fn all(&self) -> Result<Vec<ForgetOperation>, PipelineError> {
        let mut all = self.pending()?;
        all.extend(self.with_prefix(DONE)?);
        all.sort_by(|a: &ForgetOperation, b| (b.requested_ms, &b.operation).cmp(&(a.requested_ms, &a.operation)));
        Ok(all)
    }

    /// An operation, by its id.
    pub fn find(&self, id: &str) -> Result<Option<ForgetOperation>, PipelineError> {
        let found = self.with_prefix(&format!("{PENDING}{id}"))?.pop();
        Ok(match found {
            Some(found) => Some(found),
            None => self.with_prefix(&format!("{DONE}{id}"))?.pop(),
        })
    }

    /// The operations that have not reached their last stage.
    fn pending(&self) -> Result<Vec<ForgetOperation>, PipelineError> {
        self.with_prefix(PENDING)
    }

    fn with_prefix(&self, prefix: &str) -> Result<Vec<ForgetOperation>, PipelineError> {
        let entries = self.log.entries(prefix)?;
        let operations = entries.iter().map(|(name, value)| passed_over(self.log, read(name, value)));
        operations.filter_map(Result::transpose).collect()
    }

    /// Notes which stages operations have reached, and returns those that may reach further stages: on a log whose
    /// records are erased, those whose words are not erased yet.
    pub fn settle(&self, settled: &MemoryProgress<'_>) -> Result<Vec<ForgetOperation>, PipelineError> {
        let _changing = sync::lock(&CHANGING);
        let (mut pending, mut changed) = (self.pending()?, Vec::new());
        // If nothing is erased here, the last stage that this process can know of is the final one.
        let is_erasable = self.log.erasable().is_some();
        let is_over = |of: &ForgetOperation| match settled.waiting_for_model {
            _ if is_erasable => false,
            Some(_) => of.rebuilt_ms.is_some(),
            None => of.hidden_ms.is_some(),
        };
        for operation in &mut pending {
            let before = operation.clone();
            let after = operation.after.as_deref().and_then(|after| WritePosition::parse(after, self.log.partitions()));
            if operation.hidden_ms.is_none()
                && after.is_some_and(|after| (settled.reflects)(&after.of_bank(&operation.bank)))
            {
                operation.hidden_ms = Some(settled.now_ms);
            }
            let is_rebuilt = || settled.waiting_for_model == Some(0) && !(settled.is_in_part)(&operation.bank);
            if operation.hidden_ms.is_some() && is_rebuilt() {
                operation.rebuilt_ms.get_or_insert(settled.now_ms);
            }
            if is_over(operation) {
                // In this order, so that a crash in between leaves one of the two entries.
                changed.push(entry(DONE, operation)?);
                changed.push((format!("{PENDING}{}", operation.operation), None));
            } else if *operation != before {
                changed.push(entry(PENDING, operation)?);
            }
        }
        if !changed.is_empty() {
            self.log.append_with_entries(&[], changed)?;
        }
        pending.retain(|operation| !is_over(operation));
        Ok(pending)
    }

    /// Notes that the words of these operations are out of every stored byte.
    pub(super) fn note_erased(
        &self,
        operations: &BTreeSet<String>,
        erased: ErasureReport,
        now_ms: i64,
    ) -> Result<(), PipelineError> {
        let _changing = sync::lock(&CHANGING);
        let mut entries = vec![looked(now_ms), (LETTERS.to_owned(), None)];
        for mut operation in self.pending()?.into_iter().filter(|of| operations.contains(&of.operation)) {
            operation.erased = Some((now_ms, erased));
            entries.push((format!("{PENDING}{}", operation.operation), None));
            entries.push(entry(DONE, &operation)?);
        }
        self.log.append_with_entries(&[], entries)?;
        Ok(())
    }

    /// Empties the dead letters that a selector selects, and notes their number in a waiting operation. Their bytes are
    /// erased within the same time as those of turns.
    pub fn empty_letters(
        &self,
        select: &LetterSelector,
        operation: Option<&str>,
        now_ms: i64,
    ) -> Result<u64, PipelineError> {
        let count = empty_letters(self.log, select, &|bank| self.settings.hold_of(bank).is_some())?;
        if count == 0 {
            return Ok(0);
        }
        let _changing = sync::lock(&CHANGING);
        let mut entries = Vec::new();
        if self.emptied_letters_since_ms()?.is_none() {
            entries.push((LETTERS.to_owned(), Some(now_ms.to_string().into_bytes())));
        }
        for mut operation in self.with_prefix(&format!("{PENDING}{}", operation.unwrap_or(NONE)))? {
            operation.dead_letters = Some(operation.dead_letters.unwrap_or(0) + count);
            entries.push(entry(PENDING, &operation)?);
        }
        self.log.append_with_entries(&[], entries)?;
        Ok(count)
    }

    /// The time since which emptied dead letters wait for a pass, in milliseconds since 1970.
    pub(super) fn emptied_letters_since_ms(&self) -> Result<Option<i64>, PipelineError> {
        self.time_of(LETTERS)
    }

    /// The time of the last scan for words to erase, in milliseconds since 1970.
    pub(super) fn last_scan_ms(&self) -> Result<Option<i64>, PipelineError> {
        self.time_of(SCANNED)
    }

    fn time_of(&self, name: &str) -> Result<Option<i64>, PipelineError> {
        let entries = self.log.entries(name)?;
        Ok(entries.first().and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok()))
    }

    /// Notes that a scan for words to erase was made.
    pub(super) fn note_scan(&self, now_ms: i64) -> Result<(), PipelineError> {
        self.log.append_with_entries(&[], vec![looked(now_ms)])?;
        Ok(())
    }

    /// The operation with ids that hold no phone number and no mail address. Its own id stays the same, and it names
    /// the same turns.
    fn hidden(&self, line: LedgerLine) -> Result<LedgerLine, PipelineError> {
        if !line.turns.iter().any(|turn| holds_contact(turn)) {
            return Ok(line);
        }
        let salt = self.log.id_salt()?;
        Ok(LedgerLine { turns: line.turns.iter().map(|turn| salt.hide(turn)).collect(), ..line })
    }

    /// Does what needs the words of turns, while the memory still has them.
    fn prepare(&self, line: &LedgerLine) -> Result<(), PipelineError> {
        keep_fingerprints(self.settings, self.log, line)?;
        empty_letters_of_imported(self.log, line)
    }

    /// Makes the operation durable, with the ids of its turns, in one write.
    fn put(&self, line: LedgerLine) -> Result<ForgetOperation, PipelineError> {
        let LedgerLine { operation, bank, requested_ms, turns, retention } = line;
        let hours = if self.log.erasable().is_some() { self.settings.erase_within_hours } else { 0 };
        let within_ms = i64::try_from(hours).unwrap_or(i64::MAX).saturating_mul(HOUR_MS);
        let operation = ForgetOperation {
            operation,
            bank,
            turns: turns.len() as u64,
            requested_ms,
            due_ms: (hours > 0).then(|| requested_ms.saturating_add(within_ms)),
            after: None,
            hidden_ms: None,
            rebuilt_ms: None,
            erased: None,
            dead_letters: None,
            retention,
        };
        let turns: Vec<&String> = turns.iter().collect();
        let mut entries = Vec::new();
        for (number, some) in turns.chunks(DELETED_AT_ONCE).enumerate() {
            entries
                .push((format!("{LEFT}{} {number:08}", operation.operation), Some(json(&operation.operation, &some)?)));
        }
        // Written last: an operation whose ids are not all written does not exist, wherever a crash ends the write.
        entries.push(entry(PENDING, &operation)?);
        self.log.append_with_entries(&[], entries)?;
        Ok(operation)
    }

    /// Writes the remaining deletions of an operation.
    fn finish(&self, mut operation: ForgetOperation) -> Result<DurableDeletion, PipelineError> {
        let mut written = WritePosition::nothing(self.log.partitions()).of_bank(&operation.bank);
        if let Some(after) =
            operation.after.as_deref().and_then(|after| WritePosition::parse(after, self.log.partitions()))
        {
            return Ok(DurableDeletion { written: after, operation });
        }
        for (name, turns) in self.log.entries(&format!("{LEFT}{} ", operation.operation))? {
            let turns: Vec<String> = serde_json::from_slice(&turns).map_err(|e| unreadable(&name, &e))?;
            let deletions: Vec<TurnEvent> = turns.iter().map(|turn| deletion(&operation.bank, turn)).collect();
            let some = self.log.append_with_entries(&deletions, vec![(name, None)])?;
            some.partition_ends().for_each(|(partition, next)| written.extend(partition, next));
        }
        // If a crash came between the last deletions and this, the end of the durable turns covers them.
        if written.partition_ends().next().is_none() {
            let partition = logs::partition_of(&operation.bank, self.log.partitions());
            written.extend(partition, self.log.end_of_turns(partition)?);
        }
        operation.after = Some(written.to_string());
        // Until here no scan of the operations has changed this one: nothing that it wrote was known to be reflected.
        let _changing = sync::lock(&CHANGING);
        self.log.append_with_entries(&[], vec![entry(PENDING, &operation)?])?;
        Ok(DurableDeletion { written, operation })
    }
}

fn looked(now_ms: i64) -> LogEntry {
    (SCANNED.to_owned(), Some(now_ms.to_string().into_bytes()))
}

/// Calls `with` with what a replica reflects now.
pub fn with_memory_progress<T>(
    replica: &Replica,
    waiting_for_model: Option<u64>,
    with: &mut dyn FnMut(&MemoryProgress<'_>) -> T,
) -> T {
    let now = Instant::now();
    let reflects = |written: &WritePosition| replica.wait_for(written, now);
    let is_in_part = |bank: &Bank| replica.is_in_part(bank);
    let now_ms = jiff::Timestamp::now().as_millisecond();
    with(&MemoryProgress { reflects: &reflects, is_in_part: &is_in_part, waiting_for_model, now_ms })
}

/// The id of an operation on these turns.
fn id_of(bank: &Bank, turns: &BTreeSet<String>) -> String {
    let mut hash = blake3::Hasher::new();
    for field in std::iter::once(bank.as_str()).chain(turns.iter().map(String::as_str)) {
        hash.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
    }
    hash.finalize().to_hex()[..32].to_owned()
}

fn deletion(bank: &Bank, turn: &str) -> TurnEvent {
    TurnEvent::Deletion(TurnDeletion::permanent(bank.clone(), turn.to_owned()))
}

fn entry(prefix: &str, operation: &ForgetOperation) -> Result<LogEntry, PipelineError> {
    Ok((format!("{prefix}{}", operation.operation), Some(json(&operation.operation, operation)?)))
}

fn json(operation: &str, value: &impl Serialize) -> Result<Vec<u8>, PipelineError> {
    serde_json::to_vec(value).map_err(|e| unreadable(operation, &e))
}

fn read(name: &str, value: &[u8]) -> Result<ForgetOperation, PipelineError> {
    serde_json::from_slice(value).map_err(|e| unreadable(name, &e))
}

/// Skips an entry that cannot be read, if other programs may have written it; logs each once.
fn passed_over<T>(log: &dyn Log, read: Result<T, PipelineError>) -> Result<Option<T>, PipelineError> {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    match read {
        Err(PipelineError::Forget { what, problem }) if log.erasable().is_none() => {
            if sync::lock(&SAID).insert(format!("{what}: {problem}")) {
                log_events::operation_passed_over(&what, &problem);
            }
            Ok(None)
        }
        read => read.map(Some),
    }
}

fn unreadable(name: &str, error: &serde_json::Error) -> PipelineError {
    PipelineError::Forget { what: format!("the operation {name:?} in the log"), problem: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logs::{EmbeddedLog, Topic};
    use types::config::Pipeline;

    fn open(home: &std::path::Path) -> EmbeddedLog {
        let mut settings = Pipeline::parse("version = 1").unwrap().log;
        settings.directory = home.join("log");
        EmbeddedLog::open(&settings).unwrap()
    }

    fn deleted(log: &EmbeddedLog) -> BTreeSet<String> {
        let records = log.read(Topic::Turns, 0, 0, 100_000).unwrap().records;
        let turn = |value: &[u8]| match TurnEvent::from_json(value).unwrap() {
            TurnEvent::Deletion(deletion) => deletion.turn,
            other => panic!("{other:?}"),
        };
        records.iter().map(|record| turn(record.value.as_deref().unwrap())).collect()
    }

    /// Ends a process at each step of an operation of three writes.
    #[test]
    fn whatever_a_crash_left_over_is_written_by_the_next_start() {
        let settings = ForgetSettings::default();
        let bank = Bank::parse("b").unwrap();
        let turns: BTreeSet<String> = (0..2 * DELETED_AT_ONCE + 5).map(|n| n.to_string()).collect();
        for writes in 0..=3 {
            let home = tempfile::tempdir().unwrap();
            let log = open(home.path());
            let forgets = ForgetOperationStore { log: &log, settings: &settings };
            let (operation, of) = (id_of(&bank, &turns), bank.clone());
            let line = LedgerLine { operation, bank: of, requested_ms: 7, turns: turns.clone(), retention: None };
            let operation = forgets.put(line).unwrap();
            for (name, ids) in log.entries(LEFT).unwrap().into_iter().take(writes) {
                let ids: Vec<String> = serde_json::from_slice(&ids).unwrap();
                let events: Vec<TurnEvent> = ids.iter().map(|id| deletion(&bank, id)).collect();
                log.append_with_entries(&events, vec![(name, None)]).unwrap();
            }
            assert_eq!(deleted(&log).len(), turns.len().min(writes * DELETED_AT_ONCE));
            drop(log);
            let log = open(home.path());
            let forgets = ForgetOperationStore { log: &log, settings: &settings };
            assert_eq!(forgets.resume(&|_| true).unwrap(), 1, "after {writes} writes");
            assert_eq!(deleted(&log), turns);
            assert_eq!(log.end(Topic::Turns, 0).unwrap(), turns.len() as u64, "each once");
            assert_eq!(log.entries(LEFT).unwrap(), []);
            assert_eq!(forgets.resume(&|_| true).unwrap(), 0);
            let known = forgets.find(&operation.operation).unwrap().unwrap();
            assert_eq!(known.after, Some(format!("0:{}", turns.len() - 1)));
        }
    }

    #[test]
    fn an_operation_of_an_earlier_build_is_read() {
        let json = concat!(
            r#"{"operation":"1","bank":"b","turns":2,"requested_ms":7,"due_ms":null,"after":null,"#,
            r#""hidden_ms":null,"rebuilt_ms":null,"erased":null}"#
        )
        .as_bytes();
        let operation = read("forget 1", json).unwrap();
        assert_eq!((operation.retention.as_ref(), operation.turns), (None, 2));
        assert_eq!(serde_json::to_vec(&operation).unwrap(), json);
    }

    #[test]
    fn an_id_names_a_bank_and_a_set_of_turns() {
        let (a, b) = (Bank::parse("a").unwrap(), Bank::parse("a/b").unwrap());
        let turns = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
        let of = [
            id_of(&a, &turns(&["1", "2"])),
            id_of(&a, &turns(&["12"])),
            id_of(&a, &turns(&["1"])),
            id_of(&b, &turns(&["1", "2"])),
        ];
        assert_eq!(of.iter().collect::<BTreeSet<_>>().len(), 4);
        assert_eq!(of[0], id_of(&a, &turns(&["2", "1"])));
    }

    #[test]
    fn the_same_request_from_several_threads_is_one_operation() {
        let (home, settings) = (tempfile::tempdir().unwrap(), ForgetSettings::default());
        let (log, bank) = (open(home.path()), Bank::parse("b").unwrap());
        let turns: Vec<String> = (0..50).map(|n| n.to_string()).collect();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    ForgetOperationStore { log: &log, settings: &settings }
                        .begin(&bank, turns.clone(), 7, None)
                        .unwrap()
                });
            }
        });
        assert_eq!(log.end(Topic::Turns, 0).unwrap(), 50, "each deletion once");
    }

    /// The key file is a pipe, so that the test knows where the first operation is, and holds it there.
    #[cfg(unix)]
    #[test]
    fn an_operation_that_reads_its_bank_keeps_no_other_waiting() {
        use std::{sync::mpsc, time::Duration};

        let home = tempfile::tempdir().unwrap();
        let (log, pipe) = (open(home.path()), home.path().join("key"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let slow = ForgetSettings {
            key_file: Some(pipe.clone()),
            fingerprints: Some(home.path().join("fingerprints")),
            ..ForgetSettings::default()
        };
        let quick = ForgetSettings::default();
        let of = |settings: &ForgetSettings, bank: &str| {
            let (bank, turns) = (Bank::parse(bank).unwrap(), BTreeSet::from(["1".to_owned()]));
            let line = LedgerLine { operation: id_of(&bank, &turns), bank, requested_ms: 7, turns, retention: None };
            ForgetOperationStore { log: &log, settings }.carry_out(line).unwrap()
        };
        let (done, is_done) = mpsc::channel();
        std::thread::scope(|scope| {
            let first = scope.spawn(|| of(&slow, "slow"));
            // Opens once the operation reads the secret, which it does before it reads its bank.
            let mut secret = std::fs::File::options().write(true).open(&pipe).unwrap();
            scope.spawn(|| done.send(of(&quick, "quick").operation.turns));
            let other = is_done.recv_timeout(Duration::from_secs(60));
            let was_in_hand = !first.is_finished();
            std::io::Write::write_all(&mut secret, b"a long random secret").unwrap();
            drop(secret);
            first.join().unwrap();
            assert_eq!((other, was_in_hand), (Ok(1), true));
        });
        assert_eq!(log.end(Topic::Turns, 0).unwrap(), 2);
    }

    #[test]
    fn a_turn_that_cannot_be_is_refused_before_anything_is_written() {
        let (home, settings) = (tempfile::tempdir().unwrap(), ForgetSettings::default());
        let log = open(home.path());
        let forgets = ForgetOperationStore { log: &log, settings: &settings };
        let refused = forgets.begin(&Bank::parse("b").unwrap(), vec!["1".to_owned(), String::new()], 0, None);
        assert!(matches!(refused, Err(PipelineError::Turn { .. })));
        assert_eq!((log.entries("").unwrap(), log.end(Topic::Turns, 0).unwrap()), (vec![], 0));
    }

    #[test]
    fn without_the_secret_nothing_is_written() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| Some(home.path().join(name));
        let settings = ForgetSettings { key_file: path("key"), ledger: path("ledger"), ..ForgetSettings::default() };
        let log = open(home.path());
        let forgets = ForgetOperationStore { log: &log, settings: &settings };
        let begin = || forgets.begin(&Bank::parse("b").unwrap(), vec!["1".to_owned()], 0, None);
        let refused = begin().unwrap_err().to_string();
        assert!(refused.contains("forget.key_file"), "{refused}");
        assert!(!home.path().join("ledger").exists());
        assert_eq!((log.entries("").unwrap(), log.end(Topic::Turns, 0).unwrap()), (vec![], 0));
        std::fs::write(home.path().join("key"), "a long random secret").unwrap();
        assert_eq!(begin().unwrap().operation.turns, 1);
    }
}
