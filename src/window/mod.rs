//! Turns to windows: a fold over one partition of the turns log.
//!
//! In: the settings, after a restart the live memory records of the partition, then its
//! turn events in offset order. Out: the windows that changed, and which records of the
//! memory log they replace or remove (decisions 1 to 6). The state after a drain is a
//! function of the records that were drained, so a restart from them goes on as if there
//! had been none. Never reads a clock, a file or a socket; never waits; keeps nothing of
//! the text of a deleted turn.
//!
//! The files: `bank` folds the events of one bank, `session` holds ordinals and windows,
//! `auto` finds the session of a turn that names none, `restore` reads records back.

use std::collections::{BTreeSet, HashMap};

use crate::{
    config::WindowSettings,
    model::{Bank, MemoryKey, TurnEvent, Window, WindowId, WindowTurn},
};

mod auto;
mod bank;
mod restore;
mod session;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use bank::BankWindows;

/// The reserved session of deletions whose turn was never seen. It has one window, at
/// ordinal 0, which never closes; its records hold a deleted turn without a text and no
/// unit, so that the deletion outlives a restart.
pub const UNSEEN_SESSION: &str = "deleted:";

/// A window that changed since the last drain, and the records to write for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowChange {
    /// The window with its turns as they are now: leading context first, deleted ones
    /// included. Of [`UNSEEN_SESSION`], only the turns in `write_open`.
    pub window: Window,
    /// True: write one final record, key (bank, window). False: see `write_open`.
    pub closed: bool,
    /// Turns, by id, whose open record is to be written, key (bank, window, turn). Empty
    /// when `closed`.
    pub write_open: Vec<String>,
    /// Turns, by id, whose open record is in the log and is to be removed.
    pub remove_open: Vec<String>,
}

/// The windows of all banks of one partition.
#[derive(Debug)]
pub struct Windower {
    rules: Rules,
    banks: HashMap<Bank, BankWindows>,
    /// Banks with something to drain.
    changed: BTreeSet<Bank>,
    /// Turns that were revised, of what was drained.
    revised: Vec<(Bank, BTreeSet<String>)>,
    /// The last offset that was applied.
    applied: Option<u64>,
    /// Records were restored and not yet brought together.
    unsettled: bool,
}

/// The settings in the units that the fold computes with.
#[derive(Debug, Clone, Copy)]
struct Rules {
    turns: u32,
    overlap: u32,
    gap_ms: i64,
    sessions: bool,
}

impl Windower {
    /// A windower that has seen nothing.
    #[must_use]
    pub fn new(settings: &WindowSettings) -> Self {
        let rules = Rules {
            turns: settings.turns,
            overlap: settings.overlap,
            gap_ms: i64::from(settings.gap_minutes) * 60_000,
            sessions: settings.sessions,
        };
        Self {
            rules,
            banks: HashMap::new(),
            changed: BTreeSet::new(),
            revised: Vec::new(),
            applied: None,
            unsettled: false,
        }
    }

    /// Takes back the turns of one live record of the partition's memory log. All of them,
    /// in any order, come before the first event.
    pub fn restore(&mut self, key: &MemoryKey, turns: &[WindowTurn]) {
        let rules = self.rules;
        let bank = self.banks.entry(key.bank.clone()).or_insert_with(|| BankWindows::new(key.bank.clone(), rules));
        bank.restore(key, turns);
        self.unsettled = true;
    }

    /// Applies one event of the turns log. Offsets grow; an offset that was applied
    /// before is a redelivery and is ignored.
    pub fn apply(&mut self, offset: u64, event: &TurnEvent) {
        self.settle();
        if self.applied.is_some_and(|last| offset <= last) {
            return;
        }
        self.applied = Some(offset);
        let name = event.bank();
        if !self.banks.contains_key(name) {
            if matches!(event, TurnEvent::SessionEnd(_) | TurnEvent::Idle(_)) {
                return;
            }
            self.banks.insert(name.clone(), BankWindows::new(name.clone(), self.rules));
        }
        let Some(bank) = self.banks.get_mut(name) else { return };
        bank.apply(offset, event);
        if bank.has_changes() && !self.changed.contains(name) {
            self.changed.insert(name.clone());
        }
    }

    /// What changed since the last drain, by bank, session and start. The first drain
    /// after a restart includes what the records left unfinished: closed windows without
    /// a final record, open records beside a final one, copies of a replaced version.
    #[must_use = "a drained change is not handed out again"]
    pub fn drain(&mut self) -> Vec<WindowChange> {
        self.settle();
        let mut out = Vec::new();
        for name in std::mem::take(&mut self.changed) {
            if let Some(bank) = self.banks.get_mut(&name) {
                out.append(&mut bank.drain());
                let revised = bank.take_revised();
                if !revised.is_empty() {
                    self.revised.push((name, revised));
                }
            }
        }
        out
    }

    /// The turns, by bank, that were said differently or taken back in what was drained since
    /// the last call.
    #[must_use = "they are not named again"]
    pub fn take_revised(&mut self) -> Vec<(Bank, BTreeSet<String>)> {
        std::mem::take(&mut self.revised)
    }

    /// A closed window as it is now; none that is open, or is no more.
    #[must_use]
    pub fn closed(&self, bank: &Bank, window: &WindowId) -> Option<Window> {
        self.banks.get(bank)?.closed(window)
    }

    /// The closed windows of a bank.
    #[must_use]
    pub fn closed_windows(&self, bank: &Bank) -> Vec<Window> {
        self.banks.get(bank).map(BankWindows::closed_windows).unwrap_or_default()
    }

    /// The banks.
    pub fn banks(&self) -> impl Iterator<Item = &Bank> {
        self.banks.keys()
    }

    fn settle(&mut self) {
        if !std::mem::take(&mut self.unsettled) {
            return;
        }
        for (name, bank) in &mut self.banks {
            bank.settle();
            if bank.has_changes() {
                self.changed.insert(name.clone());
            }
        }
    }
}
