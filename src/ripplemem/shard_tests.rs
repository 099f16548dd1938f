//! Tests shards at run time: they are taken and left, panic and are rebuilt, and are read while others ask.

use std::{
    ops::ControlFlow,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::PipelineDriver;
use logs::{
    self, LiveKey, Log, LogEntry, LogError, LogRecord, ReadBatch, ReadProgress, SourceLog, SourceState, SourceWriter,
    Topic, Transaction, TransactionEnd, WritePosition, partition_of,
};
use models::embed;
use pipeline::PipelineError;
use types::{
    config::{Pipeline, ShardAssignmentMode},
    model::{Bank, DeadLetter, EventTime, MemoryKey, MemoryRecord, Turn, TurnEvent},
};

use pipeline::model_of;
use replica::{Replica, ReplicaOptions};

pub(crate) fn bank(name: &str) -> Bank {
    Bank::parse(name).expect("a good name")
}

pub(crate) fn pipeline(home: &Path, snapshots: bool, extra: &str) -> Pipeline {
    let text = format!("version = 1\nembed.model = \"fixed\"\nlog.directory = {:?}\n{extra}", home.join("log"));
    let mut pipeline = Pipeline::parse(&text).expect("a good pipeline");
    pipeline.snapshot.directory = String::new();
    if snapshots {
        pipeline.snapshot.directory = home.join("snapshots").to_string_lossy().into_owned();
    }
    pipeline
}

fn turns(bank: &str, session: &str, count: usize) -> Vec<TurnEvent> {
    let turn = |n: usize| {
        format!(
            r#"{{"type": "turn", "bank": "{bank}", "session": "{session}", "turn": "{session}-{n}", "speaker": "Ann",
            "time": "2024-05-0{}T10:{:02}:00Z", "text": "The {n}. kayak of {session} is stored in the boathouse."}}"#,
            1 + n % 9,
            n % 60
        )
    };
    let end = format!(r#"{{"type": "session_end", "bank": "{bank}", "session": "{session}"}}"#);
    let all = (0..count).map(turn).chain([end]);
    all.map(|line| TurnEvent::from_json(line.replace('\n', " ").as_bytes()).expect("a good turn")).collect()
}

/// Ingests in a service that is closed afterwards.
fn ingest(pipeline: &Pipeline, events: &[TurnEvent]) {
    let mut alone = pipeline.clone();
    alone.snapshot.directory = String::new();
    let mut service = PipelineDriver::open(&alone, &mut |_| {}).expect("a service");
    service.log().append_turns(events).expect("room");
    service.catch_up().expect("extracted");
}

fn open(pipeline: &Pipeline, log: &dyn Log) -> Replica {
    let replica = open_holding(pipeline, log, ShardAssignmentMode::All);
    follow(&replica, log);
    replica
}

/// A memory that has followed nothing yet.
fn open_holding(pipeline: &Pipeline, log: &dyn Log, hold: ShardAssignmentMode) -> Replica {
    let options = ReplicaOptions {
        hold,
        edges: None,
        record: true,
        asks: None,
        waking_log: None,
        turns: None,
        progress: &mut |_, _| {},
    };
    Replica::open(pipeline, log, options).expect("a memory")
}

fn follow(replica: &Replica, log: &dyn Log) {
    for partition in 0..log.partitions() {
        while replica.follow(log, partition, |_, _, _| {}).expect("followed") {}
    }
}

fn hash(replica: &Replica, name: &str) -> Result<u128, PipelineError> {
    Ok(replica.digest(Some(&bank(name)))?.value.hash)
}

/// Two banks in different shards of three.
fn two_banks() -> [&'static str; 2] {
    let names = ["a", "b", "c", "d", "e"];
    let second = names.iter().find(|name| partition_of(&bank(name), 3) != partition_of(&bank(names[0]), 3));
    [names[0], second.expect("three partitions")]
}

#[test]
fn a_shard_that_panics_is_made_again_alone_and_recorded_on() {
    let home = tempfile::tempdir().expect("a directory");
    let [falls, stays] = two_banks();
    for snapshots in [false, true] {
        let settings = pipeline(&home.path().join(format!("{snapshots}")), snapshots, "log.partitions = 3");
        ingest(&settings, &[turns(falls, "s", 9), turns(stays, "s", 5)].concat());
        let log = logs::open(&settings.log).expect("the log");
        let replica = open(&settings, &*log);
        let before = (hash(&replica, falls).expect("known"), hash(&replica, stays).expect("known"));
        let partition = partition_of(&bank(falls), 3);
        assert!(replica.panic_shard(partition));
        assert!(hash(&replica, falls).is_err());
        assert_eq!(hash(&replica, stays).expect("it stays"), before.1);
        let rebuilds = |replica: &Replica| -> u64 { replica.shards().iter().map(|shard| shard.rebuilds).sum() };
        assert_eq!(rebuilds(&replica), 0);
        follow(&replica, &*log);
        assert_eq!((hash(&replica, falls).expect("known"), hash(&replica, stays).expect("known")), before);
        assert_eq!(rebuilds(&replica), 1);
        // From then on, reads are recorded on top of what was recorded before.
        drop((replica, log));
        ingest(&settings, &turns(falls, "t", 6));
        let log = logs::open(&settings.log).expect("the log");
        let replica = open(&settings, &*log);
        assert!(replica.panic_shard(partition));
        assert!(hash(&replica, falls).is_err());
        follow(&replica, &*log);
        let whole = hash(&replica, falls).expect("known");
        assert_ne!(whole, before.0);
        if snapshots {
            // Rebuilding the shard may already have written one.
            replica.snapshot().expect("written");
            drop(replica);
            let restored = open(&settings, &*log);
            assert_eq!(hash(&restored, falls).expect("known"), whole);
            let newest = restored.snapshots().expect("manifests").unwrap_or_default();
            let census = restored.digest(None).expect("counts").value;
            assert_eq!(newest.iter().map(|of| of.live.units).sum::<u64>(), census.units);
        }
    }
}

/// A shard that has panicked is not rebuilt while its snapshot cannot be read; it is once the snapshot can be read.
#[test]
fn a_shard_that_cannot_be_made_again_is_counted_only_once_it_is() {
    let home = tempfile::tempdir().expect("a directory");
    let settings = pipeline(home.path(), true, "log.partitions = 1");
    ingest(&settings, &turns("a", "s", 5));
    let log = logs::open(&settings.log).expect("the log");
    let replica = open(&settings, &*log);
    let before = hash(&replica, "a").expect("known");
    replica.snapshot().expect("written");
    let (place, away) = (home.path().join("snapshots"), home.path().join("away"));
    std::fs::rename(&place, &away).expect("moved");
    std::fs::write(&place, "no directory").expect("written");
    assert!(replica.panic_shard(0));
    assert!(hash(&replica, "a").is_err());
    let rises = || replica.follow(&*log, 0, |_, _, _| {});
    assert!(matches!(rises(), Err(PipelineError::Snapshot(_))));
    assert!(matches!(rises(), Err(PipelineError::Memory(_))), "there is a pause");
    assert_eq!(replica.shards()[0].rebuilds, 0);
    std::fs::remove_file(&place).expect("removed");
    std::fs::rename(&away, &place).expect("moved back");
    while rises().is_err() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!((replica.shards()[0].rebuilds, hash(&replica, "a").expect("known")), (1, before));
}

#[test]
fn a_shard_is_taken_and_left_a_thousand_times_in_flat_memory() {
    if !testing::in_own_process("shard_tests::a_shard_is_taken_and_left_a_thousand_times_in_flat_memory") {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let [moves, stays] = two_banks();
    let settings = pipeline(home.path(), false, "log.partitions = 3");
    ingest(&settings, &[turns(moves, "s", 9), turns(stays, "s", 5)].concat());
    let log = logs::open(&settings.log).expect("the log");
    let replica = open(&settings, &*log);
    let before = (hash(&replica, moves).expect("known"), hash(&replica, stays).expect("known"));
    let partition = partition_of(&bank(moves), 3);
    let mut after_first = 0;
    for round in 0..1_000 {
        replica.leave(partition);
        let error = hash(&replica, moves).expect_err("left");
        assert!(matches!(error, PipelineError::OtherInstance { .. }), "{error}");
        assert_eq!(replica.position(partition), None);
        replica.take(&*log, partition).expect("taken");
        while replica.follow(&*log, partition, |_, _, _| {}).expect("followed") {}
        if round % 100 == 99 {
            assert_eq!((hash(&replica, moves).expect("known"), hash(&replica, stays).expect("known")), before);
        }
        if round == 99 {
            after_first = testing::resident_bytes();
        }
    }
    let grown = testing::resident_bytes().saturating_sub(after_first);
    assert!(grown < 64 << 20, "{grown} bytes more after 900 rounds");
}

/// The digest is the same for any number of shards and threads, even from snapshots.
#[test]
fn the_digest_depends_on_no_number_of_shards_and_threads() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut found = Vec::new();
    for (partitions, workers) in [(1, 1), (2, 2), (4, 1), (5, 1), (16, 3)] {
        let home = tempfile::tempdir().expect("a directory");
        let extra = format!("log.partitions = {partitions}\nmemory.workers = {workers}");
        let settings = pipeline(home.path(), true, &extra);
        ingest(&settings, &names.map(|name| turns(name, "s", 5)).concat());
        let log = logs::open(&settings.log).expect("the log");
        let from_log = open(&settings, &*log);
        found.push(from_log.digest(None).expect("counts").value);
        assert_eq!(from_log.snapshot().expect("written").expect("new").manifests.len(), partitions);
        drop(from_log);
        let restored = open(&settings, &*log);
        found.push(restored.digest(None).expect("counts").value);
        assert!(restored.snapshot().expect("looked").is_none(), "nothing has changed");
    }
    assert!(found.windows(2).all(|two| two[0] == two[1]), "{found:?}");
}

/// Decision 4: if a corrected reader reads an export again, this corrects what was read from it before, and an edit
/// stays.
#[test]
fn an_export_that_is_read_better_corrects_the_memory_when_it_is_ingested_again() {
    let home = tempfile::tempdir().expect("a directory");
    let read_badly = turns("a", "s", 5);
    let read_well: Vec<TurnEvent> = read_badly
        .iter()
        .cloned()
        .map(|event| match event {
            TurnEvent::Turn(turn) => {
                let time = EventTime { unix_ms: turn.time.unix_ms - 7_200_000, offset_seconds: 7_200 };
                let text = turn.text.replace("kayak", "canoe");
                TurnEvent::Turn(Turn { speaker: "Bo".to_owned(), text, time, ..turn })
            }
            other => other,
        })
        .collect();
    let edit = || match &read_well[1] {
        TurnEvent::Turn(turn) => {
            vec![TurnEvent::Turn(Turn { version: 9, text: "The canoe is sold.".to_owned(), ..turn.clone() })]
        }
        other => panic!("{other:?}"),
    };
    // The hash of the memory after each of these ingestions, and how many records each added to its log.
    let after = |name: &str, all: &[&[TurnEvent]]| -> Vec<(u128, u64)> {
        let settings = pipeline(&home.path().join(name), false, "log.partitions = 1");
        let hash_after = |events: &&[TurnEvent]| {
            let end = || logs::open(&settings.log).expect("the log").end(Topic::Memory, 0).expect("an end");
            let before = end();
            ingest(&settings, events);
            let written = end() - before;
            let log = logs::open(&settings.log).expect("the log");
            (hash(&open(&settings, &*log), "a").expect("known"), written)
        };
        all.iter().map(hash_after).collect()
    };
    let expected = after("well", &[&read_well, &edit()]);
    let found = after("badly", &[&read_badly, &read_well, &read_well, &edit(), &read_well]);
    assert_ne!(found[0].0, expected[0].0);
    assert_eq!(found[1].0, expected[0].0, "as if it had always been read well");
    assert_eq!(found[2], (expected[0].0, 0), "what comes again changes nothing");
    assert_eq!(found[3].0, expected[1].0);
    assert_eq!(found[4], (expected[1].0, 0), "no older version undoes the edit");
}

/// Even if it comes first, a record of another model counts as wrong, and so does one whose vectors are too short.
#[test]
fn the_first_record_of_a_memory_may_be_the_wrong_one() {
    let home = tempfile::tempdir().expect("a directory");
    let of_another_model = |value: &mut serde_json::Value| value["model"]["hash"] = "other".into();
    let too_short = |value: &mut serde_json::Value| value["units"][0]["vector"] = "AACAPwAAgD8=".into();
    type Spoil = fn(&mut serde_json::Value);
    let cases: [(&str, Spoil, &[&str], bool); 3] = [
        ("vectors of model", of_another_model, &["b"], true),
        ("vectors of model", of_another_model, &["b", "c"], false),
        ("components", too_short, &["b", "c"], false),
    ];
    for (number, (word, spoil, sound, knows)) in cases.into_iter().enumerate() {
        let settings = pipeline(&home.path().join(number.to_string()), false, "log.partitions = 1");
        let names = ["a"].iter().chain(sound);
        ingest(&settings, &names.map(|name| turns(name, "s", 5)).collect::<Vec<_>>().concat());
        let log = logs::open(&settings.log).expect("the log");
        let records = log.read(Topic::Memory, 0, 0, 10_000).expect("read").records;
        let mut memory: Vec<_> =
            records.into_iter().filter(|of| of.value.is_some()).map(|of| (of.key, of.value)).collect();
        let is_of_a = |key: &[u8]| MemoryKey::from_bytes(key).expect("a key").bank == bank("a");
        memory.sort_by_key(|(key, _)| !is_of_a(key));
        for (_, value) in memory.iter_mut().filter(|(key, _)| is_of_a(key)) {
            let mut json = serde_json::from_slice(value.as_deref().expect("a value")).expect("JSON");
            spoil(&mut json);
            *value = Some(serde_json::to_vec(&json).expect("JSON"));
        }
        let next_offset = log.read_position(0).expect("a position");
        log.commit(&Transaction { partition: 0, next_offset, memory, ..Transaction::default() }).expect("committed");

        let model = embed::open(&settings.embed, &settings.model()).expect("a model").model().clone();
        let asks = knows.then(|| model.clone());
        let options = ReplicaOptions {
            hold: ShardAssignmentMode::All,
            edges: None,
            record: false,
            asks,
            waking_log: None,
            turns: None,
            progress: &mut |_, _| {},
        };
        let replica = Replica::open(&settings, &*log, options).expect("a memory");
        follow(&replica, &*log);
        let refusal = hash(&replica, "a").expect_err("quarantined");
        assert!(matches!(&refusal, PipelineError::Quarantined { problem, .. } if problem.contains(word)), "{refusal}");
        for name in sound {
            hash(&replica, name).expect("not its neighbour's record");
        }
        assert_eq!(replica.model(), Some(model.clone()));
        assert_eq!(model_of(&*log, Some(&model)).expect("read"), Some(model));
        drop((replica, log));
        if !knows {
            // The following turns do not stop at it either.
            ingest(&settings, &turns("b", "t", 5));
        }
    }
}

/// A shard is loaded from its own snapshot: what is in the others' directories does not matter.
#[test]
fn a_shard_that_is_taken_reads_its_own_snapshot() {
    let home = tempfile::tempdir().expect("a directory");
    let [moves, stays] = two_banks();
    let settings = pipeline(home.path(), true, "log.partitions = 3");
    ingest(&settings, &[turns(moves, "s", 9), turns(stays, "s", 5)].concat());
    let log = logs::open(&settings.log).expect("the log");
    let replica = open(&settings, &*log);
    let before = hash(&replica, moves).expect("known");
    replica.snapshot().expect("written").expect("new");
    let partition = partition_of(&bank(moves), 3);
    replica.leave(partition);
    let directory = |of: u32| home.path().join(format!("snapshots/shard-{of:05}"));
    for other in (0..3).filter(|other| *other != partition) {
        for entry in std::fs::read_dir(directory(other).join("manifests")).expect("listed") {
            std::fs::write(entry.expect("a manifest").path(), "spoiled").expect("written");
        }
    }
    replica.take(&*log, partition).expect("taken");
    // Nothing is left to read from the log: the snapshot had everything.
    assert!(!replica.follow(&*log, partition, |_, _, _| {}).expect("followed"));
    assert_eq!(hash(&replica, moves).expect("known"), before);
}

/// Commits the newest record of a partition once more.
fn rewrite(log: &dyn Log, partition: u32) -> u64 {
    let records = log.read(Topic::Memory, partition, 0, 10_000).expect("read").records;
    let last = records.into_iter().rfind(|record| record.value.is_some()).expect("a record");
    let next_offset = log.read_position(partition).expect("a position");
    let memory = vec![(last.key, last.value)];
    log.commit(&Transaction { partition, next_offset, memory, ..Transaction::default() }).expect("committed");
    log.end(Topic::Memory, partition).expect("an end") - 1
}

/// Every shard has two holders: one writes the snapshots, both answer, and when the writer ends, the other takes over.
/// If a point of the past is in no snapshot, a question about it gets no incomplete answer.
#[test]
fn of_two_holders_one_writes_and_the_other_takes_over() {
    let home = tempfile::tempdir().expect("a directory");
    let [name, other] = two_banks();
    let mut settings = pipeline(home.path(), true, "log.partitions = 3\nsnapshot.interval_seconds = 600");
    ingest(&settings, &[turns(name, "s", 9), turns(other, "s", 5)].concat());
    let log = logs::open(&settings.log).expect("the log");
    let partition = partition_of(&bank(name), 3);
    // As two instances on Kafka follow one log.
    settings.log.kind = types::config::LogKind::Kafka;
    let (first, second) = (open(&settings, &*log), open(&settings, &*log));
    assert_eq!(first.snapshot().expect("written").expect("new").manifests.len(), 3);
    assert!(second.snapshot().expect("looked").is_none());
    assert_eq!((first.written_elsewhere(), second.written_elsewhere()), (0, 3));
    assert_eq!(second.take_over(&*log).expect("looked"), 0, "its writer is alive");
    let now = |replica: &Replica| (hash(replica, name).expect("known"), hash(replica, other).expect("known"));
    assert_eq!(now(&first), now(&second));

    let ask = |replica: &Replica, at: u64| replica.past(&bank(name), snapshots::AsOf::Offset(at)).map(drop);
    let before = log.end(Topic::Memory, partition).expect("an end") - 1;
    let after = rewrite(&*log, partition);
    follow(&first, &*log);
    follow(&second, &*log);
    ask(&second, before).expect("the snapshot has it");
    let error = ask(&second, after).expect_err("no snapshot has it").to_string();
    assert!(error.contains("another process writes these snapshots") && error.contains("shard-0000"), "{error}");
    ask(&first, after).expect("the writer writes one");
    ask(&second, after).expect("now a snapshot has it");

    drop(first);
    assert_eq!(second.take_over(&*log).expect("taken"), 3);
    follow(&second, &*log);
    rewrite(&*log, partition);
    follow(&second, &*log);
    let written = second.snapshot().expect("written").expect("new").manifests;
    assert_eq!((written.len(), second.written_elsewhere()), (3, 0));
    assert!(written.iter().all(|manifest| manifest.reached.len() == 1), "{written:?}");
    let whole = now(&second);
    drop(second);
    assert_eq!(now(&open(&settings, &*log)), whole);
}

/// A partition that a group assigns is awaited, loaded, and answered until it is left.
#[test]
fn questions_of_an_assigned_partition_wait_until_its_shard_is_loaded() {
    let home = tempfile::tempdir().expect("a directory");
    let settings = pipeline(home.path(), false, "log.partitions = 3");
    let [ours, theirs] = two_banks();
    ingest(&settings, &[turns(ours, "s", 5), turns(theirs, "s", 5)].concat());
    let log = logs::open(&settings.log).expect("the log");
    let expected = hash(&open(&settings, &*log), ours).expect("known");
    let replica = open_holding(&settings, &*log, ShardAssignmentMode::Assigned);
    assert!(!replica.is_loaded(ShardAssignmentMode::Assigned), "the group has not decided");
    let partition = partition_of(&bank(ours), 3);
    // The questions topic may have more partitions than the memory.
    replica.assign(&[partition, 7], false);
    assert_eq!((replica.awaited(), replica.loading()), (vec![partition], vec![partition]));
    assert!(replica.is_loading(&bank(ours)) && !replica.is_loading(&bank(theirs)));
    replica.take(&*log, partition).expect("taken");
    assert_eq!((replica.awaited(), replica.loading()), (vec![], vec![partition]));
    assert!(replica.is_loading(&bank(ours)) && !replica.is_loaded(ShardAssignmentMode::Assigned));
    follow(&replica, &*log);
    assert!(!replica.is_loading(&bank(ours)) && replica.is_loaded(ShardAssignmentMode::Assigned));
    assert_eq!(hash(&replica, ours).expect("known"), expected);
    let elsewhere = hash(&replica, theirs).expect_err("another instance has it");
    assert!(matches!(elsewhere, PipelineError::OtherInstance { .. }), "{elsewhere}");
    // A new membership begins with its assigned partitions, and our partition is not among them.
    replica.assign(&[partition_of(&bank(theirs), 3)], true);
    assert_eq!(replica.revoked(), [partition]);
    assert_eq!(hash(&replica, ours).expect("it is held until it is left"), expected);
    replica.leave(partition);
    assert!(replica.revoked().is_empty() && !replica.is_loading(&bank(ours)));
    assert!(matches!(hash(&replica, ours), Err(PipelineError::OtherInstance { .. })));
    replica.revoke(&[partition_of(&bank(theirs), 3)]);
    assert!(replica.awaited().is_empty() && replica.is_loaded(ShardAssignmentMode::Assigned), "it stands by");
}

/// A shard that a group moves is loaded from what its previous holder wrote, and its new holder continues to write.
#[test]
fn a_shard_that_moves_takes_its_snapshots_along() {
    let home = tempfile::tempdir().expect("a directory");
    let [name, other] = two_banks();
    let mut settings = pipeline(home.path(), true, "log.partitions = 3");
    ingest(&settings, &[turns(name, "s", 9), turns(other, "s", 5)].concat());
    let log = logs::open(&settings.log).expect("the log");
    let partition = partition_of(&bank(name), 3);
    (settings.log.kind, settings.serve.hold) = (types::config::LogKind::Kafka, ShardAssignmentMode::Assigned);
    let join = || {
        let options = ReplicaOptions {
            hold: ShardAssignmentMode::Assigned,
            edges: None,
            record: true,
            asks: None,
            waking_log: None,
            turns: None,
            progress: &mut |_, _| {},
        };
        Replica::open(&settings, &*log, options).expect("a memory")
    };
    let take = |replica: &Replica| {
        replica.assign(&[partition], false);
        replica.awaited().iter().for_each(|partition| replica.take(&*log, *partition).expect("taken"));
    };
    let [first, second] = [join(), join()];
    take(&first);
    follow(&first, &*log);
    let whole = hash(&first, name).expect("known");
    assert_eq!(first.snapshot().expect("written").expect("new").manifests.len(), 1, "of the shard that it holds");
    let (mut from, mut to) = (&first, &second);
    for moves in 1..5 {
        from.revoke(&[partition]);
        let taken = from.shards()[0].next_offset;
        take(to);
        assert_eq!(to.shards()[0].next_offset, taken, "move {moves}: the snapshot has everything");
        assert!(!to.follow(&*log, partition, |_, _, _| {}).expect("followed"), "the snapshot has everything");
        assert_eq!((hash(to, name).expect("known"), hash(from, name).expect("kept for a while")), (whole, whole));
        rewrite(&*log, partition);
        follow(from, &*log);
        follow(to, &*log);
        assert!(from.snapshot().expect("looked").is_none(), "it was revoked");
        assert_eq!(to.snapshot().expect("written").expect("new").manifests[0].epoch, 1 + moves, "a claim a holder");
        from.leave(partition);
        (from, to) = (to, from);
    }
}

/// A log whose reads wait until they are allowed, or find nothing.
struct SlowLog {
    log: Box<dyn Log>,
    allowed: Mutex<()>,
    reading: AtomicBool,
    finds_nothing: AtomicBool,
}

impl SlowLog {
    fn of(settings: &Pipeline) -> Self {
        let (reading, finds_nothing) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { log: logs::open(&settings.log).expect("the log"), allowed: Mutex::default(), reading, finds_nothing }
    }
}

impl SourceLog for SlowLog {
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

impl Log for SlowLog {
    fn read(&self, topic: Topic, partition: u32, from: u64, limit: usize) -> Result<ReadBatch, LogError> {
        self.reading.store(true, Ordering::SeqCst);
        let _allowed = types::sync::lock(&self.allowed);
        if self.finds_nothing.load(Ordering::SeqCst) {
            return Ok(ReadBatch { next: from, ..ReadBatch::default() });
        }
        self.log.read(topic, partition, from, limit)
    }

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
        self.log.commit(transaction)
    }

    fn end(&self, topic: Topic, partition: u32) -> Result<u64, LogError> {
        self.log.end(topic, partition)
    }

    fn last_transaction(&self, topic: Topic, partition: u32) -> Result<TransactionEnd, LogError> {
        self.log.last_transaction(topic, partition)
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

    fn generation(&self) -> u32 {
        self.log.generation()
    }

    fn interrupt_next(&self) -> Result<(), LogError> {
        self.log.interrupt_next()
    }
}

/// A broker that does not answer delays no question.
#[test]
fn no_lock_that_a_question_takes_is_held_while_the_log_is_read() {
    let home = tempfile::tempdir().expect("a directory");
    let settings = pipeline(home.path(), false, "log.partitions = 1");
    ingest(&settings, &turns("a", "s", 5));
    let slow = SlowLog::of(&settings);
    let replica = open(&settings, &slow);
    let before = hash(&replica, "a").expect("known");
    slow.reading.store(false, Ordering::SeqCst);
    let each = |_: &MemoryKey, _: Option<&MemoryRecord>, _: u64| {};
    std::thread::scope(|scope| {
        let held = types::sync::lock(&slow.allowed);
        let following = scope.spawn(|| replica.follow(&slow, 0, each).expect("followed"));
        while !slow.reading.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        // Everything that a question reads, while the read of the log hangs.
        assert_eq!(hash(&replica, "a").expect("known"), before);
        assert!(replica.bank(bank("a").key()).is_some() && replica.model().is_some());
        assert!(!following.is_finished());
        drop(held);
        assert!(!following.join().expect("no panic"));
    });
}

/// A broker that has not delivered the record again yet looks like the end of the log.
#[test]
fn a_shard_waits_until_a_read_has_passed_the_record_before_which_it_waits() {
    let home = tempfile::tempdir().expect("a directory");
    let settings = pipeline(home.path(), false, "log.partitions = 1");
    ingest(&settings, &turns("a", "s", 5));
    let slow = SlowLog::of(&settings);
    let replica = open(&settings, &slow);
    let write = |value: Option<&[u8]>| {
        let next_offset = slow.read_position(0).expect("a position");
        let memory = vec![(b"no key".to_vec(), value.map(<[u8]>::to_vec))];
        slow.commit(&Transaction { partition: 0, next_offset, memory, ..Transaction::default() }).expect("committed");
    };
    let follow = || replica.follow(&slow, 0, |_, _, _| {});
    let waits_before = || replica.shards()[0].waits_before;
    let offset = slow.end(Topic::Memory, 0).expect("an end");
    write(Some(b"{}"));
    assert!(matches!(follow(), Err(PipelineError::Waits { offset: at, .. }) if at == offset));
    slow.finds_nothing.store(true, Ordering::SeqCst);
    assert!(!follow().expect("nothing"));
    assert_eq!(waits_before(), Some(offset), "it has not been passed");
    slow.finds_nothing.store(false, Ordering::SeqCst);
    write(None);
    while follow().expect("passed") {}
    assert_eq!(waits_before(), None);
}
