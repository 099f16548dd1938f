//! `ripplemem-eval FORMAT` on a small made-up dialogue, through the command line.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use types::model::TurnEvent;

use super::{
    model_process::ScriptedModel,
    support::{fails, has_reranker, obeys, ripplemem, write},
};

fn said(speaker: &str, id: &str, text: &str) -> Value {
    json!({"speaker": speaker, "dia_id": id, "text": text})
}

/// Two conversations in LoCoMo's form, with every kind of damage that is repaired or counted.
fn benchmark() -> Value {
    json!([
        {"sample_id": "harbour", "conversation": {
            "speaker_a": "Iris", "speaker_b": "Tomas",
            "session_1_date_time": "9:05 am on 3 March, 2024",
            "session_1": [
                said("Iris", "D1:1", "I bought a green canoe at the flea market."),
                said("Tomas", "D1:2", "Lovely! My brother Anton repairs accordions in his cellar."),
                {"speaker": "Iris", "dia_id": "D1:3", "text": "Look at this one.", "blip_caption": "a lighthouse in fog"},
                said("Tomas", "D1:4", "I am going to plant walnut trees behind the barn.")
            ],
            "session_2_date_time": "6:40 pm on 9 April, 2024",
            "session_2": [
                said("Iris", "D2:1", "The canoe sank near the old mill."),
                said("Tomas", "D2:2", "Anton sold three accordions to a circus.")
            ],
            "session_3": [said("Iris", "D3:1", "This session has no date.")]
        }, "qa": [
            {"question": "What did Iris buy at the flea market?", "answer": "a green canoe", "category": 4, "evidence": ["D1:1"]},
            {"question": "What happened to the canoe of Iris?", "answer": "it sank", "category": 1, "evidence": ["D1:1; D2:1"]},
            {"question": "When did Anton sell accordions?", "answer": 2024, "category": 2, "evidence": ["D:2:2", "D9:9"]},
            {"question": "Which photo did Iris share?", "answer": "a lighthouse", "category": 3, "evidence": ["D1:03"]},
            {"question": "What did Iris buy at the flea market?", "answer": "a green canoe", "category": 4, "evidence": ["D1:1"]},
            {"question": "Why does Tomas fly kites?", "adversarial_answer": "for fun", "category": 5, "evidence": ["D1:4"]},
            {"question": "Who is without a date?", "answer": "Iris", "category": 4, "evidence": ["D3:1"]},
            {"question": "What is this?", "answer": "new", "category": 9, "evidence": ["D1:2"]}
        ]},
        {"sample_id": "garden", "conversation": {
            "speaker_a": "Uma", "speaker_b": "Pavel",
            "session_1_date_time": "8:00 am on 1 June, 2024",
            "session_1": [said("Uma", "D1:1", "My beehives stand on the roof of the library."), said("Pavel", "D1:2", "I grow saffron in a bathtub.")]
        }, "qa": [
            {"question": "Where are the beehives of Uma?", "answer": "on the roof", "category": 4, "evidence": ["D1:1"]},
            {"question": "What does Pavel grow?", "answer": "saffron", "category": 4, "evidence": ["D1:2"]}
        ]}
    ])
}

struct Home {
    directory: tempfile::TempDir,
    file: PathBuf,
    pipeline: PathBuf,
}

fn home() -> Home {
    let directory = tempfile::tempdir().unwrap();
    let file = write(&directory.path().join("small.json"), benchmark().to_string());
    let pipeline =
        write(&directory.path().join("p.toml"), "version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\n");
    Home { directory, file, pipeline }
}

fn eval(home: &Home, more: &[&str]) -> std::process::Output {
    let (file, pipeline) = (home.file.to_str().unwrap(), home.pipeline.to_str().unwrap());
    ripplemem(&[&["locomo", file, "--pipeline", pipeline], more].concat())
}

fn figures(home: &Home, more: &[&str]) -> Value {
    let output = eval(home, &[&["--json"], more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_figures_follow_their_schema_and_count_every_question_once() {
    let home = home();
    let result = figures(&home, &["--baselines", "--ablate", "all"]);
    let path = Path::new(super::ROOT).join("schemas/eval.v1.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    obeys(&result, &schema, &schema, "result");
    for field in [
        "dataset",
        "questions",
        "evidence_recall",
        "full_evidence",
        "context_tokens",
        "units",
        "first_hop_recall",
        "second_round_rate",
        "by_category",
        "build",
        "latency_ms",
        "config",
    ] {
        assert!(!result[field].is_null(), "{field} is null");
    }
    // Questions of categories 1 to 4 that have evidence left, including the duplicate.
    assert_eq!((result["questions"].as_u64(), result["scored"].as_u64()), (Some(7), Some(7)));
    assert_eq!(result["by_category"]["adversarial"]["questions"], 1);
    assert_eq!(result["by_category"]["category 9"]["questions"], 1);
    assert_eq!((result["build"]["conversations"].as_u64(), result["build"]["turns"].as_u64()), (Some(2), Some(8)));
    assert!(result["config"]["log"].get("directory").is_none(), "the figures do not depend on a directory");
    // In such a small memory recollection returns everything.
    assert_eq!(result["evidence_recall"], 1.0, "{result:#}");
    let counts: Vec<(&str, u64)> = result["problems"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(kind, problem)| (kind.as_str(), problem["count"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        counts,
        [
            ("duplicate_question", 1),
            ("lost_evidence", 2),
            ("no_evidence", 1),
            ("rejected_turns", 1),
            ("repaired_evidence", 3),
            ("unknown_category", 1)
        ]
    );
    let baselines: Vec<&Value> = result["rivals"].as_array().unwrap().iter().collect();
    assert_eq!(baselines.len(), 2 * (6 * 2 + 1));
    let everything = baselines.iter().find(|r| r["name"] == "full-context" && r["over"] == "turns").unwrap();
    assert_eq!((&everything["evidence_recall"], &everything["full_evidence"]), (&json!(1.0), &json!(1.0)));
    let most = result["context_tokens"].as_f64().unwrap().round();
    for baseline in baselines.iter().filter(|r| r["budget"]["kind"] == "tokens") {
        assert!(baseline["context_tokens"].as_f64().unwrap() <= most, "{baseline:#}");
    }
    let ablations: Vec<&str> =
        result["ablations"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(
        ablations,
        [
            "structural-cues",
            "graph-expansion",
            "planned-recollection",
            "second-round",
            "longer-first-hop",
            "greeted-names",
            "named-days",
            "open-windows",
            "open-windows-unrecorded"
        ]
    );
    let of = |name: &str| {
        result["ablations"].as_array().unwrap().iter().find(|r| r["name"] == name).unwrap()["evidence_recall"]
            .as_f64()
            .unwrap()
    };
    // Only harbour's first session has ended; its window alone is closed.
    assert_eq!((of("open-windows"), of("open-windows-unrecorded")), (1.0, 0.5), "two windows of three are open");
}

/// A schema of the repository.
fn schema(name: &str) -> Value {
    let path = Path::new(super::ROOT).join("schemas").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The report of a directory with the files of its questions, which follow their schemas; each question has one line
/// and one file.
fn report_in(directory: &Path) -> (Value, Vec<Value>) {
    let read = |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let report = read(&directory.join("report.json"));
    let (of_report, of_question) = (schema("report.v1.json"), schema("report-question.v1.json"));
    obeys(&report, &of_report, &of_report, "report");
    let lines = report["questions"].as_array().unwrap();
    let files: Vec<&str> = lines.iter().map(|line| line["file"].as_str().unwrap()).collect();
    let ids: BTreeSet<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), files.iter().collect::<BTreeSet<_>>().len()), (lines.len(), lines.len()), "each one once");
    let written = std::fs::read_dir(directory.join("questions")).unwrap().map(|file| file.unwrap().path());
    assert_eq!(written.filter(|path| path.extension().is_some_and(|ending| ending == "json")).count(), lines.len());
    let questions: Vec<Value> = files.iter().map(|file| read(&directory.join("questions").join(file))).collect();
    for (question, line) in questions.iter().zip(lines) {
        obeys(question, &of_question, &of_question, line["id"].as_str().unwrap());
        assert_eq!(question["id"], line["id"]);
        for turn in question["evidence"].as_array().unwrap() {
            assert_eq!(turn["found"] == false, turn["lost"].is_object(), "{turn}");
        }
    }
    (report, questions)
}

/// With a context that holds next to nothing, evidence is lost at a step that the report names.
#[test]
fn a_report_counts_every_question_once_and_says_where_evidence_was_lost() {
    let home = home();
    let narrow = "version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\n";
    let report = home.directory.path().join("report");
    let steps = |more: &str| {
        write(&home.pipeline, format!("{narrow}{more}"));
        let result = figures(&home, &["--report", report.to_str().unwrap(), "--baselines"]);
        let (written, questions) = report_in(&report);
        // Nine questions are asked: those of the categories 1 to 4, one without an answer, one of an unknown category.
        assert_eq!(questions.len(), 9);
        assert_eq!(written["overall"]["recollection"]["recall"]["mean"], result["evidence_recall"]);
        assert_eq!(written["overall"]["first_hop"]["recall"]["mean"], result["first_hop_recall"]);
        assert_eq!(written["overall"]["recollection"]["full"]["mean"], result["full_evidence"]);
        assert_eq!(written["retrievers"].as_array().unwrap().len(), 2 + result["rivals"].as_array().unwrap().len());
        let lost = questions.iter().flat_map(|q| q["evidence"].as_array().unwrap()).map(|turn| turn["lost"].clone());
        lost.filter(|lost| lost.is_object()).collect::<Vec<Value>>()
    };
    assert_eq!(steps(""), Vec::<Value>::new(), "in such a small memory recollection returns everything");
    let above = steps("recall.rounds = 0\nrecall.stop.share = 1.0\nrecall.stop.least_tokens = 1\n");
    assert!(!above.is_empty() && above.iter().all(|lost| lost["at"] == "cutoff"), "{above:?}");
    for lost in &above {
        let [rank, parts] = ["rank", "parts"].map(|name| lost["standing"][name].as_u64().unwrap());
        assert!((2..=parts).contains(&rank), "the best part is quoted: {lost}");
        assert!(lost["standing"]["share"].as_f64() <= lost["standing"]["last_quoted"].as_f64(), "{lost}");
        assert!(lost["sentence"].as_str().unwrap().contains(&format!("Number {rank} of {parts} parts")), "{lost}");
    }
    let spent = steps("recall.rounds = 0\nrecall.stop.least_tokens = 1\nrecall.stop.most_tokens = 16\n");
    assert!(spent.iter().any(|lost| lost["at"] == "assembly"), "{spent:?}");
    let indexes = "profile = \"paper\"\nrecall.semantic = 1\nrecall.lexical = 0\nrecall.cue = 0\n";
    let unseen = steps(&format!("{indexes}recall.rounds = 0\n"));
    assert!(!unseen.is_empty() && unseen.iter().all(|lost| lost["at"] == "candidate"), "{unseen:?}");
    let walked = steps(&format!("{indexes}recall.semantic_support = 0\nrecall.structural_support = 0\n"));
    assert!(!walked.is_empty() && walked.iter().all(|lost| lost["at"] == "walk"), "{walked:?}");
    assert!(walked.iter().all(|lost| lost["sentence"].as_str().unwrap().contains("The walk reached ")), "{walked:?}");
}

/// Each way builds its own memory and is asked the same questions.
#[test]
fn a_reranker_is_stated_with_the_answers_that_it_ordered() {
    if !has_reranker("eval::a_reranker_is_stated_with_the_answers_that_it_ordered") {
        return;
    }
    let home = home();
    assert_eq!(figures(&home, &[])["reranker"], Value::Null);
    let settings = std::fs::read_to_string(&home.pipeline).unwrap();
    write(&home.pipeline, format!("{settings}recall.rerank.model = \"ms-marco-MiniLM-L-12-v2\"\n"));
    let figures = figures(&home, &[]);
    let stated = &figures["reranker"];
    assert_eq!((&stated["model"], &stated["without"]), (&json!("ms-marco-MiniLM-L-12-v2"), &json!(0)));
    assert!(stated["answers"].as_u64().unwrap() > 0, "{stated}");
    assert_eq!(figures["config"]["recall"]["rerank"]["pairs"], 60);
    let printed = eval(&home, &[]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains("answers with it, 0 without\n"));
}

#[test]
fn ways_to_make_vectors_are_compared() {
    let result = figures(&home(), &["--vectors"]);
    let rows = result["vectors"].as_array().unwrap();
    let a_turn: Vec<f64> = rows.iter().map(|row| row["vectors_per_turn"].as_f64().unwrap()).collect();
    assert_eq!(rows.len(), 4, "one model, four ways");
    assert!(a_turn[0] <= a_turn[1] && a_turn[1] < a_turn[2] && a_turn[2] <= a_turn[3], "{a_turn:?}");
    for row in rows {
        assert_eq!((&row["model"], &row["questions"]), (&json!("fixed"), &result["questions"]));
        assert_eq!(row["evidence_recall"], 1.0, "{row:#}");
        let [took, ratio] = ["ingest_seconds", "ingest_over_raw"].map(|name| row[name].as_f64().unwrap());
        assert!(took > 0.0 && ratio > 0.0, "{row:#}");
    }
}

/// The graph is exactly what the model links, and each request is paid once.
#[test]
fn a_language_model_decides_edges() {
    let home = home();
    fails(&eval(&home, &["--ablate", "model-edges"]), 1, &["no language model is configured"]);
    let nothing = json!([{"contract": "edges", "reply": {"links": []}}]).to_string();
    let nothing = write(&home.directory.path().join("nothing.json"), nothing);
    // The first hop gives one unit; all others are found along edges.
    let rows = |server: &ScriptedModel, model: &str, log: &str| {
        let log = home.directory.path().join(log);
        let pipeline = format!(
            "version = 1\nprofile = \"paper\"\nembed.model = \"fixed\"\nlog.fsync = \"system\"\nlog.directory = {log:?}\n\
             recall.semantic = 1\nrecall.lexical = 0\nrecall.cue = 0\nrecall.support_floor = -1.0\n{}",
            server.toml(model)
        );
        let pipeline = write(&home.directory.path().join("model.toml"), pipeline);
        let home = Home { pipeline, file: home.file.clone(), directory: tempfile::tempdir().unwrap() };
        let result = figures(&home, &["--ablate", "graph-expansion,model-edges"]);
        let rows = result["ablations"].as_array().unwrap().clone();
        assert_eq!(rows[1]["name"], "model-edges");
        let asked = server.requests();
        let of_edges = |r: &&Value| r["response_format"]["json_schema"]["name"] == "edges";
        (rows, asked.iter().filter(of_edges).count())
    };
    let units = |row: &Value| row["units"].as_f64().unwrap();
    let server = ScriptedModel::start(&["--replies", nothing.to_str().unwrap()]);
    let (none, asked) = rows(&server, "scripted", "none");
    assert_eq!((units(&none[0]), asked), (1.0, 8), "a request a unit");
    assert_eq!(units(&none[1]), 1.0, "no edges, so nothing is found along them");
    let server = ScriptedModel::start(&[]);
    let (some, _) = rows(&server, "scripted", "some");
    assert!(units(&some[1]) > 1.5, "{some:#?}");
    assert!(some[1]["about"].as_str().unwrap().contains("(8 units, 8 calls, "), "{some:#?}");
    let (again, asked) = rows(&server, "scripted", "some");
    assert_eq!((&again[1], asked), (&some[1], 8), "the cached responses give the same row");
    let server = ScriptedModel::start(&[]);
    let (violating, _) = rows(&server, "scripted+violating", "violating");
    assert!(violating[1]["about"].as_str().unwrap().contains("; 8 units whose decisions could not be used"));
    assert_eq!(units(&violating[1]), 1.0);
}

/// One bank of all conversations grows with filler; the same questions still find their evidence.
#[test]
fn conversations_are_merged_into_one_bank_and_grown() {
    let home = home();
    let chat: String = (0..40)
        .map(|n| {
            let text = format!("The {n}. train left platform {n} an hour late.");
            json!({"bank": format!("trains/{}", n / 20), "turn": n.to_string(), "speaker": "Otto", "text": text,
                   "time": format!("2024-02-01T10:{n:02}:00Z")})
            .to_string()
                + "\n"
        })
        .collect();
    let filler = write(&home.directory.path().join("chat.jsonl"), chat);
    let filler = ["--sizes", "500,2,6", "--filler", filler.to_str().unwrap()];
    let result = figures(&home, &filler);
    let sizes: Vec<[u64; 3]> = result["sizes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| ["asked_units", "units_held", "turns"].map(|field| row[field].as_u64().unwrap()))
        .collect();
    assert_eq!(sizes.iter().map(|[asked, ..]| *asked).collect::<Vec<_>>(), [2, 6, 500]);
    assert!(sizes[0][1] <= sizes[1][1] && sizes[1][1] < sizes[2][1] && sizes[2][1] < 500, "{sizes:?}");
    assert_eq!(sizes[2][2], 8 + 40, "the turns run out before five hundred units");
    for row in result["sizes"].as_array().unwrap() {
        assert_eq!((&row["questions"], &row["evidence_recall"]), (&json!(5), &json!(1.0)), "{row:#}");
        assert_eq!(row["without_graph"]["questions"], 5);
        assert!(
            row["by_category"]["multi-hop"]["scored"] == 1
                && row["without_graph_by_category"]["multi-hop"]["scored"] == 1
        );
        assert!(row["latency_ms"]["p50"].as_f64().unwrap() > 0.0);
    }
    let table = String::from_utf8_lossy(&eval(&home, &filler).stdout).into_owned();
    assert!(table.contains("one bank of") && table.contains(" units, 48 turns"), "{table}");
    fails(&eval(&home, &["--sizes", "5", "--filler", "no/such.jsonl"]), 1, &["no/such.jsonl"]);
    fails(&eval(&home, &["--filler", "no/such.jsonl"]), 2, &["--sizes"]);
    fails(&eval(&home, &["--sizes", "0"]), 2, &["--sizes"]);
}

#[test]
fn the_script_turns_an_archive_of_chat_into_turns() {
    let home = tempfile::tempdir().unwrap();
    let name = "2004-12-25.train-c.raw.txt";
    let said = "[10:01] <ada> the kernel boots: \"yes\" \n[10:02] <ada>  \n=== bo has joined\n[10:03] <bo> good\n";
    write(&home.path().join(name), said);
    let archive = home.path().join("raw.tar.gz");
    let tar = Command::new("tar").arg("czf").arg(&archive).arg("-C").arg(home.path()).arg(name).status();
    let script = Path::new(super::ROOT).join("scripts/irc_turns.py");
    let output = Command::new("python3").arg(script).arg(&archive).output().unwrap();
    assert!(tar.unwrap().success() && output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let events: Vec<TurnEvent> = output
        .stdout
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .map(|l| TurnEvent::from_json(l).unwrap())
        .collect();
    let [TurnEvent::Turn(first), TurnEvent::Turn(second)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(
        (first.bank.as_str(), first.turn.as_str(), first.speaker.as_str()),
        ("irc/2004-12-25.train-c", "0", "ada")
    );
    assert_eq!(
        (first.text.as_str(), first.time.to_string().as_str()),
        ("the kernel boots: \"yes\"", "2004-12-25T10:01:00Z")
    );
    assert_eq!((second.turn.as_str(), second.text.as_str()), ("3", "good"));
}

#[test]
fn conversations_and_limits_choose_questions() {
    let home = home();
    let chosen = figures(&home, &["--conversations", "garden", "--rivals"]);
    assert_eq!((chosen["questions"].as_u64(), chosen["build"]["turns"].as_u64()), (Some(2), Some(2)));
    assert!(chosen["rivals"].is_array(), "--rivals is an alias of --baselines");
    assert_eq!(figures(&home, &["--limit", "1"])["questions"], 2);
    let output = eval(&home, &[]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && table.contains("overall") && table.contains("rejected_turns 1"), "{table}");
}

/// A seed chooses other questions than the first, and the same ones each time.
#[test]
fn a_seed_chooses_the_questions_of_a_limit() {
    let home = home();
    let by_category = |more: &[&str]| figures(&home, &[&["--limit", "1"], more].concat())["by_category"].clone();
    let chosen: Vec<Value> = (1..8).map(|seed: u32| by_category(&["--seed", &seed.to_string()])).collect();
    assert!(chosen.iter().any(|of_seed| *of_seed != by_category(&[])), "{chosen:?}");
    assert_eq!(by_category(&["--seed", "3"]), chosen[2]);
    fails(&eval(&home, &["--seed", "1"]), 2, &["--limit"]);
}

/// One model answers from three contexts; the same command again is answered from the cache.
#[test]
fn answers_from_different_contexts_stand_side_by_side() {
    let server = ScriptedModel::start(&[]);
    let mut home = home();
    let log = home.directory.path().join("log");
    let settings = format!(
        "version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\nlog.directory = {log:?}\n{}",
        server.toml("scripted")
    );
    home.pipeline = write(&home.directory.path().join("answers.toml"), settings);
    let run = || figures(&home, &["--answers", "--limit", "3", "--seed", "5"]);
    let result = run();
    let path = Path::new(super::ROOT).join("schemas/eval.v1.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    obeys(&result, &schema, &schema, "result");
    let rows = result["readings"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["default", "paper", "flat-mixture"]);
    for row in rows {
        assert_eq!(row["questions"], rows[0]["questions"], "all rows count the same questions");
        let (low, mean, high) = (&row["f1"]["low"], &row["f1"]["mean"], &row["f1"]["high"]);
        assert!(low.as_f64() <= mean.as_f64() && mean.as_f64() <= high.as_f64() && row["bleu1"].is_object(), "{row}");
        assert!(row["judge_accuracy"].is_null(), "no model judges itself: {row}");
    }
    let tokens = |at: usize| rows[at]["context_tokens"].as_f64().unwrap();
    assert!(tokens(2) <= tokens(0), "the mixture has at most recollection's tokens: {rows:?}");
    let contracts: Vec<Value> =
        server.requests().iter().map(|r| r["response_format"]["json_schema"]["name"].clone()).collect();
    assert!(contracts.iter().all(|name| name == "answer"), "{contracts:?}");
    assert_eq!(run()["readings"], result["readings"]);
    assert_eq!(server.requests().len(), contracts.len(), "nothing is paid for twice");
    let output = eval(&home, &["--answers", "--limit", "3", "--seed", "5"]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("answers from the contexts of") && table.contains("flat-mixture"), "{table}");
}

#[test]
fn what_cannot_be_evaluated_is_an_error_with_its_place() {
    let home = home();
    fails(&eval(&home, &["--conversations", "desert"]), 1, &["\"desert\" is not in the file"]);
    fails(&eval(&home, &["--ablate", "gravity"]), 1, &["gravity", "structural-cues"]);
    let half = benchmark().to_string();
    let half = write(&home.directory.path().join("half.json"), &half[..half.len() / 2]);
    let pipeline = home.pipeline.to_str().unwrap();
    let run = |format: &str, file: &str| ripplemem(&[format, file, "--pipeline", pipeline]);
    fails(&run("locomo", half.to_str().unwrap()), 1, &["half.json:1:", "whole"]);
    fails(&run("locomo", "no/such.json"), 1, &["no/such.json"]);
    fails(
        &run("hotpot", home.file.to_str().unwrap()),
        1,
        &["hotpot", "locomo or realtalk or longmemeval or evermembench"],
    );
    let empty = write(&home.directory.path().join("empty.json"), "[]");
    fails(&run("locomo", empty.to_str().unwrap()), 1, &["no question that can be asked"]);
}

#[test]
fn a_file_that_was_cut_off_is_named() {
    let home = tempfile::tempdir().unwrap();
    let half = |start: &str| write(&home.path().join("half.json"), start);
    for (format, start) in [
        ("locomo", "[{\"sample_id\": \"conv-1\", \"conversation\": {\"session_1\": ["),
        ("longmemeval", "[{\"question_id\": \"q1\", \"haystack_session_ids\": ["),
        ("evermembench", "{\"dialogues\": {\"2025-01-09\": ["),
    ] {
        fails(&ripplemem(&[format, half(start).to_str().unwrap()]), 1, &["half.json:1", "fetch the whole"]);
    }
}

/// Both sets of agents' conversations, from files to figures, with their rivals, and weights chosen on them beside
/// people's dialogues.
#[test]
fn conversations_with_an_assistant_are_scored_beside_rivals_and_fitted_with_dialogues() {
    let home = home();
    let agents = Path::new(super::ROOT).join("tests/data/agents");
    let (beam, realmem) = (agents.join("beam"), agents.join("realmem"));
    let pipeline = home.pipeline.to_str().unwrap();
    for (set, path, questions, rows) in [("beam", &beam, 4, 10), ("realmem", &realmem, 1, 1)] {
        let report = home.directory.path().join(set);
        let mut arguments = vec![set, path.to_str().unwrap(), "--pipeline", pipeline, "--json"];
        arguments.extend(["--report", report.to_str().unwrap()]);
        arguments.extend((rows > 1).then_some("--baselines"));
        let output = ripplemem(&arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = &figures["rows"][0];
        assert_eq!((&figures["dataset"], &found["questions"]), (&json!(set), &json!(questions)), "{figures}");
        assert_eq!(figures["rows"].as_array().unwrap().len(), rows);
        assert!(found["touched"].as_f64() > Some(0.0) && found["mean_tokens"].as_f64() > Some(0.0), "{found}");
        let (written, asked) = report_in(&report);
        assert_eq!(
            (&written["found_means"], asked.len() as u64),
            (&json!("touched"), { questions + figures["unanswerable"].as_u64().unwrap() })
        );
        assert_eq!(written["overall"]["recollection"]["recall"]["mean"], found["touched"]);
        assert!(written["overall"]["first_hop"]["recall"].is_null(), "it is not measured there");
        assert_eq!(written["retrievers"].as_array().unwrap().len(), rows);
    }
    let missing = ripplemem(&["beam", home.directory.path().to_str().unwrap(), "--pipeline", pipeline]);
    assert!(!missing.status.success() && String::from_utf8_lossy(&missing.stderr).contains("chat.json"), "{missing:?}");

    let mut fit = vec!["fit", "--draws", "3", "--json", "--pipeline", pipeline];
    fit.extend(["--locomo", home.file.to_str().unwrap(), "--beam", beam.to_str().unwrap()]);
    fit.extend(["--realmem", realmem.to_str().unwrap()]);
    let output = ripplemem(&fit);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let fit: Value = serde_json::from_slice(&output.stdout).unwrap();
    let sets: Vec<&str> = fit["sets"].as_array().unwrap().iter().map(|set| set[0].as_str().unwrap()).collect();
    assert_eq!(sets, ["locomo", "beam", "realmem"]);
    let names: Vec<&str> = fit["rows"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"as it is, shares chosen"), "{names:?}");
    for row in fit["rows"].as_array().unwrap() {
        assert_eq!(row["in_sample"].as_array().unwrap().len(), 3, "{row}");
    }
}

#[test]
fn people_and_an_assistant_in_one_memory_are_scored_beside_each_alone() {
    let home = home();
    let agents = Path::new(super::ROOT).join("tests/data/agents");
    let mut arguments = vec!["mixed", "--locomo", home.file.to_str().unwrap(), "--percents", "60", "--json"];
    let (beam, pipeline) = (agents.join("beam"), home.pipeline.to_str().unwrap());
    arguments.extend(["--beam", beam.to_str().unwrap(), "--pipeline", pipeline]);
    let output = ripplemem(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    for (of_chat, third) in [(false, false), (true, false), (false, true), (true, true)] {
        let row = rows.iter().find(|row| row["of_chat"] == of_chat && row["third"] == third).unwrap();
        assert!(row["questions"].as_u64() > Some(0) && row["reached"].as_f64() <= Some(0.6), "{row}");
        for memory in ["merged", "alone"] {
            let (touched, full) = (row[memory]["touched"].as_f64().unwrap(), row[memory]["full"].as_f64().unwrap());
            assert!((0.0..=1.0).contains(&touched) && full <= touched && touched > 0.0, "{row}");
            assert!(row[memory]["tokens"].as_f64() > Some(0.0), "{row}");
        }
        assert_eq!(row["merged"]["facts"].is_null(), !of_chat, "people's questions have no facts");
    }
    let missing = ripplemem(&["mixed", "--beam", beam.to_str().unwrap(), "--pipeline", pipeline]);
    assert!(!missing.status.success() && String::from_utf8_lossy(&missing.stderr).contains("--locomo"), "{missing:?}");

    let pairs = agents.join("pairs.jsonl");
    let output = ripplemem(&["pairs", pairs.to_str().unwrap(), "--pipeline", pipeline, "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let verdicts: Value = serde_json::from_slice(&output.stdout).unwrap();
    let verdicts = verdicts.as_array().unwrap();
    assert_eq!((verdicts.len(), verdicts.iter().filter(|one| one["told"] == true).count()), (100, 50));
    assert!(
        verdicts.iter().any(|one| one["supported"] == true) && verdicts.iter().any(|one| one["supported"] == false)
    );
    let broken = home.directory.path().join("broken.jsonl");
    std::fs::write(&broken, "{}\n").unwrap();
    let refused = ripplemem(&["pairs", broken.to_str().unwrap(), "--pipeline", pipeline]);
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("line 1"), "{refused:?}");
}
