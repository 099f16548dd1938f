//! The type of a question: what kind of answer it wants.
//!
//! In: the question's wording. Out: one type, by general rules of English, or by the phrases of another language. Words
//! inside double quotation marks do not count. The memory is not read.

use std::sync::LazyLock;

use regex::Regex;

use super::quoted_ranges::without_quotes;
use crate::language::multilingual::{QuestionIntent, question_intent};
use types::model::Language;

/// What kind of answer a question wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QuestionType {
    /// When something was, or how long it took.
    Time,
    /// How many, how often, how much.
    Count,
    /// What two people have in common, or what both do.
    Both,
    /// What would or might happen, or yes or no: the memory supports the answer without stating it.
    Inference,
    /// Several things.
    List,
    /// What someone does habitually: any of several mentions may hold the answer.
    Habit,
    /// One thing.
    #[default]
    Single,
}

impl QuestionType {
    /// Reads the type of a question in a language.
    #[must_use]
    pub fn of_language(question: &str, language: Language) -> Self {
        if language.is_english() {
            return Self::of(question);
        }
        match question_intent(question, language) {
            Some(QuestionIntent::When) => Self::Time,
            Some(QuestionIntent::Count) => Self::Count,
            Some(QuestionIntent::List | QuestionIntent::Order) => Self::List,
            Some(QuestionIntent::Whether) => Self::Inference,
            Some(QuestionIntent::Summary) | None => Self::Single,
        }
    }

    /// Reads the type of a question in English.
    #[must_use]
    pub fn of(question: &str) -> Self {
        // "has to" states a duty; it is not a perfect tense.
        let plain = without_quotes(question).to_lowercase().replace('\u{2019}', "'");
        let plain = plain.trim().replace(" has to ", " must ").replace(" have to ", " must ");
        PATTERNS.iter().find(|(_, pattern)| pattern.is_match(&plain)).map_or(Self::Single, |(kind, _)| *kind)
    }

    /// Whether the whole answer is rarely in one unit.
    pub fn wants_several(self) -> bool {
        matches!(self, Self::Count | Self::Both | Self::List)
    }
}

/// The patterns of each type, in the order in which they are tried; the first match decides.
const PATTERNS_BY_TYPE: &[(QuestionType, &str)] = {
    use QuestionType::{Both, Count, Habit, Inference, List, Single, Time};
    &[
        (
            Time,
            r"^(?:in |on |since |by |for |during |around |until )?(?:when|how long|how old|what (?:date|day|month|year|time)|which (?:date|day|month|year|week|weekend|season))\b",
        ),
        (Count, r"\bhow (?:many|often|much)\b"),
        (Both, r"\b(?:both|in common|(?:does|do|did|has|have) \w+ and \w+)\b"),
        (
            Inference,
            r"^(?:would|might|could|is|are|was|were|do|does|did|has|have|had|can|will|should)\b|\b(?:would|might|likely|could|probably|considered)\b",
        ),
        (List, r"^(?:in )?(?:what|which)\b.*\b(?:kinds?|types?|sorts?|ways)\b"),
        // The perfect tense asks for all that was done so far.
        (
            List,
            r"^(?:(?:in|on|at|to|from|for|with|about|of) )?(?:what|which|where|who|whom)\b.*\b(?:has|have)(?:\W+\w+){0,4}\W+(?:been|done|made|had|met|seen|gone|\w+ed|\w+en|\w+[^aeiou\W]own|read|bought|taught|won|gotten|got|found|given|set|put|built|kept|lost|run|sung|written)\b",
        ),
        // This comes before the rule for plurals, which would take a name that ends in -s for a plural.
        (Habit, r"^what does "),
        (Single, r"^(?:what|who) was "),
        // A noun in the plural after "what" or "which".
        (
            List,
            r"^(?:in )?(?:what|which)(?: are| were)?(?: (?:the|some|all)){0,2}(?: [\w'+/-]+){0,3}? (?:[\w/-]+(?:[^siu\W]s|ies)|people|children|men|women|series)(?:'|es)? (?:do|does|did|has|have|had|are|were|is|was|that|to|for|of|at|in|\w+s)\b",
        ),
        (List, r"^list\b|^(?:what|who|which) (?:are|were) all\b|\bwhat else\b"),
        (Habit, r"^(?:what (?:do|does|are)|(?:where|who|which \w+|what \w+) (?:do|does)) "),
    ]
};

/// The compiled patterns; a test checks that all of them compile.
/// Whether an English wording asks what something costs.
pub(super) fn asks_price(question: &str) -> bool {
    let plain = without_quotes(question).to_lowercase();
    PRICE.as_ref().is_some_and(|pattern| pattern.is_match(&plain))
}

/// `None` only if the pattern were malformed, which a test rules out.
static PRICE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^(?:and |so )?(?:how (?:much|expensive)\b.*\b(?:cost|costs|pay|pays|paid|spend|spent|charge|charged|is|are|was|were|rent|fee|salary|earn|earns|earned)\b|what(?:'s|’s| is| was| are| were| does| did| do)\b.*\b(?:price|cost|costs|rent|fee|fees|salary)\b)",
    )
    .ok()
});

static PATTERNS: LazyLock<Vec<(QuestionType, Regex)>> = LazyLock::new(|| {
    PATTERNS_BY_TYPE.iter().filter_map(|(kind, pattern)| Some((*kind, Regex::new(pattern).ok()?))).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: QuestionType, questions: &[&str]) {
        for question in questions {
            assert_eq!(QuestionType::of(question), expected, "{question}");
        }
    }

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(PATTERNS.len(), PATTERNS_BY_TYPE.len());
        assert!(PRICE.is_some());
    }

    #[test]
    fn what_something_costs() {
        for (question, price) in [
            ("How much does the flat cost?", true),
            ("What's the rent of the flat?", true),
            ("What did the dentist charge as a fee?", true),
            ("How much did Bo pay for the boat?", true),
            ("What is the flat like?", false),
            ("How many flats did they see?", false),
        ] {
            assert_eq!(asks_price(question), price, "{question}");
        }
    }

    #[test]
    fn questions_for_a_time() {
        check(
            QuestionType::Time,
            &[
                "When did Ines move house?",
                "How long has Ines played the oboe?",
                "In which month did the shop open?",
                "Since when has Ines had a cat?",
            ],
        );
    }

    #[test]
    fn questions_for_several_things() {
        check(
            QuestionType::List,
            &[
                "Which films has Ines seen twice?",
                "What old instruments does Ines repair?",
                "What are the hobbies of Ines?",
                "What kinds of soup did Ines cook?",
                "Which children were there?",
                "Which series of books does she read?",
                "What has Ines bought?",
                "Where has Ines been?",
            ],
        );
        check(QuestionType::Count, &["How many cats does Ines have?", "How often does she row?"]);
        check(QuestionType::Both, &["What do Ines and Paul like?", "What do the two have in common?"]);
    }

    #[test]
    fn questions_for_one_thing() {
        check(
            QuestionType::Single,
            &[
                "Which film did Ines see?",
                "What made Ines laugh?",
                "What did Ines sing when the lights went out?",
                "Who wrote \"Salt and Stones\"?",
                "What bus did Ines take?",
                "What must she do?",
                "What has to happen?",
                "",
            ],
        );
        check(QuestionType::Habit, &["Where does Ines row?", "What does Ines sell?"]);
        check(QuestionType::Inference, &["Would Ines like a kayak?", "Is Ines married?", "What might Ines buy next?"]);
    }
}
