//! What only the embedded log guarantees: one writer, no silent loss, safety on full disks.

use std::{fs, io::Write, ops::ControlFlow, path::Path};

use super::{
    EmbeddedLog,
    record_encoding::record_key,
    store::{self, EmbeddedStore},
};
use crate::{
    Log, LogError, LogRecord, Topic, Transaction, partition_of,
    suite::{self, bank_in, live_values, transaction, turn},
};
use storage::keyspaces::{keyspace_options, known_keys, ranges_only};
use types::{
    config::{FsyncPolicy, LogSettings},
    model::{Bank, DeadLetter},
};

fn settings(directory: &Path) -> LogSettings {
    let log = types::config::Pipeline::parse("version = 1").unwrap().log;
    LogSettings { directory: directory.to_owned(), partitions: suite::PARTITIONS, fsync: FsyncPolicy::Commit, ..log }
}

fn open(directory: &Path) -> Result<EmbeddedLog, LogError> {
    EmbeddedLog::open(&settings(directory))
}

fn refusal(result: Result<EmbeddedLog, LogError>) -> LogError {
    match result {
        Ok(_) => panic!("it opened"),
        Err(error) => error,
    }
}

#[test]
fn the_suite_of_all_logs_passes() {
    for fsync in [FsyncPolicy::Commit, FsyncPolicy::System] {
        let root = tempfile::tempdir().unwrap();
        suite::run(|name| {
            let settings = LogSettings { fsync, ..settings(&root.path().join("deep").join(name)) };
            Box::new(EmbeddedLog::open(&settings).unwrap())
        });
    }
}

#[test]
fn appends_that_wait_at_the_same_time_share_one_write_and_each_knows_its_own_offsets() {
    const APPENDS: usize = 8;
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path()).unwrap();
    let bank = bank_in(0);
    let put = |n: usize| log.append_turns(&[turn(&bank, 2 * n), turn(&bank, 2 * n + 1)]).unwrap();
    put(0);
    let (before, written) = std::thread::scope(|scope| {
        let (put, mut putting) = (&put, Vec::new());
        let before = log.while_writing(|| {
            for n in 1..=APPENDS {
                putting.push(scope.spawn(move || put(n)));
                while log.waiting().count() < n {
                    std::thread::yield_now();
                }
            }
        });
        (before, putting.into_iter().map(|put| put.join().unwrap()).collect::<Vec<_>>())
    });
    assert_eq!(log.while_writing(|| ()), before + 1, "one write is one sync");
    let named = Bank::parse(&bank).unwrap();
    let ends: Vec<u64> = written.iter().map(|written| written.of(&named).unwrap().1).collect();
    assert_eq!(ends, (1..=APPENDS as u64).map(|n| 2 * n + 2).collect::<Vec<_>>());
    drop(log);
    let records = suite::all(&open(root.path()).unwrap(), Topic::Turns, 0, 0);
    assert_eq!(records.len(), 2 * APPENDS + 2);
    for (n, record) in records.iter().enumerate() {
        let text = String::from_utf8_lossy(record.value.as_ref().unwrap()).into_owned();
        assert!(text.contains(&format!("\"t{n}\"")), "in the order of arrival: {text}");
    }
}

#[test]
fn the_live_records_of_a_prefix_are_read_by_key_until_the_reader_breaks_off() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path()).unwrap();
    log.commit(&transaction(0, &[("ab", Some("1")), ("b", Some("1")), ("aa", Some("1")), ("ac", Some("1"))])).unwrap();
    log.commit(&transaction(0, &[("aa", Some("2")), ("ac", None)])).unwrap();
    log.commit(&Transaction { partition: 1, ..transaction(0, &[("ad", Some("far"))]) }).unwrap();
    let read = |prefix: &[u8], most: usize| {
        let mut found = Vec::new();
        let each = &mut |record: &LogRecord| {
            found.push((record.key.clone(), record.value.clone().unwrap()));
            if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        log.live_records(0, prefix, &mut |_, _| true, each).unwrap();
        found
    };
    let pair = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
    assert_eq!(read(b"a", 9), [pair("aa", "2"), pair("ab", "1")]);
    assert_eq!(read(b"a", 1), [pair("aa", "2")]);
    assert_eq!(read(b"", 9).len(), 3);
    assert_eq!(read(b"c", 9), []);
    assert!(log.live_records(9, b"", &mut |_, _| true, &mut |_| ControlFlow::Continue(())).is_err());
    let mut shown = Vec::new();
    let newer = &mut |key: &[u8], offset| {
        shown.push((key.to_vec(), offset));
        offset > 3
    };
    let mut read_keys = Vec::new();
    let each = &mut |record: &LogRecord| {
        read_keys.push(record.key.clone());
        ControlFlow::Continue(())
    };
    log.live_records(0, b"a", newer, each).unwrap();
    assert_eq!(shown, [(b"aa".to_vec(), 4), (b"ab".to_vec(), 0)]);
    assert_eq!(read_keys, [b"aa".to_vec()]);
}

#[test]
fn superseded_records_and_old_markers_are_removed() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path()).unwrap();
    for value in ["1", "2", "3"] {
        log.commit(&transaction(0, &[("a", Some(value)), ("b", Some(value))])).unwrap();
    }
    log.commit(&transaction(0, &[("b", None), ("c", None)])).unwrap();
    let offsets = |log: &EmbeddedLog| -> Vec<u64> {
        log.read(Topic::Memory, 0, 0, usize::MAX).unwrap().records.iter().map(|r| r.offset).collect()
    };
    assert_eq!(offsets(&log), [4, 6], "the live record and the deletion marker");
    drop(log);
    let log = open(root.path()).unwrap();
    assert_eq!(offsets(&log), [4], "the start removed the marker");
    assert_eq!(log.end(Topic::Memory, 0).unwrap(), 7);
    assert_eq!(log.store.memory.index.len().unwrap(), 1);
    assert_eq!(log.store.writes.len().unwrap(), 0);
}

/// Windows open and close for a long time in one process.
#[test]
fn a_log_that_stays_open_keeps_no_old_markers_and_no_old_numbers() {
    let root = tempfile::tempdir().unwrap();
    let mut fast = settings(root.path());
    fast.fsync = FsyncPolicy::System;
    let log = EmbeddedLog::open(&fast).unwrap();
    log.cleaning().keep_for_ms(0);
    log.keep_no_numbers();
    let mut at = 0;
    let mut most = [0, 0];
    for n in 0..2_000usize {
        let (turn, other) = (format!("turn {n}"), format!("other {n}"));
        log.commit(&transaction(0, &[(&turn, Some("open")), (&other, Some("open")), ("window", Some("final"))]))
            .unwrap();
        log.commit(&transaction(0, &[(&turn, None), (&other, None)])).unwrap();
        if n % 7 == 0 {
            // A reader that keeps up misses no deletion.
            let batch = log.read(Topic::Memory, 0, at, usize::MAX).unwrap();
            at = batch.next;
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
        if n % 100 == 99 {
            let found = [log.store.memory.index.len().unwrap(), log.store.writes.len().unwrap()];
            most = [most[0].max(found[0]), most[1].max(found[1])];
        }
    }
    assert!(most[0] < 1_000 && most[1] < 500, "{most:?} of 4000 markers and 4000 writes");
    drop(log);
    let log = open(root.path()).unwrap();
    assert_eq!(live_values(&log, 0).into_keys().collect::<Vec<_>>(), ["window"]);
}

#[test]
fn a_lagging_reader_sees_the_deletions_of_what_it_has_read() {
    let root = tempfile::tempdir().unwrap();
    let mut fast = settings(root.path());
    fast.fsync = FsyncPolicy::System;
    let log = EmbeddedLog::open(&fast).unwrap();
    log.cleaning().keep_for_ms(60_000);
    log.commit(&transaction(0, &[("a", Some("1"))])).unwrap();
    let next = log.read(Topic::Memory, 0, 0, 10).unwrap().next;
    log.commit(&transaction(0, &[("a", None)])).unwrap();
    for _ in 0..200 {
        log.commit(&transaction(0, &[("b", Some("1"))])).unwrap();
    }
    let seen = log.read(Topic::Memory, 0, next, 10).unwrap().records;
    assert!(seen.iter().any(|record| record.key == b"a" && record.value.is_none()), "{seen:?}");
}

#[test]
fn a_second_writer_is_refused_and_the_first_is_named() {
    let root = tempfile::tempdir().unwrap();
    let first = open(root.path()).unwrap();
    let error = refusal(open(root.path()));
    let message = error.to_string();
    assert!(matches!(error, LogError::InUse { .. }), "{message}");
    assert!(message.contains(&root.path().display().to_string()), "{message}");
    assert!(message.contains(&format!("process {}", std::process::id())), "{message}");
    drop(first);
    open(root.path()).unwrap();
}

#[test]
fn another_partition_count_and_another_format_are_refused() {
    let root = tempfile::tempdir().unwrap();
    drop(open(root.path()).unwrap());
    let error = refusal(EmbeddedLog::open(&LogSettings { partitions: 5, ..settings(root.path()) }));
    assert!(matches!(error, LogError::Partitions { stored: 3, configured: 5, .. }), "{error}");
    assert!(error.to_string().contains("3 partition(s), but log.partitions says 5"), "{error}");
    for other in [2, 4] {
        store::set_format(root.path(), other);
        let error = refusal(open(root.path())).to_string();
        let named = format!("{}: the log has format {other}, but this build reads 3;", root.path().display());
        assert!(error.starts_with(&named) && error.contains("name another log.directory"), "{error}");
    }
}

/// A process that is killed while it creates or deletes keyspaces may leave incomplete ones. The next
/// start removes these. All others must be complete.
#[test]
fn an_incomplete_keyspace_is_damage_unless_keyspaces_were_changing() {
    let root = tempfile::tempdir().unwrap();
    drop(open(root.path()).unwrap());
    let keyspaces = root.path().join("store/keyspaces");
    let whole: Vec<_> = fs::read_dir(&keyspaces).unwrap().map(|entry| entry.unwrap().path()).collect();
    let half = keyspaces.join("99");
    fs::create_dir(&half).unwrap();
    assert!(matches!(refusal(open(root.path())), LogError::Damaged { .. }));
    let numbers: String =
        whole.iter().map(|path| format!("{}\n", path.file_name().unwrap().to_str().unwrap())).collect();
    fs::write(root.path().join("changing"), &numbers).unwrap();
    drop(open(root.path()).unwrap());
    assert!(!half.exists() && !root.path().join("changing").exists());
    fs::write(root.path().join("changing"), &numbers).unwrap();
    fs::remove_file(whole[0].join("current")).unwrap();
    assert!(matches!(refusal(open(root.path())), LogError::Damaged { .. }));
}

#[test]
fn an_incomplete_store_is_created_again() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("store.new/keyspaces")).unwrap();
    fs::write(root.path().join("store.new/0.jnl"), [0u8; 100]).unwrap();
    let log = open(root.path()).unwrap();
    log.append_turns(&[turn("a", 1)]).unwrap();
    assert!(!root.path().join("store.new").exists());
}

#[test]
fn a_directory_that_cannot_be_created_is_named() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), b"").unwrap();
    let error = refusal(open(&root.path().join("file")));
    assert!(matches!(error, LogError::Disk { .. }), "{error}");
    assert!(error.to_string().contains("name a directory in log.directory"), "{error}");
}

/// Writes 30 batches; when `flushed`, most of them lie in tables, the rest in the journal.
fn fill(directory: &Path, flushed: bool) -> Vec<Vec<LogRecord>> {
    let log = open(directory).unwrap();
    let bank = bank_in(0);
    for n in 0..30usize {
        log.append_turns(&[turn(&bank, 2 * n), turn(&bank, 2 * n + 1)]).unwrap();
        let value = format!("{n} ").repeat(200);
        // It does not compress to less than half, so it lies apart from the tables.
        let long: String = (0..40).map(|part| blake3::hash(&[n as u8, part]).to_hex().to_string()).collect();
        let (key, long_key) = (format!("w{n}"), format!("long{n}"));
        let values = [(&*key, Some(&*value)), ("tail", Some(&*value)), (&*long_key, Some(&*long))];
        log.commit(&transaction(2 * n as u64 + 1, &values)).unwrap();
        if flushed && n == 20 {
            for keyspace in [&log.store.turns, &log.store.memory.records, &log.store.memory.index, &log.store.positions]
            {
                keyspace.rotate_memtable_and_wait().unwrap();
            }
        }
    }
    contents(&log).unwrap()
}

fn contents(log: &EmbeddedLog) -> Result<Vec<Vec<LogRecord>>, LogError> {
    let mut all = Vec::new();
    for partition in 0..suite::PARTITIONS {
        for topic in [Topic::Turns, Topic::Memory] {
            all.push(log.read(topic, partition, 0, usize::MAX)?.records);
        }
    }
    all.push(log.read(Topic::DeadLetters, 0, 0, usize::MAX)?.records);
    Ok(all)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if fs::metadata(&path).unwrap().len() > 0 {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Checks that a damaged copy reports the damage or holds everything. Returns whether it reported damage.
fn check_damage(directory: &Path, expected: &[Vec<LogRecord>], what: &str) -> bool {
    let outcome = open(directory).and_then(|log| contents(&log));
    match outcome {
        Ok(read) => {
            assert!(read == expected, "{what}: opened with other contents, without an error");
            false
        }
        Err(error) => {
            assert!(error.to_string().contains(&directory.display().to_string()), "{what}: {error}");
            assert!(matches!(error, LogError::Damaged { .. }), "{what}: {error} ({error:?})");
            true
        }
    }
}

/// A small random number generator, so that every run has the same damage.
struct DamageDice(u64);

impl DamageDice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

#[test]
fn damage_is_never_silent() {
    let rounds: usize = std::env::var("RIPPLEMEM_DAMAGE_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let root = tempfile::tempdir().unwrap();
    let mut random = DamageDice(7);
    let mut noticed = 0;
    for flushed in [false, true] {
        let whole = root.path().join(format!("whole-{flushed}"));
        let expected = fill(&whole, flushed);
        let names: Vec<_> = files(&whole).iter().map(|f| f.strip_prefix(&whole).unwrap().to_owned()).collect();
        for round in 0..rounds {
            let damaged = root.path().join(format!("damaged-{flushed}-{round}"));
            copy(&whole, &damaged);
            // Most of the bytes lie in the journal, so damage it in every other round.
            let name = match names.iter().rfind(|n| n.extension().is_some_and(|e| e == "jnl")) {
                Some(journal) if round % 2 == 0 => journal,
                _ => &names[random.below(names.len() as u64) as usize],
            };
            let path = damaged.join(name);
            let mut bytes = fs::read(&path).unwrap();
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                0 => bytes.truncate(at),
                1 => bytes[at] ^= 1 << random.below(8),
                _ => {
                    let until = (at + 64).min(bytes.len());
                    bytes[at..until].fill(random.below(256) as u8);
                }
            }
            fs::write(&path, &bytes).unwrap();
            let what = format!("flushed {flushed}, round {round}, {} at {at}", name.display());
            noticed += usize::from(check_damage(&damaged, &expected, &what));
            fs::remove_dir_all(&damaged).unwrap();
        }
    }
    assert!(noticed > rounds / 2, "{noticed} of {} damages were noticed", 2 * rounds);
}

#[test]
fn a_damaged_keyspace_manifest_is_named_and_nothing_is_changed() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    let expected = fill(&whole, true);
    let mut manifests = Vec::new();
    for current in files(&whole).into_iter().filter(|f| f.file_name().is_some_and(|n| n == "current")) {
        let id = u64::from_le_bytes(fs::read(&current).unwrap()[..8].try_into().unwrap());
        for file in [current.with_file_name(format!("v{id}")), current] {
            manifests.push(file.strip_prefix(&whole).unwrap().to_owned());
        }
    }
    assert_eq!(manifests.len(), 2 * 8, "seven keyspaces and the store's own");
    for name in manifests {
        for remove in [true, false] {
            let damaged = root.path().join("damaged");
            copy(&whole, &damaged);
            let mut bytes = fs::read(damaged.join(&name)).unwrap();
            fs::remove_file(damaged.join(&name)).unwrap();
            if !remove {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                fs::write(damaged.join(&name), &bytes).unwrap();
            }
            let files_before = files(&damaged);
            assert!(check_damage(&damaged, &expected, &name.display().to_string()), "{}", name.display());
            assert_eq!(files(&damaged), files_before, "no file was removed");
            fs::remove_dir_all(&damaged).unwrap();
        }
    }
}

#[test]
fn a_damaged_table_or_file_of_long_values_is_named() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    let expected = fill(&whole, true);
    let is_in = |file: &Path, kind: &str| file.parent().unwrap().ends_with(kind);
    let tables: Vec<_> = files(&whole).into_iter().filter(|f| is_in(f, "tables") || is_in(f, "blobs")).collect();
    assert!(tables.iter().any(|file| is_in(file, "blobs")));
    let tables: Vec<_> = tables.iter().map(|f| f.strip_prefix(&whole).unwrap().to_owned()).collect();
    assert!(tables.len() > 3, "{tables:?}");
    let mut noticed = 0;
    for (number, name) in tables.iter().enumerate() {
        for remove in [true, false] {
            let damaged = root.path().join(format!("damaged-{number}-{remove}"));
            copy(&whole, &damaged);
            let path = damaged.join(name);
            if remove {
                fs::remove_file(&path).unwrap();
            } else {
                let mut bytes = fs::read(&path).unwrap();
                // A byte of the first block, which holds records.
                bytes[40] ^= 1;
                fs::write(&path, &bytes).unwrap();
            }
            let Err(error) = open(&damaged).and_then(|log| contents(&log)) else {
                // The store's own keyspace of options is read only if a keyspace is missing.
                assert!(!remove, "{}: was not needed", path.display());
                continue;
            };
            noticed += 1;
            assert!(matches!(error, LogError::Damaged { .. }), "{error}");
            let said = error.to_string();
            assert!(said.contains(&format!("{} is missing or differs", path.display())), "{said}");
        }
    }
    assert!(noticed > tables.len(), "{noticed} of {}", 2 * tables.len());
    assert_eq!(contents(&open(&whole).unwrap()).unwrap(), expected);
}

/// Turns, dead letters and numbers of writes are read by ranges, so they need no filters.
#[test]
fn filters_are_written_where_a_key_may_be_missing() {
    let root = tempfile::tempdir().unwrap();
    fill(root.path(), true);
    let log = open(root.path()).unwrap();
    let EmbeddedStore { turns, memory, dead_letters, writes, .. } = &log.store;
    log.append_dead_letters(&[DeadLetter::new("a file".to_owned(), "no turn".to_owned(), b"{")]).unwrap();
    let filter_bytes = |keyspace: &fjall::Keyspace| -> u64 {
        keyspace.rotate_memtable_and_wait().unwrap();
        let tables = files(&keyspace.path().join("tables"));
        assert!(!tables.is_empty(), "{}", keyspace.name());
        let archives = tables.iter().map(|table| sfa::Reader::new(table).unwrap());
        archives.map(|archive| archive.toc().section(b"filter").map_or(0, sfa::TocEntry::len)).sum()
    };
    for keyspace in [turns, dead_letters, writes] {
        assert_eq!(filter_bytes(keyspace), 0, "{}", keyspace.name());
    }
    assert!(filter_bytes(&memory.index) > 0);
}

#[test]
fn filters_take_ten_bits_a_key_where_they_are_written() {
    const KEYS: u64 = 20_000;
    let root = tempfile::tempdir().unwrap();
    let bytes = |name: &str, options: fn() -> fjall::KeyspaceCreateOptions| -> u64 {
        let open = || {
            let database = fjall::Database::builder(root.path()).open().unwrap();
            let keyspace = database.keyspace(name, options).unwrap();
            (database, keyspace)
        };
        let (database, keyspace) = open();
        (0..KEYS).for_each(|offset| keyspace.insert(record_key(0, offset), b"a turn").unwrap());
        keyspace.rotate_memtable_and_wait().unwrap();
        keyspace.major_compact().unwrap();
        drop((database, keyspace));
        // By now the tables before the compaction are removed.
        files(&open().1.path().join("tables")).iter().map(|table| fs::metadata(table).unwrap().len()).sum()
    };
    let (with, without) = (bytes("with", keyspace_options), bytes("without", ranges_only));
    assert!(with > without + KEYS * 10 / 8, "{with} bytes with filters, {without} without");
    let known = bytes("known", known_keys);
    assert!(known < without + 1_000, "{known} bytes where all keys are known, {without} without filters");
}

/// A process that is killed while it empties a journal leaves the beginning of it, and zeros.
#[test]
fn of_a_journal_that_was_emptied_in_part_nothing_is_missed() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    let expected = fill(&whole, false);
    open(&whole).unwrap().empty_journals().unwrap();
    let journal = files(&whole).into_iter().find(|f| f.extension().is_some_and(|e| e == "jnl")).unwrap();
    let journal = journal.strip_prefix(&whole).unwrap();
    let bytes = fs::read(whole.join(journal)).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for cut in [0, 5, 13, 34, end / 2, end - 13, end - 1, end] {
        let part = root.path().join(format!("part-{cut}"));
        copy(&whole, &part);
        let zeros = vec![0; bytes.len() - cut];
        fs::write(part.join(journal), [&bytes[..cut], &zeros].concat()).unwrap();
        assert_eq!(contents(&open(&part).unwrap()).unwrap(), expected, "cut at {cut}");
    }
}

#[test]
fn a_truncated_journal_is_refused_until_the_user_accepts_the_loss() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    let expected = fill(&whole, false);
    let journal = files(&whole).into_iter().find(|f| f.extension().is_some_and(|e| e == "jnl")).unwrap();
    let journal = journal.strip_prefix(&whole).unwrap();
    let length = fs::metadata(whole.join(journal)).unwrap().len();
    for cut in [1, 13, length / 3, length / 2, length - 1] {
        let damaged = root.path().join(format!("cut-{cut}"));
        copy(&whole, &damaged);
        fs::OpenOptions::new().write(true).open(damaged.join(journal)).unwrap().set_len(length - cut).unwrap();
        for again in 0..2 {
            assert!(
                check_damage(&damaged, &expected, &format!("cut by {cut}, open {again}")),
                "cut by {cut} is noticed"
            );
        }
        if cut == 1 {
            fs::remove_file(damaged.join("acknowledged")).unwrap();
            let log = open(&damaged).unwrap();
            assert!(!live_values(&log, 0).is_empty());
            log.append_turns(&[turn("a", 1)]).unwrap();
        }
    }
    fs::remove_dir_all(whole.join("store")).unwrap();
    let error = refusal(open(&whole));
    assert!(error.to_string().contains("store/ is missing, which held 60 writes"), "{error}");
}

#[test]
fn a_tail_that_was_never_acknowledged_is_dropped() {
    let root = tempfile::tempdir().unwrap();
    let expected = fill(root.path(), false);
    let journal = files(root.path()).into_iter().find(|f| f.extension().is_some_and(|e| e == "jnl")).unwrap();
    // The start of a batch of one item, as left by a process that is killed while it writes.
    let torn = [&[1u8][..], &1u32.to_le_bytes(), &9_999u64.to_le_bytes(), &[2, 0]].concat();
    fs::OpenOptions::new().append(true).open(journal).unwrap().write_all(&torn).unwrap();
    let log = open(root.path()).unwrap();
    assert_eq!(contents(&log).unwrap(), expected);
}

const FULL_DISK: &str = "RIPPLEMEM_TEST_FULL_DISK";

/// The child process of the next test. Its files may not grow. Outside that test it does nothing.
#[test]
fn child_that_fills_the_disk() {
    let Some(directory) = std::env::var_os(FULL_DISK) else { return };
    let directory = Path::new(&directory);
    let log = open(directory).unwrap();
    let mut acknowledged = 0;
    let error = loop {
        assert!(acknowledged < 10_000, "the disk never filled up");
        match log.append_turns(&[turn("a", acknowledged)]) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LogError::Disk { .. }), "{error:?}");
    assert!(error.to_string().contains("make room"), "{error}");
    let later = log.append_turns(&[turn("a", acknowledged)]).unwrap_err();
    assert!(matches!(later, LogError::Stopped { .. }), "{later:?}");
    assert_eq!(
        log.read(Topic::Turns, partition_of(turn("a", 0).bank(), 3), 0, usize::MAX).unwrap().records.len(),
        acknowledged
    );
    fs::write(directory.join("count"), acknowledged.to_string()).unwrap();
}

#[cfg(unix)]
#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let root = tempfile::tempdir().unwrap();
    // The second start truncates the preallocated journal, which then grows with each write.
    drop(open(root.path()).unwrap());
    drop(open(root.path()).unwrap());
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 256; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "embedded::tests::child_that_fills_the_disk", "--nocapture"])
        .env(FULL_DISK, root.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let acknowledged: usize = fs::read_to_string(root.path().join("count")).unwrap().parse().unwrap();
    assert!(acknowledged > 10);
    let log = open(root.path()).unwrap();
    let partition = partition_of(turn("a", 0).bank(), 3);
    let kept = log.read(Topic::Turns, partition, 0, usize::MAX).unwrap().records.len();
    assert!(kept == acknowledged || kept == acknowledged + 1, "{acknowledged} acknowledged, {kept} kept");
    log.append_turns(&[turn("a", 0)]).unwrap();
}
