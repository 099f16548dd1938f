//! What erasing does to an embedded log: new values replace the old ones, and no file holds an old one.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use memchr::memmem;

use super::{EmbeddedLog, record_encoding::record_key};
use crate::{
    ErasableLog as _, GenerationalLog as _, Log as _, LogError, Topic,
    suite::{self, bank_in, transaction, turn},
};
use types::config::{FsyncPolicy, LogSettings, Pipeline};
use types::model::{DeadLetter, ModelRef};

fn open(directory: &Path) -> EmbeddedLog {
    let log = Pipeline::parse("version = 1").unwrap().log;
    let directory = directory.to_owned();
    EmbeddedLog::open(&LogSettings { directory, partitions: suite::PARTITIONS, fsync: FsyncPolicy::System, ..log })
        .unwrap()
}

/// The tables of the keyspaces that hold records.
fn tables(log: &EmbeddedLog) -> BTreeSet<PathBuf> {
    let keyspaces = [&log.store.turns, &log.store.memory.records, &log.store.dead_letters];
    keyspaces.iter().flat_map(|keyspace| listed(&keyspace.path().join("tables"))).collect()
}

/// The files of long values of the memory.
fn values(log: &EmbeddedLog) -> BTreeSet<PathBuf> {
    listed(&log.store.memory.records.path().join("blobs"))
}

fn listed(directory: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Whether a file holds these bytes as they are.
fn hold<'p>(files: impl IntoIterator<Item = &'p PathBuf>, bytes: &[u8]) -> bool {
    files.into_iter().any(|file| memmem::find(&fs::read(file).unwrap(), bytes).is_some())
}

/// Whether a journal holds these bytes as they are: short values are not packed there.
fn journals_hold(log: &EmbeddedLog, bytes: &[u8]) -> bool {
    let mut files = listed(&log.directory().join("store"));
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jnl"));
    assert!(!files.is_empty());
    hold(&files, bytes)
}

#[test]
fn values_change_in_their_places_and_no_table_or_journal_holds_the_old_ones() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path());
    let bank = bank_in(0);
    log.append_turns(&(0..20).map(|n| turn(&bank, n)).collect::<Vec<_>>()).unwrap();
    log.append_dead_letters(&[DeadLetter::new("x".to_owned(), "y".to_owned(), b"z")]).unwrap();
    log.commit(&transaction(10, &[("a", Some("1")), ("b", Some("2"))])).unwrap();
    log.commit(&transaction(20, &[("a", Some("3")), ("b", None)])).unwrap();
    let before = suite::all(&log, Topic::Turns, 0, 0);
    for keyspace in [&log.store.turns, &log.store.memory.records] {
        keyspace.rotate_memtable_and_wait().unwrap();
    }
    let (old, memory) = (tables(&log), suite::all(&log, Topic::Memory, 0, 0));
    let erased = before[3].value.clone().unwrap();
    assert!(!old.is_empty() && journals_hold(&log, &erased));

    log.replace(Topic::Turns, 0, &[(3, b"emptied".to_vec()), (7, Vec::new())]).unwrap();
    log.replace(Topic::DeadLetters, 0, &[(0, b"{}".to_vec())]).unwrap();
    let missing = log.replace(Topic::Turns, 0, &[(20, Vec::new())]).unwrap_err();
    assert!(matches!(missing, LogError::Damaged { .. }), "{missing}");
    assert!(log.scrub().unwrap() > 0);
    assert_eq!(old.intersection(&tables(&log)).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
    assert!(!journals_hold(&log, &erased));

    let check = |log: &EmbeddedLog| {
        let after = suite::all(log, Topic::Turns, 0, 0);
        assert_eq!(after.len(), before.len());
        for (was, is) in before.iter().zip(&after) {
            assert_eq!((was.offset, was.append_ms, &was.key), (is.offset, is.append_ms, &is.key));
            match is.offset {
                3 => assert_eq!(is.value.as_deref(), Some(&b"emptied"[..])),
                7 => assert_eq!(is.value.as_deref(), Some(&b""[..])),
                _ => assert_eq!(is.value, was.value),
            }
        }
        let letters = suite::all(log, Topic::DeadLetters, 0, 0);
        assert_eq!(letters.iter().map(|letter| letter.value.as_deref().unwrap()).collect::<Vec<_>>(), [b"{}"]);
        let live = |records: &[crate::LogRecord]| {
            records.iter().filter(|record| record.value.is_some()).cloned().collect::<Vec<_>>()
        };
        assert_eq!(live(&suite::all(log, Topic::Memory, 0, 0)), live(&memory));
    };
    check(&log);
    drop(log);
    // The store continues in a journal that it made itself, and in one that it found.
    for round in 0..3 {
        let log = open(root.path());
        check(&log);
        let added = turn(&bank_in(1), round);
        assert_eq!(log.append_turns(&[added]).unwrap().to_string(), format!("1:{}", 2 * round));
        let (kept, letters) = (suite::all(&log, Topic::Turns, 1, 0), suite::all(&log, Topic::DeadLetters, 0, 0));
        assert!(journals_hold(&log, kept.last().unwrap().value.as_deref().unwrap()));
        log.scrub().unwrap();
        assert!(!journals_hold(&log, kept.last().unwrap().value.as_deref().unwrap()));
        assert_eq!(suite::all(&log, Topic::Turns, 1, 0), kept);
        assert_eq!(suite::all(&log, Topic::DeadLetters, 0, 0), letters);
        log.append_turns(&[turn(&bank_in(1), 100 + round)]).unwrap();
    }
    assert_eq!(suite::all(&open(root.path()), Topic::Turns, 1, 0).len(), 6);
}

/// A value of half a megabyte that does not compress to less than half.
fn long(number: u32) -> String {
    let part = |part: u32| blake3::hash(&[number.to_be_bytes(), part.to_be_bytes()].concat()).to_hex();
    (0..8_192).map(|number| part(number).to_string()).collect()
}

#[test]
fn long_values_are_written_again_only_beside_one_that_was_superseded() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path());
    for number in 0..32 {
        log.commit(&transaction(0, &[(&format!("w{number}"), Some(&long(number)))])).unwrap();
    }
    log.scrub().unwrap();
    let (before, memory) = (values(&log), suite::all(&log, Topic::Memory, 0, 0));
    let stored: u64 = before.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
    let key = record_key(0, memory[5].offset);
    assert!(before.len() >= 4 && hold(&before, &key), "{before:?}");

    log.commit(&transaction(0, &[("w5", Some("short"))])).unwrap();
    let written = log.scrub().unwrap();
    let after = values(&log);
    assert!(!hold(&after, &key) && !hold(&tables(&log), &key));
    assert!(before.difference(&after).count() == 1, "{before:?} {after:?}");
    assert!(written > 0 && written < stored / 3, "{written} of {stored}");
    let live = |log: &EmbeddedLog| suite::all(log, Topic::Memory, 0, 0).iter().map(|r| r.value.clone()).collect();
    let read: Vec<Option<Vec<u8>>> = live(&log);
    assert_eq!(read.len(), 32);
    assert_eq!(read[4], memory[4].value);
    assert_eq!(read[31].as_deref(), Some(&b"short"[..]));
    drop(log);
    assert_eq!(live(&open(root.path())), read);
}

/// Whether any file below a directory holds these bytes as they are.
fn store_holds(directory: &Path, bytes: &[u8]) -> bool {
    // The store may remove a file meanwhile.
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|path| store_holds(&path, bytes) || fs::read(&path).is_ok_and(|read| memmem::find(&read, bytes).is_some()))
}

#[test]
fn an_unfinished_generation_goes_and_is_begun_again() {
    let root = tempfile::tempdir().unwrap();
    // It does not compress.
    let words = long(7)[..200].to_owned();
    let log = open(root.path());
    log.commit(&transaction(0, &[("a", Some("1")), ("b", Some("2"))])).unwrap();
    log.begin_next().unwrap();
    log.fill_next(0, &[(b"a".to_vec(), Some(words.clone().into_bytes()))], &0.into()).unwrap();
    let next = log.next.lock().unwrap().clone().unwrap();
    let files = [&next.records, &next.index].map(|keyspace| keyspace.path().to_owned());
    next.records.rotate_memtable_and_wait().unwrap();
    assert!(store_holds(root.path(), words.as_bytes()));
    drop((next, log));
    // What an earlier run left of the second generation, in a journal and in a table.
    let log = open(root.path());
    assert!(log.next.lock().unwrap().is_some() && files.iter().all(|keyspace| keyspace.exists()));
    log.scrub().unwrap();
    assert!(files.iter().all(|keyspace| !keyspace.exists()));
    assert!(!store_holds(root.path(), words.as_bytes()));
    let unfilled = log.fill_next(0, &[], &0.into()).unwrap_err();
    assert!(matches!(unfilled, LogError::NotBegun { topic: Topic::NextMemory }), "{unfilled}");

    // A generation that is begun again can be finished, and holds nothing of the first attempt.
    log.begin_next().unwrap();
    assert_eq!(suite::all(&log, Topic::NextMemory, 0, 0), []);
    log.fill_next(0, &[(b"b".to_vec(), Some(b"3".to_vec()))], &0.into()).unwrap();
    log.switch(&ModelRef { name: "m".to_owned(), hash: "h".to_owned() }).unwrap();
    drop(log);
    let log = open(root.path());
    let values = |log: &EmbeddedLog| suite::all(log, Topic::Memory, 0, 0).into_iter().map(|r| r.value).collect();
    let read: Vec<Option<Vec<u8>>> = values(&log);
    assert_eq!((log.generation(), read), (2, vec![Some(b"3".to_vec())]));
    log.scrub().unwrap();
    assert!(!store_holds(root.path(), words.as_bytes()));
    drop(log);
    let read: Vec<Option<Vec<u8>>> = values(&open(root.path()));
    assert_eq!(read, [Some(b"3".to_vec())]);
}

#[test]
fn entries_are_kept_beside_the_records_and_removed_with_what_they_stood_for() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path());
    let entry = |name: &str, value: Option<&str>| (name.to_owned(), value.map(|value| value.as_bytes().to_vec()));
    log.append_with_entries(&[], vec![entry("a 1", Some("x")), entry("a 2", Some("y")), entry("b", Some("z"))])
        .unwrap();
    let written = log.append_with_entries(&[turn(&bank_in(1), 0)], vec![entry("a 1", None)]).unwrap();
    assert_eq!(written.to_string(), "1:0");
    drop(log);
    let log = open(root.path());
    assert_eq!(log.entries("a ").unwrap(), [("a 2".to_owned(), b"y".to_vec())]);
    assert_eq!(log.entries("").unwrap().len(), 2);
}
