//! What was damaged in a benchmark file, and what was done about it.
//!
//! In: mishaps with their place. Out: for each kind how many, the first five places, and
//! the treatment. Nothing that a file holds goes missing without a mark here.

use std::collections::BTreeMap;

use super::result::Problem;

/// Examples that are kept of a kind.
const EXAMPLES: usize = 5;

/// A kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A turn, a session or a conversation that the source rejected.
    Rejected,
    /// Something in the place of a question that is none.
    NotAQuestion,
    /// The same question again.
    Duplicate,
    /// A category that the dataset does not define.
    UnknownCategory,
    /// A damaged evidence string whose meaning is plain.
    RepairedEvidence,
    /// An evidence string that names no turn of the conversation.
    LostEvidence,
    /// A question of which no evidence is left.
    NoEvidence,
    /// A question without a reference answer.
    NoAnswer,
    /// A date that is missing or cannot be read.
    NoDate,
    /// A question about a conversation that the memory does not hold.
    NoConversation,
    /// A question that the language model did not answer, or whose answer it did not judge.
    Unanswered,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected_turns",
            Self::NotAQuestion => "not_a_question",
            Self::Duplicate => "duplicate_question",
            Self::UnknownCategory => "unknown_category",
            Self::RepairedEvidence => "repaired_evidence",
            Self::LostEvidence => "lost_evidence",
            Self::NoEvidence => "no_evidence",
            Self::NoAnswer => "no_answer",
            Self::NoDate => "no_date",
            Self::NoConversation => "no_conversation",
            Self::Unanswered => "unanswered",
        }
    }

    fn treatment(self) -> &'static str {
        match self {
            Self::Rejected => "left out of the memory; the reason is the dead letter's",
            Self::NotAQuestion => "left out",
            Self::Duplicate => "asked and counted again, so that counts stay those of the published file",
            Self::UnknownCategory => "asked and shown by itself, left out of the overall figures",
            Self::RepairedEvidence => "read as the turns that it plainly names",
            Self::LostEvidence => "this piece is left out, the question's other pieces count",
            Self::NoEvidence => "not asked: there is nothing to score it by",
            Self::NoAnswer => "asked and scored by its evidence only",
            Self::NoDate => "asked without a date: words such as \"yesterday\" mean nothing in it",
            Self::NoConversation => "not asked: the memory holds none of its turns",
            Self::Unanswered => "scored by its evidence, without marks for an answer",
        }
    }
}

/// Damage by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Problems(BTreeMap<String, Problem>);

impl Problems {
    /// Marks one mishap; `place` says where and what.
    pub(crate) fn note(&mut self, kind: Kind, place: impl Into<String>) {
        let problem = self
            .0
            .entry(kind.name().to_owned())
            .or_insert_with(|| Problem { treatment: kind.treatment().to_owned(), ..Problem::default() });
        problem.count += 1;
        if problem.examples.len() < EXAMPLES {
            problem.examples.push(place.into());
        }
    }

    /// All of it.
    pub(crate) fn into_inner(self) -> BTreeMap<String, Problem> {
        self.0
    }

    /// How many of a kind.
    #[cfg(test)]
    pub(crate) fn count(&self, kind: Kind) -> u64 {
        self.0.get(kind.name()).map_or(0, |p| p.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_examples_are_kept_and_all_are_counted() {
        let mut problems = Problems::default();
        for i in 0..9 {
            problems.note(Kind::Duplicate, format!("q{i}"));
        }
        let all = problems.into_inner();
        assert_eq!((all["duplicate_question"].count, all["duplicate_question"].examples.len()), (9, 5));
    }
}
