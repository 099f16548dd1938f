//! What hooks of coding agents would give to prompts, measured on conversations with an assistant.
//!
//! In: BEAM's or RealMem's files, a pipeline, and how near a unit must be. Out: for each nearness, how often a question
//! of the set is given something, how much of the turns that answer it, and in how many tokens; and the tokens of a day:
//! a session of a hundred prompts, which are messages that the person of the chat typed. Each question is asked in a
//! session of its own.

use std::path::PathBuf;

use agents::{AgentProgram, GivenTurns, MOST_TOKENS, PromptRoom, RecalledTurns, prompt_quotes, question_of};
use serde::Serialize;

use super::{
    chat_files,
    chats::{AgentChat, AgentChats, AgentSet},
    facts::ChatFacts,
    memory_answers::replay_questions,
    result::AgentQuote,
};
use crate::EvalError;
use pipeline::{PipelineError, Progress};
use ripplemem::PipelineDriver;
use types::{
    config::Pipeline,
    model::{Bank, Question},
};

/// The prompts of a day.
const DAY_PROMPTS: usize = 100;

/// What to measure.
#[derive(Debug, Clone)]
pub struct HooksRequest {
    /// Which set.
    pub set: AgentSet,
    /// Its files.
    pub path: PathBuf,
    /// The settings; the log's directory is ignored.
    pub pipeline: Pipeline,
    /// How near a unit must be: shares of the best one.
    pub least_shares: Vec<f64>,
}

/// What questions are given with one nearness.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HooksRow {
    /// How near a unit must be, as a share of the best one.
    pub least_share: f64,
    /// Questions that turns of the chat answer.
    pub questions: u64,
    /// How many of them are given something.
    pub given: u64,
    /// The mean share of the turns with the answer that is quoted, over all of them.
    pub touched: f64,
    /// The mean of the estimated tokens, over those that are given something.
    pub tokens: f64,
    /// Questions that no turn answers.
    pub unanswerable: u64,
    /// How many of them are given something.
    pub unanswerable_given: u64,
}

/// What a session of a hundred prompts is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HooksDay {
    /// The chat whose person typed the prompts.
    pub chat: String,
    /// Prompts.
    pub prompts: usize,
    /// How many of them are given something.
    pub given: usize,
    /// Estimated tokens of all that is given.
    pub tokens: usize,
}

/// The figures of a set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HooksFigures {
    /// By nearness.
    pub rows: Vec<HooksRow>,
    /// By chat, with the nearness of the hooks.
    pub days: Vec<HooksDay>,
}

/// Sums of a row.
#[derive(Debug, Clone, Default)]
struct Sums {
    questions: u64,
    given: u64,
    touched: f64,
    tokens: usize,
    unanswerable: u64,
    unanswerable_given: u64,
}

/// Builds a memory of the chats, and gives every question what a hook would give.
///
/// # Errors
/// [`EvalError`] when a file as a whole is damaged, or the memory fails.
pub fn evaluate_hooks(request: &HooksRequest, progress: &mut dyn FnMut(Progress)) -> Result<HooksFigures, EvalError> {
    let AgentChats { chats, mut problems } = chat_files::read(request.set, &request.path, &[])?;
    let mut facts: Vec<ChatFacts> = chats.iter().map(ChatFacts::of).collect();
    let mut sums = vec![Sums::default(); request.least_shares.len()];
    let mut left: Vec<usize> =
        chats.iter().map(|chat| chat.questions.iter().filter(|of| of.is_asked()).count()).collect();
    let mut days = Vec::new();
    let set = request.set.name();
    replay_questions(
        set,
        &chats,
        &request.pipeline,
        &mut problems,
        progress,
        &mut |service, (number, at), question| {
            let (Some(chat), Some(facts)) = (chats.get(number), facts.get_mut(number)) else { return Ok(()) };
            let Some(asked) = chat.questions.get(at) else { return Ok(()) };
            let recalled = recall(service, &question.bank, &question.text)?;
            for (least_share, sums) in request.least_shares.iter().zip(&mut sums) {
                let room = room(&question.text, *least_share);
                let found = prompt_quotes(room, &recalled, &mut GivenTurns::default());
                let given = u64::from(found.is_some());
                if !asked.answerable {
                    sums.unanswerable += 1;
                    sums.unanswerable_given += given;
                    continue;
                }
                sums.questions += 1;
                sums.given += given;
                let Some((text, passages)) = found else { continue };
                sums.tokens += text.tokens;
                let quote =
                    |turn: &str, text: &str| Some(AgentQuote { turn: turn.parse().ok()?, text: text.to_owned() });
                let quoted: Vec<AgentQuote> =
                    passages.into_iter().filter_map(|passage| quote(&passage.turn, &passage.text)).collect();
                sums.touched += facts.judge(asked, &quoted).touched.unwrap_or_default();
            }
            if let Some(left) = left.get_mut(number) {
                *left -= 1;
                if *left == 0 {
                    days.push(day(service, &question.bank, chat)?);
                }
            }
            Ok(())
        },
    )?;
    let rows = request.least_shares.iter().zip(sums).map(|(least_share, of)| row(*least_share, &of)).collect();
    Ok(HooksFigures { rows, days })
}

/// What a memory recalls for a prompt, as the service's answer has it.
fn recall(service: &PipelineDriver, bank: &Bank, prompt: &str) -> Result<RecalledTurns, PipelineError> {
    let Some(text) = question_of(prompt) else { return Ok(RecalledTurns::default()) };
    let question = Question { most_tokens: u32::try_from(MOST_TOKENS).ok(), ..Question::new(bank.clone(), text) };
    let evidence = service.ask(&question)?;
    // The hook reads the same fields of the same JSON.
    Ok(serde_json::to_value(&evidence).and_then(serde_json::from_value).unwrap_or_default())
}

fn room(prompt: &str, least_share: f64) -> PromptRoom<'_> {
    PromptRoom { program: AgentProgram::ClaudeCode, session: "", prompt, most_tokens: MOST_TOKENS, least_share }
}

/// A session in which the person types again what they typed in the chat, at even distances.
fn day(service: &PipelineDriver, bank: &Bank, chat: &AgentChat) -> Result<HooksDay, PipelineError> {
    let typed: Vec<&str> =
        chat.turns.iter().filter(|turn| turn.role != "assistant").map(|turn| turn.text.as_str()).collect();
    let step = typed.len().div_ceil(DAY_PROMPTS).max(1);
    let mut given = GivenTurns::default();
    let mut day = HooksDay { chat: chat.name.clone(), prompts: 0, given: 0, tokens: 0 };
    for prompt in typed.into_iter().step_by(step) {
        day.prompts += 1;
        let recalled = recall(service, bank, prompt)?;
        if let Some((text, _)) = prompt_quotes(room(prompt, agents::LEAST_SHARE), &recalled, &mut given) {
            day.given += 1;
            day.tokens += text.tokens;
        }
    }
    Ok(day)
}

fn row(least_share: f64, of: &Sums) -> HooksRow {
    HooksRow {
        least_share,
        questions: of.questions,
        given: of.given,
        touched: of.touched / (of.questions.max(1) as f64),
        tokens: of.tokens as f64 / (of.given.max(1) as f64),
        unanswerable: of.unanswerable,
        unanswerable_given: of.unanswerable_given,
    }
}

/// The figures as two tables.
#[must_use]
pub fn hooks_page(figures: &HooksFigures) -> String {
    let mut page = "| nearness | questions | given something | evidence quoted, % | tokens where given | without an answer | given something |\n\
                    |---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in &figures.rows {
        page.push_str(&format!(
            "| {} | {} | {} | {:.1} | {:.0} | {} | {} |\n",
            row.least_share,
            row.questions,
            row.given,
            100.0 * row.touched,
            row.tokens,
            row.unanswerable,
            row.unanswerable_given
        ));
    }
    page.push_str("\n| a day's session in | prompts | given something | tokens in all |\n|---|---|---|---|\n");
    for day in &figures.days {
        page.push_str(&format!("| {} | {} | {} | {} |\n", day.chat, day.prompts, day.given, day.tokens));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_given_what_is_near_and_a_day_nothing_twice() {
        let request = HooksRequest {
            set: AgentSet::Beam,
            path: concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/agents/beam").into(),
            pipeline: Pipeline::parse("version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\n").unwrap(),
            least_shares: vec![0.0, 1.0],
        };
        let figures = evaluate_hooks(&request, &mut |_| {}).unwrap();
        let [all, best] = &figures.rows[..] else { panic!("two rows") };
        assert_eq!((all.questions, all.unanswerable, best.questions), (4, 1, 4));
        assert!(all.given >= best.given && all.touched >= best.touched, "{figures:?}");
        assert!(best.given > 0 && best.touched > 0.0, "what the memory answers is read: {figures:?}");
        assert_eq!((figures.days.len(), figures.days[0].prompts), (1, 3));
        assert!(hooks_page(&figures).contains("| 0 | 4 | "));
    }
}
