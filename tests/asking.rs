//! What comes with a question: who asks, and what was said before.

use ripplemem::PipelineDriver;
use serde_json::{Value, json};
use types::model::{Bank, EvidenceNotice, ExplanationQuery, NoticeCode, PrecedingTurn, Question, SubjectId};

use super::{
    http_service::{HttpService, pipeline_file},
    support::{fails, ingest, lines, open, pipeline, ripplemem, write},
};

const BANK: &str = "boats";

fn boats(home: &std::path::Path) -> PipelineDriver {
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
}

/// An agent asks before its user has said anything, and after the user was forgotten. If the question is about the
/// asker, nobody else's words are quoted; if not, the asker makes no difference.
#[test]
fn an_asker_who_has_not_spoken_and_a_bank_that_holds_nothing_are_answered() {
    let home = tempfile::tempdir().unwrap();
    let service = boats(home.path());
    let by = |asker: Option<&str>, text: &str| {
        service.ask(&Question { asker: asker.map(str::to_owned), compare: true, ..question(text) }).unwrap()
    };
    for text in ["Where do I keep my kayak?", "Wo habe ich mein Kajak?"] {
        let stranger = by(Some("Cy"), text);
        let EvidenceNotice { code, message } = stranger.notice.unwrap();
        assert_eq!(code, NoticeCode::UnknownAsker);
        assert!(message.contains("\"Cy\" does not speak") && message.contains("\"Ann Lee\", \"Bo\""), "{message}");
        assert!(stranger.units.is_empty() && !stranger.supported && stranger.sufficiency == 0.0, "{text}");
        let line = "Nothing in memory supports this question (the asker \"Cy\" does not speak in this bank).\n";
        assert_eq!(stranger.context, line);
        assert!(stranger.trace.rounds.is_empty() && !stranger.reflects.is_empty());
    }
    let (of_cy, of_nobody) = (by(Some("Cy"), "Where is the violin?"), by(None, "Where is the violin?"));
    assert_eq!(
        (of_cy.units, of_cy.context, of_cy.supported),
        (of_nobody.units, of_nobody.context, of_nobody.supported)
    );
    assert_eq!(of_cy.notice.unwrap().code, NoticeCode::UnknownAsker);
    assert_eq!((of_nobody.notice, by(Some("ann"), "Where is the violin?").notice), (None, None));
    let new =
        Question { bank: Bank::parse("new/bank").unwrap(), asker: Some("Cy".to_owned()), ..question("Who am I?") };
    let nothing = service.ask(&new).unwrap();
    let EvidenceNotice { code, message } = nothing.notice.unwrap();
    assert!(code == NoticeCode::EmptyBank && message.starts_with("bank new/bank: "), "{message}");
    assert!(!message.contains(BANK), "no other bank is named");
    assert!(nothing.units.is_empty() && !nothing.supported && !nothing.reflects.is_empty());
    // What cannot be asked of any bank cannot be asked of this one.
    let refused = service.ask(&Question { text: "?".to_owned(), ..new }).unwrap_err().to_string();
    assert!(refused.contains("empty"), "{refused}");
    // An explanation looks for what is quoted to the asker.
    let explained = |text: &str| {
        let subject = ExplanationQuery { id: SubjectId::Turn("1".to_owned()), part: None, every_part: false };
        service.explain(&Question { asker: Some("Cy".to_owned()), ..question(text) }, subject, None)
    };
    assert!(explained("Where is the violin?").is_ok());
    let refused = explained("Where do I keep my kayak?").unwrap_err().to_string();
    assert!(refused.contains("\"Cy\" does not speak") && refused.contains("Ann Lee, Bo"), "{refused}");
}

/// A bank's speakers may be called like the things that they speak of.
#[test]
fn a_speaker_who_is_called_like_a_thing_makes_no_question_about_it_unsupported() {
    for names in
        [["Ann", "Bo"], ["Ann Kayak", "Bo"], ["Kayak", "Violin"], ["Ann", "Luthier Kayak Violin Malmö Boathouse"]]
    {
        let home = tempfile::tempdir().unwrap();
        let mut service = open(&pipeline(home.path(), "extract.unit_turns = 1"));
        let turns = [
            ("1", "Zoe", "The kayak is in the old boathouse behind the mill."),
            ("2", names[0], "Lunch was good today."),
            ("3", "Zoe", "The violin is at the luthier in Malmö until Friday."),
            ("4", names[1], "I slept badly."),
        ];
        ingest(&mut service, &write(&home.path().join("in.jsonl"), lines(BANK, "s", &turns)));
        for text in ["kayak?", "Where is the kayak?", "where is the violin", "Kayak?", "Is the violin in Malmö?"] {
            let found = service.ask(&question(text)).unwrap();
            assert!(found.supported, "{names:?}: {text} {}", found.sufficiency);
        }
        // Nobody spoke of it.
        assert!(!service.ask(&question("Where is the accordion?")).unwrap().supported, "{names:?}");
    }
}

/// Questions to a small memory, about what its user said once and what nobody said.
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
        let said_before = vec![PrecedingTurn { speaker: "Bo".to_owned(), text: said.to_owned() }];
        service.ask(&Question { said_before, ..question("Any news?") })
    };
    let first = |said: &str| asked(said).unwrap().units[0].sources.clone();
    assert_eq!(first("the violin is at the luthier"), ["3"]);
    assert_eq!(first("the accordion has a torn bellows"), ["4"]);
    let refused = asked(&"x".repeat(8_200)).unwrap_err().to_string();
    assert!(refused.contains("said_before: 8202 bytes"), "{refused}");
}

/// The same answers as those of the library above.
#[test]
fn who_asks_and_what_was_said_before_count_over_http_and_in_a_tool_as_in_the_library() {
    let home = tempfile::tempdir().unwrap();
    drop(boats(home.path()));
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let over_http = |mut asked: Value| {
        asked["bank"] = json!(BANK);
        let (status, _, answer) = service.send("POST", "/v1/ask", "", asked.to_string().as_bytes());
        (status, answer)
    };
    let tool = |mut asked: Value| {
        asked["question"] = asked["text"].take();
        let fields = asked.as_object_mut().unwrap();
        fields.remove("text");
        if let Some(said) = fields.get_mut("said_before") {
            *said = said[0]["text"].take();
        }
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                          "params": {"name": "evidence", "arguments": asked}});
        let answer = service.post(&format!("/mcp?bank={BANK}"), &call);
        let result = answer["result"].clone();
        (if result["isError"] == json!(false) { 200 } else { 400 }, result)
    };
    let first = |(status, answer): (u16, Value)| {
        let evidence = if answer["units"].is_array() { &answer } else { &answer["structuredContent"] };
        let source = evidence["units"][0]["sources"][0].as_str();
        (status, source.unwrap_or_else(|| panic!("{status} {answer}")).to_owned())
    };
    let kayak = |asker: &str| json!({"text": "Where do I keep my kayak?", "asker": asker});
    let news = |said: &str| json!({"text": "Any news?", "said_before": [{"speaker": "conversation", "text": said}]});
    for (asked, source) in [
        (kayak("Ann Lee"), "1"),
        (kayak("Bo"), "2"),
        (news("the violin is at the luthier"), "3"),
        (news("the accordion has a torn bellows"), "4"),
    ] {
        assert_eq!(first(over_http(asked.clone())), (200, source.to_owned()), "{asked}");
        assert_eq!(first(tool(asked.clone())), (200, source.to_owned()), "{asked}");
    }
    let asked = news(&"x".repeat(8_190));
    for (status, answer) in [over_http(asked.clone()), tool(asked)] {
        assert!(status == 400 && answer.to_string().contains("said_before"), "{status} {answer}");
    }
    for (status, answer) in [over_http(kayak("Cy")), tool(kayak("Cy"))] {
        let evidence = if answer["units"].is_array() { &answer } else { &answer["structuredContent"] };
        assert_eq!((status, &evidence["notice"]["code"]), (200, &json!("unknown_asker")), "{answer}");
        assert_eq!((&evidence["units"], &evidence["supported"]), (&json!([]), &json!(false)), "{answer}");
    }
    assert!(service.stop());
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
    let stranger = ask(&["--asker", "Cy"]);
    let said = String::from_utf8(stranger.stderr).unwrap();
    assert!(stranger.status.success() && said.contains("\"Cy\" does not speak in the bank"), "{said}");
    fails(&ask(&["--said-before", "no speaker"]), 1, &["not SPEAKER: TEXT"]);
}
