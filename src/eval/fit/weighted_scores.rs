//! Computes scores from terms and weights, with the arithmetic of the memory's familiarity score.
//!
//! In: the parts of a question with their terms, and weights. Out: a score for each part. The memory computes the same
//! from its own parts; a test checks that the two agree.

use super::terms::{PartTerms, QuestionTerms, TERMS, weights_of};
use memory::language::question::QuestionType;
use types::config::FamiliarityWeights;

/// The score of a session is the mean of this many parts, as in the memory.
const SESSION_BEST: usize = 3;

/// The score of every part.
pub(super) fn scores(question: &QuestionTerms, weights: &FamiliarityWeights) -> Vec<f64> {
    let parts = &question.parts;
    let w = weights_of(weights, question.question_type == QuestionType::Time);
    let own: Vec<f64> = parts.iter().map(|part| own(part, &w)).collect();
    let turns: Vec<usize> = (0..parts.len()).filter(|at| !parts[*at].is_passage).collect();
    let mut scores = own.clone();
    for (place, &at) in turns.iter().enumerate() {
        let near = |distance: usize| {
            let sides = [place.checked_sub(distance), place.checked_add(distance)].into_iter().flatten();
            let sides = sides.filter_map(|place| turns.get(place).copied());
            let same = sides.filter(|near| parts[*near].session == parts[at].session);
            same.map(|near| own[near]).reduce(f64::max).unwrap_or(0.0)
        };
        scores[at] += weights.next_turn * near(1) + weights.second_turn * near(2);
    }
    add_session(parts, weights.session, &mut scores);
    scores
}

fn own(part: &PartTerms, weights: &[f64; TERMS]) -> f64 {
    part.terms.iter().zip(weights).map(|(term, weight)| f64::from(*term) * weight).sum()
}

/// Adds a share of the mean of the session's best parts.
fn add_session(parts: &[PartTerms], share: f64, scores: &mut [f64]) {
    let mut from = 0;
    while let Some(first) = parts.get(from) {
        let length = parts.iter().skip(from).take_while(|p| p.session == first.session).count();
        let Some(session) = scores.get_mut(from..from + length) else { break };
        let mut best = [f64::MIN; SESSION_BEST];
        for score in session.iter() {
            let mut next = *score;
            for place in &mut best {
                if next > *place {
                    std::mem::swap(place, &mut next);
                }
            }
        }
        let counted = length.min(SESSION_BEST);
        let mean = best.iter().take(counted).sum::<f64>() / counted as f64;
        session.iter_mut().for_each(|score| *score += share * mean);
        from += length;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        EvalRequest,
        benchmark_memory::BenchmarkMemory,
        dataset::{self, BenchmarkFormat},
        fit::terms::terms_of,
    };
    use models::embed;
    use types::config::Pipeline;

    #[test]
    fn the_arithmetic_is_the_memorys() {
        let said = |speaker: &str, id: &str, text: &str| json!({"speaker": speaker, "dia_id": id, "text": text});
        let asked = |question: &str, evidence: &str| json!({"question": question, "answer": "x", "category": 1, "evidence": [evidence]});
        let file = json!([{"sample_id": "c", "conversation": {
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                said("Iris", "D1:1", "I bought a green canoe at the flea market in \"Old Mill\" yesterday."),
                said("Tomas", "D1:2", "Lovely! Where will you paddle it?"),
                said("Iris", "D1:3", "On the river Elbe near Dresden, every Sunday with my brother."),
                said("Tomas", "D1:4", "My brother Anton repairs accordions in his cellar."),
                said("Iris", "D1:5", "Does he sell them?"),
                said("Tomas", "D1:6", "He sold three accordions to a circus in April.")
            ],
            "session_2_date_time": "9:00 am on 9 June, 2023",
            "session_2": [said("Iris", "D2:1", "The canoe sank."), said("Tomas", "D2:2", "Oh no! The green one?")]
        }, "qa": [
            asked("Where does Iris paddle the canoe?", "D1:3"),
            asked("When did Anton sell accordions in April?", "D1:6"),
            asked("Which things have Iris and Tomas bought?", "D1:1")
        ]}]);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("small.json");
        std::fs::write(&path, file.to_string()).unwrap();
        let pipeline = Pipeline::parse("version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"").unwrap();
        let mut bench =
            BenchmarkMemory::open(&EvalRequest::of_file(BenchmarkFormat::Locomo, &path, &pipeline)).unwrap();
        bench.dataset = dataset::read(BenchmarkFormat::Locomo, &path, &[], 0).unwrap();
        let (service, _) = bench.build(&mut |_| ()).unwrap();
        let mut embedder = embed::open(&pipeline.embed, &pipeline.model()).unwrap();
        let replica = service.replica();
        let recall = &pipeline.recall;
        for asked in &bench.dataset.questions {
            let terms = terms_of(replica, &mut *embedder, &asked.question(), &asked.evidence, 0, recall).unwrap();
            let weights = &recall.familiarity.weights;
            let mut embed = |texts: &[&str]| {
                let vectors: Result<Vec<_>, _> = texts.iter().map(|text| embedder.embed_query(text)).collect();
                vectors.map_err(Into::into)
            };
            let looks = replica.every_part(&asked.question(), &mut embed, std::slice::from_ref(recall)).unwrap();
            let mut expected: Vec<_> = looks[0]
                .best
                .iter()
                .map(|p| {
                    ((p.unit.session().to_owned(), p.unit.part(p.part).unwrap().ordinal, p.unit.id, p.part), p.score)
                })
                .collect();
            expected.sort_by(|a, b| a.0.cmp(&b.0));
            let found = scores(&terms, weights);
            assert_eq!(found.len(), expected.len());
            assert!(found.len() >= 7, "{}", found.len());
            for (found, (_, expected)) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-3, "{found} {expected} {}", asked.text);
            }
        }
    }
}
