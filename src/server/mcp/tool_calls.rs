//! What each tool does.
//!
//! In: a tool's name and its arguments. Out: its result as JSON and as text, or why it failed. A turn without a time
//! gets the present time, and a turn without an id gets an id. Dropping the future of a question cancels the question.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rmcp::model::JsonObject;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, value::to_raw_value};

use super::{
    lazy_memory::{AccessHandle, LazyMemory},
    tool_call_error::ToolCallError,
    tools::{
        AnswerToolOutput, BankSize, ExplainInput, ExplainOutput, ExplainOutputStep, ForgetInput, ForgetOutput,
        ForgetTurnsInput, ForgetTurnsOutput, ListInput, ListOutput, MAX_TURNS, ProfileInput, ProfileOutput,
        QuestionInput, RecallOutput, RememberInput, RememberOutput, ShowInput, ShowOutput, StatusInput, StatusOutput,
        ToolName, TurnInput, TurnOutput,
    },
};
use crate::{access::Caller, api};
use memory::{
    language::token_count,
    recall::{one_line, with_ids},
};
use models::llm::LlmError;
use types::model::{
    Bank, EventTime, Evidence, Explanation, ExplanationQuery, ExplanationStep, Metadata, PrecedingTurn, Profile,
    Question, Selector, SpeakerKind, SubjectId, Turn,
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
pub(super) struct ClientScope {
    /// Who calls.
    pub(super) who: Arc<Caller>,
    /// The bank of calls that name no bank.
    pub(super) default_bank: Option<Bank>,
    /// Leaves out the tools that change the memory.
    pub(super) read_only: bool,
}

impl ClientScope {
    /// All tools, for a caller with every right.
    pub(super) fn everything() -> Self {
        Self { who: Arc::new(Caller::anybody()), default_bank: None, read_only: false }
    }

    /// Whether a tool is offered.
    pub(super) fn has(&self, tool: ToolName) -> bool {
        !(self.read_only && tool.writes())
    }

    fn bank(&self, named: Option<Bank>) -> Result<Bank, ToolCallError> {
        named.or_else(|| self.default_bank.clone()).ok_or_else(|| {
            refused(
                "bank: missing; name one, such as the user or the project, or start the server with --bank NAME (over \
                 HTTP, end its address with ?bank=NAME)",
            )
        })
    }
}

/// The tools on a memory.
pub(super) struct ToolCalls {
    pub(super) memory: LazyMemory,
    /// How long the language model may take for an answer.
    pub(super) answer_time: Duration,
    /// The language model's name, if one is set.
    pub(super) language_model: Option<String>,
}

/// The result of a tool.
pub(super) struct ToolResult {
    pub(super) structured: Value,
    /// The result for people and models.
    pub(super) text: String,
}

/// A turn of a list.
fn turn_output(turn: api::TurnView) -> TurnOutput {
    TurnOutput { text: beginning(&turn.text), id: turn.short, speaker: turn.speaker, time: turn.time }
}

impl ToolCalls {
    /// Calls a tool.
    pub(super) async fn call(
        &self,
        tool: ToolName,
        arguments: JsonObject,
        offer: &ClientScope,
    ) -> Result<ToolResult, ToolCallError> {
        match tool {
            ToolName::Remember => self.remember(read(tool, arguments)?, offer).await,
            ToolName::Recall => self.recall(read(tool, arguments)?, offer).await,
            ToolName::Answer => self.answer(read(tool, arguments)?, offer).await,
            ToolName::Evidence => json(&self.evidence(read(tool, arguments)?, offer).await?),
            ToolName::Explain => self.explain(read(tool, arguments)?, offer).await,
            ToolName::Profile => self.profile(read(tool, arguments)?, offer).await,
            ToolName::List => self.list(read(tool, arguments)?, offer).await,
            ToolName::Show => self.show(read(tool, arguments)?, offer).await,
            ToolName::Forget => self.forget(read(tool, arguments)?, offer).await,
            ToolName::ForgetTurns => self.forget_turns(read(tool, arguments)?, offer).await,
            ToolName::Status => self.status(read(tool, arguments)?, offer).await,
        }
    }

    async fn remember(
        &self,
        RememberInput { turns, bank, wait_seconds }: RememberInput,
        offer: &ClientScope,
    ) -> Result<ToolResult, ToolCallError> {
        if turns.is_empty() || turns.len() > MAX_TURNS {
            return Err(refused(format!("turns: {}; give 1 to {MAX_TURNS} at a time", turns.len())));
        }
        let bank = offer.bank(bank)?;
        let turns = with_turn_ids(&bank, turns)?;
        let ids = turns.iter().map(|turn| turn.turn.clone()).collect();
        let raw = turns.iter().map(to_raw_value).collect::<Result<Vec<_>, _>>();
        let raw = raw.map_err(|e| refused(e.to_string()))?;
        let put = |opened: Arc<AccessHandle>| {
            let put = api::PutTurnsRequest {
                turns: raw.clone(),
                wait_ms: Some(wait_ms(wait_seconds)),
                ..api::PutTurnsRequest::default()
            };
            async move { opened.access.put(&offer.who, put).await }
        };
        let written = self.memory.with(put).await?;
        let api::PutTurnsResponse { after, reflected: included, forgotten, stale, .. } = written;
        json(&RememberOutput { bank, turns: ids, included, after, forgotten, stale })
    }

    /// Searches for a question.
    pub(super) async fn recall(
        &self,
        mut ask: QuestionInput,
        offer: &ClientScope,
    ) -> Result<ToolResult, ToolCallError> {
        let asked_tokens = ask.most_tokens;
        let id = |turns: &Vec<String>| turns.iter().map(|turn| api::short_id(turn)).collect::<Vec<_>>().join(" ");
        let (evidence, context) = loop {
            let evidence = self.evidence(ask.clone(), offer).await?;
            let context = with_ids(&evidence.context, !evidence.supported, evidence.context_turns.iter().map(id));
            // The ids come on top of what the memory counts.
            let most = asked_tokens.map_or(u64::MAX, u64::from);
            let (spent, with_ids) = (u64::from(evidence.tokens.spent), token_count::count_tokens(&context) as u64);
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
        let notice = evidence.notice.as_ref().map(|notice| notice.message.clone());
        let recalled = RecallOutput {
            bank: evidence.question.bank.clone(),
            context,
            supported: evidence.supported,
            sufficiency: evidence.sufficiency,
            units: evidence.units.len(),
            metadata: evidence.question.metadata.then(|| metadata_by_turn(&evidence)),
            reflects: evidence.reflects,
            forgotten: evidence.forgotten,
            notice,
        };
        Ok(ToolResult { text, ..json(&recalled)? })
    }

    async fn answer(&self, ask: QuestionInput, offer: &ClientScope) -> Result<ToolResult, ToolCallError> {
        if self.language_model.is_none() {
            return Err(refused(format!("{}; or use recall and answer from its text", LlmError::NotConfigured)));
        }
        let ask = question(ask, offer)?;
        let answer = |opened: Arc<AccessHandle>| {
            let ask = ask.clone();
            async move { opened.access.answer(&offer.who, ask, self.answer_time).await }
        };
        let api::EvidenceWithAnswer { evidence, answer } = self.memory.with(answer).await?;
        json(&AnswerToolOutput {
            bank: evidence.question.bank.clone(),
            answer,
            supported: evidence.supported,
            sufficiency: evidence.sufficiency,
            reflects: evidence.reflects.clone(),
            notice: evidence.notice.as_ref().map(|notice| notice.message.clone()),
        })
    }

    /// Why a turn is recalled or not.
    async fn explain(&self, asked: ExplainInput, offer: &ClientScope) -> Result<ToolResult, ToolCallError> {
        let ExplainInput { question, turn, bank, asked_at, asker, most_tokens, select, as_of } = asked;
        let (bank, asker, select) = (offer.bank(bank)?, non_empty(asker), selector(select)?);
        let question = Question { asked_at, asker, most_tokens, select, ..Question::new(bank, question) };
        let subject = ExplanationQuery { id: SubjectId::Turn(turn), part: None, every_part: false };
        let explain = api::ExplainRequest { as_of: non_empty(as_of), ..api::ExplainRequest::of(question, subject) };
        let explain = |opened: Arc<AccessHandle>| {
            let explain = explain.clone();
            async move { opened.access.explain(&offer.who, explain).await }
        };
        let Explanation { bank, subject, quoted, failed, sentence, change, steps, .. } =
            self.memory.with(explain).await?;
        let step = |ExplanationStep { step, state, sentence, .. }: ExplanationStep| ExplainOutputStep {
            step,
            state,
            sentence,
        };
        json(&ExplainOutput {
            bank,
            turn: subject.and_then(|subject| subject.turn),
            quoted,
            failed,
            sentence,
            change,
            steps: steps.into_iter().map(step).collect(),
        })
    }

    /// What persons said that lasts.
    async fn profile(&self, asked: ProfileInput, offer: &ClientScope) -> Result<ToolResult, ToolCallError> {
        let ProfileInput { bank, person, past, begin, select, most_tokens } = asked;
        let show = api::ProfileRequest {
            person: non_empty(person),
            past: past.unwrap_or_default(),
            begin: begin.unwrap_or_default(),
            select: selector(select)?,
            most_tokens,
            ..api::ProfileRequest::of(offer.bank(bank)?)
        };
        self.profile_of(show, offer).await
    }

    /// A profile, as the tool and the resource give it.
    pub(super) async fn profile_of(
        &self,
        show: api::ProfileRequest,
        offer: &ClientScope,
    ) -> Result<ToolResult, ToolCallError> {
        let show = |opened: Arc<AccessHandle>| {
            let show = show.clone();
            async move { opened.access.profile(&offer.who, show).await }
        };
        let Profile { bank, lines, text, left_out, reflects, .. } = self.memory.with(show).await?;
        let turns = lines.into_iter().filter_map(|mut line| line.turns.pop()).collect();
        json(&ProfileOutput { bank, text, turns, left_out, reflects })
    }

    /// The latest turns of a bank.
    async fn list(&self, asked: ListInput, offer: &ClientScope) -> Result<ToolResult, ToolCallError> {
        let ListInput { bank, speaker, mentions, since, until, select, limit } = asked;
        let limit = limit.unwrap_or(LISTED);
        if !(1..=MAX_LISTED).contains(&limit) {
            return Err(refused(format!("limit: {limit}; allowed is 1 to {MAX_LISTED}")));
        }
        let (speakers, mentions) = (speaker.into_iter().collect(), mentions.into_iter().collect());
        let fields = Selector { speakers, mentions, since, until, ..Selector::default() };
        let select = joined(fields, select)?;
        let (bank, turns, order, before) = (offer.bank(bank)?, Vec::new(), api::ListOrder::Latest, None);
        let list = api::TurnListRequest { bank, turns, select, order, before, limit: Some(limit) };
        let api::TurnList { bank, turns, more, .. } = self.turns(offer, list).await?;
        json(&ListOutput { bank, turns: turns.into_iter().map(turn_output).collect(), more })
    }

    /// A turn in full.
    async fn show(
        &self,
        ShowInput { turn, bank, from, metadata }: ShowInput,
        offer: &ClientScope,
    ) -> Result<ToolResult, ToolCallError> {
        let (bank, limit) = (offer.bank(bank)?, Some(MAX_LISTED));
        let (turns, select, order, before) = (vec![turn.clone()], Selector::default(), api::ListOrder::Latest, None);
        let list = api::TurnListRequest { bank, turns, select, order, before, limit };
        let api::TurnList { bank, turns, .. } = self.turns(offer, list).await?;
        let found = match turns.as_slice() {
            [found] => found.clone(),
            [] => {
                return Err(refused(format!("turn: bank {bank} holds no turn {turn:?}; recall and list show ids")));
            }
            several => {
                return Err(refused(api::ambiguous_id_problem(&turn, several.iter().map(|held| held.turn.as_str()))));
            }
        };
        let (from, count) = (from.unwrap_or_default(), found.text.chars().count());
        let text = found.text.chars().skip(from).take(SHOWN).collect();
        let next = Some(from.saturating_add(SHOWN)).filter(|next| *next < count);
        let api::TurnView { turn, speaker, time, session, metadata: kept, .. } = found;
        let metadata = kept.filter(|_| metadata.unwrap_or_default());
        json(&ShowOutput { bank, turn, speaker, time, session, text, next, metadata })
    }

    async fn turns(&self, offer: &ClientScope, list: api::TurnListRequest) -> Result<api::TurnList, ToolCallError> {
        let list = |opened: Arc<AccessHandle>| {
            let list = list.clone();
            async move { opened.access.list(&offer.who, list).await }
        };
        self.memory.with(list).await
    }

    async fn forget(
        &self,
        ForgetInput { turn, bank, wait_seconds }: ForgetInput,
        offer: &ClientScope,
    ) -> Result<ToolResult, ToolCallError> {
        let bank = offer.bank(bank)?;
        let forget = api::ForgetRequest { bank, turn, wait_ms: Some(wait_ms(wait_seconds)), expected_version: None };
        let forget = |opened: Arc<AccessHandle>| {
            let forget = forget.clone();
            async move { opened.access.forget(&offer.who, forget).await }
        };
        let api::ForgetResponse { bank, turn, held, after, gone, .. } = self.memory.with(forget).await?;
        json(&ForgetOutput { bank, turn, held, included: gone, after })
    }

    /// Says which turns the call selects; with `confirm`, deletes them.
    async fn forget_turns(&self, asked: ForgetTurnsInput, offer: &ClientScope) -> Result<ToolResult, ToolCallError> {
        let ForgetTurnsInput { bank, speaker, since, until, session, mentions, select, confirm, wait_seconds } = asked;
        let (speakers, mentions) = (speaker.into_iter().collect(), mentions.into_iter().collect());
        let fields = Selector { speakers, since, until, session, mentions, ..Selector::default() };
        let select = joined(fields, select)?;
        let (bank, dry_run) = (offer.bank(bank)?, confirm.is_none());
        let wait_ms = Some(wait_ms(wait_seconds));
        let forget = api::ForgetTurnsRequest { bank, select, confirm, unheld: false, dry_run, wait_ms };
        let forget = |opened: Arc<AccessHandle>| {
            let forget = forget.clone();
            async move { opened.access.forget_turns(&offer.who, forget).await }
        };
        let api::ForgetTurnsResponse { bank, turns, dead_letters, shown, confirm, after, gone, .. } =
            self.memory.with(forget).await?;
        let shown = shown.into_iter().map(turn_output).collect();
        let rejected = Some(dead_letters).filter(|letters| *letters > 0);
        json(&ForgetTurnsOutput { bank, count: turns, rejected, turns: shown, confirm, included: gone, after })
    }

    async fn status(
        &self,
        StatusInput { bank }: StatusInput,
        offer: &ClientScope,
    ) -> Result<ToolResult, ToolCallError> {
        let status = |opened: Arc<AccessHandle>| async move {
            Ok((opened.access.status(&offer.who).await?, opened.access.banks(&offer.who).await?))
        };
        let (status, mut banks) = self.memory.with(status).await?;
        let counts = match bank {
            Some(bank) => Some(self.counts(&offer.who, bank).await?),
            None => None,
        };
        let bank_count = banks.len();
        banks.truncate(MAX_BANKS);
        json(&StatusOutput {
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
    pub(super) async fn counts(&self, who: &Caller, bank: Bank) -> Result<BankSize, ToolCallError> {
        let counted = |opened: Arc<AccessHandle>| {
            let bank = bank.clone();
            async move { opened.access.bank(who, bank).await }
        };
        let counted = self.memory.with(counted).await?;
        Ok(BankSize { bank, units: counted.units, edges: counted.semantic_edges + counted.structural_edges })
    }

    /// The banks that hold something.
    pub(super) async fn banks(&self, who: &Caller) -> Result<Vec<Bank>, ToolCallError> {
        self.memory.with(|opened: Arc<AccessHandle>| async move { opened.access.banks(who).await }).await
    }

    async fn evidence(&self, ask: QuestionInput, offer: &ClientScope) -> Result<Evidence, ToolCallError> {
        let ask = question(ask, offer)?;
        let evidence = |opened: Arc<AccessHandle>| {
            let ask = ask.clone();
            async move { opened.access.ask(&offer.who, ask).await }
        };
        self.memory.with(evidence).await
    }
}

/// The question of a call.
fn question(ask: QuestionInput, offer: &ClientScope) -> Result<api::AskRequest, ToolCallError> {
    let QuestionInput { question, bank, asked_at, asker, said_before, most_tokens, select, metadata, .. } = ask;
    let QuestionInput { after, as_of, .. } = ask;
    let (select, metadata) = (selector(select)?, metadata.unwrap_or_default());
    let (bank, asker, after, as_of) = (offer.bank(bank)?, non_empty(asker), non_empty(after), non_empty(as_of));
    let said = |text: String| PrecedingTurn { speaker: "conversation".to_owned(), text };
    let said_before = non_empty(said_before).map(said).into_iter().collect();
    let question =
        Question { asked_at, asker, said_before, most_tokens, select, metadata, ..Question::new(bank, question) };
    Ok(api::AskRequest { after, as_of, ..api::AskRequest::of(question) })
}

/// The metadata of the turns that an answer quotes.
fn metadata_by_turn(evidence: &Evidence) -> BTreeMap<String, Metadata> {
    let excerpts = evidence.units.iter().flat_map(|unit| &unit.excerpts);
    excerpts.filter_map(|excerpt| Some((excerpt.turn.clone(), excerpt.metadata.clone()?))).collect()
}

/// The selector that a client wrote.
fn selector(select: Option<JsonObject>) -> Result<Option<Selector>, ToolCallError> {
    let wrong = |problem| refused(format!("where: {problem}"));
    select.map(|select| serde_json::from_value(Value::Object(select)).map_err(wrong)).transpose()
}

/// A selector with the fields of a tool that are set: each is named once, in the selector or beside it.
fn joined(fields: Selector, select: Option<JsonObject>) -> Result<Selector, ToolCallError> {
    let Some(select) = selector(select)?.filter(|select| !select.is_empty()) else { return Ok(fields) };
    if fields.is_empty() {
        return Ok(select);
    }
    Err(refused("where: other fields name turns, too; write all of them into where, or leave it out"))
}

/// What a client wrote; `None` for an empty text.
fn non_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

fn refused(why: impl Into<String>) -> ToolCallError {
    ToolCallError::Refused(why.into())
}

fn read<T: DeserializeOwned>(tool: ToolName, arguments: JsonObject) -> Result<T, ToolCallError> {
    let wrong = |e| refused(format!("arguments of {}: {e}; its input schema says what it takes", tool.as_str()));
    serde_json::from_value(Value::Object(arguments)).map_err(wrong)
}

fn json(value: &impl Serialize) -> Result<ToolResult, ToolCallError> {
    let structured = serde_json::to_value(value).map_err(|e| refused(format!("the result is not JSON: {e}")))?;
    Ok(ToolResult { text: structured.to_string(), structured })
}

fn wait_ms(seconds: Option<u64>) -> u64 {
    1_000 * seconds.unwrap_or(WAIT_SECONDS).min(MAX_WAIT_SECONDS)
}

/// Turns, each with a time and an id. A generated id depends only on speaker, time, session and text, so repeating a
/// call with the same times stores nothing twice. The same turn twice in one call gets two ids.
fn with_turn_ids(bank: &Bank, said: Vec<TurnInput>) -> Result<Vec<Turn>, ToolCallError> {
    let now = now()?;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let turn = |TurnInput { speaker, text, time, turn, session, kind, metadata, recall }: TurnInput| {
        let time = time.unwrap_or(now);
        let unknown = |kind: &String| refused(format!("kind: {kind:?}; allowed are person, assistant, tool and bot"));
        let kind = kind.map(|kind| SpeakerKind::of_role(&kind).ok_or_else(|| unknown(&kind))).transpose()?;
        let id = turn.unwrap_or_else(|| {
            let id = new_turn_id(&speaker, &text, time, session.as_deref());
            let times = seen.entry(id.clone()).or_default();
            *times += 1;
            if *times == 1 { id } else { format!("{id}-{times}") }
        });
        let (metadata, recall) = (metadata.map(Metadata::from), recall.unwrap_or(true));
        Ok(Turn { session, kind, metadata, recall, ..Turn::new(bank.clone(), &id, &speaker, &text, time) })
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

fn now() -> Result<EventTime, ToolCallError> {
    let now = jiff::Zoned::now();
    let time = EventTime::new(now.timestamp().as_millisecond(), now.offset().seconds());
    time.map_err(|e| refused(format!("the clock of this machine: {e}; give each turn its time")))
}

fn new_turn_id(speaker: &str, text: &str, time: EventTime, session: Option<&str>) -> String {
    let mut hash = blake3::Hasher::new();
    for field in [speaker, &time.to_string(), session.unwrap_or_default(), text] {
        hash.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
    }
    format!("mcp-{}", &hash.finalize().to_hex()[..20])
}
