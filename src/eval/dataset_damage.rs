//! What is damaged in a benchmark file, and how the evaluation treats it.
//!
//! In: damage with its place. Out: for each kind its count, the first five places, and the treatment. Nothing in a file
//! is ever left out without being counted here.

use std::collections::BTreeMap;

use super::result::DamageCount;

/// Examples kept for each kind.
const EXAMPLES: usize = 5;

/// A kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatasetDamage {
    /// A turn, a session or a conversation that the source rejected.
    Rejected,
    /// A turn that is longer than the memory accepts.
    Cut,
    /// A question that cannot be read.
    NotAQuestion,
    /// A question with the text, bank and category of an earlier one.
    Duplicate,
    /// A category that the dataset does not define.
    UnknownCategory,
    /// A damaged evidence string that still names turns clearly.
    RepairedEvidence,
    /// An evidence string that names no turn of the conversation.
    LostEvidence,
    /// A question whose evidence is all lost.
    NoEvidence,
    /// A question without a reference answer.
    NoAnswer,
    /// A date that is missing or cannot be read.
    NoDate,
    /// A question about a conversation that the memory does not hold.
    NoConversation,
    /// A question that the language model did not answer, or did not judge.
    Unanswered,
}

impl DatasetDamage {
    fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected_turns",
            Self::Cut => "cut_turns",
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
            Self::Rejected => "left out of the memory; the dead letter gives the reason",
            Self::Cut => "cut to 65,000 bytes for the memory; evidence and rivals use the whole turn",
            Self::NotAQuestion => "left out",
            Self::Duplicate => "asked and counted again, as in the published counts",
            Self::UnknownCategory => "asked and shown separately, left out of the overall figures",
            Self::RepairedEvidence => "read as the turns that it clearly names",
            Self::LostEvidence => "this piece is left out, the question's other pieces count",
            Self::NoEvidence => "not asked: it has no evidence to be scored by",
            Self::NoAnswer => "asked and scored by its evidence only",
            Self::NoDate => "asked without a date: words such as \"yesterday\" cannot be resolved",
            Self::NoConversation => "not asked: the memory holds none of its turns",
            Self::Unanswered => "scored by its evidence only, without scores of an answer",
        }
    }
}

/// Damage by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DamageCounts(BTreeMap<String, DamageCount>);

impl DamageCounts {
    /// Counts one piece of damage; `place` says where it is and what was found.
    pub(crate) fn note(&mut self, kind: DatasetDamage, place: impl Into<String>) {
        let problem = self
            .0
            .entry(kind.name().to_owned())
            .or_insert_with(|| DamageCount { treatment: kind.treatment().to_owned(), ..DamageCount::default() });
        problem.count += 1;
        if problem.examples.len() < EXAMPLES {
            problem.examples.push(place.into());
        }
    }

    /// The JSON form: problems by kind.
    pub(crate) fn into_inner(self) -> BTreeMap<String, DamageCount> {
        self.0
    }

    /// The count of a kind.
    #[cfg(test)]
    pub(crate) fn count(&self, kind: DatasetDamage) -> u64 {
        self.0.get(kind.name()).map_or(0, |p| p.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_examples_are_kept_and_all_are_counted() {
        let mut problems = DamageCounts::default();
        for i in 0..9 {
            problems.note(DatasetDamage::Duplicate, format!("q{i}"));
        }
        let all = problems.into_inner();
        assert_eq!((all["duplicate_question"].count, all["duplicate_question"].examples.len()), (9, 5));
    }
}
