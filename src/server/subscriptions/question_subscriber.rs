//! What one follower of a question is sent next (decision 42).
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
    evidence_version::{EvidenceVersion, bytes},
    follower_guard::FollowerGuard,
    live_question::{FollowerSlot, LiveQuestion, QuestionNews, QuestionStatus},
    question_event_forms::{
        EvidenceDelta, EvidenceProgress, EvidenceSnapshot, PollResponse, StreamNotice, SubscribedUnit,
    },
};
use crate::api::{ApiProblem, ProblemCode};
use types::sync;

/// The approximate size of a piece of a snapshot in bytes.
const PIECE_BYTES: usize = 32 << 10;

/// What a follower is sent.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscriptionEvent {
    /// A piece of the whole evidence.
    Snapshot(EvidenceSnapshot),
    /// What changed.
    Delta(EvidenceDelta),
    /// The evidence is complete; its id is for followers that come back.
    Progress(String, EvidenceProgress),
    /// What was sent is no longer valid; a snapshot follows.
    Reset(StreamNotice),
    /// The follower was too slow; the stream ends.
    Lagged(StreamNotice),
    /// The stream ends, for this reason.
    Problem(ApiProblem),
    /// Nothing happened in the time of this call.
    Quiet,
}

/// One follower.
pub struct QuestionSubscriber {
    question: Arc<LiveQuestion>,
    newest: watch::Receiver<QuestionNews>,
    slot: Arc<Mutex<FollowerSlot>>,
    standing: FollowerGuard,
    resets: u64,
    next: NextSubscriptionEvent,
}

/// What has to be sent of the version in the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextSubscriptionEvent {
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

impl QuestionSubscriber {
    /// A follower; `last_event_id` is the id that it received last.
    pub(super) fn new(question: Arc<LiveQuestion>, standing: FollowerGuard, last_event_id: Option<&str>) -> Self {
        let (newest, slot) = question.follow();
        let resets = newest.borrow().resets;
        let next = match last_event_id {
            None => NextSubscriptionEvent::Snapshot,
            Some(id) => match question.retained(id) {
                None => NextSubscriptionEvent::Unknown,
                Some(version) => {
                    sync::lock(&slot).held = Some(version);
                    NextSubscriptionEvent::Progress
                }
            },
        };
        Self { question, newest, slot, standing, resets, next }
    }

    /// Waits for the first version that may be sent; returns the problem if there is none.
    pub(super) async fn begun(&mut self) -> Result<(), ApiProblem> {
        let Self { question, newest, .. } = self;
        let has_begun = |newest: &QuestionNews| match &newest.value {
            QuestionStatus::Pending => false,
            QuestionStatus::Version(version) => !question.is_withdrawn(version),
            QuestionStatus::Ended(_) | QuestionStatus::Moved => true,
        };
        let begun = newest.wait_for(has_begun).await;
        match begun.map(|newest| newest.value.clone()) {
            Ok(QuestionStatus::Ended(problem)) => Err(problem),
            Ok(QuestionStatus::Moved) => {
                Err(ApiProblem::new(ProblemCode::Failed, "another instance has the bank now; ask again"))
            }
            Ok(_) => Ok(()),
            Err(_) => Err(ApiProblem::stopping()),
        }
    }

    /// What to send next, at most `quiet` later; `None` once everything was sent.
    pub async fn next(&mut self, quiet: Duration) -> Option<SubscriptionEvent> {
        let until = tokio::time::Instant::now() + quiet;
        loop {
            if self.next == NextSubscriptionEvent::End || self.standing.is_closing() {
                return None;
            }
            let event = self.refused().or_else(|| self.ready());
            if event.is_none() && matches!(self.newest.borrow().value, QuestionStatus::Moved) {
                // The next subscription gets the name of the new holder.
                return None;
            }
            if let Some(event) = event {
                if matches!(event, SubscriptionEvent::Lagged(_) | SubscriptionEvent::Problem(_)) {
                    self.next = NextSubscriptionEvent::End;
                }
                return Some(event);
            }
            let until = self.standing.until(until);
            if tokio::time::timeout_at(until, self.wait_for_change()).await.is_err() && self.refused().is_none() {
                return Some(SubscriptionEvent::Quiet);
            }
        }
    }

    /// Everything since the last call in one answer: at once if there is something, otherwise after `wait`.
    ///
    /// # Errors
    /// [`ApiProblem`] when the question is no longer asked.
    pub async fn poll(mut self, wait: Duration) -> Result<PollResponse, ApiProblem> {
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
                Some(SubscriptionEvent::Snapshot(piece)) => {
                    delta = None;
                    if piece.from == 0 {
                        snapshot = None;
                    }
                    snapshot.get_or_insert_default().extend(piece.units);
                    last = None;
                }
                Some(SubscriptionEvent::Delta(changes)) => (delta, last) = (Some(changes), None),
                Some(SubscriptionEvent::Progress(id, progress)) => last = Some((id, progress)),
                Some(SubscriptionEvent::Reset(_)) => (snapshot, delta, last) = (None, None, None),
                Some(SubscriptionEvent::Quiet) if last.is_some() => break,
                Some(SubscriptionEvent::Quiet) => {
                    return Err(ApiProblem::new(ProblemCode::Deadline, "no answer yet; ask again"));
                }
                Some(SubscriptionEvent::Problem(problem)) => return Err(problem),
                Some(SubscriptionEvent::Lagged(_)) | None => return Err(ApiProblem::stopping()),
            }
        }
        let (id, progress) = last.ok_or_else(ApiProblem::stopping)?;
        Ok(PollResponse { id, snapshot, delta, progress })
    }

    /// What can be sent now.
    fn ready(&mut self) -> Option<SubscriptionEvent> {
        let QuestionNews { resets, value } = self.newest.borrow_and_update().clone();
        let is_void = resets != std::mem::replace(&mut self.resets, resets);
        if is_void {
            *self.slot() = FollowerSlot::default();
        }
        if is_void
            && self.next != NextSubscriptionEvent::Unknown
            && std::mem::replace(&mut self.next, NextSubscriptionEvent::Snapshot) != NextSubscriptionEvent::Snapshot
        {
            return Some(reset("the memory of the bank was moved, or is being loaded again"));
        }
        if let QuestionStatus::Ended(problem) = value {
            return Some(SubscriptionEvent::Problem(problem));
        }
        if self.slot().lagged {
            let reason = "too slow: too much was waiting to be read, or for too long; subscribe again";
            return Some(SubscriptionEvent::Lagged(StreamNotice { reason: reason.to_owned() }));
        }
        if self.next == NextSubscriptionEvent::Unknown {
            self.next = NextSubscriptionEvent::Snapshot;
            return Some(reset("what was received before is no longer known here"));
        }
        let QuestionStatus::Version(newest) = value else { return None };
        if self.question.is_withdrawn(&newest) {
            return None;
        }
        let held = self.slot().held.clone();
        if matches!(self.next, NextSubscriptionEvent::Piece(_))
            && held.is_some_and(|held| self.question.is_withdrawn(&held))
        {
            // The rest of what is being sent may hold what is forgotten by now.
            self.next = NextSubscriptionEvent::Snapshot;
        }
        if self.next == NextSubscriptionEvent::Snapshot {
            self.slot().held = Some(Arc::clone(&newest));
            self.next = NextSubscriptionEvent::Piece(0);
        }
        let held = self.slot().held.clone();
        match (self.next, held) {
            (NextSubscriptionEvent::Piece(from), Some(held)) => {
                let units = piece(&held, from);
                let to = from + units.len();
                self.next = if to < held.units.len() {
                    NextSubscriptionEvent::Piece(to)
                } else {
                    NextSubscriptionEvent::Progress
                };
                Some(SubscriptionEvent::Snapshot(EvidenceSnapshot { from, units }))
            }
            (NextSubscriptionEvent::Progress, Some(held)) => {
                self.next = NextSubscriptionEvent::Newer;
                Some(SubscriptionEvent::Progress(self.question.id(&held), held.progress(&self.question.question.bank)))
            }
            (NextSubscriptionEvent::Newer, Some(held))
                if held.number != newest.number || held.reflects != newest.reflects =>
            {
                let delta = held.delta(&newest);
                *self.slot() = FollowerSlot { held: Some(newest), ..FollowerSlot::default() };
                self.next = NextSubscriptionEvent::Progress;
                // The same evidence: only the progress is new.
                delta.map_or_else(|| self.ready(), |delta| Some(SubscriptionEvent::Delta(delta)))
            }
            _ => None,
        }
    }

    /// Waits until there may be something to send.
    async fn wait_for_change(&mut self) {
        let Self { newest, standing, .. } = self;
        select(pin!(newest.changed()), pin!(standing.changed())).await;
    }

    /// Why the follower may no longer read the bank.
    fn refused(&self) -> Option<SubscriptionEvent> {
        self.standing.refusal().map(SubscriptionEvent::Problem)
    }

    fn slot(&self) -> MutexGuard<'_, FollowerSlot> {
        sync::lock(&self.slot)
    }
}

impl Drop for QuestionSubscriber {
    fn drop(&mut self) {
        self.question.unfollow();
    }
}

fn reset(reason: &str) -> SubscriptionEvent {
    SubscriptionEvent::Reset(StreamNotice { reason: reason.to_owned() })
}

/// The units of a snapshot's next piece; at least one if any is left.
fn piece(version: &EvidenceVersion, from: usize) -> Vec<Arc<SubscribedUnit>> {
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
