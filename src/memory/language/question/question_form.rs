//! The form of a question to a memory of conversations with an assistant: whose words it asks for.
//!
//! In: the question's wording. Out: one form, by general rules of English or the phrases of another language. The
//! memory is not read.

use std::sync::LazyLock;

use regex::Regex;

use crate::language::multilingual::{QuestionIntent, is_asking_mark, is_first_person, question_intent};
use types::model::Language;

/// Whose words a question asks for, and in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QuestionForm {
    /// What the asker said, did, has or is.
    AboutMe,
    /// In which order something was said.
    Order,
    /// A summary of what was said.
    Summary,
    /// What the assistant said.
    Told,
    /// Something about anyone or anything, no matter who said it: one question in the third person.
    General,
    /// Something to do: advice, a text, a plan. What was said before helps, but does not hold the answer.
    #[default]
    Task,
}

impl QuestionForm {
    /// Reads the form of a question in a language.
    #[must_use]
    pub fn of_language(question: &str, language: Language) -> Self {
        if language.is_english() {
            return Self::of(question);
        }
        let of_me = is_first_person(question, language);
        match question_intent(question, language) {
            Some(QuestionIntent::Summary) if of_me => Self::Summary,
            Some(QuestionIntent::Order) if of_me => Self::Order,
            _ if question.trim_end().ends_with(is_asking_mark) => {
                if of_me {
                    Self::AboutMe
                } else {
                    Self::General
                }
            }
            _ => Self::Task,
        }
    }

    /// Reads the form of a question in English.
    #[must_use]
    pub fn of(question: &str) -> Self {
        let plain = question.trim().to_lowercase().replace('\u{2019}', "'");
        let is = |pattern: &QuestionPattern, text: &str| pattern.as_ref().is_some_and(|pattern| pattern.is_match(text));
        let asked = POLITE.as_ref().map_or(plain.as_str().into(), |polite| polite.replace(&plain, ""));
        let of_me = is(&FIRST_PERSON, &plain);
        if of_me && is(&SUMMARY, &plain) {
            Self::Summary
        } else if of_me && is(&ORDER, &plain) {
            Self::Order
        } else if is(&TOLD, &asked) {
            Self::Told
        } else if is_about_me(&plain, &asked) && !is(&ADVICE, &plain) {
            Self::AboutMe
        } else if !of_me && !is(&SPOKEN_TO, &plain) && !is_request(question) && is_one_short_question(&plain) {
            Self::General
        } else {
            Self::Task
        }
    }
}

/// Whether a wording asks for something to be done: for advice, or in an imperative.
pub(super) fn is_request(question: &str) -> bool {
    let plain = question.trim().to_lowercase().replace('\u{2019}', "'");
    plain.ends_with(['.', '!']) || [&ADVICE, &HELP].into_iter().flat_map(|p| p.as_ref()).any(|p| p.is_match(&plain))
}

/// One short question in the first person.
fn is_about_me(plain: &str, asked: &str) -> bool {
    is_one_short_question(plain) && FIRST_PERSON.as_ref().is_some_and(|pattern| pattern.is_match(asked))
}

/// One sentence, which asks, of at most [`MAX_WORDS`] words.
fn is_one_short_question(plain: &str) -> bool {
    let ends = plain.char_indices().filter(|(at, c)| {
        let after = plain.get(at + c.len_utf8()..).unwrap_or_default();
        matches!(c, '.' | '!' | '?') && (after.is_empty() || after.starts_with(char::is_whitespace))
    });
    plain.ends_with('?') && ends.count() <= 1 && plain.split_whitespace().count() <= MAX_WORDS
}

/// The maximum number of words in a question that is no task.
const MAX_WORDS: usize = 45;

/// `None` only if a pattern were malformed, which a test rules out.
type QuestionPattern = LazyLock<Option<Regex>>;

static FIRST_PERSON: QuestionPattern = LazyLock::new(|| Regex::new(r"\b(?:i|i'm|i've|i'd|my|me|mine|we|our)\b").ok());
/// Words to an assistant.
static SPOKEN_TO: QuestionPattern = LazyLock::new(|| Regex::new(r"\b(?:you|your|yours|us|let's)\b").ok());
/// Words that only make a question polite; the "me" in them is not what is asked about.
static POLITE: QuestionPattern = LazyLock::new(|| {
    Regex::new(r"^(?:can|could|will|would) you(?: please)?(?: (?:give|tell|show|help|remind) me)?").ok()
});
static SUMMARY: QuestionPattern = LazyLock::new(|| {
    Regex::new(
        r"\bsummar(?:y|i[sz]e)|\boverview\b|\brecap\b|\bhow (?:has|have|did|was) (?:my|our|the|i)\b.*\b(?:progress|evolve|develop|chang|improv)|\bwalk me through (?:how|the (?:development|progress|evolution))",
    )
    .ok()
});
static ORDER: QuestionPattern = LazyLock::new(|| {
    Regex::new(r"\border (?:in which|that|of)\b|\bin (?:which |what )?order\b|\bsequence of\b|\bchronolog|\btimeline\b")
        .ok()
});
static TOLD: QuestionPattern = LazyLock::new(|| {
    Regex::new(
        r"\b(?:did|had|have) you\b|\byou (?:recommended|suggested|told|said|gave|mentioned|explained|proposed|advised|listed|provided|described|outlined|recommend me)\b|\byour (?:suggestions?|advice|recommendations?|answers?|proposals?|explanations?)\b",
    )
    .ok()
});
static ADVICE: QuestionPattern = LazyLock::new(|| {
    Regex::new(
        r"^(?:how do i|(?:how|what|which|where|when) (?:should|can|could|would) i)\b|\b(?:would|should|do) you (?:suggest|recommend|think|advise)|^(?:can|could|would|will) you (?:please )?(?:write|draft|create|make|plan|design|build|implement|fix|explain|recommend|suggest|show|give me (?:a|an|some))\b",
    )
    .ok()
});
/// Words that ask for help without a polite verb in front.
static HELP: QuestionPattern = LazyLock::new(|| Regex::new(r"\bshould i\b|\bhelp me\b").ok());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_well_formed() {
        assert!(
            [&FIRST_PERSON, &SPOKEN_TO, &POLITE, &SUMMARY, &ORDER, &TOLD, &ADVICE, &HELP]
                .into_iter()
                .all(|pattern| pattern.is_some())
        );
    }

    #[test]
    fn requests() {
        for (question, request) in [
            ("What should I cook for the user?", true),
            ("Could you draft a plan for my week?", true),
            ("Do you recommend a train?", true),
            ("Write a mail to my landlord.", true),
            ("How can I fix the hull, and what should I buy?", true),
            ("Where do I keep my kayak?", false),
            ("What did you recommend?", false),
            ("kayak colour", false),
            ("", false),
        ] {
            assert_eq!(is_request(question), request, "{question}");
        }
    }

    #[test]
    fn forms() {
        use QuestionForm::{AboutMe, General, Order, Summary, Task, Told};
        for (question, form) in [
            ("When did I move to Lisbon?", AboutMe),
            ("Where do I keep my kayak?", AboutMe),
            ("Can you remind me what our team decided about the roof?", AboutMe),
            ("Can you list the order in which I brought up the boats?", Order),
            ("In what order did we talk about my trips?", Order),
            ("Give me a summary of my work on the shed.", Summary),
            ("How has my running improved over the months?", Summary),
            ("What did you tell me about glue?", Told),
            ("Which of your suggestions was cheapest?", Told),
            ("How should I oil the hull?", Task),
            ("Write a mail to my landlord.", Task),
            ("Could you draft a plan for my week?", Task),
            ("Who repairs accordions?", General),
            ("On March 13, which friend did Lu contact during his lunch break, and why?", General),
            ("What did the electrician do last week?", General),
            ("What's next? The hull is dry.", Task),
            ("What's the next step for us?", Task),
            ("What do you need for the plan?", Task),
            ("The bench press changes are in.", Task),
            ("", Task),
        ] {
            assert_eq!(QuestionForm::of(question), form, "{question}");
        }
    }
}
