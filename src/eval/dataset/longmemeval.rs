//! The questions of LongMemEval: one haystack of sessions each.
//!
//! In: the list of questions. Out: one question a bank (`longmemeval/QUESTION_ID`) with the
//! turns that `has_answer` marks, named as the source names them. A question whose id ends in `_abs` asks for something
//! that the haystack does not hold.

use jiff::{civil::DateTime, tz::Offset};
use serde_json::Value;

use super::{Asked, Dataset, Format, Standing, bank, words};
use crate::{eval::problems::Kind, model::EventTime, source::longmemeval};

/// How a date is written, such as `2023/05/20 (Sat) 02:21`.
const DATE_FORMAT: &str = "%Y/%m/%d (%a) %H:%M";
/// The published question types.
const TYPES: [&str; 6] = [
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
];

/// Reads them. `only` chooses by question id.
pub(super) fn read(items: &[Value], only: &[String], zone_seconds: i32) -> Dataset {
    let mut dataset = Dataset { scorable: true, ..Dataset::default() };
    for (index, item) in items.iter().enumerate() {
        let Some(name) = words(item.get("question_id")) else {
            dataset.problems.note(Kind::NotAQuestion, format!("[{index}]: question_id is missing"));
            continue;
        };
        if !only.is_empty() && !only.contains(&name) {
            continue;
        }
        let (Some(text), Some(bank)) = (words(item.get("question")), bank(Format::LongMemEval, &name)) else {
            dataset.problems.note(Kind::NotAQuestion, name);
            continue;
        };
        let category = words(item.get("question_type")).unwrap_or_else(|| "none".to_owned());
        let standing = if name.ends_with("_abs") {
            Standing::Unsupported
        } else if TYPES.contains(&category.as_str()) {
            Standing::Supported
        } else {
            dataset.problems.note(Kind::UnknownCategory, format!("{name}: {category}"));
            Standing::Unknown
        };
        let asked_at = words(item.get("question_date")).and_then(|d| time(&d, zone_seconds));
        if asked_at.is_none() {
            dataset.problems.note(Kind::NoDate, &name);
        }
        let reference = words(item.get("answer"));
        if reference.is_none() {
            dataset.problems.note(Kind::NoAnswer, &name);
        }
        let evidence = if standing == Standing::Unsupported { Vec::new() } else { evidence(item) };
        dataset.questions.push(Asked {
            id: name.clone(),
            conversation: name,
            bank,
            category,
            standing,
            text,
            asked_at,
            reference,
            evidence,
        });
    }
    dataset
}

/// The turns that are marked as holding the answer.
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
    let local = DateTime::strptime(DATE_FORMAT, text).ok()?;
    let moment = Offset::from_seconds(zone_seconds).and_then(|o| o.to_timestamp(local)).ok()?;
    EventTime::new(moment.as_millisecond(), zone_seconds).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::eval::heard::tests::heard;

    #[test]
    fn marked_turns_are_evidence_and_damage_is_counted() {
        let sessions = json!([
            [{"role": "user", "content": "Hi"}],
            [{"role": "user", "content": "I keep bees", "has_answer": true}, {"role": "assistant", "content": "Nice"}],
            "half a sess"
        ]);
        let question = |id: &str, kind: &str, date: Value| {
            json!({"question_id": id, "question_type": kind, "question": "What do I keep?", "answer": "bees",
                   "question_date": date, "haystack_sessions": sessions,
                   "haystack_session_ids": ["a", "b", "c"]})
        };
        let items = [
            question("q1", "multi-session", json!("2023/05/20 (Sat) 02:21")),
            question("q2_abs", "multi-session", json!("2023/05/20 (Sat) 02:21")),
            question("q3", "riddle", Value::Null),
            json!({"question_id": "q4"}),
            json!({"question": "?"}),
        ];
        let mut dataset = read(&items, &[], 7_200);
        let at = dataset.questions[0].asked_at.unwrap();
        assert_eq!(at.to_string(), "2023-05-20T02:21:00+02:00");
        let mut all = heard("longmemeval/q1", &["b:0"]);
        all.turns.extend(heard("longmemeval/q2_abs", &["b:0"]).turns);
        all.turns.extend(heard("longmemeval/q3", &["b:0"]).turns);
        dataset.resolve(&all);
        let found: Vec<(&str, Standing, usize)> =
            dataset.questions.iter().map(|q| (q.id.as_str(), q.standing, q.evidence.len())).collect();
        assert_eq!(
            found,
            [("q1", Standing::Supported, 1), ("q2_abs", Standing::Unsupported, 0), ("q3", Standing::Unknown, 1)]
        );
        for (kind, count) in [(Kind::NotAQuestion, 2), (Kind::UnknownCategory, 1), (Kind::NoDate, 1)] {
            assert_eq!(dataset.problems.count(kind), count, "{kind:?}");
        }
    }
}
