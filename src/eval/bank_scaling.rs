//! What the size of a bank does to it: conversations merged into one, and grown.
//!
//! In: a bench, sizes in units, a file of turns that nobody asks about. Out: a row a size,
//! the same questions each time. The bank holds the conversations that are asked about first,
//! then the others, then the file's turns. Turns and sessions are named by the bank that they
//! come from; one whose session has no name belongs to one that is named after that bank.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::Path,
};

use super::{
    ablation::Ablation,
    bench::{Answer, Bench, EvalError, open_source, share},
    dataset::Dataset,
    recording_source::Heard,
    result::{Build, Latency, SizeRow},
    score::{Recollected, Scored, figures, figures_by, percentile},
};
use crate::{
    config::SourceSettings,
    model::{Bank, Deletion, Idle, MAX_NAME_BYTES, SessionEnd, Turn, TurnEvent},
    pipeline::{Finished, Progress, Service},
    source::{self, Batch, Source, SourceError},
};

/// A bank is as large as was asked for within this share.
const NEAR: f64 = 0.01;
/// The bank of turns in the file that name none.
const FILLER: &str = "filler";
const MERGED: &str = "merged";

/// A row for each size that there are turns for, and one for all turns where they end before.
pub(crate) fn rows(
    bench: &Bench,
    build: &Build,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<SizeRow>, EvalError> {
    let mut sizes = bench.request.sizes.clone();
    sizes.sort_unstable();
    let (Some(least), Ok(bank)) = (sizes.first(), Bank::parse(MERGED)) else { return Ok(Vec::new()) };
    let units_a_turn = build.units as f64 / build.turns.max(1) as f64;
    let asked = asked_about(bench, (*least as f64 / units_a_turn) as usize);
    let merged = bench.over(questions(bench, &asked, &bank), heard(bench, &asked, &bank))?;
    let mut turns = Merging::new(bench, asked, bank.clone())?;
    let (mut rows, mut held) = (Vec::new(), 0u64);
    for size in sizes {
        let mut service = Service::open(&merged.pipeline, progress)?;
        while (held as f64) < size as f64 * (1.0 - NEAR) && !turns.sources.is_empty() {
            turns.left = (((size - held) as f64 / units_a_turn) as u64).max(1);
            service.ingest(&mut turns, progress)?;
            let Finished { left, problem, .. } = service.finish(progress)?;
            if left > 0 {
                return Err(EvalError::Unread { left, problem: problem.unwrap_or_default() });
            }
            held = service.digest(Some(&bank))?.value.units;
        }
        rows.push(row(&merged, service, size, held, turns.given, progress)?);
        if turns.sources.is_empty() {
            break;
        }
    }
    Ok(rows)
}

/// The banks of the first conversations that a number of turns has room for; at least one.
fn asked_about(bench: &Bench, most_turns: usize) -> BTreeSet<Bank> {
    let mut chosen = BTreeSet::new();
    let mut turns = 0;
    for question in &bench.dataset.questions {
        if chosen.contains(&question.bank) {
            continue;
        }
        turns += bench.heard.turns.get(&question.bank).map_or(0, BTreeMap::len);
        if turns > most_turns && !chosen.is_empty() {
            break;
        }
        chosen.insert(question.bank.clone());
    }
    chosen
}

fn questions(bench: &Bench, asked: &BTreeSet<Bank>, bank: &Bank) -> Dataset {
    let counted = bench.dataset.questions.iter().filter(|q| q.counts() && asked.contains(&q.bank));
    let questions = counted.map(|q| {
        let mut question = q.clone();
        question.evidence = q.evidence.iter().map(|turn| inside(&q.bank, turn)).collect();
        question.bank = bank.clone();
        question
    });
    Dataset { questions: questions.collect(), scorable: bench.dataset.scorable, ..Dataset::default() }
}

fn heard(bench: &Bench, asked: &BTreeSet<Bank>, bank: &Bank) -> Heard {
    let of = asked.iter().filter_map(|of| Some((of, bench.heard.turns.get(of)?)));
    let turns = of.flat_map(|(of, turns)| turns.iter().map(move |(id, turn)| (inside(of, id), turn.clone())));
    let mut heard = Heard::default();
    heard.turns.insert(bank.clone(), turns.collect());
    heard
}

/// What something of a bank is called in the merged one.
fn inside(bank: &Bank, name: &str) -> String {
    let whole = format!("{bank}/{name}");
    if whole.len() <= MAX_NAME_BYTES { whole } else { blake3::hash(whole.as_bytes()).to_hex().to_string() }
}

/// The figures of the whole, and of the same without the graph's edges.
fn row(
    bench: &Bench,
    service: Service,
    asked_units: u64,
    units: u64,
    turns: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<SizeRow, EvalError> {
    let answers = bench.ask(&service, progress)?;
    drop(service);
    let first = bench.reopened(&Ablation::SecondRound.without(&bench.pipeline), progress)?;
    let without = Service::open(&Ablation::GraphExpansion.without(&bench.pipeline), progress)?;
    let without = bench.scores(&without, progress)?;
    let milliseconds: Vec<f64> = answers.iter().map(|a| a.milliseconds).collect();
    let scored = scored(bench, &answers, &first);
    let by = |scored| figures_by(bench.dataset.questions.iter().map(|q| q.category.as_str()).zip(scored));
    Ok(SizeRow {
        asked_units,
        units_held: units,
        turns,
        by_category: by(&scored),
        without_graph_by_category: by(&without),
        overall: figures(&scored),
        without_graph: figures(&without),
        latency_ms: Latency { p50: percentile(&milliseconds, 0.50), p99: percentile(&milliseconds, 0.99) },
    })
}

fn scored(bench: &Bench, answers: &[Answer], first: &[Answer]) -> Vec<Scored> {
    let each = bench.dataset.questions.iter().zip(answers).zip(first).map(|((asked, answer), first)| Scored {
        recall: share(&bench.delivered(asked, &answer.evidence)),
        tokens: answer.tokens,
        units: answer.evidence.units.len(),
        recollected: Some(Recollected {
            first_hop_recall: share(&bench.delivered(asked, &first.evidence)),
            first_hop_tokens: first.tokens,
            second_round: answer.evidence.trace.rounds.iter().any(|r| r.plan.proceed),
            sufficiency: answer.evidence.sufficiency,
        }),
        ..Scored::default()
    });
    each.collect()
}

/// The turns of several sources as those of one bank, a portion at a time.
struct Merging {
    sources: VecDeque<Part>,
    bank: Bank,
    /// Events that are still to be given before the next stop.
    left: u64,
    /// Turns that were given.
    given: u64,
}

/// A source, and whose turns of it count.
struct Part {
    source: Box<dyn Source>,
    counts: Box<dyn Fn(&Bank) -> bool + Send>,
}

impl Merging {
    fn new(bench: &Bench, asked: BTreeSet<Bank>, bank: Bank) -> Result<Self, EvalError> {
        let request = &bench.request;
        let others = asked.clone();
        let mut sources = VecDeque::from([
            Part { source: open_source(request)?, counts: Box::new(move |of| asked.contains(of)) },
            Part { source: open_source(request)?, counts: Box::new(move |of| !others.contains(of)) },
        ]);
        if let Some(path) = &request.filler {
            sources.push_back(Part { source: filler(path, &request.zone)?, counts: Box::new(|_| true) });
        }
        Ok(Self { sources, bank, left: 0, given: 0 })
    }
}

/// A file of turns as JSON lines.
pub(crate) fn filler(path: &Path, zone: &str) -> Result<Box<dyn Source>, SourceError> {
    let settings =
        SourceSettings { format: "jsonl".to_owned(), path: path.to_owned(), zone: zone.to_owned(), only: Vec::new() };
    source::open(&settings, Bank::parse(FILLER).ok().as_ref())
}

impl Source for Merging {
    fn next(&mut self, limit: usize) -> Result<Option<Batch>, SourceError> {
        while self.left > 0 {
            let Some(part) = self.sources.front_mut() else { break };
            let most = usize::try_from(self.left).unwrap_or(limit).min(limit.max(1));
            let Some(batch) = part.source.next(most)? else {
                self.sources.pop_front();
                continue;
            };
            // What is rejected was told when the memory was built, and of a filler there is enough.
            let events = batch.events.into_iter().filter(|event| (part.counts)(event.bank()));
            let events: Vec<TurnEvent> = events.map(|event| merged(event, &self.bank)).collect();
            if !events.is_empty() {
                self.left = self.left.saturating_sub(events.len() as u64);
                self.given += events.iter().filter(|e| matches!(e, TurnEvent::Turn(_))).count() as u64;
                return Ok(Some(Batch { events, rejects: Vec::new() }));
            }
        }
        Ok(None)
    }

    fn describe(&self) -> String {
        self.sources.front().map_or_else(String::new, |part| part.source.describe())
    }

    fn progress(&self) -> source::Progress {
        source::Progress { done: self.given, total: None, unit: "turns" }
    }
}

/// An event of any bank as one of this bank.
fn merged(event: TurnEvent, bank: &Bank) -> TurnEvent {
    let from = event.bank().clone();
    let named = |name: String| inside(&from, &name);
    let into = bank.clone();
    match event {
        TurnEvent::Turn(turn) => {
            let unnamed = turn.session.is_none() && turn.thread.is_none();
            TurnEvent::Turn(Turn {
                bank: into,
                turn: named(turn.turn),
                session: if unnamed { Some(from.to_string()) } else { turn.session.map(named) },
                thread: turn.thread.map(named),
                reply_to: turn.reply_to.map(named),
                ..turn
            })
        }
        TurnEvent::Deletion(deletion) => {
            TurnEvent::Deletion(Deletion { bank: into, turn: named(deletion.turn), ..deletion })
        }
        TurnEvent::SessionEnd(end) => TurnEvent::SessionEnd(SessionEnd { bank: into, session: named(end.session) }),
        TurnEvent::Idle(idle) => TurnEvent::Idle(Idle { bank: into, ..idle }),
    }
}
