//! One session: its turns by ordinal, and the windows that tile them.
//!
//! In: turns to append, ordinals that changed, windows to close. Out: which windows hold a turn,
//! and a window as the extractor sees it. Windows follow each other without gaps, only the last may
//! be open, and each has at least one own turn.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use super::{change::WindowChange, closing::Rules, held_turn::HeldTurn};
use crate::model::{Bank, SessionId, Window, WindowId, WindowTurn};

/// The position of a turn: the index of its session, and its ordinal there.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnPosition {
    pub(super) session: usize,
    pub(super) ordinal: u32,
}

/// The winning version of a turn.
#[derive(Debug, Clone)]
pub(super) struct TurnVersion {
    pub(super) turn: HeldTurn,
    pub(super) deleted: bool,
    /// Offset in the turns topic of this version.
    pub(super) source_offset: u64,
}

impl TurnVersion {
    /// The higher rank wins; at the same version a deletion wins over a text (decision 4).
    pub(super) fn rank(&self) -> (u64, bool) {
        (self.turn.version, self.deleted)
    }
}

/// The turns of a session by ordinal.
#[derive(Debug, Default)]
pub(super) struct Turns(Vec<(u32, TurnVersion)>);

impl Turns {
    /// The last ordinal.
    pub(super) fn last(&self) -> Option<u32> {
        self.0.last().map(|(ordinal, _)| *ordinal)
    }

    pub(super) fn get(&self, ordinal: u32) -> Option<&TurnVersion> {
        self.place(ordinal).ok().and_then(|at| self.0.get(at)).map(|(_, version)| version)
    }

    pub(super) fn get_mut(&mut self, ordinal: u32) -> Option<&mut TurnVersion> {
        self.place(ordinal).ok().and_then(|at| self.0.get_mut(at)).map(|(_, version)| version)
    }

    /// Puts a turn in the place of the one with its ordinal, if there is one.
    pub(super) fn put(&mut self, ordinal: u32, version: TurnVersion) {
        match self.place(ordinal) {
            Ok(at) => self.0[at].1 = version,
            Err(at) => {
                if self.0.len() == self.0.capacity() {
                    // Less than the library would: most sessions get no more turns.
                    self.0.reserve_exact(4.max(self.0.len() / 8));
                }
                self.0.insert(at, (ordinal, version));
            }
        }
    }

    /// The turns with an ordinal in a range.
    pub(super) fn range(&self, ordinals: Range<u32>) -> impl Iterator<Item = (u32, &TurnVersion)> {
        let from = self.0.partition_point(|(ordinal, _)| *ordinal < ordinals.start);
        let in_range = self.0[from..].iter().take_while(move |(ordinal, _)| *ordinal < ordinals.end);
        in_range.map(|(ordinal, version)| (*ordinal, version))
    }

    /// All turns.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &TurnVersion)> {
        self.0.iter().map(|(ordinal, version)| (*ordinal, version))
    }

    fn place(&self, ordinal: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&ordinal, |(ordinal, _)| *ordinal)
    }
}

/// A window without its turns: they are in the session, from the window's start to the next's.
#[derive(Debug, Default)]
pub(super) struct WindowSpan {
    pub(super) closed: bool,
    /// Ordinals of leading context. Stored, since a window made under another setting keeps its
    /// context, and a deletion must reach it.
    pub(super) context: u32,
    /// Latest event time among its own turns, in milliseconds since 1970.
    pub(super) last_ms: i64,
    /// Own turns, by ordinal, whose open record is in the log.
    pub(super) in_log: BTreeSet<u32>,
    /// Own turns, by ordinal, whose open record is to be written.
    pub(super) unwritten: BTreeSet<u32>,
}

/// A session with its windows.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: SessionId,
    /// N, of a session named `auto:N`.
    pub(super) auto: Option<u32>,
    pub(super) turns: Turns,
    /// By start.
    pub(super) windows: BTreeMap<u32, WindowSpan>,
}

impl Session {
    pub(super) fn new(id: SessionId) -> Self {
        let auto = id.0.strip_prefix("auto:").and_then(|n| n.parse().ok());
        Self { id, auto, turns: Turns::default(), windows: BTreeMap::new() }
    }

    pub(super) fn next_ordinal(&self) -> u32 {
        self.turns.last().map_or(0, |last| last.saturating_add(1))
    }

    /// The start of the open window.
    pub(super) fn open(&self) -> Option<u32> {
        self.windows.last_key_value().filter(|(_, span)| !span.closed).map(|(start, _)| *start)
    }

    /// Appends a turn to the open window, or opens one. Gives the window's start.
    pub(super) fn append(&mut self, version: TurnVersion, rules: &Rules) -> u32 {
        let ordinal = self.next_ordinal();
        let time = version.turn.time().unix_ms;
        let start = self.open().unwrap_or(ordinal);
        let span = self.windows.entry(start).or_insert_with(|| WindowSpan {
            context: rules.overlap.min(ordinal),
            last_ms: time,
            ..WindowSpan::default()
        });
        span.last_ms = span.last_ms.max(time);
        span.unwritten.insert(ordinal);
        self.turns.put(ordinal, version);
        start
    }

    /// Whether a window is full; see [`Rules::is_full`].
    pub(super) fn is_full(&self, start: u32, rules: &Rules) -> bool {
        let context = self.windows.get(&start).map_or(0, |span| span.context);
        rules.is_full(context.saturating_add(self.end(start).saturating_sub(start)))
    }

    /// The first ordinal after a window.
    pub(super) fn end(&self, start: u32) -> u32 {
        let next = self.windows.range(start.saturating_add(1)..).next();
        next.map_or_else(|| self.next_ordinal(), |(next, _)| *next)
    }

    /// A window's own turns.
    pub(super) fn own(&self, start: u32) -> impl Iterator<Item = (u32, &TurnVersion)> {
        self.turns.range(start..self.end(start))
    }

    /// The start of the window that a turn belongs to.
    pub(super) fn owner(&self, ordinal: u32) -> Option<u32> {
        self.windows.range(..=ordinal).next_back().map(|(start, _)| *start)
    }

    /// The closed windows that hold a turn as context. No context is longer than `reach`.
    pub(super) fn closed_with_context(&self, ordinal: u32, reach: u32) -> Vec<u32> {
        self.windows
            .range(ordinal.saturating_add(1)..=ordinal.saturating_add(reach).max(ordinal.saturating_add(1)))
            .filter(|(start, span)| span.closed && start.saturating_sub(span.context) <= ordinal)
            .map(|(start, _)| *start)
            .collect()
    }

    /// Recomputes a window's last event time; None for a window without own turns.
    pub(super) fn retime(&mut self, start: u32) -> Option<i64> {
        let last = self.own(start).map(|(_, version)| version.turn.time().unix_ms).max()?;
        self.windows.get_mut(&start)?.last_ms = last;
        Some(last)
    }

    /// The records to write for a changed window; None where there are none. From here on its open
    /// records count as written or removed.
    pub(super) fn drain(&mut self, bank: &Bank, start: u32) -> Option<WindowChange> {
        let span = self.windows.get_mut(&start)?;
        let unwritten = std::mem::take(&mut span.unwritten);
        let mut remove_open = Vec::new();
        let mut write_open = Vec::new();
        if span.closed {
            let in_log = std::mem::take(&mut span.in_log).into_iter().filter_map(|ordinal| self.turns.get(ordinal));
            remove_open.extend(in_log.map(|version| version.turn.id().to_owned()));
        } else {
            for ordinal in unwritten {
                if let Some(version) = self.turns.get(ordinal) {
                    span.in_log.insert(ordinal);
                    write_open.push(version.turn.id().to_owned());
                }
            }
            if write_open.is_empty() {
                return None;
            }
        }
        let closed = span.closed;
        Some(WindowChange { window: self.window(bank, start)?, closed, write_open, remove_open })
    }

    /// A window with its current turns, as the extractor sees it.
    pub(super) fn window(&self, bank: &Bank, start: u32) -> Option<Window> {
        let span = self.windows.get(&start)?;
        let from = start.saturating_sub(span.context);
        let turns = self.turns.range(from..self.end(start)).map(|(ordinal, version)| WindowTurn {
            turn: Arc::new(version.turn.whole(bank)),
            ordinal,
            context: ordinal < start,
            deleted: version.deleted,
            source_offset: version.source_offset,
        });
        let id = WindowId { session: self.id.clone(), start };
        Some(Window { bank: bank.clone(), id, turns: turns.collect() })
    }

    /// The starts of the closed windows.
    pub(super) fn closed(&self) -> impl Iterator<Item = u32> {
        self.windows.iter().filter(|(_, span)| span.closed).map(|(start, _)| *start)
    }
}
