//! Shards side by side on one thread: no shard waits for another, and a failed shard does not take others down.

use std::{rc::Rc, sync::Arc};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use super::{
    CensusProbe, ChangeListeners, DataflowAnswer, FamiliarityProbe, GraphCensus, RecordKey, RecordLoad, RecordUnits,
    ShardHandle, ShardThreadPool,
    dataflow::shard_command::{AnswerRow, ShardCommand},
    probes::IndexProbe,
    shard::shard_worker::{ShardSeed, ShardWorker},
};
use types::{
    config::Pipeline,
    model::{
        Bank, Cues, EventTime, MemoryKey, MemoryRecord, ModelRef, SCHEMA_VERSION, Score, SessionId, TextFeatures, Unit,
        UnitId, UnitPart, Vector, WindowId, WindowState,
    },
};

const WIDTH: usize = 32;

fn bank(name: &str) -> Bank {
    Bank::parse(name).expect("a good name")
}

/// Closed windows of one unit each.
fn load(name: &str, windows: std::ops::Range<u32>) -> RecordLoad {
    let bank = bank(name);
    let change = |start: u32| {
        let window = WindowId { session: SessionId("s".to_owned()), start };
        let sources = vec![format!("{start}")];
        let restatement = format!("the {start} kayaks of the harbour");
        let said_at = EventTime::new(1_700_000_000_000 + i64::from(start) * 60_000, 0).expect("a good time");
        let vector: Vec<f32> = (0..WIDTH).map(|i| ((start as usize * 31 + i * 17) % 101) as f32 - 50.0).collect();
        let part = UnitPart {
            turn: sources[0].clone(),
            ordinal: start,
            speaker: "Ann".to_owned(),
            kind: None,
            said_at,
            text: restatement.clone(),
            range: None,
            marks: TextFeatures::default(),
            vectors: vec![Vector::from(vector.clone())],
            pair: None,
        };
        let unit = Unit {
            id: UnitId::of(&bank, &window, &sources, &restatement, &Cues::default()),
            restatement,
            vector: Vector::from(vector),
            cues: Cues::default(),
            said_at,
            ordinal: start,
            sources,
            parts: vec![part],
        };
        let record = MemoryRecord {
            schema: SCHEMA_VERSION,
            bank: bank.clone(),
            window: window.clone(),
            state: WindowState::Final,
            turns_hash: String::new(),
            extractor: "test/1".to_owned(),
            cutter: None,
            model: ModelRef { name: "test".to_owned(), hash: "0".to_owned() },
            turns: Vec::new(),
            units: vec![unit],
            statements: None,
        };
        let key = MemoryKey { bank: bank.clone(), window, turn: None, part: 0 };
        (RecordKey::from(&key), Some(Arc::new(RecordUnits::new(&record, WIDTH).expect("a good record"))))
    };
    RecordLoad { changes: windows.map(change).collect(), ..RecordLoad::default() }
}

fn shard(threads: &Arc<ShardThreadPool>, listeners: ChangeListeners) -> ShardHandle {
    let settings = Pipeline::parse("version = 1").expect("the defaults").memory;
    ShardHandle::start_on(threads, &settings, Score::from_f64(0.9), listeners).expect("a shard")
}

fn units(memory: &ShardHandle, name: &str) -> u64 {
    let probe = CensusProbe { bank: Some(bank(name).key()), hashing: false, listing: false };
    memory.census(probe).expect("an answer").value.units
}

fn familiar(memory: &ShardHandle, name: &str) -> usize {
    memory.familiar_parts(probe(name)).expect("an answer").value.parts_total
}

fn probe(name: &str) -> FamiliarityProbe {
    let settings = Pipeline::parse("version = 1").expect("the defaults").recall.familiarity;
    FamiliarityProbe {
        bank: bank(name).key(),
        vector: vec![100; WIDTH].into(),
        words: "kayaks".to_owned(),
        language: None,
        topics: vec!["kayaks".to_owned()],
        persons: Vec::new(),
        names: Vec::new(),
        subject: None,
        asker: None,
        asks_time: false,
        time: None,
        weights: settings.weights,
        cosines: settings.cosines,
        greeted_names: settings.greeted_names,
        zero: settings.zero,
        scale_tokens: settings.scale_tokens,
        candidates: 0,
        linked_units: 0,
        limit: 5,
        matching: None,
    }
}

/// A shard without a thread; unless a test says otherwise, its slices are as small as possible. The test decides when
/// it does the next slice.
struct SteppedShard {
    shard: ShardWorker,
    commands: Sender<ShardCommand>,
}

impl SteppedShard {
    fn new() -> Self {
        Self::with_slices(1)
    }

    fn with_slices(slice: u64) -> Self {
        let (commands, incoming) = unbounded();
        let seed = ShardSeed {
            settings: Pipeline::parse("version = 1").expect("the defaults").memory,
            semantic_threshold: Score::from_f64(0.9),
            slice,
            listeners: ChangeListeners::default(),
            commands: incoming,
            backlog: Arc::default(),
        };
        Self { shard: ShardWorker::new(seed, Rc::default()), commands }
    }

    fn load(&self, load: RecordLoad) {
        self.commands.send(ShardCommand::Load(load.prepare())).expect("the shard is there");
    }

    /// Asks for the parts of a bank; the receiver gets the answer.
    fn ask(&self, name: &str) -> Receiver<DataflowAnswer<Vec<AnswerRow>>> {
        let (reply, answer) = bounded(1);
        let probe = Box::new(IndexProbe::Familiarity(Box::new(probe(name))));
        self.commands.send(ShardCommand::Index(probe, reply)).expect("the shard is there");
        answer
    }

    /// Asks for a census of a bank; the receiver gets the answer.
    fn count(&self, name: &str, hashing: bool) -> Receiver<DataflowAnswer<Vec<AnswerRow>>> {
        let (reply, answer) = bounded(1);
        let probe = CensusProbe { bank: Some(bank(name).key()), hashing, listing: false };
        self.commands.send(ShardCommand::Census(probe, reply)).expect("the shard is there");
        answer
    }

    /// Returns whether anything was done.
    fn step(&mut self) -> bool {
        let answered = self.shard.answer();
        self.shard.work_slice() || answered
    }

    /// Steps until the answer is there; returns the number of parts in it.
    fn parts(&mut self, answer: &Receiver<DataflowAnswer<Vec<AnswerRow>>>) -> usize {
        loop {
            if let Ok(answered) = answer.try_recv() {
                let total =
                    |row: &AnswerRow| if let AnswerRow::Familiar(found) = row { Some(found.parts_total) } else { None };
                return answered.value.iter().find_map(total).unwrap_or_default();
            }
            assert!(self.step(), "nothing is left to do, and there is no answer");
        }
    }
}

/// In its own shard and in another, while one bank is loaded in slices of one window.
#[test]
fn a_footprint_is_that_of_the_units_that_were_loaded() {
    let threads = ShardThreadPool::start(1).expect("a thread");
    let memory = shard(&threads, ChangeListeners::default());
    memory.load(load("a", 0..20)).expect("a load");
    memory.load(load("b", 0..40)).expect("a load");
    let of = |name: Option<&str>| memory.footprint(name.map(|name| bank(name).key())).expect("an answer").value;
    let (a, b) = (of(Some("a")), of(Some("b")));
    assert_eq!((a.units, b.units), (20, 40), "it waits for the loads");
    assert_eq!(2 * a.vector_bytes, b.vector_bytes);
    assert!(a.vector_bytes >= 20 * 2 * (2 * WIDTH) as u64, "a vector of the unit and one of its part: {a:?}");
    assert!(a.text_bytes > 20 * 2 * "the 10 kayaks of the harbour".len() as u64, "{a:?}");
    assert!(a.part_bytes > 0 && a.semantic_bytes > 0 && a.structural_bytes > 0 && a.edge_bytes > 0, "{a:?}");
    assert_eq!(a.candidate_bytes, 0, "a small bank has no index of candidates");
    let mut both = a;
    both.add(&b);
    assert_eq!((of(None), of(None).bytes()), (both, a.bytes() + b.bytes()));
    let changes = load("a", 0..20).changes.into_iter().map(|(key, _)| (key, None)).collect();
    memory.load(RecordLoad { changes, ..RecordLoad::default() }).expect("a load");
    assert_eq!((of(Some("a")).bytes(), of(None)), (0, b), "what is deleted takes no room");
}

#[test]
fn a_slow_load_delays_no_other_banks_answer() {
    let threads = ShardThreadPool::with_slices(1, 1).expect("a thread");
    let (sender, loaded) = unbounded();
    let slow = shard(&threads, ChangeListeners { choices: Some(sender), ..ChangeListeners::default() });
    let other = shard(&threads, ChangeListeners::default());
    slow.load(load("small", 0..3)).expect("a load");
    other.load(load("elsewhere", 0..2)).expect("a load");
    slow.wait_for_loads().expect("loaded");
    other.wait_for_loads().expect("loaded");
    assert_eq!(loaded.try_iter().count(), 1);
    // A test thread that sleeps too long may find the load done; then a longer load follows.
    let mut windows = 0;
    let overtook = [600, 1_200, 2_400].into_iter().any(|more| {
        slow.load(load("large", windows..windows + more)).expect("a load");
        windows += more;
        assert_eq!((units(&slow, "small"), familiar(&slow, "small")), (3, 3));
        assert_eq!((units(&other, "elsewhere"), familiar(&other, "elsewhere")), (2, 2));
        let overtook = loaded.try_recv().is_err();
        // A probe that was sent after the load waits for the whole load.
        assert_eq!((units(&slow, "large"), familiar(&slow, "large")), (u64::from(windows), windows as usize));
        overtook
    });
    assert!(overtook, "no answer came while the large bank was being loaded");
}

/// While a large bank is scanned part by part, other banks are answered and loaded, and the large bank is not changed.
#[test]
fn a_long_scan_delays_no_other_bank_and_sees_one_state() {
    let mut stepped = SteppedShard::new();
    stepped.load(load("large", 0..400));
    stepped.load(load("small", 0..3));
    while stepped.step() {}
    let scanned = stepped.ask("large");
    stepped.step();
    let small = stepped.ask("small");
    assert_eq!(stepped.parts(&small), 3);
    stepped.load(load("small", 3..6));
    let (small, later) = (stepped.ask("small"), stepped.ask("large"));
    stepped.load(load("large", 400..420));
    let after = stepped.ask("large");
    assert_eq!(stepped.parts(&small), 6);
    assert!(scanned.is_empty(), "the large bank is still being scanned");
    assert_eq!(stepped.parts(&scanned), 400);
    assert_eq!((stepped.parts(&later), stepped.parts(&after)), (400, 420));
}

/// The units and the hash of a census that is answered.
fn counted(answer: &Receiver<DataflowAnswer<Vec<AnswerRow>>>) -> (u64, u128) {
    let rows = answer.try_recv().expect("it is answered").value;
    let mut whole = GraphCensus::default();
    rows.into_iter().for_each(|row| {
        if let AnswerRow::Census(part) = row {
            whole.add(part)
        }
    });
    (whole.units, whole.hash)
}

#[test]
fn a_bank_is_counted_once_for_all_who_ask_until_it_changes_and_hashed_for_digests_alone() {
    let mut stepped = SteppedShard::new();
    stepped.load(load("a", 0..20));
    stepped.load(load("b", 0..3));
    while stepped.step() {}
    let flood: Vec<_> = (0..200).map(|_| stepped.count("a", false)).collect();
    let one = stepped.count("b", false);
    stepped.shard.answer();
    assert_eq!(counted(&one), (3, 0), "behind few of the flood");
    assert!(!flood[0].is_empty() && flood[199].is_empty());
    while stepped.step() {}
    assert!(flood.iter().all(|answer| counted(answer) == (20, 0)));
    assert_eq!(stepped.shard.censuses_made, 2, "one of each bank, for 201 readers");
    // A digest is hashed once for all of these, and its rows hold the counts as well.
    let digests: Vec<_> = (0..50).map(|_| stepped.count("a", true)).collect();
    while stepped.step() {}
    let hash = counted(&digests[0]).1;
    assert!(hash != 0 && digests[1..].iter().all(|answer| counted(answer) == (20, hash)));
    assert_eq!(stepped.shard.censuses_made, 3);
    // Another bank's load changes nothing for this one.
    stepped.load(load("b", 3..6));
    let (a, b) = (stepped.count("a", true), stepped.count("b", false));
    while stepped.step() {}
    assert_eq!((counted(&a), counted(&b), stepped.shard.censuses_made), ((20, hash), (6, 0), 4));
    stepped.load(load("a", 20..21));
    let (a, digest) = (stepped.count("a", false), stepped.count("a", true));
    while stepped.step() {}
    assert_eq!((counted(&a), counted(&digest).0, stepped.shard.censuses_made), ((21, 0), 21, 6));
}

#[test]
fn a_panic_ends_its_own_shard_alone() {
    let threads = ShardThreadPool::start(1).expect("a thread");
    let (falls, stays) = (shard(&threads, ChangeListeners::default()), shard(&threads, ChangeListeners::default()));
    falls.load(load("a", 0..5)).expect("a load");
    stays.load(load("b", 0..5)).expect("a load");
    assert_eq!(units(&falls, "a"), 5);
    falls.panic();
    assert!(falls.census(CensusProbe { bank: None, hashing: false, listing: false }).is_err());
    assert!(falls.is_stopped() && falls.load(load("a", 5..6)).is_err());
    assert_eq!(units(&stays, "b"), 5);
    drop(falls);
    let again = shard(&threads, ChangeListeners::default());
    again.load(load("a", 0..5)).expect("a load");
    assert_eq!((units(&again, "a"), units(&stays, "b")), (5, 5));
}

#[test]
fn a_shard_that_is_dropped_leaves_nothing_behind() {
    if !testing::in_own_process("index::tests::a_shard_that_is_dropped_leaves_nothing_behind") {
        return;
    }
    let threads = ShardThreadPool::start(2).expect("threads");
    let mut after_first = 0;
    for round in 0..1_000 {
        let memory = shard(&threads, ChangeListeners::default());
        memory.load(load("bank", 0..20)).expect("a load");
        assert_eq!(units(&memory, "bank"), 20);
        drop(memory);
        if round == 99 {
            after_first = testing::resident_bytes();
        }
    }
    // One shard of this size holds about 300 KB: 900 leaked shards would hold far more.
    let grown = testing::resident_bytes().saturating_sub(after_first);
    assert!(grown < 64 << 20, "{grown} bytes more after 900 shards");
}

/// Changes that remove what a load added.
fn removal(added: RecordLoad) -> RecordLoad {
    let changes = added.changes.into_iter().map(|(key, _)| (key, None)).collect();
    RecordLoad { changes, ..RecordLoad::default() }
}

/// Which windows stay, and which are new.
type LossCase = (fn(u32) -> bool, std::ops::Range<u32>);

/// A load that takes most of a bank, or all of it, and brings new units, is applied in pieces of any size; loads of
/// another bank come in between. The bank ends as one that lost its units one by one.
#[test]
fn a_bank_that_loses_much_at_once_ends_as_if_it_lost_its_units_one_by_one() {
    let digest = |stepped: &mut SteppedShard, name: &str| {
        let answer = stepped.count(name, true);
        while stepped.step() {}
        counted(&answer)
    };
    // Which windows stay, and which are new.
    let cases: [LossCase; 4] = [
        (|start| start % 9 == 0, 120..120),
        (|start| start % 3 > 0, 105..126),
        (|_| false, 120..120),
        (|_| false, 117..129),
    ];
    for (stays, new) in cases {
        let mut alone = SteppedShard::with_slices(u64::MAX);
        alone.load(load("a", 0..120));
        for start in (0..120).filter(|start| !stays(*start)) {
            alone.load(removal(load("a", start..start + 1)));
        }
        alone.load(load("a", new.clone()));
        let expected = digest(&mut alone, "a");
        for slice in [1, 25_000, 400_000, u64::MAX] {
            let mut stepped = SteppedShard::with_slices(slice);
            stepped.load(load("a", 0..120));
            while stepped.step() {}
            let mut changes = removal(load("a", 0..120)).changes;
            let staying: Vec<RecordKey> =
                (0..120).filter(|start| stays(*start)).map(|start| load("a", start..start + 1).changes[0].0).collect();
            changes.retain(|(key, _)| !staying.contains(key));
            changes.extend(load("a", new.clone()).changes);
            stepped.load(RecordLoad { changes, ..RecordLoad::default() });
            let mut asked = Vec::new();
            for window in 0..8 {
                stepped.step();
                stepped.load(load("b", window..window + 1));
                asked.push((window + 1, stepped.count("b", false)));
            }
            let found = digest(&mut stepped, "a");
            assert_eq!(found, expected, "slices of {slice}, new windows {new:?}");
            asked.iter().for_each(|(units, answer)| assert_eq!(counted(answer).0, u64::from(*units)));
        }
    }
}

#[test]
fn what_was_removed_is_given_up_once_a_shard_is_idle() {
    // Each load is one batch, and batches of different sizes are not merged at once.
    let mut stepped = SteppedShard::with_slices(u64::MAX);
    let (kept, removed) = (load("a", 0..3_000), load("a", 3_000..4_500));
    let keys: Vec<RecordKey> = removed.changes.iter().map(|(key, _)| *key).collect();
    let extractions: Vec<_> = removed.changes.iter().flat_map(|(_, made)| made).map(Arc::downgrade).collect();
    let held = || extractions.iter().filter(|extraction| extraction.upgrade().is_some()).count();
    let all = RecordLoad { changes: [kept.changes, removed.changes].concat(), ..RecordLoad::default() };
    stepped.load(all);
    while stepped.step() {}
    stepped.load(RecordLoad { changes: keys.into_iter().map(|key| (key, None)).collect(), ..RecordLoad::default() });
    while stepped.step() {}
    let before = held();
    assert!(before > 512, "{before} are held, so that there is something to give up");
    let steps = (0..10_000).take_while(|_| stepped.shard.merge_arrangements()).count();
    assert!(steps < 10_000 && !stepped.shard.merge_arrangements(), "an idle shard comes to an end");
    let left = held();
    assert!(left <= 512, "{left} of {before} are still held");
}
