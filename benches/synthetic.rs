//! Synthetic units: vectors of 384 components around topics, such that each unit has about twenty
//! neighbours above a threshold of 0.75, a participant, some places, times half an hour apart.

use std::sync::Arc;

use types::model::{
    Bank, Cues, EventTime, Interval, MemoryKey, MemoryRecord, ModelRef, SCHEMA_VERSION, SessionId, TextFeatures, Turn,
    Unit, UnitId, UnitPart, Vector, WindowId, WindowState, WindowTurn,
};

pub(crate) const DIMENSIONS: usize = 384;

/// A closed window of these units, each from its own turn.
pub(crate) fn record(bank: &Bank, window: u32, units: Vec<Unit>) -> (MemoryKey, MemoryRecord) {
    let window = WindowId { session: SessionId("bank".into()), start: window };
    let key = MemoryKey { bank: bank.clone(), window: window.clone(), turn: None, part: 0 };
    let turn = |unit: &Unit| WindowTurn {
        turn: Arc::new(Turn {
            bank: bank.clone(),
            turn: unit.sources[0].clone(),
            version: 0,
            speaker: "ann".into(),
            kind: None,
            text: unit.restatement.clone(),
            time: unit.said_at,
            session: None,
            thread: None,
            reply_to: None,
            attachments: Vec::new(),
            metadata: None,
            recall: true,
        }),
        ordinal: unit.ordinal,
        context: false,
        deleted: false,
        source_offset: u64::from(unit.ordinal),
        stored: None,
    };
    let record = MemoryRecord {
        schema: SCHEMA_VERSION,
        bank: bank.clone(),
        window,
        state: WindowState::Final,
        turns_hash: String::new(),
        extractor: "bench/1".into(),
        cutter: None,
        model: ModelRef { name: "bench".into(), hash: "0".into() },
        turns: units.iter().map(turn).collect(),
        units,
        statements: None,
    };
    (key, record)
}

pub(crate) fn unit(bank: &Bank, size: usize, i: usize) -> Unit {
    let of_bank = bank.as_str().bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31) ^ u64::from(byte));
    let mut dice = Dice((i as u64) << 20 ^ of_bank);
    let topics = (size / 25).max(1) as u64;
    let topic = dice.below(topics);
    let mut center = Dice(topic << 32 ^ of_bank);
    let vector: Vec<f32> = (0..DIMENSIONS).map(|_| center.gauss() + 0.45 * dice.gauss()).collect();
    let words: Vec<String> = (0..12).map(|_| format!("word{}", dice.below(2_000))).collect();
    let said_at = EventTime::new(1_600_000_000_000 + i as i64 * 1_800_000, 0).expect("a time in range");
    let participants = vec![["ann", "bo", "cy"][dice.below(3) as usize].to_owned()];
    let locations = if dice.below(5) == 0 { vec![format!("place {}", dice.below(10))] } else { Vec::new() };
    let cues = Cues { participants, locations, time: Some(Interval::at(said_at)) };
    let sources = vec![format!("t{i}")];
    let restatement = words.join(" ");
    let window = WindowId { session: SessionId("bank".into()), start: i as u32 };
    Unit {
        id: UnitId::of(bank, &window, &sources, &restatement, &cues),
        restatement,
        vector: Vector::from(vector),
        cues,
        said_at,
        ordinal: i as u32,
        parts: vec![UnitPart {
            turn: sources[0].clone(),
            ordinal: i as u32,
            speaker: "ann".into(),
            kind: None,
            said_at,
            text: String::new(),
            range: None,
            marks: TextFeatures::default(),
            vectors: Vec::new(),
            pair: None,
        }],
        sources,
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    fn gauss(&mut self) -> f32 {
        (0..4).map(|_| self.below(1 << 20) as f32 / (1 << 20) as f32 - 0.5).sum::<f32>() * 1.732
    }
}
