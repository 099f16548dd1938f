//! An explanation beside its question: `cargo bench --bench explain`.
//!
//! Banks of several sizes, with the deterministic embedder, so that a model's time is not in the figure. Each question
//! is asked and explained in turn, for the turn that it quotes first and for one that it does not quote. Printed for
//! each size: the medians, and the explanation's as a multiple of the question's. The goal is three times below 8,192
//! parts.
#![allow(clippy::print_stdout)]

use std::{fmt::Write as _, fs};

use ripplemem::PipelineDriver;
use types::{
    config::{Pipeline, SourceSettings},
    model::{Bank, ExplanationQuery, Question, SubjectId},
};

#[allow(dead_code, reason = "the other benches use the rest")]
mod figures;
use figures::{median, seconds};

/// Turns of the banks; each is a part.
const SIZES: [usize; 4] = [500, 2_000, 8_000, 20_000];
/// Questions of each bank.
const QUESTIONS: usize = 60;
/// Size of the vocabulary.
const WORDS: usize = 3_000;

fn main() {
    println!("{:>8}  {:>12}  {:>16}  {:>20}", "parts", "question ms", "explained quoted", "explained not quoted");
    for size in SIZES {
        let home = tempfile::tempdir().expect("a temporary directory");
        let service = filled(home.path(), size);
        let mut times: [Vec<f64>; 3] = Default::default();
        for at in 0..QUESTIONS {
            let bank = Bank::parse("bench").expect("a good name");
            let text = format!("What did Ann say of the {} and the {}?", word(at * 17), word(at * 31 + 7));
            let question = Question::new(bank, text);
            let mut answer = None;
            times[0].push(seconds(|| answer = service.ask(&question).ok()));
            let answer = answer.expect("an answer");
            let quoted = answer.units[0].excerpts[0].turn.clone();
            let other = (0..size).map(turn).find(|turn| answer.units.iter().all(|unit| !unit.sources.contains(turn)));
            for (of, turn) in [(1, quoted), (2, other.expect("a turn that is not quoted"))] {
                let subject = ExplanationQuery { id: SubjectId::Turn(turn), part: None, every_part: false };
                let mut quoted = None;
                times[of].push(seconds(|| quoted = service.explain(&question, subject, None).ok().map(|e| e.quoted)));
                assert_eq!(quoted, Some(of == 1), "{}", question.text);
            }
        }
        let [asked, quoted, other] = times.map(|times| 1_000.0 * median(&times));
        let beside = |time: f64| format!("{time:.2} ({:.2} ×)", time / asked);
        println!("{size:>8}  {asked:>12.2}  {:>16}  {:>20}", beside(quoted), beside(other));
    }
}

/// A memory of a bank with this many turns.
fn filled(home: &std::path::Path, turns: usize) -> PipelineDriver {
    let mut pipeline =
        Pipeline::parse("version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"").expect("a pipeline");
    pipeline.log.directory = home.join("log");
    let mut lines = String::new();
    for at in 0..turns {
        let text = format!("The {} of the {} is {}.", word(at * 3), word(at * 7 + at / 10), word(at * 13 + 5));
        let time = jiff::Timestamp::from_second(1_600_000_000 + at as i64 * 600).expect("a time in range");
        let speaker = ["Ann", "Bo"][at % 2];
        let line = serde_json::json!({
            "bank": "bench", "turn": turn(at), "speaker": speaker, "text": text, "time": time.to_string(),
            "session": format!("s{}", at / 200),
        });
        writeln!(lines, "{line}").expect("a string takes it");
    }
    let file = home.join("turns.jsonl");
    fs::write(&file, lines).expect("a file");
    let mut service = PipelineDriver::open(&pipeline, &mut |_| {}).expect("a memory");
    let mut source = sources::open(&SourceSettings::new("jsonl", &file)).expect("a source");
    service.ingest(&mut *source, &mut |_| {}).expect("turns that are read");
    service
}

fn turn(at: usize) -> String {
    format!("t{at}")
}

/// The word with this number.
fn word(at: usize) -> String {
    let mut number = at * 2_654_435_761 % WORDS;
    let mut word = String::from("w");
    for _ in 0..4 {
        word.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
    }
    word
}
