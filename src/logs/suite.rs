//! The tests that every log must pass.
//!
//! In: a function that opens a log by name (three partitions; the same name opens the same log).
//! Out: nothing, or a failed assertion. A log may remove superseded records late, so the tests look
//! at the last record of a key only. Offsets may have gaps.

use std::{collections::BTreeMap, ops::ControlFlow};

use super::{Log, LogError, LogRecord, ReadProgress, Topic, Transaction, partition_of};
use types::model::{Bank, DeadLetter, SessionEnd, Turn, TurnEvent};

/// Partitions of every log under test.
pub(super) const PARTITIONS: u32 = 3;

/// Runs all tests of the suite.
pub(super) fn run(open: impl Fn(&str) -> Box<dyn Log>) {
    turns_keep_their_order_in_their_banks_partition(&*open("turns"));
    a_read_is_limited_and_starts_anywhere(&*open("limits"));
    a_key_written_again_is_replaced(&*open("keys"));
    a_null_deletes_a_key(&|| open("nulls"));
    live_records_are_listed_by_prefix(&|| open("listed"));
    entries_are_kept(&|| open("entries"));
    a_transaction_is_written_as_a_whole(&|| open("transactions"));
    a_refused_transaction_writes_nothing(&*open("refused"));
    the_lag_is_counted(&|| open("lag"));
    everything_survives_reopening(&|| open("reopened"));
    unknown_partitions_are_refused(&*open("unknown"));
}

/// A turn of `bank` whose text contains `number`.
pub(super) fn turn(bank: &str, number: usize) -> TurnEvent {
    TurnEvent::Turn(Turn {
        bank: Bank::parse(bank).unwrap(),
        turn: format!("t{number}"),
        version: 0,
        speaker: "Ada".to_owned(),
        kind: None,
        text: format!("This is turn number {number}."),
        time: types::model::EventTime::parse("2024-05-08T13:56:00Z").unwrap(),
        session: None,
        thread: None,
        reply_to: None,
        attachments: Vec::new(),
        metadata: None,
        recall: true,
    })
}

/// A bank in partition `partition`.
pub(super) fn bank_in(partition: u32) -> String {
    (0..)
        .map(|n| format!("bank-{n}"))
        .find(|b| partition_of(&Bank::parse(b).unwrap(), PARTITIONS) == partition)
        .unwrap()
}

/// All records from `from` on.
pub(super) fn all(log: &dyn Log, topic: Topic, partition: u32, from: u64) -> Vec<LogRecord> {
    let records = log.read(topic, partition, from, usize::MAX).unwrap().records;
    assert!(records.windows(2).all(|w| w[0].offset < w[1].offset), "offsets grow");
    assert!(records.first().is_none_or(|r| r.offset >= from));
    assert!(records.last().is_none_or(|r| r.offset < log.end(topic, partition).unwrap()));
    records
}

fn the_lag_is_counted(open: &dyn Fn() -> Box<dyn Log>) {
    {
        let log = open();
        assert_eq!(log.lag(0, 0).unwrap(), 0);
        let written: Vec<TurnEvent> = (0..5).map(|n| turn(&bank_in(0), n)).collect();
        log.append_turns(&written).unwrap();
        assert_eq!(log.lag(0, 0).unwrap(), 5);
        assert_eq!(log.lag(0, 3).unwrap(), 2);
        let read = all(&*log, Topic::Turns, 0, 0);
        log.commit(&transaction(5, &[("a", Some("1"))])).unwrap();
        assert_eq!((read.len(), log.lag(0, 5).unwrap()), (5, 0));
        log.append_turns(&written).unwrap();
        assert_eq!(log.lag(0, 5).unwrap(), 5);
    }
    assert_eq!(open().lag(0, 5).unwrap(), 5);
}

/// The live values of a memory partition by key.
pub(super) fn live_values(log: &dyn Log, partition: u32) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for record in all(log, Topic::Memory, partition, 0) {
        let key = String::from_utf8(record.key).unwrap();
        match record.value {
            Some(value) => values.insert(key, String::from_utf8(value).unwrap()),
            None => values.remove(&key),
        };
    }
    values
}

/// The key of a record of the memory.
#[cfg(feature = "kafka")]
pub(super) fn key_of(bank: &str) -> Vec<u8> {
    use types::model::{MemoryKey, SessionId, WindowId};
    let window = WindowId { session: SessionId("s".to_owned()), start: 0 };
    MemoryKey { bank: Bank::parse(bank).unwrap(), window, turn: None, part: 0 }.to_bytes()
}

/// A transaction on a partition that covers input up to `next_offset`.
#[cfg(feature = "kafka")]
pub(super) fn transaction_at(partition: u32, next_offset: u64) -> Transaction {
    Transaction { partition, next_offset, ..Transaction::default() }
}

/// A transaction on partition 0 that covers input up to `next_offset`.
pub(super) fn transaction(next_offset: u64, memory: &[(&str, Option<&str>)]) -> Transaction {
    Transaction {
        partition: 0,
        next_offset,
        memory: memory.iter().map(|(k, v)| (k.as_bytes().to_vec(), v.map(|v| v.as_bytes().to_vec()))).collect(),
        ..Transaction::default()
    }
}

fn letter(number: usize) -> DeadLetter {
    DeadLetter::new(format!("file:{number}"), "not JSON; write JSON".to_owned(), b"{")
}

fn letters(log: &dyn Log) -> Vec<DeadLetter> {
    let records = all(log, Topic::DeadLetters, 0, 0);
    records.iter().map(|r| serde_json::from_slice(r.value.as_deref().unwrap()).unwrap()).collect()
}

fn events(log: &dyn Log, partition: u32) -> Vec<TurnEvent> {
    let records = all(log, Topic::Turns, partition, 0);
    records.iter().map(|r| TurnEvent::from_json(r.value.as_deref().unwrap()).unwrap()).collect()
}

fn pairs(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn turns_keep_their_order_in_their_banks_partition(log: &dyn Log) {
    assert_eq!(log.partitions(), PARTITIONS);
    let banks: Vec<String> = (0..20).map(|n| format!("team/{n}")).collect();
    let written: Vec<TurnEvent> = (0..200).map(|n| turn(&banks[n * 7 % banks.len()], n)).collect();
    for batch in written.chunks(33) {
        log.append_turns(batch).unwrap();
    }
    log.append_turns(&[]).unwrap();
    let mut seen = 0;
    for partition in 0..PARTITIONS {
        let read = events(log, partition);
        let expected: Vec<TurnEvent> =
            written.iter().filter(|e| partition_of(e.bank(), PARTITIONS) == partition).cloned().collect();
        assert_eq!(read, expected, "partition {partition}");
        let records = all(log, Topic::Turns, partition, 0);
        assert!(records.iter().zip(&read).all(|(r, e)| r.key == e.bank().as_str().as_bytes()));
        assert!(records.iter().all(|r| r.append_ms > 1_600_000_000_000), "append time in milliseconds");
        seen += read.len();
    }
    assert_eq!(seen, 200);
}

fn a_read_is_limited_and_starts_anywhere(log: &dyn Log) {
    let bank = bank_in(1);
    let written: Vec<TurnEvent> = (0..10).map(|n| turn(&bank, n)).collect();
    log.append_turns(&written).unwrap();
    let whole = all(log, Topic::Turns, 1, 0);
    assert_eq!(whole.len(), 10);
    assert_eq!(log.read(Topic::Turns, 1, 0, 3).unwrap().records, whole[..3]);
    assert_eq!(log.read(Topic::Turns, 1, whole[4].offset, 100).unwrap().records, whole[4..]);
    assert_eq!(log.read(Topic::Turns, 1, 0, 0).unwrap().records, []);
    assert_eq!(log.read(Topic::Turns, 1, log.end(Topic::Turns, 1).unwrap(), 1).unwrap().records, []);
    assert_eq!(log.read(Topic::Turns, 1, u64::MAX, 1).unwrap().records, []);
    assert_eq!(log.end(Topic::Turns, 0).unwrap(), 0);
    assert_eq!(all(log, Topic::Turns, 0, 0), []);
}

fn a_key_written_again_is_replaced(log: &dyn Log) {
    log.commit(&transaction(0, &[("a", Some("1")), ("b", Some("1"))])).unwrap();
    // A busy broker may report an end that is out of date, so the offset after what was read is used as the end.
    assert_eq!(live_values(log, 0).len(), 2);
    let before = all(log, Topic::Memory, 0, 0).last().unwrap().offset + 1;
    log.commit(&transaction(0, &[("a", Some("2"))])).unwrap();
    assert_eq!(live_values(log, 0), pairs(&[("a", "2"), ("b", "1")]));
    let late = all(log, Topic::Memory, 0, before);
    assert_eq!(late.len(), 1, "a live reader sees the replacement");
    assert_eq!((late[0].key.as_slice(), late[0].value.as_deref()), (&b"a"[..], Some(&b"2"[..])));
    // If a transaction has two records of the same key, the last one counts.
    log.commit(&transaction(0, &[("c", Some("1")), ("c", Some("2")), ("d", Some("1")), ("d", None)])).unwrap();
    assert_eq!(live_values(log, 0), pairs(&[("a", "2"), ("b", "1"), ("c", "2")]));
    // Partitions do not share keys.
    log.commit(&Transaction { partition: 2, ..transaction(0, &[("a", Some("far"))]) }).unwrap();
    assert_eq!(live_values(log, 0).get("a").map(String::as_str), Some("2"));
    assert_eq!(live_values(log, 2), pairs(&[("a", "far")]));
    // An empty value is a value.
    log.commit(&transaction(0, &[("a", Some(""))])).unwrap();
    assert_eq!(live_values(log, 0).get("a").map(String::as_str), Some(""));
}

fn a_null_deletes_a_key(open: &dyn Fn() -> Box<dyn Log>) {
    {
        let log = open();
        log.commit(&transaction(0, &[("a", Some("1")), ("b", Some("1"))])).unwrap();
        let before = log.end(Topic::Memory, 0).unwrap();
        log.commit(&transaction(0, &[("a", None)])).unwrap();
        let late = all(&*log, Topic::Memory, 0, before);
        assert!(late.iter().any(|r| r.key == b"a" && r.value.is_none()), "a lagging reader sees the deletion");
        assert_eq!(live_values(&*log, 0), pairs(&[("b", "1")]));
        // Deleting an unknown or deleted key changes nothing.
        log.commit(&transaction(0, &[("never", None), ("a", None)])).unwrap();
        assert_eq!(live_values(&*log, 0), pairs(&[("b", "1")]));
    }
    let log = open();
    assert_eq!(live_values(&*log, 0), pairs(&[("b", "1")]));
    let end = log.end(Topic::Memory, 0).unwrap();
    log.commit(&transaction(0, &[("a", Some("again"))])).unwrap();
    assert_eq!(live_values(&*log, 0), pairs(&[("a", "again"), ("b", "1")]));
    assert_eq!(all(&*log, Topic::Memory, 0, end).len(), 1, "an offset is never used twice");
}

/// The live records whose keys begin with `prefix`: keys and values, without those that are at these offsets.
fn listed(log: &dyn Log, prefix: &str, without: &[u64]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let wanted = &mut |key: &[u8], offset: u64| {
        assert!(key.starts_with(prefix.as_bytes()));
        !without.contains(&offset)
    };
    log.live_records(0, prefix.as_bytes(), wanted, &mut |record| {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        found.push((text(&record.key), text(record.value.as_deref().unwrap())));
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

fn live_records_are_listed_by_prefix(open: &dyn Fn() -> Box<dyn Log>) {
    let listed_are = |log: &dyn Log, expected: &[(&str, &str)]| {
        let expected: Vec<_> = expected.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(listed(log, "a", &[]), expected);
    };
    {
        let log = open();
        let bank = bank_in(0);
        log.append_turns(&(0..3).map(|n| turn(&bank, n)).collect::<Vec<_>>()).unwrap();
        listed_are(&*log, &[]);
        log.commit(&transaction(1, &[("ab", Some("1")), ("b", Some("1")), ("aa", Some("1"))])).unwrap();
        listed_are(&*log, &[("aa", "1"), ("ab", "1")]);
        let bank = Bank::parse(&bank).unwrap();
        assert_eq!(log.listed_to(&bank).unwrap(), 1);
        // What is added is seen, in the order of the keys; records before it are read again.
        log.commit(&transaction(2, &[("aa", Some("2")), ("ac", Some("1"))])).unwrap();
        listed_are(&*log, &[("aa", "2"), ("ab", "1"), ("ac", "1")]);
        log.commit(&transaction(3, &[("ab", None)])).unwrap();
        listed_are(&*log, &[("aa", "2"), ("ac", "1")]);
        let first =
            all(&*log, Topic::Memory, 0, 0).iter().find(|r| r.value.as_deref() == Some(&b"2"[..])).unwrap().offset;
        assert_eq!(listed(&*log, "a", &[first]), [("ac".to_owned(), "1".to_owned())]);
        assert_eq!(log.listed_to(&bank).unwrap(), 3);
        let behind = [(bank.clone(), 2)].into();
        log.commit(&Transaction { behind, ..transaction(3, &[]) }).unwrap();
        assert_eq!(log.listed_to(&bank).unwrap(), 2);
    }
    listed_are(&*open(), &[("aa", "2"), ("ac", "1")]);
}

fn entries_are_kept(open: &dyn Fn() -> Box<dyn Log>) {
    let entry = |name: &str, value: Option<&str>| (name.to_owned(), value.map(|value| value.as_bytes().to_vec()));
    let names = |log: &dyn Log| log.entries("a ").unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    {
        let log = open();
        assert_eq!(names(&*log), [""; 0]);
        log.append_with_entries(&[], vec![entry("a 2", Some("x")), entry("a 1", Some("y")), entry("b", Some("z"))])
            .unwrap();
        assert_eq!(names(&*log), ["a 1", "a 2"]);
        let written = log.append_with_entries(&[turn(&bank_in(1), 0)], vec![entry("a 1", None)]).unwrap();
        assert_eq!((written.to_string().as_str(), events(&*log, 1).len()), ("1:0", 1));
        assert_eq!(names(&*log), ["a 2"]);
    }
    assert_eq!(open().entries("").unwrap(), [("a 2".to_owned(), b"x".to_vec()), ("b".to_owned(), b"z".to_vec())]);
}

fn a_transaction_is_written_as_a_whole(open: &dyn Fn() -> Box<dyn Log>) {
    let bank = bank_in(0);
    {
        let log = open();
        log.append_turns(&[turn(&bank, 0), turn(&bank, 1), turn(&bank, 2)]).unwrap();
        log.append_dead_letters(&[letter(1)]).unwrap();
        log.append_dead_letters(&[]).unwrap();
        assert_eq!(log.read_position(0).unwrap(), 0);
        let next = all(&*log, Topic::Turns, 0, 0)[2].offset;
        log.commit(&Transaction {
            dead_letters: vec![letter(2), letter(3)],
            ..transaction(next, &[("w", Some("units"))])
        })
        .unwrap();
        assert_eq!(log.read_position(0).unwrap(), next);
        assert_eq!(log.read_position(1).unwrap(), 0);
        // Input without records is covered, too.
        log.commit(&transaction(next + 1, &[])).unwrap();
    }
    let log = open();
    let end = all(&*log, Topic::Turns, 0, 0)[2].offset + 1;
    assert_eq!(log.read_position(0).unwrap(), end);
    // A bank that is behind is listed, until it no longer is.
    let behind = ReadProgress { through: end, behind: [(Bank::parse(&bank).unwrap(), end - 1)].into() };
    log.commit(&Transaction { behind: behind.behind.clone(), ..transaction(end, &[]) }).unwrap();
    assert_eq!(log.progress(0).unwrap(), behind);
    drop(log);
    let log = open();
    assert_eq!((log.progress(0).unwrap(), log.read_position(0).unwrap()), (behind.clone(), end - 1));
    assert_eq!(log.replay(0, &mut |_| {}).unwrap(), behind);
    assert_eq!(log.last_transaction(Topic::Memory, 0).unwrap().position, Some(behind));
    log.commit(&transaction(end, &[])).unwrap();
    drop(log);
    let log = open();
    assert_eq!(log.progress(0).unwrap(), end.into());
    assert_eq!(live_values(&*log, 0), pairs(&[("w", "units")]));
    assert_eq!(letters(&*log), [letter(1), letter(2), letter(3)]);
}

fn a_refused_transaction_writes_nothing(log: &dyn Log) {
    let bank = bank_in(0);
    log.append_turns(&[turn(&bank, 0), turn(&bank, 1)]).unwrap();
    let end = log.end(Topic::Turns, 0).unwrap();
    log.commit(&transaction(end, &[("a", Some("1"))])).unwrap();
    for refused in [end - 1, end + 1] {
        let bad = Transaction {
            dead_letters: vec![letter(1)],
            ..transaction(refused, &[("a", Some("2")), ("b", Some("2"))])
        };
        match log.commit(&bad).unwrap_err() {
            LogError::Position { partition: 0, next_offset, position, end: stated } => {
                assert_eq!((next_offset, position, stated), (refused, end, end));
            }
            other => panic!("{other}"),
        }
    }
    let keyless = log.commit(&transaction(end, &[("a", Some("3")), ("", Some("3"))])).unwrap_err();
    assert!(matches!(keyless, LogError::Record { topic: Topic::Memory, partition: 0, index: 1, .. }), "{keyless}");
    assert_eq!(live_values(log, 0), pairs(&[("a", "1")]));
    assert_eq!(letters(log), []);
    assert_eq!(log.read_position(0).unwrap(), end);
    // Records of open windows are committed with an unchanged position.
    log.commit(&transaction(end, &[("a", Some("4"))])).unwrap();
    assert_eq!(live_values(log, 0), pairs(&[("a", "4")]));
}

fn everything_survives_reopening(open: &dyn Fn() -> Box<dyn Log>) {
    let ended = TurnEvent::SessionEnd(SessionEnd { bank: Bank::parse("x/y").unwrap(), session: "s".to_owned() });
    let mut expected: Option<Vec<Vec<LogRecord>>> = None;
    let topics = [Topic::Turns, Topic::Memory];
    for round in 0..4usize {
        let log = open();
        let state = |log: &dyn Log| -> Vec<Vec<LogRecord>> {
            let mut state: Vec<_> = topics.iter().flat_map(|t| (0..PARTITIONS).map(|p| all(log, *t, p, 0))).collect();
            state.push(all(log, Topic::DeadLetters, 0, 0));
            state
        };
        if let Some(expected) = &expected {
            assert_eq!(&state(&*log), expected, "round {round}");
        }
        log.append_turns(&[turn("x/y", round), turn("z", round), ended.clone()]).unwrap();
        log.append_dead_letters(&[letter(round)]).unwrap();
        for partition in 0..PARTITIONS {
            let next = log.end(Topic::Turns, partition).unwrap();
            let (key, value) = (format!("window {round}"), format!("units {round}"));
            log.commit(&Transaction {
                partition,
                ..transaction(next, &[(&key, Some(&value)), ("tail", Some(&value))])
            })
            .unwrap();
            assert_eq!(log.read_position(partition).unwrap(), next);
            assert_eq!(live_values(&*log, partition).len(), round + 2);
        }
        expected = Some(state(&*log));
    }
}

fn unknown_partitions_are_refused(log: &dyn Log) {
    for error in [
        log.read(Topic::Turns, PARTITIONS, 0, 1).unwrap_err(),
        log.read(Topic::DeadLetters, 1, 0, 1).unwrap_err(),
        log.end(Topic::Memory, PARTITIONS).unwrap_err(),
        log.read_position(PARTITIONS).unwrap_err(),
        log.commit(&Transaction { partition: PARTITIONS, ..transaction(0, &[]) }).unwrap_err(),
    ] {
        assert!(matches!(error, LogError::NoPartition { .. }), "{error}");
    }
}
