//! Measures a memory of many banks, with sleep and without it, each in a process of its own.
//!
//! In: the log and the snapshots of the ingestion, and its questions. Out: how long the first answer takes, how much
//! memory the banks take, how long questions to awake banks and to sleeping ones take, and how many turns a second reach
//! banks that are chosen at random. Some banks are asked far more often than others.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use replica::QueryRequest;
use ripplemem::Memory;
use serde::{Deserialize, Serialize};
use types::{
    config::Pipeline,
    model::{Bank, EventTime, Question, Turn, TurnEvent},
};

use super::{
    bench_step::{milliseconds, stored_questions},
    figures::percentile,
    process_memory::settled_bytes,
};

/// After how many seconds a bank sleeps.
const SLEEP_AFTER_SECONDS: u64 = 5;
/// How many turns are put to banks that are chosen at random.
const PUT_TURNS: u64 = 1_000;
/// How long the last turn may take until it is reflected.
const PATIENCE: Duration = Duration::from_secs(600);

/// What one of the two processes measured.
#[derive(Serialize, Deserialize)]
pub(super) struct SleepMeasurement {
    /// From the start of the process's memory to its first answer.
    pub first_answer_seconds: f64,
    /// After the start, with one answer.
    pub started_bytes: Option<u64>,
    /// Milliseconds of each question to a bank that was awake.
    pub awake_ms: Vec<f64>,
    /// Milliseconds of each question to a bank that slept.
    pub waking_ms: Vec<f64>,
    /// Turns to banks at random, until all are reflected.
    pub turns_per_second: f64,
    /// Once everything that may sleep does.
    pub rested_bytes: Option<u64>,
    /// Banks in memory and asleep then.
    pub rested: Option<(u64, u64)>,
}

/// Opens what was ingested, asks, puts turns, and rests.
pub(super) fn measure(
    pipeline: &Pipeline,
    within: &Path,
    banks: u64,
    most: u64,
    sleeps: bool,
) -> Result<SleepMeasurement> {
    let mut pipeline = pipeline.clone();
    pipeline.memory.sleep_after_seconds = if sleeps { SLEEP_AFTER_SECONDS } else { 0 };
    let texts: Vec<String> = stored_questions(within)?.into_iter().map(|question| question.text).collect();
    let mut dice = fastrand::Rng::with_seed(banks);
    let bank = |n: u64| Bank::parse(&format!("bench/{n}"));
    let mut question = || -> Result<Question> {
        // Most questions go to few banks.
        let n = (dice.f64().powi(3) * banks as f64) as u64;
        let text = texts.get(dice.usize(..texts.len().max(1))).context("no question was found among the turns")?;
        Ok(Question::new(bank(n)?, text))
    };
    let started = Instant::now();
    let memory = Memory::open(&pipeline)?;
    memory.ask_and_wait(QueryRequest::now(question()?))?;
    let first_answer_seconds = started.elapsed().as_secs_f64();
    let started_bytes = settled_bytes();
    let (mut awake_ms, mut waking_ms) = (Vec::new(), Vec::new());
    for _ in 0..most {
        let question = question()?;
        let is_asleep = memory.replica().is_asleep(&question.bank);
        let started = Instant::now();
        memory.ask_and_wait(QueryRequest::now(question))?;
        let took = milliseconds(started.elapsed());
        if is_asleep { waking_ms.push(took) } else { awake_ms.push(took) }
    }
    let mut chosen = fastrand::Rng::with_seed(banks);
    let started = Instant::now();
    for n in 0..PUT_TURNS {
        let time = EventTime::new(1_900_000_000_000 + i64::try_from(n)?, 0)?;
        let of = bank(chosen.u64(..banks))?;
        let turn = Turn::new(of, &format!("more-{n}"), "Ann", "We keep the spare kayak in the boathouse.", time);
        memory.put([TurnEvent::from(turn)])?;
    }
    let end = memory.end()?;
    anyhow::ensure!(memory.wait_for(&end, Instant::now() + PATIENCE), "the turns are not reflected in time");
    let turns_per_second = PUT_TURNS as f64 / started.elapsed().as_secs_f64();
    let until = Instant::now() + Duration::from_secs(6 * SLEEP_AFTER_SECONDS);
    while sleeps && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(100));
        if memory.replica().sleep_status().is_some_and(|status| status.awake == 0) {
            break;
        }
    }
    let rested_bytes = settled_bytes();
    let rested = memory.replica().sleep_status().map(|status| (status.awake, status.asleep));
    Ok(SleepMeasurement {
        first_answer_seconds,
        started_bytes,
        awake_ms,
        waking_ms,
        turns_per_second,
        rested_bytes,
        rested,
    })
}

/// Both measurements.
#[derive(Serialize)]
pub(super) struct SleepFigures {
    banks: u64,
    turns: u64,
    empty_bytes: Option<u64>,
    without_sleep: SleepColumn,
    with_sleep: SleepColumn,
}

#[derive(Serialize)]
struct SleepColumn {
    first_answer_seconds: f64,
    /// Above an empty process, after the start and one answer.
    started_bytes: Option<u64>,
    started_bytes_per_bank: Option<f64>,
    /// Above an empty process, at the end.
    rested_bytes: Option<u64>,
    rested_bytes_per_bank: Option<f64>,
    /// Banks in memory and asleep at the end.
    rested: Option<(u64, u64)>,
    awake_questions: usize,
    awake_p50_ms: Option<f64>,
    awake_p99_ms: Option<f64>,
    waking_questions: usize,
    waking_p50_ms: Option<f64>,
    waking_p99_ms: Option<f64>,
    turns_per_second: f64,
}

impl SleepFigures {
    /// The figures of both processes, and of an empty one.
    pub(super) fn of(banks: u64, turns: u64, empty_bytes: Option<u64>, [without, with]: [SleepMeasurement; 2]) -> Self {
        let column = |of: SleepMeasurement| {
            let above = |bytes: Option<u64>| bytes.zip(empty_bytes).map(|(bytes, empty)| bytes.saturating_sub(empty));
            let of_bank = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / banks.max(1) as f64);
            let (started, rested) = (above(of.started_bytes), above(of.rested_bytes));
            SleepColumn {
                first_answer_seconds: of.first_answer_seconds,
                started_bytes: started,
                started_bytes_per_bank: of_bank(started),
                rested_bytes: rested,
                rested_bytes_per_bank: of_bank(rested),
                rested: of.rested,
                awake_questions: of.awake_ms.len(),
                awake_p50_ms: percentile(&of.awake_ms, 50),
                awake_p99_ms: percentile(&of.awake_ms, 99),
                waking_questions: of.waking_ms.len(),
                waking_p50_ms: percentile(&of.waking_ms, 50),
                waking_p99_ms: percentile(&of.waking_ms, 99),
                turns_per_second: of.turns_per_second,
            }
        };
        Self { banks, turns, empty_bytes, without_sleep: column(without), with_sleep: column(with) }
    }

    /// The figures as a table.
    pub(super) fn table(&self) -> String {
        let Self { banks, turns, without_sleep, with_sleep, .. } = self;
        let both = [without_sleep, with_sleep];
        let room = |bytes: Option<u64>, of_bank: Option<f64>| match (bytes, of_bank) {
            (Some(bytes), Some(of_bank)) => format!("{:.1} MB, {of_bank:.0} a bank", bytes as f64 / 1e6),
            _ => "not reported".to_owned(),
        };
        let asked = |count: usize, p50: Option<f64>, p99: Option<f64>| match (p50, p99) {
            (Some(p50), Some(p99)) => format!("p50 {p50:.2} ms, p99 {p99:.2} ms ({count})"),
            _ => "none".to_owned(),
        };
        let of = |text: &dyn Fn(&SleepColumn) -> String| both.map(text);
        let rows = [
            ("start to the first answer", of(&|c| format!("{:.2} s", c.first_answer_seconds))),
            ("memory after the start", of(&|c| room(c.started_bytes, c.started_bytes_per_bank))),
            ("questions to awake banks", of(&|c| asked(c.awake_questions, c.awake_p50_ms, c.awake_p99_ms))),
            ("questions that wake a bank", of(&|c| asked(c.waking_questions, c.waking_p50_ms, c.waking_p99_ms))),
            ("turns to banks at random", of(&|c| format!("{:.0} turns/s", c.turns_per_second))),
            ("memory at rest", of(&|c| room(c.rested_bytes, c.rested_bytes_per_bank))),
            ("awake, asleep at rest", of(&|c| c.rested.map_or("all, none".to_owned(), |(a, s)| format!("{a}, {s}")))),
        ];
        let head = format!("{:<28}{:<34}{}\n", format!("{banks} banks, {turns} turns"), "without sleep", "with sleep");
        let lines = rows.iter().map(|(name, [without, with])| format!("{name:<28}{without:<34}{with}\n"));
        std::iter::once(head).chain(lines).collect()
    }
}
