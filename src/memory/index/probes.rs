//! What goes into the memory dataflow and what comes out of it.
//!
//! In: memory records in the order of their log, and probes. Out: recalled units with fixed-point scores. Each answer
//! is as of one epoch and states the offsets that it reflects. Nothing is computed here.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{matching_parts::MatchingParts, units::unit_body::UnitBody};
use crate::language::question::LocalStretch;
use types::{
    config::{CosineScale, FamiliarityWeights},
    model::{BankKey, Channel, Cues, FamiliarityTerms, Language, LogPosition, Score, Selector, UnitId},
};

/// A vector of unit length in 16-bit fixed point ([`crate::index::quantise`]).
pub type FixedVector = Arc<[i16]>;

/// The first hop by channels: searches the three indexes of one bank.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FirstHopProbe {
    /// The bank.
    pub bank: BankKey,
    /// The question's vector.
    pub vector: FixedVector,
    /// The words of the lexical channel; tokenised and stemmed like units.
    pub words: String,
    /// The language of these words.
    pub language: Language,
    /// Persons, places and time.
    pub cues: Cues,
    /// How many units the semantic channel returns.
    pub semantic: usize,
    /// How many units the lexical channel returns.
    pub lexical: usize,
    /// How many units the cue channel returns.
    pub cue: usize,
    /// Only units with one of these parts are searched.
    pub matching: Option<Arc<MatchingParts>>,
}

/// One unit of the first hop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstHopHit {
    /// The unit.
    pub unit: Arc<UnitBody>,
    /// The index that found it ([`Channel::Structural`] is the cue channel).
    pub channel: Channel,
    /// Its rank in that index, from 1.
    pub rank: u32,
    /// That index's score: a cosine, a structural score, or BM25 divided by 16.
    pub score: Score,
    /// Cosine of the question and the unit's best part.
    pub alignment: Score,
}

/// The first hop by familiarity: scores the parts of one bank; in a large bank, only the candidates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FamiliarityProbe {
    /// The bank.
    pub bank: BankKey,
    /// The question's vector.
    pub vector: FixedVector,
    /// The question's words; tokenised and stemmed like parts.
    pub words: String,
    /// The language of the words, if they show it; otherwise they are read in the language of most parts of the bank.
    pub language: Option<Language>,
    /// The words except the names of people, as they are written in the question.
    pub topics: Vec<String>,
    /// The words of the persons' names, except those in [`topics`](Self::topics).
    pub persons: Vec<String>,
    /// Words and phrases of the question that may name a speaker; canonical.
    pub names: Vec<String>,
    /// The name of the person who acts, if the question names several.
    pub subject: Option<String>,
    /// Who asks, if the question says so; canonical.
    pub asker: Option<String>,
    /// Whether it asks for a time.
    pub asks_time: bool,
    /// The time that it names.
    pub time: Option<ProbedTime>,
    /// The weight of each term.
    pub weights: FamiliarityWeights,
    /// How cosines of the vectors' model are scaled.
    pub cosines: CosineScale,
    /// Whether names by which speakers are greeted count as theirs.
    pub greeted_names: bool,
    /// Sets the zero of the scale: the score that this share of the compared text exceeds, but no lower than the score
    /// of the thousandth part.
    pub zero: f64,
    /// Only the best parts of this many estimated tokens are compared.
    pub scale_tokens: usize,
    /// In a bank with a candidate index, how many parts get the full score. 0 scores every part of every
    /// bank.
    pub candidates: usize,
    /// How many of the best units' edges lead to further candidates.
    pub linked_units: usize,
    /// The maximum number of parts in the answer.
    pub limit: usize,
    /// Only these parts are ranked. The terms of their scores are those that they have in the whole bank; the zero of the
    /// scale is that of these parts.
    pub matching: Option<Arc<MatchingParts>>,
}

/// The time that a question names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbedTime {
    /// Its stretches of local time.
    pub stretches: Vec<LocalStretch>,
    /// Months of any year.
    pub months: Vec<i8>,
    /// The asker's offset from UTC, in seconds; without it, the clock of each turn counts.
    pub offset_seconds: Option<i32>,
    /// Whether only the time of saying counts.
    pub of_saying: bool,
    /// Whether parts of the time come before all others.
    pub chooses: bool,
}

/// The answer to a [`FamiliarityProbe`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FamiliarityResult {
    /// The best parts, best first.
    pub best: Vec<FamiliarPart>,
    /// The zero of the scale: the bank's background.
    pub zero: f64,
    /// Number of parts in the bank.
    pub parts_total: usize,
    /// Number of those that got the full score: in a large bank, the candidates.
    pub scored: usize,
    /// Number of those that an assistant said.
    pub assistants: usize,
    /// The estimated tokens of all of them, or of those that the probe ranks.
    pub tokens: f64,
    /// What the question is about, except function words; each stem once.
    pub topics: Vec<QuestionTopic>,
    /// The only person who speaks in the bank, apart from assistants, tools and bots.
    pub only_person: Option<String>,
    /// Some of the bank's speakers, if the asker is not one.
    pub unknown_asker: Option<Vec<String>>,
    /// How many of the topics, the last of them, also belong to the name of a speaker. They count in no share.
    pub speaker_topics: usize,
    /// How many of the scored parts lie in the time of the probe; at least 1 if a part that was not scored may lie in
    /// it; `None` if the probe has no time.
    pub in_time: Option<usize>,
}

/// A topic of a question.
#[derive(Debug, Clone, PartialEq)]
pub struct QuestionTopic {
    /// As it is written in the question.
    pub word: String,
    /// The number of parts of the bank that hold it.
    pub parts: usize,
    /// How rare it is: ln(1 + parts of the bank / parts that hold it). A topic that no part holds counts as if one did;
    /// a name has 0.
    pub rarity: f64,
    /// Whether it belongs to the name of somebody who never speaks in the bank.
    pub is_name: bool,
}

impl FamiliarityResult {
    /// The share of the question's topics, weighted by rarity, whose bits are set in `topics`
    /// ([`FamiliarPart::topics`]). A topic that no part of the bank holds counts as the rarest.
    #[must_use]
    pub fn coverage(&self, topics: u64) -> f64 {
        let has_bit = |at: usize| u32::try_from(at).ok().and_then(|at| topics.checked_shr(at)).unwrap_or(0) & 1 == 1;
        self.topics_share(|at, _| has_bit(at))
    }

    /// The share of the topics, weighted by rarity, that no part of the bank holds.
    #[must_use]
    pub fn absent_share(&self) -> f64 {
        self.topics_share(|_, topic| topic.parts == 0)
    }

    /// The topics without those that also belong to the name of a speaker.
    #[must_use]
    pub fn own_topics(&self) -> &[QuestionTopic] {
        self.topics.get(..self.topics.len().saturating_sub(self.speaker_topics)).unwrap_or_default()
    }

    fn topics_share(&self, passes: impl Fn(usize, &QuestionTopic) -> bool) -> f64 {
        let topics = self.own_topics();
        let all: f64 = topics.iter().map(|topic| topic.rarity).sum();
        let passed = topics.iter().enumerate().filter(|(at, topic)| passes(*at, topic));
        let passed: f64 = passed.map(|(_, topic)| topic.rarity).sum();
        if all > 0.0 { passed / all } else { 0.0 }
    }

    /// The score on the scale from the zero (0) to the best part (1).
    #[must_use]
    pub fn share(&self, score: f64) -> f64 {
        let width = self.best.first().map_or(0.0, |best| best.score - self.zero);
        if width > 0.0 { (score - self.zero) / width } else { 1.0 }
    }
}

/// A part with its score.
#[derive(Debug, Clone, PartialEq)]
pub struct FamiliarPart {
    /// The unit that holds it.
    pub unit: Arc<UnitBody>,
    /// Its index among the unit's parts.
    pub part: usize,
    /// The keys of its speaker's whole name and of the first word of that name ([`crate::index::name_key`]).
    pub speaker: [u64; 2],
    /// Whether it ends with a question.
    pub asks: bool,
    /// Whether it repeats the unit's restatement, not the words of a turn.
    pub restated: bool,
    /// The sum of the terms, rounded to fixed point.
    pub score: f64,
    /// Cosine of the question and the part's best sentence.
    pub cosine: Score,
    /// The question's topics that occur in the part itself: one bit for each of the first 64, in the order of
    /// [`FamiliarityResult::topics`].
    pub topics: u64,
    /// The terms of the score.
    pub terms: FamiliarityTerms,
}

/// Looks for the units of a bank that a turn was made into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnProbe {
    /// The bank.
    pub bank: BankKey,
    /// The id of the turn.
    pub turn: String,
}

/// Looks for the parts of a bank that a selector takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchProbe {
    /// The bank.
    pub bank: BankKey,
    /// The selector; one that cannot be compiled takes nothing.
    pub select: Selector,
}

/// A probe that reads the indexes of a bank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum IndexProbe {
    /// Ranks units in three channels.
    FirstHop(FirstHopProbe),
    /// Scores parts.
    Familiarity(Box<FamiliarityProbe>),
    /// Looks for the units of a turn.
    Turn(TurnProbe),
    /// Looks for the parts that a selector takes.
    Match(MatchProbe),
}

impl IndexProbe {
    /// The bank that is asked.
    pub(super) fn bank(&self) -> BankKey {
        match self {
            Self::FirstHop(probe) => probe.bank,
            Self::Familiarity(probe) => probe.bank,
            Self::Turn(probe) => probe.bank,
            Self::Match(probe) => probe.bank,
        }
    }
}

/// The expansion: walks the edges from anchors.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NeighbourhoodProbe {
    /// The bank.
    pub bank: BankKey,
    /// Where to start.
    pub anchors: Vec<UnitId>,
    /// The maximum number of edges from an anchor: 1 or 2.
    pub hops: u32,
    /// Whether a path may change its channel.
    pub mixed: bool,
    /// The question's vector.
    pub question: FixedVector,
    /// The vector of the target's sentence.
    pub target: FixedVector,
    /// The target's cues.
    pub target_cues: Cues,
    /// Whether the answer includes the anchors, each with an empty path.
    pub itself: bool,
    /// Only units with one of these parts are walked over.
    pub matching: Option<Arc<MatchingParts>>,
}

/// One step of a path, in fixed point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PathStep {
    /// Where it starts.
    pub from: UnitId,
    /// Where it ends.
    pub to: UnitId,
    /// Which kind of edge.
    pub channel: Channel,
    /// The edge's weight.
    pub weight: Score,
}

/// One unit reached from an anchor through one channel, by its best path:
/// fewest hops, then the greatest product of weights, then the least ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// The unit; one of the probe's anchors only if the probe asks for them.
    pub unit: Arc<UnitBody>,
    /// The channel of the path (of its last step, on a mixed path).
    pub channel: Channel,
    /// The path from the anchor: one or two steps; none for an anchor.
    pub path: Vec<PathStep>,
    /// Product of the weights.
    pub path_weight: Score,
    /// Cosine of the target and the unit's best part.
    pub semantic_match: Score,
    /// Structural score with the target's cues; none when no cue is comparable.
    pub structural_match: Option<Score>,
    /// Cosine of the question and the unit's best part.
    pub alignment: Score,
}

/// A unit and what it is linked to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitNeighbourhood {
    /// The unit.
    pub unit: Arc<UnitBody>,
    /// The units at the other ends of its edges, once for each channel.
    pub neighbours: Vec<Neighbour>,
}

/// An answer of the dataflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataflowAnswer<T> {
    /// The answer.
    pub value: T,
    /// The epoch as of which it is true.
    pub epoch: u64,
    /// The offsets of the logs that the epoch reflects.
    pub reflects: Vec<LogPosition>,
}
