//! Keywords, persons, places and times of whole questions.

use proptest::prelude::*;

use super::{keywords::MAX_KEYWORDS, *};
use types::model::{Bank, EventTime, Question, canonical_name};

fn question(text: &str) -> Question {
    Question::new(Bank::parse("b").unwrap(), text)
}

fn check(text: &str, keywords: &[&str], persons: &[&str], places: &[&str]) {
    let question = question(text);
    let read = ParsedQuestion::of(&question);
    assert_eq!(read.keywords(), keywords, "keywords of {text}");
    assert_eq!(read.cues().participants, persons, "persons of {text}");
    assert_eq!(read.cues().locations, places, "places of {text}");
}

#[test]
fn persons_and_keywords() {
    check("Which songs has Omar taught to Priya?", &["songs", "Omar", "taught", "Priya"], &["omar", "priya"], &[]);
    check("What is Priya's favourite soup?", &["Priya", "favourite", "soup"], &["priya"], &[]);
    check("Priya's brother paints what?", &["Priya", "brother", "paints"], &["priya"], &[]);
    check("Why did Mrs. Okafor quit?", &["Okafor", "quit"], &["okafor"], &[]);
    check("Did June call Anna Maria Berg?", &["June", "call", "Anna Maria Berg"], &["anna maria berg", "june"], &[]);
    check("Tell me about dogs.", &["Tell", "dogs"], &[], &[]);
    check("What does Omar like?", &["Omar", "like"], &["omar"], &[]);
    check("Who is it?", &[], &[], &[]);
}

#[test]
fn places() {
    check("What did Omar buy in Lima?", &["Omar", "buy", "Lima"], &["omar"], &["lima"]);
    check("Whom did Omar meet in Lima and Quito?", &["Omar", "meet", "Lima", "Quito"], &["omar"], &["lima", "quito"]);
    check("When did Priya move to New Zealand?", &["Priya", "move", "New Zealand"], &["priya"], &["new zealand"]);
    check("What did Priya give to Omar?", &["Priya", "Omar"], &["omar", "priya"], &[]);
    check("What happened at Omar's house?", &["Omar", "house"], &["omar"], &[]);
    check("Who swam at the Harbour festival?", &["swam", "Harbour", "festival"], &[], &[]);
    check("Is Priya interested in Buddhism?", &["Priya", "interested", "Buddhism"], &["priya"], &[]);
}

#[test]
fn titles_are_neither() {
    check(
        "Did Omar lend \"The Glass Orchard\" to Priya?",
        &["Omar", "lend", "The Glass Orchard", "Priya"],
        &["omar", "priya"],
        &[],
    );
    check("Does Omar keep 'Salt Road'?", &["Omar", "keep", "Salt Road"], &["omar"], &[]);
    check("Has Priya seen Hill of the Crows?", &["Priya", "seen", "Hill of the Crows"], &["priya"], &[]);
    check("What did NASA send Omar for Christmas?", &["NASA", "send", "Omar", "Christmas"], &["omar"], &[]);
}

#[test]
fn six_keywords_at_most_and_topics_before_names() {
    check(
        "Which blue ceramic bowl with painted swallows did Omar glaze and fire for Priya?",
        &["blue", "ceramic", "bowl", "painted", "swallows", "glaze"],
        &["omar", "priya"],
        &[],
    );
}

/// A topic that nobody mentions is reported as missing, so it must be what the question is about.
#[test]
fn times_and_words_of_asking_are_no_topics() {
    for (text, expected) in [
        ("What did Jonas sell on 5 May 2025?", &["jonas", "sell"][..]),
        ("What did Jonas sell on May 5, 2025?", &["jonas", "sell"]),
        ("What did Jonas sell on 2025-05-20?", &["jonas", "sell"]),
        ("What happened on 3 July 2023?", &[]),
        ("What did they discuss in October 2023?", &[]),
        ("Do you remember which ferry sank in 2023?", &["ferry", "sank"]),
        ("Wie heißt der Tierarzt?", &["tierarzt"]),
        ("Wogegen ist Lena allergisch, hat sie gesagt?", &["lena", "allergisch"]),
        ("Was ist am 5. Mai 2025 passiert?", &[]),
        ("¿Cómo se llama el perro de Lucía?", &["perro", "lucía"]),
        ("她叫什么名字？", &["叫", "名字"]),
        ("请问小明对什么过敏？", &["小明", "过敏"]),
    ] {
        let question = question(text);
        let grammar = ["what", "which", "did", "do", "on", "in", "they", "you"];
        let read = ParsedQuestion::of(&question);
        let topics: Vec<&str> = read.topics().filter(|word| !grammar.contains(word)).collect();
        assert_eq!(topics, expected, "{text}");
    }
}

#[test]
fn times_need_grounds_and_form_a_hull() {
    let asked = Question {
        asked_at: Some(EventTime::parse("2024-03-10T12:00:00Z").unwrap()),
        ..question("What did Omar do yesterday?")
    };
    let time = |question: &Question| ParsedQuestion::of(question).cues().time;
    assert_eq!(time(&question("What did Omar do yesterday?")), None);
    let day = time(&asked).unwrap();
    assert_eq!((day.end_ms - day.start_ms) / 3_600_000, 23);
    let both = time(&question("What changed between 2 May 2023 and 4 July 2023?")).unwrap();
    let (start, end) = both.into();
    assert_eq!(start.local().date(), jiff::civil::date(2023, 5, 2));
    assert_eq!(end.local().date(), jiff::civil::date(2023, 7, 4));
}

proptest! {
    #[test]
    fn nothing_is_invented(text in "[A-Za-z'\" .,?0-9éß-]{0,80}") {
        let question = question(&text);
        let read = ParsedQuestion::of(&question);
        let lower = canonical_name(&text);
        prop_assert!(read.keywords().len() <= MAX_KEYWORDS);
        for keyword in read.keywords() {
            prop_assert!(text.contains(keyword.as_str()), "{:?} of {:?}", keyword, text);
        }
        for name in read.cues().participants.iter().chain(&read.cues().locations) {
            prop_assert!(lower.contains(name.as_str()), "{:?} of {:?}", name, text);
        }
    }
}

#[test]
fn a_word_is_written_as_a_name_with_a_capital_inside_a_sentence() {
    for (text, word, expected) in [
        ("Where does Ann keep it?", "ann", true),
        ("where does ann keep it?", "ann", false),
        ("Kayak?", "kayak", false),
        ("I saw it. Kayak or canoe?", "kayak", false),
        ("Where is the Kayak?", "kayak", true),
        ("What did Bo do in Lisbon?", "lisbon", false),
        ("Wo ist das Kajak?", "kajak", false),
        ("カヤックはどこですか", "カヤック", false),
    ] {
        let question = Question::new(Bank::parse("b").unwrap(), text);
        assert_eq!(ParsedQuestion::of(&question).is_written_as_name(word), expected, "{text}");
    }
    let question = Question::new(Bank::parse("b").unwrap(), "Where is the kayak?");
    let read = ParsedQuestion::of(&question);
    let names = |left_out: &[String]| read.names_without(left_out).collect::<Vec<_>>();
    assert!(names(&[]).contains(&"kayak".to_owned()) && !names(&["kayak".to_owned()]).contains(&"kayak".to_owned()));
    assert_eq!(names(&[]), read.names().collect::<Vec<_>>());
}
