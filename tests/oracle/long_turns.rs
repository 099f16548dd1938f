//! The vector of a long turn's unit, against a plain mean.
//!
//! In: turns with sections, lists, tables and code, added, edited and removed at random. Out: of each unit of passages
//! that the log holds at the end, the vector is the mean of its passages' vectors. Each of these is embedded again from
//! the passage's words, and weighed by its bytes; code counts only if a turn is nothing else. Semantic edges compare
//! it.

use std::collections::BTreeMap;

use logs::Topic;
use memory::extract::passages::is_code;
use models::embed;
use ripplemem::PipelineDriver;
use serde_json::json;
use types::model::{MemoryRecord, TurnEvent, Unit, WindowState};

use super::{Dice, history::words};
use crate::support::{open, pipeline};

/// Turns of a history.
const TURNS: u64 = 12;
/// The allowed error of a component: passages' vectors and their mean are rounded to steps of 1 in 400.
const STEP: f64 = 0.006;

/// A text of several blocks.
fn long_text(dice: &mut Dice) -> String {
    let mut text = String::new();
    for n in 0..3 + dice.below(5) {
        let rows = |dice: &mut Dice, before: &str, after: &str| -> String {
            (0..4 + dice.below(20)).map(|_| format!("{before}{}{after}\n", words(dice, 4))).collect()
        };
        let block = match dice.below(5) {
            0 => format!("## {}\n\n{}.\n", words(dice, 2), words(dice, 20)),
            1 => rows(dice, "- ", ""),
            2 => format!("| a | b |\n|---|---|\n{}", rows(dice, "| ", " | 1 |")),
            3 => format!("```\n{}```\n", rows(dice, "run(", ")")),
            _ => format!("{} {n}. {}.\n", words(dice, 30), words(dice, 40)),
        };
        text.push_str(&block);
        text.push('\n');
    }
    text
}

/// The mean of the vectors of a unit's passages, of length 1; each counts for as much as `weight` says.
fn mean(unit: &Unit, weight: fn(&str) -> f64) -> Vec<f64> {
    let settings = pipeline(std::path::Path::new("."), "");
    let mut embedder = embed::open(&settings.embed, &settings.model()).unwrap();
    let all_code = unit.parts.iter().all(|part| is_code(&part.text));
    let counted =
        unit.parts.iter().enumerate().filter(|(at, part)| if all_code { *at == 0 } else { !is_code(&part.text) });
    let mut sum = vec![0.0; unit.vector.len()];
    for (_, part) in counted {
        let made = embedder.embed_query(&part.text).unwrap();
        for (sum, x) in sum.iter_mut().zip(made.floats().iter()) {
            *sum += f64::from(*x) * weight(&part.text);
        }
    }
    let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
    sum.into_iter().map(|x| x / length).collect()
}

/// The largest difference between the unit's vector and another one in any component.
fn distance(unit: &Unit, other: &[f64]) -> f64 {
    let own: Vec<f64> = unit.vector.floats().iter().map(|x| f64::from(*x)).collect();
    let length = own.iter().map(|x| x * x).sum::<f64>().sqrt();
    own.iter().zip(other).map(|(x, y)| (x / length - y).abs()).fold(0.0, f64::max)
}

/// The units of passages of the records that count.
fn units(service: &PipelineDriver) -> Vec<Unit> {
    let mut live = BTreeMap::new();
    for record in service.log().read(Topic::Memory, 0, 0, 100_000).unwrap().records {
        match record.value {
            Some(value) => drop(live.insert(record.key, serde_json::from_slice::<MemoryRecord>(&value).unwrap())),
            None => drop(live.remove(&record.key)),
        }
    }
    let is_final = |record: &MemoryRecord| record.state == WindowState::Final;
    let closed: Vec<_> = live.values().filter(|record| is_final(record)).map(|record| record.window.clone()).collect();
    let counts = |record: &MemoryRecord| is_final(record) || !closed.contains(&record.window);
    let units = live.into_values().filter(counts).flat_map(|record| record.units);
    units.filter(|unit| unit.parts.iter().any(|part| part.range.is_some())).collect()
}

#[test]
fn a_long_turns_vector_is_the_mean_of_its_passages_by_their_bytes() {
    let (mut checked, mut told_apart) = (0, 0);
    for seed in 0..3 {
        let (home, mut dice) = (tempfile::tempdir().unwrap(), Dice(seed));
        let mut service = open(&pipeline(home.path(), ""));
        for step in 0..3 * TURNS {
            let (turn, second) = (dice.below(TURNS), step % 60);
            let event = if dice.below(5) == 0 {
                json!({"type": "deletion", "bank": "a", "turn": turn.to_string(), "version": step})
            } else {
                json!({"bank": "a", "turn": turn.to_string(), "version": step, "speaker": "Helper", "role": "assistant",
                       "text": long_text(&mut dice), "time": format!("2024-05-01T10:{turn:02}:{second:02}Z"), "session": "s"})
            };
            service.log().append_turns(&[TurnEvent::from_json(event.to_string().as_bytes()).unwrap()]).unwrap();
            if dice.below(3) == 0 {
                service.catch_up().unwrap();
            }
        }
        service.catch_up().unwrap();
        for unit in units(&service) {
            let found = distance(&unit, &mean(&unit, |text| text.len() as f64));
            assert!(found < STEP, "seed {seed}, turn {:?}: {found}", unit.sources);
            checked += 1;
            told_apart += usize::from(distance(&unit, &mean(&unit, |_| 1.0)) > STEP);
        }
    }
    assert!(checked > 10 && told_apart > checked / 2, "{told_apart} of {checked} are another mean without the bytes");
}
