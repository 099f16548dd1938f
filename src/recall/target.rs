//! What is missing, as a target: a label, a sentence, and cues (paper, section 3.4).
//!
//! In: the question, its cues, what the evidence leaves uncovered, and the anchors. Out:
//! one target whose sentence has the word order of a fact, so that it lies near the
//! units that are looked for rather than near other questions. The sentence is built
//! from the question's own words and grammar; it names no answer and asks nothing.

use super::{Candidate, form::Form, inflect, words::is_auxiliary};
use crate::{
    language::{
        sentences::is_function_word,
        times::{day_of, render_interval},
    },
    model::{Cues, Interval, Question, QuestionCues, Target, canonical_name},
};

/// Words of a goal label, at most.
const LABEL_WORDS: usize = 4;

/// Describes the missing support.
///
/// `uncovered` are the keywords that the best units do not hold; empty, or for a
/// question after several things, more of the same kind is looked for.
pub(super) fn target(
    question: &Question,
    cues: &QuestionCues,
    form: Form,
    uncovered: &[String],
    anchors: &[&Candidate],
) -> Target {
    let more = form.several() || uncovered.is_empty();
    let sentence = declarative(&question.text, more).unwrap_or_else(|| mention(cues, uncovered, more));
    let time = cues.cues.time.or_else(|| common_day(anchors));
    Target {
        goal: goal(cues, form, uncovered, more),
        sentence,
        cues: Cues { participants: cues.cues.participants.clone(), locations: cues.cues.locations.clone(), time },
    }
}

fn goal(cues: &QuestionCues, form: Form, uncovered: &[String], more: bool) -> String {
    let topics: Vec<&String> = if uncovered.is_empty() || more { topics(cues) } else { uncovered.iter().collect() };
    let opening = match (form == Form::Time, more) {
        (true, _) => "find_time_of",
        (false, true) => "find_other",
        (false, false) => "find_missing",
    };
    let words = topics.iter().flat_map(|k| k.split(|c: char| !c.is_alphanumeric())).filter(|w| !w.is_empty());
    let label = words.take(LABEL_WORDS).map(str::to_lowercase).collect::<Vec<_>>().join("_");
    if label.is_empty() { format!("{opening}_support") } else { format!("{opening}_{label}") }
}

/// The keywords that name no person of the question.
fn topics(cues: &QuestionCues) -> Vec<&String> {
    cues.keywords.iter().filter(|k| !cues.cues.participants.contains(&canonical_name(k))).collect()
}

// ---------------------------------------------------------------- the question as a fact

/// What takes the place of the word that the question asks with.
enum Gap {
    /// An object after the verb.
    Object(String),
    /// A phrase at the end.
    Ending(String),
    /// Nothing: the question asks when, why, how or whether.
    None,
}

/// Turns a question about a named subject into a statement with its gap filled by a
/// general word. Absent when the grammar is not one of the plain forms.
fn declarative(question: &str, more: bool) -> Option<String> {
    let text = question.trim().trim_end_matches(['?', '.', '!', ' ']);
    if text.contains(['?', ';', '\n']) {
        return None;
    }
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let lower: Vec<String> = tokens.iter().map(|t| bare(t).to_lowercase()).collect();
    let at = |i: usize| lower.get(i).map_or("", String::as_str);
    let stranded = matches!(at(0), "in" | "on" | "at" | "to" | "for" | "with" | "from" | "by" | "since")
        && matches!(at(1), "what" | "which" | "whom" | "who");
    let head = usize::from(stranded);
    let auxiliary = auxiliary_after(&lower, head)?;
    let noun = noun_phrase(tokens.get(head + 1..auxiliary).unwrap_or_default());
    let subject_end = subject_end(&tokens, auxiliary + 1)?;
    let subject = tokens.get(auxiliary + 1..subject_end)?.join(" ");
    let (words, after_verb) = predicate(&tokens, subject_end, at(auxiliary), more)?;
    let gap = gap(at(head), &noun, stranded.then(|| at(0)), more);
    Some(sentence_case(&format!("{subject} {}.", place(words, after_verb, gap)?)))
}

fn bare(token: &str) -> &str {
    token.trim_matches(|c: char| !c.is_alphanumeric())
}

/// Where the auxiliary stands, when it follows the head as grammar has it.
fn auxiliary_after(lower: &[String], head: usize) -> Option<usize> {
    /// Words of the longest noun phrase between the head and the auxiliary.
    const LONGEST: usize = 5;
    let at = |i: usize| lower.get(i).map_or("", String::as_str);
    if head == 0 && is_auxiliary(at(0)) {
        return Some(0);
    }
    let reach = match at(head) {
        "what" | "which" | "how" => LONGEST,
        "who" | "whom" | "when" | "where" | "why" => 0,
        _ => return None,
    };
    (head + 1..=head + 1 + reach).find(|&i| is_auxiliary(at(i)))
}

/// The noun after "which", "what" or "how many", openings such as "kinds of" left out.
fn noun_phrase(tokens: &[&str]) -> String {
    let mut rest = tokens;
    while let Some((first, tail)) = rest.split_first() {
        let opening = matches!(
            bare(first).to_lowercase().as_str(),
            "many" | "much" | "other" | "else" | "all" | "kind" | "kinds" | "type" | "types" | "sort" | "sorts" | "of"
        );
        if !opening {
            break;
        }
        rest = tail;
    }
    rest.join(" ")
}

/// One past the subject: a pronoun, or names joined by "and" or commas.
fn subject_end(tokens: &[&str], start: usize) -> Option<usize> {
    let first = tokens.get(start)?;
    if matches!(bare(first).to_lowercase().as_str(), "he" | "she" | "they" | "we" | "i" | "you") {
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
    let verb = bare(tokens.get(end)?).to_lowercase();
    let grammar = is_function_word(&verb) && !matches!(verb.as_str(), "do" | "have" | "be");
    (end > start && !verb.ends_with("'s") && !grammar).then_some(end)
}

/// The predicate with the auxiliary folded into its verb and "also" before it, and the
/// index that follows the verb.
fn predicate(tokens: &[&str], start: usize, auxiliary: &str, more: bool) -> Option<(Vec<String>, usize)> {
    let dropped = |t: &&&str| !matches!(**t, "ever" | "also" | "else");
    let mut words: Vec<String> = tokens.get(start..)?.iter().filter(dropped).map(|t| (*t).to_owned()).collect();
    let is_adverb = |w: &&String| w.ends_with("ly") || matches!(w.as_str(), "first" | "both" | "not");
    let adverbs = words.iter().take_while(is_adverb).count();
    let verb = words.get_mut(adverbs)?;
    let mut front: Vec<String> = Vec::new();
    match auxiliary {
        "did" => *verb = inflect::past(verb),
        "does" => *verb = inflect::third_person(verb),
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

fn gap(head: &str, noun: &str, preposition: Option<&str>, more: bool) -> Gap {
    let plural = noun.ends_with('s') && !noun.ends_with("ss");
    let filler = match (head, noun.is_empty()) {
        ("who" | "whom", _) => if more { "other people" } else { "someone" }.to_owned(),
        ("what" | "which", true) => if more { "other things" } else { "something" }.to_owned(),
        ("where", _) => return Gap::Ending(if more { "somewhere else" } else { "somewhere" }.to_owned()),
        ("how", false) if matches!(noun, "long" | "often" | "old" | "far" | "big") => return Gap::None,
        ("what" | "which" | "how", false) => match (more, plural) {
            (true, true) => format!("other {noun}"),
            (true, false) => format!("another {noun}"),
            (false, true) => noun.to_owned(),
            (false, false) => format!("a certain {noun}"),
        },
        _ => return Gap::None,
    };
    match preposition {
        Some(preposition) => Gap::Ending(format!("{preposition} {filler}")),
        None => Gap::Object(filler),
    }
}

/// Puts the gap's words where an object stands: before the first adverbial after the
/// verb, or at the end when nothing follows it. Absent when a clause stands in the way.
fn place(mut words: Vec<String>, after_verb: usize, gap: Gap) -> Option<String> {
    match gap {
        Gap::None => {}
        Gap::Ending(ending) => words.push(ending),
        Gap::Object(_) if words.iter().any(|w| matches!(w.as_str(), "that" | "which" | "who")) => return None,
        Gap::Object(object) => {
            let does = words.get(after_verb - 1).is_some_and(|v| matches!(v.as_str(), "did" | "does" | "do"));
            let found = (after_verb..words.len()).find(|&i| does || opens_adverbial(&words, i));
            // "working on in May": a preposition without an object of its own takes this one.
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

/// Whether a phrase of place, time or manner begins here.
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

// ---------------------------------------------------------------- the plain mention

/// A sentence for questions whose grammar is not plain: who spoke of what, where, when.
fn mention(cues: &QuestionCues, uncovered: &[String], more: bool) -> String {
    let people: Vec<String> = cues.cues.participants.iter().map(|p| capitals(p)).collect();
    let who = if people.is_empty() { "Someone".to_owned() } else { people.join(" and ") };
    let topics: Vec<&str> = if more || uncovered.is_empty() {
        topics(cues)
            .into_iter()
            .map(String::as_str)
            .filter(|t| !cues.cues.locations.contains(&canonical_name(t)))
            .collect()
    } else {
        uncovered.iter().map(String::as_str).collect()
    };
    let when = cues.cues.time.map(|t| render_interval(&t));
    let dated = |t: &&str| when.as_deref().is_some_and(|w| w.contains(*t) || t.contains(w));
    let topics: Vec<&str> = topics.into_iter().filter(|t| !dated(t)).collect();
    let what = if topics.is_empty() { "things".to_owned() } else { topics.join(" ") };
    let places = cues.cues.locations.iter().map(|l| format!(" in {}", capitals(l))).collect::<String>();
    let when = when.map(|w| format!(" in {w}")).unwrap_or_default();
    let verb = if more { "also talked about other" } else { "talked about" };
    format!("{who} {verb} {what}{places}{when}.")
}

fn capitals(canonical: &str) -> String {
    canonical.split(' ').map(sentence_case).collect::<Vec<_>>().join(" ")
}

fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The local day on which all anchors were said, from its first to its last millisecond.
fn common_day(anchors: &[&Candidate]) -> Option<Interval> {
    let (first, rest) = anchors.split_first()?;
    let said = first.unit.said_at;
    let day = said.local().date();
    if rest.iter().any(|a| a.unit.said_at.local().date() != day) {
        return None;
    }
    Some(day_of(said))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::Bank,
        recall::{cues::cues, form::form, tests::candidate},
    };

    fn made(text: &str, uncovered: &[&str]) -> Target {
        let question = Question { bank: Bank::parse("b").unwrap(), text: text.to_owned(), asked_at: None };
        let uncovered: Vec<String> = uncovered.iter().map(|&u| u.to_owned()).collect();
        target(&question, &cues(&question).unwrap(), form(text), &uncovered, &[])
    }

    fn check(text: &str, uncovered: &[&str], sentence: &str) {
        assert_eq!(made(text, uncovered).sentence, sentence, "{text}");
    }

    #[test]
    fn a_question_becomes_a_fact_with_its_gap_open() {
        check("Which songs has Omar recommended to Priya?", &[], "Omar also recommended other songs to Priya.");
        check("Which song has Omar taught to Priya?", &["taught"], "Omar has also taught another song to Priya.");
        check("What did Omar buy in Lima?", &[], "Omar also bought other things in Lima.");
        check("What is Omar planning to do with Priya?", &[], "Omar is also planning to do other things with Priya.");
        check("What is Omar afraid of?", &["afraid"], "Omar is afraid of something.");
        check("When did Omar and Priya visit the museum?", &["museum"], "Omar and Priya visited the museum.");
        check("Where does Priya swim?", &["swim"], "Priya swims somewhere.");
        check("Who did Priya meet at the fair?", &[], "Priya also met other people at the fair.");
        check("In which town did Priya study?", &["town"], "Priya studied in a certain town.");
        check("How many bowls did Priya break?", &[], "Priya also broke other bowls.");
        check("What did Priya and her family see in Lima?", &[], "Priya and her family also saw other things in Lima.");
        check("What does Omar do to relax?", &["relax"], "Omar does something to relax.");
        check("What is Omar baking in May?", &["baking"], "Omar is baking something in May.");
        check("What is Omar working on in May?", &["working"], "Omar is working on something in May.");
        check("Which tale did Omar tell recently?", &["tale"], "Omar told a certain tale recently.");
        check("Would Omar enjoy a concert?", &["concert"], "Omar would enjoy a concert.");
    }

    #[test]
    fn other_grammar_falls_back_to_a_mention() {
        check("What is Omar's favourite soup?", &["soup"], "Omar talked about soup.");
        check("What did Omar lend a book of that cost a lot?", &["lend", "cost"], "Omar talked about lend cost.");
        check("What Omar said in May 2023?", &["2023"], "Omar talked about things in May 2023.");
        check("Whose hat is green?", &[], "Someone also talked about other hat green.");
        check("What are the hobbies of Omar and Priya?", &[], "Omar and Priya also talked about other hobbies.");
    }

    #[test]
    fn a_target_asks_nothing_and_is_not_the_question() {
        for text in ["Which songs has Omar taught?", "What?", "Is it Omar?", "Who? When?", "Omar", "Why did Omar?"] {
            let made = made(text, &[]);
            assert!(!made.sentence.contains('?'), "{}", made.sentence);
            assert!(made.sentence.ends_with('.'));
            assert_ne!(made.sentence.trim_end_matches('.'), text.trim_end_matches('?'));
            assert!(made.goal.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", made.goal);
        }
    }

    #[test]
    fn labels() {
        assert_eq!(made("Which songs has Omar taught?", &[]).goal, "find_other_songs_taught");
        assert_eq!(made("When did Omar visit the museum?", &["museum"]).goal, "find_time_of_museum");
        assert_eq!(made("What did Omar glaze?", &["glaze"]).goal, "find_missing_glaze");
    }

    #[test]
    fn anchors_of_one_day_lend_it_to_the_target() {
        let (a, b) = (candidate(1, "a", "2023-05-08T23:30:00+02:00"), candidate(2, "b", "2023-05-08T09:00:00+02:00"));
        let day = common_day(&[&a, &b]).unwrap();
        let (start, end) = day.into();
        assert_eq!(start.to_string(), "2023-05-08T00:00:00+02:00");
        assert_eq!(end.to_string(), "2023-05-08T23:59:59.999+02:00");
        let other = candidate(3, "c", "2023-05-09T00:10:00+02:00");
        assert_eq!(common_day(&[&a, &other]), None);
        assert_eq!(common_day(&[]), None);
    }
}
