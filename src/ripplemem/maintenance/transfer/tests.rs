//! Tests an import whose log fails at each transaction in turn, and an export while the log is written.

use std::{
    ops::ControlFlow,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    BankReader, TransferError, export, export_file::ExportFileReader, export_online, import, import::into_log,
};
use crate::PipelineDriver;
use logs::{
    self, LiveKey, Log, LogEntry, LogError, LogRecord, RawRecord, ReadBatch, ReadProgress, SourceLog, SourceState,
    SourceWriter, Topic, Transaction, TransactionEnd, WritePosition,
};
use types::{
    config::Pipeline,
    model::{Bank, DeadLetter, MemoryKey, TurnEvent},
};

/// A log that fails at a commit, before or after it is done.
struct FailingLog {
    log: Box<dyn Log>,
    left: AtomicU64,
    done: bool,
}

impl SourceLog for FailingLog {
    fn take_source<'a>(&'a self, source: &str) -> Result<(Box<dyn SourceWriter + 'a>, SourceState), LogError> {
        self.log.take_source(source)
    }

    fn id_salt_or(&self, first: Option<types::model::IdSalt>) -> Result<types::model::IdSalt, LogError> {
        self.log.id_salt_or(first)
    }

    fn made_id_salt(&self) -> Result<Option<types::model::IdSalt>, LogError> {
        self.log.made_id_salt()
    }

    fn deletions(&self) -> &logs::DeletionRegistry {
        self.log.deletions()
    }

    fn outcomes(&self) -> &logs::WriteOutcomeRegistry {
        self.log.outcomes()
    }
}

impl Log for FailingLog {
    fn partitions(&self) -> u32 {
        self.log.partitions()
    }
    fn append_turns(&self, events: &[TurnEvent]) -> Result<WritePosition, LogError> {
        self.log.append_turns(events)
    }
    fn append_dead_letters(&self, letters: &[DeadLetter]) -> Result<(), LogError> {
        self.log.append_dead_letters(letters)
    }
    fn own(&self, partition: u32) -> Result<(), LogError> {
        self.log.own(partition)
    }
    fn news(&self) -> &std::sync::Arc<types::wake_signal::WakeSignal> {
        self.log.news()
    }
    fn commit(&self, transaction: &Transaction) -> Result<(), LogError> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            if self.done {
                self.log.commit(transaction)?;
            }
            return Err(LogError::Stopped { directory: "failed".into() });
        }
        self.log.commit(transaction)
    }
    fn read(&self, topic: Topic, partition: u32, from: u64, limit: usize) -> Result<ReadBatch, LogError> {
        self.log.read(topic, partition, from, limit)
    }
    fn end(&self, topic: Topic, partition: u32) -> Result<u64, LogError> {
        self.log.end(topic, partition)
    }
    fn last_transaction(&self, topic: Topic, partition: u32) -> Result<TransactionEnd, LogError> {
        self.log.last_transaction(topic, partition)
    }
    fn generation(&self) -> u32 {
        self.log.generation()
    }
    fn interrupt_next(&self) -> Result<(), LogError> {
        self.log.interrupt_next()
    }
    fn lag(&self, partition: u32, position: u64) -> Result<u64, LogError> {
        self.log.lag(partition, position)
    }
    fn progress(&self, partition: u32) -> Result<ReadProgress, LogError> {
        self.log.progress(partition)
    }
    fn live_keys(&self, partition: u32) -> Result<Option<Vec<LiveKey>>, LogError> {
        self.log.live_keys(partition)
    }
    fn live_records(
        &self,
        partition: u32,
        prefix: &[u8],
        wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        each: &mut dyn FnMut(&LogRecord) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        self.log.live_records(partition, prefix, wanted, each)
    }
    fn entries(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        self.log.entries(prefix)
    }
    fn append_with_entries(&self, events: &[TurnEvent], entries: Vec<LogEntry>) -> Result<WritePosition, LogError> {
        self.log.append_with_entries(events, entries)
    }
    fn replay(&self, partition: u32, each: &mut dyn FnMut(&LogRecord)) -> Result<ReadProgress, LogError> {
        self.log.replay(partition, each)
    }
}

#[test]
fn an_import_that_stops_at_any_transaction_is_continued() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let pipeline = |directory: &Path| {
        let mut pipeline = Pipeline::parse("version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"").unwrap();
        pipeline.log.directory = directory.to_owned();
        pipeline
    };
    let (first, bank) = (pipeline(here.path()), Bank::parse("b").unwrap());
    let turn = |n: usize| {
        let text = format!("Report {n} counts blue boats in harbour {}. {}", n % 7, "They lie there. ".repeat(200));
        let turn = serde_json::json!({"bank": "b", "turn": n.to_string(), "speaker": "Ann", "text": text,
            "time": format!("2024-05-06T{:02}:{:02}:00Z", n / 60, n % 60), "session": "s"});
        TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()
    };
    let mut service = PipelineDriver::open(&first, &mut |_| {}).unwrap();
    service.log().append_turns(&(0..200).map(turn).collect::<Vec<_>>()).unwrap();
    service.catch_up().unwrap();
    drop(service);
    let file = here.path().join("bank.jsonl");
    let exported = export(&first, &bank, &file, &mut |_| {}).unwrap();
    let (mut transactions, mut resumed) = (1, 0);
    for done in [false, true] {
        transactions = 1;
        loop {
            let second = pipeline(&there.path().join(format!("{done}-{transactions}")));
            let log = logs::open(&second.log).unwrap();
            let failing = FailingLog { log, left: AtomicU64::new(transactions), done };
            let stopped = into_log(&second, &failing, &file, ExportFileReader::open(&file).unwrap(), &mut |_| {});
            drop(failing);
            if let Ok(imported) = stopped {
                assert_eq!(imported.digest, exported.digest);
                break;
            }
            let again = import(&second, &file, &mut |_| {}).unwrap();
            assert_eq!((again.written + again.already_there, &again.digest), (exported.records, &exported.digest));
            resumed += u64::from(again.written > 0 && again.already_there > 0);
            transactions += 1;
        }
    }
    assert!(transactions > 3 && resumed > 1, "{transactions} transactions, {resumed} resumed");
}

/// A bank of a log whose turns are edited while it is read: before each read, one of `edits` is extracted.
struct EditedBank<'s> {
    service: &'s mut PipelineDriver,
    bank: Bank,
    edits: Vec<TurnEvent>,
    lists: usize,
}

impl BankReader for EditedBank<'_> {
    fn partition(&self) -> u32 {
        0
    }
    fn live(&mut self) -> Result<Vec<u64>, LogError> {
        self.lists += 1;
        let mut live = Vec::new();
        let mut listed = |_: &[u8], offset| {
            live.push(offset);
            false
        };
        let each = &mut |_: &LogRecord| ControlFlow::Continue(());
        self.service.log().live_records(0, &MemoryKey::prefix(&self.bank), &mut listed, each)?;
        Ok(live)
    }
    fn read(&mut self, from: u64, limit: usize) -> Result<Vec<RawRecord>, LogError> {
        if let Some(edit) = self.edits.pop() {
            self.service.log().append_turns(&[edit])?;
            self.service.catch_up().unwrap();
        }
        let records = self.service.log().read(Topic::Memory, 0, from, limit)?.records;
        Ok(records.into_iter().map(|record| RawRecord { record, headers: Vec::new() }).collect())
    }
}

#[test]
fn an_export_beside_a_writer_is_of_one_moment() {
    let here = tempfile::tempdir().unwrap();
    let mut pipeline = Pipeline::parse("version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"").unwrap();
    pipeline.log.directory = here.path().join("log");
    let bank = Bank::parse("b").unwrap();
    let turn = |n: usize, version: usize| {
        let turn = serde_json::json!({"bank": "b", "turn": n.to_string(), "speaker": "Ann", "version": version,
            "text": format!("Report {n} counts {version} blue boats in harbour {}.", n % 7),
            "time": format!("2024-05-06T{:02}:{:02}:00Z", n / 60, n % 60), "session": "s"});
        TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()
    };
    let mut service = PipelineDriver::open(&pipeline, &mut |_| {}).unwrap();
    service.log().append_turns(&(0..20).map(|n| turn(n, 0)).collect::<Vec<_>>()).unwrap();
    service.catch_up().unwrap();
    let file = here.path().join("bank.jsonl");
    // Each edit replaces a record of the last list before it is read.
    let edits = |count: usize| (1..=count).rev().map(|version| turn(19, version)).collect::<Vec<_>>();
    let mut endless = EditedBank { service: &mut service, bank: bank.clone(), edits: edits(1_000), lists: 0 };
    let refused = export_online(&pipeline, &bank, &file, &mut endless, 0, &mut |_| {});
    assert!(matches!(refused, Err(TransferError::Changing { .. })) && !file.exists(), "{refused:?}");
    let last = 1_001 - endless.edits.len();
    let edits = vec![turn(19, last + 1), turn(19, last)];
    let mut edited = EditedBank { service: &mut service, bank: bank.clone(), edits, lists: 0 };
    let beside = export_online(&pipeline, &bank, &file, &mut edited, 0, &mut |_| {}).unwrap();
    assert_eq!(edited.lists, 3, "each edit needs another list");
    drop(service);
    let alone = export(&pipeline, &bank, &here.path().join("alone.jsonl"), &mut |_| {}).unwrap();
    assert_eq!(beside, alone);
    let lines = |file: &str| std::fs::read_to_string(here.path().join(file)).unwrap();
    assert_eq!(lines("bank.jsonl"), lines("alone.jsonl"), "in the order of the log");
}
