//! What is erased of an embedded log: values in their places, and every file that held the old ones.

use std::{collections::BTreeSet, fs, path::PathBuf};

use super::EmbeddedLog;
use crate::log::{
    ErasableLog as _, Log as _, LogError, Topic,
    suite::{self, bank_in, transaction, turn},
};
use nouns::config::{Fsync, LogSettings, Pipeline};
use nouns::model::DeadLetter;

fn open(directory: &std::path::Path) -> EmbeddedLog {
    let log = Pipeline::parse("version = 1").unwrap().log;
    let directory = directory.to_owned();
    EmbeddedLog::open(&LogSettings { directory, partitions: suite::PARTITIONS, fsync: Fsync::System, ..log }).unwrap()
}

/// The journals, and the tables of the keyspaces that hold records.
fn files(log: &EmbeddedLog) -> BTreeSet<PathBuf> {
    let store = log.directory().join("store");
    let keyspaces = [&log.store.turns, &log.store.memory.records, &log.store.dead_letters];
    let tables = keyspaces.map(|keyspace| keyspace.path().join("tables"));
    let listed = std::iter::once(store).chain(tables).flat_map(|directory| fs::read_dir(directory).unwrap());
    let paths = listed.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.is_file() && path.file_name().is_some_and(|name| name != "lock" && name != "version"))
        .collect()
}

#[test]
fn values_change_in_their_places_and_every_file_of_before_goes() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path());
    let bank = bank_in(0);
    log.append_turns(&(0..20).map(|n| turn(&bank, n)).collect::<Vec<_>>()).unwrap();
    log.append_dead_letters(&[DeadLetter::new("x".to_owned(), "y".to_owned(), b"z")]).unwrap();
    log.commit(&transaction(10, &[("a", Some("1")), ("b", Some("2"))])).unwrap();
    log.commit(&transaction(20, &[("a", Some("3")), ("b", None)])).unwrap();
    let before = suite::all(&log, Topic::Turns, 0, 0);
    let (old, memory) = (files(&log), suite::all(&log, Topic::Memory, 0, 0));
    assert!(!old.is_empty());

    log.replace(Topic::Turns, 0, &[(3, b"emptied".to_vec()), (7, Vec::new())]).unwrap();
    log.replace(Topic::DeadLetters, 0, &[(0, b"{}".to_vec())]).unwrap();
    let missing = log.replace(Topic::Turns, 0, &[(20, Vec::new())]).unwrap_err();
    assert!(matches!(missing, LogError::Damaged { .. }), "{missing}");
    assert!(log.scrub().unwrap() > 0);
    let new = files(&log);
    assert_eq!(old.intersection(&new).collect::<Vec<_>>(), Vec::<&PathBuf>::new());

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
        let live = |records: &[crate::log::Record]| {
            records.iter().filter(|record| record.value.is_some()).cloned().collect::<Vec<_>>()
        };
        assert_eq!(live(&suite::all(log, Topic::Memory, 0, 0)), live(&memory));
        log.append_turns(&[]).unwrap();
    };
    check(&log);
    drop(log);
    check(&open(root.path()));
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
