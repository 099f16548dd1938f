//! A reranker in a pipeline file: its effect on answers, over HTTP and about the past, and on explanations, and when it
//! takes no part.

use std::{collections::BTreeMap, io::Read};

use models::embed::setup::RERANKER;
use serde_json::json;
use snapshots::AsOf;
use types::{
    config::Pipeline,
    model::{Bank, ExplanationQuery, ExplanationStepName, Provenance, Question, SubjectId},
};

use super::{
    event_stream::EventStream,
    http_service::{HttpService, pipeline_file},
    support::{fails, has_reranker, ingest, lines, open, pipeline, ripplemem, write},
};

const BANK: &str = "b";
const FOLLOWED: &str = "c";
const ASKED: &str = "Where does Mira keep her bees?";
/// The words of the question are in the first turn, and its answer is in the second.
const TURNS: [(&str, &str, &str); 4] = [
    ("1", "Tom", "Mira does keep her promises."),
    ("2", "Ann", "Mira keeps hives on the roof of the bakery."),
    ("3", "Tom", "I painted the boat before Thursday."),
    ("4", "Ann", "We missed the last tram home."),
];

#[test]
fn it_orders_the_answers_of_now_and_of_the_past_and_explanations_but_no_followed_question() {
    let test = "reranker::it_orders_the_answers_of_now_and_of_the_past_and_explanations_but_no_followed_question";
    if !has_reranker(test) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let snapshots = home.path().join("snapshots").display().to_string();
    let usual = format!("extract.unit_turns = 1\nsnapshot.directory = {snapshots:?}\n");
    let reranked = format!("{usual}recall.rerank = {{ model = {RERANKER:?}, weight = 10.0 }}\n");
    let question = Question::new(Bank::parse(BANK).unwrap(), ASKED);

    let mut service = open(&pipeline(home.path(), &usual));
    let turns = [BANK, FOLLOWED].map(|bank| lines(bank, "s", &TURNS)).concat();
    ingest(&mut service, &write(&home.path().join("in.jsonl"), turns));
    let without = service.ask(&question).unwrap();
    assert_eq!((without.units[0].sources[0].as_str(), &without.trace.rerank), ("1", &None));
    drop(service);

    let mut service = open(&pipeline(home.path(), &reranked));
    let now = service.ask(&question).unwrap();
    assert_eq!(now.units[0].sources, ["2"]);
    let told = now.trace.rerank.as_ref().unwrap();
    assert_eq!((told.model.as_str(), told.logits.len(), &told.problem), (RERANKER, TURNS.len(), &None));
    // What is added to each score is what the recorded logits give: a tenth of them, times 10.
    let logits: BTreeMap<_, f64> = told.logits.iter().map(|of| (of.id, of.logit)).collect();
    let least = logits.values().copied().fold(f64::INFINITY, f64::min);
    for unit in &now.units {
        let Some(Provenance::Familiar { terms, .. }) = unit.provenance.first() else { panic!("{unit:?}") };
        assert!((terms.rerank - (logits[&unit.id] - least)).abs() < 1e-9, "{unit:?}");
    }
    let subject = ExplanationQuery { id: SubjectId::Turn("2".to_owned()), part: None, every_part: false };
    let explanation = service.explain(&question, subject, None).unwrap();
    let score = explanation.step(ExplanationStepName::Score).unwrap();
    assert_eq!([&score.numbers["logit"], &score.numbers["rank"]], [&json!(logits[&now.units[0].id]), &json!(1)]);
    assert!(score.sentence.contains(RERANKER), "{}", score.sentence);

    let memory = now.reflects.iter().find(|at| at.topic == "memory").unwrap();
    let later = lines(BANK, "t", &[("5", "Ann", "The bees of Mira live on the bakery roof.")]);
    ingest(&mut service, &write(&home.path().join("later.jsonl"), later));
    assert_eq!(service.ask(&question).unwrap().trace.rerank.unwrap().logits.len(), TURNS.len() + 1);
    let past = service.ask_as_of(&question, AsOf::Offset(memory.next_offset - 1)).unwrap();
    assert_eq!((past.trace.rerank, past.units), (now.trace.rerank, now.units));
    drop(service);

    let file = pipeline_file(home.path(), &reranked);
    let valid = ripplemem(&["validate", file.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&valid.stdout).contains(&format!("reranker: {RERANKER} (60 pairs")), "{valid:?}");
    let service = HttpService::of(home.path());
    let mut answer = String::new();
    let body = json!({"bank": FOLLOWED, "text": ASKED}).to_string();
    service.begin("POST", "/v1/ask", "", body.as_bytes()).read_to_string(&mut answer).unwrap();
    for words in ["rerank;dur=", "\"rerank\":{", "\"logit\":", RERANKER] {
        assert!(answer.contains(words), "{words} is not in {answer}");
    }
    let asked = service.post("/v1/ask", &json!({"bank": FOLLOWED, "text": ASKED}));
    assert_eq!(asked["units"][0]["excerpts"][0]["turn"], "2", "{asked}");
    let mut stream = EventStream::open(&service, "/v1/subscribe?bank=c&text=Where+does+Mira+keep+her+bees%3F", "");
    let snapshot = std::iter::from_fn(|| stream.next()).find(|event| event.name == "snapshot").unwrap().data;
    assert_eq!(snapshot["units"][0]["excerpts"][0]["turn"], "1", "{snapshot}");
    drop(stream);
    assert!(service.stop());
}

#[test]
fn what_is_set_wrongly_or_missing_is_said_before_a_question() {
    for (settings, words) in [
        ("recall.rerank.pairs = 3", "model"),
        ("recall.rerank = { model = \" \" }", "recall.rerank.model: empty"),
        ("recall.rerank = { model = \"m\", pars = 3 }", "did you mean \"pairs\"?"),
        ("recall.rerank = { model = \"m\", pairs = 0 }", "recall.rerank.pairs: 0 is not within 1 to 1024"),
        ("recall.rerank = { model = \"m\", weight = -0.5 }", "recall.rerank.weight: -0.5 is not within 0 to 100"),
        ("recall.rerank = { model = \"m\", weight = nan }", "recall.rerank.weight"),
        ("profile = \"paper\"\nrecall.rerank.model = \"m\"", "first hop by channels"),
    ] {
        let error = Pipeline::parse(&format!("version = 1\n{settings}")).unwrap_err();
        assert!(error.contains(words), "{settings}: {error}");
    }
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "embed.models_directory = \"none\"\nrecall.rerank.model = \"other\"\n");
    let file = file.to_str().unwrap();
    let words = ["recall.rerank.model", "ripplemem setup --reranker"];
    fails(&ripplemem(&["validate", file]), 1, &words);
    fails(&ripplemem(&["ask", ASKED, "--bank", BANK, "--pipeline", file]), 1, &words);
}
