//! One bank's turn events to its changed windows.
//!
//! In: events in the order of the log. Out: the windows that they changed. A version that
//! does not win changes nothing, not even by its event time. Windows of a bank close by
//! count, by a later turn, by an end mark or by an idle mark, and by nothing else.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    Rules, UNSEEN_SESSION, WindowChange,
    auto::AutoSessions,
    restore::Copies,
    session::{Held, Session},
};
use crate::model::{Bank, Deletion, EventTime, SessionId, Turn, TurnEvent, Window, WindowId, WindowTurn};

/// Who is said to have spoken a turn that was deleted before it was seen.
const UNKNOWN_SPEAKER: &str = "-";

/// The sessions and windows of one bank.
#[derive(Debug)]
pub(super) struct BankWindows {
    pub(super) bank: Bank,
    pub(super) rules: Rules,
    pub(super) sessions: Vec<Session>,
    pub(super) names: HashMap<SessionId, usize>,
    pub(super) autos: AutoSessions,
    /// Turn id to its place, for ever: an edit does not move a turn.
    pub(super) places: HashMap<String, Place>,
    /// Deletions of turns that were never seen, by turn id.
    pub(super) unseen: BTreeMap<String, Unseen>,
    /// Ids whose record in the reserved session is to be written, or removed when they
    /// are no longer in `unseen`.
    changed_unseen: BTreeSet<String>,
    /// Every open window by the latest event time of its own turns: (time, session).
    pub(super) open: BTreeSet<(i64, usize)>,
    /// Turns that were said differently or taken back since they were last asked for.
    revised: BTreeSet<String>,
    /// Windows with something to write: (session, start).
    pub(super) changed: BTreeSet<(usize, u32)>,
    /// Longest context of any window.
    pub(super) reach: u32,
    /// What restored records say, until they are brought together.
    pub(super) copies: Copies,
}

/// Where a turn sits: a session by its index, and an ordinal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) session: usize,
    pub(super) ordinal: u32,
}

/// A deletion that came before its turn.
#[derive(Debug)]
pub(super) struct Unseen {
    pub(super) version: u64,
    pub(super) source_offset: u64,
    /// Its record is in the log.
    pub(super) in_log: bool,
}

impl BankWindows {
    pub(super) fn new(bank: Bank, rules: Rules) -> Self {
        Self {
            bank,
            rules,
            sessions: Vec::new(),
            names: HashMap::new(),
            autos: AutoSessions::new(rules.gap_ms),
            places: HashMap::new(),
            unseen: BTreeMap::new(),
            changed_unseen: BTreeSet::new(),
            revised: BTreeSet::new(),
            open: BTreeSet::new(),
            changed: BTreeSet::new(),
            reach: rules.overlap,
            copies: Copies::default(),
        }
    }

    pub(super) fn apply(&mut self, offset: u64, event: &TurnEvent) {
        match event {
            TurnEvent::Turn(turn) => self.take(offset, turn),
            TurnEvent::Deletion(deletion) => self.delete(offset, deletion),
            TurnEvent::SessionEnd(end) if self.rules.sessions => {
                for prefix in ["caller:", "thread:"] {
                    if let Some(&session) = self.names.get(&SessionId(format!("{prefix}{}", end.session))) {
                        self.close(session);
                    }
                }
            }
            TurnEvent::SessionEnd(_) => {}
            TurnEvent::Idle(idle) => self.close_while(|quiet_ms| quiet_ms <= idle.time.unix_ms),
        }
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.changed.is_empty() || !self.changed_unseen.is_empty()
    }

    /// The changed windows by session and start.
    pub(super) fn drain(&mut self) -> Vec<WindowChange> {
        let mut out: Vec<_> = std::mem::take(&mut self.changed)
            .into_iter()
            .filter_map(|(session, start)| self.sessions.get_mut(session)?.drain(&self.bank, start))
            .collect();
        out.extend(self.drain_unseen());
        out.sort_by(|a, b| a.window.id.cmp(&b.window.id));
        out
    }

    pub(super) fn take_revised(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.revised)
    }

    pub(super) fn closed(&self, window: &WindowId) -> Option<Window> {
        let session = self.sessions.get(*self.names.get(&window.session)?)?;
        session.closed().any(|start| start == window.start).then(|| session.window(&self.bank, window.start))?
    }

    pub(super) fn closed_windows(&self) -> Vec<Window> {
        self.sessions.iter().flat_map(|s| s.closed().filter_map(|start| s.window(&self.bank, start))).collect()
    }

    fn drain_unseen(&mut self) -> Option<WindowChange> {
        let mut remove_open = Vec::new();
        let mut turns = Vec::new();
        for turn in std::mem::take(&mut self.changed_unseen) {
            let Some(unseen) = self.unseen.get_mut(&turn) else {
                remove_open.push(turn);
                continue;
            };
            unseen.in_log = true;
            turns.push(WindowTurn {
                turn: Arc::new(Turn {
                    bank: self.bank.clone(),
                    turn,
                    version: unseen.version,
                    speaker: UNKNOWN_SPEAKER.to_owned(),
                    text: String::new(),
                    time: EventTime { unix_ms: 0, offset_seconds: 0 },
                    session: None,
                    thread: None,
                    reply_to: None,
                    attachments: Vec::new(),
                }),
                ordinal: 0,
                context: false,
                deleted: true,
                source_offset: unseen.source_offset,
            });
        }
        if turns.is_empty() && remove_open.is_empty() {
            return None;
        }
        let write_open = turns.iter().map(|t| t.turn.turn.clone()).collect();
        let id = WindowId { session: SessionId(UNSEEN_SESSION.to_owned()), start: 0 };
        let window = Window { bank: self.bank.clone(), id, turns };
        Some(WindowChange { window, closed: false, write_open, remove_open })
    }

    /// Something was said, or said differently.
    fn take(&mut self, offset: u64, turn: &Turn) {
        let held = |turn: &Turn| Held { turn: Arc::new(turn.clone()), deleted: false, source_offset: offset };
        if let Some(&place) = self.places.get(&turn.turn) {
            self.revise(place, held(turn));
            return;
        }
        if let Some(unseen) = self.unseen.get(&turn.turn) {
            if turn.version <= unseen.version {
                return;
            }
            self.forget_unseen(&turn.turn);
        }
        self.close_before(turn.time);
        let session = self.session_of(turn);
        self.seat(session, held(turn));
    }

    /// A turn was taken back.
    pub(super) fn delete(&mut self, offset: u64, deletion: &Deletion) {
        if let Some(&place) = self.places.get(&deletion.turn) {
            let Some(held) = self.held(place) else { return };
            let emptied = emptied(&held.turn, deletion.version);
            self.revise(place, Held { turn: Arc::new(emptied), deleted: true, source_offset: offset });
            return;
        }
        let known = self.unseen.get(&deletion.turn);
        if known.is_some_and(|unseen| deletion.version <= unseen.version) {
            return;
        }
        let in_log = known.is_some_and(|unseen| unseen.in_log);
        let unseen = Unseen { version: deletion.version, source_offset: offset, in_log };
        self.unseen.insert(deletion.turn.clone(), unseen);
        self.changed_unseen.insert(deletion.turn.clone());
    }

    /// A turn was seen after its deletion: the reserved record goes.
    pub(super) fn forget_unseen(&mut self, turn: &str) -> Option<Unseen> {
        let unseen = self.unseen.remove(turn)?;
        if unseen.in_log {
            self.changed_unseen.insert(turn.to_owned());
        } else {
            self.changed_unseen.remove(turn);
        }
        Some(unseen)
    }

    fn held(&self, place: Place) -> Option<&Held> {
        self.sessions.get(place.session)?.turns.get(&place.ordinal)
    }

    /// Puts a version in the place of the one held, when it wins (decision 4).
    fn revise(&mut self, place: Place, new: Held) {
        let Some(session) = self.sessions.get_mut(place.session) else { return };
        let Some(held) = session.turns.get_mut(&place.ordinal) else { return };
        if new.rank() < held.rank() || (new.rank() == held.rank() && new.turn == held.turn) {
            return;
        }
        let (old_time, time) = (held.turn.time.unix_ms, new.turn.time);
        let said_again = !new.deleted;
        self.revised.insert(new.turn.turn.clone());
        *held = new;
        if old_time != time.unix_ms
            && let Some(number) = session.auto
        {
            self.autos.retime(number, old_time, time.unix_ms);
        }
        self.mark(place, old_time != time.unix_ms);
        // Only a text counts as the bank going on; a deletion comes at any time.
        if said_again {
            self.close_before(time);
        }
    }

    /// Marks every window that holds a turn, and keeps its window's last event time.
    fn mark(&mut self, place: Place, retimed: bool) {
        let Some(session) = self.sessions.get_mut(place.session) else { return };
        for start in session.closed_with_context(place.ordinal, self.reach) {
            self.changed.insert((place.session, start));
        }
        let Some(start) = session.owner(place.ordinal) else { return };
        self.changed.insert((place.session, start));
        if let Some(span) = session.windows.get_mut(&start).filter(|span| !span.closed) {
            span.unwritten.insert(place.ordinal);
            let before = span.last_ms;
            if retimed && let Some(last) = session.retime(start) {
                self.open.remove(&(before, place.session));
                self.open.insert((last, place.session));
            }
        }
    }

    /// Decision 5: the caller's thread or session, else one found by event time.
    fn session_of(&mut self, turn: &Turn) -> usize {
        let name = match (self.rules.sessions, &turn.thread, &turn.session) {
            (false, _, _) => "bank".to_owned(),
            (true, Some(thread), _) => format!("thread:{thread}"),
            (true, None, Some(session)) => format!("caller:{session}"),
            (true, None, None) => format!("auto:{}", self.autos.holding(turn.time.unix_ms)),
        };
        self.session(&SessionId(name))
    }

    /// The session of a name, made when it is new.
    pub(super) fn session(&mut self, id: &SessionId) -> usize {
        if let Some(&index) = self.names.get(id) {
            return index;
        }
        let index = self.sessions.len();
        self.sessions.push(Session::new(id.clone()));
        self.names.insert(id.clone(), index);
        index
    }

    /// Gives a turn its place for ever.
    fn seat(&mut self, index: usize, held: Held) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        if let Some(number) = session.auto {
            self.autos.add(number, held.turn.time.unix_ms);
        }
        let ordinal = session.next_ordinal();
        self.places.insert(held.turn.turn.clone(), Place { session: index, ordinal });
        if let Some(span) = session.open().and_then(|start| session.windows.get(&start)) {
            self.open.remove(&(span.last_ms, index));
        }
        let start = session.seat(held, &self.rules);
        if let Some(span) = session.windows.get(&start) {
            self.open.insert((span.last_ms, index));
        }
        self.changed.insert((index, start));
        if session.is_full(start, &self.rules) {
            self.close(index);
        }
    }

    /// Closes the open window of a session, if it has one.
    fn close(&mut self, index: usize) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        let Some(start) = session.open() else { return };
        if let Some(span) = session.windows.get_mut(&start) {
            span.closed = true;
            self.open.remove(&(span.last_ms, index));
            self.changed.insert((index, start));
        }
    }

    /// A text of this time was applied: windows that were silent for longer than the gap
    /// before it close. A turn from long before the others, as in the import of an old
    /// export, closes nothing, and its window waits for the next turn after its own gap:
    /// else each turn of such an import would be a window by itself.
    fn close_before(&mut self, time: EventTime) {
        if self.rules.sessions {
            self.close_while(|quiet_ms| quiet_ms < time.unix_ms);
        }
    }

    /// Closes windows as long as the last event time of the earliest, and the gap, is over.
    fn close_while(&mut self, is_over: impl Fn(i64) -> bool) {
        while let Some(&(last_ms, index)) = self.open.first()
            && is_over(last_ms.saturating_add(self.rules.gap_ms))
        {
            self.open.pop_first();
            self.close(index);
        }
    }
}

/// What stays of a deleted turn: its identity and place, nothing of what was said.
fn emptied(turn: &Turn, version: u64) -> Turn {
    Turn {
        bank: turn.bank.clone(),
        turn: turn.turn.clone(),
        version,
        speaker: turn.speaker.clone(),
        text: String::new(),
        time: turn.time,
        session: turn.session.clone(),
        thread: turn.thread.clone(),
        reply_to: None,
        attachments: Vec::new(),
    }
}
