//! One session: its turns by ordinal, and the windows that tile them.
//!
//! In: turns to append, ordinals that changed, windows to close. Out: which windows hold a turn, and a window as the
//! extractor sees it. Windows follow each other without gaps, only the last may be open, and each has at least one turn
//! of its own.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    change::WindowChange,
    packed_turns::{PackedTurn, PackedTurns},
    window_rules::WindowRules,
};
use types::{
    chunked_map::ChunkedMap,
    model::{Bank, SessionId, Window, WindowId, WindowTurn},
};

/// The position of a turn: the index of its session, and its ordinal there.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnPosition {
    pub(super) session: usize,
    pub(super) ordinal: u32,
}

/// A window without its turns: they are in the session, from the window's start to the next's.
#[derive(Debug, Default)]
pub(super) struct WindowSpan {
    pub(super) closed: bool,
    /// The number of ordinals of leading context. It is stored because a window that was made under another setting
    /// keeps its context, and a deletion must reach it.
    pub(super) context: u32,
    /// The latest event time among its own turns, in milliseconds since 1970.
    pub(super) last_ms: i64,
    /// None if there are no open records, as for most windows.
    open_records: Option<Box<OpenRecords>>,
}

/// The open records of a window: its own turns by ordinal.
#[derive(Debug, Default)]
pub(super) struct OpenRecords {
    /// Those in the log.
    pub(super) in_log: BTreeSet<u32>,
    /// Those that are to be written.
    pub(super) unwritten: BTreeSet<u32>,
    /// The earlier ids of turns whose records lie in the log under those ids.
    renamed: Vec<String>,
}

impl WindowSpan {
    /// Its open records, mutable.
    pub(super) fn open_records(&mut self) -> &mut OpenRecords {
        self.open_records.get_or_insert_default()
    }

    /// Notes that a turn has another id from now on: the record under its earlier id is to be removed.
    pub(super) fn rename(&mut self, ordinal: u32, before: &str) {
        let Some(open) = &mut self.open_records else { return };
        if open.in_log.remove(&ordinal) {
            open.renamed.push(before.to_owned());
        }
    }

    /// Whether any of its open records is in the log.
    pub(super) fn is_open_in_log(&self) -> bool {
        self.open_records.as_ref().is_some_and(|open| !open.in_log.is_empty())
    }
}

/// A session with its windows.
#[derive(Debug)]
pub(super) struct SessionWindows {
    pub(super) id: SessionId,
    /// N, if the session is named `auto:N`.
    pub(super) auto: Option<u32>,
    pub(super) turns: PackedTurns,
    /// By start.
    pub(super) windows: ChunkedMap<u32, WindowSpan>,
}

impl SessionWindows {
    pub(super) fn new(id: SessionId) -> Self {
        let auto = id.0.strip_prefix("auto:").and_then(|n| n.parse().ok());
        Self { id, auto, turns: PackedTurns::default(), windows: ChunkedMap::default() }
    }

    pub(super) fn next_ordinal(&self) -> u32 {
        self.turns.last_ordinal().map_or(0, |last| last.saturating_add(1))
    }

    /// The start of the open window.
    pub(super) fn open_window(&self) -> Option<u32> {
        self.windows.last().filter(|(_, span)| !span.closed).map(|(start, _)| *start)
    }

    /// Appends a turn, at the next ordinal, to the open window, or opens a window. Returns the window's start.
    pub(super) fn append(&mut self, turn: &PackedTurn<'_>, rules: &WindowRules) -> u32 {
        let (ordinal, time) = (turn.ordinal, turn.unix_ms);
        let start = self.open_window().unwrap_or(ordinal);
        let span = self.windows.get_or_insert_with(start, || WindowSpan {
            context: rules.overlap.min(ordinal),
            last_ms: time,
            ..WindowSpan::default()
        });
        span.last_ms = span.last_ms.max(time);
        span.open_records().unwritten.insert(ordinal);
        self.turns.insert(turn);
        start
    }

    /// Whether a window is full; see [`WindowRules::is_full`].
    pub(super) fn is_full(&self, start: u32, rules: &WindowRules) -> bool {
        let context = self.windows.get(start).map_or(0, |span| span.context);
        rules.is_full(context.saturating_add(self.window_end(start).saturating_sub(start)))
    }

    /// The first ordinal after a window.
    pub(super) fn window_end(&self, start: u32) -> u32 {
        let next = self.windows.after(Some(start)).next();
        next.map_or_else(|| self.next_ordinal(), |(next, _)| *next)
    }

    /// A window's own turns.
    pub(super) fn own_turns(&self, start: u32) -> impl Iterator<Item = PackedTurn<'_>> {
        self.turns_between(start, self.window_end(start))
    }

    /// The turns from an ordinal on, up to but not including another one.
    fn turns_between(&self, from: u32, end: u32) -> impl Iterator<Item = PackedTurn<'_>> {
        self.turns.from(from).take_while(move |turn| turn.ordinal < end)
    }

    /// The start of the window that a turn belongs to.
    pub(super) fn window_of(&self, ordinal: u32) -> Option<u32> {
        self.windows.before(ordinal.saturating_add(1)).next().map(|(start, _)| *start)
    }

    /// The closed windows that hold a turn as context. No context is longer than `reach`.
    pub(super) fn closed_with_context(&self, ordinal: u32, reach: u32) -> Vec<u32> {
        self.windows
            .after(Some(ordinal))
            .take_while(|(start, _)| *start <= ordinal.saturating_add(reach))
            .filter(|(start, span)| span.closed && start.saturating_sub(span.context) <= ordinal)
            .map(|(start, _)| *start)
            .collect()
    }

    /// Recomputes a window's last event time; None for a window without turns of its own.
    pub(super) fn retime(&mut self, start: u32) -> Option<i64> {
        let last = self.own_turns(start).map(|turn| turn.unix_ms).max()?;
        self.windows.get_mut(start)?.last_ms = last;
        Some(last)
    }

    /// The records to write for a changed window; None if there are none. After this call, its open records count as
    /// written or removed.
    pub(super) fn drain(&mut self, bank: &Bank, start: u32) -> Option<WindowChange> {
        let span = self.windows.get_mut(start)?;
        let mut open = span.open_records.take();
        let mut remove_open = Vec::new();
        let mut write_open = Vec::new();
        if span.closed {
            let in_log = open.iter().flat_map(|open| &open.in_log).filter_map(|ordinal| self.turns.get(*ordinal));
            remove_open.extend(in_log.map(|turn| turn.id.to_owned()));
            remove_open.extend(open.iter().flat_map(|open| open.renamed.iter().cloned()));
        } else {
            if let Some(OpenRecords { in_log, unwritten, renamed }) = open.as_deref_mut() {
                remove_open.append(renamed);
                for ordinal in std::mem::take(unwritten) {
                    if let Some(turn) = self.turns.get(ordinal) {
                        in_log.insert(ordinal);
                        write_open.push(turn.id.to_owned());
                    }
                }
            }
            span.open_records = open;
            if write_open.is_empty() {
                return None;
            }
        }
        let closed = span.closed;
        Some(WindowChange { window: self.window(bank, start)?, closed, write_open, remove_open })
    }

    /// A window with its current turns, as the extractor sees it.
    pub(super) fn window(&self, bank: &Bank, start: u32) -> Option<Window> {
        let span = self.windows.get(start)?;
        let from = start.saturating_sub(span.context);
        let turns = self.turns_between(from, self.window_end(start)).map(|turn| WindowTurn {
            turn: Arc::new(turn.to_turn(bank)),
            ordinal: turn.ordinal,
            context: turn.ordinal < start,
            deleted: turn.deleted,
            source_offset: turn.source_offset,
            stored: turn.stored,
        });
        let id = WindowId { session: self.id.clone(), start };
        Some(Window { bank: bank.clone(), id, turns: turns.collect() })
    }

    /// The starts of the closed windows.
    pub(super) fn closed_windows(&self) -> impl Iterator<Item = u32> {
        self.windows.iter().filter(|(_, span)| span.closed).map(|(start, _)| *start)
    }
}
