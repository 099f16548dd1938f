//! Tests that a shard's snapshots stay whole, whatever two writers do at the same time, and wherever one is killed.

use std::sync::{
    Arc, Barrier, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;

use super::{
    store::{ObjectBackend, SnapshotStore},
    tests::{AT_ONCE, FaultyStore, LiveModel, RandomHistory, RestoredContents, newest, writer},
    *,
};

type StoreStep = Box<dyn FnOnce() + Send>;

/// A store that notes the paths it is asked for, and runs a given step just before one of its calls.
#[derive(Clone, Default)]
struct WatchedStore {
    store: FaultyStore,
    paths: Arc<Mutex<Vec<String>>>,
    calls: Arc<AtomicUsize>,
    step: Arc<Mutex<Option<(usize, StoreStep)>>>,
    /// Makes it wait for another writer before it claims.
    gate: Arc<Mutex<Option<Arc<Barrier>>>>,
}

impl WatchedStore {
    fn over(store: &FaultyStore) -> Self {
        Self { store: store.clone(), ..Self::default() }
    }

    fn before(&self, path: &str) {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        self.paths.lock().unwrap().push(path.to_owned());
        let step = self.step.lock().unwrap().take_if(|(at, _)| *at == call);
        if let Some((_, step)) = step {
            step();
        }
    }

    fn snapshots(&self) -> LogSnapshots {
        LogSnapshots::over(Box::new(self.clone()))
    }
}

impl ObjectBackend for WatchedStore {
    fn get(&self, path: &str) -> Result<Option<Bytes>, String> {
        self.before(path);
        self.store.get(path)
    }

    fn put(&self, path: &str, bytes: Bytes, fresh: bool) -> Result<bool, String> {
        self.before(path);
        let gate = if path.contains("/claims/") { self.gate.lock().unwrap().take() } else { None };
        if let Some(gate) = gate {
            gate.wait();
        }
        self.store.put(path, bytes, fresh)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, String> {
        self.before(directory);
        self.store.list(directory)
    }

    fn delete(&self, path: &str) -> Result<(), String> {
        self.before(path);
        self.store.delete(path)
    }
}

/// A place with two snapshots of a shard, and the history that continues from there.
fn begun(seed: u64) -> (FaultyStore, RandomHistory, SnapshotWriter) {
    let store = FaultyStore::default();
    let mut history = RandomHistory::new(seed, false, true);
    let mut first = writer(&LogSnapshots::over(Box::new(store.clone())), "first", 0);
    for n in 0..2 {
        for _ in 0..4 {
            let (read, changes) = history.next();
            first.add(&read, &changes).unwrap();
        }
        first.snapshot(n, AT_ONCE).unwrap().unwrap();
    }
    (store, history, first)
}

/// What is restored; fails if any snapshot had to be skipped.
fn whole(store: &FaultyStore) -> RestoredSnapshot {
    let snapshots = LogSnapshots::over(Box::new(store.clone()));
    snapshots.newest(0, true, &mut |what| panic!("{what}"), &mut |_, _| {}).unwrap().unwrap()
}

fn stored_files(store: &FaultyStore) -> usize {
    store.objects.lock().unwrap().keys().filter(|path| path.ends_with(".parquet")).count()
}

/// Files of the manifests that are stored.
fn listed_files(store: &FaultyStore) -> usize {
    let place = SnapshotStore::over(Box::new(store.clone()));
    let manifests = Manifest::ids(&place, 0).unwrap().into_iter().map(|id| Manifest::read(&place, 0, id).unwrap());
    let paths = manifests.flat_map(|of| of.segments).flat_map(|segment| segment.files).map(|file| file.path);
    paths.collect::<std::collections::BTreeSet<String>>().len()
}

/// Before each call that a writer makes to the store, another writer claims the shard, restores it, and writes. The
/// newer writer's snapshot stays whole, and the older one learns that it has lost its claim.
#[test]
fn a_writer_that_lost_its_claim_damages_nothing() {
    let (mut at, mut lost, mut won) = (0, 0, 0);
    for seed in 1..3 {
        for call in 0.. {
            let (store, mut history, first) = begun(seed);
            first.give_up();
            let watched = WatchedStore::over(&store);
            let mut older = writer(&watched.snapshots(), "older", 0);
            let (read, changes) = history.next();
            older.add(&read, &changes).unwrap();
            older.snapshot(5, AT_ONCE).unwrap().unwrap();
            let (more, more_changes) = history.next();
            older.add(&more, &more_changes).unwrap();
            // The state that the newer writer reads from the log, whatever the older one wrote.
            let expected: RestoredContents = history.all().expected();
            let newer: Arc<Mutex<Option<SnapshotWriter>>> = Arc::default();
            let step: StoreStep = {
                let (store, newer) = (store.clone(), Arc::clone(&newer));
                Box::new(move || {
                    let snapshots = LogSnapshots::over(Box::new(store.clone()));
                    let reached = whole(&store).manifest.reached[0].next_offset;
                    let mut writer = writer(&snapshots, "newer", 0);
                    if reached < more.next_offset {
                        writer.add(&more, &more_changes).unwrap();
                    }
                    writer.snapshot(6, AT_ONCE).unwrap();
                    *newer.lock().unwrap() = Some(writer);
                })
            };
            watched.calls.store(0, Ordering::SeqCst);
            *watched.step.lock().unwrap() = Some((call, step));
            drop(older.snapshot(7, AT_ONCE));
            let Some(mut newer) = newer.lock().unwrap().take() else { break };
            at = at.max(call);
            assert_eq!(LiveModel::of([&whole(&store)]), expected, "seed {seed}, call {call}");
            // From now on exactly one of them writes.
            let (read, changes) = history.next();
            older.add(&read, &changes).unwrap();
            newer.add(&read, &changes).unwrap();
            let (by_newer, by_older) = (newer.snapshot(8, AT_ONCE), older.snapshot(9, AT_ONCE));
            match (&by_newer, &by_older) {
                (Ok(_), Err(SnapshotError::Taken { .. })) => lost += 1,
                // The newer one found nothing to write and claimed nothing before the older one wrote.
                (Err(SnapshotError::Taken { .. }), Ok(_)) => won += 1,
                other => panic!("seed {seed}, call {call}: {other:?}"),
            }
            assert_eq!(LiveModel::of([&whole(&store)]), history.all().expected(), "seed {seed}, call {call}");
        }
    }
    assert!(at > 10 && lost > 20, "{at} calls, lost {lost} times, kept {won} times");
}

/// Of two writers that claim at the same moment, one gets the claim and writes.
#[test]
fn two_writers_of_one_claim_become_one() {
    for seed in 1..20 {
        let store = FaultyStore::default();
        let mut history = RandomHistory::new(seed, false, true);
        let (read, changes) = history.next();
        let gate = Arc::new(Barrier::new(2));
        let mut both = ["a", "b"].map(|run| {
            let watched = WatchedStore::over(&store);
            *watched.gate.lock().unwrap() = Some(Arc::clone(&gate));
            writer(&watched.snapshots(), run, 0)
        });
        std::thread::scope(|scope| {
            for writer in &mut both {
                let (read, changes) = (&read, &changes);
                scope.spawn(move || {
                    writer.add(read, changes).unwrap();
                    drop(writer.snapshot(1, AT_ONCE));
                });
            }
        });
        let (read, changes) = history.next();
        let mut wrote = 0;
        for writer in &mut both {
            writer.add(&read, &changes).unwrap();
            match writer.snapshot(2, AT_ONCE) {
                Ok(Some(_)) => wrote += 1,
                Err(SnapshotError::Taken { .. }) => {}
                other => panic!("seed {seed}: {other:?}"),
            }
        }
        assert_eq!(wrote, 1, "seed {seed}");
        assert_eq!(LiveModel::of([&whole(&store)]), history.all().expected(), "seed {seed}");
    }
}

/// Before each call that a writer makes for its first snapshot, the previous writer writes another snapshot and deletes
/// files. What the newer writer then writes is whole, or it learns that it began too early.
#[test]
fn a_writer_that_continues_an_old_snapshot_notices() {
    let (mut taken, mut kept) = (0, 0);
    for seed in 1..3 {
        for call in 0.. {
            let (store, mut history, mut older) = begun(seed);
            let watched = WatchedStore::over(&store);
            let mut newer = writer(&watched.snapshots(), "newer", 0);
            let mut reads = Vec::new();
            for _ in 0..6 {
                reads.push(history.next());
            }
            let older: Arc<Mutex<Option<SnapshotWriter>>> = {
                for (read, changes) in &reads {
                    older.add(read, changes).unwrap();
                    newer.add(read, changes).unwrap();
                }
                Arc::new(Mutex::new(Some(older)))
            };
            let step: StoreStep = {
                let older = Arc::clone(&older);
                Box::new(move || drop(older.lock().unwrap().take().unwrap().snapshot(6, AT_ONCE)))
            };
            watched.calls.store(0, Ordering::SeqCst);
            *watched.step.lock().unwrap() = Some((call, step));
            match newer.snapshot(7, AT_ONCE) {
                Ok(_) => kept += 1,
                Err(SnapshotError::Taken { .. }) => taken += 1,
                other => panic!("seed {seed}, call {call}: {other:?}"),
            }
            assert_eq!(LiveModel::of([&whole(&store)]), history.all().expected(), "seed {seed}, call {call}");
            if older.lock().unwrap().is_some() {
                break;
            }
        }
    }
    assert!(taken > 3 && kept > 10, "{taken} noticed, {kept} wrote");
}

/// A writer that is killed at any of its calls, even between the files and the manifest, leaves a whole snapshot; the
/// next writer continues it, and deletes what was left over.
#[test]
fn a_writer_that_is_killed_at_any_call_leaves_a_whole_snapshot() {
    let mut killed = 0;
    for seed in 1..3 {
        for call in 0.. {
            let (store, mut history, mut first) = begun(seed);
            let before = history.all().expected();
            let (read, changes) = history.next();
            first.add(&read, &changes).unwrap();
            store.failures.lock().unwrap().push((call, u32::MAX, false));
            let ended = first.snapshot(5, AT_ONCE).is_ok();
            store.failures.lock().unwrap().clear();
            let found = LiveModel::of([&whole(&store)]);
            assert!(found == before || found == history.all().expected(), "seed {seed}, call {call}");
            let mut next = writer(&LogSnapshots::over(Box::new(store.clone())), "next", 0);
            if found == before {
                next.add(&read, &changes).unwrap();
            }
            next.snapshot(6, AT_ONCE).unwrap();
            assert_eq!(LiveModel::of([&whole(&store)]), history.all().expected(), "seed {seed}, call {call}");
            assert_eq!(stored_files(&store), listed_files(&store), "seed {seed}, call {call}");
            if ended {
                break;
            }
            killed += 1;
        }
    }
    assert!(killed > 20, "{killed}");
}

/// A claim passes on when its writer gives it up, or has not renewed it for a while; on request, it passes on at once.
#[test]
fn a_claim_passes_on_when_it_is_given_up_or_old() {
    let old = ClaimRule::WhenOld(1_000);
    let (store, mut history, mut first) = begun(8);
    let snapshots = LogSnapshots::over(Box::new(store.clone()));
    let (read, changes) = history.next();
    let mut second = writer(&snapshots, "second", 0);
    second.add(&read, &changes).unwrap();
    // The first renews its claim although nothing has changed.
    assert!(first.snapshot(5_000, old).unwrap().is_none());
    assert!(matches!(second.snapshot(6_000, old), Err(SnapshotError::Elsewhere { .. })));
    assert!(!snapshots.may_claim(0, "second", old, 6_000).unwrap());
    assert!(snapshots.may_claim(0, "first", old, 6_000).unwrap(), "its own");
    assert!(second.snapshot(6_001, old).unwrap().is_some());
    first.add(&read, &changes).unwrap();
    assert!(matches!(first.snapshot(6_002, old), Err(SnapshotError::Taken { .. })));
    first.give_up();
    let mut third = writer(&snapshots, "third", 0);
    let (read, changes) = history.next();
    third.add(&read, &changes).unwrap();
    assert!(matches!(third.snapshot(6_003, old), Err(SnapshotError::Elsewhere { .. })), "the older gave up, not this");
    second.give_up();
    assert_eq!(third.snapshot(6_004, old).unwrap().unwrap().epoch, 3);
    let mut fourth = writer(&snapshots, "fourth", 0);
    let (read, changes) = history.next();
    fourth.add(&read, &changes).unwrap();
    assert_eq!(fourth.snapshot(6_005, AT_ONCE).unwrap().unwrap().epoch, 4);
    assert_eq!(LiveModel::of(&newest(&store)), history.all().expected());
    let claims = store.list("shard-00000/claims").unwrap();
    assert_eq!(claims, ["shard-00000/claims/00000004.json"], "older claims are deleted");
}

/// A restore opens the files of its shard only, and so do questions about the past.
#[test]
fn a_restore_reads_the_files_of_its_shard_only() {
    let store = FaultyStore::default();
    let mut history = RandomHistory::new(2, true, false);
    let snapshots = LogSnapshots::over(Box::new(store.clone()));
    let begin = |shard| snapshots.writer(shard, None, None, format!("of{shard}"), 0, AT_ONCE).unwrap();
    let mut writers = [begin(0), begin(1)];
    for n in 0..8 {
        let (read, changes) = history.next();
        writers[read.partition as usize].add(&read, &changes).unwrap();
        writers.iter_mut().for_each(|writer| drop(writer.snapshot(n, AT_ONCE).unwrap()));
    }
    let watched = WatchedStore::over(&store);
    let restored = watched.snapshots().newest(1, true, &mut |_| {}, &mut |_, _| {}).unwrap().unwrap();
    let last = restored.manifest.reached[0].last.unwrap().0;
    let offset = watched.snapshots().point(1, AsOf::Offset(last)).unwrap().0;
    watched.snapshots().as_of(&types::model::Bank::parse("b/c").unwrap(), 1, offset).unwrap();
    let paths = watched.paths.lock().unwrap().clone();
    let of_shard = |path: &&String| path.starts_with("shard-00001/");
    assert!(paths.len() > 6 && paths.iter().all(|path| of_shard(&path)), "{paths:?}");
    assert!(!restored.records.is_empty() && restored.records.iter().all(|record| record.key.bank.as_str() == "b/c"));
}
