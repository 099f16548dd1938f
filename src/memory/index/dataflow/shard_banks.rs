//! The indexes of every bank of a shard.
//!
//! In: the net changes of one epoch, and choices restored from a snapshot. Out: the exact changes to the choices, which
//! are a function of the set of units once a load is applied. A unit that is deleted leaves at once; what it leaves
//! behind in the indexes is repaired after the last change of its load, step by step, for the units that stay
//! (decision 62). So a bank that loses all of its units is removed as a whole, and nothing of it is repaired. An
//! `index_scan` reads these indexes and changes only the lexical index, which is built from the units when it is first
//! needed.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::Arc,
};

use differential_dataflow::consolidation::consolidate;

use crate::index::{
    candidates::indexed_part::PartSlot,
    edges::{choice_changes::UnitChoiceChange, cue_index::CueIndex, semantic_index::SemanticIndex},
    lexical::{lexical_index::LexicalIndex, tantivy_postings::TantivyPostings, term_analyzer::TermAnalyzer},
    memory_footprint::MemoryFootprint,
    ranking::bank_parts::BankParts,
    units::{
        association_score::{Edge, EdgeChoice, GraphChoice, StructuralScorer},
        live_unit::{LiveUnit, UnitKey},
    },
    work_budget::WorkBudget,
};
use types::{
    config::MemorySettings,
    model::{BankKey, Channel, Score, UnitId},
};

/// A choice as it leaves the index: the unit that chose, its ordinal, the channel, the choice.
pub(in crate::index) type UnitChoice = (UnitKey, (u32, Channel, EdgeChoice));

/// The banks of a shard. The operator changes them, and the shard reports how much memory they take.
pub(in crate::index) type SharedBanks = Rc<RefCell<ShardBanks>>;

/// The lexical index of all banks of a thread's shards.
pub(in crate::index) type SharedPostings = Rc<RefCell<TantivyPostings>>;

/// What one epoch does besides its changes: the banks whose new units have known choices, these choices, and repairs.
#[derive(Debug, Default)]
pub(in crate::index) struct EpochSteps {
    /// Banks whose units of this epoch are not compared: their choices follow.
    pub placed: HashSet<BankKey>,
    /// Known choices, grouped by unit.
    pub chosen: Vec<(BankKey, Arc<Vec<GraphChoice>>)>,
    /// Banks whose load has no further changes: what deletions left to do is done now.
    pub repaired: Vec<BankKey>,
}

/// All banks of a shard.
pub(in crate::index) struct ShardBanks {
    settings: MemorySettings,
    semantic_threshold: Score,
    structural: StructuralScorer,
    words: TermAnalyzer,
    postings: SharedPostings,
    /// Each is behind a pointer, because up to half of the hash table's entries are free.
    banks: HashMap<BankKey, Box<BankIndexes>>,
}

/// The indexes of one bank.
pub(in crate::index) struct BankIndexes {
    pub(in crate::index) semantic: SemanticIndex,
    cue: CueIndex,
    /// None until a first hop asks for it.
    pub(in crate::index) lexical: Option<LexicalIndex>,
    pub(in crate::index) parts: BankParts,
    /// Whether its units wait for their known choices.
    restoring: bool,
}

/// What a scan needs besides the bank.
pub(in crate::index) struct ScanResources<'b> {
    /// The settings.
    pub settings: &'b MemorySettings,
    /// Compares cues.
    pub structural: &'b StructuralScorer,
    /// Splits texts into words.
    pub words: &'b mut TermAnalyzer,
    /// The lexical index of the thread.
    pub postings: &'b SharedPostings,
}

impl ShardBanks {
    /// No bank.
    pub(in crate::index) fn new(
        settings: &MemorySettings,
        semantic_threshold: Score,
        postings: SharedPostings,
    ) -> Self {
        Self {
            settings: settings.clone(),
            semantic_threshold,
            structural: StructuralScorer::new(settings),
            words: TermAnalyzer::default(),
            postings,
            banks: HashMap::new(),
        }
    }

    /// How much memory one bank takes, or all banks.
    pub(in crate::index) fn footprint(&self, bank: Option<BankKey>) -> MemoryFootprint {
        let mut whole = MemoryFootprint::default();
        match bank {
            Some(bank) => self.banks.get(&bank).into_iter().for_each(|state| whole.add(&state.footprint())),
            None => self.banks.values().for_each(|state| whole.add(&state.footprint())),
        }
        whole
    }

    /// A bank with the means to scan it.
    pub(in crate::index) fn bank_with_resources(
        &mut self,
        bank: BankKey,
    ) -> (Option<&mut BankIndexes>, ScanResources<'_>) {
        let Self { settings, structural, words, postings, banks, .. } = self;
        (banks.get_mut(&bank).map(Box::as_mut), ScanResources { settings, structural, words, postings })
    }

    /// Applies the changes of one epoch, and does what it says to repair within the allowance, at least one step for each
    /// bank; `sized` gets the number of units of each changed bank, and whether there is nothing to repair.
    pub(in crate::index) fn apply(
        &mut self,
        mut updates: Vec<((UnitKey, Arc<LiveUnit>), isize)>,
        steps: &EpochSteps,
        repairs: &mut WorkBudget,
        mut emit: impl FnMut(UnitChoice, isize),
        mut sized: impl FnMut(BankKey, usize, bool),
    ) {
        consolidate(&mut updates);
        let mut changes = Vec::new();
        let (mut commit, mut emptied) = (false, Vec::new());
        for of_bank in updates.chunk_by(|a, b| a.0.0.bank == b.0.0.bank) {
            let Some(bank) = of_bank.first().map(|u| u.0.0.bank) else { continue };
            let deleted: Vec<UnitId> = of_bank.iter().filter(|u| u.1 < 0).map(|u| u.0.0.id).collect();
            let inserted: Vec<Arc<LiveUnit>> = of_bank.iter().filter(|u| u.1 > 0).map(|u| u.0.1.clone()).collect();
            let new = || Box::new(BankIndexes::new(&self.settings, self.semantic_threshold));
            let state = self.banks.entry(bank).or_insert_with(new);
            state.parts.delete(of_bank.iter().filter(|u| u.1 < 0).map(|u| &u.0.1));
            state.parts.insert(&inserted, &mut self.words);
            if let Some(lexical) = &mut state.lexical {
                let mut postings = self.postings.borrow_mut();
                deleted.iter().for_each(|id| lexical.delete(*id));
                inserted.iter().for_each(|unit| lexical.insert(bank, unit, &mut self.words, &mut postings));
                commit |= lexical.wants_commit(self.settings.lexical_tail, &postings);
            }
            let fresh = state.semantic.is_empty() || state.restoring;
            state.restoring = fresh && deleted.is_empty() && steps.placed.contains(&bank);
            if state.restoring {
                state.semantic.insert_unchosen(&inserted);
                state.cue.insert_unchosen(&inserted);
            } else {
                state.semantic.apply(&deleted, &inserted, &mut changes);
                emit_changes(bank, Channel::Semantic, &mut changes, &mut emit);
                state.cue.apply(&self.structural, &deleted, &inserted, &mut changes);
                emit_changes(bank, Channel::Structural, &mut changes, &mut emit);
            }
            let units = state.semantic.len();
            sized(bank, units, units == 0 || !state.wants_repair());
            if units == 0 && self.banks.remove(&bank).is_some_and(|state| state.lexical.is_some()) {
                emptied.push(bank);
            }
        }
        if !emptied.is_empty() {
            self.postings.borrow_mut().forget(emptied.into_iter());
        }
        for (bank, known) in &steps.chosen {
            let Some(state) = self.banks.get_mut(bank).filter(|state| state.restoring) else { continue };
            for of_unit in known.chunk_by(|a, b| a.from == b.from) {
                let (semantic, structural): (Vec<GraphChoice>, Vec<GraphChoice>) =
                    of_unit.iter().partition(|choice| choice.channel == Channel::Semantic);
                state.semantic.restore_choices(&semantic, &mut changes);
                emit_changes(*bank, Channel::Semantic, &mut changes, &mut emit);
                state.cue.restore_choices(&structural, &mut changes);
                emit_changes(*bank, Channel::Structural, &mut changes, &mut emit);
            }
        }
        for bank in &steps.repaired {
            let Some(state) = self.banks.get_mut(bank) else { continue };
            let mut more = state.wants_repair();
            while more {
                more = state.repair(*bank, &self.structural, &self.postings, repairs, &mut changes, &mut emit);
                if repairs.is_spent() {
                    break;
                }
            }
            sized(*bank, state.semantic.len(), !more);
        }
        if commit {
            self.postings.borrow_mut().commit();
        }
    }
}

impl BankIndexes {
    fn new(settings: &MemorySettings, semantic_threshold: Score) -> Self {
        Self {
            semantic: SemanticIndex::new(settings.semantic_pool, settings.semantic_edges, semantic_threshold),
            cue: CueIndex::new(settings.cue_neighbours, settings.structural_edges),
            lexical: None,
            parts: BankParts::new(settings.candidates_from_parts, settings.window_words),
            restoring: false,
        }
    }

    /// The candidate index's slots for the parts of the units that a unit chose.
    pub(in crate::index) fn linked_slots(&self, unit: UnitId) -> Vec<PartSlot> {
        let chosen = self.semantic.chosen_by(unit).iter().chain(self.cue.chosen_by(unit));
        let units = chosen.filter_map(|choice| self.semantic.unit(choice.id));
        units.flat_map(|unit| self.parts.slots(unit)).collect()
    }

    /// Does one step of what deletions left to do, within the allowance where that allows a step. Returns whether there
    /// is more to do.
    fn repair(
        &mut self,
        bank: BankKey,
        structural: &StructuralScorer,
        postings: &SharedPostings,
        allowance: &mut WorkBudget,
        changes: &mut Vec<UnitChoiceChange>,
        emit: &mut impl FnMut(UnitChoice, isize),
    ) -> bool {
        if self.parts.wants_repair() {
            self.parts.repair(allowance);
        } else if let Some(lexical) = self.lexical.as_mut().filter(|lexical| lexical.wants_repair()) {
            lexical.repair(bank, allowance, &mut postings.borrow_mut());
        } else if self.semantic.wants_repair() {
            self.semantic.repair(allowance, changes);
            emit_changes(bank, Channel::Semantic, changes, emit);
        } else {
            self.cue.repair(structural, allowance, changes);
            emit_changes(bank, Channel::Structural, changes, emit);
        }
        self.wants_repair()
    }

    fn wants_repair(&self) -> bool {
        let lexical = self.lexical.as_ref().is_some_and(LexicalIndex::wants_repair);
        lexical || self.parts.wants_repair() || self.semantic.wants_repair() || self.cue.wants_repair()
    }

    fn footprint(&self) -> MemoryFootprint {
        let units = || self.semantic.units(0, usize::MAX);
        let sum = |bytes: fn(&LiveUnit) -> usize| units().map(|unit| bytes(unit) as u64).sum();
        let chosen = |unit: &Arc<LiveUnit>| self.semantic.chosen_by(unit.id).len() + self.cue.chosen_by(unit.id).len();
        let [parts, candidates] = self.parts.bytes();
        MemoryFootprint {
            units: self.semantic.len() as u64,
            text_bytes: sum(LiveUnit::text_bytes),
            vector_bytes: sum(LiveUnit::vector_bytes),
            part_bytes: parts as u64,
            candidate_bytes: candidates as u64,
            semantic_bytes: self.semantic.bytes() as u64,
            structural_bytes: self.cue.bytes() as u64,
            // Each choice is an edge that is listed at both of its ends; each entry also has its time and its change.
            edge_bytes: units().map(|unit| (2 * chosen(unit) * size_of::<(Edge, u64, isize)>()) as u64).sum(),
        }
    }

    /// Whether the lexical index lacks units.
    pub(in crate::index) fn lexical_is_partial(&self) -> bool {
        self.lexical.as_ref().is_none_or(|lexical| lexical.len() < self.semantic.len())
    }

    /// Adds at most `most` units, starting at `from`, to the lexical index, which is made if there is none. Returns
    /// where to go on, or None at the end.
    pub(in crate::index) fn index_words(
        &mut self,
        bank: BankKey,
        from: usize,
        most: usize,
        means: ScanResources<'_>,
    ) -> Option<usize> {
        let mut postings = means.postings.borrow_mut();
        let lexical = self.lexical.get_or_insert_with(LexicalIndex::default);
        let units = self.semantic.units(from, most);
        let next = from + units.len();
        units.for_each(|unit| lexical.insert(bank, unit, means.words, &mut postings));
        if next < self.semantic.len() {
            return Some(next);
        }
        if lexical.wants_commit(means.settings.lexical_tail, &postings) {
            postings.commit();
        }
        None
    }
}

impl Drop for ShardBanks {
    /// Takes the words of its banks out of the index that other shards use too.
    fn drop(&mut self) {
        let indexed = self.banks.iter().filter(|(_, state)| state.lexical.is_some());
        if let Ok(mut postings) = self.postings.try_borrow_mut() {
            postings.forget(indexed.map(|(bank, _)| *bank));
        }
    }
}

fn emit_changes(
    bank: BankKey,
    channel: Channel,
    changes: &mut Vec<(UnitId, u32, EdgeChoice, isize)>,
    emit: &mut impl FnMut(UnitChoice, isize),
) {
    for (id, ordinal, choice, change) in changes.drain(..) {
        emit((UnitKey { bank, id }, (ordinal, channel, choice)), change);
    }
}
