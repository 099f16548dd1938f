//! A search for the parts that a selector takes, in slices.
//!
//! In: a selector, the parts of a bank in order. Out: which parts of which units it takes. It may pause after any unit;
//! the result does not depend on where.

use std::{collections::HashMap, slice::from_ref};

use crate::index::{
    candidates::indexed_part::PartKey,
    matching_parts::MatchingParts,
    probes::MatchProbe,
    ranking::bank_parts::BankParts,
    units::{selectable_part::SelectablePart, turn_facts::TurnFacts},
    vectors::kernel::{self, AHEAD},
    work_budget::{MATCHED_PART, WorkBudget},
};
use types::model::CompiledSelector;

/// A selector that is being compared.
#[derive(Default)]
pub(super) struct MatchScan {
    /// The part that was read last.
    last: Option<PartKey>,
    /// The selector, once the search has begun.
    select: Option<CompiledSelector>,
    /// Whether the passages are joined, if the selector reads words.
    joined: bool,
    /// The text of each turn that has passages: in any of its units, the whole turn is taken or none of it.
    turn_texts: HashMap<String, String>,
    /// Whether the selector names a speaker, for those that were met.
    speakers: HashMap<String, bool>,
    found: MatchingParts,
}

impl MatchScan {
    /// Works until the allowance is spent; returns the parts once every unit was read.
    pub(super) fn resume(
        &mut self,
        probe: &MatchProbe,
        bank: &BankParts,
        allowance: &mut WorkBudget,
    ) -> Option<MatchingParts> {
        let Self { last, select, joined, turn_texts, speakers, found } = self;
        if select.is_none() {
            *select = probe.select.compile().ok();
        }
        let Some(select) = select else { return Some(MatchingParts::default()) };
        if !*joined && select.reads_words() {
            // In the order of the bank, the passages of a turn follow each other.
            for (key, indexed) in bank.after(*last) {
                if allowance.is_spent() {
                    return None;
                }
                allowance.spend(MATCHED_PART);
                *last = Some(*key);
                if let Some(part) = indexed.unit.body.part(key.part as usize).filter(|part| part.range.is_some()) {
                    let text = turn_texts.entry(part.turn.to_owned()).or_default();
                    text.push_str(part.text);
                    text.push('\n');
                }
            }
            *last = None;
        }
        *joined = true;
        let mut names = |speaker: &str| match speakers.get(speaker) {
            Some(known) => *known,
            None => {
                let named = select.names(speaker);
                speakers.insert(speaker.to_owned(), named);
                named
            }
        };
        let ahead = |times: usize| bank.after(*last).skip(times * AHEAD).map(|(_, part)| part);
        let mut fetched = (ahead(3), ahead(2), ahead(1));
        for (key, indexed) in bank.after(*last) {
            if allowance.is_spent() {
                return None;
            }
            allowance.spend(MATCHED_PART);
            *last = Some(*key);
            // Each lies elsewhere in memory, behind the one before.
            fetched.0.next().into_iter().for_each(|part| kernel::fetch_ahead(from_ref(&**part)));
            let facts = fetched.1.next().and_then(|part| part.facts.as_deref());
            facts.into_iter().for_each(|facts| kernel::fetch_ahead(from_ref(facts)));
            fetched.2.next().and_then(|part| part.facts.as_deref()).into_iter().for_each(TurnFacts::fetch_metadata);
            let (unit, part) = (&*indexed.unit, key.part as usize);
            let is_taken = if indexed.is_restated {
                SelectablePart::takes_all_sources(select, unit, turn_texts, &mut names)
            } else {
                let facts = indexed.facts.as_deref();
                select.takes_turn(&SelectablePart::new(unit, part, facts, turn_texts), &mut names)
            };
            if is_taken {
                found.add(key.unit, key.part);
            }
        }
        Some(std::mem::take(found))
    }
}
