//! Who acts in a question, and the question in the first person.
//!
//! In: the question's words and the persons that its cues name. Out: the person who acts, if several are named; whether
//! a person does or has what it asks for; and the wording with their names replaced by "I" and "my", whose vector is
//! closer to what they said themselves. Nothing but the names is changed.

use std::ops::Range;

use super::question_words::{QuestionWord, is_auxiliary, words};
use types::model::canonical_name;

/// Words after which a person does not act.
const NOT_ACTING_AFTER: &[&str] = &["to", "from", "with", "for", "by", "about", "of", "and"];

/// An occurrence of a person's name in the question.
struct PersonMention {
    name: String,
    /// Indexes of its words.
    words: Range<usize>,
    possessive: bool,
}

impl PersonMention {
    /// The word before it, in lower case; empty at the beginning.
    fn word_before<'w>(&self, words: &'w [QuestionWord<'_>]) -> &'w str {
        self.words.start.checked_sub(1).and_then(|i| words.get(i)).map_or("", |w| w.lower.as_str())
    }
}

/// The canonical name of the person who acts; absent if fewer than two are named, if two act together, or if grammar
/// does not show it.
pub(super) fn acting_person(words: &[QuestionWord<'_>], persons: &[String]) -> Option<String> {
    let named = person_mentions(words, persons);
    let several = named.iter().any(|n| n.name != named[0].name);
    let together = named.windows(2).any(|pair| {
        let between = words.get(pair[0].words.end..pair[1].words.start).unwrap_or_default();
        matches!(between, [and] if and.lower == "and")
    });
    if !several || together || words.iter().any(|w| w.lower == "both") {
        return None;
    }
    let acting = named.into_iter().find(|n| !n.possessive && !NOT_ACTING_AFTER.contains(&n.word_before(words)));
    acting.map(|n| n.name)
}

/// Whether a person (canonical name) stands behind an auxiliary verb, or owns what follows.
pub(super) fn is_of_person(words: &[QuestionWord<'_>], person: &str) -> bool {
    let named = person_mentions(words, &[person.to_owned()]);
    named.iter().any(|n| n.possessive || is_auxiliary(n.word_before(words)))
}

/// A text in which each of the persons (canonical names) is replaced by "I", or by "my" if the name is possessive;
/// absent if it names none of them.
#[must_use]
pub fn first_person_wording(text: &str, persons: &[String]) -> Option<String> {
    let words = words(text);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for n in person_mentions(&words, persons) {
        let (Some(first), Some(last)) = (words.get(n.words.start), words.get(n.words.end - 1)) else { continue };
        out.push_str(text.get(done..first.range.start)?);
        out.push_str(if n.possessive { "my" } else { "I" });
        done = last.range.end;
    }
    (done > 0).then(|| out + text.get(done..).unwrap_or_default())
}

fn person_mentions(words: &[QuestionWord<'_>], persons: &[String]) -> Vec<PersonMention> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let person = persons.iter().find_map(|p| {
            let length = p.split(' ').count();
            let here = words.get(at..at + length)?;
            let spelled = here.iter().map(|w| canonical_name(w.text)).collect::<Vec<_>>().join(" ");
            (spelled == *p && here.iter().any(QuestionWord::capitalised)).then_some((p, length))
        });
        let Some((name, length)) = person else {
            at += 1;
            continue;
        };
        let possessive = words.get(at + length - 1).is_some_and(|w| w.possessive);
        found.push(PersonMention { name: name.clone(), words: at..at + length, possessive });
        at += length;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn persons() -> Vec<String> {
        ["ines", "paul", "ann lee"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_person_who_acts_is_found() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(acting_person(&words(text), &persons()).as_deref(), expected, "{text}");
        };
        check("What did Ines give to Paul?", Some("ines"));
        check("What did Paul's sister tell Ines about Ann Lee?", Some("ines"));
        check("Why did Ann Lee call Paul?", Some("ann lee"));
        check("What do Ines and Paul like?", None);
        check("What do both Ines, and then Paul, like?", None);
        check("What did Ines sell?", None);
        check("What was given by Ines to Paul?", None);
    }

    #[test]
    fn names_become_i_and_my() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(first_person_wording(text, &persons()).as_deref(), expected, "{text}");
        };
        check("What is Ines's favourite tea?", Some("What is my favourite tea?"));
        check("Would Ann Lee visit Paul?", Some("Would I visit I?"));
        check("Where is the boat?", None);
    }
}
