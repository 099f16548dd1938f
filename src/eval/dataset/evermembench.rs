//! The questions of EverMemBench-Dynamic: `qa_NNN.json` files beside a `dialogue.json`.
//!
//! In: the path of `dialogue.json`. Out: the questions of every `qa_*.json` in its directory, in the order of their
//! numbers. The files name no evidence turns, so their questions are asked and timed, but not scored by evidence. The
//! bank is `evermembench/` followed by the topic, as in the source.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{
    directory::entries,
    error::DatasetError,
    format::BenchmarkFormat,
    json::{value, words},
    question::{Answerability, Dataset, DatasetQuestion},
};
use crate::{dataset_damage::DatasetDamage, readers::evermembench};

/// Reads the questions beside a `dialogue.json`.
pub(super) fn read(dialogue: &Path) -> Result<Dataset, DatasetError> {
    let mut dataset = Dataset { scorable: false, ..Dataset::default() };
    let whole = dialogue.canonicalize().map_err(|source| DatasetError::Read { path: dialogue.to_owned(), source })?;
    let directory = whole.parent().unwrap_or(Path::new("/"));
    let name = evermembench::topic(&whole);
    let Some(bank) = BenchmarkFormat::EverMemBench.bank(&name) else {
        dataset.problems.note(DatasetDamage::NoConversation, format!("{name:?} cannot name a bank"));
        return Ok(dataset);
    };
    for file in files(directory)? {
        let stem = file.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let value = value(BenchmarkFormat::EverMemBench.name(), &file)?;
        let Some(items) = value.get("qars").and_then(Value::as_array) else {
            dataset.problems.note(DatasetDamage::NotAQuestion, format!("{stem}: qars is not a list"));
            continue;
        };
        for (number, item) in items.iter().enumerate() {
            let id = format!("{stem}#{}", words(item.get("id")).unwrap_or_else(|| number.to_string()));
            let Some(text) = words(item.get("Q")) else {
                dataset.problems.note(DatasetDamage::NotAQuestion, id);
                continue;
            };
            let category = words(item.get("task_id"));
            if category.is_none() {
                dataset.problems.note(DatasetDamage::UnknownCategory, &id);
            }
            let reference = words(item.get("A"));
            if reference.is_none() {
                dataset.problems.note(DatasetDamage::NoAnswer, &id);
            }
            dataset.questions.push(DatasetQuestion {
                id,
                conversation: name.clone(),
                bank: bank.clone(),
                answerability: if category.is_some() { Answerability::Supported } else { Answerability::Unknown },
                category: category.map_or_else(|| "task none".to_owned(), |c| format!("task {c}")),
                text,
                asked_at: None,
                reference,
                evidence: Vec::new(),
            });
        }
    }
    Ok(dataset)
}

/// The question files of a directory, in the order of their numbers.
fn files(directory: &Path) -> Result<Vec<PathBuf>, DatasetError> {
    let mut files = Vec::new();
    for path in entries(directory)? {
        let name = path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        if let Some(number) = name.strip_prefix("qa_").and_then(|n| n.strip_suffix(".json")) {
            files.push((number.parse::<u64>().unwrap_or(u64::MAX), path));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::recording_source::tests::recorded;

    #[test]
    fn question_files_are_read_in_order_and_a_truncated_one_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("topic");
        std::fs::create_dir(&directory).unwrap();
        let dialogue = directory.join("dialogue.json");
        std::fs::write(&dialogue, "{}").unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
        write("qa_10.json", &json!({"qars": [{"id": 1, "Q": "Who leads?", "A": "Bo", "task_id": 2}]}).to_string());
        write(
            "qa_2.json",
            &json!({"qars": [{"id": "a", "Q": "When?", "A": 7, "task_id": "F_SH"}, {"Q": "Odd?"}, 3]}).to_string(),
        );
        let mut dataset = read(&dialogue).unwrap();
        dataset.resolve(&recorded("evermembench/topic", &["x"]));
        let found: Vec<(&str, &str)> = dataset.questions.iter().map(|q| (q.id.as_str(), q.category.as_str())).collect();
        assert_eq!(found, [("qa_2#a", "task F_SH"), ("qa_2#1", "task none"), ("qa_10#1", "task 2")]);
        assert_eq!(dataset.problems.count(DatasetDamage::NotAQuestion), 1);
        assert_eq!(dataset.problems.count(DatasetDamage::NoAnswer), 1);
        write("qa_3.json", "{\"qars\": [{\"id\": 1, \"Q\": \"Wh");
        let message = read(&dialogue).unwrap_err().to_string();
        assert!(message.contains("qa_3.json:1:") && message.contains("fetch the whole file again"), "{message}");
    }
}
