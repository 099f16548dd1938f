//! Invariants 1, 2 and 5: the dataflow against a plain reference computed from the final set.
//!
//! Random records are added, replaced and removed. The same history is applied in several orders
//! across keys, batch sizes and worker counts. Units, edges, first hops and neighbourhoods must be
//! the same every time, and equal to the reference.

mod familiarity;
mod history;
mod reference;

use std::sync::Arc;

use ripplemem::{
    config::Pipeline,
    memory::{
        Census, CensusProbe, Extraction, FamiliarParts, FamiliarityProbe, FirstHopProbe, Hit, Listeners, Load,
        MemoryHandle, Neighbour, NeighbourhoodProbe, RecordKey, quantise,
    },
    model::{Bank, Channel, Cues, Score},
};

pub(crate) use history::Dice;
use history::{DIMENSIONS, History, Operation};
use reference::Reference;

/// Every answer of a memory to the probes.
#[derive(Debug, PartialEq)]
struct Answers {
    census: Census,
    hits: Vec<Vec<Hit>>,
    familiar: Vec<FamiliarParts>,
    neighbours: Vec<Vec<Neighbour>>,
}

fn pipeline(workers: usize) -> Pipeline {
    let mut pipeline = Pipeline::parse("version = 1").unwrap();
    pipeline.memory.workers = workers;
    // Small, so that tantivy commits and that pools overflow or run empty.
    pipeline.memory.lexical_tail = 7;
    pipeline.memory.semantic_pool = 8;
    pipeline.memory.semantic_edges = 3;
    pipeline.memory.structural_edges = 4;
    pipeline.memory.cue_neighbours = 3;
    pipeline.memory.fan_out = 5;
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
                    cues: if i == 0 { Cues::default() } else { history::cues(dice) },
                    semantic: 5,
                    lexical: 4,
                    cue: 4,
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The familiarity probe of the same question.
fn familiarity(probe: &FirstHopProbe) -> FamiliarityProbe {
    FamiliarityProbe {
        bank: probe.bank,
        vector: probe.vector.clone(),
        words: probe.words.clone(),
        synonyms: vec![
            vec![("choirs".into(), 0.5), ("rain".into(), 0.25)],
            vec![("rain".into(), 0.125), ("kayak".into(), 0.1)],
        ],
        names: probe.cues.participants.iter().map(|p| p.replace("bo", "bo lee")).collect(),
        months: probe.cues.time.map(|_| (None, 11)).into_iter().collect(),
        first_person_vector: probe.cues.time.map(|_| probe.vector.iter().rev().copied().collect()),
        topics: probe.words.split(' ').skip(1).collect::<Vec<_>>().join(" "),
        subject: probe.cues.participants.last().map(|p| p.replace("bo", "bo lee")),
        asks_time: probe.words.len().is_multiple_of(2),
        weights: Pipeline::parse("version = 1").unwrap().recall.familiarity.gathered,
        zero: 0.7,
        limit: 9,
        scale_parts: 12,
    }
}

/// The neighbourhood probe: its anchors are the first three units of the first hop.
fn walks(probe: &FirstHopProbe, hits: &[Hit], mixed: bool) -> NeighbourhoodProbe {
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
    }
}

fn play(operations: &[Operation], batch: usize, workers: usize, probes: &[FirstHopProbe]) -> Answers {
    let pipeline = pipeline(workers);
    let memory = MemoryHandle::start(&pipeline.memory, Score::from_f64(THRESHOLD), Listeners::default()).unwrap();
    for batch in operations.chunks(batch) {
        let changes = batch.iter().map(|op| {
            let extraction = op.record.as_ref().map(|r| Arc::new(Extraction::new(r, DIMENSIONS).unwrap()));
            (RecordKey::from(&op.key), extraction)
        });
        memory.load(Load { changes: changes.collect(), ..Load::default() }).unwrap();
    }
    let census = memory.census(CensusProbe { bank: None, listing: true }).unwrap().value;
    let hits: Vec<Vec<Hit>> = probes.iter().map(|p| memory.first_hop(p.clone()).unwrap().value).collect();
    let familiar = probes.iter().map(|p| memory.familiar(familiarity(p)).unwrap().value).collect();
    let neighbours = probes
        .iter()
        .zip(&hits)
        .enumerate()
        .map(|(i, (p, h))| memory.neighbourhood(walks(p, h, i % 2 == 1)).unwrap().value)
        .collect();
    Answers { census, hits, familiar, neighbours }
}

fn check(seed: u64, operations: usize) {
    let history = History::new(seed, operations);
    let mut dice = Dice(seed ^ 0xABCD);
    let probes = probes(&history.banks, &mut dice);
    let answers = play(&history.operations, 1, 1, &probes);

    let reference = Reference::new(&history.live(), &pipeline(1), Score::from_f64(THRESHOLD));
    assert_eq!(answers.census, reference.census(), "seed {seed}: units and edges equal the reference");
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

    for (order, batch, workers) in [(1, 3, 1), (2, 17, 3), (3, usize::MAX, 3), (4, 40, 2)] {
        let shuffled = history.shuffled(order);
        let again = play(&shuffled, batch, workers, &probes);
        assert_eq!(answers, again, "seed {seed}: order {order}, batches of {batch}, {workers} workers");
    }
}

fn got_len(hits: &[Hit], channel: Channel) -> u32 {
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

/// Invariant 1 where each unit keeps only its best edges: a deletion promotes the next best.
#[test]
fn a_deletion_promotes_the_next_best() {
    let history = History::new(7, 120);
    let pipeline = pipeline(1);
    let full = Reference::new(&history.live(), &pipeline, Score::from_f64(THRESHOLD));
    let Some(victim) = history.live().keys().next().cloned() else { panic!("an empty history") };
    let mut shorter = history.operations.clone();
    shorter.push(Operation { key: victim, record: None });
    let answers = play(&shorter, 5, 1, &[]);
    let mut rest = history.live();
    rest.remove(&shorter[shorter.len() - 1].key);
    let expected = Reference::new(&rest, &pipeline, Score::from_f64(THRESHOLD)).census();
    assert_eq!(answers.census, expected);
    let before = full.census().edge_list;
    let promoted = expected.edge_list.iter().filter(|edge| !before.contains(edge)).count();
    assert!(promoted > 0, "some unit chose a next best that it had not chosen before");
}

/// Invariant 5.
#[test]
fn no_bank_depends_on_another() {
    let history = History::new(21, 150);
    let mut dice = Dice(5);
    let probes = probes(&history.banks[..1], &mut dice);
    let alone: Vec<Operation> =
        history.operations.iter().filter(|op| op.key.bank == history.banks[0]).cloned().collect();
    let (together, alone) = (play(&history.operations, 9, 2, &probes), play(&alone, 9, 1, &probes));
    assert_eq!(together.hits, alone.hits);
    assert_eq!(together.familiar, alone.familiar);
    assert_eq!(together.neighbours, alone.neighbours);
    assert!(alone.hits.iter().any(|h| !h.is_empty()) && alone.neighbours.iter().any(|n| !n.is_empty()));
}

/// Invariant 2, in the dataflow: an answer reflects every load before it and states their offsets.
#[test]
fn an_answer_reflects_the_loads_before_it() {
    let memory = MemoryHandle::start(&pipeline(2).memory, Score::from_f64(THRESHOLD), Listeners::default()).unwrap();
    let history = History::new(3, 50);
    for (i, op) in history.operations.iter().enumerate() {
        let extraction = op.record.as_ref().map(|r| Arc::new(Extraction::new(r, DIMENSIONS).unwrap()));
        let at = ripplemem::model::Position { topic: "memory".into(), partition: 0, next_offset: i as u64 + 1 };
        memory
            .load(Load {
                changes: vec![(RecordKey::from(&op.key), extraction)],
                reflects: vec![at.clone()],
                ..Load::default()
            })
            .unwrap();
        let answered = memory.census(CensusProbe { bank: None, listing: true }).unwrap();
        assert_eq!(answered.reflects, vec![at]);
        let so_far = History { banks: history.banks.clone(), operations: history.operations[..=i].to_vec() };
        let reference = Reference::new(&so_far.live(), &pipeline(1), Score::from_f64(THRESHOLD));
        assert_eq!(answered.value, reference.census());
    }
}
