//! The questions of LoCoMo's `locomo10.json`.
//!
//! In: the list of conversations. Out: their questions, with the file's evidence strings
//! unchanged. Categories are numbers, with the names of the paper's tables: 1 multi-hop, 2
//! temporal, 3 open-domain, 4 single-hop, 5 adversarial, which the dialogue does not support.
//! An answer may be a number.

use serde_json::Value;

use super::{
    format::BenchmarkFormat,
    json::words,
    question::{Answerability, Dataset, DatasetQuestion},
};
use crate::dataset_damage::{DamageCounts, DatasetDamage};
use types::model::Bank;

/// Reads the questions of all conversations, or of those in `only`.
pub(super) fn read(conversations: &[Value], only: &[String]) -> Dataset {
    let mut dataset = Dataset { scorable: true, ..Dataset::default() };
    let mut seen: Vec<&str> = Vec::new();
    for (index, conversation) in conversations.iter().enumerate() {
        let Some(name) = conversation.get("sample_id").and_then(Value::as_str) else {
            dataset.problems.note(DatasetDamage::NoConversation, format!("[{index}]: sample_id is missing"));
            continue;
        };
        if !only.is_empty() && !only.iter().any(|o| o == name) {
            continue;
        }
        if seen.contains(&name) {
            dataset.problems.note(DatasetDamage::NoConversation, format!("[{index}]: {name} appears twice"));
            continue;
        }
        seen.push(name);
        let Some(bank) = BenchmarkFormat::Locomo.bank(name) else {
            dataset.problems.note(DatasetDamage::NoConversation, format!("[{index}]: {name:?} cannot name a bank"));
            continue;
        };
        annotated(&mut dataset, name, &bank, conversation.get("qa"), category);
    }
    dataset
}

/// Reads the list of a dialogue's annotated questions. `category` returns a category's name by its number, and whether
/// the dialogue supports an answer.
pub(super) fn annotated(
    dataset: &mut Dataset,
    name: &str,
    bank: &Bank,
    list: Option<&Value>,
    category: fn(&str) -> Option<(&'static str, Answerability)>,
) {
    let Some(Value::Array(questions)) = list else {
        return dataset.problems.note(DatasetDamage::NotAQuestion, format!("{name}: qa is not a list"));
    };
    for (number, value) in questions.iter().enumerate() {
        let id = format!("{name}#{number}");
        let Some(text) = words(value.get("question")) else {
            dataset.problems.note(DatasetDamage::NotAQuestion, id);
            continue;
        };
        let number = words(value.get("category")).unwrap_or_else(|| "none".to_owned());
        let (category, answerability) = category(&number).map_or_else(
            || {
                dataset.problems.note(DatasetDamage::UnknownCategory, format!("{id}: {number}"));
                (format!("category {number}"), Answerability::Unknown)
            },
            |(name, answerability)| (name.to_owned(), answerability),
        );
        let evidence = evidence(value.get("evidence"), &id, &mut dataset.problems);
        let reference = words(value.get("answer"));
        if reference.is_none() && answerability == Answerability::Supported {
            dataset.problems.note(DatasetDamage::NoAnswer, &id);
        }
        dataset.questions.push(DatasetQuestion {
            id,
            conversation: name.to_owned(),
            bank: bank.clone(),
            category,
            answerability,
            text,
            asked_at: None,
            reference,
            evidence,
        });
    }
}

fn category(number: &str) -> Option<(&'static str, Answerability)> {
    match number {
        "1" => Some(("multi-hop", Answerability::Supported)),
        "2" => Some(("temporal", Answerability::Supported)),
        "3" => Some(("open-domain", Answerability::Supported)),
        "4" => Some(("single-hop", Answerability::Supported)),
        "5" => Some(("adversarial", Answerability::Unsupported)),
        _ => None,
    }
}

/// The evidence strings; a single string without a list is accepted, too.
fn evidence(value: Option<&Value>, id: &str, problems: &mut DamageCounts) -> Vec<String> {
    let items = match value {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(items)) => items.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let mut strings = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Value::String(text) => strings.push(text.clone()),
            other => problems.note(DatasetDamage::LostEvidence, format!("{id}: {other}")),
        }
    }
    strings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::recording_source::{BenchmarkTurns, RecordingSource, tests::recorded};

    fn damaged() -> Vec<Value> {
        let Value::Array(list) = json!([
            {"sample_id": "c1", "conversation": {}, "qa": [
                {"question": "Where is the kayak?", "answer": "shed", "category": 4, "evidence": ["D1:1"]},
                {"question": "Where is  the kayak?", "answer": "shed", "category": 4, "evidence": ["D1:1"]},
                {"question": "How many boats?", "answer": 3, "category": 1, "evidence": ["D1:1; D1:2"]},
                {"question": "When?", "answer": "May", "category": 2, "evidence": ["D:1:2", "D1:02"]},
                {"question": "Why?", "category": 3, "evidence": ["D9:9"]},
                {"question": "Who?", "answer": "Ada", "category": 3, "evidence": ["D9:9", "D1:3"]},
                {"question": "Whose?", "adversarial_answer": "Bo", "category": 5, "evidence": []},
                {"question": "What?", "answer": "tea", "category": 7, "evidence": ["D1:1"]},
                {"question": "Which?", "answer": "tea", "evidence": "D1:1"},
                {"question": " ", "category": 1},
                "no question",
                {"question": "Odd?", "answer": "x", "category": "4", "evidence": [7]}
            ]},
            {"sample_id": "c2", "qa": "gone"},
            {"qa": []},
            {"sample_id": "c1", "qa": []},
            {"sample_id": "c3", "qa": [{"question": "Lost?", "answer": "x", "category": 4, "evidence": ["D1:1"]}]}
        ]) else {
            panic!("a list")
        };
        list
    }

    #[test]
    fn damage_is_repaired_or_counted_never_silent() {
        let mut dataset = read(&damaged(), &[]);
        dataset.mark_duplicates();
        let given: BenchmarkTurns = recorded("locomo/c1", &["D1:1", "D1:2", "D1:3"]);
        dataset.resolve(&given);
        let found: Vec<(&str, &str, Vec<&str>)> = dataset
            .questions
            .iter()
            .map(|q| (q.id.as_str(), q.category.as_str(), q.evidence.iter().map(String::as_str).collect()))
            .collect();
        assert_eq!(
            found,
            [
                ("c1#0", "single-hop", vec!["D1:1"]),
                ("c1#1", "single-hop", vec!["D1:1"]),
                ("c1#2", "multi-hop", vec!["D1:1", "D1:2"]),
                ("c1#3", "temporal", vec!["D1:2"]),
                ("c1#5", "open-domain", vec!["D1:3"]),
                ("c1#6", "adversarial", vec![]),
                ("c1#7", "category 7", vec!["D1:1"]),
                ("c1#8", "category none", vec!["D1:1"]),
            ]
        );
        assert_eq!(dataset.questions[2].reference.as_deref(), Some("3"), "a number is an answer");
        let counts = [
            (DatasetDamage::Duplicate, 1),
            (DatasetDamage::RepairedEvidence, 3),
            (DatasetDamage::LostEvidence, 3),
            (DatasetDamage::NoEvidence, 2),
            (DatasetDamage::UnknownCategory, 2),
            (DatasetDamage::NotAQuestion, 3),
            (DatasetDamage::NoConversation, 3),
            (DatasetDamage::NoAnswer, 1),
        ];
        for (kind, count) in counts {
            assert_eq!(dataset.problems.count(kind), count, "{kind:?}: {:?}", dataset.problems);
        }
    }

    #[test]
    fn a_limit_applies_to_each_conversation_in_file_order() {
        let mut dataset = read(&damaged(), &[]);
        dataset.limit(2, None);
        let ids: Vec<&str> = dataset.questions.iter().map(|q| q.id.as_str()).collect();
        assert_eq!(ids, ["c1#0", "c1#1", "c3#0"]);
        assert_eq!(read(&damaged(), &["c3".to_owned()]).questions.len(), 1);
    }

    #[test]
    fn a_greater_limit_keeps_the_questions_that_a_smaller_one_chose() {
        let chosen = |most: usize| -> Vec<String> {
            let mut dataset = read(&damaged(), &[]);
            dataset.limit(most, Some(7));
            dataset.questions.into_iter().filter(|q| q.conversation == "c1").map(|q| q.id).collect()
        };
        for most in 1..8 {
            let (fewer, more) = (chosen(most), chosen(most + 1));
            assert_eq!((fewer.len(), more.len()), (most, most + 1));
            assert!(fewer.iter().all(|id| more.contains(id)), "{fewer:?} of {more:?}");
        }
    }

    /// The counts that the data's own loader publishes; skipped without the data.
    #[test]
    fn the_development_file_has_the_counts_of_its_loader() {
        let Some(data) = std::env::var_os("RIPPLEMEM_DATA") else {
            return testing::skipped("the LoCoMo counts: RIPPLEMEM_DATA is not set");
        };
        let path = std::path::Path::new(&data).join("locomo/locomo-dev5.json");
        let settings = types::config::SourceSettings::new("locomo", &path);
        let mut recorded = BenchmarkTurns::default();
        let mut source = crate::readers::open(&settings).unwrap();
        let mut recording = RecordingSource::new(&mut *source, &mut recorded, true);
        while sources::TurnSource::next(&mut recording, 1_000).unwrap().is_some() {}
        let mut dataset = crate::dataset::read(BenchmarkFormat::Locomo, &path, &[], 0).unwrap();
        assert_eq!((recorded.count(), dataset.questions.len()), (2_760, 999));
        dataset.resolve(&recorded);
        let of = |name: &str| dataset.questions.iter().filter(|q| q.category == name).count();
        assert_eq!(
            ["multi-hop", "temporal", "open-domain", "single-hop", "adversarial"].map(of),
            [142, 156, 44, 418, 237]
        );
        assert_eq!(dataset.problems.count(DatasetDamage::NoEvidence), 2);
    }
}
