//! How familiar each part of a bank is to a question, and what lies around the best.
//!
//! In: units that came and went; a probe with the question's vector, words, names and
//! months. Out: every part's score as of an epoch, of which the best are given, with the
//! terms that make it and the bank's median. One pass over the bank: nothing is
//! approximated, and no statistic outlives the unit that it counted. The sums run in the
//! order of sessions and ordinals, so that arrival changes no digit; logarithms are cut
//! to 20 binary digits, so that no processor does.
//!
//! The score: a weighted sum of the cosine of the part's best sentence, the cosine of the
//! part with the turn before it, BM25 over the part and the turns around it (own words
//! twice, those of two turns on either side once), the same for synonyms, who speaks, the
//! month that is named, and what stands out; then a share of the neighbours' scores and of
//! the best of its session.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    api::{Familiar, FamiliarPart, FamiliarityProbe},
    kernel,
    live::LiveUnit,
    score::{NameKey, hash64},
    words::{Bag, TermKey, Words},
};
use crate::model::{FamiliarityTerms, Score, UnitId, canonical_name};

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// How often a part's own words count in its window of words; those around it count once.
const OWN_WORDS: u32 = 2;
/// Turns on either side that lend a part their words.
const WORD_REACH: usize = 2;
/// Binary digits of a logarithm that are kept.
const LOG_DIGITS: f64 = 1_048_576.0;
/// Expressions of time that count at most.
const MOST_TIMES: u8 = 2;

/// The parts of one bank in the order of sessions and ordinals.
#[derive(Debug, Default)]
pub(super) struct Parts {
    held: BTreeMap<PartKey, Held>,
}

/// Session, ordinal of the turn, unit, place in the unit.
type PartKey = (u64, u32, UnitId, usize);

#[derive(Debug)]
struct Held {
    unit: Arc<LiveUnit>,
    words: Bag,
    /// Of the speaker's whole name, and of its first word.
    speaker: [NameKey; 2],
}

/// One part on its way to a score.
struct Scored<'a> {
    key: &'a PartKey,
    held: &'a Held,
    /// Words of the question that it holds: place in the question, how often.
    words: Vec<(usize, u32)>,
    length: u32,
    terms: FamiliarityTerms,
    own: f64,
    smooth: f64,
}

impl Parts {
    /// Adds the parts of a unit.
    pub(super) fn insert(&mut self, unit: &Arc<LiveUnit>, words: &mut Words) {
        for (at, part) in unit.body.parts.iter().enumerate() {
            let name = canonical_name(&part.speaker);
            let first = name.split(' ').next().unwrap_or_default();
            let speaker = [hash64(name.as_bytes()), hash64(first.as_bytes())];
            let held = Held { unit: unit.clone(), words: words.count(&part.text), speaker };
            self.held.insert((unit.place.session, part.ordinal, unit.id, at), held);
        }
    }

    /// Removes the parts of a unit.
    pub(super) fn delete(&mut self, unit: &LiveUnit) {
        for (at, part) in unit.body.parts.iter().enumerate() {
            self.held.remove(&(unit.place.session, part.ordinal, unit.id, at));
        }
    }

    /// Scores every part and gives the best `probe.limit`.
    pub(super) fn familiar(&self, probe: &FamiliarityProbe, words: &mut Words) -> Familiar {
        let mut parts = self.matched(probe, words);
        self.align(probe, &mut parts);
        self.own_terms(probe, &mut parts);
        for part in &mut parts {
            part.own = part.terms.own();
        }
        around(probe, &mut parts);
        of_session(probe, &mut parts);
        ranked(probe, parts)
    }

    /// The words of the question and of its synonyms in every part, as BM25 of its window.
    fn matched(&self, probe: &FamiliarityProbe, words: &mut Words) -> Vec<Scored<'_>> {
        let asked: Vec<TermKey> = words.count(&probe.words).terms().map(|(term, _)| term).collect();
        let mut wanted: Vec<f64> = vec![1.0; asked.len()];
        let mut place: HashMap<TermKey, usize> = asked.iter().enumerate().map(|(i, t)| (*t, i)).collect();
        for (word, weight) in &probe.synonyms {
            for (term, _) in words.count(word).terms() {
                let at = *place.entry(term).or_insert_with(|| {
                    wanted.push(0.0);
                    wanted.len() - 1
                });
                if at >= asked.len() {
                    wanted[at] = wanted[at].max(*weight);
                }
            }
        }
        let mut parts: Vec<Scored<'_>> = self
            .held
            .iter()
            .map(|(key, held)| Scored {
                key,
                held,
                words: held.words.terms().filter_map(|(t, n)| Some((*place.get(&t)?, u32::from(n)))).collect(),
                length: held.words.length(),
                terms: FamiliarityTerms::default(),
                own: 0.0,
                smooth: 0.0,
            })
            .collect();
        let windows: Vec<(BTreeMap<usize, u32>, u32)> = (0..parts.len()).map(|at| window(&parts, at)).collect();
        let mut with = vec![0u64; wanted.len()];
        for (counts, _) in &windows {
            counts.keys().for_each(|t| with[*t] += 1);
        }
        let all = parts.len() as f64;
        let rarity: Vec<f64> = with
            .iter()
            .map(|n| (1.0 + (all - *n as f64 + 0.5) / (*n as f64 + 0.5)).ln())
            .map(|log| (log * LOG_DIGITS).round() / LOG_DIGITS)
            .collect();
        let mean = windows.iter().map(|(_, length)| f64::from(*length)).sum::<f64>() / all.max(1.0);
        for (part, (counts, length)) in parts.iter_mut().zip(&windows) {
            let damping = K1 * (1.0 - B + B * f64::from(*length) / mean.max(1.0));
            for (term, count) in counts {
                let count = f64::from(*count);
                let gain = rarity[*term] * count * (K1 + 1.0) / (count + damping) * wanted[*term];
                if *term < asked.len() { part.terms.words += gain } else { part.terms.synonyms += gain }
            }
        }
        let most = |term: fn(&FamiliarityTerms) -> f64| {
            let most = parts.iter().map(|p| term(&p.terms)).fold(0.0, f64::max);
            if most > 0.0 { most } else { 1.0 }
        };
        let (most_words, most_synonyms) = (most(|t| t.words), most(|t| t.synonyms));
        for part in &mut parts {
            part.terms.words /= most_words;
            part.terms.synonyms /= most_synonyms;
        }
        parts
    }

    /// The cosines of the sentences and of the pair.
    fn align(&self, probe: &FamiliarityProbe, parts: &mut [Scored<'_>]) {
        for part in parts {
            let own = part.held.unit.vectors_of(part.key.3);
            let mut sentences = i32::MIN;
            kernel::scan(&[&probe.vector], own.sentences, i32::MIN, &mut |_, _, s| sentences = sentences.max(s));
            let mut pair = i32::MIN;
            kernel::scan(&[&probe.vector], own.pair, i32::MIN, &mut |_, _, s| pair = pair.max(s));
            let cosine = |product: i32| if product == i32::MIN { 0.0 } else { Score(product).as_f64() };
            part.terms.meaning = cosine(sentences);
            // Without the turn before it, a part is its own pair.
            part.terms.pair = cosine(if pair == i32::MIN { sentences } else { pair });
        }
    }

    /// Who speaks, when, and what stands out; then every term by its weight.
    fn own_terms(&self, probe: &FamiliarityProbe, parts: &mut [Scored<'_>]) {
        let names: Vec<NameKey> = probe.names.iter().map(|n| hash64(n.as_bytes())).collect();
        let is_named = |held: &Held| held.speaker.iter().any(|key| names.contains(key));
        let mut named: Vec<NameKey> = parts.iter().filter(|p| is_named(p.held)).map(|p| p.held.speaker[0]).collect();
        named.sort_unstable();
        named.dedup();
        let w = &probe.weights;
        for part in parts {
            let body = &part.held.unit.body.parts[part.key.3];
            let speaker = match named.len() {
                0 => 0.5,
                1 => f64::from(u8::from(is_named(part.held))),
                _ => 0.5 * f64::from(u8::from(is_named(part.held))),
            };
            let month = !probe.months.is_empty() && {
                let date = body.said_at.local().date();
                let said_in =
                    |&(year, month): &(Option<i16>, i8)| month == date.month() && year.is_none_or(|y| y == date.year());
                probe.months.iter().any(said_in)
            };
            let flag = |set: bool| f64::from(u8::from(set));
            let t = &mut part.terms;
            t.meaning *= w.meaning;
            t.pair *= w.pair;
            t.words *= w.words;
            t.synonyms *= w.synonyms;
            t.speaker = w.speaker * speaker;
            t.month = w.month * flag(month);
            t.marks = w.times * f64::from(body.marks.times.min(MOST_TIMES)) - w.asks * flag(body.marks.asks);
        }
    }
}

/// Places on either side of `at` in the same session, from the nearest on.
fn side(parts: &[Scored<'_>], at: usize, distance: usize) -> impl Iterator<Item = usize> {
    let session = parts[at].key.0;
    let same = |i: &usize| parts.get(*i).is_some_and(|p| p.key.0 == session);
    [at.checked_sub(distance), at.checked_add(distance)]
        .into_iter()
        .flatten()
        .filter(same)
        .collect::<Vec<_>>()
        .into_iter()
}

/// What a part's window of words holds: how often each word of the question, and its length.
fn window(parts: &[Scored<'_>], at: usize) -> (BTreeMap<usize, u32>, u32) {
    let mut counts = BTreeMap::new();
    let mut length = 0;
    let mut add = |part: &Scored<'_>, times: u32| {
        length += times * part.length;
        for (term, count) in &part.words {
            *counts.entry(*term).or_default() += times * count;
        }
    };
    add(&parts[at], OWN_WORDS);
    for distance in 1..=WORD_REACH {
        side(parts, at, distance).for_each(|i| add(&parts[i], 1));
    }
    (counts, length)
}

/// A share of the better neighbour at one turn's distance, and at two.
fn around(probe: &FamiliarityProbe, parts: &mut [Scored<'_>]) {
    let shares = [(1, probe.weights.next_turn), (2, probe.weights.second_turn)];
    let lent: Vec<f64> = (0..parts.len())
        .map(|at| {
            let best = |distance| side(parts, at, distance).map(|i| parts[i].own).reduce(f64::max).unwrap_or(0.0);
            shares.iter().map(|(distance, share)| share * best(*distance)).sum()
        })
        .collect();
    for (part, lent) in parts.iter_mut().zip(lent) {
        part.terms.around = lent;
        part.smooth = part.own + lent;
    }
}

/// A share of the mean of the session's best.
fn of_session(probe: &FamiliarityProbe, parts: &mut [Scored<'_>]) {
    for session in parts.chunk_by_mut(|a, b| a.key.0 == b.key.0) {
        let mut best: Vec<f64> = session.iter().map(|p| p.smooth).collect();
        best.sort_unstable_by(|a, b| b.total_cmp(a));
        best.truncate(probe.weights.session_best.max(1));
        let mean = best.iter().sum::<f64>() / best.len().max(1) as f64;
        session.iter_mut().for_each(|p| p.terms.session = probe.weights.session * mean);
    }
}

/// The best parts in order, with the median and the number of all.
fn ranked(probe: &FamiliarityProbe, parts: Vec<Scored<'_>>) -> Familiar {
    let mut order: Vec<(std::cmp::Reverse<Score>, &PartKey, &Scored<'_>)> = parts
        .iter()
        .map(|p| (std::cmp::Reverse(Score::from_f64((p.smooth + p.terms.session) / FAMILIARITY_SCALE)), p.key, p))
        .collect();
    order.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    let median = order.get(order.len() / 2).map_or(0.0, |(score, ..)| score.0.as_f64() * FAMILIARITY_SCALE);
    let parts_total = order.len();
    order.truncate(probe.limit);
    let best = order
        .into_iter()
        .map(|(score, key, part)| FamiliarPart {
            unit: part.held.unit.body.clone(),
            part: key.3,
            score: score.0.as_f64() * FAMILIARITY_SCALE,
            terms: part.terms,
        })
        .collect();
    Familiar { best, median, parts_total }
}

/// Fixed-point scores end at 2: a familiarity, at most about the sum of its weights, is cut down to compare.
const FAMILIARITY_SCALE: f64 = 16.0;
