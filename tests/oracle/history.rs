//! Random histories of memory records, from a seed.

use std::collections::BTreeMap;

use types::model::{
    Bank, Cues, EventTime, Interval, MemoryKey, MemoryRecord, ModelRef, SCHEMA_VERSION, SessionId, TextFeatures,
    TextRange, Unit, UnitId, UnitPart, Vector, WindowId, WindowState,
};

use super::profile::random_statements;

/// Components of the vectors.
pub(super) const DIMENSIONS: usize = 40;

/// A small random generator: the same seed gives the same history on every machine.
pub(crate) struct Dice(pub u64);

impl Dice {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// One write to the memory topic.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub key: MemoryKey,
    pub record: Option<MemoryRecord>,
}

pub(super) struct History {
    pub banks: Vec<Bank>,
    pub operations: Vec<Operation>,
}

impl History {
    pub(super) fn new(seed: u64, operations: usize) -> Self {
        let mut dice = Dice(seed);
        let banks: Vec<Bank> = ["a", "b/c"].iter().map(|b| Bank::parse(b).unwrap()).collect();
        let operations = (0..operations)
            .map(|_| {
                let bank = banks[dice.below(2) as usize].clone();
                let window = WindowId {
                    session: SessionId(format!("caller:{}", dice.below(3))),
                    start: (dice.below(6) * 10) as u32,
                };
                let turn = (dice.below(3) == 0).then(|| format!("t{}", dice.below(3)));
                let part = if turn.is_none() { dice.below(2) as u32 } else { 0 };
                let key = MemoryKey { bank, window, turn, part };
                let record = (dice.below(5) > 0).then(|| record(&key, &mut dice));
                Operation { key, record }
            })
            .collect();
        Self { banks, operations }
    }

    /// A history after which all but `stays` in ten of the records of each bank are lost; new ones come in between,
    /// and others after that. Returns it with the number of operations at its beginning; as many follow, with the loss,
    /// and then others.
    pub(super) fn with_loss(seed: u64, operations: usize, stays: u64) -> (Self, usize) {
        let mut history = Self::new(seed, operations);
        let mut dice = Dice(seed ^ 0x10_55);
        let mut new = Self::new(seed ^ 0xFFFF, operations).operations.into_iter();
        for key in history.live().into_keys() {
            if dice.below(10) >= stays {
                history.operations.push(Operation { key, record: None });
            }
            if dice.below(8) == 0 {
                history.operations.extend(new.next());
            }
        }
        assert!(history.operations.len() < 2 * operations, "the whole loss is in the second batch");
        history.operations.extend(new);
        (history, operations)
    }

    /// The records that a compacted log keeps.
    pub(super) fn live(&self) -> BTreeMap<MemoryKey, MemoryRecord> {
        let mut live = BTreeMap::new();
        for op in &self.operations {
            match &op.record {
                Some(record) => drop(live.insert(op.key.clone(), record.clone())),
                None => drop(live.remove(&op.key)),
            }
        }
        live
    }

    /// Another arrival order: random across keys, unchanged within a key.
    pub(super) fn shuffled(&self, order: u64) -> Vec<Operation> {
        let mut dice = Dice(order);
        let mut slots: Vec<usize> = (0..self.operations.len()).collect();
        for i in (1..slots.len()).rev() {
            slots.swap(i, dice.below(i as u64 + 1) as usize);
        }
        let mut by_key: BTreeMap<&MemoryKey, Vec<&Operation>> = BTreeMap::new();
        for op in self.operations.iter().rev() {
            by_key.entry(&op.key).or_default().push(op);
        }
        slots.iter().filter_map(|s| by_key.get_mut(&self.operations[*s].key)?.pop().cloned()).collect()
    }
}

fn record(key: &MemoryKey, dice: &mut Dice) -> MemoryRecord {
    let units: Vec<Unit> = (0..1 + dice.below(4)).map(|i| unit(key, i as u32, dice)).collect();
    let statements = Some(random_statements(key, units[0].id.0));
    MemoryRecord {
        schema: SCHEMA_VERSION,
        bank: key.bank.clone(),
        window: key.window.clone(),
        state: if key.turn.is_some() { WindowState::Open } else { WindowState::Final },
        turns_hash: String::new(),
        extractor: "random/1".into(),
        cutter: None,
        model: ModelRef { name: "random".into(), hash: "0".into() },
        turns: Vec::new(),
        units,
        statements,
    }
}

fn unit(key: &MemoryKey, i: u32, dice: &mut Dice) -> Unit {
    let said_at = time(dice);
    let sources = vec![format!("{:?}-{i}", key.turn)];
    let restatement = words(dice, 8);
    let cues = cues(dice);
    // Only two speak in one of the sessions.
    let speakers = if key.window.session.0 == "caller:0" { ["Ann", "cy", "cy"] } else { ["Ann", "Bo Lee", "cy"] };
    let part = |dice: &mut Dice, ordinal| {
        let count = dice.below(6) as usize;
        let greeting = ["", "Hey Kit! "][count % 2];
        let named = ["", "", " with Ann", " in Oslo", " in Oslo and Rome with Bo"][dice.below(5) as usize];
        UnitPart {
            turn: sources[0].clone(),
            ordinal,
            speaker: speakers[dice.below(3) as usize].into(),
            kind: None,
            said_at,
            text: greeting.to_owned() + &words(dice, count) + named,
            range: None,
            marks: TextFeatures {
                times: dice.below(4) as u8,
                asks: dice.below(3) == 0,
                quotes: dice.below(4) == 0,
                ..TextFeatures::default()
            },
            vectors: (0..1 + dice.below(2)).map(|_| Vector::from(vector(dice))).collect(),
            pair: (dice.below(2) == 0).then(|| Vector::from(vector(dice))),
        }
    };
    let first = key.window.start + i;
    let mut parts = match dice.below(4) {
        0 => vec![part(dice, first), part(dice, first + 1), part(dice, first + 2)],
        1 => (0..2 + dice.below(2) as u32).map(|at| passage(part(dice, first), at)).collect(),
        _ => vec![UnitPart { vectors: Vec::new(), pair: None, ..part(dice, first) }],
    };
    if dice.below(2) == 0 {
        parts.iter_mut().flat_map(|p| p.vectors.iter_mut().chain(&mut p.pair)).for_each(in_steps);
    }
    Unit {
        id: UnitId::of(&key.bank, &key.window, &sources, &restatement, &cues),
        restatement,
        vector: Vector::from(vector(dice)),
        cues,
        said_at,
        ordinal: key.window.start + i,
        sources,
        parts,
    }
}

/// A part as a passage of a long turn; the second is code, which has no vector.
fn passage(part: UnitPart, at: u32) -> UnitPart {
    let range = Some(TextRange { start: at * 9, end: at * 9 + 9, total: 27 });
    let vectors = part.vectors.into_iter().take(usize::from(at != 1)).collect();
    UnitPart { range, vectors, pair: None, ..part }
}

/// Stores a vector in 8 bits.
fn in_steps(vector: &mut Vector) {
    let length = vector.floats().iter().map(|x| x * x).sum::<f32>().sqrt();
    *vector = vector.floats().iter().map(|x| x / length).collect::<Vector>().in_steps();
}

fn time(dice: &mut Dice) -> EventTime {
    // Few moments, so that ties happen.
    EventTime::new(1_700_000_000_000 + dice.below(40) as i64 * 36_000_000, 0).unwrap()
}

/// A random vector around one of a few directions; some are equal.
pub(super) fn vector(dice: &mut Dice) -> Vec<f32> {
    let topic = dice.below(6);
    let noise = [0, 25, 60][dice.below(3) as usize];
    let mut center = Dice(topic);
    (0..DIMENSIONS)
        .map(|_| {
            center.below(201) as f32 - 100.0 + if noise > 0 { dice.below(2 * noise) as f32 - noise as f32 } else { 0.0 }
        })
        .collect()
}

pub(super) fn words(dice: &mut Dice, count: usize) -> String {
    const WORDS: [&str; 12] = [
        "boats", "garden", "choir", "painted", "recipe", "walking", "hull", "seeds", "tenor", "oven", "harbour", "rain",
    ];
    (0..count).map(|_| WORDS[dice.below(12) as usize]).collect::<Vec<_>>().join(" ")
}

pub(super) fn cues(dice: &mut Dice) -> Cues {
    let mut pick = |names: &[&str], most: u64| {
        let mut some: Vec<String> =
            (0..dice.below(most + 1)).map(|_| names[dice.below(names.len() as u64) as usize].to_owned()).collect();
        some.sort();
        some.dedup();
        some
    };
    let participants = pick(&["ann", "bo", "cy"], 2);
    let locations = pick(&["rome", "oslo"], 1);
    let time = (dice.below(2) == 0).then(|| {
        let start = time(dice);
        Interval {
            start_ms: start.unix_ms,
            end_ms: start.unix_ms + dice.below(3) as i64 * 40_000_000,
            offset_seconds: 0,
        }
    });
    Cues { participants, locations, time }
}
