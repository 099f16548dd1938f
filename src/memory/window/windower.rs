//! The windows of all banks of one partition.
//!
//! In: after a restart, the live memory records of the partition; then its turn events, those of each bank in offset
//! order. Out: the windows that changed since the last drain. A redelivered offset changes nothing.

use std::collections::{BTreeSet, HashMap};

use types::{
    config::WindowSettings,
    model::{
        Bank, ConditionalWrite, IdSalt, MemoryKey, RefusedWrite, SessionId, TurnChange, TurnEvent, Window, WindowId,
        WindowTurn, holds_contact, is_hidden,
    },
    shrinkable_collection::ShrinkableCollection,
};

use super::{
    bank_windows::BankWindows,
    change::{WindowChange, WriteEffect},
    conditional_writes::GroupDecision,
    window_rules::WindowRules,
};

/// The windows of all banks of one partition.
#[derive(Debug)]
pub struct Windower {
    rules: WindowRules,
    /// The banks in which conversations cross, as prefixes of whole name segments.
    crossing: Vec<String>,
    /// Each is behind a pointer, because up to half of the hash table's entries are free.
    pub(super) banks: HashMap<Bank, Box<BankWindows>>,
    /// Banks with something to drain.
    changed: BTreeSet<Bank>,
    /// The edited and deleted turns in the drained changes.
    revised: Vec<(Bank, BTreeSet<String>)>,
    /// Turns of the windows that closed since the last drain.
    closing_turns: usize,
    /// Whether records were restored but not reconciled yet.
    unreconciled: bool,
    /// The salt with which ids are hidden; `None` until an event needs it.
    salt: Option<IdSalt>,
}

impl Windower {
    /// A windower before its first event.
    #[must_use]
    pub fn new(settings: &WindowSettings) -> Self {
        Self {
            rules: WindowRules::new(settings),
            crossing: settings.crossing.clone(),
            banks: HashMap::new(),
            changed: BTreeSet::new(),
            revised: Vec::new(),
            closing_turns: 0,
            unreconciled: false,
            salt: None,
        }
    }

    /// Restores the turns of one live record of the partition's memory log. All records, in any
    /// order, come before the first event.
    pub fn restore(&mut self, key: &MemoryKey, turns: &[WindowTurn]) {
        let rules = self.rules.for_bank(&key.bank, &self.crossing);
        let new = || Box::new(BankWindows::new(key.bank.clone(), rules));
        let bank = self.banks.entry(key.bank.clone()).or_insert_with(new);
        bank.restore_record(key, turns);
        self.unreconciled = true;
    }

    /// Whether an event's turn may be known by another form of its id, which cannot be found without the salt.
    #[must_use]
    pub fn lacks_salt_for(&self, event: &TurnEvent) -> bool {
        let (id, answered) = match event {
            TurnEvent::Turn(turn) => (&turn.turn, turn.reply_to.as_ref()),
            TurnEvent::Deletion(deletion) => (&deletion.turn, None),
            TurnEvent::Conditional(write) => match &write.change {
                TurnChange::Turn(turn) => (&turn.turn, turn.reply_to.as_ref()),
                TurnChange::Deletion(deletion) => (&deletion.turn, None),
            },
            _ => return false,
        };
        let has_forms = |id: &String| is_hidden(id) || holds_contact(id);
        self.salt.is_none() && (has_forms(id) || answered.is_some_and(has_forms))
    }

    /// From now on, recognises turns by both forms of their ids: plain and hidden.
    pub fn set_id_salt(&mut self, salt: IdSalt) {
        self.salt = Some(salt);
    }

    /// Applies one event of the turns log. The offsets of a bank grow; a redelivered offset is ignored. A conditional
    /// record is no event of its own: [`Self::decide`] takes it with its group.
    pub fn apply(&mut self, offset: u64, event: &TurnEvent) -> WriteEffect {
        self.apply_stored(offset, None, event)
    }

    /// As [`Self::apply`], for an event that was stored at this time, in milliseconds since 1970.
    pub fn apply_stored(&mut self, offset: u64, stored_ms: Option<i64>, event: &TurnEvent) -> WriteEffect {
        self.reconcile();
        let name = event.bank();
        if !self.banks.contains_key(name) {
            if !matches!(event, TurnEvent::Turn(_) | TurnEvent::Deletion(_) | TurnEvent::SessionTitle(_)) {
                return WriteEffect::Written;
            }
            let bank = BankWindows::new(name.clone(), self.rules.for_bank(name, &self.crossing));
            self.banks.insert(name.clone(), Box::new(bank));
        }
        let Some(bank) = self.banks.get_mut(name) else { return WriteEffect::Unchanged };
        if bank.applied.replace(offset.max(bank.applied.unwrap_or_default())).is_some_and(|last| offset <= last) {
            return WriteEffect::Unchanged;
        }
        bank.stored_ms = stored_ms;
        self.apply_once(offset, event)
    }

    /// Decides a group of conditional records of one bank, with their offsets, and applies it if all conditions hold.
    /// `None` for an empty group.
    pub fn decide(&mut self, group: &[(u64, ConditionalWrite)]) -> Option<GroupDecision> {
        self.decide_stored(None, group)
    }

    /// As [`Self::decide`], for a group that was stored at this time, in milliseconds since 1970.
    pub fn decide_stored(
        &mut self,
        stored_ms: Option<i64>,
        group: &[(u64, ConditionalWrite)],
    ) -> Option<GroupDecision> {
        self.reconcile();
        let (first, last) = (&group.first()?.1, group.last()?.0);
        let name = &first.bank;
        let new = || Box::new(BankWindows::new(name.clone(), self.rules.for_bank(name, &self.crossing)));
        let bank = self.banks.entry(name.clone()).or_insert_with(new);
        bank.applied = Some(last.max(bank.applied.unwrap_or_default()));
        bank.stored_ms = stored_ms;
        let mut versions = Vec::with_capacity(group.len());
        for (_, write) in group {
            let known = self.salt.and_then(|salt| bank.in_known_form(&write.change.clone().into(), salt));
            let known = known.and_then(TurnEvent::into_change).unwrap_or_else(|| write.change.clone());
            match bank.version_of(&ConditionalWrite { change: known, ..write.clone() }) {
                Ok(version) => versions.push(version),
                Err(refused) => {
                    let refused = RefusedWrite { turn: write.change.turn_id().to_owned(), ..refused };
                    return Some(GroupDecision::refused(first, group.len(), refused));
                }
            }
        }
        let mut decision = GroupDecision::written(first);
        for ((offset, write), version) in group.iter().zip(versions) {
            let change = version.map(|version| write.change.clone().in_version(version));
            let effect = match &change {
                Some(change) => self.apply_once(*offset, &change.clone().into()),
                None => WriteEffect::Stale,
            };
            decision.add(write, version.unwrap_or_default(), change, effect);
        }
        Some(decision)
    }

    /// Applies an event of a bank that is known.
    fn apply_once(&mut self, offset: u64, event: &TurnEvent) -> WriteEffect {
        let name = event.bank();
        let Some(bank) = self.banks.get_mut(name) else { return WriteEffect::Unchanged };
        let (effect, closing_turns) = match self.salt.and_then(|salt| bank.in_known_form(event, salt)) {
            Some(event) => bank.apply(offset, &event),
            None => bank.apply(offset, event),
        };
        self.closing_turns += closing_turns;
        if let (Some(salt), TurnEvent::Deletion(deletion)) = (self.salt, event) {
            bank.hide_deleted(&deletion.turn, salt);
        }
        if bank.has_changes() && !self.changed.contains(name) {
            self.changed.insert(name.clone());
        }
        effect
    }

    /// What changed since the last drain, by bank, session and start. The first drain after a restart includes what the
    /// records left unfinished: closed windows without a final record, open records next to a final one, records with a
    /// replaced version of a turn.
    #[must_use = "a drained change is not handed out again"]
    pub fn drain(&mut self) -> Vec<WindowChange> {
        self.reconcile();
        let changed = std::mem::take(&mut self.changed);
        self.drain_changed(changed)
    }

    /// As [`Self::drain`], of some banks; the changes of the others stay.
    #[must_use = "a drained change is not handed out again"]
    pub fn drain_of(&mut self, banks: &BTreeSet<Bank>) -> Vec<WindowChange> {
        self.reconcile();
        let changed = banks.iter().filter_map(|bank| self.changed.take(bank)).collect();
        self.drain_changed(changed)
    }

    /// The banks with something to drain.
    pub fn changed_banks(&mut self) -> impl Iterator<Item = &Bank> {
        self.reconcile();
        self.changed.iter()
    }

    fn drain_changed(&mut self, changed: BTreeSet<Bank>) -> Vec<WindowChange> {
        self.closing_turns = 0;
        let mut out = Vec::new();
        for name in changed {
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

    /// Turns of the windows that closed since the last drain.
    #[must_use]
    pub fn closing_turns(&self) -> usize {
        self.closing_turns
    }

    /// The turns, by bank, that were edited or deleted in the changes drained since the last call.
    #[must_use = "they are not given again"]
    pub fn take_revised(&mut self) -> Vec<(Bank, BTreeSet<String>)> {
        std::mem::take(&mut self.revised)
    }

    /// A closed window with its current turns; None if it is open or unknown.
    #[must_use]
    pub fn closed_window(&self, bank: &Bank, window: &WindowId) -> Option<Window> {
        self.banks.get(bank)?.closed_window(window)
    }

    /// The closed windows of a bank.
    #[must_use]
    pub fn closed_windows(&self, bank: &Bank) -> Vec<Window> {
        self.banks.get(bank).map(|bank| bank.closed_windows()).unwrap_or_default()
    }

    /// The session and the ordinal of a turn; None if it has not arrived.
    #[must_use]
    pub fn position_of(&self, bank: &Bank, turn: &str) -> Option<(&SessionId, u32)> {
        self.banks.get(bank)?.position_of(turn)
    }

    /// The turns that the whole record of a key holds; None if there is no such record.
    #[must_use]
    pub fn turns_of(&self, key: &MemoryKey) -> Option<Vec<WindowTurn>> {
        self.banks.get(&key.bank)?.turns_of(key)
    }

    /// Whether a bank has a turn that is not deleted.
    #[must_use]
    pub fn has_turns(&self, bank: &Bank) -> bool {
        self.banks.get(bank).is_some_and(|bank| bank.has_turns())
    }

    /// The banks.
    pub fn banks(&self) -> impl Iterator<Item = &Bank> {
        self.banks.keys()
    }

    /// Whether the windows of a bank are here.
    #[must_use]
    pub fn knows(&self, bank: &Bank) -> bool {
        self.banks.contains_key(bank)
    }

    /// Whether a bank has something to drain.
    #[must_use]
    pub fn has_changes(&self, bank: &Bank) -> bool {
        self.changed.contains(bank)
    }

    /// Drops the windows of a bank without changes; false if it has some. [`Self::restore_bank`] brings them back.
    pub fn drop_bank(&mut self, bank: &Bank) -> bool {
        self.reconcile();
        let is_free = !self.has_changes(bank);
        if is_free {
            self.banks.remove(bank);
            self.banks.give_room_back();
        }
        is_free
    }

    /// Restores all live records of a bank whose windows were dropped, in any order.
    pub fn restore_bank<'r>(&mut self, bank: &Bank, records: impl Iterator<Item = (&'r MemoryKey, &'r [WindowTurn])>) {
        let mut records = records.peekable();
        if records.peek().is_none() {
            return;
        }
        let rules = self.rules.for_bank(bank, &self.crossing);
        let mut windows = Box::new(BankWindows::new(bank.clone(), rules));
        records.for_each(|(key, turns)| windows.restore_record(key, turns));
        windows.reconcile();
        if windows.has_changes() {
            self.changed.insert(bank.clone());
        }
        self.banks.insert(bank.clone(), windows);
    }

    fn reconcile(&mut self) {
        if !std::mem::take(&mut self.unreconciled) {
            return;
        }
        for (name, bank) in &mut self.banks {
            bank.reconcile();
            if bank.has_changes() {
                self.changed.insert(name.clone());
            }
        }
    }
}
