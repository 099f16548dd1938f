//! What is found in sentences written by hand, by language, half of which may make nothing.

use super::*;
use types::model::{Bank, EventTime, Language, SpeakerKind, Statement, Turn};

fn turn(text: &str) -> Turn {
    let time = EventTime::parse("2024-01-15T10:00:00Z").expect("a time");
    Turn::new(Bank::parse("b").expect("a name"), "t", "Ann", text, time)
}

fn found_in(text: &str, language: Language) -> Vec<Statement> {
    find_statements(&turn(text), language, true)
}

/// Every line of a list: kind, relation, object and the text of the turn; `-` for nothing.
fn check(language: Language, cases: &str) {
    let (mut positives, mut negatives, mut wrong) = (0, 0, Vec::new());
    for line in cases.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [kind, relation, object, text] = columns.as_slice() else { panic!("four columns: {line}") };
        let text = text.replace("\\n", "\n");
        let found = found_in(&text, language);
        let found: Vec<[&str; 3]> =
            found.iter().map(|of| [of.kind.name(), of.relation.as_str(), of.object.as_str()]).collect();
        let object = if *object == "-" { "" } else { object };
        let expected = if *kind == "-" { vec![] } else { vec![[*kind, *relation, object]] };
        *if *kind == "-" { &mut negatives } else { &mut positives } += 1;
        if found != expected {
            wrong.push(format!("{text:?}\n  expected {expected:?}\n  found    {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{language:?}: {} of {}:\n{}", wrong.len(), positives + negatives, wrong.join("\n"));
    assert!(negatives >= positives && positives >= 12, "{language:?}: {positives} positives, {negatives} negatives");
}

#[test]
fn english() {
    check(Language::En, include_str!("cases/en.tsv"));
}

#[test]
fn german() {
    check(Language::De, include_str!("cases/de.tsv"));
}

#[test]
fn french() {
    check(Language::Fr, include_str!("cases/fr.tsv"));
}

#[test]
fn spanish() {
    check(Language::Es, include_str!("cases/es.tsv"));
}

#[test]
fn chinese() {
    check(Language::Zh, include_str!("cases/zh.tsv"));
}

#[test]
fn only_persons_state_and_orders_need_an_assistant() {
    let text = "Always use tabs. I live in Oslo.";
    for kind in [SpeakerKind::Assistant, SpeakerKind::Tool, SpeakerKind::Bot] {
        let said = Turn { kind: Some(kind), ..turn(text) };
        assert_eq!(find_statements(&said, Language::En, true), [], "{kind:?}");
    }
    let said = Turn { kind: Some(SpeakerKind::Person), ..turn(text) };
    assert_eq!(find_statements(&said, Language::En, true).len(), 2);
    assert_eq!(find_statements(&said, Language::En, false).len(), 1, "nobody is there to take the order");
    assert_eq!(find_statements(&said, Language::Ko, true), [], "no table, no statement");
}

#[test]
fn what_is_replaced_is_named_by_its_words() {
    let check = |text: &str, replaces: Option<&str>| {
        let found = found_in(text, Language::En);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].replaces.as_deref(), replaces, "{text}");
    };
    check("Always use tabs instead of spaces.", Some("spaces"));
    check("I no longer live in Oslo.", Some("Oslo"));
    check("Always use 24-hour time.", None);
    check("We moved from Oslo to Rome.", Some("Oslo"));
    check("I changed my mind, I prefer tea.", Some("tea"));
}

#[test]
fn a_plan_has_the_time_that_its_words_name() {
    let found = found_in("I'm going to paint the boat tomorrow.", Language::En);
    let day = EventTime::parse("2024-01-16T00:00:00Z").expect("a time");
    assert_eq!(found[0].time.map(|time| time.start_ms), Some(day.unix_ms));
}

proptest::proptest! {
    /// Whatever was said, nothing panics, and each statement's words are the turn's.
    #[test]
    fn statements_are_words_of_their_turn(text in "(always|never|i live in|i prefer|my name is|[ ,.?\"'’\n我叫住在不要“”é$1-]|[a-z]{1,8}){0,24}") {
        for language in [Language::En, Language::De, Language::Fr, Language::Es, Language::Zh] {
            for statement in found_in(&text, language) {
                proptest::prop_assert!(text.contains(&statement.text), "{:?}", statement);
                proptest::prop_assert!(text.contains(&statement.object), "{:?}", statement);
            }
        }
    }
}
