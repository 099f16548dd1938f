//! How good one memory is for people and an assistant together.
//!
//! In: dialogues of two people, chats with an assistant, and a pipeline. Out: for each share that the assistant has of
//! the passages, how much of the evidence the memory quotes for the questions of both, beside the same dialogue and the
//! same chat alone. Each dialogue is merged with a chat, whose user is one of the two people; at one share, also with a
//! third person.

use std::{collections::BTreeMap, path::PathBuf};

use super::{
    chat_files,
    chats::{AgentChat, AgentChats, AgentSet, ChatQuestion, ChatTurn},
    facts::ChatFacts,
    memory_answers,
    mixed_chats::{cut_chat, merge},
};
use crate::{
    EvalError, EvalRequest,
    dataset::{self, BenchmarkFormat},
    dataset_damage::DamageCounts,
    recording_source::{BenchmarkTurns, RecordingSource},
};
use pipeline::Progress;
use serde::Serialize;
use types::{config::Pipeline, model::TurnEvent};

/// A third person, who talks with the assistant and not with the two.
const THIRD: &str = "Robin";
/// Percent of the assistant at which a chat is also that of a third person.
const THIRD_PERCENT: u32 = 60;

/// What to evaluate.
#[derive(Debug, Clone)]
pub struct MixedRequest {
    /// The dialogues of people.
    pub people: Vec<(BenchmarkFormat, PathBuf)>,
    /// BEAM's chats.
    pub chats: PathBuf,
    /// The assistant's shares of the passages, in percent.
    pub percents: Vec<u32>,
    /// The settings; the log's directory is ignored.
    pub pipeline: Pipeline,
}

/// The figures of one share of the assistant, for the questions of one set.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MixedRow {
    /// The set of the people's dialogues, such as `locomo`.
    pub set: String,
    /// The assistant's share of the passages that was wanted, in percent.
    pub percent: u32,
    /// Whether the chat's user is a third person.
    pub third: bool,
    /// Whether the questions are the chat's; else the people's.
    pub of_chat: bool,
    /// Questions.
    pub questions: u64,
    /// The mean share of the assistant that was reached.
    pub reached: f64,
    /// In the merged memory: touched, all touched, facts, tokens.
    pub merged: MixedFigures,
    /// The same questions, asked of their conversation alone.
    pub alone: MixedFigures,
}

/// Means over questions.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct MixedFigures {
    /// Share of the evidence turns that is touched.
    pub touched: f64,
    /// Share of the questions whose evidence turns are all touched.
    pub full: f64,
    /// Share of the facts that is covered, over the questions that have facts.
    pub facts: Option<f64>,
    /// o200k tokens of a context.
    pub tokens: f64,
}

/// One conversation of the evaluation.
struct MixedMemory {
    chat: AgentChat,
    /// Of its questions, how many are the people's; the rest are the chat's.
    of_people: usize,
}

/// A merged memory, and the places of its two conversations alone.
struct MergedPair {
    set: String,
    percent: u32,
    third: bool,
    reached: f64,
    merged: usize,
    people: usize,
    chat: usize,
}

/// The score of one question.
#[derive(Debug, Clone, Copy)]
struct QuestionFigures {
    touched: f64,
    facts: Option<f64>,
    tokens: f64,
}

/// What the questions of a row have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    set: String,
    percent: u32,
    third: bool,
    of_chat: bool,
}

/// The scores of a row's questions, and for each the share of the assistant in its memory.
#[derive(Debug, Default)]
struct RowScores {
    reached: Vec<f64>,
    merged: Vec<QuestionFigures>,
    alone: Vec<QuestionFigures>,
}

/// Builds the memories, asks every question, and scores what is quoted.
///
/// # Errors
/// [`EvalError`] when a file as a whole is damaged, or the memory fails.
pub fn evaluate_mixed(request: &MixedRequest, progress: &mut dyn FnMut(Progress)) -> Result<Vec<MixedRow>, EvalError> {
    let AgentChats { chats, mut problems } = chat_files::read(AgentSet::Beam, &request.chats, &[])?;
    let mut dialogues = Vec::new();
    for (format, path) in &request.people {
        let read = people(*format, path, &request.pipeline)?;
        dialogues.extend(read.into_iter().map(|dialogue| (format.name().to_owned(), dialogue)));
    }
    let (memories, pairs) = merged_memories(&dialogues, &chats, &request.percents);
    let scores = score(&memories, &request.pipeline, &mut problems, progress)?;
    Ok(rows(&memories, &pairs, &scores))
}

/// The conversations, and which of them belong together.
fn merged_memories(
    dialogues: &[(String, AgentChat)],
    chats: &[AgentChat],
    percents: &[u32],
) -> (Vec<MixedMemory>, Vec<MergedPair>) {
    let (mut memories, mut pairs): (Vec<MixedMemory>, Vec<MergedPair>) = (Vec::new(), Vec::new());
    for (number, (set, people)) in dialogues.iter().enumerate() {
        let Some(chat) = chats.get(number % chats.len().max(1)) else { continue };
        let mut names: Vec<&str> = people.turns.iter().map(|turn| turn.role.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let of_people = people.questions.len();
        let alone = memories.len();
        memories.push(MixedMemory { chat: people.clone(), of_people });
        for percent in percents {
            let (cut, reached) = cut_chat(chat, people, f64::from(*percent) / 100.0, number as u64);
            let of_chat = memories.len();
            let cut = AgentChat { name: format!("{}/{percent}/chat", people.name), ..cut };
            memories.push(MixedMemory { chat: cut.clone(), of_people: 0 });
            let users = [(names.get(number % names.len().max(1)).copied(), false), (Some(THIRD), true)];
            for (user, third) in users.into_iter().filter(|(_, third)| !third || *percent == THIRD_PERCENT) {
                let Some(user) = user else { continue };
                let name = format!("{}/{percent}/{}", people.name, if third { "third" } else { "merged" });
                pairs.push(MergedPair {
                    set: set.clone(),
                    percent: *percent,
                    third,
                    reached,
                    merged: memories.len(),
                    people: alone,
                    chat: of_chat,
                });
                memories.push(MixedMemory { chat: AgentChat { name, ..merge(people, &cut, user) }, of_people });
            }
        }
    }
    (memories, pairs)
}

/// The score of each question of each conversation, by their numbers.
fn score(
    memories: &[MixedMemory],
    pipeline: &Pipeline,
    problems: &mut DamageCounts,
    progress: &mut dyn FnMut(Progress),
) -> Result<BTreeMap<(usize, usize), QuestionFigures>, EvalError> {
    let chats: Vec<AgentChat> = memories.iter().map(|memory| memory.chat.clone()).collect();
    let mut facts: Vec<ChatFacts> = chats.iter().map(ChatFacts::of).collect();
    let mut scores = BTreeMap::new();
    for answer in memory_answers::ask("mixed", &chats, pipeline, problems, progress)?.asked {
        let asked = chats.get(answer.chat).and_then(|chat| chat.questions.get(answer.question));
        let Some((asked, facts)) = asked.zip(facts.get_mut(answer.chat)) else { continue };
        let judged = facts.judge(asked, &answer.quoted);
        let Some(touched) = judged.touched else { continue };
        let figures = QuestionFigures { touched, facts: judged.facts, tokens: answer.tokens as f64 };
        scores.insert((answer.chat, answer.question), figures);
    }
    Ok(scores)
}

fn rows(
    memories: &[MixedMemory],
    pairs: &[MergedPair],
    scores: &BTreeMap<(usize, usize), QuestionFigures>,
) -> Vec<MixedRow> {
    let mut rows: BTreeMap<RowKey, RowScores> = BTreeMap::new();
    for pair in pairs {
        let Some(merged) = memories.get(pair.merged) else { continue };
        for at in 0..merged.chat.questions.len() {
            let of_chat = at >= merged.of_people;
            let alone = if of_chat { (pair.chat, at - merged.of_people) } else { (pair.people, at) };
            let Some((in_merged, alone)) = scores.get(&(pair.merged, at)).zip(scores.get(&alone)) else { continue };
            let key = RowKey { set: pair.set.clone(), percent: pair.percent, third: pair.third, of_chat };
            let row = rows.entry(key).or_default();
            row.reached.push(pair.reached);
            row.merged.push(*in_merged);
            row.alone.push(*alone);
        }
    }
    let row = |(key, scores): (RowKey, RowScores)| {
        let RowKey { set, percent, third, of_chat } = key;
        let questions = scores.merged.len() as u64;
        let reached = scores.reached.iter().sum::<f64>() / questions.max(1) as f64;
        let (merged, alone) = (figures(&scores.merged), figures(&scores.alone));
        MixedRow { set, percent, third, of_chat, questions, reached, merged, alone }
    };
    rows.into_iter().map(row).collect()
}

fn figures(asked: &[QuestionFigures]) -> MixedFigures {
    let mean = |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let of = |value: fn(&QuestionFigures) -> f64| mean(asked.iter().map(value).collect()).unwrap_or_default();
    MixedFigures {
        touched: of(|one| one.touched),
        full: of(|one| f64::from(u8::from(one.touched >= 1.0))),
        facts: mean(asked.iter().filter_map(|one| one.facts).collect()),
        tokens: of(|one| one.tokens),
    }
}

/// The dialogues of people, in the form of chats.
fn people(format: BenchmarkFormat, path: &std::path::Path, pipeline: &Pipeline) -> Result<Vec<AgentChat>, EvalError> {
    let mut source = EvalRequest::of_file(format, path, pipeline).open_source()?;
    let mut recorded = BenchmarkTurns::default();
    let mut dialogues: Vec<PeopleDialogue> = Vec::new();
    let mut recording = RecordingSource::new(&mut *source, &mut recorded, true);
    while let Some(batch) = sources::TurnSource::next(&mut recording, 1_000)? {
        for event in batch.events {
            let TurnEvent::Turn(turn) = event else { continue };
            let at = dialogues.iter().position(|dialogue| dialogue.bank == turn.bank.as_str());
            let at = at.unwrap_or_else(|| {
                dialogues.push(PeopleDialogue { bank: turn.bank.to_string(), ..PeopleDialogue::default() });
                dialogues.len() - 1
            });
            let Some(dialogue) = dialogues.get_mut(at) else { continue };
            let session = turn.session.clone().unwrap_or_default();
            if dialogue.sessions.last() != Some(&session) {
                dialogue.sessions.push(session);
            }
            dialogue.ids.push(turn.turn.clone());
            dialogue.turns.push(ChatTurn {
                session: dialogue.sessions.len() - 1,
                role: turn.speaker.clone(),
                day: turn.time.local().date(),
                text: turn.text.clone(),
                captions: turn.captions().map(str::to_owned).collect(),
            });
        }
    }
    let mut dataset = dataset::read(format, path, &[], 0)?;
    dataset.resolve(&recorded);
    let chat = |dialogue: PeopleDialogue| {
        let before = dialogue.turns.len();
        let asked = dataset.questions.iter().filter(|q| q.bank.as_str() == dialogue.bank && q.counts());
        let questions = asked.map(|q| ChatQuestion {
            kind: q.category.clone(),
            text: q.text.clone(),
            asker: None,
            evidence: q.evidence.iter().filter_map(|id| dialogue.ids.iter().position(|own| own == id)).collect(),
            facts: Vec::new(),
            before,
            answerable: true,
        });
        AgentChat { questions: questions.collect(), name: dialogue.bank, turns: dialogue.turns }
    };
    Ok(dialogues.into_iter().map(chat).collect())
}

/// A dialogue while it is read.
#[derive(Default)]
struct PeopleDialogue {
    bank: String,
    sessions: Vec<String>,
    ids: Vec<String>,
    turns: Vec<ChatTurn>,
}
