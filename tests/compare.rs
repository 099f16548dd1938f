//! Rankings without the graph beside an answer, and recall with the settings of another profile.

use std::{collections::BTreeSet, path::Path};

use ripplemem::PipelineDriver;
use serde_json::Value;
use types::{
    config::Pipeline,
    model::{Bank, Evidence, ExplanationQuery, FlatComparison, FlatRanking, Provenance, Question, SubjectId, UnitId},
};

use super::support::{data, ingest, open, pipeline};

const BANK: &str = "sample/harbour";
const QUESTIONS: [&str; 4] = [
    "Which books has Marta recommended to Elias?",
    "Could Henrik have worked on the boat when she was built?",
    "What does Priya plan for the summer?",
    "Where did they meet in March?",
];

fn question(text: &str) -> Question {
    Question::new(Bank::parse(BANK).unwrap(), text)
}

fn compared(service: &PipelineDriver, text: &str) -> (Evidence, FlatComparison) {
    let mut found = service.ask(&Question { compare: true, ..question(text) }).unwrap();
    found.question.compare = false;
    let flat = found.flat.take().unwrap();
    (found, flat)
}

fn ids(ranking: &FlatRanking) -> Vec<UnitId> {
    ranking.units.iter().map(|unit| unit.id).collect()
}

/// The sample, in a memory whose answers are cut by their tokens alone, and never say that nothing supports them: that
/// line would cost tokens.
fn sample(home: &Path) -> (PipelineDriver, Pipeline) {
    let pipeline = pipeline(home, "recall.supported = 0.0\nrecall.budget = 1000");
    let mut service = open(&pipeline);
    ingest(&mut service, &data("sample.jsonl"));
    (service, pipeline)
}

#[test]
fn rankings_without_the_graph_stand_beside_an_answer_and_change_nothing_of_it() {
    let home = tempfile::tempdir().unwrap();
    let (service, pipeline) = sample(home.path());
    let mut differ = 0;
    for text in QUESTIONS {
        let plain = service.ask(&question(text)).unwrap();
        let (found, flat) = compared(&service, text);
        assert_eq!(found, plain, "{text}");
        assert!(plain.flat.is_none());
        for ranking in [&flat.meaning, &flat.words, &flat.same_score] {
            assert!(ranking.tokens <= plain.tokens.spent, "{text}: {} of {}", ranking.tokens, plain.tokens.spent);
            assert!(ranking.units.is_sorted_by(|a, b| a.score >= b.score), "{text}");
            assert!(ranking.units.iter().all(|unit| !unit.turns.is_empty() && unit.tokens <= ranking.tokens), "{text}");
            let distinct: BTreeSet<UnitId> = ids(ranking).into_iter().collect();
            assert_eq!(distinct.len(), ranking.units.len(), "{text}");
        }
        assert!(!flat.meaning.units.is_empty() && !flat.same_score.units.is_empty(), "{text}");
        differ += usize::from(ids(&flat.meaning) != ids(&flat.same_score));
    }
    assert!(differ > 0, "one ranking is as the other");
    drop(service);

    // Without a walk, the same score quotes what the first hop quotes, in its order.
    let mut without_walk = pipeline;
    without_walk.recall.rounds = 0;
    let service = open(&without_walk);
    for text in QUESTIONS {
        let (found, flat) = compared(&service, text);
        let first: Vec<UnitId> = found.trace.first_hop.iter().map(|seen| seen.id).collect();
        let same = ids(&flat.same_score);
        assert!(first.len() > 1 && same.starts_with(&first), "{text}: {first:?} {same:?}");
        assert_eq!(flat.same_score.tokens, found.tokens.spent, "{text}");
    }
}

#[test]
fn a_question_is_recollected_by_the_recall_of_the_profile_that_it_names() {
    let home = tempfile::tempdir().unwrap();
    let (service, mut pipeline) = sample(home.path());
    let asked = |text: &str| Question { profile: Some("paper".to_owned()), ..question(text) };
    let answers: Vec<Evidence> = QUESTIONS.iter().map(|text| service.ask(&asked(text)).unwrap()).collect();
    let by_channels = |found: &Evidence| {
        let first = &found.trace.first_hop;
        !first.is_empty() && first.iter().all(|seen| matches!(seen.provenance, Provenance::FirstHop { .. }))
    };
    assert!(answers.iter().all(by_channels), "the paper's first hop is by channels");
    assert!(!by_channels(&service.ask(&question(QUESTIONS[0])).unwrap()), "the next question is as before");
    let (found, flat) = (&answers[0], service.ask(&Question { compare: true, ..asked(QUESTIONS[0]) }).unwrap());
    let ranking = flat.flat.unwrap().same_score;
    assert!(found.trace.first_hop.iter().any(|seen| seen.id == ranking.units[0].id), "of the same first hop");
    let quoted = ExplanationQuery { id: SubjectId::Unit(found.units[0].id), part: None, every_part: false };
    assert!(
        service.explain(&asked(QUESTIONS[0]), quoted, None).unwrap().quoted,
        "an explanation is of the profile, too"
    );
    let refused = service.ask(&Question { profile: Some("papers".to_owned()), ..question("Who?") }).unwrap_err();
    assert!(refused.to_string().contains("\"paper-longmemeval\""), "{refused}");
    drop(service);

    // The same as if the pipeline file had the profile's recall.
    pipeline.recall = pipeline.recall.of_profile("paper").unwrap();
    let service = open(&pipeline);
    let without_profile = |found: &Evidence| {
        let mut whole = serde_json::to_value(found).unwrap();
        whole["question"].as_object_mut().unwrap().remove("profile");
        whole
    };
    let expected: Vec<Value> =
        QUESTIONS.iter().map(|text| serde_json::to_value(service.ask(&question(text)).unwrap()).unwrap()).collect();
    assert_eq!(answers.iter().map(without_profile).collect::<Vec<_>>(), expected);
}
