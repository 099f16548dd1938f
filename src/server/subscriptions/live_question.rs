//! One question that is followed. It is asked again when its bank has changed, once for all who follow it.
//!
//! In: news about its bank, and answers. Out: its versions; followers read the newest. It is never asked twice at the
//! same time, and never without followers. The last versions are kept, so that a follower that comes back gets a delta;
//! only the newest has all of its words. An answer whose parts reflect different states of the bank does not become a
//! version: the question is asked again.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, watch};

use super::{
    evidence_version::{EvidenceVersion, memory_offset},
    refresh_schedule::{RefreshAttempts, RefreshSchedule},
};
use crate::api::ApiProblem;
use models::embed::QuestionVectorCache;
use pipeline::{Cancellation, PipelineError};
use replica::{BankWatchGuard, QueryRequest};
use ripplemem::Memory;
use types::{
    model::{Evidence, Question},
    sync,
};

/// How many versions are kept for followers that come back.
const RETAINED: usize = 32;
/// The pause before a question is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// A question that is followed.
pub(super) struct LiveQuestion {
    pub(super) question: Question,
    pub(super) partition: u32,
    /// Distinguishes the ids of this question's versions from those of an earlier question with the same words.
    run: String,
    watched: BankWatchGuard,
    kept: Arc<QuestionVectorCache>,
    newest: watch::Sender<QuestionNews>,
    state: Mutex<LiveQuestionState>,
    limits: FollowerSlotLimits,
}

/// What followers read.
#[derive(Debug, Clone, Default)]
pub(super) struct QuestionNews {
    /// How often all earlier versions became invalid.
    pub(super) resets: u64,
    pub(super) value: QuestionStatus,
}

/// The newest version, if there is one.
#[derive(Debug, Clone, Default)]
pub(super) enum QuestionStatus {
    /// It is being asked.
    #[default]
    Pending,
    Version(Arc<EvidenceVersion>),
    /// It is no longer asked.
    Ended(ApiProblem),
    /// Another instance has the bank now.
    Moved,
}

struct LiveQuestionState {
    /// When the question must be asked.
    work: RefreshSchedule,
    retained: VecDeque<Arc<EvidenceVersion>>,
    slots: Vec<Weak<Mutex<FollowerSlot>>>,
    /// The number of the last version.
    last: u64,
}

/// The version that one follower has, or is being sent.
#[derive(Debug, Default)]
pub(super) struct FollowerSlot {
    pub(super) held: Option<Arc<EvidenceVersion>>,
    /// Since when a newer version has been waiting.
    pub(super) behind_since: Option<Instant>,
    /// Whether it was dropped, because it kept too much or was behind for too long.
    pub(super) lagged: bool,
}

/// The limits for a slow follower.
#[derive(Debug, Clone, Copy)]
pub(super) struct FollowerSlotLimits {
    /// The maximum number of bytes of an old version that only this follower keeps.
    pub(super) bytes: usize,
    /// How long it may be behind.
    pub(super) behind: Duration,
}

/// What all questions share when they are asked.
pub(super) struct LiveAskContext {
    pub(super) memory: Arc<Memory>,
    /// Limits how many questions are asked at the same time.
    pub(super) places: Semaphore,
    pub(super) deadline: Duration,
    /// How many times a question was asked.
    pub(super) begun: AtomicU64,
}

impl LiveQuestion {
    pub(super) fn new(question: Question, partition: u32, watched: BankWatchGuard, limits: FollowerSlotLimits) -> Self {
        let state = Mutex::new(LiveQuestionState {
            work: RefreshSchedule::new(),
            retained: VecDeque::new(),
            slots: Vec::new(),
            last: 0,
        });
        let run = format!("{:016x}", fastrand::u64(..));
        let (kept, newest) = (Arc::default(), watch::Sender::new(QuestionNews::default()));
        Self { question, partition, run, watched, kept, newest, state, limits }
    }

    /// The id of a version, which a follower that comes back sends.
    pub(super) fn id(&self, version: &EvidenceVersion) -> String {
        format!("{}-{}", self.run, version.number)
    }

    /// The version with an id, if it is still kept.
    pub(super) fn retained(&self, id: &str) -> Option<Arc<EvidenceVersion>> {
        let number = id.strip_prefix(self.run.as_str())?.strip_prefix('-')?.parse::<u64>().ok()?;
        self.state().retained.iter().find(|version| version.number == number).cloned()
    }

    /// Whether a turn of the bank was deleted after what a version reflects, so that it may hold forgotten words. The
    /// question is asked again then.
    pub(super) fn is_withdrawn(&self, version: &EvidenceVersion) -> bool {
        self.watched.deleted_at() > version.memory_offset()
    }

    pub(super) fn follow(&self) -> (watch::Receiver<QuestionNews>, Arc<Mutex<FollowerSlot>>) {
        let slot = Arc::<Mutex<FollowerSlot>>::default();
        let mut state = self.state();
        state.slots.retain(|slot| slot.strong_count() > 0);
        state.slots.push(Arc::downgrade(&slot));
        if state.work.was_missed() {
            // The bank changed while no one followed: the first follower to come back waits for a new answer.
            self.newest.send_modify(|newest| newest.value = QuestionStatus::Pending);
        }
        state.work.follow();
        (self.newest.subscribe(), slot)
    }

    /// Notes that a follower has left.
    pub(super) fn unfollow(&self) {
        self.state().work.unfollow();
    }

    /// For how long no one has followed it; `None` while someone does.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.state().work.idle()
    }

    /// Notes that the bank has changed; returns whether [`Self::ask`] must be started.
    pub(super) fn note_change(&self) -> bool {
        self.state().work.note_change();
        self.begin()
    }

    /// Whether [`Self::ask`] must be started now.
    pub(super) fn begin(&self) -> bool {
        self.state().work.begin()
    }

    /// Invalidates all earlier versions, because the shard was replaced or dropped.
    pub(super) fn reset(&self) -> bool {
        self.state().retained.clear();
        self.newest.send_modify(|newest| {
            *newest = QuestionNews { resets: newest.resets + 1, value: QuestionStatus::Pending };
        });
        self.note_change()
    }

    /// Advances the newest version to what was read since, if the bank has not changed.
    pub(super) fn advance(&self, memory: &Memory) {
        // The order matters: every change up to this point has been noted by then.
        let read_to = memory.replica().read_to(&self.question.bank);
        let mut state = self.state();
        let QuestionStatus::Version(newest) = self.newest.borrow().value.clone() else { return };
        let unchanged = state.work.is_up_to_date() && self.watched.changed_at() <= newest.memory_offset();
        if unchanged && memory_offset(&read_to) >= newest.memory_offset() && read_to != newest.reflects {
            self.publish(&mut state, EvidenceVersion { reflects: read_to, ..(*newest).clone() });
        }
    }

    /// Asks until the answer reflects all that the bank holds. Only one call may run at a time, as [`Self::begin`]
    /// ensures. Returns false if the question is no longer asked.
    pub(super) async fn ask(&self, asking: &LiveAskContext) -> bool {
        let mut attempts = RefreshAttempts::new();
        loop {
            if !self.state().work.take_change() {
                return true;
            }
            let began = Instant::now();
            let resets = self.newest.borrow().resets;
            let read_to = asking.memory.replica().read_to(&self.question.bank);
            let answer = {
                let Ok(_place) = asking.places.acquire().await else { return false };
                asking.begun.fetch_add(1, Ordering::Relaxed);
                let asked = asking.memory.ask(self.query_request(asking.deadline)).await;
                with_metadata(&asking.memory, asked).await
            };
            let found = match answer {
                Ok(evidence) if self.is_mixed(&evidence) => None,
                Ok(evidence) => Some(EvidenceVersion::of(evidence)),
                Err(PipelineError::UnknownBank { .. }) => Some(EvidenceVersion::empty(read_to))
                    .filter(|empty| self.watched.changed_at() <= empty.memory_offset()),
                Err(PipelineError::OtherInstance { .. }) => {
                    self.newest.send_modify(|newest| newest.value = QuestionStatus::Moved);
                    return false;
                }
                Err(error) => {
                    let Some(pause) = attempts.pause_after(&error) else {
                        self.newest.send_modify(|newest| newest.value = QuestionStatus::Ended(error.into()));
                        return false;
                    };
                    tokio::time::sleep(pause).await;
                    self.state().work.note_change();
                    continue;
                }
            };
            attempts = RefreshAttempts::new();
            {
                let mut state = self.state();
                match found {
                    // An answer from before a reset says nothing about what is held now.
                    Some(version) if self.newest.borrow().resets == resets => self.publish(&mut state, version),
                    _ => state.work.note_change(),
                }
            }
            tokio::time::sleep(PAUSE.saturating_sub(began.elapsed())).await;
        }
    }

    fn query_request(&self, deadline: Duration) -> QueryRequest {
        QueryRequest {
            cancellation: Cancellation::at(Instant::now() + deadline),
            kept: Some(Arc::clone(&self.kept)),
            ..QueryRequest::now(self.question.clone())
        }
    }

    /// Whether the parts of an answer may reflect different states of the bank.
    fn is_mixed(&self, evidence: &Evidence) -> bool {
        let first = memory_offset(&evidence.reflects);
        let mut later = evidence.trace.rounds.iter().map(|round| memory_offset(&round.reflects));
        later.any(|offset| offset > first) && self.watched.changed_at() > first
    }

    fn publish(&self, state: &mut LiveQuestionState, version: EvidenceVersion) {
        let version = Arc::new(version.after(state.retained.back().map(Arc::as_ref), state.last));
        state.last = version.number;
        if state.retained.back().is_some_and(|last| last.number == version.number) {
            state.retained.pop_back();
        }
        for earlier in &mut state.retained {
            *earlier = Arc::new(earlier.with_words_of(&version));
        }
        state.retained.push_back(Arc::clone(&version));
        if state.retained.len() > RETAINED {
            state.retained.pop_front();
        }
        state.slots.retain(|slot| slot.strong_count() > 0);
        for slot in state.slots.iter().filter_map(Weak::upgrade) {
            self.limits.drop_if_behind(&mut sync::lock(&slot), &version);
        }
        self.newest.send_modify(|newest| newest.value = QuestionStatus::Version(version));
    }

    fn state(&self) -> MutexGuard<'_, LiveQuestionState> {
        sync::lock(&self.state)
    }
}

/// An answer with the metadata of its turns, if its question asks for them.
async fn with_metadata(memory: &Memory, asked: Result<Evidence, PipelineError>) -> Result<Evidence, PipelineError> {
    let mut evidence = asked?;
    if !evidence.question.metadata {
        return Ok(evidence);
    }
    let reader = memory.metadata_reader();
    let read = tokio::task::spawn_blocking(move || reader.add(&mut evidence).map(|()| evidence));
    // Blocking work is only cancelled with its runtime, and nobody follows then.
    read.await.map_err(|_| PipelineError::Cancelled)?
}

impl FollowerSlotLimits {
    /// Drops a follower that is too far behind a new version.
    pub(super) fn drop_if_behind(self, slot: &mut FollowerSlot, newest: &EvidenceVersion) {
        let Some(held) = slot.held.as_ref().filter(|held| held.number != newest.number) else { return };
        let since = *slot.behind_since.get_or_insert_with(Instant::now);
        if held.bytes_beside(newest) > self.bytes || since.elapsed() > self.behind {
            (slot.held, slot.lagged) = (None, true);
        }
    }
}
