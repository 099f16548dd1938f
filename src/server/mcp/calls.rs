//! What each tool does.
//!
//! In: a tool's name and its arguments. Out: its result as JSON and as text, or why it failed. A turn without a time
//! gets the present time, and a turn without an id gets an id. Dropping the future of a question cancels the question.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rmcp::model::JsonObject;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::to_raw_value};

use super::{
    call_error::CallError,
    opened_memory::{Opened, OpenedMemory},
    tools::{
        Answered, Ask, Counts, ExplainTurn, Explained, ExplainedStep, Forget, ForgetTurns, Forgotten, ForgottenTurns,
        ListOf, Listed, ListedTurn, MAX_TURNS, Recalled, Remember, Remembered, Said, Show, Shown, Status, StatusOf,
        ToolName,
    },
};
use crate::{access::Caller, api};
use heart::{
    language::tokens,
    recall::{one_line, with_ids},
};
use models::llm::LlmError;
use nouns::model::{
    Bank, EventTime, Evidence, ExplainStep, Explanation, Question, SaidBefore, Selector, SpeakerKind, Subject,
    SubjectId, Turn,
};

/// How long `remember`, `forget` and `forget_turns` wait until answers reflect the change, if the call does not say.
const WAIT_SECONDS: u64 = 5;
/// The longest that they wait.
const MAX_WAIT_SECONDS: u64 = 60;
/// Most banks that `status` names.
const MAX_BANKS: usize = 100;
/// Turns of a list if the call does not say, and the most.
const LISTED: usize = 20;
const MAX_LISTED: usize = 100;
/// Characters of a turn in a list.
const BEGINNING: usize = 200;
/// Characters of a turn that `show` gives at once.
const SHOWN: usize = 8_000;

/// What is offered to a client.
#[derive(Clone)]
pub(super) struct Offer {
    /// Who calls.
    pub(super) who: Arc<Caller>,
    /// The bank of calls that name no bank.
    pub(super) default_bank: Option<Bank>,
    /// Leaves out the tools that change the memory.
    pub(super) read_only: bool,
}

impl Offer {
    /// All tools, for a caller with every right.
    pub(super) fn everything() -> Self {
        Self { who: Arc::new(Caller::anybody()), default_bank: None, read_only: false }
    }

    /// Whether a tool is offered.
    pub(super) fn has(&self, tool: ToolName) -> bool {
        !(self.read_only && tool.writes())
    }

    fn bank(&self, named: Option<Bank>) -> Result<Bank, CallError> {
        named.or_else(|| self.default_bank.clone()).ok_or_else(|| {
            refused(
                "bank: missing; name one, such as the user or the project, or start the server with --bank NAME (over \
                 HTTP, end its address with ?bank=NAME)",
            )
        })
    }
}

/// The tools on a memory.
pub(super) struct Calls {
    pub(super) memory: OpenedMemory,
    /// How long the language model may take for an answer.
    pub(super) answer_time: Duration,
    /// The language model's name, if one is set.
    pub(super) language_model: Option<String>,
}

/// The result of a tool.
pub(super) struct CallResult {
    pub(super) structured: Value,
    /// The result for people and models.
    pub(super) text: String,
}

/// A turn of a list.
fn listed(turn: api::TurnView) -> ListedTurn {
    ListedTurn { text: beginning(&turn.text), id: turn.short, speaker: turn.speaker, time: turn.time }
}

impl Calls {
    /// Calls a tool.
    pub(super) async fn call(
        &self,
        tool: ToolName,
        arguments: JsonObject,
        offer: &Offer,
    ) -> Result<CallResult, CallError> {
        match tool {
            ToolName::Remember => self.remember(read(tool, arguments)?, offer).await,
            ToolName::Recall => self.recall(read(tool, arguments)?, offer).await,
            ToolName::Answer => self.answer(read(tool, arguments)?, offer).await,
            ToolName::Evidence => json(&self.evidence(read(tool, arguments)?, offer).await?),
            ToolName::Explain => self.explain(read(tool, arguments)?, offer).await,
            ToolName::List => self.list(read(tool, arguments)?, offer).await,
            ToolName::Show => self.show(read(tool, arguments)?, offer).await,
            ToolName::Forget => self.forget(read(tool, arguments)?, offer).await,
            ToolName::ForgetTurns => self.forget_turns(read(tool, arguments)?, offer).await,
            ToolName::Status => self.status(read(tool, arguments)?, offer).await,
        }
    }

    async fn remember(
        &self,
        Remember { turns, bank, wait_seconds }: Remember,
        offer: &Offer,
    ) -> Result<CallResult, CallError> {
        if turns.is_empty() || turns.len() > MAX_TURNS {
            return Err(refused(format!("turns: {}; give 1 to {MAX_TURNS} at a time", turns.len())));
        }
        let bank = offer.bank(bank)?;
        let turns = identified(&bank, turns)?;
        let ids = turns.iter().map(|turn| turn.turn.clone()).collect();
        let raw = turns.iter().map(to_raw_value).collect::<Result<Vec<_>, _>>();
        let raw = raw.map_err(|e| refused(e.to_string()))?;
        let put = |opened: Arc<Opened>| {
            let put = api::Put { turns: raw.clone(), dead_letters: Vec::new(), wait_ms: Some(wait_ms(wait_seconds)) };
            async move { opened.access.put(&offer.who, put).await }
        };
        let written = self.memory.with(put).await?;
        let api::WrittenTurns { after, reflected: included, forgotten, .. } = written;
        json(&Remembered { bank, turns: ids, included, after, forgotten })
    }

    /// Searches for a question.
    pub(super) async fn recall(&self, mut ask: Ask, offer: &Offer) -> Result<CallResult, CallError> {
        let asked_tokens = ask.most_tokens;
        let id = |turns: &Vec<String>| turns.iter().map(|turn| api::short_id(turn)).collect::<Vec<_>>().join(" ");
        let (evidence, context) = loop {
            let evidence = self.evidence(ask.clone(), offer).await?;
            let context = with_ids(&evidence.context, !evidence.supported, evidence.context_turns.iter().map(id));
            // The ids come on top of what the memory counts.
            let most = asked_tokens.map_or(u64::MAX, u64::from);
            let (spent, with_ids) = (u64::from(evidence.tokens.spent), tokens::count(&context) as u64);
            // A question cannot ask for less than one token.
            if with_ids <= most || spent <= 1 {
                break (evidence, context);
            }
            ask.most_tokens = Some((spent * most / with_ids).clamp(1, spent - 1) as u32);
        };
        let mut text = match (context.trim(), evidence.supported) {
            ("", true) => "No memory fits into most_tokens; ask again with more.".to_owned(),
            ("", false) => "Nothing in memory supports this question.".to_owned(),
            _ => context.clone(),
        };
        if let Some(forgotten) = evidence.forgotten {
            let line = format!("Not shown: {forgotten} turns that the bank held then were forgotten since.");
            text = format!("{}\n{line}\n", text.trim_end());
        }
        let notice = evidence.notice.map(|notice| notice.message);
        let recalled = Recalled {
            bank: evidence.question.bank,
            context,
            supported: evidence.supported,
            sufficiency: evidence.sufficiency,
            units: evidence.units.len(),
            reflects: evidence.reflects,
            forgotten: evidence.forgotten,
            notice,
        };
        Ok(CallResult { text, ..json(&recalled)? })
    }

    async fn answer(&self, ask: Ask, offer: &Offer) -> Result<CallResult, CallError> {
        if self.language_model.is_none() {
            return Err(refused(format!("{}; or use recall and answer from its text", LlmError::NotConfigured)));
        }
        let ask = question(ask, offer)?;
        let answer = |opened: Arc<Opened>| {
            let ask = ask.clone();
            async move { opened.access.answer(&offer.who, ask, self.answer_time).await }
        };
        let api::AnsweredEvidence { evidence, answer } = self.memory.with(answer).await?;
        json(&Answered {
            bank: evidence.question.bank.clone(),
            answer,
            supported: evidence.supported,
            sufficiency: evidence.sufficiency,
            reflects: evidence.reflects.clone(),
            notice: evidence.notice.as_ref().map(|notice| notice.message.clone()),
        })
    }

    /// Why a turn is recalled or not.
    async fn explain(&self, asked: ExplainTurn, offer: &Offer) -> Result<CallResult, CallError> {
        let ExplainTurn { question, turn, bank, asked_at, asker, most_tokens, as_of } = asked;
        let bank = offer.bank(bank)?;
        let question = Question { asked_at, asker: given(asker), most_tokens, ..Question::new(bank, question) };
        let subject = Subject { id: SubjectId::Turn(turn), part: None, every_part: false };
        let explain = api::Explain { as_of: given(as_of), ..api::Explain::of(question, subject) };
        let explain = |opened: Arc<Opened>| {
            let explain = explain.clone();
            async move { opened.access.explain(&offer.who, explain).await }
        };
        let Explanation { bank, subject, quoted, failed, sentence, change, steps, .. } =
            self.memory.with(explain).await?;
        let step = |ExplainStep { step, state, sentence, .. }: ExplainStep| ExplainedStep { step, state, sentence };
        json(&Explained {
            bank,
            turn: subject.and_then(|subject| subject.turn),
            quoted,
            failed,
            sentence,
            change,
            steps: steps.into_iter().map(step).collect(),
        })
    }

    /// The latest turns of a bank.
    async fn list(&self, asked: ListOf, offer: &Offer) -> Result<CallResult, CallError> {
        let ListOf { bank, speaker, mentions, since, until, limit } = asked;
        let limit = limit.unwrap_or(LISTED);
        if !(1..=MAX_LISTED).contains(&limit) {
            return Err(refused(format!("limit: {limit}; allowed is 1 to {MAX_LISTED}")));
        }
        let (speakers, mentions) = (speaker.into_iter().collect(), mentions.into_iter().collect());
        let select = Selector { speakers, mentions, since, until, ..Selector::default() };
        let list = api::ListTurns { bank: offer.bank(bank)?, turn: None, select, before: None, limit: Some(limit) };
        let api::Turns { bank, turns, more, .. } = self.turns(offer, list).await?;
        json(&Listed { bank, turns: turns.into_iter().map(listed).collect(), more })
    }

    /// A turn in full.
    async fn show(&self, Show { turn, bank, from }: Show, offer: &Offer) -> Result<CallResult, CallError> {
        let (bank, limit) = (offer.bank(bank)?, Some(MAX_LISTED));
        let select = Selector::default();
        let list = api::ListTurns { bank, turn: Some(turn.clone()), select, before: None, limit };
        let api::Turns { bank, turns, .. } = self.turns(offer, list).await?;
        let found = match turns.as_slice() {
            [found] => found.clone(),
            [] => {
                return Err(refused(format!("turn: bank {bank} holds no turn {turn:?}; recall and list show ids")));
            }
            several => {
                return Err(refused(api::several_meant(&turn, several.iter().map(|held| held.turn.as_str()))));
            }
        };
        let (from, count) = (from.unwrap_or_default(), found.text.chars().count());
        let text = found.text.chars().skip(from).take(SHOWN).collect();
        let next = Some(from.saturating_add(SHOWN)).filter(|next| *next < count);
        let api::TurnView { turn, speaker, time, session, .. } = found;
        json(&Shown { bank, turn, speaker, time, session, text, next })
    }

    async fn turns(&self, offer: &Offer, list: api::ListTurns) -> Result<api::Turns, CallError> {
        let list = |opened: Arc<Opened>| {
            let list = list.clone();
            async move { opened.access.list(&offer.who, list).await }
        };
        self.memory.with(list).await
    }

    async fn forget(
        &self,
        Forget { turn, bank, wait_seconds }: Forget,
        offer: &Offer,
    ) -> Result<CallResult, CallError> {
        let bank = offer.bank(bank)?;
        let forget = api::Forget { bank, turn, wait_ms: Some(wait_ms(wait_seconds)) };
        let forget = |opened: Arc<Opened>| {
            let forget = forget.clone();
            async move { opened.access.forget(&offer.who, forget).await }
        };
        let api::Forgotten { bank, turn, held, after, gone, .. } = self.memory.with(forget).await?;
        json(&Forgotten { bank, turn, held, included: gone, after })
    }

    /// Says which turns the call selects; with `confirm`, deletes them.
    async fn forget_turns(&self, asked: ForgetTurns, offer: &Offer) -> Result<CallResult, CallError> {
        let ForgetTurns { bank, speaker, since, until, session, mentions, confirm, wait_seconds } = asked;
        let (speakers, mentions) = (speaker.into_iter().collect(), mentions.into_iter().collect());
        let select = Selector { speakers, since, until, session, mentions, ..Selector::default() };
        let (bank, dry_run) = (offer.bank(bank)?, confirm.is_none());
        let wait_ms = Some(wait_ms(wait_seconds));
        let forget = api::ForgetTurns { bank, select, confirm, unheld: false, dry_run, wait_ms };
        let forget = |opened: Arc<Opened>| {
            let forget = forget.clone();
            async move { opened.access.forget_turns(&offer.who, forget).await }
        };
        let api::ForgottenTurns { bank, turns, dead_letters, shown, confirm, after, gone, .. } =
            self.memory.with(forget).await?;
        let shown = shown.into_iter().map(listed).collect();
        let rejected = Some(dead_letters).filter(|letters| *letters > 0);
        json(&ForgottenTurns { bank, count: turns, rejected, turns: shown, confirm, included: gone, after })
    }

    async fn status(&self, StatusOf { bank }: StatusOf, offer: &Offer) -> Result<CallResult, CallError> {
        let status = |opened: Arc<Opened>| async move {
            Ok((opened.access.status(&offer.who).await?, opened.access.banks(&offer.who).await?))
        };
        let (status, mut banks) = self.memory.with(status).await?;
        let counts = match bank {
            Some(bank) => Some(self.counts(&offer.who, bank).await?),
            None => None,
        };
        let bank_count = banks.len();
        banks.truncate(MAX_BANKS);
        json(&Status {
            version: status.version,
            default_bank: offer.default_bank.clone(),
            read_only: offer.read_only,
            language_model: self.language_model.clone(),
            bank_count,
            banks,
            counts,
            behind: status.behind,
            waiting_for_model: status.waiting_for_model,
            problem: status.problem,
        })
    }

    /// How much a bank holds.
    pub(super) async fn counts(&self, who: &Caller, bank: Bank) -> Result<Counts, CallError> {
        let counted = |opened: Arc<Opened>| {
            let bank = bank.clone();
            async move { opened.access.bank(who, bank).await }
        };
        let counted = self.memory.with(counted).await?;
        Ok(Counts { bank, units: counted.units, edges: counted.semantic_edges + counted.structural_edges })
    }

    /// The banks that hold something.
    pub(super) async fn banks(&self, who: &Caller) -> Result<Vec<Bank>, CallError> {
        self.memory.with(|opened: Arc<Opened>| async move { opened.access.banks(who).await }).await
    }

    async fn evidence(&self, ask: Ask, offer: &Offer) -> Result<Evidence, CallError> {
        let ask = question(ask, offer)?;
        let evidence = |opened: Arc<Opened>| {
            let ask = ask.clone();
            async move { opened.access.ask(&offer.who, ask).await }
        };
        self.memory.with(evidence).await
    }
}

/// The question of a call.
fn question(ask: Ask, offer: &Offer) -> Result<api::Ask, CallError> {
    let Ask { question, bank, asked_at, asker, said_before, most_tokens, after, as_of } = ask;
    let (bank, asker, after, as_of) = (offer.bank(bank)?, given(asker), given(after), given(as_of));
    let said = |text: String| SaidBefore { speaker: "conversation".to_owned(), text };
    let said_before = given(said_before).map(said).into_iter().collect();
    let question = Question { asked_at, asker, said_before, most_tokens, ..Question::new(bank, question) };
    Ok(api::Ask { after, as_of, ..api::Ask::of(question) })
}

/// What a client wrote; nothing where it wrote an empty text.
fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

fn refused(why: impl Into<String>) -> CallError {
    CallError::Refused(why.into())
}

fn read<T: DeserializeOwned>(tool: ToolName, arguments: JsonObject) -> Result<T, CallError> {
    let wrong = |e| refused(format!("arguments of {}: {e}; its input schema says what it takes", tool.as_str()));
    serde_json::from_value(Value::Object(arguments)).map_err(wrong)
}

fn json(value: &impl Serialize) -> Result<CallResult, CallError> {
    let structured = serde_json::to_value(value).map_err(|e| refused(format!("the result is not JSON: {e}")))?;
    Ok(CallResult { text: structured.to_string(), structured })
}

fn wait_ms(seconds: Option<u64>) -> u64 {
    1_000 * seconds.unwrap_or(WAIT_SECONDS).min(MAX_WAIT_SECONDS)
}

/// Turns, each with a time and an id. A generated id depends only on speaker, time, session and text, so repeating a
/// call with the same times stores nothing twice. The same turn twice in one call gets two ids.
fn identified(bank: &Bank, said: Vec<Said>) -> Result<Vec<Turn>, CallError> {
    let now = now()?;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let turn = |Said { speaker, text, time, turn, session, kind }: Said| {
        let time = time.unwrap_or(now);
        let unknown = |kind: &String| refused(format!("kind: {kind:?}; allowed are person, assistant, tool and bot"));
        let kind = kind.map(|kind| SpeakerKind::of_role(&kind).ok_or_else(|| unknown(&kind))).transpose()?;
        let id = turn.unwrap_or_else(|| {
            let id = made_id(&speaker, &text, time, session.as_deref());
            let times = seen.entry(id.clone()).or_default();
            *times += 1;
            if *times == 1 { id } else { format!("{id}-{times}") }
        });
        Ok(Turn { session, kind, ..Turn::new(bank.clone(), &id, &speaker, &text, time) })
    };
    said.into_iter().map(turn).collect()
}

/// The beginning of a text, on one line.
fn beginning(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(BEGINNING) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn now() -> Result<EventTime, CallError> {
    let now = jiff::Zoned::now();
    let time = EventTime::new(now.timestamp().as_millisecond(), now.offset().seconds());
    time.map_err(|e| refused(format!("the clock of this machine: {e}; give each turn its time")))
}

fn made_id(speaker: &str, text: &str, time: EventTime, session: Option<&str>) -> String {
    let mut hash = blake3::Hasher::new();
    for field in [speaker, &time.to_string(), session.unwrap_or_default(), text] {
        hash.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
    }
    format!("mcp-{}", &hash.finalize().to_hex()[..20])
}
