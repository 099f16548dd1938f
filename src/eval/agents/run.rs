//! One evaluation on agents' conversations, from files to figures.
//!
//! In: a request. Out: an [`AgentsRun`]: the memory first, then the rivals, every context scored by the same
//! metric. Leaves no file behind.

use std::{collections::BTreeMap, path::PathBuf};

use super::{
    chat_files,
    chats::{AgentChat, AgentChats, AgentSet, ChatQuestion},
    facts::ChatFacts,
    memory_answers::{self, QuotedAnswer},
    passage_baselines::{self, PassageBaseline},
    result::{AgentContext, AgentFigures, AgentQuote, AgentRow, AgentsResult, AgentsRun},
};
use crate::{
    EvalError,
    report::{ExpectedTurn, QuestionReport, REPORT_SCHEMA_VERSION, turn_text},
    score::auc,
};
use pipeline::Progress;
use types::config::Pipeline;

/// The memory's name among retrievers.
const MEMORY: &str = "memory";

/// What to evaluate.
#[derive(Debug, Clone)]
pub struct AgentsRequest {
    /// Which set.
    pub set: AgentSet,
    /// Its files.
    pub path: PathBuf,
    /// Only these conversations; all when empty.
    pub only: Vec<String>,
    /// The settings; the log's directory is ignored.
    pub pipeline: Pipeline,
    /// Whether to ask the rivals too.
    pub baselines: bool,
    /// The rivals' mean tokens; the memory's without it.
    pub tokens: Option<f64>,
}

/// Builds a memory of the chats, asks every question, and scores what is quoted.
///
/// # Errors
/// [`EvalError`] when a file as a whole is damaged, or the memory fails.
pub fn evaluate_agents(request: &AgentsRequest, progress: &mut dyn FnMut(Progress)) -> Result<AgentsRun, EvalError> {
    let AgentChats { chats, mut problems } = chat_files::read(request.set, &request.path, &request.only)?;
    let answers = memory_answers::ask(request.set.name(), &chats, &request.pipeline, &mut problems, progress)?;
    let mut scorer =
        ContextScorer { facts: chats.iter().map(ChatFacts::of).collect(), chats: &chats, contexts: Vec::new() };
    let mut sufficiency = [Vec::new(), Vec::new()];
    let mut questions = Vec::new();
    for answer in answers.asked {
        let QuotedAnswer { chat, question, ref quoted, tokens, ref evidence, .. } = answer;
        let sure = evidence.sufficiency;
        let context = scorer.score(MEMORY, (chat, question), quoted.clone(), tokens, Some(sure));
        questions.extend(scorer.report(answer, context.as_ref().and_then(|context| context.facts)));
        if let Some(asked) = scorer.question(chat, question) {
            sufficiency[usize::from(!asked.answerable)].push(sure);
        }
        scorer.contexts.extend(context);
    }
    let [high, low] = &sufficiency;
    let memory = row(MEMORY.to_owned(), "what it quotes".to_owned(), None, &scorer.contexts);
    let mean_tokens = request.tokens.or(memory.overall.mean_tokens).filter(|_| request.baselines);
    let mut rows = vec![memory];
    if let Some(mean_tokens) = mean_tokens {
        for PassageBaseline { ranking, split, cap, quoted } in
            passage_baselines::rivals(&chats, &request.pipeline, mean_tokens, progress)?
        {
            let from = scorer.contexts.len();
            let name = format!("{}, {}", ranking.name(), split.name());
            for (chat, question, quoted, tokens) in quoted {
                let context = scorer.score(&name, (chat, question), quoted, tokens, None);
                scorer.contexts.extend(context);
            }
            let own = scorer.contexts.get(from..).unwrap_or_default();
            rows.push(row(ranking.name().to_owned(), split.name(), Some(cap), own));
        }
    }
    let result = AgentsResult {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        dataset: request.set.name().to_owned(),
        path: request.path.display().to_string(),
        profile: request.pipeline.profile.clone(),
        chats: chats.len() as u64,
        turns: answers.built.turns,
        cut_turns: answers.built.cut,
        seconds: answers.built.seconds,
        questions: high.len() as u64,
        unanswerable: low.len() as u64,
        sufficiency_auc: auc(high, low),
        rival_tokens: mean_tokens,
        rows,
        problems: problems.into_inner(),
        settings: serde_json::to_value(&request.pipeline).map_err(EvalError::Settings)?,
    };
    Ok(AgentsRun { result, contexts: scorer.contexts, questions })
}

/// Scores contexts, chat by chat.
struct ContextScorer<'c> {
    chats: &'c [AgentChat],
    facts: Vec<ChatFacts>,
    contexts: Vec<AgentContext>,
}

impl ContextScorer<'_> {
    fn question(&self, chat: usize, question: usize) -> Option<&ChatQuestion> {
        self.chats.get(chat)?.questions.get(question)
    }

    fn score(
        &mut self,
        retriever: &str,
        (chat, question): (usize, usize),
        quoted: Vec<AgentQuote>,
        tokens: usize,
        sufficiency: Option<f64>,
    ) -> Option<AgentContext> {
        let (of, facts) = (self.chats.get(chat)?, self.facts.get_mut(chat)?);
        let asked = of.questions.get(question)?;
        let judged = facts.judge(asked, &quoted);
        Some(AgentContext {
            retriever: retriever.to_owned(),
            chat: of.name.clone(),
            question,
            kind: asked.kind.clone(),
            tokens: tokens as u64,
            sufficiency,
            touched: judged.touched,
            facts: judged.facts,
            quoted,
        })
    }

    /// A question for the report.
    fn report(&self, answer: QuotedAnswer, facts: Option<f64>) -> Option<QuestionReport> {
        let QuotedAnswer { chat, question, quoted, tokens, evidence, lost } = answer;
        let (of, judge) = (self.chats.get(chat)?, self.facts.get(chat)?);
        let asked = of.questions.get(question)?;
        let touched = judge.touched(asked, &quoted);
        let turns = asked.evidence.iter().zip(touched).zip(lost).map(|((turn, found), lost)| {
            let said = of.turns.get(*turn);
            ExpectedTurn {
                turn: turn.to_string(),
                speaker: said.map_or_else(String::new, |said| said.role.clone()),
                text: turn_text(said.map_or("", |said| &said.text)),
                units: lost.standing.iter().map(|standing| standing.unit).collect(),
                found,
                found_by_first_hop: None,
                lost: (!found).then_some(lost),
            }
        });
        Some(QuestionReport {
            schema: REPORT_SCHEMA_VERSION,
            id: format!("{}#{question}", of.name),
            conversation: of.name.clone(),
            category: asked.kind.clone(),
            supported: Some(asked.answerable),
            reference: None,
            evidence: turns.collect(),
            facts,
            tokens: tokens as u64,
            first_hop_tokens: None,
            answer: evidence,
        })
    }
}

/// The figures over the contexts of questions that have evidence.
fn row(name: String, over: String, cap: Option<f64>, contexts: &[AgentContext]) -> AgentRow {
    let scored: Vec<&AgentContext> = contexts.iter().filter(|context| context.touched.is_some()).collect();
    let by = |key: fn(&AgentContext) -> &str| -> BTreeMap<String, AgentFigures> {
        let mut groups: BTreeMap<&str, Vec<&AgentContext>> = BTreeMap::new();
        for context in &scored {
            groups.entry(key(context)).or_default().push(context);
        }
        groups.into_iter().map(|(key, group)| (key.to_owned(), figures(&group))).collect()
    };
    AgentRow { name, over, cap, overall: figures(&scored), by_kind: by(|c| &c.kind), by_chat: by(|c| &c.chat) }
}

fn figures(contexts: &[&AgentContext]) -> AgentFigures {
    let mean = |values: Vec<f64>| {
        let sum: f64 = values.iter().sum();
        (!values.is_empty()).then(|| sum / values.len() as f64)
    };
    let facts: Vec<f64> = contexts.iter().filter_map(|context| context.facts).collect();
    AgentFigures {
        questions: contexts.len() as u64,
        touched: mean(contexts.iter().filter_map(|context| context.touched).collect()),
        with_facts: facts.len() as u64,
        facts: mean(facts),
        mean_tokens: mean(contexts.iter().map(|context| context.tokens as f64).collect()),
        most_tokens: contexts.iter().map(|context| context.tokens).max().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_hand() {
        let context = |kind: &str, touched, facts, tokens| AgentContext {
            retriever: MEMORY.to_owned(),
            chat: "1".to_owned(),
            question: 0,
            kind: kind.to_owned(),
            tokens,
            sufficiency: None,
            touched,
            facts,
            quoted: Vec::new(),
        };
        let contexts = [
            context("a", Some(1.0), Some(0.5), 100),
            context("a", Some(0.5), None, 300),
            context("b", Some(0.0), Some(0.0), 200),
            context("abstention", None, None, 9_000),
        ];
        let row = row("memory".to_owned(), String::new(), None, &contexts);
        let expected = AgentFigures {
            questions: 3,
            touched: Some(0.5),
            with_facts: 2,
            facts: Some(0.25),
            mean_tokens: Some(200.0),
            most_tokens: 300,
        };
        assert_eq!(row.overall, expected, "a question without an answer is asked, not scored");
        assert_eq!((row.by_kind["a"].facts, row.by_kind.len(), row.by_chat["1"].questions), (Some(0.5), 2, 3));
    }

    /// The small chat has four questions with evidence and one without an answer. No turn states the 18 days.
    #[test]
    fn a_rival_that_quotes_everything_touches_and_covers_everything() {
        let settings = "version = 1\nembed.model = \"fixed\"\nlog.fsync = \"system\"\n";
        let request = AgentsRequest {
            set: AgentSet::Beam,
            path: concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/agents/beam").into(),
            only: Vec::new(),
            pipeline: Pipeline::parse(settings).unwrap(),
            baselines: true,
            tokens: Some(10_000.0),
        };
        let AgentsRun { result, contexts, questions } = evaluate_agents(&request, &mut |_| {}).unwrap();
        assert_eq!((result.chats, result.turns, result.cut_turns), (1, 6, 0));
        assert_eq!((result.questions, result.unanswerable, result.rows.len()), (4, 1, 10));
        for rival in &result.rows[1..] {
            let AgentFigures { questions, touched, with_facts, facts, .. } = rival.overall;
            assert_eq!((questions, touched, with_facts, facts), (4, Some(1.0), 3, Some(1.0)), "{}", rival.name);
        }
        let memory: Vec<_> = contexts.iter().filter(|context| context.retriever == MEMORY).collect();
        assert_eq!((memory.len(), questions.len()), (5, 5));
        assert!(memory.iter().all(|context| context.quoted.iter().all(|quote| quote.turn < 6)));
        let page = crate::agents_page(&result);
        assert!(page.contains("| rank-fusion | whole messages | 4 | 100.0 | 100.0 |"), "{page}");
        assert_eq!(result.problems["not_a_question"].count, 1);
    }
}
