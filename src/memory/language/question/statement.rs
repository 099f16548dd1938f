//! Turns a question into a statement with a general word in the gap where the answer belongs: "Which song has Omar
//! taught?" becomes "Omar has taught a certain song."
//!
//! In: a question with plain grammar. Out: a sentence in the word order of a fact, whose vector is closer to the
//! missing units than to other questions. It is built from the question's words; it does not name an answer, and it is
//! not a question.

use super::question_words::is_auxiliary;
use crate::language::inflection;
use crate::language::sentences::{is_function_word, sentence_case};

/// The parts of a question in plain grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuestionClause<'q> {
    /// The preposition that opens the question ("in which town"), in lower case.
    preposition: Option<String>,
    /// The question word, or the auxiliary if the question asks for yes or no; in lower case.
    head: String,
    /// The noun after the head: "which old songs" has "old songs".
    noun: String,
    /// In lower case.
    auxiliary: String,
    subject: String,
    /// What follows the subject.
    predicate: Vec<&'q str>,
}

/// The words that replace the question word.
enum GapFiller {
    /// An object after the verb.
    Object(String),
    /// A phrase at the end.
    Ending(String),
    /// None: the question asks when, why, how or whether.
    None,
}

impl<'q> QuestionClause<'q> {
    /// Reads the clause of a question about a named subject. Absent if the grammar is not one of the plain forms.
    pub(super) fn of(question: &'q str) -> Option<Self> {
        let text = question.trim().trim_end_matches(['?', '.', '!', ' ']);
        if text.contains(['?', ';', '\n']) {
            return None;
        }
        let tokens: Vec<&str> = text.split_whitespace().collect();
        let lower: Vec<String> = tokens.iter().map(|t| bare_token(t).to_lowercase()).collect();
        let at = |i: usize| lower.get(i).map_or("", String::as_str);
        let stranded = matches!(at(0), "in" | "on" | "at" | "to" | "for" | "with" | "from" | "by" | "since")
            && matches!(at(1), "what" | "which" | "whom" | "who");
        let head = usize::from(stranded);
        let auxiliary = auxiliary_after(&lower, head)?;
        let subject_end = subject_end(&tokens, auxiliary + 1)?;
        Some(Self {
            preposition: stranded.then(|| at(0).to_owned()),
            head: at(head).to_owned(),
            noun: noun_phrase(tokens.get(head + 1..auxiliary).unwrap_or_default()),
            auxiliary: at(auxiliary).to_owned(),
            subject: tokens.get(auxiliary + 1..subject_end)?.join(" "),
            predicate: tokens.get(subject_end..)?.to_vec(),
        })
    }

    /// The clause as a statement with a general word in the gap; with `more`, a word for others of the same kind ("also
    /// another song"). Absent if it is not clear where the gap belongs.
    pub(super) fn statement(&self, more: bool) -> Option<String> {
        let (words, after_verb) = predicate(&self.predicate, &self.auxiliary, more)?;
        let gap = gap_filler(&self.head, &self.noun, self.preposition.as_deref(), more);
        Some(sentence_case(&format!("{} {}.", self.subject, insert_gap(words, after_verb, gap)?)))
    }
}

fn bare_token(token: &str) -> &str {
    token.trim_matches(|c: char| !c.is_alphanumeric())
}

/// The index of the auxiliary, if it follows the head as in plain grammar.
fn auxiliary_after(lower: &[String], head: usize) -> Option<usize> {
    /// The maximum number of words in the noun phrase between the head and the auxiliary.
    const MAX: usize = 5;
    let at = |i: usize| lower.get(i).map_or("", String::as_str);
    if head == 0 && is_auxiliary(at(0)) {
        return Some(0);
    }
    let reach = match at(head) {
        "what" | "which" | "how" => MAX,
        "who" | "whom" | "when" | "where" | "why" => 0,
        _ => return None,
    };
    (head + 1..=head + 1 + reach).find(|&i| is_auxiliary(at(i)))
}

/// The noun after "which", "what" or "how many", without openings such as "kinds of".
fn noun_phrase(tokens: &[&str]) -> String {
    let mut rest = tokens;
    while let Some((first, tail)) = rest.split_first() {
        let opening = matches!(
            bare_token(first).to_lowercase().as_str(),
            "many" | "much" | "other" | "else" | "all" | "kind" | "kinds" | "type" | "types" | "sort" | "sorts" | "of"
        );
        if !opening {
            break;
        }
        rest = tail;
    }
    rest.join(" ")
}

/// One past the end of the subject, which is a pronoun, or names joined by "and" or commas.
fn subject_end(tokens: &[&str], start: usize) -> Option<usize> {
    let first = tokens.get(start)?;
    if matches!(bare_token(first).to_lowercase().as_str(), "he" | "she" | "they" | "we" | "i" | "you") {
        return Some(start + 1);
    }
    let named = |i: usize| {
        tokens.get(i).is_some_and(|t| {
            let owner = ["'s", "\u{2019}s", "s'"].iter().any(|e| t.ends_with(e));
            !owner && t.chars().next().is_some_and(char::is_uppercase)
        })
    };
    let mut end = start;
    while named(end) || (end > start && tokens.get(end) == Some(&"and") && named(end + 1)) {
        end += 1;
    }
    let companion = tokens.get(end) == Some(&"and")
        && tokens.get(end + 1).is_some_and(|t| matches!(*t, "his" | "her" | "their" | "my" | "the"));
    if end > start && companion {
        end += 3;
    }
    let verb = bare_token(tokens.get(end)?).to_lowercase();
    let grammar = is_function_word(&verb) && !matches!(verb.as_str(), "do" | "have" | "be");
    (end > start && !verb.ends_with("'s") && !grammar).then_some(end)
}

/// The predicate, with the auxiliary merged into its verb and, with `more`, "also" before the verb; and the index after
/// the verb.
fn predicate(tokens: &[&str], auxiliary: &str, more: bool) -> Option<(Vec<String>, usize)> {
    let dropped = |t: &&&str| !matches!(**t, "ever" | "also" | "else");
    let mut words: Vec<String> = tokens.iter().filter(dropped).map(|t| (*t).to_owned()).collect();
    let is_adverb = |w: &&String| w.ends_with("ly") || matches!(w.as_str(), "first" | "both" | "not");
    let adverbs = words.iter().take_while(is_adverb).count();
    let verb = words.get_mut(adverbs)?;
    let mut front: Vec<String> = Vec::new();
    match auxiliary {
        "did" => *verb = inflection::past(verb),
        "does" => *verb = inflection::third_person(verb),
        "do" => {}
        "has" | "have" | "had" if verb.ends_with("ed") => {}
        kept => front.push(kept.to_owned()),
    }
    if more {
        front.push("also".to_owned());
    }
    let after_verb = front.len() + adverbs + 1;
    front.append(&mut words);
    Some((front, after_verb))
}

fn gap_filler(head: &str, noun: &str, preposition: Option<&str>, more: bool) -> GapFiller {
    let plural = noun.ends_with('s') && !noun.ends_with("ss");
    let filler = match (head, noun.is_empty()) {
        ("who" | "whom", _) => if more { "other people" } else { "someone" }.to_owned(),
        ("what" | "which", true) => if more { "other things" } else { "something" }.to_owned(),
        ("where", _) => return GapFiller::Ending(if more { "somewhere else" } else { "somewhere" }.to_owned()),
        ("how", false) if matches!(noun, "long" | "often" | "old" | "far" | "big") => return GapFiller::None,
        ("what" | "which" | "how", false) => match (more, plural) {
            (true, true) => format!("other {noun}"),
            (true, false) => format!("another {noun}"),
            (false, true) => noun.to_owned(),
            (false, false) => format!("a certain {noun}"),
        },
        _ => return GapFiller::None,
    };
    match preposition {
        Some(preposition) => GapFiller::Ending(format!("{preposition} {filler}")),
        None => GapFiller::Object(filler),
    }
}

/// Puts the gap's words where an object belongs: before the first adverbial after the verb, or at the end. Absent if a
/// relative clause makes that place unclear.
fn insert_gap(mut words: Vec<String>, after_verb: usize, gap: GapFiller) -> Option<String> {
    match gap {
        GapFiller::None => {}
        GapFiller::Ending(ending) => words.push(ending),
        GapFiller::Object(_) if words.iter().any(|w| matches!(w.as_str(), "that" | "which" | "who")) => return None,
        GapFiller::Object(object) => {
            let does = words.get(after_verb - 1).is_some_and(|v| matches!(v.as_str(), "did" | "does" | "do"));
            let found = (after_verb..words.len()).find(|&i| does || opens_adverbial(&words, i));
            // "working on in May": a preposition without an object takes this one.
            let stranded = |i: usize| {
                is_preposition(&words, i)
                    && (i + 1 == words.len()
                        || words.get(i + 1).is_some_and(|w| w == "to")
                        || is_preposition(&words, i + 1))
            };
            let at = found.map_or(words.len(), |i| i + usize::from(!does && stranded(i)));
            words.insert(at, object);
        }
    }
    Some(words.join(" "))
}

/// Whether a phrase of place, time or manner begins at a word.
fn opens_adverbial(words: &[String], at: usize) -> bool {
    let word = words.get(at).map_or("", String::as_str);
    // "is planning to do": an infinitive belongs to the verb, "to Ravi" does not.
    let to_someone = word == "to"
        && words.get(at + 1).is_none_or(|n| {
            n.chars().next().is_some_and(char::is_uppercase)
                || matches!(n.as_str(), "the" | "her" | "his" | "their" | "a")
        });
    is_preposition(words, at) || to_someone || word.ends_with("ly")
}

fn is_preposition(words: &[String], at: usize) -> bool {
    const PREPOSITIONS: &[&str] = &[
        "in", "at", "on", "from", "with", "for", "during", "after", "before", "when", "while", "since", "by", "about",
        "last", "next", "because", "as", "into", "of", "through", "near",
    ];
    words.get(at).is_some_and(|w| PREPOSITIONS.contains(&w.as_str()))
}
