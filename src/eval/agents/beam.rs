//! BEAM's chats with their probing questions.
//!
//! In: a directory of chats, `SIZE/N/chat.json` with `SIZE/N/probing_questions/probing_questions.json`; or one size in
//! it, or one chat. Out: chats, in the order of sizes and numbers. A group of messages is a session; its day is that of
//! the latest time anchor so far, because most messages have none. The evidence of an instruction or a preference is
//! the user's turn that states it, and its fact is the statement itself. A wrong type or a missing text is counted, and
//! never passed over silently.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use jiff::{
    ToSpan,
    civil::{Date, DateTime, date},
};
use serde_json::Value;

use super::{
    chats::{AgentChat, AgentChats, AgentSet, ChatQuestion, ChatTurn, each_once, said},
    stem_numbers::StemNumbers,
};
use crate::{
    dataset::{DatasetError, check_only, entries, json},
    dataset_damage::{DamageCounts, DatasetDamage},
};

const CHAT: &str = "chat.json";
const QUESTIONS: &str = "probing_questions/probing_questions.json";
/// A time anchor, such as `March-15-2024`.
const ANCHOR: &str = "%B-%d-%Y";
/// The day of messages before the first anchor.
const FIRST_DAY: Date = date(2024, 1, 1);
const MORNING: i8 = 9;
const MINUTES_A_SESSION: i64 = 30;
/// Kinds whose evidence is one turn of the user.
const STATED: [(&str, &str); 2] =
    [("instruction_following", "instruction_being_tested"), ("preference_following", "preference_being_tested")];
/// The kind of questions that the chat does not answer.
const ABSTENTION: &str = "abstention";

/// Reads the chats below a directory, or those in `only`.
pub(super) fn read(path: &Path, only: &[String]) -> Result<AgentChats, DatasetError> {
    let directories = chat_directories(path)?;
    check_only(path, only, directories.iter().map(|(name, _)| name.as_str()))?;
    let mut found = AgentChats::default();
    for (name, directory) in directories {
        if !only.is_empty() && !only.contains(&name) {
            continue;
        }
        let messages = json::value(AgentSet::Beam.name(), &directory.join(CHAT))?;
        let questions = json::value(AgentSet::Beam.name(), &directory.join(QUESTIONS))?;
        found.chats.push(chat(name, &messages, &questions, &mut found.problems));
    }
    Ok(found)
}

/// The directories of chats with their names, `SIZE/N`: the path itself, or what is below it.
fn chat_directories(path: &Path) -> Result<Vec<(String, PathBuf)>, DatasetError> {
    let path = path.canonicalize().map_err(|source| DatasetError::Read { path: path.to_owned(), source })?;
    let mut level = vec![path];
    for _ in 0..2 {
        if level.iter().any(|directory| directory.join(CHAT).is_file()) {
            break;
        }
        let mut below = Vec::new();
        for directory in level {
            below.extend(entries(&directory)?.into_iter().filter(|entry| entry.is_dir()));
        }
        level = below;
    }
    let last = |directory: &Path| directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut found: Vec<_> = level
        .into_iter()
        .filter(|directory| directory.join(CHAT).is_file())
        .map(|directory| {
            let (size, number) = (directory.parent().map(last).unwrap_or_default(), last(&directory));
            ((size.clone(), number.parse::<u64>().ok(), number.clone()), (format!("{size}/{number}"), directory))
        })
        .collect();
    found.sort();
    Ok(found.into_iter().map(|(_, chat)| chat).collect())
}

fn chat(name: String, messages: &Value, questions: &Value, problems: &mut DamageCounts) -> AgentChat {
    let mut reader = BeamReader { name, turns: Vec::new(), at: HashMap::new(), problems };
    reader.turns(messages);
    let questions = reader.questions(questions);
    AgentChat { name: reader.name, turns: reader.turns, questions }
}

struct BeamReader<'p> {
    name: String,
    turns: Vec<ChatTurn>,
    /// The position of the message with each id.
    at: HashMap<u64, usize>,
    problems: &'p mut DamageCounts,
}

impl BeamReader<'_> {
    fn turns(&mut self, messages: &Value) {
        // Some sizes have one list of batches, others an object that contains such lists.
        let batches: Vec<&Value> = match messages {
            Value::Object(lists) => lists.values().filter_map(Value::as_array).flatten().collect(),
            other => list(other).iter().collect(),
        };
        let mut now: DateTime = FIRST_DAY.at(MORNING, 0, 0, 0);
        let groups = batches.into_iter().flat_map(|batch| list(batch.get("turns").unwrap_or(&Value::Null)));
        for (session, group) in groups.enumerate() {
            for message in list(group) {
                let anchor = message.get("time_anchor").and_then(Value::as_str);
                if let Some(day) = anchor.and_then(|text| Date::strptime(ANCHOR, text).ok()) {
                    now = now.max(day.at(MORNING, 0, 0, 0));
                }
                let field = |name: &str| message.get(name).and_then(Value::as_str);
                let (Some(role), Some(text)) = (field("role"), field("content")) else {
                    self.problems.note(DatasetDamage::Rejected, format!("{}: session {session}", self.name));
                    continue;
                };
                if let Some(id) = message.get("id").and_then(Value::as_u64) {
                    self.at.insert(id, self.turns.len());
                }
                let text = said(without_index(text));
                self.turns.push(ChatTurn {
                    session,
                    role: role.to_owned(),
                    day: now.date(),
                    text,
                    captions: Vec::new(),
                });
            }
            now = now.saturating_add(MINUTES_A_SESSION.minutes());
        }
    }

    fn questions(&mut self, kinds: &Value) -> Vec<ChatQuestion> {
        let mut stems = StemNumbers::new();
        let mut found = Vec::new();
        for (kind, items) in kinds.as_object().into_iter().flatten() {
            for (index, item) in list(items).iter().enumerate() {
                match self.question(kind, item, &mut stems) {
                    Some(question) => found.push(question),
                    None => self.problems.note(DatasetDamage::NotAQuestion, format!("{}: {kind}[{index}]", self.name)),
                }
            }
        }
        found
    }

    fn question(&self, kind: &str, item: &Value, stems: &mut StemNumbers) -> Option<ChatQuestion> {
        let text = item.get("question")?.as_str()?.to_owned();
        let answerable = kind != ABSTENTION;
        let mut ids = Vec::new();
        message_ids(item.get("source_chat_ids").unwrap_or(&Value::Null), &mut ids);
        let mut evidence = each_once(ids.iter().filter_map(|id| self.at.get(id).copied()));
        let rubric = list(item.get("rubric").unwrap_or(&Value::Null));
        let mut facts: Vec<String> = rubric.iter().filter_map(Value::as_str).map(statement).collect();
        if let Some((_, field)) = STATED.iter().find(|(stated, _)| *stated == kind) {
            let stated = item.get(*field)?.as_str()?;
            evidence = self.stating(stated, &evidence, stems).into_iter().collect();
            facts = vec![stated.to_owned()];
        }
        match kind {
            "contradiction_resolution" => facts.retain(|fact| !is_about_the_answer(fact)),
            "temporal_reasoning" => {
                let points = list(item.get("time_points").unwrap_or(&Value::Null));
                facts.extend(points.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            ABSTENTION => {
                evidence.clear();
                facts.clear();
            }
            _ => {}
        }
        let (kind, before) = (kind.to_owned(), self.turns.len());
        Some(ChatQuestion { kind, text, asker: None, evidence, facts, before, answerable })
    }

    /// The one of these turns that states something: the user's turn with most of its stems; of equal ones, the first.
    fn stating(&self, stated: &str, evidence: &[usize], stems: &mut StemNumbers) -> Option<usize> {
        let is_users = |turn: &&usize| self.turns.get(**turn).is_some_and(|t| t.role == "user");
        let users: Vec<usize> = evidence.iter().filter(is_users).copied().collect();
        let wanted = stems.of(stated);
        let mut best = None;
        for turn in if users.is_empty() { evidence.to_vec() } else { users } {
            let Some(text) = self.turns.get(turn).map(|t| &t.text) else { continue };
            let shared = stems.of(text).intersection(&wanted).count();
            if best.is_none_or(|(most, _)| shared > most) {
                best = Some((shared, turn));
            }
        }
        best.map(|(_, turn)| turn)
    }
}

/// The ids of messages at any depth of a value: numbers, or numbers as text.
fn message_ids(value: &Value, ids: &mut Vec<u64>) {
    match value {
        Value::Number(number) => ids.extend(number.as_u64()),
        Value::String(text) => ids.extend(text.trim().parse::<u64>().ok()),
        Value::Array(items) => items.iter().for_each(|item| message_ids(item, ids)),
        Value::Object(fields) => fields.values().for_each(|item| message_ids(item, ids)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// A message without the index at its end, such as `->-> 1,12`.
fn without_index(text: &str) -> &str {
    let cut = || {
        let rest = text.trim_end().trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
        (rest.len() < text.trim_end().len()).then(|| rest.trim_end().strip_suffix("->->"))?
    };
    cut().unwrap_or(text)
}

/// Whether an item of a rubric says how to answer, not what.
fn is_about_the_answer(fact: &str) -> bool {
    let fact = fact.to_lowercase();
    let asks_which = |rest: &str| {
        let rest = rest.strip_prefix("statement ").unwrap_or(rest);
        let rest = rest.strip_prefix("one ").unwrap_or(rest);
        ["is correct", "is accurate", "is true", "is right"].iter().any(|end| rest.starts_with(end))
    };
    fact.contains("contradictory information")
        || fact.contains("clarif")
        || fact.match_indices("which ").any(|(at, which)| fact.get(at + which.len()..).is_some_and(asks_which))
}

/// An item of a rubric without an introduction such as "LLM response should state: you said that".
fn statement(item: &str) -> String {
    let mut rest = item;
    for _ in 0..3 {
        rest = after_response_should(rest).or_else(|| after_you_said(rest)).unwrap_or(rest);
    }
    rest.trim().to_owned()
}

fn after_response_should(text: &str) -> Option<&str> {
    let text = maybe(maybe(text.trim_start(), "the "), "llm ");
    let text = begins(text, "response should ")?;
    let text = ["state", "mention", "contain", "include", "say"].iter().find_map(|verb| begins(text, verb))?;
    Some(maybe(maybe(text, "s"), ":").trim_start())
}

fn after_you_said(text: &str) -> Option<&str> {
    let text = maybe(maybe(text.trim_start(), "that "), "i notice ");
    let text = ["you", "i", "we"].iter().find_map(|who| begins(text, who))?;
    let text = maybe(begins(maybe(text, "'ve"), " ")?, "also ");
    let verbs = ["said", "mentioned", "recommended", "suggested", "stated"];
    let text = verbs.iter().find_map(|verb| begins(text, verb))?;
    let space = |text: &str| maybe(text, ":").starts_with(char::is_whitespace);
    let after_that = begins(text, " that").filter(|after| space(after));
    let text = after_that.unwrap_or(text);
    space(text).then(|| maybe(text, ":").trim_start())
}

/// The text after this beginning, in upper or lower case; `None` if it begins otherwise.
fn begins<'t>(text: &'t str, beginning: &str) -> Option<&'t str> {
    let (start, rest) = text.split_at_checked(beginning.len())?;
    start.eq_ignore_ascii_case(beginning).then_some(rest)
}

fn maybe<'t>(text: &'t str, beginning: &str) -> &'t str {
    begins(text, beginning).unwrap_or(text)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/agents/beam");

    #[test]
    fn sessions_days_and_texts_of_a_chat() {
        let read = read(Path::new(SAMPLE), &[]).unwrap();
        let [chat] = &read.chats[..] else { panic!("{:?}", read.chats) };
        assert_eq!(chat.name, "tiny/1");
        let turns: Vec<_> = chat.turns.iter().map(|t| (t.session, t.role.as_str(), t.day.to_string())).collect();
        let day = |day: &str| day.to_owned();
        assert_eq!(
            turns,
            [
                (0, "user", day("2024-03-15")),
                (0, "assistant", day("2024-03-15")),
                (1, "user", day("2024-03-15")),
                (1, "assistant", day("2024-03-15")),
                (2, "user", day("2024-04-02")),
                (2, "assistant", day("2024-04-02")),
            ]
        );
        assert_eq!(chat.turns[0].text, "I keep bees on the roof, and the first hive cost 240 euros.");
        assert_eq!(chat.turns[3].text, "…");
    }

    #[test]
    fn evidence_and_facts_of_each_kind() {
        let read = read(Path::new(SAMPLE), &["tiny/1".to_owned()]).unwrap();
        let found: Vec<_> = read.chats[0]
            .questions
            .iter()
            .map(|q| (q.kind.as_str(), q.evidence.clone(), q.facts.join(" | "), q.answerable))
            .collect();
        let facts = |text: &str| text.to_owned();
        assert_eq!(
            found,
            [
                ("abstention", vec![], facts(""), false),
                ("contradiction_resolution", vec![0, 4], facts("the first hive cost 240 euros"), true),
                ("information_extraction", vec![0], facts("240 euros"), true),
                ("instruction_following", vec![2], facts("Always answer in a table when I ask about honey."), true),
                ("temporal_reasoning", vec![0, 4], facts("18 days | April 2: swarm"), true),
            ]
        );
        assert_eq!(read.problems.count(DatasetDamage::NotAQuestion), 1);
    }

    #[test]
    fn a_chat_that_is_not_there_is_named() {
        let problem = read(Path::new(SAMPLE), &["tiny/9".to_owned()]).unwrap_err().to_string();
        assert!(problem.contains("\"tiny/9\"") && problem.contains("tiny/1"), "{problem}");
    }

    #[test]
    fn what_leads_up_to_a_fact_is_left_out() {
        for (item, expected) in [
            ("LLM response should state: March 29", "March 29"),
            ("The response should mention: You said that bees sleep", "bees sleep"),
            ("LLM response should mentions you also mentioned: thatch", "thatch"),
            ("you said thatched roofs burn", "thatched roofs burn"),
            ("Security hardening", "Security hardening"),
            ("I notice you've said  it", "it"),
        ] {
            assert_eq!(statement(item), expected, "{item}");
        }
        assert!(is_about_the_answer("Which one is correct?") && !is_about_the_answer("which hive is red"));
        assert_eq!(without_index("a plan ->-> 1,12 "), "a plan ");
        assert_eq!(without_index("pages 1,12"), "pages 1,12");
    }
}
