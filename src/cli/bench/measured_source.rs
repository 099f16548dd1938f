//! A source that is measured: its turns are limited in number, divided into banks, and counted.
//!
//! In: a source. Out: its turns in order, under new banks if a number of banks is given; then for each bank a mark that
//! closes its windows, as at the end of a file. It keeps the first lines of a bounded number of turns that ask
//! something, evenly spread. If the banks are new, marks such as the end of a session are left out, since they belong
//! to the source's own banks.

use std::collections::BTreeMap;

use anyhow::Result;
use sources::{SourceBatch, SourceCounts, SourceError, SourceProgress, TurnSource, end_mark};
use types::model::{Bank, EventTime, Question, TurnEvent};

/// The shortest text that may be asked, in characters: "Why?" asks for nothing that can be found.
const MIN_QUESTION: usize = 20;
/// The longest text that may be asked, in characters, so that a pasted document is not used as a question.
const MAX_QUESTION: usize = 400;

/// A source on its way into the memory.
pub(super) struct MeasuredSource {
    source: Box<dyn TurnSource>,
    /// How many turns are read, if not all.
    limit: Option<u64>,
    /// Into how many banks the turns are divided, if they do not keep their own.
    banks: Option<u64>,
    turns: u64,
    /// The time of the last turn of each bank.
    latest: BTreeMap<Bank, EventTime>,
    /// The marks at the end, once the turns are read.
    marks: Option<std::vec::IntoIter<TurnEvent>>,
    asking: QuestionSampler,
    others: QuestionSampler,
}

impl MeasuredSource {
    /// At most `limit` turns of a source; `wanted` says how many questions are needed.
    pub(super) fn new(source: Box<dyn TurnSource>, limit: Option<u64>, banks: Option<u64>, wanted: usize) -> Self {
        let spread = || QuestionSampler::new(wanted);
        let (asking, others) = (spread(), spread());
        Self { source, limit, banks, turns: 0, latest: BTreeMap::new(), marks: None, asking, others }
    }

    /// The number of turns so far.
    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// The number of banks so far.
    pub(super) fn banks(&self) -> u64 {
        self.latest.len() as u64
    }

    /// Turns that ask something; filled up with other turns if there are too few.
    pub(super) fn questions(&self) -> Vec<Question> {
        let missing = self.asking.wanted.saturating_sub(self.asking.found.len());
        self.asking
            .found
            .iter()
            .take(self.asking.wanted)
            .chain(self.others.found.iter().take(missing))
            .cloned()
            .collect()
    }

    /// The bank of the next turn, if the banks are new.
    fn bank(&self) -> Option<Bank> {
        let (banks, limit) = (self.banks?, self.limit?);
        let number = u128::from(self.turns) * u128::from(banks) / u128::from(limit.max(1));
        Bank::parse(&format!("bench/{number}")).ok()
    }

    /// Takes an event; `None` if it is left out.
    fn take(&mut self, event: TurnEvent) -> Option<TurnEvent> {
        let TurnEvent::Turn(mut turn) = event else {
            return Some(event).filter(|_| self.banks.is_none());
        };
        if let Some(bank) = self.bank() {
            // Two banks may use the same names for turns and sessions.
            let within = |name: &str| cut(&format!("{}/{name}", turn.bank));
            let (id, reply_to, session) =
                (within(&turn.turn), turn.reply_to.as_deref().map(within), turn.session.as_deref().map(within));
            (turn.turn, turn.reply_to, turn.session, turn.bank) = (id, reply_to, session, bank);
        }
        self.turns += 1;
        match self.latest.get_mut(&turn.bank) {
            Some(latest) => *latest = (*latest).max(turn.time),
            None => drop(self.latest.insert(turn.bank.clone(), turn.time)),
        }
        let text = turn.text.lines().next().unwrap_or_default().trim();
        if (MIN_QUESTION..=MAX_QUESTION).contains(&text.len()) {
            let to = if text.ends_with('?') { &mut self.asking } else { &mut self.others };
            to.add(|| Question::new(turn.bank.clone(), text));
        }
        Some(TurnEvent::Turn(turn))
    }
}

impl TurnSource for MeasuredSource {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        let left = self.limit.map_or(u64::MAX, |most| most.saturating_sub(self.turns));
        let turns = limit.min(usize::try_from(left).unwrap_or(usize::MAX));
        let batch = if turns > 0 && self.marks.is_none() { self.source.next(turns)? } else { None };
        let Some(SourceBatch { events, rejects }) = batch else {
            let all = || self.latest.iter().map(|(bank, latest)| end_mark(bank, *latest)).collect::<Vec<_>>();
            let marks: Vec<_> = self.marks.get_or_insert_with(|| all().into_iter()).take(limit).collect();
            return Ok((!marks.is_empty()).then_some(SourceBatch { events: marks, rejects: Vec::new() }));
        };
        let events = events.into_iter().filter_map(|event| self.take(event)).collect();
        Ok(Some(SourceBatch { events, rejects }))
    }

    fn describe(&self) -> String {
        self.source.describe()
    }

    fn counts(&self) -> SourceCounts {
        self.source.counts()
    }

    fn progress(&self) -> SourceProgress {
        match self.limit {
            Some(_) => SourceProgress { done: self.turns, total: self.limit, unit: "turns" },
            None => self.source.progress(),
        }
    }

    fn notice(&self) -> Option<String> {
        self.source.notice()
    }
}

/// Shortens a name so that it fits, and keeps its end, because names differ at the end rather than the beginning.
fn cut(name: &str) -> String {
    let from = name.len().saturating_sub(types::model::MAX_NAME_BYTES);
    let from = (from..=name.len()).find(|at| name.is_char_boundary(*at)).unwrap_or(name.len());
    name[from..].to_owned()
}

/// A bounded number of questions, evenly spread over all that were read.
struct QuestionSampler {
    wanted: usize,
    /// One question of this many is kept.
    step: u64,
    seen: u64,
    found: Vec<Question>,
}

impl QuestionSampler {
    fn new(wanted: usize) -> Self {
        Self { wanted, step: 1, seen: 0, found: Vec::new() }
    }

    fn add(&mut self, question: impl FnOnce() -> Question) {
        if self.seen.is_multiple_of(self.step) {
            if self.found.len() >= 2 * self.wanted {
                let mut at = 0;
                self.found.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.step *= 2;
            }
            if self.seen.is_multiple_of(self.step) {
                self.found.push(question());
            }
        }
        self.seen += 1;
    }
}
