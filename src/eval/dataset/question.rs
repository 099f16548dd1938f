//! The questions of a benchmark file.
//!
//! The types, in the order of the file, and the choices that depend only on the questions themselves: a limit per
//! conversation, and marks for duplicates.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::dataset_damage::{DamageCounts, DatasetDamage};
use types::model::{Bank, EventTime, Question};

/// Whether the dialogue supports an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answerability {
    /// It does, so the question counts in the overall figures.
    Supported,
    /// It does not, and a good memory says so.
    Unsupported,
    /// The dataset does not define the question's category.
    Unknown,
}

/// A question of a benchmark file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DatasetQuestion {
    /// Identity in the file: `conv-26#12`, counted from 0.
    pub(crate) id: String,
    /// The conversation.
    pub(crate) conversation: String,
    /// The conversation's bank.
    pub(crate) bank: Bank,
    /// The category's name.
    pub(crate) category: String,
    /// Whether the dialogue supports an answer.
    pub(crate) answerability: Answerability,
    /// The question's text.
    pub(crate) text: String,
    /// When it is asked.
    pub(crate) asked_at: Option<EventTime>,
    /// The reference answer.
    pub(crate) reference: Option<String>,
    /// The turns that hold the evidence: the file's strings until [`Dataset::resolve`], then ids.
    pub(crate) evidence: Vec<String>,
}

impl DatasetQuestion {
    /// Whether it counts in the overall figures.
    pub(crate) fn counts(&self) -> bool {
        self.answerability == Answerability::Supported
    }

    /// The question in the form that the memory is asked.
    pub(crate) fn question(&self) -> Question {
        Question { asked_at: self.asked_at, ..Question::new(self.bank.clone(), self.text.clone()) }
    }
}

/// The questions of a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Dataset {
    /// The questions in the order of the file.
    pub(crate) questions: Vec<DatasetQuestion>,
    /// What was damaged.
    pub(crate) problems: DamageCounts,
    /// Whether the file names evidence; without it questions are asked but not scored.
    pub(crate) scorable: bool,
}

impl Dataset {
    /// Keeps at most this many questions per conversation: the first ones in the file, or, with a seed, a random
    /// choice, in the order of the file.
    pub(crate) fn limit(&mut self, most: usize, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.choose(most, &mut fastrand::Rng::with_seed(seed));
        }
        let mut kept = HashMap::new();
        self.questions.retain(|q| {
            let n: &mut usize = kept.entry(q.conversation.clone()).or_default();
            *n += 1;
            *n <= most
        });
    }

    /// Keeps at most this many of each conversation's questions, all with the same probability. A larger number keeps
    /// all questions of a smaller one, so that an evaluation can be extended.
    fn choose(&mut self, most: usize, random: &mut fastrand::Rng) {
        let mut of_conversation: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for q in &self.questions {
            of_conversation.entry(&q.conversation).or_default().push(&q.id);
        }
        let mut chosen = HashSet::new();
        for mut ids in of_conversation.into_values() {
            random.shuffle(&mut ids);
            chosen.extend(ids.into_iter().take(most).map(str::to_owned));
        }
        self.questions.retain(|q| chosen.contains(&q.id));
    }

    pub(super) fn mark_duplicates(&mut self) {
        let mut seen = HashSet::new();
        for q in &self.questions {
            let text = q.text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
            if !seen.insert((q.bank.clone(), q.category.clone(), text)) {
                self.problems.note(DatasetDamage::Duplicate, &q.id);
            }
        }
    }
}
