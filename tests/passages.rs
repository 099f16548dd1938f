//! Long turns on the whole path: they are quoted by passages, within the tokens that a question may take, and an edit
//! or a deletion changes what it should and nothing else.

use std::collections::BTreeMap;

use logs::Topic;
use memory::extract::passages::CUTTER;
use memory::language::token_count;
use pipeline::PipelineError;
use ripplemem::{PipelineDriver, export, import};
use serde_json::{Value, json};
use types::model::{Bank, MemoryKey, MemoryRecord, Question, TurnEvent};

use super::{
    http_service::{HttpService, pipeline_file},
    support::{ask, census, data, ingest, lines, open, pipeline, write},
};

const BANK: &str = "agent/workshop";

/// An answer with a heading, a list, code and a table; the table and the code are longer than a passage.
fn answer() -> String {
    let rows: String = (1..30).map(|n| format!("| part {n} | brass bolt number {n} | {} mm |\n", n * 3)).collect();
    let code: String = (1..30).map(|n| format!("    drill(hole={n}, depth={})\n", n + 40)).collect();
    format!(
        "# Plan for the cabinet\n\nFirst sand the doors with fine paper, then oil them twice.\n\n- Buy walnut oil from the \
         shop in Tromsø.\n- Ask Ingrid for her sander.\n\n## Parts\n\n| part | what | length |\n|---|---|---|\n{rows}\n## \
         Script\n\n```python\ndef make():\n{code}```\n\nThe hinges hang on the left side, because the window is on the right.\n"
    )
}

fn turn(id: &str, version: u64, text: &str) -> TurnEvent {
    let turn = json!({
        "bank": BANK, "turn": id, "version": version, "speaker": "Assistant", "text": text,
        "time": "2024-05-01T10:01:00Z", "session": "s", "role": "assistant",
    });
    TurnEvent::from_json(turn.to_string().as_bytes()).unwrap()
}

fn workshop(home: &std::path::Path, turns: &[(&str, &str, &str)]) -> PipelineDriver {
    let mut service = open(&pipeline(home, ""));
    ingest(&mut service, &write(&home.join("in.jsonl"), lines(BANK, "s", turns)));
    service
}

fn append(service: &mut PipelineDriver, events: &[TurnEvent]) {
    service.log().append_turns(events).unwrap();
    service.catch_up().unwrap();
}

#[test]
fn a_long_turn_is_quoted_by_the_passages_that_answer() {
    let (home, answer) = (tempfile::tempdir().unwrap(), answer());
    let service = workshop(
        home.path(),
        &[
            ("1", "user", "How do I build the cabinet?"),
            ("2", "assistant", &answer),
            ("3", "user", "Thanks, I will start on Monday with the doors."),
        ],
    );
    let mut question =
        Question::new(Bank::parse(BANK).unwrap(), "On which side do the hinges hang, left or right of the window?");
    question.most_tokens = Some(800);
    let found = service.ask(&question).unwrap();
    assert!(found.context.contains("hinges hang on the left side"), "{}", found.context);
    assert!(found.context.contains("\n[…]\n"), "what is left out is marked: {}", found.context);
    let quoted: Vec<_> = found.units.iter().flat_map(|unit| &unit.excerpts).filter(|e| e.turn == "2").collect();
    assert!(!quoted.is_empty());
    for excerpt in quoted {
        let range = excerpt.range.expect("a passage of a long turn");
        let own = &answer[range.start as usize..range.end as usize];
        assert!(excerpt.text.ends_with(own) && range.total as usize == answer.len());
        let repeated = excerpt.text.strip_suffix(own).unwrap();
        assert!(repeated.is_empty() || repeated.starts_with("| part |") || repeated.starts_with("```python"));
    }
    // The records say what cut the turn, and their passages are its text.
    let records = service.log().read(Topic::Memory, 0, 0, 1_000).unwrap().records;
    let mut records = records.iter().filter_map(|r| serde_json::from_slice::<MemoryRecord>(r.value.as_ref()?).ok());
    let last = records.next_back().unwrap();
    assert_eq!(last.cutter.as_deref(), Some(CUTTER));
    let unit = last.units.iter().find(|unit| unit.sources == ["2"]).unwrap();
    let ends: Vec<u32> = unit.parts.iter().map(|part| part.range.unwrap().end).collect();
    let starts: Vec<u32> = unit.parts.iter().map(|part| part.range.unwrap().start).collect();
    assert_eq!((starts[0], &starts[1..]), (0, &ends[..ends.len() - 1]));
    let code = unit.parts.iter().filter(|part| part.text.starts_with("```"));
    assert!(code.clone().count() > 1 && code.clone().all(|part| part.vectors.is_empty()), "words alone find code");
    let others = unit.parts.iter().filter(|part| !part.text.starts_with("```"));
    assert!(others.clone().all(|part| part.vectors.len() == 1 && part.pair.is_none()));
    // The vector that edges compare is the mean of the passages', each weighed by its bytes.
    let mut mean = vec![0.0f32; unit.vector.len()];
    for part in others {
        for (sum, x) in mean.iter_mut().zip(part.vectors[0].floats().iter()) {
            *sum += x * part.text.len() as f32;
        }
    }
    let length = mean.iter().map(|x| x * x).sum::<f32>().sqrt();
    assert!(mean.iter().zip(unit.vector.floats().iter()).all(|(x, y)| (x / length - y).abs() < 0.02));
}

#[test]
fn an_edit_or_a_deletion_of_a_long_turn_leaves_what_was_never_there() {
    let (home, fresh) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (long, short) = (answer(), "The plan is off.");
    let turns = |text| [("1", "user", "How do I build the cabinet?"), ("2", "assistant", text)];
    let mut service = workshop(home.path(), &turns(&long));
    append(&mut service, &[turn("2", 1, short)]);
    assert_eq!(ask(&service, BANK, "Where is walnut oil sold?").context.matches("Tromsø").count(), 0);
    append(&mut service, &[turn("2", 2, &long)]);
    assert!(ask(&service, BANK, "Where is walnut oil sold?").context.contains("Tromsø"));
    let deletion = format!(r#"{{"type":"deletion","bank":"{BANK}","turn":"2"}}"#);
    append(&mut service, &[TurnEvent::from_json(deletion.as_bytes()).unwrap()]);
    let never = workshop(fresh.path(), &turns(&long)[..1]);
    assert_eq!(census(&service), census(&never));
    drop(service);
    assert_eq!(census(&open(&pipeline(home.path(), ""))), census(&never), "after a restart");
}

/// A text of 1 MiB, the most that a turn may have; what the question asks for is at its end.
fn document() -> String {
    let end = "\n\nThe spare key hangs behind the lighthouse calendar.";
    let mut document: String =
        (0..).map(|n| format!("Entry {n}: boat {n} lies at pier {}.\n\n", n % 97)).take(40_000).collect();
    document.truncate((1 << 20) - end.len());
    document + end
}

#[test]
fn a_turn_of_a_mebibyte_is_one_turn_of_which_a_passage_is_found() {
    let home = tempfile::tempdir().unwrap();
    let document = document();
    let service = workshop(home.path(), &[("1", "user", "Here is the log."), ("2", "user", &document)]);
    let found = ask(&service, BANK, "Where does the spare key hang, behind the lighthouse calendar?");
    assert!(found.context.contains("spare key hangs behind the lighthouse calendar"), "{}", found.context);
    assert!(token_count::count_tokens(&found.context) <= 3_000);
    assert!(found.units.iter().all(|unit| unit.sources.len() == 1));
}

/// A call of a tool: whether it failed, its result and its text.
fn tool(service: &HttpService, name: &str, arguments: &Value) -> (bool, Value, String) {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                      "params": {"name": name, "arguments": arguments}});
    let answer = service.post("/mcp?bank=tools", &call);
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    (result["isError"] == json!(true), result["structuredContent"].clone(), text)
}

#[test]
fn a_turn_of_a_mebibyte_comes_through_http_and_a_tool_and_a_larger_one_is_refused() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "log.fsync = \"system\"\nserve.deadline_ms = 60_000\n");
    let service = HttpService::of(home.path());
    let (document, question) = (document(), "Where does the spare key hang, behind the lighthouse calendar?");
    let larger = format!("{document}.");
    let wait = |bank: &str, after: &Value| {
        service.get(&format!("/v1/digest?bank={bank}&after={}&wait_ms=50000", after.as_str().unwrap()));
    };
    let turn = |text: &str| json!({"bank": "web", "turn": "1", "speaker": "Ann", "text": text, "time": "2024-05-06T09:00:00Z"});
    let put = |text: &str| json!({"turns": [turn(text)]}).to_string();
    let (status, _, problem) = service.send("POST", "/v1/turns", "", put(&larger).as_bytes());
    assert!(status == 400 && problem["detail"].as_str().unwrap().contains("text"), "{status} {problem}");
    let (status, _, written) = service.send("POST", "/v1/turns", "", put(&document).as_bytes());
    assert_eq!((status, &written["turns"]), (200, &json!(1)), "{written}");
    wait("web", &written["after"]);
    let found = service.post("/v1/ask", &json!({"bank": "web", "text": question}));
    assert!(found["context"].as_str().unwrap().contains("spare key hangs behind"), "{}", found["context"]);
    let held = service.get("/v1/turns?bank=web");
    assert!(held["turns"][0]["text"] == json!(document), "what is held is what was sent");

    let said = |text: &str| json!({"turns": [{"speaker": "Ann", "text": text, "turn": "1"}], "wait_seconds": 0});
    let (failed, _, text) = tool(&service, "remember", &said(&larger));
    assert!(failed && text.contains("text"), "{}", &text[..text.len().min(500)]);
    let (failed, stored, text) = tool(&service, "remember", &said(&document));
    assert!(!failed, "{text}");
    wait("tools", &stored["after"]);
    let (failed, _, text) = tool(&service, "recall", &json!({"question": question}));
    assert!(!failed && text.contains("spare key hangs behind"), "{text}");
    let (failed, shown, _) = tool(&service, "show", &json!({"turn": "1", "from": document.len() - 8_000}));
    assert!(!failed && shown["text"].as_str() == Some(&document[document.len() - 8_000..]), "{shown}");
    assert!(shown["next"].is_null(), "it is the end");
    assert!(service.stop());
}

/// Its record is larger than one value of the log, also while its window is open.
#[test]
fn a_turn_of_a_mebibyte_is_whole_while_its_window_is_open_and_leaves_nothing_behind() {
    let (home, fresh) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let document = format!("The red kayak sleeps in the attic.{}", &document()[34..]);
    assert_eq!(document.len(), 1 << 20);
    let live = |service: &PipelineDriver| {
        let mut live = BTreeMap::new();
        for record in service.log().read(Topic::Memory, 0, 0, 100_000).unwrap().records {
            match record.value {
                Some(value) => drop(live.insert(MemoryKey::from_bytes(&record.key).unwrap(), value)),
                None => drop(live.remove(&MemoryKey::from_bytes(&record.key).unwrap())),
            }
        }
        live
    };
    let mut service = open(&pipeline(home.path(), ""));
    append(&mut service, &[turn("1", 0, &document)]);
    let keys: Vec<MemoryKey> = live(&service).into_keys().collect();
    assert!(keys.len() > 1 && keys.iter().all(|key| key.turn.as_deref() == Some("1")), "{keys:?}");
    for (question, words) in [
        ("Where does the red kayak sleep?", "kayak sleeps in the attic"),
        ("Where does the spare key hang, behind the lighthouse calendar?", "key hangs behind the lighthouse"),
    ] {
        let found = ask(&service, BANK, question).context;
        assert!(found.contains(words), "{found}");
    }
    let open_one = census(&service);
    drop(service);
    let mut service = open(&pipeline(home.path(), ""));
    assert_eq!(census(&service), open_one, "after a restart");
    let end = format!(r#"{{"type":"session_end","bank":"{BANK}","session":"s"}}"#);
    append(&mut service, &[TurnEvent::from_json(end.as_bytes()).unwrap()]);
    assert!(live(&service).keys().all(|key| key.turn.is_none()), "no record of the open window is left");
    // Before and after it closes, a deletion leaves no word of it.
    let deletion = format!(r#"{{"type":"deletion","bank":"{BANK}","turn":"1"}}"#);
    let deletion = TurnEvent::from_json(deletion.as_bytes()).unwrap();
    let mut other = open(&pipeline(fresh.path(), ""));
    append(&mut other, &[turn("1", 0, &document)]);
    for service in [&mut service, &mut other] {
        append(service, std::slice::from_ref(&deletion));
        let words = live(service).into_values().filter(|value| String::from_utf8_lossy(value).contains("boat"));
        assert_eq!(words.count(), 0);
        assert_eq!(census(service).units, 0);
    }
}

/// What was said on several lines is quoted on several lines, and is stored as it was said.
#[test]
fn line_breaks_come_through_a_tool_and_the_routes_of_mem0() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "http.mem0 = true\n");
    let service = HttpService::of(home.path());
    let said = "Try this:\r\n\r\n```python\r\nfor line in lines:\r\n    print(line)\r\n```\n- one\n- two";
    let quoted =
        "Try this:\n\n    ```python\n    for line in lines:\n        print(line)\n    ```\n    - one\n    - two\n";
    let turn = json!({"speaker": "Helper", "text": said, "turn": "1", "role": "assistant"});
    let (failed, _, text) = tool(&service, "remember", &json!({"turns": [turn], "wait_seconds": 60}));
    assert!(!failed, "{text}");
    let (_, recalled, text) = tool(&service, "recall", &json!({"question": "How do I print the lines?"}));
    assert!(text.ends_with(&format!("\n[1] Helper: {quoted}")), "{text}");
    assert_eq!(recalled["context"], json!(text));
    let (_, shown, _) = tool(&service, "show", &json!({"turn": "1"}));
    assert_eq!(shown["text"], json!(said));
    let (_, evidence, _) = tool(&service, "evidence", &json!({"question": "How do I print the lines?"}));
    assert!(evidence["context"].as_str().unwrap().ends_with(&format!("\nHelper: {quoted}")), "{evidence}");

    let message = json!({"messages": [{"role": "assistant", "content": said}], "user_id": "ann"});
    let added = service.post("/v3/memories/add/", &message);
    assert_eq!(added["results"][0]["memory"], json!(said));
    let search = json!({"query": "How do I print the lines?", "filters": {"user_id": "ann"}});
    assert_eq!(service.post("/v3/memories/search/", &search)["results"][0]["memory"], json!(said));
    let path = format!("/v1/memories/{}/", added["results"][0]["id"].as_str().unwrap());
    assert_eq!(service.get(&path)["memory"], json!(said));
    let bank = service.get("/v1/banks")["banks"][0].as_str().unwrap().to_owned();
    let found = service.post("/v1/ask", &json!({"bank": bank, "text": "How do I print the lines?"}));
    assert!(found["context"].as_str().unwrap().ends_with(&format!(": {quoted}")), "{}", found["context"]);
    assert!(service.stop());
}

/// Passages are in an export and in a snapshot's tables, with their ranges and vectors.
#[test]
fn passages_are_the_same_behind_an_export_and_a_snapshot() {
    let (home, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (bank, answer) = (Bank::parse(BANK).unwrap(), answer());
    let mut first = pipeline(home.path(), "");
    first.snapshot.directory = home.path().join("snapshots").to_string_lossy().into_owned();
    let asked = |service: &PipelineDriver| {
        let text = "On which side do the hinges hang, left or right of the window?";
        let found = service.ask(&Question { most_tokens: Some(800), ..Question::new(bank.clone(), text) }).unwrap();
        (found.context, found.units)
    };
    let mut service = open(&first);
    let turns = [
        ("1", "user", "How do I build the cabinet?"),
        ("2", "assistant", &answer),
        ("3", "user", "Thanks, I will start on Monday with the doors."),
    ];
    ingest(&mut service, &write(&home.path().join("in.jsonl"), lines(BANK, "s", &turns)));
    let (expected, (context, units)) = (census(&service), asked(&service));
    assert!(context.contains("hinges hang on the left side") && context.contains("\n[…]\n"), "{context}");
    assert!(units.iter().flat_map(|unit| &unit.excerpts).any(|excerpt| excerpt.range.is_some()));
    assert!(service.replica().snapshot().unwrap().is_some());
    drop(service);
    let mut restored = open(&first);
    assert_eq!((census(&restored), asked(&restored)), (expected.clone(), (context.clone(), units.clone())));
    drop(restored);

    let file = home.path().join("bank.jsonl.zst");
    export(&first, &bank, &file, &mut |_| {}).unwrap();
    let second = pipeline(there.path(), "log.partitions = 3");
    let done = import(&second, &file, &mut |_| {}).unwrap();
    assert_eq!(done.digest, done.exported);
    let mut moved = open(&second);
    assert_eq!((census(&moved), asked(&moved)), (expected, (context, units)));
    // Both go on alike: the passages of a deleted turn are gone.
    restored = open(&first);
    let deletion = format!(r#"{{"type":"deletion","bank":"{BANK}","turn":"2"}}"#);
    for service in [&mut restored, &mut moved] {
        append(service, &[TurnEvent::from_json(deletion.as_bytes()).unwrap()]);
        assert!(!asked(service).0.contains("hinges hang"));
    }
    assert_eq!(census(&restored), census(&moved));
}

/// An assistant says most of a conversation, and still what is asked of the user is what the user said.
#[test]
fn persons_and_assistants_share_the_tokens_by_the_form_of_the_question() {
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&pipeline(home.path(), ""));
    ingest(&mut service, &data("assistant.jsonl"));
    let of_user = |text: &str| {
        let bank = Bank::parse("sample/workshop").unwrap();
        let found = service.ask(&Question { most_tokens: Some(900), ..Question::new(bank, text) }).unwrap();
        let excerpts = found.units.iter().flat_map(|unit| &unit.excerpts);
        let cost = |e: &types::model::Excerpt| (e.speaker == "Ines", token_count::count_tokens(&e.text) as f64);
        let costs: Vec<(bool, f64)> = excerpts.map(cost).collect();
        let all: f64 = costs.iter().map(|(_, cost)| cost).sum();
        assert!((150.0..450.0).contains(&all), "half of the limit, on average, less the wishes: {all}");
        costs.iter().filter(|(user, _)| *user).map(|(_, cost)| cost).sum::<f64>() / all
    };
    assert!(of_user("Which limit for the quay do I use now?") > 0.7);
    assert!(of_user("What did you tell me about the pressure sensor?") < 0.3);
    let task = of_user("Write a function that prints the last reading.");
    assert!((0.1..0.6).contains(&task), "{task}");
}

/// Whatever the question and its limit of tokens, no context costs more than the limit.
#[test]
fn no_context_costs_more_than_it_may() {
    let home = tempfile::tempdir().unwrap();
    for profile in ["", "profile = \"paper\""] {
        let home = home.path().join(profile.len().to_string());
        std::fs::create_dir(&home).unwrap();
        let mut service = open(&pipeline(&home, profile));
        ingest(&mut service, &data("sample.jsonl"));
        ingest(
            &mut service,
            &write(&home.join("in.jsonl"), lines(BANK, "s", &[("1", "user", "x"), ("2", "assistant", &answer())])),
        );
        for bank in ["sample/harbour", BANK] {
            for text in
                ["Who plays the cello?", "Which books has Marta recommended to Elias?", "drill hole depth 47", "?x"]
            {
                for most in [1, 7, 40, 200, 900, 3_000, 16_000] {
                    let mut question = Question::new(Bank::parse(bank).unwrap(), text);
                    question.most_tokens = Some(most);
                    let found = service.ask(&question).unwrap();
                    assert_eq!(found.tokens.spent as usize, token_count::count_tokens(&found.context));
                    assert_eq!(found.tokens.most, most);
                    assert!(found.tokens.spent <= most, "{text} {most}: {}", found.context);
                }
            }
        }
        let greedy = Question { most_tokens: Some(16_001), ..Question::new(Bank::parse(BANK).unwrap(), "Who?") };
        let refused = service.ask(&greedy).unwrap_err();
        assert!(matches!(refused, PipelineError::Recall(_)) && refused.to_string().contains("16000"), "{refused}");
    }
}
