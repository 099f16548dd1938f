//! The target of a round: a label, a sentence and cues that describe the missing support (paper, section 3.4).
//!
//! In: the question, its cues, the keywords that the evidence does not cover, and the anchors.
//! Out: one target. Its sentence has the word order of a statement, so that its vector is close to
//! the missing units rather than to other questions. It names no answer and asks nothing.

use super::EvidenceCandidate;
use crate::language::{
    question::{ParsedQuestion, QuestionType},
    sentences::sentence_case,
    times::{day_of, render_interval},
};
use types::model::{Cues, Interval, QuestionCues, Target, canonical_name};

/// Most words of a goal's label.
const LABEL_WORDS: usize = 4;

/// Describes the missing support.
///
/// `uncovered` are the keywords that the best units do not hold. If there are none, or if the question
/// asks for several things, the target is more of the same kind.
pub(super) fn target(
    question: &ParsedQuestion<'_>,
    cues: &QuestionCues,
    uncovered: &[String],
    anchors: &[&EvidenceCandidate],
) -> Target {
    let more = question.question_type().wants_several() || uncovered.is_empty();
    let sentence = question.statement(more).unwrap_or_else(|| mention(cues, uncovered, more));
    let time = cues.cues.time.or_else(|| common_day(anchors));
    Target {
        goal: goal(cues, question.question_type(), uncovered, more),
        sentence,
        cues: Cues { participants: cues.cues.participants.clone(), locations: cues.cues.locations.clone(), time },
    }
}

fn goal(cues: &QuestionCues, question_type: QuestionType, uncovered: &[String], more: bool) -> String {
    let topics: Vec<&String> = if uncovered.is_empty() || more { topics(cues) } else { uncovered.iter().collect() };
    let opening = match (question_type == QuestionType::Time, more) {
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

/// The sentence for a question whose grammar is not plain: who talked about what, where and when.
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

/// The local day on which all anchors were said, from its first to its last millisecond. `None` if
/// they were said on several days.
fn common_day(anchors: &[&EvidenceCandidate]) -> Option<Interval> {
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
    use crate::recall::{
        question_cues::{parse_question, question_cues},
        tests::candidate,
    };
    use types::model::{Bank, Question};

    fn made(text: &str, uncovered: &[&str]) -> Target {
        let question = Question::new(Bank::parse("b").unwrap(), text);
        let uncovered: Vec<String> = uncovered.iter().map(|&u| u.to_owned()).collect();
        let question = parse_question(&question).unwrap();
        target(&question, &question_cues(&question), &uncovered, &[])
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
    fn a_target_asks_nothing_and_does_not_repeat_the_question() {
        for text in ["Which songs has Omar taught?", "What?", "Is it Omar?", "Who? When?", "Omar", "Why did Omar?"] {
            let made = made(text, &[]);
            assert!(!made.sentence.contains('?'), "{}", made.sentence);
            assert!(made.sentence.ends_with('.'));
            assert_ne!(made.sentence.trim_end_matches('.'), text.trim_end_matches('?'));
            assert!(made.goal.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", made.goal);
        }
    }

    #[test]
    fn labels_name_the_goal_and_its_topics() {
        assert_eq!(made("Which songs has Omar taught?", &[]).goal, "find_other_songs_taught");
        assert_eq!(made("When did Omar visit the museum?", &["museum"]).goal, "find_time_of_museum");
        assert_eq!(made("What did Omar glaze?", &["glaze"]).goal, "find_missing_glaze");
    }

    #[test]
    fn a_target_takes_the_day_that_all_anchors_share() {
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
