//! How familiar each part of a bank is to a question.
//!
//! In: the parts of a bank (`parts`); a probe with the question's vector, words, names and months. Out:
//! as of an epoch, the best parts with their scores, the terms of each score, and the zero of the bank's
//! scale. Every part is scored: nothing is approximated, and no statistic counts a deleted unit. The
//! passes over the bank may pause after any part; where they do has no influence on the result.
//! The sums run in the order of sessions and ordinals, so that arrival order changes no digit;
//! logarithms are rounded to 20 binary digits, so that no processor does.
//!
//! The score is a weighted sum (`config/familiarity.rs` explains each weight): the cosine of the part's
//! best sentence; the cosines of the part with its neighbours, also for the question in the first
//! person; BM25 over the part (its words count twice) and two turns on either side, also for synonyms;
//! who speaks; the month; features of the words. Then a share of the neighbours' scores and of the
//! session's best is added.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    hash::BuildHasherDefault,
    rc::Rc,
};

use super::{
    api::{FamiliarPart, FamiliarParts, FamiliarityProbe},
    bm25, kernel,
    live::IdHasher,
    parts::{IndexedPart, PartKey, Parts},
    score::{NameKey, hash64},
    words::{TermKey, Words},
    work::{Allowance, PASSED_PART, SCANNED_VECTOR},
};
use crate::model::{FamiliarityTerms, Marks, Score};

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
/// Shares of the person who acts and of the other named ones, where several are named.
const SUBJECT: f64 = 0.75;
const OTHERS: f64 = 0.25;
/// Fixed-point scores end at 2; a familiarity, at most about the sum of its weights, is divided by this
/// for comparison.
const FAMILIARITY_SCALE: f64 = 16.0;

/// A map by stem; a stem or a name is a hash already.
type ByTerm<V> = HashMap<TermKey, V, BuildHasherDefault<IdHasher>>;

/// A set of names.
type NameSet = HashSet<NameKey, BuildHasherDefault<IdHasher>>;

/// One part on its way to a score.
struct Scored {
    key: PartKey,
    indexed: Rc<IndexedPart>,
    /// Words of the question that it contains: index in the question, count.
    words: Vec<(usize, u32)>,
    length: u32,
    /// How often each word of the question occurs in its window, in the order of the words, and the
    /// window's length.
    window: (Vec<(usize, u32)>, u32),
    /// Cosine of the question and its best sentence.
    cosine: f64,
    /// Cosine of the question and the part with the turn before it.
    pair: f64,
    /// Share of the question's topics, by rarity, that it holds itself.
    coverage: f64,
    terms: FamiliarityTerms,
    own: f64,
    smooth: f64,
}

/// The passes over the bank, in order. Each needs what the one before it found of all parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Pass {
    /// Before the first.
    #[default]
    Start,
    /// Takes every part, with the words of the question that it contains.
    Collect,
    /// Counts these words in the window of each part.
    Windows,
    /// BM25 of the words and of their synonyms.
    Words,
    /// The share of the words in the part itself, and the cosines.
    Align,
    /// The next pair, who speaks, the month, the features of the words.
    Features,
    /// The shares of the neighbours, and each session's best.
    Around,
    /// The share of the session; the best parts.
    Rank,
}

/// A familiarity probe that is being worked off.
#[derive(Default)]
pub(super) struct FamiliarityScan {
    pass: Pass,
    /// The next part of the pass.
    at: usize,
    parts: Vec<Scored>,
    asked: AskedWords,
    topics: Topics,
    speakers: Speakers,
    /// The first words of the names of all who speak.
    present: NameSet,
    sessions: SessionBest,
    ranked: Vec<(Reverse<Score>, PartKey, usize)>,
}

/// The words of the question and their synonyms.
#[derive(Default)]
struct AskedWords {
    /// The words; the synonyms come after them.
    own: usize,
    /// The index of each word and synonym.
    place: ByTerm<usize>,
    /// What each counts: 1 for a word, the weight for a synonym.
    wanted: Vec<f64>,
    /// The synonyms of each word, best first.
    alike: Vec<Vec<(usize, f64)>>,
    /// In how many windows each occurs.
    with: Vec<u64>,
    /// How rare each is.
    rarity: Vec<f64>,
    /// Words of all windows.
    length: f64,
    /// The greatest BM25 of a part.
    most: f64,
}

/// The question's words without the names of people.
#[derive(Default)]
struct Topics {
    /// Each with the number of parts that contain it, then with its rarity where one does.
    terms: Vec<(TermKey, usize, f64)>,
    /// The sum of the rarities.
    sum: f64,
    /// The sum of the rarities of those that no part contains: as rare as a word can be.
    unknown: f64,
}

/// Who is named in the question.
#[derive(Default)]
struct Speakers {
    names: Vec<NameKey>,
    subject: Option<NameKey>,
    /// Those who speak in the bank.
    named: NameSet,
    /// Whether the subject speaks.
    acts: bool,
}

/// The mean of the best parts of each session, in their order.
#[derive(Default)]
struct SessionBest {
    best: Vec<f64>,
    means: Vec<f64>,
}

impl FamiliarityScan {
    /// Goes on until the work is spent; the answer once every part is scored.
    pub(super) fn go_on(
        &mut self,
        probe: &FamiliarityProbe,
        bank: &Parts,
        words: &mut Words,
        allowance: &mut Allowance,
    ) -> Option<Box<FamiliarParts>> {
        loop {
            match self.pass {
                Pass::Start => {
                    self.asked = AskedWords::new(probe, words);
                    self.topics = Topics::new(probe, words);
                    self.speakers = Speakers::new(probe);
                }
                Pass::Collect => {
                    for (key, indexed) in bank.after(self.parts.last().map(|part| part.key)) {
                        if allowance.is_spent() {
                            return None;
                        }
                        self.collect(*key, indexed);
                        allowance.spend(PASSED_PART);
                    }
                }
                pass => {
                    while self.at < self.parts.len() {
                        if allowance.is_spent() {
                            return None;
                        }
                        allowance.spend(self.one(pass, probe));
                        self.at += 1;
                    }
                }
            }
            self.at = 0;
            self.pass = match self.pass {
                Pass::Start => Pass::Collect,
                Pass::Collect => {
                    self.topics.rate(self.parts.len());
                    Pass::Windows
                }
                Pass::Windows => {
                    self.asked.rate(self.parts.len());
                    Pass::Words
                }
                Pass::Words => Pass::Align,
                Pass::Align => Pass::Features,
                Pass::Features => Pass::Around,
                Pass::Around => {
                    self.sessions.close();
                    Pass::Rank
                }
                Pass::Rank => return Some(Box::new(self.answer(probe))),
            };
        }
    }

    /// Takes a part.
    fn collect(&mut self, key: PartKey, indexed: &Rc<IndexedPart>) {
        let place = &self.asked.place;
        let found = indexed.words.terms().filter_map(|(t, n)| Some((*place.get(&t)?, u32::from(n))));
        let part = Scored {
            key,
            indexed: Rc::clone(indexed),
            words: found.collect(),
            length: indexed.words.length(),
            window: (Vec::new(), 0),
            cosine: 0.0,
            pair: 0.0,
            coverage: 0.0,
            terms: FamiliarityTerms::default(),
            own: 0.0,
            smooth: 0.0,
        };
        self.topics.count(&part, place);
        self.speakers.count(indexed);
        self.present.insert(indexed.speaker[1]);
        self.parts.push(part);
    }

    /// One part of a pass; returns the work.
    fn one(&mut self, pass: Pass, probe: &FamiliarityProbe) -> u64 {
        let at = self.at;
        match pass {
            Pass::Start | Pass::Collect => {}
            Pass::Windows => {
                let window = window(&self.parts, at);
                self.asked.count(&window);
                self.parts[at].window = window;
            }
            Pass::Words => {
                self.asked.gain(self.parts.len(), &mut self.parts[at]);
            }
            Pass::Align => {
                let part = &mut self.parts[at];
                self.asked.share(probe, part);
                self.topics.share(probe, part, &self.asked.place);
                return PASSED_PART + align(probe, part) * SCANNED_VECTOR;
            }
            Pass::Features => {
                self.trio(probe);
                let before = at.checked_sub(1).map(|before| &self.parts[before]);
                let before = before.filter(|before| before.key.0 == self.parts[at].key.0);
                let (opens, replies) = (before.is_none(), before.is_some_and(|before| before.marks().asks));
                let part = &mut self.parts[at];
                let reply = if replies { probe.weights.reply } else { 0.0 };
                part.terms.speaker = self.speakers.share(&part.indexed) * (probe.weights.speaker + reply);
                features(probe, part, opens, &self.present);
            }
            Pass::Around => {
                let lent = around(probe, &self.parts, at);
                let first = at == 0 || self.parts[at - 1].key.0 != self.parts[at].key.0;
                let part = &mut self.parts[at];
                part.terms.around = lent;
                part.smooth = part.own + lent;
                self.sessions.add(first, part.smooth);
            }
            Pass::Rank => {
                if at > 0 && self.parts[at - 1].key.0 != self.parts[at].key.0 {
                    self.sessions.means.pop();
                }
                let mean = self.sessions.means.last().copied().unwrap_or_default();
                let part = &mut self.parts[at];
                part.terms.session = probe.weights.session * mean;
                let score = Score::from_f64((part.smooth + part.terms.session) / FAMILIARITY_SCALE);
                self.ranked.push((Reverse(score), part.key, at));
                let wanted = self.wanted(probe).0;
                if self.ranked.len() >= 2 * wanted + 64 {
                    self.ranked.select_nth_unstable(wanted);
                    self.ranked.truncate(wanted);
                }
            }
        }
        PASSED_PART
    }

    /// How many of the best parts are needed, and the index of the one that sets the zero.
    fn wanted(&self, probe: &FamiliarityProbe) -> (usize, usize) {
        let compared = self.parts.len().min(probe.scale_parts);
        let above = ((compared as f64 * probe.zero) as usize).min(compared.saturating_sub(1));
        (probe.limit.max(above + 1), above)
    }

    /// Adds the mean of a part's pair and the next one's.
    fn trio(&mut self, probe: &FamiliarityProbe) {
        let part = &self.parts[self.at];
        let (session, pair) = (part.key.0, part.pair);
        let next = self.parts.get(self.at + 1).filter(|next| next.key.0 == session).map_or(pair, |next| next.pair);
        self.parts[self.at].terms.pair += probe.weights.trio * (pair + next) / 2.0;
    }

    /// The best parts in order, with the zero of the scale and the number of all.
    fn answer(&mut self, probe: &FamiliarityProbe) -> FamiliarParts {
        let (wanted, above) = self.wanted(probe);
        let mut order = std::mem::take(&mut self.ranked);
        order.sort_unstable();
        order.truncate(wanted);
        let zero = order.get(above).map_or(0.0, |(score, ..)| score.0.as_f64() * FAMILIARITY_SCALE);
        order.truncate(probe.limit);
        let best = order
            .into_iter()
            .map(|(score, key, at)| FamiliarPart {
                unit: self.parts[at].indexed.unit.body.clone(),
                part: key.3,
                score: score.0.as_f64() * FAMILIARITY_SCALE,
                cosine: Score::from_f64(self.parts[at].cosine),
                coverage: self.parts[at].coverage,
                terms: self.parts[at].terms,
            })
            .collect();
        FamiliarParts { best, zero, parts_total: self.parts.len() }
    }
}

impl AskedWords {
    fn new(probe: &FamiliarityProbe, words: &mut Words) -> Self {
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
        let with = vec![0; wanted.len()];
        Self { own: asked.len(), place, wanted, alike, with, rarity: Vec::new(), length: 0.0, most: 0.0 }
    }

    /// Counts the words of a window.
    fn count(&mut self, (counts, length): &(Vec<(usize, u32)>, u32)) {
        counts.iter().for_each(|(term, _)| self.with[*term] += 1);
        self.length += f64::from(*length);
    }

    /// What each word counts and how rare it is, once every window is counted.
    fn rate(&mut self, parts: usize) {
        for of_word in std::mem::take(&mut self.alike) {
            let present = of_word.into_iter().filter(|(term, _)| *term >= self.own && self.with[*term] > 0);
            for (term, weight) in present.take(MOST_SYNONYMS).collect::<Vec<_>>() {
                self.wanted[term] = self.wanted[term].max(weight);
            }
        }
        self.rarity = self.with.iter().map(|n| cut(bm25::rarity(parts as f64, *n as f64))).collect();
    }

    /// Adds BM25 of the words and of the synonyms in a part's window.
    fn gain(&mut self, parts: usize, part: &mut Scored) {
        let mean = self.length / (parts as f64).max(1.0);
        let (counts, length) = std::mem::take(&mut part.window);
        let damping = bm25::damping(f64::from(length), mean.max(1.0));
        for (term, count) in counts {
            let gain = bm25::gain(self.rarity[term], f64::from(count), damping) * self.wanted[term];
            if term < self.own { part.terms.words += gain } else { part.terms.synonyms += gain }
        }
        self.most = self.most.max(part.terms.words);
    }

    /// Divides by the bank's best.
    fn share(&self, probe: &FamiliarityProbe, part: &mut Scored) {
        let most = if self.most > 0.0 { self.most } else { 1.0 };
        part.terms.words *= probe.weights.words / most;
        part.terms.synonyms *= probe.weights.synonyms / most;
    }
}

impl Topics {
    fn new(probe: &FamiliarityProbe, words: &mut Words) -> Self {
        let terms = words.count(&probe.topics).terms().map(|(term, _)| (term, 0, 0.0)).collect();
        Self { terms, sum: 0.0, unknown: 0.0 }
    }

    fn count(&mut self, part: &Scored, place: &ByTerm<usize>) {
        for (term, with, _) in &mut self.terms {
            *with += usize::from(holds(part, *term, place));
        }
    }

    /// How rare each is, once every part is counted.
    fn rate(&mut self, parts: usize) {
        let unknown = self.terms.iter().filter(|(_, with, _)| *with == 0).count();
        self.unknown = unknown as f64 * cut((1.0 + parts as f64).ln());
        self.terms.retain(|(_, with, _)| *with > 0);
        for (_, with, rarity) in &mut self.terms {
            *rarity = cut((1.0 + parts as f64 / *with as f64).ln());
        }
        self.sum = self.terms.iter().map(|(_, _, rarity)| rarity).sum();
    }

    /// Adds the share of the question's words, by rarity, that are in the part itself.
    fn share(&self, probe: &FamiliarityProbe, part: &mut Scored, place: &ByTerm<usize>) {
        if self.sum > 0.0 {
            let present = self.terms.iter().filter(|(term, ..)| holds(part, *term, place));
            let present = present.map(|(_, _, rarity)| rarity).sum::<f64>();
            part.coverage = present / (self.sum + self.unknown);
            part.terms.words += probe.weights.own_words * present / self.sum;
        }
    }
}

/// Whether a part contains a word.
fn holds(part: &Scored, term: TermKey, place: &ByTerm<usize>) -> bool {
    match place.get(&term) {
        Some(at) => part.words.iter().any(|(word, _)| word == at),
        None => part.indexed.words.count(term) > 0,
    }
}

impl Speakers {
    fn new(probe: &FamiliarityProbe) -> Self {
        let names = probe.names.iter().map(|n| hash64(n.as_bytes())).collect();
        let subject = probe.subject.as_ref().map(|n| hash64(n.as_bytes()));
        Self { names, subject, named: NameSet::default(), acts: false }
    }

    fn is_named(&self, part: &IndexedPart) -> bool {
        part.speaker.iter().any(|key| self.names.contains(key))
    }

    fn is_subject(&self, part: &IndexedPart) -> bool {
        self.subject.is_some_and(|subject| part.speaker.contains(&subject))
    }

    fn count(&mut self, part: &IndexedPart) {
        if self.is_named(part) {
            self.named.insert(part.speaker[0]);
        }
        self.acts |= self.is_subject(part);
    }

    /// Whether a named person speaks: 1 if only one is named, 0.5 for everyone if none or several are.
    /// If one of several acts, that one counts more.
    fn share(&self, part: &IndexedPart) -> f64 {
        let one_acts = self.named.len() > 1 && self.acts;
        match (self.is_named(part), self.named.len()) {
            (_, 0) => 0.5,
            (false, _) => 0.0,
            (true, 1) => 1.0,
            (true, _) if one_acts && self.is_subject(part) => SUBJECT,
            (true, _) if one_acts => OTHERS,
            (true, _) => 0.5,
        }
    }
}

impl SessionBest {
    /// Adds a part, the first of a session or not.
    fn add(&mut self, first: bool, smooth: f64) {
        if first && !self.best.is_empty() {
            self.end_session();
        }
        let place = self.best.partition_point(|other| other.total_cmp(&smooth).is_ge());
        self.best.insert(place, smooth);
        self.best.truncate(SESSION_BEST);
    }

    fn end_session(&mut self) {
        self.means.push(self.best.iter().sum::<f64>() / self.best.len().max(1) as f64);
        self.best.clear();
    }

    /// Ends the last session; the means are taken from the first session on.
    fn close(&mut self) {
        self.end_session();
        self.means.reverse();
    }
}

/// Adds the cosines of the sentences and of the pair; returns how many vectors were multiplied.
fn align(probe: &FamiliarityProbe, part: &mut Scored) -> u64 {
    let w = &probe.weights;
    let own = part.indexed.unit.vectors_of(part.key.3);
    part.cosine = best(&probe.vector, own.sentences).unwrap_or_default();
    // A part without a turn before it has no pair: its best sentence counts instead.
    part.pair = best(&probe.vector, own.pair).unwrap_or(part.cosine);
    let first_person = probe.first_person_vector.as_ref().filter(|_| w.own_pair > 0.0);
    let own_pair = first_person.and_then(|v| best(v, own.pair).or_else(|| best(v, own.sentences)));
    part.terms.meaning = w.meaning * part.cosine;
    part.terms.pair = w.pair * part.pair + w.own_pair * own_pair.unwrap_or_default();
    ((own.sentences.len() + 2 * own.pair.len()) / part.indexed.unit.width.max(1)) as u64
}

/// The best cosine of a vector and rows; none if there is no row.
fn best(vector: &[i16], rows: &[i16]) -> Option<f64> {
    let mut best = None;
    kernel::scan(&[vector], rows, i32::MIN, &mut |_, _, product| best = best.max(Some(product)));
    best.map(|product| Score(product).as_f64())
}

/// Adds the month and the features of the words.
fn features(probe: &FamiliarityProbe, part: &mut Scored, opens: bool, present: &NameSet) {
    let w = &probe.weights;
    let times = if probe.asks_time { w.times_asked } else { w.times };
    let flag = |set: bool| f64::from(u8::from(set));
    let body = &part.indexed.unit.body.parts[part.key.3];
    let month = !probe.months.is_empty() && {
        let date = body.said_at.local().date();
        let said_in =
            |&(year, month): &(Option<i16>, i8)| month == date.month() && year.is_none_or(|y| y == date.year());
        probe.months.iter().any(said_in)
    };
    part.terms.month = w.month * flag(month);
    // Speakers are addressed in every other turn ("Hey Ines!"), so their names do not count.
    let names = part.indexed.names.iter().filter(|n| !present.contains(n)).take(MOST_NAMES.into()).count();
    part.terms.marks = times * f64::from(body.marks.times.min(MOST_TIMES)) - w.asks * flag(body.marks.asks)
        + w.quotes * flag(body.marks.quotes)
        + w.names * names as f64
        + w.opener * flag(opens)
        + w.length * cut(f64::from(1 + part.length).ln());
    part.own = part.terms.own();
}

impl Scored {
    fn marks(&self) -> Marks {
        self.indexed.unit.body.parts[self.key.3].marks
    }
}

/// A logarithm with 20 binary digits after the point.
fn cut(logarithm: f64) -> f64 {
    (logarithm * LOG_DIGITS).round() / LOG_DIGITS
}

/// The parts at a distance on either side of `at`, in the same session.
fn side(parts: &[Scored], at: usize, distance: usize) -> impl Iterator<Item = usize> {
    let session = parts[at].key.0;
    let same = move |i: &usize| parts.get(*i).is_some_and(|p| p.key.0 == session);
    [at.checked_sub(distance), at.checked_add(distance)].into_iter().flatten().filter(same)
}

/// The window of a part: how often each word of the question occurs in it, and its length.
fn window(parts: &[Scored], at: usize) -> (Vec<(usize, u32)>, u32) {
    let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
    let mut length = 0;
    let mut add = |part: &Scored, times: u32| {
        length += times * part.length;
        for (term, count) in &part.words {
            *counts.entry(*term).or_default() += times * count;
        }
    };
    add(&parts[at], OWN_WORDS);
    for distance in 1..=WORD_REACH {
        side(parts, at, distance).for_each(|i| add(&parts[i], 1));
    }
    (counts.into_iter().collect(), length)
}

/// A share of the better neighbour's score, at a distance of one turn and of two.
fn around(probe: &FamiliarityProbe, parts: &[Scored], at: usize) -> f64 {
    let shares = [(1, probe.weights.next_turn), (2, probe.weights.second_turn)];
    let best = |distance| side(parts, at, distance).map(|i| parts[i].own).reduce(f64::max).unwrap_or(0.0);
    shares.iter().map(|(distance, share)| share * best(*distance)).sum()
}
