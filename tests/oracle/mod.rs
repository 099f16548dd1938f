//! Invariants 1, 2 and 5: the dataflow against a plain reference computed from the final set.
//!
//! Random records are added, replaced and removed. The same history is applied in several orders
//! across keys, batch sizes, shards and threads. Units, edges, first hops and neighbourhoods must be
//! the same every time, and equal to the reference.

mod familiarity;
mod history;
mod long_turns;
mod profile;
mod reference;
mod selectors;
mod sleeping;

use std::sync::Arc;

use logs::partition_of;
use memory::index::{
    CensusProbe, ChangeListeners, FamiliarityProbe, FamiliarityResult, FirstHopHit, FirstHopProbe, GraphCensus,
    Neighbour, NeighbourhoodProbe, ProbedTime, ProfileProbe, RecordKey, RecordLoad, RecordUnits, ShardHandle,
    ShardThreadPool, quantise,
};
use memory::language::question::LocalStretch;
use types::{
    config::{CosineScale, Pipeline},
    model::{Bank, BankKey, Channel, Cues, Language, Score},
};

pub(crate) use history::Dice;
use history::{DIMENSIONS, History, Operation};
use profile::ExpectedLine;
use reference::Reference;

/// Every answer of a memory to the probes.
#[derive(Debug, PartialEq)]
struct Answers {
    census: GraphCensus,
    hits: Vec<Vec<FirstHopHit>>,
    familiar: Vec<FamiliarityResult>,
    candidates: Vec<FamiliarityResult>,
    neighbours: Vec<Vec<Neighbour>>,
    /// The lines of each bank's profile.
    profiles: Vec<Vec<ExpectedLine>>,
}

fn pipeline() -> Pipeline {
    let mut pipeline = Pipeline::parse("version = 1").unwrap();
    // Small, so that tantivy commits and that pools overflow or run empty.
    pipeline.memory.lexical_tail = 7;
    pipeline.memory.semantic_pool = 8;
    pipeline.memory.semantic_edges = 3;
    pipeline.memory.structural_edges = 4;
    pipeline.memory.cue_neighbours = 3;
    pipeline.memory.fan_out = 5;
    pipeline.memory.candidates_from_parts = 20;
    pipeline.memory.window_words = 9;
    pipeline
}

const THRESHOLD: f64 = 0.55;

fn probes(banks: &[Bank], dice: &mut Dice) -> Vec<FirstHopProbe> {
    banks
        .iter()
        .flat_map(|bank| {
            (0..4)
                .map(|i| FirstHopProbe {
                    bank: bank.key(),
                    vector: quantise(&history::vector(dice)),
                    words: history::words(dice, 4),
                    language: Language::En,
                    cues: if i == 0 { Cues::default() } else { history::cues(dice) },
                    semantic: 5,
                    lexical: 4,
                    cue: 4,
                    matching: None,
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The familiarity probe of the same question.
fn familiarity(probe: &FirstHopProbe) -> FamiliarityProbe {
    // Kit is a name that occurs only in greetings.
    let ann = if probe.words.len().is_multiple_of(3) { "ann" } else { "kit" };
    let known = |p: &String| p.replace("bo", "bo lee").replace("ann", ann);
    let names = probe.cues.participants.iter().map(known);
    FamiliarityProbe {
        bank: probe.bank,
        vector: probe.vector.clone(),
        words: probe.words.clone(),
        language: None,
        names: names.collect(),
        topics: probe.words.split(' ').skip(1).map(str::to_owned).collect(),
        persons: Vec::new(),
        subject: probe.cues.participants.last().map(known),
        asker: None,
        asks_time: probe.words.len().is_multiple_of(2),
        time: probe.cues.time.map(|time| probed_time(time.start_ms, probe.words.len())),
        weights: Pipeline::parse("version = 1").unwrap().recall.familiarity.weights,
        cosines: CosineScale { factor: 1.5, offset: -0.25 },
        greeted_names: true,
        zero: 0.7,
        scale_tokens: 200,
        limit: 9,
        candidates: 0,
        linked_units: 0,
        matching: None,
    }
}

/// The day of a moment, in one of several forms.
fn probed_time(at_ms: i64, form: usize) -> ProbedTime {
    const DAY_MS: i64 = 86_400_000;
    let first_ms = at_ms.div_euclid(DAY_MS) * DAY_MS;
    let around = (first_ms - 9 * DAY_MS, first_ms + 12 * DAY_MS);
    let months = if form.is_multiple_of(3) { vec![11] } else { Vec::new() };
    let offset_seconds = form.is_multiple_of(2).then_some(7_200);
    let stretches = vec![LocalStretch { first_ms, last_ms: first_ms + DAY_MS - 1, around }];
    ProbedTime { stretches, months, offset_seconds, of_saying: form.is_multiple_of(5), chooses: false }
}

/// The neighbourhood probe: its anchors are the first three units of the first hop.
fn walks(probe: &FirstHopProbe, hits: &[FirstHopHit], mixed: bool) -> NeighbourhoodProbe {
    let mut anchors: Vec<_> = hits.iter().map(|h| h.unit.id).collect();
    anchors.dedup();
    anchors.truncate(3);
    NeighbourhoodProbe {
        bank: probe.bank,
        anchors,
        hops: 2,
        mixed,
        question: probe.vector.clone(),
        target: probe.vector.iter().rev().copied().collect(),
        target_cues: probe.cues.clone(),
        itself: false,
        matching: None,
    }
}

/// How banks are divided among shards, shards among threads, and work into slices.
#[derive(Debug, Clone, Copy)]
struct Layout {
    shards: u32,
    threads: usize,
    slice: u64,
}

const ONE: Layout = Layout { shards: 1, threads: 1, slice: u64::MAX };

/// A memory of several shards on several threads; every bank lies in one of them.
struct Shards(Vec<ShardHandle>);

impl Shards {
    /// With a slice of 1 every load and scan pauses after its least step.
    fn start(Layout { shards, threads, slice }: Layout) -> Self {
        let (threads, settings) = (ShardThreadPool::with_slices(threads, slice).unwrap(), pipeline().memory);
        let shard = |_| {
            ShardHandle::start_on(&threads, &settings, Score::from_f64(THRESHOLD), ChangeListeners::default()).unwrap()
        };
        Self((0..shards).map(shard).collect())
    }

    fn of(&self, bank: &Bank) -> &ShardHandle {
        &self.0[partition_of(bank, self.0.len() as u32) as usize]
    }

    /// Each shard gets its own part of a batch.
    fn load(&self, batch: &[Operation]) {
        let mut loads: Vec<RecordLoad> = self.0.iter().map(|_| RecordLoad::default()).collect();
        for op in batch {
            let extraction = op.record.as_ref().map(|r| Arc::new(RecordUnits::new(r, DIMENSIONS).unwrap()));
            let shard = partition_of(&op.key.bank, self.0.len() as u32) as usize;
            loads[shard].changes.push((RecordKey::from(&op.key), extraction));
        }
        for (shard, load) in self.0.iter().zip(loads) {
            shard.load(load).unwrap();
        }
    }

    fn census(&self) -> GraphCensus {
        let mut whole = GraphCensus::default();
        for shard in &self.0 {
            whole.add(shard.census(CensusProbe { bank: None, hashing: true, listing: true }).unwrap().value);
        }
        whole
    }
}

fn play(
    history: &History,
    operations: &[Operation],
    batch: usize,
    layout: Layout,
    probes: &[FirstHopProbe],
) -> Answers {
    let memory = Shards::start(layout);
    let mut batches = operations.chunks(batch);
    if let Some(first) = batches.next() {
        memory.load(first);
        // A first hop makes the index of words, which what follows then changes.
        ask_all(&memory, history, probes);
    }
    batches.for_each(|batch| memory.load(batch));
    ask_all(&memory, history, probes)
}

/// The answers of a memory to the probes.
fn ask_all(memory: &Shards, history: &History, probes: &[FirstHopProbe]) -> Answers {
    let of = |key: BankKey| memory.of(history.banks.iter().find(|bank| bank.key() == key).unwrap());
    // Before the count of everything, which waits for all loads.
    let hits: Vec<Vec<FirstHopHit>> = probes.iter().map(|p| of(p.bank).first_hop(p.clone()).unwrap().value).collect();
    let all = |p: &FirstHopProbe| familiarity(p);
    // Some of the banks are large enough for candidates.
    let some = |p: &FirstHopProbe| FamiliarityProbe { candidates: 14, linked_units: 2, ..familiarity(p) };
    let answers = |ask: &dyn Fn(&FirstHopProbe) -> FamiliarityProbe| -> Vec<FamiliarityResult> {
        probes.iter().map(|p| of(p.bank).familiar_parts(ask(p)).unwrap().value).collect()
    };
    let (familiar, candidates) = (answers(&all), answers(&some));
    let neighbours = probes
        .iter()
        .zip(&hits)
        .enumerate()
        .map(|(i, (p, h))| of(p.bank).neighbourhood(walks(p, h, i % 2 == 1)).unwrap().value)
        .collect();
    let lines = |bank: &Bank| {
        let probe = ProfileProbe { bank: bank.key(), person: None };
        let found = memory.of(bank).profile(probe).unwrap().value;
        let mut lines: Vec<ExpectedLine> = found.iter().map(|line| ExpectedLine::from(&**line)).collect();
        lines.sort();
        lines
    };
    let profiles = history.banks.iter().map(lines).collect();
    Answers { census: memory.census(), hits, familiar, candidates, neighbours, profiles }
}

fn check(seed: u64, operations: usize) {
    let layouts = [
        (3, Layout { shards: 1, threads: 1, slice: 1 }),
        (17, Layout { shards: 3, threads: 2, slice: 200_000 }),
        (usize::MAX, Layout { shards: 8, threads: 3, slice: 1 }),
        (40, Layout { shards: 2, threads: 2, slice: 5_000 }),
        (9, Layout { shards: 5, threads: 1, slice: u64::MAX }),
    ];
    check_history(seed, &History::new(seed, operations), &layouts, History::shuffled);
}

/// Plays a history one operation after the other, compares it with the reference, and then plays it again in batches,
/// in other layouts, in the order that `order` gives it.
fn check_history(
    seed: u64,
    history: &History,
    layouts: &[(usize, Layout)],
    order: impl Fn(&History, u64) -> Vec<Operation>,
) {
    let mut dice = Dice(seed ^ 0xABCD);
    let probes = probes(&history.banks, &mut dice);
    let answers = play(history, &history.operations, 1, ONE, &probes);

    let reference = Reference::new(&history.live(), &pipeline(), Score::from_f64(THRESHOLD));
    assert_eq!(answers.census, reference.census(), "seed {seed}: units and edges equal the reference");
    for (bank, lines) in history.banks.iter().zip(&answers.profiles) {
        assert_eq!(*lines, profile::profile(reference.statements(bank)), "seed {seed}: the profile of {bank}");
    }
    for (i, (probe, hits)) in probes.iter().zip(&answers.hits).enumerate() {
        for (channel, expected) in reference.first_hop(probe) {
            let got: Vec<_> = hits.iter().filter(|h| h.channel == channel).collect();
            if channel == Channel::Lexical {
                reference.check_lexical(probe, &got);
            } else {
                let got: Vec<_> = got.iter().map(|h| (h.score, h.alignment, h.unit.id)).collect();
                assert_eq!(got, expected, "seed {seed}: {channel} hits of probe {i}");
            }
            assert!(hits.iter().filter(|h| h.channel == channel).map(|h| h.rank).eq(1..=got_len(hits, channel)));
        }
        reference.check_familiar(&familiarity(probe), &answers.familiar[i]);
        let walk = walks(probe, hits, i % 2 == 1);
        assert_eq!(answers.neighbours[i], reference.neighbourhood(&walk), "seed {seed}: neighbours of probe {i}");
    }

    for (nth, (batch, layout)) in (1..).zip(layouts) {
        let again = play(history, &order(history, nth), *batch, *layout, &probes);
        assert_eq!(answers, again, "seed {seed}: order {nth}, batches of {batch}, {layout:?}");
    }
}

fn got_len(hits: &[FirstHopHit], channel: Channel) -> u32 {
    hits.iter().filter(|h| h.channel == channel).count() as u32
}

/// Invariant 1.
#[test]
fn incremental_equals_from_scratch() {
    for seed in 0..12 {
        check(seed, 60);
    }
    check(100, 400);
}

/// Invariant 1 if each unit keeps only its best edges: a deletion promotes the next best.
#[test]
fn a_deletion_promotes_the_next_best() {
    let history = History::new(7, 120);
    let pipeline = pipeline();
    let full = Reference::new(&history.live(), &pipeline, Score::from_f64(THRESHOLD));
    let Some(victim) = history.live().keys().next().cloned() else { panic!("an empty history") };
    let mut shorter = history.operations.clone();
    shorter.push(Operation { key: victim, record: None });
    let answers = play(&history, &shorter, 5, ONE, &[]);
    let mut rest = history.live();
    rest.remove(&shorter[shorter.len() - 1].key);
    let expected = Reference::new(&rest, &pipeline, Score::from_f64(THRESHOLD)).census();
    assert_eq!(answers.census, expected);
    let before = full.census().edge_list;
    let promoted = expected.edge_list.iter().filter(|edge| !before.contains(edge)).count();
    assert!(promoted > 0, "some unit chose a next best that it had not chosen before");
}

/// Invariant 1 if a load takes most of a bank or all of it: nothing differs from the same removals one by one, whatever
/// else the load brings, however it is divided, and if other loads follow.
#[test]
fn what_leaves_at_once_leaves_as_if_one_by_one() {
    for (seed, stays) in (0..5).zip([0, 1, 2, 4, 7]) {
        let (history, at_once) = History::with_loss(seed, 100, stays);
        let layouts = [
            (at_once, Layout { shards: 1, threads: 1, slice: 1 }),
            (at_once, Layout { shards: 2, threads: 2, slice: 60_000 }),
            (at_once, Layout { shards: 1, threads: 1, slice: 2_000_000 }),
            (at_once, Layout { shards: 1, threads: 1, slice: u64::MAX }),
            (at_once / 3, Layout { shards: 3, threads: 2, slice: 1 }),
        ];
        check_history(seed, &history, &layouts, |history, _| history.operations.clone());
    }
}

/// Invariant 5.
#[test]
fn no_bank_depends_on_another() {
    let history = History::new(21, 150);
    let mut dice = Dice(5);
    let probes = probes(&history.banks[..1], &mut dice);
    let alone: Vec<Operation> =
        history.operations.iter().filter(|op| op.key.bank == history.banks[0]).cloned().collect();
    let (together, alone) = (
        play(&history, &history.operations, 9, Layout { shards: 2, threads: 2, slice: 1 }, &probes),
        play(&history, &alone, 9, ONE, &probes),
    );
    assert_eq!(together.hits, alone.hits);
    assert_eq!(together.familiar, alone.familiar);
    assert_eq!(together.candidates, alone.candidates);
    assert_eq!(together.neighbours, alone.neighbours);
    assert!(alone.hits.iter().any(|h| !h.is_empty()) && alone.neighbours.iter().any(|n| !n.is_empty()));
}

/// Invariant 2, in the dataflow: an answer reflects every load before it and states their offsets.
#[test]
fn an_answer_reflects_the_loads_before_it() {
    let memory =
        ShardHandle::start(&pipeline().memory, Score::from_f64(THRESHOLD), ChangeListeners::default()).unwrap();
    let history = History::new(3, 50);
    for (i, op) in history.operations.iter().enumerate() {
        let extraction = op.record.as_ref().map(|r| Arc::new(RecordUnits::new(r, DIMENSIONS).unwrap()));
        let at = types::model::LogPosition { topic: "memory".into(), partition: 0, next_offset: i as u64 + 1 };
        memory
            .load(RecordLoad {
                changes: vec![(RecordKey::from(&op.key), extraction)],
                reflects: vec![at.clone()],
                ..RecordLoad::default()
            })
            .unwrap();
        let answered = memory.census(CensusProbe { bank: None, hashing: true, listing: true }).unwrap();
        assert_eq!(answered.reflects, vec![at]);
        let so_far = History { banks: history.banks.clone(), operations: history.operations[..=i].to_vec() };
        let reference = Reference::new(&so_far.live(), &pipeline(), Score::from_f64(THRESHOLD));
        assert_eq!(answered.value, reference.census());
    }
}

/// Invariant 2, while loads are applied in pieces: an answer reflects whole loads only, those that it states, even if
/// many ask at once.
#[test]
fn no_answer_reflects_a_part_of_a_load() {
    let history = History::new(11, 300);
    let loads: Vec<&[Operation]> = history.operations.chunks(60).collect();
    // By number of loads: the units of each bank.
    let expected: Vec<Vec<u64>> = (0..=loads.len())
        .map(|n| {
            let so_far = History { banks: history.banks.clone(), operations: loads[..n].concat() };
            let reference = Reference::new(&so_far.live(), &pipeline(), Score::from_f64(THRESHOLD)).census();
            let of =
                |bank: &Bank| reference.unit_list.iter().filter(|(unit, _)| unit.bank == bank.key()).count() as u64;
            history.banks.iter().map(of).collect()
        })
        .collect();
    let threads = ShardThreadPool::with_slices(1, 1).unwrap();
    let start = || {
        let settings = pipeline().memory;
        ShardHandle::start_on(&threads, &settings, Score::from_f64(THRESHOLD), ChangeListeners::default()).unwrap()
    };
    let memory = start();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (at, bank) in history.banks.iter().enumerate() {
            let (memory, expected, done) = (&memory, &expected, &done);
            scope.spawn(move || {
                let mut last = false;
                while !last {
                    last = done.load(std::sync::atomic::Ordering::Acquire);
                    let probe = CensusProbe { bank: Some(bank.key()), hashing: true, listing: false };
                    let counted = memory.census(probe).unwrap();
                    let loaded = counted.reflects.first().map_or(0, |at| at.next_offset as usize);
                    assert_eq!(counted.value.units, expected[loaded][at], "after {loaded} loads");
                }
            });
        }
        for (n, load) in (1..).zip(&loads) {
            let changes = load.iter().map(|op| {
                let extraction = op.record.as_ref().map(|r| Arc::new(RecordUnits::new(r, DIMENSIONS).unwrap()));
                (RecordKey::from(&op.key), extraction)
            });
            let reflects = vec![types::model::LogPosition { topic: "memory".into(), partition: 0, next_offset: n }];
            memory.load(RecordLoad { changes: changes.collect(), reflects, ..RecordLoad::default() }).unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Release);
    });
}
