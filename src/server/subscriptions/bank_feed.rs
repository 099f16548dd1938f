//! One bank that is followed: what happens in it, told once for all who follow it.
//!
//! In: news about the bank, what its records say, looks at what it holds. Out: events; followers read them at their own
//! pace from the last ones, which are kept, so that nothing waits for a follower and memory is bounded. The bank is
//! looked at when it has changed, never twice at the same time and never without followers; after a look that took
//! long it is left alone for longer. Changes between two looks that undo each other are not told.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::{
    bank_look::{BankLook, HeldGraph, skipped},
    dead_letters::DeadLetterReader,
    event_forms::{AddedUnit, BankEvent, BankProgress, RejectedRecord},
    work::{Attempts, Work},
};
use crate::api::{Code, Problem};
use nouns::{
    model::{Bank, UnitId},
    sync,
};
use ripplemem::pipeline::{Memory, PipelineError, WatchedBank};

/// How many events are kept for those who read slowly or come back.
const RETAINED: usize = 1_000;
/// Most rejected records that are kept between two looks.
const MOST_REJECTED: usize = 200;
/// The least pause between two looks.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause is at least this many times as long as the look took, so that looks take at most a tenth of the time.
const PAUSE_SHARE: u32 = 9;

/// A bank that is followed.
pub(super) struct BankFeed {
    pub(super) bank: Bank,
    pub(super) partition: u32,
    watched: WatchedBank,
    dead_letters: Arc<DeadLetterReader>,
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
    /// The first place after which all events are kept.
    from: FeedPlace,
    /// Where the newest look reaches.
    reached: FeedPlace,
    /// Rejected records since the newest look, how many more there were, and the offset after the last of them.
    rejected: Vec<RejectedRecord>,
    rejected_more: u64,
    letters: u64,
    progress: Option<BankProgress>,
    retained: VecDeque<Arc<ToldLook>>,
    /// How many events there were in all.
    told: u64,
}

/// Up to where events are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FeedPlace {
    /// The first offset of the memory partition that is not told.
    offset: u64,
    /// The first offset of the dead letters that is not told.
    letters: u64,
}

impl FeedPlace {
    /// Whether something may have been told after `other` and up to here.
    fn is_after(self, other: Self) -> bool {
        self.offset > other.offset || self.letters > other.letters
    }
}

/// The events of one look.
#[derive(Debug)]
pub(super) struct ToldLook {
    /// How many events there were before.
    before: u64,
    reached: FeedPlace,
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
    pub(super) fn new(bank: Bank, partition: u32, watched: WatchedBank, dead_letters: Arc<DeadLetterReader>) -> Self {
        let state = FeedState {
            work: Work::new(),
            held: None,
            from: FeedPlace::default(),
            reached: FeedPlace::default(),
            rejected: Vec::new(),
            rejected_more: 0,
            letters: 0,
            progress: None,
            retained: VecDeque::new(),
            told: 0,
        };
        let (newest, state) = (watch::Sender::new(FeedNews::default()), Mutex::new(state));
        Self { bank, partition, watched, dead_letters, newest, state }
    }

    /// The id of the events up to a place in the memory log and in the dead letters.
    fn id(&self, FeedPlace { offset, letters }: FeedPlace) -> String {
        format!("{}:{offset}:{letters}", self.partition)
    }

    /// The place that an id names; `None` if it is not of this partition.
    pub(super) fn place_of(&self, id: &str) -> Option<FeedPlace> {
        let (partition, place) = id.split_once(':')?;
        let (offset, letters) = place.split_once(':')?;
        let place = FeedPlace { offset: offset.parse().ok()?, letters: letters.parse().ok()? };
        partition.parse::<u32>().is_ok_and(|of| of == self.partition).then_some(place)
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

    /// Notes a record of the bank that was rejected; returns whether [`Self::look`] must be started.
    pub(super) fn note_rejected(&self, rejected: RejectedRecord) -> bool {
        {
            let mut state = self.state();
            if rejected.offset < state.letters {
                // Read before the bank was followed.
                return false;
            }
            state.letters = rejected.offset + 1;
            if state.rejected.len() < MOST_REJECTED {
                state.rejected.push(rejected);
            } else {
                state.rejected_more += 1;
            }
        }
        self.note_change()
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
        Some((state.told, BankEvent::Progress(self.id(state.reached), progress)))
    }

    /// How many events there were up to a place, if all that came after it are kept.
    pub(super) fn told_at(&self, place: FeedPlace) -> Option<u64> {
        let state = self.state();
        if state.from.is_after(place) || place.is_after(state.reached) {
            return None;
        }
        let next = state.retained.iter().find(|look| look.reached.is_after(place));
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
        BankEvent::Progress(self.id(look.reached), look.progress.clone())
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
            let (log, dead_letters) = (Arc::clone(memory.log()), Arc::clone(&self.dead_letters));
            let reflects = replica.read_to(&self.bank);
            let of = before.clone();
            let looked = tokio::task::spawn_blocking(move || {
                // A process that may not read the dead letters of a cluster tells none, and everything else.
                let letters = if of.is_none() { dead_letters.begin(&*log).unwrap_or_default() } else { 0 };
                (letters, BankLook::of(&replica, bank, of.as_deref()))
            });
            // It ended without a result: the process is stopping, or it panicked.
            let Ok((letters, looked)) = looked.await else { return self.end(FeedValue::Ended(panicked())) };
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
                    Some(look) if self.newest.borrow().resets == resets => self.tell(&mut state, look, letters),
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

    /// Adds the events of a look; `letters` is where the dead letters ended before the first one.
    fn tell(&self, state: &mut FeedState, look: BankLook, letters: u64) {
        let offset = look.offset();
        let (records, left_out) = self.watched.take_records(offset);
        let (mut rejected, rejected_more) =
            (std::mem::take(&mut state.rejected), std::mem::take(&mut state.rejected_more));
        let BankLook { held, events: of_graph, skipped: more, progress } = look;
        if state.held.replace(Arc::new(held)).is_none() {
            // What is held now is where the events begin. What was rejected during the look is told with the next one.
            state.letters = state.letters.max(letters);
            state.reached = FeedPlace { offset, letters };
            state.from = state.reached;
            rejected.retain(|record| record.offset >= letters);
            if !rejected.is_empty() {
                state.work.note_change();
            }
            state.rejected = rejected;
        } else {
            state.reached = FeedPlace { offset, letters: state.letters };
            let of_records = records.into_iter().map(BankEvent::from);
            let events = of_records.chain(rejected.into_iter().map(BankEvent::Rejected)).chain(of_graph);
            let events = events.chain(skipped(left_out + rejected_more + more));
            let (before, mut events) = (state.told, events.collect::<Vec<_>>());
            // With records left out, it is not known which turns were edited or deleted.
            if left_out == 0 {
                name_removed(&mut events, &state.retained);
            }
            if !events.is_empty() {
                state.told += events.len() as u64;
                let (reached, progress) = (state.reached, progress.clone());
                state.retained.push_back(Arc::new(ToldLook { before, reached, events, progress }));
            }
        }
        state.progress = Some(progress);
        while state.retained.len() > 1
            && state.retained.front().is_some_and(|first| state.told - first.before > RETAINED as u64)
        {
            state.from = state.retained.pop_front().map_or(state.from, |first| first.reached);
        }
        self.newest.send_modify(|news| news.value = FeedValue::Going);
    }

    fn state(&self) -> MutexGuard<'_, FeedState> {
        sync::lock(&self.state)
    }
}

/// Gives removed units the labels with which they came, where their coming is kept. A unit of a turn that was edited or
/// deleted in the same look gets none: its words are withdrawn.
fn name_removed(events: &mut [BankEvent], retained: &VecDeque<Arc<ToldLook>>) {
    if !events.iter().any(|event| matches!(event, BankEvent::UnitRemoved(_))) {
        return;
    }
    let turn_of = |event: &BankEvent| if let BankEvent::Turn(turn) = event { Some(turn.turn.clone()) } else { None };
    let read_again: HashSet<String> = events.iter().filter_map(turn_of).collect();
    let mut came: HashMap<UnitId, &AddedUnit> = HashMap::new();
    for event in retained.iter().flat_map(|look| &look.events) {
        if let BankEvent::UnitAdded(unit) = event {
            came.insert(unit.id, unit);
        }
    }
    for event in events {
        if let BankEvent::UnitRemoved(removed) = event {
            let added = came.get(&removed.id).filter(|unit| !unit.turns.iter().any(|turn| read_again.contains(turn)));
            removed.label = added.map(|unit| unit.label.clone());
        }
    }
}

fn panicked() -> Problem {
    Problem::new(Code::Failed, "the look at the bank panicked; this is a defect, please report it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::{ArrivedTurn, RemovedUnit};
    use nouns::model::EventTime;

    fn added(id: u64, turn: &str) -> BankEvent {
        let said_at = EventTime::parse("2024-05-06T09:00:00Z").unwrap();
        let (label, session) = (format!("unit {id}"), "s".to_owned());
        BankEvent::UnitAdded(AddedUnit { id: UnitId(id), label, said_at, session, turns: vec![turn.to_owned()] })
    }

    fn read(turn: &str, deleted: bool) -> BankEvent {
        let time = EventTime::parse("2024-05-06T09:00:00Z").unwrap();
        let (speaker, session, text) = (String::new(), String::new(), String::new());
        BankEvent::Turn(ArrivedTurn { turn: turn.to_owned(), speaker, time, session, text, cut: false, deleted })
    }

    #[test]
    fn a_removed_unit_is_named_unless_its_words_are_withdrawn_with_it() {
        let bank = Bank::parse("b").unwrap();
        let progress = BankProgress { bank, units: 0, semantic_edges: 0, structural_edges: 0, reflects: Vec::new() };
        let events = vec![added(1, "a"), added(2, "b"), added(3, "c")];
        let retained =
            VecDeque::from([Arc::new(ToldLook { before: 0, reached: FeedPlace::default(), events, progress })]);
        let removed = |id| BankEvent::UnitRemoved(RemovedUnit { id: UnitId(id), label: None });
        let mut events = vec![read("b", true), read("c", false), removed(1), removed(2), removed(3), removed(4)];
        name_removed(&mut events, &retained);
        let labels: Vec<Option<&str>> = events[2..]
            .iter()
            .map(|event| match event {
                BankEvent::UnitRemoved(removed) => removed.label.as_deref(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(labels, [Some("unit 1"), None, None, None]);
    }
}
