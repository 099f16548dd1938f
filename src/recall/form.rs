//! The form of a question: does it ask for a time, or for several things?
//!
//! In: the question's wording. Out: facts about its grammar, by general rules of
//! English. Words inside quotation marks say nothing about the form. Never looks at
//! what is remembered.

use super::words::{Word, is_auxiliary, words};
use crate::language::sentences::is_function_word;

/// What kind of answer a question wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Form {
    /// It asks when something was, or how long it took.
    pub(super) time: bool,
    /// It asks for a list, a number of things, or several things at once: one unit
    /// rarely holds the whole answer.
    pub(super) several: bool,
    /// It asks how many, or how often.
    pub(super) count: bool,
    /// It asks what would, might or could be, or for a yes or no: what is remembered bears
    /// on the answer without stating it.
    pub(super) inference: bool,
}

/// Reads the form of a question.
pub(super) fn form(question: &str) -> Form {
    let plain = without_quotes(question);
    let words = words(&plain);
    Form {
        time: asks_time(&words),
        several: asks_several(&words),
        count: asks_count(&words),
        inference: asks_inference(&words),
    }
}

/// Nouns that stand for a time after "what", "which" or "how".
const TIME_NOUNS: &[&str] = &["date", "day", "month", "year", "season", "week", "weekend", "time", "long", "ago"];

fn asks_time(words: &[Word<'_>]) -> bool {
    let lower = |i: usize| words.get(i).map_or("", |w| w.lower.as_str());
    // Later in the sentence "when" joins clauses; only at its head, or after a
    // preposition there ("since when"), does it ask.
    let head = usize::from(matches!(lower(0), "since" | "until" | "from" | "by" | "and" | "in" | "on" | "at" | "for"));
    lower(head) == "when" || (matches!(lower(head), "what" | "which" | "how") && TIME_NOUNS.contains(&lower(head + 1)))
}

fn asks_count(words: &[Word<'_>]) -> bool {
    words.windows(2).any(|pair| match pair {
        [how, many] => how.lower == "how" && matches!(many.lower.as_str(), "many" | "often"),
        _ => false,
    })
}

/// Verbs that ask for a judgement rather than for what was said; lower case.
const INFERENCE: &[&str] = &["would", "might", "likely", "could", "should", "probably", "considered"];

fn asks_inference(words: &[Word<'_>]) -> bool {
    words.first().is_some_and(|w| is_auxiliary(&w.lower)) || words.iter().any(|w| INFERENCE.contains(&w.lower.as_str()))
}

fn asks_several(words: &[Word<'_>]) -> bool {
    let at = |i: usize| words.get(i).map_or("", |w| w.lower.as_str());
    (0..words.len()).any(|i| match at(i) {
        "both" | "all" | "list" | "each" | "every" | "and" | "various" | "several" => true,
        "how" => matches!(at(i + 1), "many" | "often"),
        "what" | "which" => {
            matches!(at(i + 1), "are" | "were" | "all" | "else" | "other")
                || (matches!(at(i + 1), "kinds" | "types" | "sorts"))
                || plural_noun_after(words, i + 1)
        }
        "who" => matches!(at(i + 1), "are" | "were" | "all" | "else"),
        _ => false,
    })
}

/// Whether "which" or "what" opens a noun phrase that ends in a plural: "which old
/// films did …". A verb in -s ("what makes …") is followed by no auxiliary.
fn plural_noun_after(words: &[Word<'_>], from: usize) -> bool {
    /// Words of the longest noun phrase that is looked at.
    const LONGEST: usize = 4;
    let phrase: Vec<&Word<'_>> =
        words.iter().skip(from).take(LONGEST).take_while(|w| !is_function_word(&w.lower)).collect();
    let closes = words
        .get(from + phrase.len())
        .is_none_or(|w| is_auxiliary(&w.lower) || matches!(w.lower.as_str(), "of" | "by" | "that" | "about"));
    closes && phrase.last().is_some_and(|w| !w.possessive && is_plural(&w.lower))
}

fn is_plural(lower: &str) -> bool {
    const IRREGULAR: &[&str] = &["people", "children", "men", "women", "feet", "mice", "media"];
    let regular = lower.len() > 3 && lower.ends_with('s') && !["ss", "us", "is"].iter().any(|e| lower.ends_with(e));
    regular || IRREGULAR.contains(&lower)
}

/// The text with everything between double quotation marks left out.
fn without_quotes(text: &str) -> String {
    let mut inside = false;
    text.chars()
        .filter(|&c| match c {
            '"' => {
                inside = !inside;
                false
            }
            '\u{201c}' => {
                inside = true;
                false
            }
            '\u{201d}' => {
                inside = false;
                false
            }
            _ => !inside,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(question: &str, time: bool, several: bool) {
        let found = form(question);
        assert_eq!((found.time, found.several), (time, several), "{question}");
    }

    #[test]
    fn times() {
        check("When did Ines move house?", true, false);
        check("How long has Ines played the oboe?", true, false);
        check("In which month did the shop open?", true, false);
        check("Since when has Ines had a cat?", true, false);
        check("What did Ines sing when the lights went out?", false, false);
        check("What did the watch cost?", false, false);
    }

    #[test]
    fn several_things() {
        check("Which films has Ines seen twice?", false, true);
        check("What old instruments does Ines repair?", false, true);
        check("What are the hobbies of Ines?", false, true);
        check("How many cats does Ines have?", false, true);
        check("What do Ines and Paul like?", false, true);
        check("What kinds of soup did Ines cook?", false, true);
        check("Which children were there?", false, true);
        check("Which series of books does she read?", false, true);
    }

    #[test]
    fn one_thing() {
        check("Which film has Ines seen?", false, false);
        check("What makes Ines laugh?", false, false);
        check("What is Ines's address?", false, false);
        check("Who wrote \"Salt and Stones\"?", false, false);
        check("What bus did Ines take?", false, false);
        check("", false, false);
    }
}
