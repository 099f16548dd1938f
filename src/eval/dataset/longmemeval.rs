//! The questions of LongMemEval, each with its own haystack of sessions.
//!
//! In: the questions, one after another. Out: each in its own bank (`longmemeval/QUESTION_ID`), with the turns that
//! `has_answer` marks, under the source's turn ids. "I" and "you" become the names that the source gives to the
//! anonymous roles. A question whose id ends in `_abs` asks for something that the haystack does not contain.

use jiff::{civil::DateTime, tz::Offset};
use serde_json::Value;

use super::{
    format::BenchmarkFormat,
    json::words,
    question::{Answerability, Dataset, DatasetQuestion},
};
use crate::{dataset_damage::DatasetDamage, readers::longmemeval};
use types::model::EventTime;

/// A date without its weekday, as in `2023/05/20 (Sat) 02:21`.
const DATE_FORMAT: &str = "%Y/%m/%d %H:%M";
/// The published question types.
const TYPES: [&str; 6] = [
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
];

/// Reads one question. `only` selects by question id.
pub(super) fn read(dataset: &mut Dataset, index: usize, item: &Value, only: &[String], zone_seconds: i32) {
    let Some(name) = words(item.get("question_id")) else {
        return dataset.problems.note(DatasetDamage::NotAQuestion, format!("[{index}]: question_id is missing"));
    };
    if !only.is_empty() && !only.contains(&name) {
        return;
    }
    if dataset.questions.iter().any(|q| q.id == name) {
        // The source reads only the first history of an id.
        return dataset.problems.note(DatasetDamage::NoConversation, format!("[{index}]: {name} appears twice"));
    }
    let (Some(text), Some(bank)) = (words(item.get("question")), BenchmarkFormat::LongMemEval.bank(&name)) else {
        return dataset.problems.note(DatasetDamage::NotAQuestion, name);
    };
    let category = words(item.get("question_type")).unwrap_or_else(|| "none".to_owned());
    let answerability = if name.ends_with("_abs") {
        Answerability::Unsupported
    } else if TYPES.contains(&category.as_str()) {
        Answerability::Supported
    } else {
        dataset.problems.note(DatasetDamage::UnknownCategory, format!("{name}: {category}"));
        Answerability::Unknown
    };
    let asked_at = words(item.get("question_date")).and_then(|d| time(&d, zone_seconds));
    if asked_at.is_none() {
        dataset.problems.note(DatasetDamage::NoDate, &name);
    }
    let reference = words(item.get("answer"));
    if reference.is_none() {
        dataset.problems.note(DatasetDamage::NoAnswer, &name);
    }
    let evidence = if answerability == Answerability::Unsupported { Vec::new() } else { evidence(item) };
    dataset.questions.push(DatasetQuestion {
        id: name.clone(),
        conversation: name,
        bank,
        category,
        answerability,
        text: with_names(&text),
        asked_at,
        reference,
        evidence,
    });
}

/// The question with the names that the source gives to the anonymous roles: "I" is its user and "you" its assistant,
/// as in the paper.
fn with_names(question: &str) -> String {
    let (user, assistant) = (longmemeval::USER, longmemeval::ASSISTANT);
    let mut out = String::with_capacity(question.len());
    let mut word = String::new();
    for c in question.chars().chain(std::iter::once(' ')) {
        if c.is_alphanumeric() || matches!(c, '\'' | '\u{2019}') {
            word.push(c);
            continue;
        }
        match word.replace('\u{2019}', "'").to_lowercase().as_str() {
            "i" | "me" | "myself" => out.push_str(user),
            "my" | "mine" => out.push_str(&format!("{user}'s")),
            "i'm" => out.push_str(&format!("{user} is")),
            "i've" => out.push_str(&format!("{user} has")),
            "i'd" => out.push_str(&format!("{user} would")),
            "i'll" => out.push_str(&format!("{user} will")),
            "you" | "yourself" => out.push_str(assistant),
            "your" | "yours" => out.push_str(&format!("{assistant}'s")),
            _ => out.push_str(&word),
        }
        word.clear();
        out.push(c);
    }
    out.pop();
    out
}

/// The turns that the file marks as holding the answer.
fn evidence(item: &Value) -> Vec<String> {
    let sessions = item.get("haystack_sessions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let ids = item.get("haystack_session_ids").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let names = longmemeval::session_names(ids.iter().map(|id| id.as_str().unwrap_or_default()));
    let turns = names.iter().zip(sessions).flat_map(|(name, session)| {
        let turns = session.as_array().map_or(&[][..], Vec::as_slice);
        turns.iter().enumerate().map(move |(index, turn)| (name, index, turn))
    });
    turns
        .filter(|(_, _, turn)| turn.get("has_answer").and_then(Value::as_bool) == Some(true))
        .map(|(name, index, _)| longmemeval::turn_id(name, index))
        .collect()
}

fn time(text: &str, zone_seconds: i32) -> Option<EventTime> {
    // The weekday is redundant and sometimes wrong.
    let plain: Vec<&str> = text.split_whitespace().filter(|w| !w.starts_with('(')).collect();
    let local = DateTime::strptime(DATE_FORMAT, plain.join(" ")).ok()?;
    let moment = Offset::from_seconds(zone_seconds).and_then(|o| o.to_timestamp(local)).ok()?;
    EventTime::new(moment.as_millisecond(), zone_seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::recording_source::tests::recorded;

    #[test]
    fn marked_turns_are_evidence_and_damage_is_counted() {
        let sessions = json!([
            [{"role": "user", "content": "Hi"}],
            [{"role": "user", "content": "I keep bees", "has_answer": true}, {"role": "assistant", "content": "Nice"}],
            "half a sess"
        ]);
        let question = |id: &str, kind: &str, date: Value| {
            json!({"question_id": id, "question_type": kind, "question": "What does I keep?", "answer": "bees",
                   "question_date": date, "haystack_sessions": sessions,
                   "haystack_session_ids": ["a", "b", "c"]})
        };
        let items = [
            question("q1", "multi-session", json!("2023/05/20 (Sat) 02:21")),
            question("q2_abs", "multi-session", json!("2023/05/20 (Sat) 02:21")),
            question("q3", "riddle", Value::Null),
            json!({"question_id": "q4"}),
            question("q1", "multi-session", json!("2023/05/20 (Sat) 02:21")),
            json!({"question": "?"}),
        ];
        let mut dataset = Dataset { scorable: true, ..Dataset::default() };
        for (index, item) in items.iter().enumerate() {
            read(&mut dataset, index, item, &[], 7_200);
        }
        assert_eq!(dataset.questions[0].text, "What does Alice keep?");
        let at = dataset.questions[0].asked_at.unwrap();
        assert_eq!(at.to_string(), "2023-05-20T02:21:00+02:00");
        let mut all = recorded("longmemeval/q1", &["b:0"]);
        all.turns.extend(recorded("longmemeval/q2_abs", &["b:0"]).turns);
        all.turns.extend(recorded("longmemeval/q3", &["b:0"]).turns);
        dataset.resolve(&all);
        let found: Vec<(&str, Answerability, usize)> =
            dataset.questions.iter().map(|q| (q.id.as_str(), q.answerability, q.evidence.len())).collect();
        assert_eq!(
            found,
            [
                ("q1", Answerability::Supported, 1),
                ("q2_abs", Answerability::Unsupported, 0),
                ("q3", Answerability::Unknown, 1)
            ]
        );
        for (kind, count) in [
            (DatasetDamage::NotAQuestion, 2),
            (DatasetDamage::UnknownCategory, 1),
            (DatasetDamage::NoDate, 1),
            (DatasetDamage::NoConversation, 1),
        ] {
            assert_eq!(dataset.problems.count(kind), count, "{kind:?}");
        }
    }

    #[test]
    fn questions_name_the_roles_as_the_source_does() {
        for (asked, expected) in [
            ("Where did I leave my keys?", "Where did Alice leave Alice's keys?"),
            ("I\u{2019}m late; what did you tell me?", "Alice is late; what did Bob tell Alice?"),
            ("Is Mimi in the inn?", "Is Mimi in the inn?"),
        ] {
            assert_eq!(with_names(asked), expected);
        }
    }
}
