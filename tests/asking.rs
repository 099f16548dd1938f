//! What comes with a question: who asks, and what was said before.

use nouns::model::{Bank, Question, SaidBefore};
use ripplemem::pipeline::Service;

use super::support::{fails, ingest, lines, open, pipeline, ripplemem, write};

const BANK: &str = "boats";

fn boats(home: &std::path::Path) -> Service {
    let mut service = open(&pipeline(home, "extract.unit_turns = 1"));
    let turns = [
        ("1", "Ann Lee", "I keep my kayak in the old boathouse."),
        ("2", "Bo", "I keep my kayak in the cellar at home."),
        ("3", "Ann Lee", "The violin is at the luthier in Malmö until Friday."),
        ("4", "Bo", "The accordion has a torn bellows since the summer."),
        ("5", "Ann Lee", "We could row to the island with the others on Sunday."),
    ];
    ingest(&mut service, &write(&home.join("in.jsonl"), lines(BANK, "s", &turns)));
    service
}

fn question(text: &str) -> Question {
    Question::new(Bank::parse(BANK).unwrap(), text)
}

#[test]
fn i_and_my_are_the_asker() {
    let home = tempfile::tempdir().unwrap();
    let service = boats(home.path());
    let first = |asker: &str| {
        let asked = Question { asker: Some(asker.to_owned()), ..question("Where do I keep my kayak?") };
        let found = service.ask(&asked).unwrap();
        assert_eq!(found.question.asker.as_deref(), Some(asker), "it stands in the answer");
        assert!(found.trace.cues.cues.participants.contains(&asker.to_lowercase()));
        found.units[0].sources.clone()
    };
    assert_eq!(
        (first("Ann Lee"), first("Bo"), first("ann")),
        (vec!["1".to_owned()], vec!["2".to_owned()], vec!["1".to_owned()])
    );
    let stranger = Question { asker: Some("Cy".to_owned()), ..question("Where do I keep my kayak?") };
    let refused = service.ask(&stranger).unwrap_err().to_string();
    assert!(refused.contains("\"Cy\" does not speak") && refused.contains("Ann Lee, Bo"), "{refused}");
}

/// What is asked of a memory of two turns, and what an agent's user said once.
#[test]
fn what_nobody_mentions_is_not_supported_and_what_helps_a_task_is() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(home.path(), ""));
    let turns = [
        ("1", "user", "I moved to Lisbon in May."),
        ("2", "assistant", "Lisbon is lovely. Is there anything else to remember?"),
        ("3", "user", "My wedding is on 7 June. I'm vegetarian."),
    ];
    ingest(&mut service, &write(&home.path().join("in.jsonl"), lines(BANK, "s", &turns)));
    let asked = |text: &str| service.ask(&question(text)).unwrap();
    for (text, words) in [
        ("What is the capital of Mongolia?", "nobody mentions \"capital\", \"mongolia\""),
        ("How old is my brother?", "nobody mentions \"old\", \"brother\""),
        ("Which laptop did Hana buy?", "\"hana\""),
    ] {
        let found = asked(text);
        let first = found.context.lines().next().unwrap_or_default();
        assert!(!found.supported && first.contains(words), "{text} {} {first}", found.sufficiency);
    }
    for text in ["What should I cook for the user?", "When did I move to Lisbon?", "When is my wedding?"] {
        let found = asked(text);
        assert!(found.supported, "{text} {}", found.sufficiency);
        assert_eq!(found.trace.asker.as_deref(), Some("user"), "the only person");
    }
    assert_eq!(asked("When is the wedding?").trace.asker, None);
}

#[test]
fn the_last_turn_of_the_conversation_takes_part_in_a_question() {
    let home = tempfile::tempdir().unwrap();
    let service = boats(home.path());
    let asked = |said: &str| {
        let said_before = vec![SaidBefore { speaker: "Bo".to_owned(), text: said.to_owned() }];
        service.ask(&Question { said_before, ..question("Any news?") })
    };
    let first = |said: &str| asked(said).unwrap().units[0].sources.clone();
    assert_eq!(first("the violin is at the luthier"), ["3"]);
    assert_eq!(first("the accordion has a torn bellows"), ["4"]);
    let refused = asked(&"x".repeat(8_200)).unwrap_err().to_string();
    assert!(refused.contains("said_before: 8202 bytes"), "{refused}");
}

#[test]
fn the_command_line_takes_what_comes_with_a_question() {
    let home = tempfile::tempdir().unwrap();
    drop(boats(home.path()));
    let file = write(
        &home.path().join("p.toml"),
        format!(
            "version = 1\nembed.model = \"fixed\"\nlog.directory = {:?}\n",
            home.path().join("log").display().to_string()
        ),
    );
    let ask = |more: &[&str]| {
        let base = ["ask", "Where do I keep my kayak?", "--bank", BANK, "--pipeline", file.to_str().unwrap()];
        ripplemem(&[&base[..], more].concat())
    };
    let found = ask(&["--json", "--asker", "Bo", "--most-tokens", "60", "--said-before", "Ann Lee: Which kayak?"]);
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(found["units"][0]["sources"][0], "2");
    assert!(found["tokens"]["spent"].as_u64().unwrap() <= 60 && found["tokens"]["most"] == 60);
    fails(&ask(&["--asker", "Cy"]), 1, &["does not speak in the bank"]);
    fails(&ask(&["--said-before", "no speaker"]), 1, &["not SPEAKER: TEXT"]);
}
