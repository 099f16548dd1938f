//! A source that merges conversations into one bank.
//!
//! In: the sources of a request. Out: their events as events of one bank, one portion at a time: first the
//! conversations that are asked about, then the others, then the filler. Names of turns, sessions and threads begin
//! with the bank that they come from. Turns without a session or thread get a session named after their bank. Rejects
//! are left out.

use std::collections::{BTreeSet, VecDeque};

use crate::request::EvalRequest;
use sources::{SourceBatch, SourceError, SourceProgress, TurnSource};
use types::model::{Bank, IdleMark, MAX_NAME_BYTES, SessionEnd, Turn, TurnDeletion, TurnEvent};

/// The turns of several sources as turns of one bank, one portion at a time.
pub(crate) struct MergedSource {
    sources: VecDeque<MergedPart>,
    bank: Bank,
    /// Events to return until the next pause.
    left: u64,
    /// Turns given so far.
    given: u64,
}

/// A source, and the banks whose turns are taken from it.
struct MergedPart {
    source: Box<dyn TurnSource>,
    takes: Box<dyn Fn(&Bank) -> bool + Send>,
}

impl MergedSource {
    /// The request's conversations and filler, merged into `bank`; those of `asked` come first.
    pub(crate) fn open(request: &EvalRequest, asked: BTreeSet<Bank>, bank: Bank) -> Result<Self, SourceError> {
        let others = asked.clone();
        let mut sources = VecDeque::from([
            MergedPart { source: request.open_source()?, takes: Box::new(move |of| asked.contains(of)) },
            MergedPart { source: request.open_source()?, takes: Box::new(move |of| !others.contains(of)) },
        ]);
        if let Some(source) = request.open_filler()? {
            sources.push_back(MergedPart { source, takes: Box::new(|_| true) });
        }
        Ok(Self { sources, bank, left: 0, given: 0 })
    }

    /// Allows this many events, at least one, until the next pause.
    pub(crate) fn give(&mut self, events: u64) {
        self.left = events.max(1);
    }

    /// Turns given so far.
    pub(crate) fn given(&self) -> u64 {
        self.given
    }

    /// Whether every source has ended.
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }
}

impl TurnSource for MergedSource {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        while self.left > 0 {
            let Some(part) = self.sources.front_mut() else { break };
            let most = usize::try_from(self.left).unwrap_or(limit).min(limit.max(1));
            let Some(batch) = part.source.next(most)? else {
                self.sources.pop_front();
                continue;
            };
            // Rejects from the conversations were counted when the memory was built; rejected filler makes no
            // difference.
            let events = batch.events.into_iter().filter(|event| (part.takes)(event.bank()));
            let events: Vec<TurnEvent> = events.map(|event| merged(event, &self.bank)).collect();
            if !events.is_empty() {
                self.left = self.left.saturating_sub(events.len() as u64);
                self.given += events.iter().filter(|e| matches!(e, TurnEvent::Turn(_))).count() as u64;
                return Ok(Some(SourceBatch { events, rejects: Vec::new() }));
            }
        }
        Ok(None)
    }

    fn describe(&self) -> String {
        self.sources.front().map_or_else(String::new, |part| part.source.describe())
    }

    fn progress(&self) -> SourceProgress {
        SourceProgress { done: self.given, total: None, unit: "turns" }
    }
}

/// An event of another bank as an event of the merged bank.
fn merged(event: TurnEvent, bank: &Bank) -> TurnEvent {
    let from = event.bank().clone();
    let named = |name: String| merged_name(&from, &name);
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
            TurnEvent::Deletion(TurnDeletion { bank: into, turn: named(deletion.turn), ..deletion })
        }
        TurnEvent::SessionEnd(end) => TurnEvent::SessionEnd(SessionEnd { bank: into, session: named(end.session) }),
        TurnEvent::Idle(idle) => TurnEvent::Idle(IdleMark { bank: into, ..idle }),
        other => other,
    }
}

/// The name that a turn, session or thread of another bank gets in the merged bank.
pub(crate) fn merged_name(bank: &Bank, name: &str) -> String {
    let whole = format!("{bank}/{name}");
    if whole.len() <= MAX_NAME_BYTES { whole } else { blake3::hash(whole.as_bytes()).to_hex().to_string() }
}
