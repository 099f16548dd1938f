//! Turns one bank's turn events into its changed windows.
//!
//! In: events in the order of the log. Out: the windows that they changed. A version that does not win changes nothing;
//! not even its event time counts. `window_rules` says when a window closes.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    auto_sessions::AutoSessions,
    change::{TITLE_SESSION, UNSEEN_SESSION, WindowChange, WriteEffect},
    crossing_conversations::{self, CrossingConversations},
    packed_turns::PackedTurn,
    session_titles::SessionTitles,
    session_windows::{SessionWindows, TurnPosition},
    turn_positions::TurnPositions,
    window_rules::WindowRules,
};
use types::{
    model::{
        Bank, EventTime, IdSalt, MemoryKey, SessionId, StoredTimes, Turn, TurnDeletion, TurnEvent, Window, WindowId,
        WindowTurn,
    },
    shrinkable_collection::push_sparingly,
};

/// The speaker in the record of a turn that was deleted.
const UNKNOWN_SPEAKER: &str = "-";

/// The sessions and windows of one bank.
#[derive(Debug)]
pub(super) struct BankWindows {
    pub(super) bank: Bank,
    pub(super) rules: WindowRules,
    pub(super) sessions: Vec<SessionWindows>,
    pub(super) names: HashMap<SessionId, usize>,
    pub(super) autos: AutoSessions,
    pub(super) conversations: CrossingConversations,
    /// Where each turn is; an edit does not move it.
    pub(super) positions: TurnPositions,
    /// Deletions of turns that have not arrived, by turn id.
    pub(super) unseen: BTreeMap<String, UnseenDeletion>,
    /// Turn ids whose record in the reserved session is to be written or, if they are not in `unseen`, removed.
    changed_unseen: BTreeSet<String>,
    /// The open windows: (latest event time of their own turns, session).
    pub(super) open: BTreeSet<(i64, usize)>,
    pub(super) titles: SessionTitles,
    /// Turns that were edited or deleted since [`Self::take_revised`].
    revised: BTreeSet<String>,
    /// Windows with something to write: (session, start).
    pub(super) changed: BTreeSet<(usize, u32)>,
    /// The number of turns in the windows that closed since the last event.
    closing_turns: usize,
    /// The length of the longest context of any window.
    pub(super) reach: u32,
    /// The turns whose ids hold a phone number or a mail address, by the hidden form; `None` until an event needs it.
    pub(super) plain: Option<HashMap<String, String>>,
    /// The turns of restored records, until [`Self::reconcile`].
    pub(super) restored: Vec<RestoredTurn>,
    /// When the event that is applied was stored, in milliseconds since 1970; `None` if that is unknown.
    pub(super) stored_ms: Option<i64>,
    /// The last offset that was applied.
    pub(super) applied: Option<u64>,
}

/// A turn in a restored record, kept to find records that hold a replaced version.
#[derive(Debug)]
pub(super) struct RestoredTurn {
    pub(super) position: TurnPosition,
    /// The start of the record's window.
    pub(super) start: u32,
    pub(super) version: (u64, bool, u64),
}

/// A deletion that arrived before its turn.
#[derive(Debug)]
pub(super) struct UnseenDeletion {
    pub(super) version: u64,
    pub(super) source_offset: u64,
    /// Whether its record is in the memory log.
    pub(super) in_log: bool,
}

impl BankWindows {
    pub(super) fn new(bank: Bank, rules: WindowRules) -> Self {
        Self {
            bank,
            rules,
            sessions: Vec::new(),
            names: HashMap::new(),
            autos: AutoSessions::new(rules.gap_ms),
            conversations: CrossingConversations::default(),
            positions: TurnPositions::default(),
            unseen: BTreeMap::new(),
            changed_unseen: BTreeSet::new(),
            titles: SessionTitles::default(),
            revised: BTreeSet::new(),
            open: BTreeSet::new(),
            changed: BTreeSet::new(),
            closing_turns: 0,
            reach: rules.overlap,
            plain: None,
            restored: Vec::new(),
            stored_ms: None,
            applied: None,
        }
    }

    /// Applies an event; returns what it did, and the number of turns in the windows that it closed.
    pub(super) fn apply(&mut self, offset: u64, event: &TurnEvent) -> (WriteEffect, usize) {
        let mut effect = WriteEffect::Written;
        match event {
            TurnEvent::Turn(turn) => effect = self.apply_turn(offset, turn),
            TurnEvent::Deletion(deletion) => {
                effect = self.delete(offset, deletion);
                // What is deleted already is no more deleted by this.
                effect = if effect == WriteEffect::Unchanged { WriteEffect::Stale } else { effect };
            }
            TurnEvent::SessionTitle(title) => self.titles.apply(offset, title),
            TurnEvent::SessionEnd(end) => {
                for name in self.rules.sessions_ended_by(&end.session) {
                    if let Some(&session) = self.names.get(&name) {
                        self.close(session);
                    }
                }
                self.close_conversations(&end.session);
            }
            TurnEvent::Idle(idle) => {
                self.close_while(|rules, last_ms| rules.closes_at_idle(last_ms, idle.time.unix_ms));
            }
            // The first is decided with its group, and the second says what was.
            TurnEvent::Conditional(_) | TurnEvent::Verdict(_) => {}
        }
        (effect, std::mem::take(&mut self.closing_turns))
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.changed.is_empty() || !self.changed_unseen.is_empty() || self.titles.has_changes()
    }

    /// The changed windows by session and start.
    pub(super) fn drain(&mut self) -> Vec<WindowChange> {
        let mut out: Vec<_> = std::mem::take(&mut self.changed)
            .into_iter()
            .filter_map(|(session, start)| self.sessions.get_mut(session)?.drain(&self.bank, start))
            .collect();
        out.extend(self.drain_unseen());
        out.extend(self.titles.drain(&self.bank));
        out.sort_by(|a, b| a.window.id.cmp(&b.window.id));
        out
    }

    pub(super) fn take_revised(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.revised)
    }

    pub(super) fn closed_window(&self, window: &WindowId) -> Option<Window> {
        let session = self.sessions.get(*self.names.get(&window.session)?)?;
        session.closed_windows().any(|start| start == window.start).then(|| session.window(&self.bank, window.start))?
    }

    pub(super) fn has_turns(&self) -> bool {
        self.sessions.iter().any(|session| session.turns.iter().any(|turn| !turn.deleted))
    }

    pub(super) fn closed_windows(&self) -> Vec<Window> {
        self.sessions.iter().flat_map(|s| s.closed_windows().filter_map(|start| s.window(&self.bank, start))).collect()
    }

    pub(super) fn position_of(&self, turn: &str) -> Option<(&SessionId, u32)> {
        let position = self.positions.get(turn, &self.sessions)?;
        Some((&self.sessions.get(position.session)?.id, position.ordinal))
    }

    pub(super) fn turns_of(&self, key: &MemoryKey) -> Option<Vec<WindowTurn>> {
        if key.window.session.0 == UNSEEN_SESSION {
            let turn = key.turn.as_ref()?;
            return Some(vec![self.unseen_turn(turn, self.unseen.get(turn)?)]);
        }
        if key.window.session.0 == TITLE_SESSION {
            return self.titles.record(&self.bank, key.turn.as_ref()?).map(|turn| vec![turn]);
        }
        let session = self.sessions.get(*self.names.get(&key.window.session)?)?;
        let is_closed = session.windows.get(key.window.start)?.closed;
        let mut turns = session.window(&self.bank, key.window.start)?.turns;
        if let Some(turn) = &key.turn {
            turns.retain(|of| !of.context && of.turn.turn == *turn);
        }
        (is_closed == key.turn.is_none() && !turns.is_empty()).then_some(turns)
    }

    /// The empty record that stands for a turn that was deleted before it arrived.
    fn unseen_turn(&self, turn: &str, unseen: &UnseenDeletion) -> WindowTurn {
        let hole = Turn {
            bank: self.bank.clone(),
            turn: turn.to_owned(),
            version: unseen.version,
            speaker: UNKNOWN_SPEAKER.to_owned(),
            kind: None,
            text: String::new(),
            time: EventTime { unix_ms: 0, offset_seconds: 0 },
            session: None,
            thread: None,
            reply_to: None,
            attachments: Vec::new(),
            metadata: None,
            recall: true,
        };
        let source_offset = unseen.source_offset;
        WindowTurn { turn: Arc::new(hole), ordinal: 0, context: false, deleted: true, source_offset, stored: None }
    }

    fn drain_unseen(&mut self) -> Option<WindowChange> {
        let mut remove_open = Vec::new();
        let mut written = Vec::new();
        for turn in std::mem::take(&mut self.changed_unseen) {
            let Some(unseen) = self.unseen.get_mut(&turn) else {
                remove_open.push(turn);
                continue;
            };
            unseen.in_log = true;
            written.push(turn);
        }
        let turns: Vec<WindowTurn> =
            written.iter().filter_map(|turn| Some(self.unseen_turn(turn, self.unseen.get(turn)?))).collect();
        if turns.is_empty() && remove_open.is_empty() {
            return None;
        }
        let write_open = turns.iter().map(|t| t.turn.turn.clone()).collect();
        let id = WindowId { session: SessionId(UNSEEN_SESSION.to_owned()), start: 0 };
        let window = Window { bank: self.bank.clone(), id, turns };
        Some(WindowChange { window, closed: false, write_open, remove_open })
    }

    /// A new turn, or a new version of one.
    fn apply_turn(&mut self, offset: u64, turn: &Turn) -> WriteEffect {
        if let Some(position) = self.positions.get(&turn.turn, &self.sessions) {
            return self.revise(position, PackedTurn::of(turn, position.ordinal, offset));
        }
        if let Some(unseen) = self.unseen.get(&turn.turn) {
            if turn.version <= unseen.version {
                return WriteEffect::Stale;
            }
            self.remove_unseen(&turn.turn);
        }
        self.close_before(turn.time.unix_ms);
        let session = self.session_of(turn);
        self.append(session, offset, turn);
        WriteEffect::Written
    }

    /// Deletes a turn, even one that has not arrived yet.
    pub(super) fn delete(&mut self, offset: u64, deletion: &TurnDeletion) -> WriteEffect {
        if let Some(position) = self.positions.get(&deletion.turn, &self.sessions) {
            let Some(current) = self.current(position) else { return WriteEffect::Unchanged };
            let session = (!current.deleted).then(|| current.session.map(str::to_owned)).flatten();
            // Its ids and time stay. Its speaker, words, reply, attachments and metadata do not.
            let (speaker, kind, text) = (UNKNOWN_SPEAKER.to_owned(), None, String::new());
            let (reply_to, attachments, version) = (None, Vec::new(), deletion.version);
            let kept = current.to_turn(&self.bank);
            let (metadata, recall) = (None, true);
            let emptied = Turn { version, speaker, kind, text, reply_to, attachments, metadata, recall, ..kept };
            let mut hole = PackedTurn::of(&emptied, position.ordinal, offset);
            hole.deleted = true;
            let effect = self.revise(position, hole);
            if effect == WriteEffect::Written
                && let Some(session) = session
            {
                self.titles.drop_if_empty(&session, &self.sessions);
            }
            return effect;
        }
        let known = self.unseen.get(&deletion.turn);
        if known.is_some_and(|unseen| deletion.version <= unseen.version) {
            return WriteEffect::Stale;
        }
        let in_log = known.is_some_and(|unseen| unseen.in_log);
        let unseen = UnseenDeletion { version: deletion.version, source_offset: offset, in_log };
        self.unseen.insert(deletion.turn.clone(), unseen);
        self.changed_unseen.insert(deletion.turn.clone());
        WriteEffect::Written
    }

    /// Replaces the id of a deleted turn by its hidden form, and hides numbers and addresses in the names of its
    /// session and thread. Returns whether the bank has such a turn.
    pub(super) fn hide_deleted_turn(&mut self, id: &str, salt: &IdSalt) -> bool {
        let Some(position) = self.positions.get(id, &self.sessions) else { return false };
        let Some(current) = self.current(position).filter(|current| current.deleted) else { return false };
        let (ordinal, offset) = (current.ordinal, current.source_offset);
        let kept = current.to_turn(&self.bank);
        let [session, thread] = [&kept.session, &kept.thread].map(|name| name.as_ref().map(|name| salt.hide(name)));
        let hidden = Turn { turn: salt.hidden(id), session, thread, ..kept };
        let stored = current.stored;
        let mut hole = PackedTurn::of(&hidden, ordinal, offset);
        (hole.deleted, hole.stored) = (true, stored);
        if let Some(session) = self.sessions.get_mut(position.session) {
            session.turns.insert(&hole);
            if let Some(span) = session.window_of(ordinal).and_then(|start| session.windows.get_mut(start)) {
                span.rename(ordinal, id);
            }
        }
        self.revised.insert(hidden.turn.clone());
        self.positions.insert(position, &self.sessions);
        self.mark_windows(position, false);
        true
    }

    /// Removes a deletion from the reserved session, because its turn has arrived.
    pub(super) fn remove_unseen(&mut self, turn: &str) -> Option<UnseenDeletion> {
        let unseen = self.unseen.remove(turn)?;
        if unseen.in_log {
            self.changed_unseen.insert(turn.to_owned());
        } else {
            self.changed_unseen.remove(turn);
        }
        Some(unseen)
    }

    pub(super) fn current(&self, position: TurnPosition) -> Option<PackedTurn<'_>> {
        self.sessions.get(position.session)?.turns.get(position.ordinal)
    }

    /// Replaces the current version of a turn if the new one wins (decision 4).
    fn revise(&mut self, position: TurnPosition, mut new: PackedTurn<'_>) -> WriteEffect {
        let Some(session) = self.sessions.get_mut(position.session) else { return WriteEffect::Unchanged };
        let Some(current) = session.turns.get(position.ordinal) else { return WriteEffect::Unchanged };
        if new.rank() < current.rank() {
            return WriteEffect::Stale;
        }
        if new.rank() == current.rank() && new.equals_except_offset(&current) {
            return WriteEffect::Unchanged;
        }
        // Its first version keeps its time, if that is known.
        new.stored = self.stored_ms.zip(current.stored).map(|(ms, before)| StoredTimes { ms, ..before });
        let new = &new;
        let old_ms = current.unix_ms;
        self.conversations.revise(&session.id, &current, new);
        self.revised.insert(new.id.to_owned());
        session.turns.insert(new);
        if old_ms != new.unix_ms
            && let Some(number) = session.auto
        {
            let times = session.turns.iter().map(|turn| turn.unix_ms);
            self.autos.retime(number, old_ms, new.unix_ms, times);
        }
        self.mark_windows(position, old_ms != new.unix_ms);
        // A deletion has no event time, so it closes no window.
        if !new.deleted {
            self.close_before(new.unix_ms);
        }
        WriteEffect::Written
    }

    /// Marks every window that holds a turn as changed, and updates the last event time of the
    /// window that owns it.
    fn mark_windows(&mut self, position: TurnPosition, retimed: bool) {
        let Some(session) = self.sessions.get_mut(position.session) else { return };
        for start in session.closed_with_context(position.ordinal, self.reach) {
            self.changed.insert((position.session, start));
        }
        let Some(start) = session.window_of(position.ordinal) else { return };
        self.changed.insert((position.session, start));
        if let Some(span) = session.windows.get_mut(start).filter(|span| !span.closed) {
            span.open_records().unwritten.insert(position.ordinal);
            let before = span.last_ms;
            if retimed && let Some(last) = session.retime(start) {
                self.open.remove(&(before, position.session));
                self.open.insert((last, position.session));
            }
        }
    }

    /// The session of a turn (decision 5): the caller's thread or session, or else a session by event time; if
    /// conversations cross, the conversation that it belongs to.
    fn session_of(&mut self, turn: &Turn) -> usize {
        if self.rules.sessions && self.rules.crossing && turn.thread.is_none() {
            return self.conversation_of(turn);
        }
        let name = match (self.rules.sessions, &turn.thread, &turn.session) {
            (false, _, _) => "bank".to_owned(),
            (true, Some(thread), _) => format!("thread:{thread}"),
            (true, None, Some(session)) => format!("caller:{session}"),
            (true, None, None) => format!("auto:{}", self.autos.session_at(turn.time.unix_ms)),
        };
        self.session(&SessionId(name))
    }

    /// The conversation of the turn that a turn answers, if `reply_to` or the words show which one; otherwise a new
    /// conversation.
    fn conversation_of(&mut self, turn: &Turn) -> usize {
        let room = turn.session.as_deref();
        let named = turn.reply_to.as_ref().and_then(|id| self.positions.get(id, &self.sessions));
        let is_here = |index: &usize| {
            self.sessions.get(*index).is_some_and(|s| crossing_conversations::is_of(&s.id, room.unwrap_or_default()))
        };
        if let Some(index) = named.map(|position| position.session).filter(is_here) {
            return index;
        }
        match self.conversations.joined_session(turn, &self.sessions, self.rules.gap_ms) {
            Some(index) => index,
            None => self.session(&self.conversations.new_session_id(room)),
        }
    }

    /// The index of a session by its name; a new session is added.
    pub(super) fn session(&mut self, id: &SessionId) -> usize {
        if let Some(&index) = self.names.get(id) {
            return index;
        }
        let index = self.sessions.len();
        push_sparingly(&mut self.sessions, SessionWindows::new(id.clone()));
        self.names.insert(id.clone(), index);
        index
    }

    /// Appends a new turn to a session. Its position never changes.
    fn append(&mut self, index: usize, offset: u64, turn: &Turn) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        let mut turn = PackedTurn::of(turn, session.next_ordinal(), offset);
        turn.stored = self.stored_ms.map(|ms| StoredTimes { ms, first_ms: ms });
        if let Some(number) = session.auto {
            self.autos.add(number, turn.unix_ms);
        }
        let position = TurnPosition { session: index, ordinal: turn.ordinal };
        self.conversations.add(&session.id, &turn, position);
        if let Some(span) = session.open_window().and_then(|start| session.windows.get(start)) {
            self.open.remove(&(span.last_ms, index));
        }
        let start = session.append(&turn, &self.rules);
        if let Some(span) = session.windows.get(start) {
            self.open.insert((span.last_ms, index));
        }
        self.changed.insert((index, start));
        let is_full = session.is_full(start, &self.rules);
        self.positions.insert(position, &self.sessions);
        if is_full {
            self.close(index);
        }
    }

    /// Closes the open window of a session, if it has one.
    fn close(&mut self, index: usize) {
        let Some(session) = self.sessions.get_mut(index) else { return };
        let Some(start) = session.open_window() else { return };
        self.closing_turns += session.own_turns(start).count();
        session.turns.shrink_last();
        if let Some(span) = session.windows.get_mut(start) {
            span.closed = true;
            self.open.remove(&(span.last_ms, index));
            self.changed.insert((index, start));
        }
    }

    /// Closes the open windows of a room's conversations.
    fn close_conversations(&mut self, room: &str) {
        let is_of =
            |index: &usize| self.sessions.get(*index).is_some_and(|s| crossing_conversations::is_of(&s.id, room));
        let open: Vec<usize> = self.open.iter().map(|(_, index)| *index).filter(is_of).collect();
        open.into_iter().for_each(|index| self.close(index));
    }

    /// Closes those open windows of the bank that a text of this time closes.
    fn close_before(&mut self, unix_ms: i64) {
        self.close_while(|rules, last_ms| rules.closes_at_text(last_ms, unix_ms));
    }

    /// Closes open windows, earliest last event time first, until one stays open.
    fn close_while(&mut self, closes: impl Fn(&WindowRules, i64) -> bool) {
        while let Some(&(last_ms, index)) = self.open.first()
            && closes(&self.rules, last_ms)
        {
            self.open.pop_first();
            self.close(index);
        }
    }
}
