//! The lexical channel: BM25 over the restatements of one bank, exact as of an epoch.
//!
//! In: added and deleted units, question words. Out: the best units by BM25 (`bm25`, with tantivy's rounded field norm,
//! exact up to 40 words). tantivy holds the committed bulk: one derived index for each thread, which is never restored
//! and is empty until a first hop asks for it. This file keeps each bank's exact statistics and word counts, scores
//! every candidate by them in fixed point, and adds the tail that tantivy has not committed yet. So an answer never
//! depends on when a commit happens, and no statistic counts a deleted word.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use tantivy::fieldnorm::FieldNormReader;

use super::{
    bm25,
    tantivy_postings::{BankStatistics, TantivyPostings},
    term_analyzer::{TermAnalyzer, TermBag, TermKey},
};
use crate::index::id_hasher::UnitIdMap;
use crate::index::{
    units::live_unit::LiveUnit,
    work_budget::{UNLISTED_WORDS, WorkBudget},
};
use types::{
    model::{BankKey, Score, UnitId},
    shrinkable_collection::ShrinkableCollection,
};

/// Binary digits after the point of a BM25 score.
const DIGITS: u32 = 20;

/// The exact words and statistics of one bank.
#[derive(Debug, Default)]
pub(in crate::index) struct LexicalIndex {
    bags: UnitIdMap<Arc<TermBag>>,
    words_total: u64,
    units_with: HashMap<TermKey, u64>,
    /// Units that tantivy may not have committed yet, by stem, with the ticket of their insertion.
    tail: HashMap<TermKey, Vec<(u64, UnitId)>>,
    tail_units: usize,
    /// The tail holds only insertions after this ticket.
    tail_from: u64,
    /// Units that left the bank and are still here.
    leaving: UnitIdMap<()>,
}

impl LexicalIndex {
    /// Adds a unit, unless it is there already.
    pub(in crate::index) fn insert(
        &mut self,
        bank: BankKey,
        unit: &LiveUnit,
        words: &mut TermAnalyzer,
        postings: &mut TantivyPostings,
    ) {
        let id = unit.id;
        if self.leaving.remove(&id).is_some() {
            self.remove(bank, id, postings);
        }
        if self.bags.contains_key(&id) {
            return;
        }
        let bag = Arc::new(words.term_bag(unit.body.restatement(), unit.body.language()));
        let ticket = postings.insert(bank, id, &bag);
        self.words_total += u64::from(bag.slice().length());
        for (term, _) in bag.terms() {
            *self.units_with.entry(term).or_default() += 1;
            self.tail.entry(term).or_default().push((ticket, id));
        }
        self.tail_units += 1;
        self.bags.insert(id, bag);
    }

    /// How many units it has.
    pub(in crate::index) fn len(&self) -> usize {
        self.bags.len()
    }

    /// Whether a search would have to score more than `limit` units in addition to those that
    /// tantivy finds.
    pub(in crate::index) fn wants_commit(&mut self, limit: usize, postings: &TantivyPostings) -> bool {
        if self.tail_units > limit {
            self.trim(postings.committed());
        }
        self.tail_units > limit
    }

    /// Notes that a unit left. [`Self::repair`] follows the last change of a load.
    pub(in crate::index) fn delete(&mut self, id: UnitId) {
        self.leaving.insert(id, ());
    }

    /// Removes units that left, within the allowance, at least one. Returns whether there are more.
    pub(in crate::index) fn repair(
        &mut self,
        bank: BankKey,
        allowance: &mut WorkBudget,
        postings: &mut TantivyPostings,
    ) -> bool {
        let most = (allowance.left() / UNLISTED_WORDS).max(1) as usize;
        let some: Vec<UnitId> = self.leaving.keys().copied().take(most).collect();
        allowance.spend(UNLISTED_WORDS * some.len() as u64);
        for id in some {
            self.leaving.remove(&id);
            self.remove(bank, id, postings);
        }
        self.leaving.give_room_back();
        self.wants_repair()
    }

    /// Whether units that left are still here.
    pub(in crate::index) fn wants_repair(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// Removes a unit and every count it added.
    fn remove(&mut self, bank: BankKey, id: UnitId, postings: &mut TantivyPostings) {
        let Some(bag) = self.bags.remove(&id) else { return };
        postings.delete(bank, id);
        self.words_total -= u64::from(bag.slice().length());
        let mut tailed = false;
        for (term, _) in bag.terms() {
            if let Some(n) = self.units_with.get_mut(&term) {
                *n -= 1;
                if *n == 0 {
                    self.units_with.remove(&term);
                }
            }
            if let Some(units) = self.tail.get_mut(&term) {
                let before = units.len();
                units.retain(|(_, other)| *other != id);
                tailed |= units.len() < before;
                if units.is_empty() {
                    self.tail.remove(&term);
                }
            }
        }
        self.tail_units = self.tail_units.saturating_sub(usize::from(tailed));
    }

    /// Drops the tail's units that tantivy has committed.
    fn trim(&mut self, committed: u64) {
        if committed <= self.tail_from {
            return;
        }
        self.tail_from = committed;
        self.tail.retain(|_, units| {
            units.retain(|(ticket, _)| *ticket > committed);
            !units.is_empty()
        });
        let left: HashSet<UnitId> = self.tail.values().flatten().map(|(_, id)| *id).collect();
        self.tail_units = left.len();
    }

    /// The best `limit` units among those that pass, by BM25, with scores divided by 16; ties by id.
    pub(in crate::index) fn search(
        &mut self,
        bank: BankKey,
        query: &TermBag,
        limit: usize,
        passes: &dyn Fn(UnitId) -> bool,
        postings: &TantivyPostings,
    ) -> Vec<(Score, UnitId)> {
        self.trim(postings.committed());
        let terms: Vec<(TermKey, i64)> =
            query.terms().filter_map(|(t, _)| self.units_with.get(&t).map(|n| (t, self.rarity(*n)))).collect();
        if terms.is_empty() || limit == 0 {
            return Vec::new();
        }
        let mut found: UnitIdMap<i64> = UnitIdMap::default();
        for (_, id) in terms.iter().filter_map(|(t, _)| self.tail.get(t)).flatten() {
            if passes(*id)
                && !found.contains_key(id)
                && let Some(score) = self.score(*id, &terms)
            {
                found.insert(*id, score);
            }
        }
        if self.tail_from > 0 {
            let stems: Vec<(TermKey, u64)> =
                terms.iter().filter_map(|(t, _)| Some((*t, *self.units_with.get(t)?))).collect();
            let statistics = BankStatistics { units: self.bags.len() as u64, words: self.words_total, stems: &stems };
            // tantivy's scores are rounded floats, and its order of ties depends on segments. So ask for more until its
            // last hit is clearly below the last one that counts.
            let mut ask = 2 * limit + 16;
            loop {
                let hits = postings.search(bank, &statistics, ask);
                let last = hits.last().map_or(0.0, |(score, _)| f64::from(*score));
                let whole = hits.len() < ask;
                let hits = hits.into_iter().filter(|(_, id)| passes(*id));
                found.extend(hits.filter_map(|(_, id)| Some((id, self.score(id, &terms)?))));
                let mut scores: Vec<i64> = found.values().copied().collect();
                scores.sort_unstable_by(|a, b| b.cmp(a));
                let enough = scores.get(limit - 1).is_some_and(|s| as_float(*s) > last * 1.001 + 0.001);
                if whole || enough {
                    break;
                }
                ask *= 4;
            }
        }
        let mut ranked: Vec<(i64, UnitId)> = found.into_iter().map(|(id, score)| (score, id)).collect();
        ranked.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        ranked.truncate(limit);
        ranked.into_iter().map(|(score, id)| (Score::from_f64((as_float(score) / 16.0).min(1.999)), id)).collect()
    }

    /// How rare a stem is if `units_with` units hold it, in fixed point.
    fn rarity(&self, units_with: u64) -> i64 {
        to_fixed(bm25::rarity(self.bags.len() as f64, units_with as f64))
    }

    /// The unit's BM25 by the exact statistics; none if it was deleted or shares no word.
    fn score(&self, id: UnitId, terms: &[(TermKey, i64)]) -> Option<i64> {
        let bag = self.bags.get(&id)?;
        let mean = self.words_total as f64 / self.bags.len().max(1) as f64;
        let norm = f64::from(FieldNormReader::id_to_fieldnorm(FieldNormReader::fieldnorm_to_id(bag.slice().length())));
        let damping = bm25::damping(norm, mean);
        let mut score = 0;
        for (term, rarity) in terms {
            let count = f64::from(bag.slice().count(*term));
            if count > 0.0 {
                score += (rarity * to_fixed(bm25::gain(1.0, count, damping))) >> DIGITS;
            }
        }
        (score > 0).then_some(score)
    }
}

fn to_fixed(value: f64) -> i64 {
    (value * f64::from(1 << DIGITS)).round() as i64
}

fn as_float(score: i64) -> f64 {
    score as f64 / f64::from(1 << DIGITS)
}
