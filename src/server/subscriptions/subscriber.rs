//! What one follower of a question is sent next.
//!
//! In: the newest version of the question, the end of the service, and changes to who may read. Out: one event per
//! call, made at the time of the call: there is no queue, and a late call gets the newest version as one delta. Nothing
//! is sent of a version after which a turn was deleted: the question is being asked again. The events end when the
//! follower loses the right to read the bank, when the service ends, or when the follower is too slow.

use std::{
    pin::pin,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures_util::future::select;
use tokio::sync::watch;

use super::{
    forms::{Delta, Polled, Progress, Snapshot, SubscribedUnit, Told},
    live_question::{LiveQuestion, Newest, Slot, Value},
    standing::Standing,
    version::{Version, bytes},
};
use crate::api::{Code, Problem};
use nouns::sync;

/// The approximate size of a piece of a snapshot in bytes.
const PIECE_BYTES: usize = 32 << 10;

/// What a follower is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A piece of the whole evidence.
    Snapshot(Snapshot),
    /// What changed.
    Delta(Delta),
    /// The evidence is complete; its id is for followers that come back.
    Progress(String, Progress),
    /// What was sent is no longer valid; a snapshot follows.
    Reset(Told),
    /// The follower was too slow; the stream ends.
    Lagged(Told),
    /// The stream ends, for this reason.
    Problem(Problem),
    /// Nothing happened in the time of this call.
    Quiet,
}

/// One follower.
pub struct Subscriber {
    question: Arc<LiveQuestion>,
    newest: watch::Receiver<Newest>,
    slot: Arc<Mutex<Slot>>,
    standing: Standing,
    resets: u64,
    next: Next,
}

/// What has to be sent of the version in the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A notice that what was received before is unknown here; then a snapshot.
    Unknown,
    /// Nothing was sent yet: a snapshot of the newest version.
    Snapshot,
    /// The units of its snapshot from a rank on.
    Piece(usize),
    /// Its progress.
    Progress,
    /// All of it was sent.
    Newer,
    /// Everything was sent.
    End,
}

impl Subscriber {
    /// A follower; `last_event_id` is the id that it received last.
    pub(super) fn new(question: Arc<LiveQuestion>, standing: Standing, last_event_id: Option<&str>) -> Self {
        let (newest, slot) = question.follow();
        let resets = newest.borrow().resets;
        let next = match last_event_id {
            None => Next::Snapshot,
            Some(id) => match question.retained(id) {
                None => Next::Unknown,
                Some(version) => {
                    sync::lock(&slot).held = Some(version);
                    Next::Progress
                }
            },
        };
        Self { question, newest, slot, standing, resets, next }
    }

    /// Waits for the first version that may be sent; returns the problem if there is none.
    pub(super) async fn begun(&mut self) -> Result<(), Problem> {
        let Self { question, newest, .. } = self;
        let has_begun = |newest: &Newest| match &newest.value {
            Value::Pending => false,
            Value::Version(version) => !question.is_withdrawn(version),
            Value::Ended(_) | Value::Moved => true,
        };
        let begun = newest.wait_for(has_begun).await;
        match begun.map(|newest| newest.value.clone()) {
            Ok(Value::Ended(problem)) => Err(problem),
            Ok(Value::Moved) => Err(Problem::new(Code::Failed, "another instance has the bank now; ask again")),
            Ok(_) => Ok(()),
            Err(_) => Err(Problem::stopping()),
        }
    }

    /// What to send next, at most `quiet` later; `None` once everything was sent.
    pub async fn next(&mut self, quiet: Duration) -> Option<Event> {
        let until = tokio::time::Instant::now() + quiet;
        loop {
            if self.next == Next::End || self.standing.is_closing() {
                return None;
            }
            let event = self.refused().or_else(|| self.ready());
            if event.is_none() && matches!(self.newest.borrow().value, Value::Moved) {
                // The next subscription gets the name of the new holder.
                return None;
            }
            if let Some(event) = event {
                if matches!(event, Event::Lagged(_) | Event::Problem(_)) {
                    self.next = Next::End;
                }
                return Some(event);
            }
            let until = self.standing.until(until);
            if tokio::time::timeout_at(until, self.something()).await.is_err() && self.refused().is_none() {
                return Some(Event::Quiet);
            }
        }
    }

    /// Everything since the last call in one answer: at once if there is something, otherwise after `wait`.
    ///
    /// # Errors
    /// [`Problem`] when the question is no longer asked.
    pub async fn poll(mut self, wait: Duration) -> Result<Polled, Problem> {
        let until = tokio::time::Instant::now() + wait;
        let (mut snapshot, mut delta) = (None::<Vec<Arc<SubscribedUnit>>>, None);
        let mut last = None;
        loop {
            // A progress alone only confirms what was received before.
            let answered = snapshot.is_some() || delta.is_some();
            let left = if answered { Duration::ZERO } else { until.duration_since(tokio::time::Instant::now()) };
            if answered && last.is_some() {
                break;
            }
            match self.next(left).await {
                Some(Event::Snapshot(piece)) => {
                    delta = None;
                    if piece.from == 0 {
                        snapshot = None;
                    }
                    snapshot.get_or_insert_default().extend(piece.units);
                    last = None;
                }
                Some(Event::Delta(changes)) => (delta, last) = (Some(changes), None),
                Some(Event::Progress(id, progress)) => last = Some((id, progress)),
                Some(Event::Reset(_)) => (snapshot, delta, last) = (None, None, None),
                Some(Event::Quiet) if last.is_some() => break,
                Some(Event::Quiet) => return Err(Problem::new(Code::Deadline, "no answer yet; ask again")),
                Some(Event::Problem(problem)) => return Err(problem),
                Some(Event::Lagged(_)) | None => return Err(Problem::stopping()),
            }
        }
        let (id, progress) = last.ok_or_else(Problem::stopping)?;
        Ok(Polled { id, snapshot, delta, progress })
    }

    /// What can be sent now.
    fn ready(&mut self) -> Option<Event> {
        let Newest { resets, value } = self.newest.borrow_and_update().clone();
        let is_void = resets != std::mem::replace(&mut self.resets, resets);
        if is_void {
            *self.slot() = Slot::default();
        }
        if is_void && self.next != Next::Unknown && std::mem::replace(&mut self.next, Next::Snapshot) != Next::Snapshot
        {
            return Some(reset("the memory of the bank was moved, or is being loaded again"));
        }
        if let Value::Ended(problem) = value {
            return Some(Event::Problem(problem));
        }
        if self.slot().lagged {
            let reason = "too slow: too much was waiting to be read, or for too long; subscribe again";
            return Some(Event::Lagged(Told { reason: reason.to_owned() }));
        }
        if self.next == Next::Unknown {
            self.next = Next::Snapshot;
            return Some(reset("what was received before is no longer known here"));
        }
        let Value::Version(newest) = value else { return None };
        if self.question.is_withdrawn(&newest) {
            return None;
        }
        let held = self.slot().held.clone();
        if matches!(self.next, Next::Piece(_)) && held.is_some_and(|held| self.question.is_withdrawn(&held)) {
            // The rest of what is being sent may hold what is forgotten by now.
            self.next = Next::Snapshot;
        }
        if self.next == Next::Snapshot {
            self.slot().held = Some(Arc::clone(&newest));
            self.next = Next::Piece(0);
        }
        let held = self.slot().held.clone();
        match (self.next, held) {
            (Next::Piece(from), Some(held)) => {
                let units = piece(&held, from);
                let to = from + units.len();
                self.next = if to < held.units.len() { Next::Piece(to) } else { Next::Progress };
                Some(Event::Snapshot(Snapshot { from, units }))
            }
            (Next::Progress, Some(held)) => {
                self.next = Next::Newer;
                Some(Event::Progress(self.question.id(&held), held.progress(&self.question.question.bank)))
            }
            (Next::Newer, Some(held)) if held.number != newest.number || held.reflects != newest.reflects => {
                let delta = held.delta(&newest);
                *self.slot() = Slot { held: Some(newest), ..Slot::default() };
                self.next = Next::Progress;
                // The same evidence: only the progress is new.
                delta.map_or_else(|| self.ready(), |delta| Some(Event::Delta(delta)))
            }
            _ => None,
        }
    }

    /// Waits until there may be something to send.
    async fn something(&mut self) {
        let Self { newest, standing, .. } = self;
        select(pin!(newest.changed()), pin!(standing.changed())).await;
    }

    /// Why the follower may no longer read the bank.
    fn refused(&self) -> Option<Event> {
        self.standing.refusal().map(Event::Problem)
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        sync::lock(&self.slot)
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.question.unfollow();
    }
}

fn reset(reason: &str) -> Event {
    Event::Reset(Told { reason: reason.to_owned() })
}

/// The units of a snapshot's next piece; at least one if any is left.
fn piece(version: &Version, from: usize) -> Vec<Arc<SubscribedUnit>> {
    let (mut taken, mut units) = (0, Vec::new());
    for unit in version.units.iter().skip(from) {
        taken += bytes(unit);
        if taken > PIECE_BYTES && !units.is_empty() {
            break;
        }
        units.push(Arc::clone(unit));
    }
    units
}
