//! Tests an import whose log fails at each transaction in turn.

use std::{
    ops::ControlFlow,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{export, file::FileReader, import, import::into_log};
use crate::{
    log::{
        self, LiveKey, Log, LogEntry, LogError, ReadBatch, Record, SourceLog, SourceState, SourceWriter, Topic,
        Transaction, TransactionEnd, Written,
    },
    pipeline::Service,
};
use nouns::{
    config::Pipeline,
    model::{Bank, DeadLetter, TurnEvent},
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
}

impl Log for FailingLog {
    fn partitions(&self) -> u32 {
        self.log.partitions()
    }
    fn append_turns(&self, events: &[TurnEvent]) -> Result<Written, LogError> {
        self.log.append_turns(events)
    }
    fn append_dead_letters(&self, letters: &[DeadLetter]) -> Result<(), LogError> {
        self.log.append_dead_letters(letters)
    }
    fn own(&self, partition: u32) -> Result<(), LogError> {
        self.log.own(partition)
    }
    fn news(&self) -> &std::sync::Arc<nouns::signal::Signal> {
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
    fn read_position(&self, partition: u32) -> Result<u64, LogError> {
        self.log.read_position(partition)
    }
    fn live_keys(&self, partition: u32) -> Result<Option<Vec<LiveKey>>, LogError> {
        self.log.live_keys(partition)
    }
    fn live_records(
        &self,
        partition: u32,
        prefix: &[u8],
        wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        each: &mut dyn FnMut(&Record) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        self.log.live_records(partition, prefix, wanted, each)
    }
    fn entries(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        self.log.entries(prefix)
    }
    fn append_with_entries(&self, events: &[TurnEvent], entries: Vec<LogEntry>) -> Result<Written, LogError> {
        self.log.append_with_entries(events, entries)
    }
    fn replay(&self, partition: u32, each: &mut dyn FnMut(&Record)) -> Result<u64, LogError> {
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
    let mut service = Service::open(&first, &mut |_| {}).unwrap();
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
            let log = log::open(&second.log).unwrap();
            let failing = FailingLog { log, left: AtomicU64::new(transactions), done };
            let stopped = into_log(&second, &failing, &file, FileReader::open(&file).unwrap(), &mut |_| {});
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
