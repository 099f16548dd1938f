//! Why a turn is quoted or not: that explanations agree with answers, and one test for each step that fails.

use std::path::{Path, PathBuf};

use ripplemem::PipelineDriver;
use serde_json::{Value, json};
use snapshots::AsOf;
use types::{
    config::{Pipeline, RecallSettings},
    model::{
        Bank, Evidence, Explanation, ExplanationQuery, ExplanationStep, ExplanationStepName, ExplanationStepState,
        NearMiss, Provenance, Question, SubjectId, TurnEvent, UnitId,
    },
};

use super::{
    http_service::{HttpService, pipeline_file},
    skipped::skip,
    support::{data, fails, ingest, lines, open, pipeline, ripplemem, write},
};

const BANK: &str = "b";
/// Near misses that each answer is asked for.
const NEAR: u32 = 20;
/// Questions of a dialogue of LoCoMo.
const QUESTIONS: usize = 12;

fn of_turn(turn: &str) -> ExplanationQuery {
    ExplanationQuery { id: SubjectId::Turn(turn.to_owned()), part: None, every_part: false }
}

fn of_unit(unit: UnitId, part: Option<u32>) -> ExplanationQuery {
    ExplanationQuery { id: SubjectId::Unit(unit), part, every_part: false }
}

fn question(bank: &str, text: &str) -> Question {
    Question::new(Bank::parse(bank).unwrap(), text)
}

fn explained(service: &PipelineDriver, question: &Question, subject: ExplanationQuery) -> Explanation {
    let explanation = service.explain(question, subject, None).unwrap();
    is_whole(&explanation);
    explanation
}

/// Twelve steps in order, each with a sentence; the turn is quoted exactly if no step failed.
fn is_whole(explanation: &Explanation) {
    let Explanation { steps, failed, quoted, sentence, .. } = explanation;
    assert_eq!(steps.iter().map(|step| step.step).collect::<Vec<_>>(), ExplanationStepName::ALL);
    assert!(steps.iter().all(|step| step.sentence.ends_with('.')), "{steps:#?}");
    let first = steps.iter().find(|step| step.state == ExplanationStepState::Failed).map(|step| step.step);
    assert_eq!((*failed, *quoted), (first, first.is_none()), "{sentence} {steps:#?}");
    assert!(sentence.len() > 20, "{sentence}");
}

fn step(explanation: &Explanation, name: ExplanationStepName) -> &ExplanationStep {
    explanation.step(name).unwrap()
}

/// Asks, and explains every unit of the answer, every quoted turn and every near miss.
fn agrees(service: &PipelineDriver, bank: &str, text: &str) -> [usize; 2] {
    let question = question(bank, text);
    let plain = service.ask(&question).unwrap();
    let answer = service.ask(&Question { near: Some(NEAR), walk: true, ..question.clone() }).unwrap();
    assert_eq!(only_more_trace(&answer), serde_json::to_value(&plain).unwrap(), "{text}");
    assert!(plain.trace.near.is_empty() && plain.trace.rounds.iter().all(|round| round.walk.is_none()));
    for unit in &answer.units {
        let explanation = explained(service, &question, of_unit(unit.id, None));
        assert!(explanation.quoted, "{text}: {}", explanation.sentence);
        let found = unit.provenance.iter().find_map(|way| match way {
            Provenance::Familiar { rank, score, share, .. } => Some((*rank, *score, share.unwrap())),
            _ => None,
        });
        let score = step(&explanation, ExplanationStepName::Score);
        match found {
            Some((rank, value, share)) => {
                // The trace has the part that the first hop took first; the token limit may have left room for others
                // only.
                let own = score.numbers["share"].as_f64().unwrap();
                let mut shares = explanation.others.iter().map(|other| other.share).chain([own]);
                assert!(shares.any(|other| other == share), "{text}: {share} is that of no part");
                if own == share {
                    assert_eq!([&score.numbers["rank"], &score.numbers["score"]], [&json!(rank), &json!(value)]);
                }
                assert_eq!(step(&explanation, ExplanationStepName::Cutoff).state, ExplanationStepState::Passed);
            }
            None if unit.provenance.iter().all(|way| matches!(way, Provenance::Expansion { .. })) => {
                assert_eq!(
                    step(&explanation, ExplanationStepName::Cutoff).state,
                    ExplanationStepState::NotReached,
                    "{text}"
                );
                assert_eq!(step(&explanation, ExplanationStepName::Walk).state, ExplanationStepState::Passed, "{text}");
            }
            None => assert_eq!(
                step(&explanation, ExplanationStepName::Cutoff).state,
                ExplanationStepState::Passed,
                "{text}"
            ),
        }
        for excerpt in &unit.excerpts {
            let explanation = explained(service, &question, of_turn(&excerpt.turn));
            assert!(explanation.quoted, "{text}: {}", explanation.sentence);
            let context = &step(&explanation, ExplanationStepName::Context).numbers;
            let line = context["text"].as_str().unwrap();
            assert!(context["context"] == answer.context.as_str() && answer.context.contains(line), "{line}");
            // The line is this turn's: it begins with its speaker, or is a restatement with its time.
            assert!(line.contains(&excerpt.speaker) || line.starts_with('['), "{line} of {}", excerpt.speaker);
        }
    }
    for miss in &answer.trace.near {
        let NearMiss { id, part, rank, score, share, .. } = *miss;
        let explanation = explained(service, &question, of_unit(id, Some(part)));
        assert!(!explanation.quoted, "{text}: {}", explanation.sentence);
        let numbers = &step(&explanation, ExplanationStepName::Score).numbers;
        assert_eq!(
            [&numbers["rank"], &numbers["score"], &numbers["share"]],
            [&json!(rank), &json!(score), &json!(share)]
        );
        assert!(explanation.failed >= Some(ExplanationStepName::Cutoff), "{text}: {:?}", explanation.failed);
        assert_eq!(explanation.vector_hash.as_deref(), Some(plain.trace.vector_hash.as_str()));
    }
    [answer.units.len(), answer.trace.near.len()]
}

/// An answer without the parts of its trace that are only there on request.
fn only_more_trace(answer: &Evidence) -> Value {
    let mut whole = serde_json::to_value(answer).unwrap();
    for name in ["near", "walk"] {
        whole["question"].as_object_mut().unwrap().remove(name);
    }
    whole["trace"].as_object_mut().unwrap().remove("near");
    for round in whole["trace"]["rounds"].as_array_mut().unwrap() {
        round.as_object_mut().unwrap().remove("walk");
    }
    without_shares(&mut whole);
    whole
}

fn without_shares(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if object.get("reached_by").is_some() {
                object.remove("share");
            }
            object.values_mut().for_each(without_shares);
        }
        Value::Array(values) => values.iter_mut().for_each(without_shares),
        _ => {}
    }
}

/// A memory of a file, and the questions of another.
fn sample(home: &Path, extra: &str, name: &str) -> (PipelineDriver, String, Vec<String>) {
    let mut service = open(&pipeline(home, extra));
    ingest(&mut service, &data(&format!("{name}.jsonl")));
    let asked: Value =
        serde_json::from_slice(&std::fs::read(data(&format!("{name}_questions.json"))).unwrap()).unwrap();
    let texts = asked["questions"].as_array().unwrap().iter().map(|one| one["question"].as_str().unwrap().to_owned());
    (service, asked["bank"].as_str().unwrap().to_owned(), texts.collect())
}

#[test]
fn explanations_agree_with_every_answer_over_both_samples() {
    for (name, extra) in [("sample", ""), ("assistant", ""), ("sample", "profile = \"paper\"")] {
        let home = tempfile::tempdir().unwrap();
        let (service, bank, texts) = sample(home.path(), extra, name);
        let found: Vec<[usize; 2]> = texts.iter().map(|text| agrees(&service, &bank, text)).collect();
        let [units, near] = [0, 1].map(|at| found.iter().map(|found| found[at]).sum::<usize>());
        assert!(units > texts.len() && near > texts.len(), "{name} {extra}: {units} units, {near} near misses");
    }
}

#[test]
fn explanations_agree_with_every_answer_over_a_dialogue_of_locomo() {
    const TEST: &str = "explain::explanations_agree_with_every_answer_over_a_dialogue_of_locomo";
    let folder = std::env::var_os("RIPPLEMEM_DATA").map(PathBuf::from);
    let Some(file) = folder.map(|data| data.join("locomo10.json")).filter(|file| file.is_file()) else {
        return skip(TEST, "RIPPLEMEM_DATA names no folder with locomo10.json");
    };
    let home = tempfile::tempdir().unwrap();
    let dialogues: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let mut service = open(&pipeline(home.path(), ""));
    ingest(&mut service, &write(&home.path().join("one.jsonl"), turns_of_dialogue(&dialogues[0]["conversation"])));
    let texts = dialogues[0]["qa"].as_array().unwrap().iter().map(|qa| qa["question"].as_str().unwrap());
    for text in texts.take(QUESTIONS) {
        agrees(&service, BANK, text);
    }
}

/// The turns of a conversation of LoCoMo, a day for each session and a second for each turn.
fn turns_of_dialogue(conversation: &Value) -> String {
    let sessions = (1..).map_while(|session| conversation[format!("session_{session}")].as_array());
    let turns = sessions.enumerate().flat_map(|(day, turns)| {
        turns.iter().enumerate().map(move |(at, turn)| {
            let (month, day) = (1 + day / 28, 1 + day % 28);
            let time = format!("2024-{month:02}-{day:02}T10:{:02}:{:02}Z", at / 60, at % 60);
            let (id, speaker, text) = (&turn["dia_id"], &turn["speaker"], &turn["text"]);
            json!({"bank": BANK, "turn": id, "speaker": speaker, "text": text, "time": time})
        })
    });
    turns.map(|turn| format!("{turn}\n")).collect()
}

/// Turns about many things, one of them about a kayak.
fn harbour(home: &Path, extra: &str) -> (PipelineDriver, Pipeline) {
    let pipeline = pipeline(home, &format!("extract.unit_turns = 1\n{extra}"));
    let mut service = open(&pipeline);
    let things = ["ferry", "violin", "accordion", "boathouse", "lighthouse", "net", "anchor", "sail", "oar", "rope"];
    let texts: Vec<(String, String)> = (0..60)
        .map(|at| {
            let (one, other) = (things[at % 10], things[(at * 7 + at / 10) % 10]);
            (at.to_string(), format!("The {one} number {at} lies beside the {other} of the harbour master."))
        })
        .collect();
    let turns: Vec<(&str, &str, &str)> = texts.iter().map(|(id, text)| (id.as_str(), "Ann", text.as_str())).collect();
    ingest(&mut service, &write(&home.join("in.jsonl"), lines(BANK, "s", &turns)));
    (service, pipeline)
}

const ASKED: &str = "Where is the violin number 11?";

fn failed(explanation: &Explanation, name: ExplanationStepName, words: &str) {
    assert_eq!(explanation.failed, Some(name), "{explanation:#?}");
    assert!(explanation.sentence.contains(words), "{words:?} is not in: {}", explanation.sentence);
    assert!(explanation.change.is_some() || name == ExplanationStepName::Stored, "{}", explanation.sentence);
}

#[test]
fn what_the_log_does_not_hold_or_the_memory_has_not_read_fails_first() {
    let home = tempfile::tempdir().unwrap();
    let (mut service, _) = harbour(home.path(), "");
    let ask = question(BANK, ASKED);
    failed(&explained(&service, &ask, of_turn("nobody")), ExplanationStepName::Stored, "holds no turn nobody");
    let unit = explained(&service, &ask, of_unit(UnitId(7), None));
    failed(&unit, ExplanationStepName::Unit, "no unit 0000000000000007");
    assert_eq!(step(&unit, ExplanationStepName::Stored).state, ExplanationStepState::Unknown);

    let later = lines(BANK, "s", &[("late", "Ann", "The violin number 11 is at the luthier.")]);
    let event = TurnEvent::from_json(later.trim().as_bytes()).unwrap();
    service.log().append_turns(std::slice::from_ref(&event)).unwrap();
    failed(&explained(&service, &ask, of_turn("late")), ExplanationStepName::Reflected, "not read in yet");
    service.catch_up().unwrap();
    let now = explained(&service, &ask, of_turn("late"));
    let [stored, window] = [ExplanationStepName::Stored, ExplanationStepName::Window].map(|name| step(&now, name));
    let offset: u64 = stored.numbers["offset"].as_str().unwrap().parse().unwrap();
    assert!(stored.state == ExplanationStepState::Passed && offset >= 60, "{}", stored.sentence);
    assert!(stored.numbers["append_ms"].as_i64() > Some(0), "{stored:?}");
    assert_eq!(
        (window.state, &window.numbers["open"]),
        (ExplanationStepState::Passed, &json!(true)),
        "{}",
        window.sentence
    );

    let gone =
        TurnEvent::Deletion(types::model::TurnDeletion::permanent(Bank::parse(BANK).unwrap(), "late".to_owned()));
    service.log().append_turns(&[gone]).unwrap();
    service.catch_up().unwrap();
    failed(&explained(&service, &ask, of_turn("late")), ExplanationStepName::Stored, "deleted");
}

#[test]
fn a_memory_of_the_past_has_not_read_what_came_later() {
    let home = tempfile::tempdir().unwrap();
    let place = home.path().join("snapshots").display().to_string();
    let (mut service, _) = harbour(home.path(), &format!("snapshot.directory = {place:?}"));
    let ask = question(BANK, ASKED);
    let before = explained(&service, &ask, of_turn("11")).as_of.unwrap();
    let later = write(&home.path().join("later.jsonl"), lines(BANK, "t", &[("late", "Ann", "The violin is sold.")]));
    ingest(&mut service, &later);
    let past = |turn: &str| {
        let explanation = service.explain(&ask, of_turn(turn), Some(AsOf::Offset(before.parse().unwrap()))).unwrap();
        is_whole(&explanation);
        explanation
    };
    failed(&past("late"), ExplanationStepName::Reflected, "before the turn");
    let known = past("11");
    assert!(known.quoted && known.as_of == Some(before.clone()), "{known:#?}");
    assert_eq!(known, past("11"), "a function of question, point of the past and settings");
    assert!(explained(&service, &ask, of_turn("late")).steps[3].state == ExplanationStepState::Passed);
}

/// The settings that an explanation says would be enough are enough.
#[test]
fn below_the_cutoff_it_says_what_would_be_enough() {
    let home = tempfile::tempdir().unwrap();
    let (service, pipeline) = harbour(home.path(), "recall.rounds = 0\nrecall.stop.doubling = 0.3");
    let ask = question(BANK, ASKED);
    let answer = service.ask(&Question { near: Some(20), ..ask.clone() }).unwrap();
    let explain = |missed: &NearMiss| {
        let explanation = explained(&service, &ask, of_unit(missed.id, Some(missed.part)));
        failed(&explanation, ExplanationStepName::Cutoff, "the cutoff was");
        step(&explanation, ExplanationStepName::Cutoff).numbers.clone()
    };
    let by_tokens = answer.trace.near.iter().map(|missed| (missed.clone(), explain(missed)));
    let (missed, cutoff) =
        by_tokens.into_iter().find(|(_, cutoff)| cutoff.contains_key("quoted_with_budget_tokens")).unwrap();
    assert_eq!(cutoff["cutoff"], json!(answer.trace.scale.unwrap().cutoff.unwrap()));
    drop(service);

    let quotes = |recall: RecallSettings| {
        let mut changed = pipeline.clone();
        changed.recall = recall;
        let service = open(&changed);
        let answer = service.ask(&ask).unwrap();
        answer.trace.first_hop.iter().any(|seen| seen.id == missed.id)
    };
    let mut changed = pipeline.recall.clone();
    let share = cutoff["quoted_with_share"].as_f64().unwrap();
    assert!(share < changed.stop.share, "{share}");
    changed.stop.share = share;
    assert!(quotes(changed.clone()), "with a share of {share}");
    changed.stop.share = share + 0.001;
    assert!(!quotes(changed), "with more than a share of {share}");
    let within = |tokens: u64| quotes(RecallSettings { budget_tokens: tokens as usize, ..pipeline.recall.clone() });
    let tokens = cutoff["quoted_with_budget_tokens"].as_u64().unwrap();
    assert!(within(tokens), "within {tokens}");
    assert!(!within(tokens - 1), "within fewer than {tokens}");
}

#[test]
fn a_part_that_is_no_candidate_has_a_rank_on_request() {
    let home = tempfile::tempdir().unwrap();
    let extra =
        "memory.candidates_from_parts = 20\nrecall.familiarity.candidates = 3\nrecall.familiarity.linked_units = 0";
    let (service, _) = harbour(home.path(), extra);
    let ask = question(BANK, ASKED);
    let all = (0..60).map(|at| explained(&service, &ask, of_turn(&at.to_string())));
    let lost: Vec<Explanation> = all.filter(|one| one.failed == Some(ExplanationStepName::Candidate)).collect();
    assert!(!lost.is_empty(), "every part was a candidate");
    let lost = &lost[0];
    failed(lost, ExplanationStepName::Candidate, "it was not among them");
    assert_eq!(step(lost, ExplanationStepName::Candidate).numbers["parts_total"], json!(60));
    assert_eq!(step(lost, ExplanationStepName::Score).state, ExplanationStepState::NotReached);
    let turn = lost.subject.clone().unwrap().turn.unwrap();
    let ranked = explained(&service, &ask, ExplanationQuery { every_part: true, ..of_turn(&turn) });
    let rank = step(&ranked, ExplanationStepName::Candidate).numbers["rank_of_every_part"].as_u64().unwrap();
    assert!((2..=60).contains(&rank) && ranked.failed == Some(ExplanationStepName::Candidate), "{rank}");
}

#[test]
fn over_the_budget_of_units_or_tokens_the_assembly_fails() {
    let home = tempfile::tempdir().unwrap();
    let (service, _) = harbour(home.path(), "profile = \"paper\"\nrecall.budget = 2\nrecall.rounds = 0");
    let ask = question(BANK, ASKED);
    let answer = service.ask(&ask).unwrap();
    assert_eq!(answer.units.len(), 2);
    let over = answer.trace.first_hop.iter().find(|seen| answer.units.iter().all(|unit| unit.id != seen.id)).unwrap();
    let explanation = explained(&service, &ask, of_unit(over.id, None));
    failed(&explanation, ExplanationStepName::Assembly, "an answer has 2 units");
    assert_eq!(step(&explanation, ExplanationStepName::Assembly).numbers["budget"], json!(2));

    let home = tempfile::tempdir().unwrap();
    let (service, _) = harbour(home.path(), "profile = \"paper\"\nrecall.rounds = 0");
    let few = Question { most_tokens: Some(80), ..ask };
    let answer = service.ask(&few).unwrap();
    let over = answer.trace.first_hop.iter().find(|seen| answer.units.iter().all(|unit| unit.id != seen.id)).unwrap();
    failed(&explained(&service, &few, of_unit(over.id, None)), ExplanationStepName::Assembly, "within 80 tokens");
}

/// The walk of a round: every unit with what became of it, and no more than a trace holds.
#[test]
fn a_walk_shows_what_it_met() {
    let home = tempfile::tempdir().unwrap();
    let (service, bank, texts) = sample(home.path(), "profile = \"paper\"", "sample");
    let mut met = 0;
    for text in &texts {
        let answer = service.ask(&Question { walk: true, ..question(&bank, text) }).unwrap();
        for round in &answer.trace.rounds {
            assert_eq!(round.walk.is_some(), round.plan.proceed);
            let Some(walk) = &round.walk else { continue };
            met += walk.units.len();
            let ids: Vec<UnitId> = walk.units.iter().map(|unit| unit.id).collect();
            assert!(round.plan.anchors.iter().all(|anchor| ids.contains(anchor)), "{text}");
            assert!(round.support.iter().all(|seen| ids.contains(&seen.id)), "{text}");
            assert!(walk.edges.iter().all(|edge| ids.contains(&edge.from) && ids.contains(&edge.to)), "{text}");
            assert!(walk.truncated == 0 && walk.units.len() >= round.reached, "{text}");
        }
    }
    assert!(met > 100, "{met}");
}

#[test]
fn the_command_line_and_the_service_explain() {
    let home = tempfile::tempdir().unwrap();
    let (service, _) = harbour(home.path(), "");
    drop(service);
    let file = pipeline_file(home.path(), "extract.unit_turns = 1");
    let explain = |more: &[&str]| {
        let base = ["explain", ASKED, "--bank", BANK, "--pipeline", file.to_str().unwrap()];
        ripplemem(&[&base[..], more].concat())
    };
    let page = String::from_utf8(explain(&["--turn", "11"]).stdout).unwrap();
    assert!(page.starts_with("Turn 11 is quoted.") && page.contains("\n+ context"), "{page}");
    let told = explain(&["--turn", "nobody", "--json"]);
    let told: Explanation = serde_json::from_slice(&told.stdout).unwrap();
    failed(&told, ExplanationStepName::Stored, "nobody");
    fails(&explain(&[]), 2, &["--turn", "--unit"]);
    fails(&explain(&["--unit", "7"]), 2, &["16 hexadecimal digits"]);

    let service = HttpService::of(home.path());
    let asked = json!({"bank": BANK, "text": ASKED, "turn": "11"});
    let explanation: Explanation = serde_json::from_value(service.post("/v1/explain", &asked)).unwrap();
    is_whole(&explanation);
    assert!(explanation.quoted && page.starts_with(&explanation.sentence), "{page}");
    let again = explain(&["--turn", "11"]);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), page, "the same from the process that has it open");
    for (wrong, status, words) in [
        (json!({"bank": BANK, "text": ASKED}), 400, "either a turn or a unit"),
        (json!({"bank": BANK, "text": ASKED, "turn": "1", "unit": "0000000000000001"}), 400, "either a turn or a unit"),
        (json!({"bank": "none", "text": ASKED, "turn": "1"}), 404, "bank none: unknown"),
        (json!({"bank": BANK, "text": "", "turn": "1"}), 400, "question"),
        (json!({"bank": BANK, "text": ASKED, "turn": "1", "as_of": "then"}), 400, "neither an offset nor a time"),
    ] {
        let (found, _, problem) = service.send("POST", "/v1/explain", "", wrong.to_string().as_bytes());
        assert!(found == status && problem["detail"].as_str().unwrap().contains(words), "{wrong}: {found} {problem}");
    }
    let (found, _, problem) =
        service.send("POST", "/v1/ask", "", json!({"bank": BANK, "text": ASKED, "near": 201}).to_string().as_bytes());
    assert!(found == 400 && problem["detail"].as_str().unwrap().contains("at most"), "{problem}");
}
