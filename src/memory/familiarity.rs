//! How familiar each part of a bank is to a question.
//!
//! In: added and deleted units; a probe with the question's vector, words, names and months. Out: as
//! of an epoch, the best parts with their scores, the terms of each score, and the zero of the bank's
//! scale. One pass over the bank: nothing is approximated, and no statistic counts a deleted unit.
//! The sums run in the order of sessions and ordinals, so that arrival order changes no digit;
//! logarithms are rounded to 20 binary digits, so that no processor does.
//!
//! The score is a weighted sum (`config/familiarity.rs` explains each weight): the cosine of the part's
//! best sentence; the cosines of the part with its neighbours, also for the question in the first
//! person; BM25 over the part (its words count twice) and two turns on either side, also for synonyms;
//! who speaks; the month; features of the words. Then a share of the neighbours' scores and of the
//! session's best is added.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::BuildHasherDefault,
    ops::Range,
    sync::Arc,
};

use super::{
    api::{FamiliarPart, FamiliarParts, FamiliarityProbe},
    bm25, kernel,
    live::{IdHasher, LiveUnit},
    score::{NameKey, hash64},
    words::{Bag, TermKey, Words},
};
use crate::{
    language::names::capitalised,
    model::{FamiliarityTerms, Marks, Score, UnitId, canonical_name},
};

/// How often the words of the part itself count; those of the turns around it count once.
const OWN_WORDS: u32 = 2;
/// Turns on either side whose words count for a part.
const WORD_REACH: usize = 2;
/// Logarithms are rounded to 1 / this: 20 binary digits.
const LOG_DIGITS: f64 = 1_048_576.0;
/// Most expressions of time that count.
const MOST_TIMES: u8 = 2;
/// Most names that count.
const MOST_NAMES: u8 = 3;
/// Most synonyms of a word that count, of those that the bank contains.
const MOST_SYNONYMS: usize = 12;
/// Number of parts whose mean is the score of a session.
const SESSION_BEST: usize = 3;

/// The parts of one bank in the order of sessions and ordinals.
#[derive(Debug, Default)]
pub(super) struct Parts {
    parts: BTreeMap<PartKey, IndexedPart>,
}

/// Session, ordinal of the turn, unit, index in the unit.
type PartKey = (u64, u32, UnitId, usize);

#[derive(Debug)]
struct IndexedPart {
    unit: Arc<LiveUnit>,
    words: Bag,
    /// Keys of the speaker's whole name and of its first word.
    speaker: [NameKey; 2],
    /// Keys of the first word of every name in it: people, places, titles, brands.
    names: Box<[NameKey]>,
}

/// A map by stem; a stem or a name is a hash already.
type ByTerm<V> = HashMap<TermKey, V, BuildHasherDefault<IdHasher>>;

/// One part on its way to a score.
struct Scored<'a> {
    key: &'a PartKey,
    indexed: &'a IndexedPart,
    /// Words of the question that it contains: index in the question, count.
    words: Vec<(usize, u32)>,
    length: u32,
    /// Cosine of the question and its best sentence.
    cosine: f64,
    /// Cosine of the question and the part with the turn before it.
    pair: f64,
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
            let indexed =
                IndexedPart { unit: unit.clone(), words: words.count(&part.text), speaker, names: names(&part.text) };
            self.parts.insert((unit.position.session, part.ordinal, unit.id, at), indexed);
        }
    }

    /// Removes the parts of a unit.
    pub(super) fn delete(&mut self, unit: &LiveUnit) {
        for (at, part) in unit.body.parts.iter().enumerate() {
            self.parts.remove(&(unit.position.session, part.ordinal, unit.id, at));
        }
    }

    /// Scores every part and returns the best `probe.limit`.
    pub(super) fn familiar(&self, probe: &FamiliarityProbe, words: &mut Words) -> FamiliarParts {
        let (mut parts, place) = self.matched(probe, words);
        own_words(probe, words, &place, &mut parts);
        align(probe, &mut parts);
        trios(probe, &mut parts);
        speakers(probe, &mut parts);
        features(probe, &mut parts);
        around(probe, &mut parts);
        of_session(probe, &mut parts);
        ranked(probe, parts)
    }

    /// Every part with BM25 of the question's words and of their synonyms in its window; and the index
    /// of each word in the question.
    fn matched(&self, probe: &FamiliarityProbe, words: &mut Words) -> (Vec<Scored<'_>>, ByTerm<usize>) {
        let asked: Vec<TermKey> = words.count(&probe.words).terms().map(|(term, _)| term).collect();
        let mut wanted: Vec<f64> = vec![1.0; asked.len()];
        let mut place: ByTerm<usize> = asked.iter().enumerate().map(|(i, t)| (*t, i)).collect();
        let mut alike: Vec<Vec<(usize, f64)>> = Vec::with_capacity(probe.synonyms.len());
        for of_word in &probe.synonyms {
            let mut terms = Vec::with_capacity(of_word.len());
            for (word, weight) in of_word {
                for (term, _) in words.count(word).terms() {
                    let at = *place.entry(term).or_insert_with(|| {
                        wanted.push(0.0);
                        wanted.len() - 1
                    });
                    terms.push((at, *weight));
                }
            }
            alike.push(terms);
        }
        let mut parts: Vec<Scored<'_>> = self
            .parts
            .iter()
            .map(|(key, indexed)| Scored {
                key,
                indexed,
                words: indexed.words.terms().filter_map(|(t, n)| Some((*place.get(&t)?, u32::from(n)))).collect(),
                length: indexed.words.length(),
                cosine: 0.0,
                pair: 0.0,
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
        for of_word in alike {
            let present = of_word.into_iter().filter(|(term, _)| *term >= asked.len() && with[*term] > 0);
            for (term, weight) in present.take(MOST_SYNONYMS) {
                wanted[term] = wanted[term].max(weight);
            }
        }
        let all = parts.len() as f64;
        let rarity: Vec<f64> = with.iter().map(|n| cut(bm25::rarity(all, *n as f64))).collect();
        let mean = windows.iter().map(|(_, length)| f64::from(*length)).sum::<f64>() / all.max(1.0);
        for (part, (counts, length)) in parts.iter_mut().zip(&windows) {
            let damping = bm25::damping(f64::from(*length), mean.max(1.0));
            for (term, count) in counts {
                let gain = bm25::gain(rarity[*term], f64::from(*count), damping) * wanted[*term];
                if *term < asked.len() { part.terms.words += gain } else { part.terms.synonyms += gain }
            }
        }
        let most = parts.iter().map(|p| p.terms.words).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        for part in &mut parts {
            part.terms.words *= probe.weights.words / most;
            part.terms.synonyms *= probe.weights.synonyms / most;
        }
        (parts, place)
    }
}

/// The first word of every name in a text.
fn names(text: &str) -> Box<[NameKey]> {
    let first = |run: Range<usize>| text.get(run)?.split_whitespace().next();
    capitalised(text).into_iter().filter_map(first).map(|word| hash64(canonical_name(word).as_bytes())).collect()
}

/// Adds the share of the question's words, by rarity, that are in the part itself.
fn own_words(probe: &FamiliarityProbe, words: &mut Words, place: &ByTerm<usize>, parts: &mut [Scored<'_>]) {
    if probe.weights.own_words == 0.0 {
        return;
    }
    let all = parts.len() as f64;
    let holds = |part: &Scored<'_>, term: TermKey| match place.get(&term) {
        Some(at) => part.words.iter().any(|(word, _)| word == at),
        None => part.indexed.words.count(term) > 0,
    };
    let topics: Vec<(TermKey, f64)> = words
        .count(&probe.topics)
        .terms()
        .filter_map(|(term, _)| {
            let with = parts.iter().filter(|p| holds(p, term)).count();
            (with > 0).then(|| (term, cut((1.0 + all / with as f64).ln())))
        })
        .collect();
    let sum: f64 = topics.iter().map(|(_, rarity)| rarity).sum();
    for part in parts.iter_mut().filter(|_| sum > 0.0) {
        let present = topics.iter().filter(|(term, _)| holds(part, *term));
        part.terms.words += probe.weights.own_words * present.map(|(_, rarity)| rarity).sum::<f64>() / sum;
    }
}

/// Adds the cosines of the sentences and of the pair.
fn align(probe: &FamiliarityProbe, parts: &mut [Scored<'_>]) {
    let w = &probe.weights;
    for part in parts {
        let own = part.indexed.unit.vectors_of(part.key.3);
        part.cosine = best(&probe.vector, own.sentences).unwrap_or_default();
        // A part without a turn before it has no pair: its best sentence counts instead.
        part.pair = best(&probe.vector, own.pair).unwrap_or(part.cosine);
        let first_person = probe.first_person_vector.as_ref().filter(|_| w.own_pair > 0.0);
        let own_pair = first_person.and_then(|v| best(v, own.pair).or_else(|| best(v, own.sentences)));
        part.terms.meaning = w.meaning * part.cosine;
        part.terms.pair = w.pair * part.pair + w.own_pair * own_pair.unwrap_or_default();
    }
}

/// The best cosine of a vector and rows; none if there is no row.
fn best(vector: &[i16], rows: &[i16]) -> Option<f64> {
    let mut best = None;
    kernel::scan(&[vector], rows, i32::MIN, &mut |_, _, product| best = best.max(Some(product)));
    best.map(|product| Score(product).as_f64())
}

/// Adds the mean of a part's pair and the next one's.
fn trios(probe: &FamiliarityProbe, parts: &mut [Scored<'_>]) {
    for at in 0..parts.len() {
        let pair = parts[at].pair;
        let next = parts.get(at + 1).filter(|p| p.key.0 == parts[at].key.0).map_or(pair, |p| p.pair);
        parts[at].terms.pair += probe.weights.trio * (pair + next) / 2.0;
    }
}

/// Shares of the person who acts and of the other named ones, where several are named.
const SUBJECT: f64 = 0.75;
const OTHERS: f64 = 0.25;

/// Adds whether a named person speaks: 1 if only one is named, 0.5 for everyone if none or several are.
/// If one of several acts, that one counts more.
fn speakers(probe: &FamiliarityProbe, parts: &mut [Scored<'_>]) {
    let names: Vec<NameKey> = probe.names.iter().map(|n| hash64(n.as_bytes())).collect();
    let subject = probe.subject.as_ref().map(|n| hash64(n.as_bytes()));
    let is_named = |part: &IndexedPart| part.speaker.iter().any(|key| names.contains(key));
    let acts = |part: &IndexedPart| subject.is_some_and(|s| part.speaker.contains(&s));
    let mut named: Vec<NameKey> = parts.iter().filter(|p| is_named(p.indexed)).map(|p| p.indexed.speaker[0]).collect();
    named.sort_unstable();
    named.dedup();
    let one_acts = named.len() > 1 && parts.iter().any(|p| acts(p.indexed));
    let mut before: Option<(u64, bool)> = None;
    for part in parts {
        let speaker = match (is_named(part.indexed), named.len()) {
            (_, 0) => 0.5,
            (false, _) => 0.0,
            (true, 1) => 1.0,
            (true, _) if one_acts => {
                if acts(part.indexed) {
                    SUBJECT
                } else {
                    OTHERS
                }
            }
            (true, _) => 0.5,
        };
        let replies = before == Some((part.key.0, true));
        let reply = if replies { probe.weights.reply } else { 0.0 };
        part.terms.speaker = speaker * (probe.weights.speaker + reply);
        before = Some((part.key.0, part.marks().asks));
    }
}

/// Adds the month and the features of the words.
fn features(probe: &FamiliarityProbe, parts: &mut [Scored<'_>]) {
    let w = &probe.weights;
    let times = if probe.asks_time { w.times_asked } else { w.times };
    let flag = |set: bool| f64::from(u8::from(set));
    // Speakers are addressed in every other turn ("Hey Ines!"), so their names do not count.
    let present: HashSet<NameKey, BuildHasherDefault<IdHasher>> = parts.iter().map(|p| p.indexed.speaker[1]).collect();
    let mut session = None;
    for part in parts {
        let opens = session != Some(part.key.0);
        session = Some(part.key.0);
        let body = &part.indexed.unit.body.parts[part.key.3];
        let month = !probe.months.is_empty() && {
            let date = body.said_at.local().date();
            let said_in =
                |&(year, month): &(Option<i16>, i8)| month == date.month() && year.is_none_or(|y| y == date.year());
            probe.months.iter().any(said_in)
        };
        part.terms.month = w.month * flag(month);
        let names = part.indexed.names.iter().filter(|n| !present.contains(n)).take(MOST_NAMES.into()).count();
        part.terms.marks = times * f64::from(body.marks.times.min(MOST_TIMES)) - w.asks * flag(body.marks.asks)
            + w.quotes * flag(body.marks.quotes)
            + w.names * names as f64
            + w.opener * flag(opens)
            + w.length * cut(f64::from(1 + part.length).ln());
        part.own = part.terms.own();
    }
}

impl Scored<'_> {
    fn marks(&self) -> Marks {
        self.indexed.unit.body.parts[self.key.3].marks
    }
}

/// A logarithm with 20 binary digits after the point.
fn cut(logarithm: f64) -> f64 {
    (logarithm * LOG_DIGITS).round() / LOG_DIGITS
}

/// The parts at a distance on either side of `at`, in the same session.
fn side(parts: &[Scored<'_>], at: usize, distance: usize) -> impl Iterator<Item = usize> {
    let session = parts[at].key.0;
    let same = move |i: &usize| parts.get(*i).is_some_and(|p| p.key.0 == session);
    [at.checked_sub(distance), at.checked_add(distance)].into_iter().flatten().filter(same)
}

/// The window of a part: how often each word of the question occurs in it, and its length.
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

/// Adds a share of the better neighbour's score, at a distance of one turn and of two.
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

/// Adds a share of the mean of the session's best.
fn of_session(probe: &FamiliarityProbe, parts: &mut [Scored<'_>]) {
    for session in parts.chunk_by_mut(|a, b| a.key.0 == b.key.0) {
        let mut best: Vec<f64> = session.iter().map(|p| p.smooth).collect();
        best.sort_unstable_by(|a, b| b.total_cmp(a));
        best.truncate(SESSION_BEST);
        let mean = best.iter().sum::<f64>() / best.len().max(1) as f64;
        session.iter_mut().for_each(|p| p.terms.session = probe.weights.session * mean);
    }
}

/// The best parts in order, with the zero of the scale and the number of all.
fn ranked(probe: &FamiliarityProbe, parts: Vec<Scored<'_>>) -> FamiliarParts {
    let mut order: Vec<(std::cmp::Reverse<Score>, &PartKey, &Scored<'_>)> = parts
        .iter()
        .map(|p| (std::cmp::Reverse(Score::from_f64((p.smooth + p.terms.session) / FAMILIARITY_SCALE)), p.key, p))
        .collect();
    let parts_total = order.len();
    let compared = parts_total.min(probe.scale_parts);
    let above = ((compared as f64 * probe.zero) as usize).min(compared.saturating_sub(1));
    let first = probe.limit.max(above + 1);
    if parts_total > first {
        order.select_nth_unstable_by(first, |a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        order.truncate(first);
    }
    order.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    let zero = order.get(above).map_or(0.0, |(score, ..)| score.0.as_f64() * FAMILIARITY_SCALE);
    order.truncate(probe.limit);
    let best = order
        .into_iter()
        .map(|(score, key, part)| FamiliarPart {
            unit: part.indexed.unit.body.clone(),
            part: key.3,
            score: score.0.as_f64() * FAMILIARITY_SCALE,
            cosine: Score::from_f64(part.cosine),
            terms: part.terms,
        })
        .collect();
    FamiliarParts { best, zero, parts_total }
}

/// Fixed-point scores end at 2; a familiarity, at most about the sum of its weights, is divided by this
/// for comparison.
const FAMILIARITY_SCALE: f64 = 16.0;
