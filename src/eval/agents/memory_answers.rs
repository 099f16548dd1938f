//! Builds the memory from chats and asks it their questions.
//!
//! In: chats and a pipeline. Out: for each question, what the memory quotes, its tokens and its sufficiency. The memory
//! is built through the real path in a temporary directory, with a bank for each chat. A question is asked once the
//! turns before it have been added and their sessions have ended, and never after later turns.

use std::{path::Path, time::Instant};

use super::{
    chat_files,
    chats::{AgentChat, AgentChats, AgentSet, ChatTurn},
    result::AgentQuote,
};
use crate::{
    EvalError,
    benchmark_memory::{finish, isolated_pipeline},
    dataset_damage::{DamageCounts, DatasetDamage},
    evidence_loss::{EvidenceLoss, LossFinder},
};
use jiff::civil::Date;
use memory::language::token_count;
use pipeline::{PipelineError, Progress};
use ripplemem::PipelineDriver;
use sources::{SourceBatch, SourceError, SourceProgress, TurnQueue, TurnSource};
use types::{
    config::Pipeline,
    model::{Attachment, Bank, EventTime, Evidence, MAX_TEXT_BYTES, Question, SessionEnd, Turn, TurnEvent},
};

/// The first session of a day begins at nine and each further one ten minutes later, but none after ten to midnight.
const FIRST_MINUTE: usize = 540;
const MINUTES_APART: usize = 10;
const LAST_MINUTE: usize = 1_430;

/// What the memory quotes for one question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QuotedAnswer {
    /// The numbers of the chat and of the question in it.
    pub(super) chat: usize,
    pub(super) question: usize,
    /// Each passage once, ordered by turn.
    pub(super) quoted: Vec<AgentQuote>,
    pub(super) tokens: usize,
    pub(super) evidence: Evidence,
    /// For each turn that holds the answer, where it was lost if it is missing.
    pub(super) lost: Vec<EvidenceLoss>,
}

/// The answers to all questions that are asked, by chat and question.
#[derive(Debug)]
pub(super) struct MemoryAnswers {
    pub(super) asked: Vec<QuotedAnswer>,
    pub(super) built: ChatBuild,
}

/// What the memory was built from.
#[derive(Debug, Default)]
pub(super) struct ChatBuild {
    /// Turns that the memory was given.
    pub(super) turns: u64,
    /// The number of turns that were cut.
    pub(super) cut: u64,
    /// Seconds that adding them took.
    pub(super) seconds: f64,
}

/// Builds the memory and asks it.
///
/// # Errors
/// [`EvalError`] when the memory fails.
pub(super) fn ask(
    set: &str,
    chats: &[AgentChat],
    pipeline: &Pipeline,
    problems: &mut DamageCounts,
    progress: &mut dyn FnMut(Progress),
) -> Result<MemoryAnswers, EvalError> {
    let mut asked: Vec<QuotedAnswer> = Vec::new();
    let mut finder = LossFinder::new(pipeline);
    let built = replay_questions(set, chats, pipeline, problems, progress, &mut |service, (chat, at), question| {
        let evidence = service.ask(question)?;
        let turns: Vec<String> = evidence_of(chats, chat, at).iter().map(ToString::to_string).collect();
        let turns: Vec<&str> = turns.iter().map(String::as_str).collect();
        let lost = finder.lost(service, question, &evidence, &turns, |_| Vec::new())?;
        let excerpts = evidence.units.iter().flat_map(|unit| &unit.excerpts);
        let mut quoted: Vec<AgentQuote> = excerpts
            .filter_map(|excerpt| Some(AgentQuote { turn: excerpt.turn.parse().ok()?, text: excerpt.text.clone() }))
            .collect();
        let wishes = evidence.instructions.iter();
        quoted.extend(wishes.filter_map(|of| Some(AgentQuote { turn: of.turn.parse().ok()?, text: of.text.clone() })));
        quoted.sort();
        quoted.dedup();
        let tokens = token_count::count_tokens(&evidence.context);
        asked.push(QuotedAnswer { chat, question: at, quoted, tokens, evidence, lost });
        Ok(())
    })?;
    asked.sort_by_key(|one| (one.chat, one.question));
    Ok(MemoryAnswers { asked, built })
}

/// The turns that hold the answer to a question.
fn evidence_of(chats: &[AgentChat], chat: usize, question: usize) -> &[usize] {
    chats.get(chat).and_then(|chat| chat.questions.get(question)).map_or(&[], |asked| &asked.evidence)
}

/// A function that receives the memory, the name of a chat, the turns that hold the answer, and the question.
pub(crate) type QuestionVisitor<'q> =
    dyn FnMut(&PipelineDriver, &str, &[String], &Question) -> Result<(), PipelineError> + 'q;

/// Calls a function for each question of a set that is asked, with the memory as it is at that point, the chat, the
/// turns that hold the answer, and the question.
///
/// # Errors
/// [`EvalError`] when a file as a whole is damaged, the memory fails, or the function does.
pub(crate) fn each_question(
    set: AgentSet,
    path: &Path,
    pipeline: &Pipeline,
    progress: &mut dyn FnMut(Progress),
    each: &mut QuestionVisitor<'_>,
) -> Result<(), EvalError> {
    let AgentChats { chats, mut problems } = chat_files::read(set, path, &[])?;
    replay_questions(set.name(), &chats, pipeline, &mut problems, progress, &mut |service, (chat, at), question| {
        let Some(chat) = chats.get(chat) else { return Ok(()) };
        let evidence = chat.questions.get(at).map(|asked| asked.evidence.iter().map(ToString::to_string).collect());
        each(service, &chat.name, &evidence.unwrap_or_else(Vec::new), question)
    })
    .map(drop)
}

/// A function that receives the memory, the numbers of a chat and of a question in it, and the question.
type IndexedQuestionVisitor<'q> =
    dyn FnMut(&PipelineDriver, (usize, usize), &Question) -> Result<(), PipelineError> + 'q;

/// Builds the memory, and calls `put` for each question once the turns before it have been added.
pub(super) fn replay_questions(
    set: &str,
    chats: &[AgentChat],
    pipeline: &Pipeline,
    problems: &mut DamageCounts,
    progress: &mut dyn FnMut(Progress),
    put: &mut IndexedQuestionVisitor<'_>,
) -> Result<ChatBuild, EvalError> {
    let directory = tempfile::tempdir().map_err(EvalError::Directory)?;
    let mut pipeline = isolated_pipeline(pipeline);
    pipeline.log.directory = directory.path().join("log");
    let mut service = PipelineDriver::open(&pipeline, progress)?;
    let mut built = ChatBuild::default();
    let total = chats.iter().map(|chat| chat.turns.len() as u64).sum();
    for (number, chat) in chats.iter().enumerate() {
        let Ok(bank) = Bank::parse(&format!("{set}/{}", chat.name)) else {
            problems.note(DatasetDamage::NoConversation, format!("{:?} cannot name a bank", chat.name));
            continue;
        };
        let events = events(chat, &bank, problems, &mut built.cut);
        let mut events = events.into_iter().peekable();
        let mut order: Vec<usize> = (0..chat.questions.len()).collect();
        order.sort_by_key(|at| chat.questions.get(*at).map(|q| q.before));
        let mut given = 0;
        for at in order {
            let Some(question) = chat.questions.get(at).filter(|q| q.is_asked()) else { continue };
            if given < question.before {
                let mut source = ChatTurnSource { queue: TurnQueue::default(), done: built.turns, total };
                while let Some((_, event)) = events.next_if(|(turn, _)| *turn < question.before) {
                    source.queue.event(event);
                }
                let from = Instant::now();
                service.ingest(&mut source, progress)?;
                finish(&mut service, progress)?;
                built.seconds += from.elapsed().as_secs_f64();
                built.turns += (question.before - given) as u64;
                given = question.before;
            }
            let asked =
                Question { asker: question.asker.clone(), ..Question::new(bank.clone(), question.text.clone()) };
            put(&service, (number, at), &asked)
                .map_err(|e| EvalError::Question { id: format!("{}#{at}", chat.name), source: Box::new(e) })?;
        }
    }
    Ok(built)
}

/// The turns of a chat, each with its number, and the end of each session with the number of its last turn.
fn events(chat: &AgentChat, bank: &Bank, problems: &mut DamageCounts, cut: &mut u64) -> Vec<(usize, TurnEvent)> {
    let mut events = Vec::new();
    let mut sessions: Vec<Date> = Vec::new();
    let (mut minute, mut place) = (0, 0);
    let mut last = None;
    for (number, said) in chat.turns.iter().enumerate() {
        if last == Some(said.session) {
            place += 1;
        } else {
            let same_day = sessions.iter().filter(|day| **day == said.day).count();
            minute = (FIRST_MINUTE + MINUTES_APART * same_day).min(LAST_MINUTE);
            sessions.push(said.day);
            place = 0;
            last = Some(said.session);
        }
        let text = shortened(&said.text);
        let day = sessions.last().copied().unwrap_or(said.day);
        match turn(bank, number, said, text, (day, minute, place)) {
            Ok(turn) => {
                if text.len() < said.text.len() {
                    *cut += 1;
                    problems
                        .note(DatasetDamage::Cut, format!("{}: turn {number}, {} bytes", chat.name, said.text.len()));
                }
                events.push((number, TurnEvent::Turn(turn)));
            }
            Err(problem) => problems.note(DatasetDamage::Rejected, format!("{}: turn {number}: {problem}", chat.name)),
        }
        if chat.turns.get(number + 1).is_none_or(|next| next.session != said.session) {
            let session = said.session.to_string();
            events.push((number, TurnEvent::SessionEnd(SessionEnd { bank: bank.clone(), session })));
        }
    }
    events
}

fn turn(
    bank: &Bank,
    number: usize,
    said: &ChatTurn,
    text: &str,
    (day, minute, place): (Date, usize, usize),
) -> Result<Turn, types::model::FieldError> {
    let time = format!("{day}T{:02}:{:02}:{:02}+00:00", minute / 60, minute % 60, place.min(59));
    let mut speaker = said.role.clone();
    if let Some(first) = speaker.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let mut turn = Turn::new(bank.clone(), &number.to_string(), &speaker, text, EventTime::read(&time)?);
    turn.session = Some(said.session.to_string());
    let image =
        |caption: &String| Attachment { kind: Some("image".to_owned()), caption: Some(caption.clone()), url: None };
    turn.attachments = said.captions.iter().map(image).collect();
    turn.check()?;
    Ok(turn)
}

/// The part of a text that the memory is given.
fn shortened(text: &str) -> &str {
    let mut end = MAX_TEXT_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// Turns of a chat as a source.
struct ChatTurnSource {
    queue: TurnQueue,
    /// The number of turns in all earlier chats.
    done: u64,
    total: u64,
}

impl TurnSource for ChatTurnSource {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        Ok(self.queue.next(limit))
    }

    fn describe(&self) -> String {
        "the messages of a chat".to_owned()
    }

    fn progress(&self) -> SourceProgress {
        let within = self.queue.progress();
        SourceProgress { done: self.done + within.done, total: Some(self.total), unit: within.unit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_a_day_begin_one_after_the_other_and_long_turns_are_cut() {
        let day = jiff::civil::date(2024, 3, 3);
        let said = |session, text: &str| ChatTurn {
            session,
            role: "user".to_owned(),
            day,
            text: text.to_owned(),
            captions: Vec::new(),
        };
        let long = "é".repeat(600_000);
        let turns = vec![said(0, "a"), said(0, "b"), said(1, &long)];
        let chat = AgentChat { name: "1".to_owned(), turns, questions: Vec::new() };
        let (mut problems, mut cut) = (DamageCounts::default(), 0);
        let events = events(&chat, &Bank::parse("beam/1").unwrap(), &mut problems, &mut cut);
        let shown: Vec<String> = events
            .iter()
            .map(|(number, event)| match event {
                TurnEvent::Turn(t) => format!("{number} {} {} {}", t.speaker, t.time, t.text.len()),
                TurnEvent::SessionEnd(end) => format!("{number} end {}", end.session),
                other => format!("{other:?}"),
            })
            .collect();
        let expected = [
            "0 User 2024-03-03T09:00:00Z 1",
            "1 User 2024-03-03T09:00:01Z 1",
            "1 end 0",
            "2 User 2024-03-03T09:10:00Z 1048576",
            "2 end 1",
        ];
        assert_eq!(shown, expected);
        assert_eq!((cut, problems.count(DatasetDamage::Cut)), (1, 1));
    }
}
