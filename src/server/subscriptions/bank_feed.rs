//! One bank that is followed: what happens in it, found once for all its followers.
//!
//! In: news about the bank, what its records say, scans of what it holds. Out: events; followers read them at their own
//! pace from the last ones, which are kept, so that nothing waits for a follower and memory is bounded. The bank is
//! scanned when it has changed, never twice at the same time and never without followers; the longer a scan took, the
//! longer is the pause after it. Changes between two scans that undo each other are not reported.
//!
//! Before any event is sent, the events that are kept lose the words of turns of which a later version was read: what
//! was deleted is sent to no one again, even before the deletion itself is reported.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::{
    bank_event_forms::{BankEvent, BankProgress, RejectedRecord},
    bank_scan::{BankScan, GraphFingerprint, skipped},
    dead_letter_reader::DeadLetterReader,
    refresh_schedule::{RefreshAttempts, RefreshSchedule},
};
use crate::api::{ApiProblem, ProblemCode};
use pipeline::PipelineError;
use replica::{BankWatchGuard, TurnVersionChanges};
use ripplemem::Memory;
use types::{model::Bank, sync};

/// How many events are kept for followers that read slowly or come back.
const RETAINED: usize = 1_000;
/// Most rejected records that are kept between two scans.
const MAX_REJECTED: usize = 200;
/// The least pause between two scans.
const PAUSE: Duration = Duration::from_millis(50);
/// The pause is at least this many times as long as the scan took, so that scans take at most a tenth of the time.
const PAUSE_SHARE: u32 = 9;

/// A bank that is followed.
pub(super) struct BankFeed {
    pub(super) bank: Bank,
    pub(super) partition: u32,
    watched: BankWatchGuard,
    dead_letters: Arc<DeadLetterReader>,
    newest: watch::Sender<FeedNews>,
    state: Mutex<FeedState>,
}

/// What followers wait for.
#[derive(Debug, Clone, Default)]
pub(super) struct FeedNews {
    /// How often it became unknown what had happened.
    pub(super) resets: u64,
    pub(super) value: FeedStatus,
}

/// How far the feed is.
#[derive(Debug, Clone, Default)]
pub(super) enum FeedStatus {
    /// The first scan, or the first one after a reset, is not done.
    #[default]
    Pending,
    /// There may be new events.
    Going,
    /// The bank is no longer scanned.
    Ended(ApiProblem),
    /// Another instance has the bank now.
    Moved,
}

struct FeedState {
    /// When the bank must be scanned.
    work: RefreshSchedule,
    held: Option<Arc<GraphFingerprint>>,
    /// The first position after which all events are kept.
    from: FeedPosition,
    /// The position that the newest scan reaches.
    reached: FeedPosition,
    /// Rejected records since the newest scan, how many more there were, and the offset after the last of them.
    rejected: Vec<RejectedRecord>,
    rejected_more: u64,
    letters: u64,
    progress: Option<BankProgress>,
    /// The last scans, none without events.
    retained: VecDeque<ScanEvents>,
    /// How many events there were in all.
    told: u64,
}

/// The position up to which events are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FeedPosition {
    /// The first offset of the memory partition that is not reported.
    offset: u64,
    /// The first offset of the dead letters that is not reported.
    letters: u64,
}

impl FeedPosition {
    /// Whether something may have been reported after `other` and up to here.
    fn is_after(self, other: Self) -> bool {
        self.offset > other.offset || self.letters > other.letters
    }
}

/// The events of one scan.
#[derive(Debug)]
struct ScanEvents {
    /// How many events there were before.
    before: u64,
    reached: FeedPosition,
    events: Vec<BankEvent>,
    progress: BankProgress,
}

impl ScanEvents {
    /// How many events there were with those of this scan.
    fn end(&self) -> u64 {
        self.before + self.events.len() as u64
    }
}

impl FeedState {
    fn new() -> Self {
        Self {
            work: RefreshSchedule::new(),
            held: None,
            from: FeedPosition::default(),
            reached: FeedPosition::default(),
            rejected: Vec::new(),
            rejected_more: 0,
            letters: 0,
            progress: None,
            retained: VecDeque::new(),
            told: 0,
        }
    }

    /// Drops the words of turns that have a later version than the scan in which they were reported.
    fn withdraw(&mut self, versions: &TurnVersionChanges) {
        let TurnVersionChanges { by_turn, left_out_to } = versions;
        if *left_out_to > 0 {
            // Any turn may be among those that are left out, so what was reported before them must not be reported
            // again.
            while self.retained.front().is_some_and(|look| look.reached.offset < *left_out_to) {
                self.from = self.retained.pop_front().map_or(self.from, |look| look.reached);
            }
            self.rejected_more += std::mem::take(&mut self.rejected).len() as u64;
        }
        if by_turn.is_empty() {
            return;
        }
        self.rejected.iter_mut().for_each(|record| withdraw_reason(record, versions));
        for look in &mut self.retained {
            let reached = look.reached.offset;
            let is_later = |turn: &String| by_turn.get(turn).is_some_and(|version| version.next_offset > reached);
            for event in &mut look.events {
                match event {
                    BankEvent::Turn(turn) if is_later(&turn.turn) => {
                        (turn.speaker, turn.text, turn.cut) = (String::new(), String::new(), false);
                    }
                    BankEvent::UnitAdded(unit) if unit.turns.iter().any(is_later) => unit.label = String::new(),
                    BankEvent::Rejected(record) => withdraw_reason(record, versions),
                    _ => {}
                }
            }
        }
    }

    /// An event of one of the scans that are kept. A removed unit gets the label of the event that added it, if that is
    /// still kept and still has its words.
    fn event(&self, look: usize, index: usize) -> Option<BankEvent> {
        let mut event = self.retained.get(look)?.events.get(index)?.clone();
        if let BankEvent::UnitRemoved(removed) = &mut event {
            let earlier = self.retained.range(..look).rev().flat_map(|look| &look.events);
            let mut labels = earlier.filter_map(|event| match event {
                BankEvent::UnitAdded(unit) if unit.id == removed.id => Some(&unit.label),
                _ => None,
            });
            removed.label = labels.next().filter(|label| !label.is_empty()).cloned();
        }
        Some(event)
    }
}

impl BankFeed {
    pub(super) fn new(
        bank: Bank,
        partition: u32,
        watched: BankWatchGuard,
        dead_letters: Arc<DeadLetterReader>,
    ) -> Self {
        let (newest, state) = (watch::Sender::new(FeedNews::default()), Mutex::new(FeedState::new()));
        Self { bank, partition, watched, dead_letters, newest, state }
    }

    /// The id of the events up to a position in the memory log and in the dead letters.
    fn id(&self, FeedPosition { offset, letters }: FeedPosition) -> String {
        format!("{}:{offset}:{letters}", self.partition)
    }

    /// The position that an id names; `None` if it is not of this partition.
    pub(super) fn place_of(&self, id: &str) -> Option<FeedPosition> {
        let (partition, place) = id.split_once(':')?;
        let (offset, letters) = place.split_once(':')?;
        let place = FeedPosition { offset: offset.parse().ok()?, letters: letters.parse().ok()? };
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

    /// Notes that the bank has changed; returns whether [`Self::scan`] must be started.
    pub(super) fn note_change(&self) -> bool {
        self.state().work.note_change();
        self.begin()
    }

    /// Notes a record of the bank that was rejected; returns whether [`Self::scan`] must be started.
    pub(super) fn note_rejected(&self, rejected: RejectedRecord) -> bool {
        {
            let mut state = self.state();
            if rejected.offset < state.letters {
                // Read before the bank was followed.
                return false;
            }
            state.letters = rejected.offset + 1;
            if state.rejected.len() < MAX_REJECTED {
                state.rejected.push(rejected);
            } else {
                state.rejected_more += 1;
            }
        }
        self.note_change()
    }

    /// Whether [`Self::scan`] must be started now.
    pub(super) fn begin(&self) -> bool {
        self.state().work.begin()
    }

    /// Drops what was held and reported, because the shard was replaced or dropped.
    pub(super) fn reset(&self) -> bool {
        {
            let mut state = self.state();
            (state.held, state.progress) = (None, None);
            state.retained.clear();
            self.newest.send_modify(|news| *news = FeedNews { resets: news.resets + 1, value: FeedStatus::Pending });
        }
        self.note_change()
    }

    /// How many events there are up to now, and the progress that they led to; `None` before the first scan.
    pub(super) fn now(&self) -> Option<(u64, BankEvent)> {
        let state = self.state();
        let progress = state.progress.clone()?;
        Some((state.told, BankEvent::Progress(self.id(state.reached), progress)))
    }

    /// How many events there were up to a position, if all later ones are kept.
    pub(super) fn event_count_at(&self, place: FeedPosition) -> Option<u64> {
        let state = self.state();
        if state.from.is_after(place) || place.is_after(state.reached) {
            return None;
        }
        let next = state.retained.iter().find(|look| look.reached.is_after(place));
        Some(next.map_or(state.told, |look| look.before))
    }

    /// The first event of the next scan for a follower who got this many, and how many are not kept before it.
    pub(super) fn after(&self, told: u64) -> Option<(BankEvent, u64)> {
        let mut state = self.state();
        state.withdraw(&self.watched.take_versions());
        let at = state.retained.partition_point(|look| look.before < told);
        let missed = state.retained.get(at)?.before - told;
        Some((state.event(at, 0)?, missed))
    }

    /// The next event for a follower who got this many, the last of them from a scan: the next of that scan, or at its
    /// end its progress. `None` if the scan is not kept any more.
    pub(super) fn within(&self, told: u64) -> Option<BankEvent> {
        let mut state = self.state();
        state.withdraw(&self.watched.take_versions());
        let at = state.retained.partition_point(|look| look.end() < told);
        let look = state.retained.get(at).filter(|look| look.before < told)?;
        let index = usize::try_from(told - look.before).ok()?;
        let progress = || BankEvent::Progress(self.id(look.reached), look.progress.clone());
        Some(state.event(at, index).unwrap_or_else(progress))
    }

    /// Scans until the newest scan shows all that the bank holds. Only one call may run at a time, as [`Self::begin`]
    /// ensures. Returns false if the bank is no longer scanned.
    pub(super) async fn scan(&self, memory: &Memory) -> bool {
        let mut attempts = RefreshAttempts::new();
        loop {
            let before = {
                let mut state = self.state();
                if !state.work.take_change() {
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
                // A process that may not read the dead letters of a cluster reports none of them, and everything else.
                let letters = if of.is_none() { dead_letters.begin(&*log).unwrap_or_default() } else { 0 };
                (letters, BankScan::of(&replica, bank, of.as_deref()))
            });
            // It ended without a result: the process is stopping, or it panicked.
            let Ok((letters, looked)) = looked.await else { return self.end(FeedStatus::Ended(panic_problem())) };
            let found = match looked {
                Ok(look) => Some(look),
                Err(PipelineError::UnknownBank { .. }) => {
                    let (bank, units, semantic_edges, structural_edges) = (self.bank.clone(), 0, 0, 0);
                    let progress = BankProgress { bank, units, semantic_edges, structural_edges, reflects };
                    let empty = BankScan::of_empty_bank(progress, before.as_deref());
                    Some(empty).filter(|empty| self.watched.changed_at() <= empty.offset())
                }
                Err(PipelineError::OtherInstance { .. }) => return self.end(FeedStatus::Moved),
                Err(error) => {
                    let Some(pause) = attempts.pause_after(&error) else {
                        return self.end(FeedStatus::Ended(error.into()));
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
                    // A scan from before a reset says nothing about what is held now.
                    Some(look) if self.newest.borrow().resets == resets => {
                        self.record_events(&mut state, look, letters)
                    }
                    _ => state.work.note_change(),
                }
            }
            let took = began.elapsed();
            tokio::time::sleep(PAUSE.saturating_sub(took).max(took * PAUSE_SHARE)).await;
        }
    }

    fn end(&self, value: FeedStatus) -> bool {
        self.newest.send_modify(|news| news.value = value);
        false
    }

    /// Adds the events of a scan; `letters` is where the dead letters ended before the first one.
    fn record_events(&self, state: &mut FeedState, look: BankScan, letters: u64) {
        let offset = look.offset();
        let (records, left_out) = self.watched.take_records(offset);
        let (mut rejected, rejected_more) =
            (std::mem::take(&mut state.rejected), std::mem::take(&mut state.rejected_more));
        let BankScan { held, events: of_graph, skipped: more, progress } = look;
        if state.held.replace(Arc::new(held)).is_none() {
            // What is held now is where the events begin. What was rejected during the scan is reported with the next
            // one.
            state.letters = state.letters.max(letters);
            state.reached = FeedPosition { offset, letters };
            state.from = state.reached;
            rejected.retain(|record| record.offset >= letters);
            if !rejected.is_empty() {
                state.work.note_change();
            }
            state.rejected = rejected;
        } else {
            state.reached = FeedPosition { offset, letters: state.letters };
            let of_records = records.into_iter().map(BankEvent::from);
            let events = of_records.chain(rejected.into_iter().map(BankEvent::Rejected)).chain(of_graph);
            let events = events.chain(skipped(left_out + rejected_more + more));
            let (before, events) = (state.told, events.collect::<Vec<_>>());
            if !events.is_empty() {
                state.told += events.len() as u64;
                let (reached, progress) = (state.reached, progress.clone());
                state.retained.push_back(ScanEvents { before, reached, events, progress });
            }
        }
        state.progress = Some(progress);
        while state.retained.len() > 1
            && state.retained.front().is_some_and(|first| state.told - first.before > RETAINED as u64)
        {
            state.from = state.retained.pop_front().map_or(state.from, |first| first.reached);
        }
        // A turn may have been deleted after this scan.
        state.withdraw(&self.watched.take_versions());
        self.newest.send_modify(|news| news.value = FeedStatus::Going);
    }

    fn state(&self) -> MutexGuard<'_, FeedState> {
        sync::lock(&self.state)
    }
}

/// Drops the reason for which a record of a deleted turn was rejected, as it may quote the record.
fn withdraw_reason(record: &mut RejectedRecord, versions: &TurnVersionChanges) {
    let version = record.turn.as_ref().and_then(|turn| versions.by_turn.get(turn));
    if version.is_some_and(|version| version.is_deleted) {
        record.reason = String::new();
    }
}

fn panic_problem() -> ApiProblem {
    ApiProblem::new(ProblemCode::Failed, "the look at the bank panicked; this is a defect, please report it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subscriptions::{AddedUnit, ArrivedTurn, RemovedUnit};
    use replica::LatestTurnVersion;
    use types::model::{EventTime, UnitId};

    fn added(id: u64, turns: &[&str]) -> BankEvent {
        let said_at = EventTime::parse("2024-05-06T09:00:00Z").unwrap();
        let (label, session) = (format!("unit {id}"), "s".to_owned());
        let turns = turns.iter().map(|turn| (*turn).to_owned()).collect();
        BankEvent::UnitAdded(AddedUnit { id: UnitId(id), label, said_at, session, turns })
    }

    fn read(turn: &str, text: &str) -> BankEvent {
        let time = EventTime::parse("2024-05-06T09:00:00Z").unwrap();
        let (turn, session, text) = (turn.to_owned(), "s".to_owned(), text.to_owned());
        let (speaker, cut, deleted, metadata) = ("Ann".to_owned(), true, false, None);
        BankEvent::Turn(ArrivedTurn { turn, speaker, time, session, text, cut, deleted, metadata })
    }

    fn rejected(turn: &str) -> RejectedRecord {
        RejectedRecord { offset: 7, turn: Some(turn.to_owned()), reason: format!("no time in {turn}") }
    }

    fn removed(id: u64, label: Option<&str>) -> BankEvent {
        BankEvent::UnitRemoved(RemovedUnit { id: UnitId(id), label: label.map(str::to_owned) })
    }

    /// A feed with these scans, each of which reaches one offset further.
    fn state(looks: Vec<Vec<BankEvent>>) -> FeedState {
        let bank = Bank::parse("b").unwrap();
        let progress = BankProgress { bank, units: 0, semantic_edges: 0, structural_edges: 0, reflects: Vec::new() };
        let mut state = FeedState::new();
        for events in looks {
            state.reached.offset += 1;
            let (before, reached) = (state.told, state.reached);
            state.told += events.len() as u64;
            state.retained.push_back(ScanEvents { before, reached, events, progress: progress.clone() });
        }
        state
    }

    #[test]
    fn what_is_kept_has_no_words_of_a_turn_that_has_a_later_version() {
        let looks = vec![
            vec![read("a", "the boat"), read("b", "the secret"), added(1, &["a"]), added(2, &["a", "b"])],
            vec![BankEvent::Rejected(rejected("b")), BankEvent::Rejected(rejected("c")), added(3, &["c"])],
            vec![removed(1, None), removed(2, None), removed(3, None), removed(4, None)],
        ];
        let mut state = state(looks);
        state.rejected = vec![rejected("b"), rejected("c")];
        let event = |state: &FeedState, look: usize, index: usize| state.event(look, index).unwrap();
        assert_eq!(event(&state, 2, 1), removed(2, Some("unit 2")));
        let mut versions = TurnVersionChanges::default();
        for (turn, next_offset, is_deleted) in [("a", 1, false), ("b", 3, true), ("c", 3, false)] {
            versions.by_turn.insert(turn.to_owned(), LatestTurnVersion { next_offset, is_deleted });
        }
        state.withdraw(&versions);
        let BankEvent::Turn(turn) = event(&state, 0, 1) else { panic!("no turn") };
        assert_eq!((turn.turn.as_str(), turn.text.as_str(), turn.speaker.as_str(), turn.cut), ("b", "", "", false));
        assert_eq!(event(&state, 0, 0), read("a", "the boat"), "the look is of the last version");
        let label = |look: usize, index: usize| match event(&state, look, index) {
            BankEvent::UnitAdded(unit) => unit.label,
            other => panic!("{other:?}"),
        };
        assert_eq!([label(0, 2), label(0, 3), label(1, 2)], ["unit 1", "", ""]);
        let labels = (0..4).map(|index| event(&state, 2, index));
        let expected = [removed(1, Some("unit 1")), removed(2, None), removed(3, None), removed(4, None)];
        assert!(labels.eq(expected), "{:?}", state.retained);
        let silent = RejectedRecord { reason: String::new(), ..rejected("b") };
        assert_eq!(event(&state, 1, 0), BankEvent::Rejected(silent.clone()));
        assert_eq!(event(&state, 1, 1), BankEvent::Rejected(rejected("c")), "an edit forgets no reason");
        assert_eq!(state.rejected, [silent, rejected("c")]);
    }

    #[test]
    fn nothing_is_kept_of_looks_after_which_any_turn_may_have_another_version() {
        let mut state = state(vec![vec![read("a", "the secret")], vec![added(1, &["a"])], vec![read("b", "the boat")]]);
        state.rejected = vec![rejected("b")];
        state.withdraw(&TurnVersionChanges { left_out_to: 3, ..TurnVersionChanges::default() });
        assert_eq!(state.retained.iter().map(|look| look.before).collect::<Vec<_>>(), [2]);
        assert_eq!((state.from.offset, state.rejected.len(), state.rejected_more), (2, 0, 1));
    }
}
