//! RealMem's dialogues and their queries.
//!
//! In: the directory of `NAME_dialogues_256k.json`, or one of these files. Out: dialogues up to the last session whose
//! queries are asked, and the queries of the sessions in the middle, each with the sessions before its own as memory.
//! Evidence is the turns of the named session that hold the memory which an answer uses, because the turn that the file
//! itself names is often "yes, let's do that".

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use jiff::civil::Date;
use serde_json::Value;

use super::{
    chats::{AgentChat, AgentChats, AgentSet, ChatQuestion, ChatTurn, each_once, said},
    stem_numbers::StemNumbers,
};
use crate::{
    dataset::{DatasetError, check_only, json},
    dataset_damage::{DamageCounts, DatasetDamage},
    readers::realtalk::dialogues,
};

const ENDING: &str = "_dialogues_256k";
/// The sessions whose queries are asked, as shares of a dialogue's sessions.
const ASKED: std::ops::Range<f64> = 0.4..0.6;
/// The maximum number of turns of a session that count as holding a memory.
const MAX_HOLDERS: usize = 3;
/// The minimum share of a memory's weight that a further turn must add.
const MIN_ADDED: f64 = 0.2;

/// Reads the dialogues of a path, or those in `only`.
pub(super) fn read(path: &Path, only: &[String]) -> Result<AgentChats, DatasetError> {
    let files = dialogues(path).map_err(|source| DatasetError::Read { path: path.to_owned(), source })?;
    let named: Vec<_> =
        files.iter().filter_map(|(name, file)| Some((name.strip_suffix(ENDING)?.to_owned(), file))).collect();
    check_only(path, only, named.iter().map(|(name, _)| name.as_str()))?;
    let mut found = AgentChats::default();
    for (name, file) in named.into_iter().filter(|(name, _)| only.is_empty() || only.contains(name)) {
        let dialogue = json::value(AgentSet::RealMem.name(), file)?;
        let sessions = list(dialogue.get("dialogues"));
        found.chats.push(chat(name, sessions, &mut found.problems));
    }
    Ok(found)
}

fn chat(name: String, sessions: &[Value], problems: &mut DamageCounts) -> AgentChat {
    let at = |share: f64| (sessions.len() as f64 * share) as usize;
    let (first_asked, sessions) = (at(ASKED.start), sessions.get(..at(ASKED.end)).unwrap_or_default());
    let mut held = TurnStems::of(sessions);
    let mut chat = AgentChat { name, turns: Vec::new(), questions: Vec::new() };
    // The number of each session so far, and of its first turn.
    let mut known: HashMap<&str, (usize, usize)> = HashMap::new();
    for (number, session) in sessions.iter().enumerate() {
        let first = chat.turns.len();
        let date = text_of(session, "current_time").get(..10).and_then(|date| date.parse::<Date>().ok());
        let Some(day) = date else {
            problems.note(DatasetDamage::Rejected, format!("{}: session {number} without current_time", chat.name));
            continue;
        };
        let turns = list(session.get("dialogue_turns"));
        if number >= first_asked {
            chat.questions.extend(queries(turns, first, &known, &mut held));
        }
        chat.turns.extend(turns.iter().map(|turn| ChatTurn {
            session: number,
            role: text_of(turn, "speaker").to_lowercase(),
            day,
            text: said(text_of(turn, "content")),
            captions: Vec::new(),
        }));
        known.insert(text_of(session, "session_uuid"), (number, first));
    }
    chat
}

/// The queries of a session whose answers use only memories from known sessions.
fn queries(
    turns: &[Value],
    before: usize,
    known: &HashMap<&str, (usize, usize)>,
    held: &mut TurnStems,
) -> Vec<ChatQuestion> {
    let mut found = Vec::new();
    for (turn, answer) in turns.iter().zip(turns.iter().skip(1)) {
        let used: Option<Vec<_>> = list(answer.get("memory_used"))
            .iter()
            .map(|memory| {
                Some((*known.get(text_of(memory, "session_uuid"))?, without_marks(text_of(memory, "content"))))
            })
            .collect();
        let is_query = turn.get("is_query").and_then(Value::as_bool).unwrap_or_default();
        let Some(used) = used.filter(|used| is_query && !used.is_empty()) else { continue };
        let mut evidence = Vec::new();
        for ((session, first), fact) in &used {
            evidence.extend(held.holders(*session, fact).into_iter().map(|turn| first + turn));
        }
        let kind = match text_of(turn, "category_name") {
            "" => "query",
            name => name,
        };
        let question = ChatQuestion {
            kind: kind.to_owned(),
            text: text_of(turn, "content").to_owned(),
            asker: None,
            evidence: each_once(evidence),
            facts: used.into_iter().map(|(_, fact)| fact).collect(),
            before,
            answerable: true,
        };
        if question.is_asked() {
            found.push(question);
        }
    }
    found
}

/// The stems of every turn of a dialogue.
struct TurnStems {
    stems: StemNumbers,
    /// The stems, by session and turn.
    sessions: Vec<Vec<BTreeSet<usize>>>,
    /// The number of turns that hold each stem.
    turns_with: HashMap<usize, f64>,
    turns: f64,
}

impl TurnStems {
    fn of(sessions: &[Value]) -> Self {
        let mut stems = StemNumbers::new();
        let mut turns_with = HashMap::new();
        let mut of_session = |session: &Value| -> Vec<BTreeSet<usize>> {
            list(session.get("dialogue_turns")).iter().map(|turn| stems.of(text_of(turn, "content"))).collect()
        };
        let sessions: Vec<Vec<BTreeSet<usize>>> = sessions.iter().map(&mut of_session).collect();
        for stem in sessions.iter().flatten().flatten() {
            *turns_with.entry(*stem).or_default() += 1.0;
        }
        let turns = sessions.iter().map(Vec::len).sum::<usize>() as f64;
        Self { stems, sessions, turns_with, turns }
    }

    /// The turns of a session that hold a memory, in order: the one with the most of its stems, weighted by rarity,
    /// then those that add enough of what is left.
    fn holders(&mut self, session: usize, fact: &str) -> Vec<usize> {
        let mut left = self.stems.of(fact);
        let weight = |stem: &usize| (1.0 + self.turns / self.turns_with.get(stem).copied().unwrap_or(1.0)).ln();
        let least = MIN_ADDED * left.iter().map(weight).sum::<f64>();
        let turns = self.sessions.get(session).map_or(&[][..], Vec::as_slice);
        let mut found = Vec::new();
        while found.len() < MAX_HOLDERS {
            let mut best: Option<(f64, usize, &BTreeSet<usize>)> = None;
            for (at, turn) in turns.iter().enumerate() {
                let added = left.intersection(turn).map(weight).sum::<f64>();
                if best.is_none_or(|(most, ..)| added > most) {
                    best = Some((added, at, turn));
                }
            }
            let Some((_, at, turn)) = best.filter(|(added, ..)| *added >= least) else { break };
            found.push(at);
            left.retain(|stem| !turn.contains(stem));
        }
        found.sort_unstable();
        found
    }
}

/// A memory without the marks `【…】` of its kind.
fn without_marks(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, marked)) = rest.split_once('【') {
        let Some((_, after)) = marked.split_once('】') else { break };
        out.push_str(before);
        rest = after;
    }
    out.push_str(rest);
    out.trim().to_owned()
}

/// A text field; empty if it is missing.
fn text_of<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/agents/realmem");

    #[test]
    fn a_query_of_the_middle_sessions_sees_the_sessions_before_its_own() {
        let read = read(Path::new(SAMPLE), &[]).unwrap();
        let [chat] = &read.chats[..] else { panic!("{:?}", read.chats) };
        assert_eq!((chat.name.as_str(), chat.turns.len()), ("Ida_Moss", 6), "three of five sessions");
        let [query] = &chat.questions[..] else { panic!("{:?}", chat.questions) };
        assert_eq!((query.kind.as_str(), query.before), ("Static Retrieval", 4));
        // The second turn says it; the third agrees.
        assert_eq!(query.evidence, [1]);
        assert_eq!(query.facts, ["The rowing plan is four kilometres on Tuesdays."]);
        assert_eq!(chat.turns[5].day.to_string(), "2026-02-03");
    }

    #[test]
    fn marks_are_left_out() {
        assert_eq!(without_marks("【Plan】 row 【a】on"), "row on");
        assert_eq!(without_marks("【Plan row"), "【Plan row");
    }
}
