//! Tests that banks which share a stage remember the same as if each event were processed in log order.
//!
//! In: random logs of several banks, with short and huge turns, edits, deletions and marks, read in random pieces by
//! stages that end at any moment. The reference processes each event before the next one is written.

use std::{collections::BTreeMap, path::Path};

use super::{CachedEmbedder, ExtractionStage, ExtractorSet, extraction_stage::StageOutcome};
use logs::{EmbeddedLog, Log, Topic};

use types::{
    config::Pipeline,
    model::{Bank, EventTime, IdleMark, MemoryRecord, SessionEnd, Turn, TurnDeletion, TurnEvent},
    record_value::read_value,
};

const SAID: [&str; 6] = [
    "Where is the red kayak of my sister from Oslo?",
    "It is in the boathouse behind the mill. I painted it last Friday, and it needs another coat.",
    "ok",
    "Dee sold the old canoe to Cy in May. Cy paid in cash, and we met at the harbour of Lisbon.",
    "Wir treffen uns am Montag im Hafen, und Dee bringt die Karte mit.",
    "I will repair the roof next week, if the weather in Porto allows it.",
];

struct SharingDice(u64);

impl SharingDice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

fn bank(number: usize) -> Bank {
    Bank::parse(&format!("bank-{number}")).expect("a name")
}

fn said(bank: Bank, turn: usize, text: &str, minute: usize) -> Turn {
    let time = EventTime::new(1_700_000_000_000 + minute as i64 * 60_000, 0).expect("a time");
    Turn { session: Some(format!("s{}", turn % 2)), ..Turn::new(bank, &format!("t{turn}"), "Ann", text, time) }
}

/// A short text; with `huge_bytes`, one of at least this many bytes.
fn words(dice: &mut SharingDice, huge_bytes: usize) -> String {
    let mut text = SAID[dice.below(SAID.len())].to_owned();
    while text.len() < huge_bytes {
        text.push_str("\n\n");
        text.push_str(SAID[dice.below(SAID.len())]);
        text.push_str(&format!(" That was number {}.", text.len()));
    }
    text
}

/// Events of four banks, the first of which writes huge turns; marks at the end close every window.
fn events(dice: &mut SharingDice, count: usize) -> Vec<TurnEvent> {
    let mut events = Vec::new();
    for n in 0..count {
        let of = dice.below(4);
        let turn = dice.below(12);
        events.push(match dice.below(12) {
            0 => TurnEvent::SessionEnd(SessionEnd { bank: bank(of), session: format!("s{}", n % 2) }),
            1 => TurnEvent::Deletion(TurnDeletion { bank: bank(of), turn: format!("t{turn}"), version: n as u64 }),
            2 => {
                let text = words(dice, 0);
                let version = n as u64;
                TurnEvent::Turn(Turn { version, ..said(bank(of), turn, &text, n) })
            }
            _ => {
                let huge_bytes = if of == 0 && dice.below(3) == 0 { 20_000 + dice.below(60_000) } else { 0 };
                let minute = if dice.below(6) == 0 { n / 2 } else { n * 9 };
                let text = words(dice, huge_bytes);
                TurnEvent::Turn(said(bank(of), 100 + n, &text, minute))
            }
        });
    }
    let time = EventTime::new(1_900_000_000_000, 0).expect("a time");
    events.extend((0..4).map(|of| TurnEvent::Idle(IdleMark { bank: bank(of), time })));
    events
}

fn pipeline(directory: &Path) -> Pipeline {
    let text = format!(
        "version = 1\nembed.model = \"fixed\"\nwindow.turns = 6\nlog.directory = {:?}",
        directory.display().to_string()
    );
    Pipeline::parse(&text).expect("a pipeline")
}

/// What one process has open.
struct ExtractionProcess {
    stage: ExtractionStage,
    extractors: ExtractorSet,
    vectors: CachedEmbedder,
}

impl ExtractionProcess {
    fn start(pipeline: &Pipeline, log: &EmbeddedLog) -> Self {
        let extractors = ExtractorSet::new(pipeline, log.news()).expect("no model to fail");
        let mut vectors = CachedEmbedder::new(pipeline);
        vectors.embedder().expect("a model");
        let stage = ExtractionStage::take_over(0, pipeline, log, vectors.model()).expect("a stage");
        Self { stage, extractors, vectors }
    }

    fn work(&mut self, log: &EmbeddedLog) -> StageOutcome {
        self.stage.work(log, &self.extractors, &mut self.vectors, 512).expect("a piece")
    }

    fn work_off(&mut self, log: &EmbeddedLog) {
        while !matches!(self.work(log), StageOutcome::Nothing) {}
    }
}

/// The records that hold, by key, without the times at which turns were stored: these differ between two logs.
pub(crate) fn live(log: &EmbeddedLog) -> BTreeMap<Vec<u8>, MemoryRecord> {
    let mut live = BTreeMap::new();
    for record in log.read(Topic::Memory, 0, 0, usize::MAX).expect("records").records {
        let Some(value) = record.value else {
            live.remove(&record.key);
            continue;
        };
        let mut value: MemoryRecord = read_value(&value).expect("a record");
        value.turns.iter_mut().for_each(|turn| turn.stored = None);
        live.insert(record.key, value);
    }
    live
}

#[test]
fn banks_that_share_a_stage_remember_what_they_do_in_the_order_of_the_log() {
    let home = tempfile::tempdir().expect("a directory");
    let (mut restarts_behind, mut pieces) = (0, 0);
    for seed in 0..6 {
        let dice = &mut SharingDice(seed);
        let events = events(dice, 90);
        let open = |name: &str| {
            let pipeline = pipeline(&home.path().join(format!("{name}-{seed}")));
            let log = EmbeddedLog::open(&pipeline.log).expect("a log");
            (pipeline, log)
        };
        let (pipeline, in_order) = open("in-order");
        let mut process = ExtractionProcess::start(&pipeline, &in_order);
        for event in &events {
            in_order.append_turns(std::slice::from_ref(event)).expect("room");
            process.work_off(&in_order);
        }
        drop(process);

        let (pipeline, shared) = open("shared");
        let mut process = ExtractionProcess::start(&pipeline, &shared);
        let mut left = &events[..];
        while !left.is_empty() {
            let (some, rest) = left.split_at(left.len().min(1 + dice.below(12)));
            shared.append_turns(some).expect("room");
            left = rest;
            for _ in 0..dice.below(12) {
                pieces += usize::from(matches!(process.work(&shared), StageOutcome::Piece));
            }
            if dice.below(3) == 0 {
                // As a kill does, this loses what is not committed.
                drop(process);
                restarts_behind += usize::from(!shared.progress(0).expect("a progress").behind.is_empty());
                process = ExtractionProcess::start(&pipeline, &shared);
            }
        }
        process.work_off(&shared);
        let end = shared.end(Topic::Turns, 0).expect("an end");
        assert_eq!(shared.progress(0).expect("a progress"), end.into(), "seed {seed}");
        assert_eq!(process.stage.progress(), end.into(), "seed {seed}");
        let (expected, found) = (live(&in_order), live(&shared));
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "seed {seed}");
        for (key, value) in expected {
            let differs = || format!("seed {seed}: {}", String::from_utf8_lossy(&key));
            assert!(found.get(&key) == Some(&value), "{}", differs());
        }
    }
    assert!(restarts_behind > 3 && pieces > 60, "{restarts_behind} {pieces}");
}

/// A huge turn is first in the log, and more turns of that bank follow.
#[test]
fn a_turn_of_another_bank_waits_for_pieces_of_a_huge_one() {
    let home = tempfile::tempdir().expect("a directory");
    let pipeline = pipeline(home.path());
    let log = EmbeddedLog::open(&pipeline.log).expect("a log");
    let dice = &mut SharingDice(1);
    let huge: Vec<TurnEvent> = (0..3).map(|n| TurnEvent::Turn(said(bank(0), n, &words(dice, 400_000), n))).collect();
    log.append_turns(&huge).expect("room");
    let mut process = ExtractionProcess::start(&pipeline, &log);
    for _ in 0..4 {
        assert!(!matches!(process.work(&log), StageOutcome::Nothing));
    }
    for n in 0..5 {
        log.append_turns(&[TurnEvent::Turn(said(bank(1), n, "The kayak is red.", n))]).expect("room");
        let end = log.end(Topic::Turns, 0).expect("an end");
        let worked = (0..6).take_while(|_| {
            let progress = log.progress(0).expect("a progress");
            assert_eq!(progress.of(&bank(0)), 0, "the huge turn is not done yet");
            progress.of(&bank(1)) < end && !matches!(process.work(&log), StageOutcome::Nothing)
        });
        assert!(worked.count() < 6, "turn {n} waits for no more than some pieces");
    }
    // The pieces that were embedded are not embedded again.
    while log.progress(0).expect("a progress").of(&bank(0)) == 0 {
        process.work(&log);
    }
    let ended = (0..40).filter(|_| matches!(process.work(&log), StageOutcome::Piece)).count();
    drop(process);
    let mut process = ExtractionProcess::start(&pipeline, &log);
    let count = |process: &mut ExtractionProcess| {
        let before = log.progress(0).expect("a progress").of(&bank(0));
        let mut pieces = 0;
        while log.progress(0).expect("a progress").of(&bank(0)) == before {
            pieces += 1;
            process.work(&log);
        }
        pieces
    };
    let (rest, whole) = (count(&mut process), count(&mut process));
    assert!(ended > 30 && rest + 20 < whole, "{ended} {rest} {whole}");
    process.work_off(&log);
    assert_eq!(log.progress(0).expect("a progress"), log.end(Topic::Turns, 0).expect("an end").into());
}
