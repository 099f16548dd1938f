//! One bank that is followed: what happens in it, told once for all who follow it.
//!
//! In: news about the bank, what its records say, looks at what it holds. Out: events; followers read them at their own
//! pace from the last ones, which are kept, so that nothing waits for a follower and memory is bounded. The bank is
//! looked at when it has changed, never twice at the same time and never without followers; after a look that took
//! long it is left alone for longer. Changes between two looks that undo each other are not told.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::{
    bank_look::{BankLook, HeldGraph, skipped},
    event_forms::{BankEvent, BankProgress},
    work::{Attempts, Work},
};
use crate::api::{Code, Problem};
use nouns::{model::Bank, sync};
use ripplemem::pipeline::{Memory, PipelineError, WatchedBank};

/// How many events are kept for those who read slowly or come back.
const RETAINED: usize = 1_000;
/// The least pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause is at least this many times as long as the look took, so that looks take at most a tenth of the time.
const PAUSE_SHARE: u32 = 9;

/// A bank that is followed.
pub(super) struct BankFeed {
    pub(super) bank: Bank,
    pub(super) partition: u32,
    watched: WatchedBank,
    newest: watch::Sender<FeedNews>,
    state: Mutex<FeedState>,
}

/// What followers wait for.
#[derive(Debug, Clone, Default)]
pub(super) struct FeedNews {
    /// How often it became unknown what had happened.
    pub(super) resets: u64,
    pub(super) value: FeedValue,
}

/// How far the feed is.
#[derive(Debug, Clone, Default)]
pub(super) enum FeedValue {
    /// The first look, or the first one after a reset, is not done.
    #[default]
    Pending,
    /// There may be new events.
    Going,
    /// The bank is no longer looked at.
    Ended(Problem),
    /// Another instance has the bank now.
    Moved,
}

struct FeedState {
    /// Looks at the bank.
    work: Work,
    held: Option<Arc<HeldGraph>>,
    /// The first offset after which all events are kept.
    from: u64,
    /// Where the newest look reaches.
    offset: u64,
    progress: Option<BankProgress>,
    retained: VecDeque<Arc<ToldLook>>,
    /// How many events there were in all.
    told: u64,
}

/// The events of one look.
#[derive(Debug)]
pub(super) struct ToldLook {
    /// How many events there were before.
    before: u64,
    offset: u64,
    pub(super) events: Vec<BankEvent>,
    pub(super) progress: BankProgress,
}

impl ToldLook {
    /// How many events there were with those of this look.
    pub(super) fn end(&self) -> u64 {
        self.before + self.events.len() as u64
    }
}

impl BankFeed {
    pub(super) fn new(bank: Bank, partition: u32, watched: WatchedBank) -> Self {
        let state = FeedState {
            work: Work::new(),
            held: None,
            from: 0,
            offset: 0,
            progress: None,
            retained: VecDeque::new(),
            told: 0,
        };
        Self { bank, partition, watched, newest: watch::Sender::new(FeedNews::default()), state: Mutex::new(state) }
    }

    /// The id of the events up to an offset: the place in the memory log up to which they are told.
    fn id(&self, offset: u64) -> String {
        format!("{}:{offset}", self.partition)
    }

    /// The offset that an id names; `None` if it is not of this partition.
    pub(super) fn offset_of(&self, id: &str) -> Option<u64> {
        let (partition, offset) = id.split_once(':')?;
        offset.parse().ok().filter(|_| partition.parse::<u32>().is_ok_and(|of| of == self.partition))
    }

    pub(super) fn follow(&self) -> watch::Receiver<FeedNews> {
        let mut state = self.state();
        state.work.follow();
        self.newest.subscribe()
    }

    /// Notes that a follower has left.
    pub(super) fn unfollow(&self) {
        self.state().work.unfollow();
    }

    /// For how long no one has followed it; `None` while someone does.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.state().work.idle()
    }

    /// Notes that the bank has changed; returns whether [`Self::look`] must be started.
    pub(super) fn note_change(&self) -> bool {
        self.state().work.note_change();
        self.begin()
    }

    /// Whether [`Self::look`] must be started now.
    pub(super) fn begin(&self) -> bool {
        self.state().work.begin()
    }

    /// Forgets what was held and told, because the shard was replaced or dropped.
    pub(super) fn reset(&self) -> bool {
        {
            let mut state = self.state();
            (state.held, state.progress) = (None, None);
            state.retained.clear();
            self.newest.send_modify(|news| *news = FeedNews { resets: news.resets + 1, value: FeedValue::Pending });
        }
        self.note_change()
    }

    /// How many events there are up to now, and the progress that they led to; `None` before the first look.
    pub(super) fn now(&self) -> Option<(u64, BankEvent)> {
        let state = self.state();
        let progress = state.progress.clone()?;
        Some((state.told, BankEvent::Progress(self.id(state.offset), progress)))
    }

    /// How many events there were up to an offset, if all that came after it are kept.
    pub(super) fn told_at(&self, offset: u64) -> Option<u64> {
        let state = self.state();
        if offset < state.from || offset > state.offset {
            return None;
        }
        let next = state.retained.iter().find(|look| look.offset > offset);
        Some(next.map_or(state.told, |look| look.before))
    }

    /// The next events for who was told this many, and how many are not kept before them.
    pub(super) fn after(&self, told: u64) -> Option<(Arc<ToldLook>, u64)> {
        let state = self.state();
        let next = state.retained.iter().find(|look| look.before >= told)?;
        Some((Arc::clone(next), next.before - told))
    }

    /// The progress of a look as an event.
    pub(super) fn progress_of(&self, look: &ToldLook) -> BankEvent {
        BankEvent::Progress(self.id(look.offset), look.progress.clone())
    }

    /// Looks until the newest look shows all that the bank holds. Only one call may run at a time, as [`Self::begin`]
    /// ensures. Returns false if the bank is no longer looked at.
    pub(super) async fn look(&self, memory: &Memory) -> bool {
        let mut attempts = Attempts::new();
        loop {
            let before = {
                let mut state = self.state();
                if !state.work.go_on() {
                    return true;
                }
                state.held.clone()
            };
            let began = Instant::now();
            let resets = self.newest.borrow().resets;
            let (replica, bank) = (Arc::clone(memory.replica()), self.bank.clone());
            let reflects = replica.read_to(&self.bank);
            let of = before.clone();
            let looked = tokio::task::spawn_blocking(move || BankLook::of(&replica, bank, of.as_deref()));
            // It ended without a result: the process is stopping, or it panicked.
            let Ok(looked) = looked.await else { return self.end(FeedValue::Ended(panicked())) };
            let found = match looked {
                Ok(look) => Some(look),
                Err(PipelineError::UnknownBank { .. }) => {
                    let (bank, units, semantic_edges, structural_edges) = (self.bank.clone(), 0, 0, 0);
                    let progress = BankProgress { bank, units, semantic_edges, structural_edges, reflects };
                    let empty = BankLook::of_nothing(progress, before.as_deref());
                    Some(empty).filter(|empty| self.watched.changed_at() <= empty.offset())
                }
                Err(PipelineError::OtherInstance { .. }) => return self.end(FeedValue::Moved),
                Err(error) => {
                    let Some(pause) = attempts.pause_after(&error) else {
                        return self.end(FeedValue::Ended(error.into()));
                    };
                    tokio::time::sleep(pause).await;
                    self.state().work.note_change();
                    continue;
                }
            };
            attempts = Attempts::new();
            {
                let mut state = self.state();
                match found {
                    // A look from before a reset says nothing about what is held now.
                    Some(look) if self.newest.borrow().resets == resets => self.tell(&mut state, look),
                    _ => state.work.note_change(),
                }
            }
            let took = began.elapsed();
            tokio::time::sleep(PAUSE.saturating_sub(took).max(took * PAUSE_SHARE)).await;
        }
    }

    fn end(&self, value: FeedValue) -> bool {
        self.newest.send_modify(|news| news.value = value);
        false
    }

    /// Adds the events of a look.
    fn tell(&self, state: &mut FeedState, look: BankLook) {
        let offset = look.offset();
        let (records, left_out) = self.watched.take_records(offset);
        let BankLook { held, events: of_graph, skipped: more, progress } = look;
        if state.held.replace(Arc::new(held)).is_none() {
            // What is held now is where the events begin.
            state.from = offset;
        } else {
            let events = records.into_iter().map(BankEvent::from).chain(of_graph).chain(skipped(left_out + more));
            let (before, events) = (state.told, events.collect::<Vec<_>>());
            if !events.is_empty() {
                state.told += events.len() as u64;
                let progress = progress.clone();
                state.retained.push_back(Arc::new(ToldLook { before, offset, events, progress }));
            }
        }
        (state.offset, state.progress) = (offset, Some(progress));
        while state.retained.len() > 1
            && state.retained.front().is_some_and(|first| state.told - first.before > RETAINED as u64)
        {
            state.from = state.retained.pop_front().map_or(state.from, |first| first.offset);
        }
        self.newest.send_modify(|news| news.value = FeedValue::Going);
    }

    fn state(&self) -> MutexGuard<'_, FeedState> {
        sync::lock(&self.state)
    }
}

fn panicked() -> Problem {
    Problem::new(Code::Failed, "the look at the bank panicked; this is a defect, please report it")
}
