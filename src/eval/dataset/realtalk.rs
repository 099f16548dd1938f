//! The questions of REALTALK, which are in the files of its dialogues.
//!
//! In: a directory of dialogues, or one file. Out: their questions, with the files' evidence strings
//! unchanged, in the order of the dialogues' numbers. Categories are numbers: 1 multi-hop, 2 temporal,
//! 3 common sense. The dialogues support an answer to every question.

use std::path::Path;

use super::{
    error::DatasetError,
    format::BenchmarkFormat,
    json::value,
    locomo::annotated,
    question::{Answerability, Dataset},
};
use crate::{dataset_damage::DatasetDamage, readers::realtalk::dialogues};

/// Reads the questions of all dialogues, or of those in `only`.
pub(super) fn read(path: &Path, only: &[String]) -> Result<Dataset, DatasetError> {
    let mut dataset = Dataset { scorable: true, ..Dataset::default() };
    let dialogues = dialogues(path).map_err(|source| DatasetError::Read { path: path.to_owned(), source })?;
    for (name, file) in dialogues.iter().filter(|(name, _)| only.is_empty() || only.contains(name)) {
        let Some(bank) = BenchmarkFormat::RealTalk.bank(name) else {
            dataset.problems.note(DatasetDamage::NoConversation, format!("{name:?} cannot name a bank"));
            continue;
        };
        let dialogue = value(BenchmarkFormat::RealTalk.name(), file)?;
        annotated(&mut dataset, name, &bank, dialogue.get("qa"), category);
    }
    Ok(dataset)
}

fn category(number: &str) -> Option<(&'static str, Answerability)> {
    let name = match number {
        "1" => "multi-hop",
        "2" => "temporal",
        "3" => "common-sense",
        _ => return None,
    };
    Some((name, Answerability::Supported))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        dataset_damage::DatasetDamage,
        recording_source::{BenchmarkTurns, RecordingSource},
    };

    #[test]
    fn questions_keep_the_evidence_that_their_lists_and_ranges_name() {
        let said = |n: u32| {
            json!({"clean_text": "I like tea.", "speaker": "Ada", "date_time": "29.12.2023, 22:42:04",
                   "dia_id": format!("D1:{n}")})
        };
        let asked = |category: u32, evidence: Value| json!({"question": "Who?", "answer": "Ada", "category": category, "evidence": evidence});
        let dialogue = json!({
            "name": {"speaker_1": "Ada", "speaker_2": "Bo"},
            "session_1": [said(1), said(2), said(3), said(5)],
            "qa": [
                asked(1, json!(["D1:1", "D1:5"])),
                asked(2, json!(["D1:1. D1:2"])),
                asked(3, json!(["D1:2-D1:5"])),
                asked(1, json!(["D1:1\u{2013}3"])),
                asked(1, json!(["D1;2"])),
                asked(1, json!(["D1:4", ""])),
                asked(1, json!(["D1:4", "D1:3"])),
                asked(4, json!(["D1:1"])),
            ]
        });
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("Chat_1_Ada_Bo.json"), dialogue.to_string()).unwrap();
        let mut recorded = BenchmarkTurns::default();
        let settings = types::config::SourceSettings::new("realtalk", directory.path());
        let mut source = crate::readers::open(&settings).unwrap();
        let mut recording = RecordingSource::new(&mut *source, &mut recorded, true);
        while sources::TurnSource::next(&mut recording, 1_000).unwrap().is_some() {}
        let mut dataset = read(directory.path(), &[]).unwrap();
        dataset.resolve(&recorded);
        let found: Vec<(&str, Vec<&str>)> = dataset
            .questions
            .iter()
            .map(|q| (q.category.as_str(), q.evidence.iter().map(String::as_str).collect()))
            .collect();
        let expected = [
            ("multi-hop", vec!["D1:1", "D1:5"]),
            ("temporal", vec!["D1:1", "D1:2"]),
            ("common-sense", vec!["D1:2", "D1:3", "D1:5"]),
            ("multi-hop", vec!["D1:1", "D1:2", "D1:3"]),
            ("multi-hop", vec!["D1:2"]),
            ("multi-hop", vec!["D1:3"]),
            ("category 4", vec!["D1:1"]),
        ];
        assert_eq!(found, expected);
        for (kind, count) in [
            (DatasetDamage::RepairedEvidence, 4),
            (DatasetDamage::LostEvidence, 3),
            (DatasetDamage::NoEvidence, 1),
            (DatasetDamage::UnknownCategory, 1),
        ] {
            assert_eq!(dataset.problems.count(kind), count, "{kind:?}");
        }
        assert_eq!(dataset.questions[0].bank.as_str(), "realtalk/Chat_1_Ada_Bo");
        assert_eq!(read(directory.path(), &["Chat_2".to_owned()]).unwrap().questions, []);
    }
}
