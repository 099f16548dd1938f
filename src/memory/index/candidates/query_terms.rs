//! What a question asks for, besides its vector: words, topics, people.
//!
//! In: a familiarity probe, and the counts of its bank. Out: for a part, its BM25, the topics that it holds, and the
//! share of its speaker. Counts come part by part in a pass over the whole bank, or all at once from the candidate
//! index; both ways give the same result.

use std::{
    collections::{HashMap, HashSet},
    hash::BuildHasherDefault,
};

use super::{candidate_index::CandidateIndex, indexed_part::PartSlot, slot_set::SlotSet};
use crate::index::id_hasher::IdHasher;
use crate::index::{
    lexical::{
        bm25,
        term_analyzer::{TermAnalyzer, TermKey},
    },
    probes::{FamiliarityProbe, QuestionTopic},
    units::association_score::{NameKey, name_key},
};
use crate::language::multilingual::name_forms;
use types::model::{FamiliarityTerms, Language};

/// Logarithms are rounded to 1 / this: 20 binary digits.
const LOG_DIGITS: f64 = 1_048_576.0;
/// The maximum number of a question's topics that are reported for a part: the bits of a number.
const MAX_TOPICS: usize = 64;
/// The size of the sieve in 64-bit words; it rules out most terms that are not in the question.
const SIEVE_WORDS: usize = 16;
/// The shares of the person who acts and of the other named people, if several are named.
const SUBJECT: f64 = 0.75;
const OTHERS: f64 = 0.25;

/// A map by stem; a stem or a name is a hash already, so it is not hashed again.
pub(in crate::index) type TermMap<V> = HashMap<TermKey, V, BuildHasherDefault<IdHasher>>;

/// A set of names.
pub(in crate::index) type NameSet = HashSet<NameKey, BuildHasherDefault<IdHasher>>;

/// A word of the question, by its index in the question, and how often it was found.
pub(in crate::index) type QueryWordHit = (usize, u32);

/// What a question asks of a large bank.
pub(in crate::index) struct QueryTerms<'q> {
    /// The probe.
    pub probe: &'q FamiliarityProbe,
    /// Its words, rated.
    pub words: &'q QueryWords,
    /// The people that it names, counted.
    pub speakers: &'q QuerySpeakers,
    /// How many parts deserve the full score.
    pub wanted: usize,
    /// The only slots that may be chosen, if not all may.
    pub matching: Option<&'q SlotSet>,
}

impl QueryTerms<'_> {
    /// Whether a part may be chosen.
    pub(in crate::index) fn takes(&self, slot: PartSlot) -> bool {
        self.matching.is_none_or(|matching| matching.contains(slot))
    }
}

/// The words of the question.
#[derive(Default)]
pub(in crate::index) struct QueryWords {
    /// The index of each word.
    place: TermMap<usize>,
    /// A bit for some digits of each word; if the bit of a word is not set here, the word is not in the question.
    sieve: [u64; SIEVE_WORDS],
    /// In how many windows each occurs.
    with: Vec<u64>,
    /// How rare each is.
    rarity: Vec<f64>,
    /// The number of words in all windows.
    length: f64,
    /// Number of windows.
    windows: f64,
    /// The greatest BM25 of a part.
    most: f64,
}

impl QueryWords {
    /// Reads the probe, whose words are in a language.
    pub(in crate::index) fn new(probe: &FamiliarityProbe, language: Language, words: &mut TermAnalyzer) -> Self {
        let counted = words.term_bag(&probe.words, language);
        let place: TermMap<usize> = counted.terms().enumerate().map(|(i, (t, _))| (t, i)).collect();
        let with = vec![0; place.len()];
        let mut sieve = [0; SIEVE_WORDS];
        place.keys().for_each(|term| sieve[sieve_word(*term)] |= 1 << (term % 64));
        Self { place, sieve, with, ..Self::default() }
    }

    /// The index of a word.
    pub(in crate::index) fn word_index(&self, term: TermKey) -> Option<usize> {
        // Most words are not in the question.
        if self.sieve[sieve_word(term)] & (1 << (term % 64)) == 0 {
            return None;
        }
        self.place.get(&term).copied()
    }

    /// The index of each word.
    pub(in crate::index) fn word_indexes(&self) -> &TermMap<usize> {
        &self.place
    }

    /// Counts the words of a window.
    pub(in crate::index) fn count(&mut self, counts: &[QueryWordHit], length: u32) {
        counts.iter().for_each(|(term, _)| self.with[*term] += 1);
        self.length += f64::from(length);
    }

    /// Takes the counts of all windows from the index.
    pub(in crate::index) fn count_all(&mut self, index: &CandidateIndex) {
        for (term, at) in &self.place {
            self.with[*at] = index.stems().get(*term).map_or(0, |stem| u64::from(stem.windows));
        }
        self.length = index.window_words() as f64;
    }

    /// How rare each word is, once every window is counted.
    pub(in crate::index) fn rate(&mut self, windows: usize) {
        self.windows = windows as f64;
        self.rarity = self.with.iter().map(|n| round_logarithm(bm25::rarity(self.windows, *n as f64))).collect();
    }

    /// The words that occur in the bank, rarest first: the stem, and what a full gain is worth.
    pub(in crate::index) fn terms_by_rarity(&self) -> Vec<(TermKey, f64)> {
        let mut rated: Vec<(u64, TermKey, f64)> = self
            .place
            .iter()
            .filter(|(_, at)| self.with[**at] > 0)
            .map(|(term, at)| (self.with[*at], *term, self.rarity[*at]))
            .collect();
        rated.sort_by_key(|(with, term, _)| (*with, *term));
        rated.into_iter().map(|(_, term, worth)| (term, worth)).collect()
    }

    /// How much the length of a window damps its gains.
    fn damping(&self, length: u32) -> f64 {
        let mean = self.length / self.windows.max(1.0);
        bm25::damping(f64::from(length), mean.max(1.0))
    }

    /// Adds BM25 of the words in a part's window.
    pub(in crate::index) fn gain(&mut self, counts: &[QueryWordHit], length: u32, terms: &mut FamiliarityTerms) {
        let damping = self.damping(length);
        let gain = |(word, count): &QueryWordHit| bm25::gain(self.rarity[*word], f64::from(*count), damping);
        terms.words += counts.iter().map(gain).sum::<f64>();
        self.most = self.most.max(terms.words);
    }

    /// Divides by the bank's best.
    pub(in crate::index) fn share(&self, probe: &FamiliarityProbe, terms: &mut FamiliarityTerms) {
        let most = if self.most > 0.0 { self.most } else { 1.0 };
        terms.words *= probe.weights.words / most;
    }
}

/// The question's words; names of people count only if the person never speaks in the bank, written in any way.
#[derive(Default)]
pub(in crate::index) struct QueryTopics {
    /// Each with its stem, counted and then rated.
    topics: Vec<(TermKey, QuestionTopic)>,
    /// How many of them, the last, also belong to the name of a speaker.
    of_speakers: usize,
}

impl QueryTopics {
    /// Reads the probe, whose words are in a language. `speaks` says whether a word belongs to the name of a speaker.
    pub(in crate::index) fn new(
        probe: &FamiliarityProbe,
        language: Language,
        words: &mut TermAnalyzer,
        speaks: impl Fn(&str) -> bool,
    ) -> Self {
        let mut topics: Vec<(TermKey, QuestionTopic)> = Vec::new();
        // Grammar shows a person only in English, and only with a capital.
        let is_speaker = |word: &str| speaks(word) || name_forms(word, language).iter().any(|form| speaks(form));
        let names = probe.persons.iter().filter(|word| !speaks(word)).map(|word| (word, true));
        let (of_speakers, others): (Vec<_>, Vec<_>) =
            probe.topics.iter().map(|word| (word, false)).partition(|(word, _)| is_speaker(word));
        let mut add = |(word, is_name): (&String, bool)| {
            for (term, _) in words.term_bag(word, language).terms() {
                if topics.iter().all(|(known, _)| *known != term) {
                    topics.push((term, QuestionTopic { word: word.clone(), parts: 0, rarity: 0.0, is_name }));
                }
            }
            topics.len()
        };
        let own = others.into_iter().chain(names).map(&mut add).last().unwrap_or_default();
        let all = of_speakers.into_iter().map(&mut add).last().unwrap_or(own);
        Self { topics, of_speakers: all - own }
    }

    /// Counts a part for each topic that it holds.
    pub(in crate::index) fn count(&mut self, holds: impl Fn(TermKey) -> bool) {
        for (term, topic) in &mut self.topics {
            topic.parts += usize::from(holds(*term));
        }
    }

    /// Takes the counts of all parts from the index.
    pub(in crate::index) fn count_all(&mut self, index: &CandidateIndex) {
        for (term, topic) in &mut self.topics {
            topic.parts = index.stems().get(*term).map_or(0, |stem| stem.parts.len());
        }
    }

    /// How rare each is, once every part is counted.
    pub(in crate::index) fn rate(&mut self, parts: usize) {
        for (_, topic) in &mut self.topics {
            let rarity = || round_logarithm((1.0 + parts as f64 / topic.parts.max(1) as f64).ln());
            topic.rarity = if topic.is_name { 0.0 } else { rarity() };
        }
    }

    /// Which of the topics are in a part, one bit for each; only the first [`MAX_TOPICS`] are reported.
    pub(in crate::index) fn topic_bits(&self, holds: impl Fn(TermKey) -> bool) -> u64 {
        let told = self.topics.iter().take(MAX_TOPICS).enumerate();
        told.filter(|(_, (term, topic))| topic.parts > 0 && holds(*term)).map(|(at, _)| 1 << at).sum()
    }

    /// The topics, in the order of the question, and how many of them, the last, also belong to the name of a speaker.
    pub(in crate::index) fn into_topics(self) -> (Vec<QuestionTopic>, usize) {
        (self.topics.into_iter().map(|(_, topic)| topic).collect(), self.of_speakers)
    }
}

/// Who is named in the question.
#[derive(Default)]
pub(in crate::index) struct QuerySpeakers {
    names: Vec<NameKey>,
    subject: Option<NameKey>,
    /// Those who speak in the bank.
    named: NameSet,
    /// Whether the subject speaks.
    acts: bool,
}

impl QuerySpeakers {
    /// Reads the probe.
    pub(in crate::index) fn new(probe: &FamiliarityProbe) -> Self {
        let names = probe.names.iter().map(|name| name_key(name)).collect();
        let subject = probe.subject.as_deref().map(name_key);
        Self { names, subject, named: NameSet::default(), acts: false }
    }

    /// Adds the people whom names in the question mean, if no speaker has the name.
    pub(in crate::index) fn add_meanings(
        &mut self,
        meanings: Vec<(NameKey, NameKey)>,
        present: impl Fn(NameKey) -> bool,
    ) {
        for (name, speaker) in meanings.into_iter().filter(|(name, _)| !present(*name)) {
            self.names.push(speaker);
            if self.subject == Some(name) {
                self.subject = Some(speaker);
            }
        }
    }

    fn is_named(&self, speaker: [NameKey; 2]) -> bool {
        speaker.iter().any(|key| self.names.contains(key))
    }

    fn is_subject(&self, speaker: [NameKey; 2]) -> bool {
        self.subject.is_some_and(|subject| speaker.contains(&subject))
    }

    /// Counts the speaker of a part.
    pub(in crate::index) fn count(&mut self, speaker: [NameKey; 2]) {
        if self.is_named(speaker) {
            self.named.insert(speaker[0]);
        }
        self.acts |= self.is_subject(speaker);
    }

    /// Takes the speakers of all parts from the index.
    pub(in crate::index) fn count_all(&mut self, index: &CandidateIndex) {
        for name in self.names.iter().chain(&self.subject).copied().collect::<Vec<_>>() {
            index.speakers_named(name).for_each(|(_, speaker)| self.count(speaker));
        }
    }

    /// The names that may be speakers'.
    pub(in crate::index) fn names(&self) -> &[NameKey] {
        &self.names
    }

    /// Whether a named person speaks: 1 if only one is named; 0.5 for everyone if nobody is named, and for each named
    /// person if several are. If one of several acts, that one counts more.
    pub(in crate::index) fn share(&self, speaker: [NameKey; 2]) -> f64 {
        let one_acts = self.named.len() > 1 && self.acts;
        match (self.is_named(speaker), self.named.len()) {
            (_, 0) => 0.5,
            (false, _) => 0.0,
            (true, 1) => 1.0,
            (true, _) if one_acts && self.is_subject(speaker) => SUBJECT,
            (true, _) if one_acts => OTHERS,
            (true, _) => 0.5,
        }
    }
}

/// Adds the words of a part to those of its window, which begin at `first`; each occurrence counts `times` times.
pub(in crate::index) fn add_words(windows: &mut Vec<QueryWordHit>, first: usize, words: &[QueryWordHit], times: u32) {
    for (word, count) in words {
        // A window holds few words of a question.
        match windows[first..].iter_mut().find(|(other, _)| other == word) {
            Some((_, of_word)) => *of_word += times * count,
            None => windows.push((*word, times * count)),
        }
    }
}

/// The word of the sieve that has the bit of a term.
fn sieve_word(term: TermKey) -> usize {
    (term >> 6) as usize % SIEVE_WORDS
}

/// A logarithm with 20 binary digits after the point.
pub(in crate::index) fn round_logarithm(logarithm: f64) -> f64 {
    (logarithm * LOG_DIGITS).round() / LOG_DIGITS
}
