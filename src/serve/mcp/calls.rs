//! What each tool does.
//!
//! In: a tool's name and its arguments. Out: its result as JSON and as text, or the reason why there is
//! none. A turn without a time is of now, and one without an id gets one. Blocks.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use rmcp::model::JsonObject;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    access::{AskedOfMemory, ToolError},
    opened_memory::OpenedMemory,
    tools::{
        Answered, Ask, Forget, Forgotten, MAX_TURNS, Recalled, Remember, Remembered, Said, Status, StatusOf, ToolName,
    },
};
use crate::{
    model::{Bank, Deletion, EventTime, Question, Turn, TurnEvent},
    pipeline::Cancellation,
};

/// How long `remember` and `forget` wait until answers reflect them, where the call does not say.
const WAIT_SECONDS: u64 = 5;
/// The longest that they wait.
const MAX_WAIT_SECONDS: u64 = 60;
/// Most banks that `status` names.
const MAX_BANKS: usize = 100;

/// The tools on a memory.
pub(super) struct Calls {
    pub(super) memory: OpenedMemory,
    pub(super) default_bank: Option<Bank>,
    pub(super) read_only: bool,
    /// How long a question may take.
    pub(super) patience: Duration,
}

/// The result of a tool.
pub(super) struct CallResult {
    pub(super) structured: Value,
    /// The same for people and models.
    pub(super) text: String,
}

impl Calls {
    /// Whether a tool is offered.
    pub(super) fn offers(&self, tool: ToolName) -> bool {
        !(self.read_only && tool.writes())
    }

    /// A question's time, which its caller may end before.
    pub(super) fn cancellation(&self) -> Cancellation {
        Cancellation::at(Instant::now() + self.patience)
    }

    /// Calls a tool.
    pub(super) fn call(
        &self,
        tool: ToolName,
        arguments: JsonObject,
        cancellation: Cancellation,
    ) -> Result<CallResult, ToolError> {
        match tool {
            ToolName::Remember => self.remember(read(tool, arguments)?),
            ToolName::Recall => self.recall(read(tool, arguments)?, cancellation),
            ToolName::Answer => self.answer(read(tool, arguments)?, cancellation),
            ToolName::Evidence => self.evidence(read(tool, arguments)?, cancellation),
            ToolName::Forget => self.forget(read(tool, arguments)?),
            ToolName::Status => self.status(read(tool, arguments)?),
        }
    }

    fn remember(&self, Remember { turns, bank, wait_seconds }: Remember) -> Result<CallResult, ToolError> {
        if turns.is_empty() || turns.len() > MAX_TURNS {
            return Err(refused(format!("turns: {}; give 1 to {MAX_TURNS} at a time", turns.len())));
        }
        let bank = self.bank(bank)?;
        let turns = identified(&bank, turns)?;
        let ids = turns.iter().map(|turn| turn.turn.clone()).collect();
        let events: Vec<TurnEvent> = turns.into_iter().map(TurnEvent::Turn).collect();
        let stored = self.memory.get()?.put(events, wait(wait_seconds))?;
        json(&Remembered { bank, turns: ids, included: stored.included, after: stored.after })
    }

    fn recall(&self, ask: Ask, cancellation: Cancellation) -> Result<CallResult, ToolError> {
        let asked = self.asked(ask, cancellation)?;
        let evidence = self.memory.get()?.ask(asked)?;
        let text = match evidence.context.trim() {
            "" => "Nothing in memory supports this question.".to_owned(),
            _ => evidence.context.clone(),
        };
        let recalled = Recalled {
            bank: evidence.question.bank,
            context: evidence.context,
            supported: evidence.supported,
            sufficiency: evidence.sufficiency,
            units: evidence.units.len(),
            reflects: evidence.reflects,
        };
        Ok(CallResult { text, ..json(&recalled)? })
    }

    fn answer(&self, ask: Ask, cancellation: Cancellation) -> Result<CallResult, ToolError> {
        let asked = self.asked(ask, cancellation)?;
        let (evidence, answer) = self.memory.get()?.answer(asked)?;
        json(&Answered {
            bank: evidence.question.bank,
            answer,
            supported: evidence.supported,
            sufficiency: evidence.sufficiency,
            reflects: evidence.reflects,
        })
    }

    fn evidence(&self, ask: Ask, cancellation: Cancellation) -> Result<CallResult, ToolError> {
        let asked = self.asked(ask, cancellation)?;
        json(&self.memory.get()?.ask(asked)?)
    }

    fn forget(&self, Forget { turn, bank, wait_seconds }: Forget) -> Result<CallResult, ToolError> {
        let bank = self.bank(bank)?;
        let deletion = TurnEvent::Deletion(Deletion { bank: bank.clone(), turn: turn.clone(), version: u64::MAX });
        let stored = self.memory.get()?.put(vec![deletion], wait(wait_seconds))?;
        json(&Forgotten { bank, turn, included: stored.included, after: stored.after })
    }

    fn status(&self, StatusOf { bank }: StatusOf) -> Result<CallResult, ToolError> {
        let memory = self.memory.get()?;
        let (state, mut banks) = (memory.state()?, memory.banks()?);
        let counts = bank.map(|bank| memory.counts(&bank)).transpose()?;
        let bank_count = banks.len();
        banks.truncate(MAX_BANKS);
        json(&Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            default_bank: self.default_bank.clone(),
            read_only: self.read_only,
            language_model: state.language_model,
            bank_count,
            banks,
            counts,
            behind: state.behind,
            waiting_for_model: state.waiting_for_model,
            problem: state.problem,
        })
    }

    fn bank(&self, named: Option<Bank>) -> Result<Bank, ToolError> {
        named.or_else(|| self.default_bank.clone()).ok_or_else(|| {
            refused("bank: missing; name one, such as the user or the project, or start the server with --bank NAME")
        })
    }

    fn asked(&self, ask: Ask, cancellation: Cancellation) -> Result<AskedOfMemory, ToolError> {
        let Ask { question, bank, asked_at, after, as_of } = ask;
        let question = Question { bank: self.bank(bank)?, text: question, asked_at };
        Ok(AskedOfMemory { question, after, as_of, cancellation })
    }
}

fn refused(why: impl Into<String>) -> ToolError {
    ToolError(why.into())
}

fn read<T: DeserializeOwned>(tool: ToolName, arguments: JsonObject) -> Result<T, ToolError> {
    let wrong = |e| refused(format!("arguments of {}: {e}; its input schema says what it takes", tool.as_str()));
    serde_json::from_value(Value::Object(arguments)).map_err(wrong)
}

fn json(value: &impl Serialize) -> Result<CallResult, ToolError> {
    let structured = serde_json::to_value(value).map_err(|e| refused(format!("the result is not JSON: {e}")))?;
    Ok(CallResult { text: structured.to_string(), structured })
}

fn wait(seconds: Option<u64>) -> Duration {
    Duration::from_secs(seconds.unwrap_or(WAIT_SECONDS).min(MAX_WAIT_SECONDS))
}

/// Turns with a time and an id each. An id that is made depends on nothing but what was said, so that
/// a call that is repeated with its times stores nothing twice; the same words twice in one call are two turns.
fn identified(bank: &Bank, said: Vec<Said>) -> Result<Vec<Turn>, ToolError> {
    let now = now()?;
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let turn = |Said { speaker, text, time, turn, session }: Said| {
        let time = time.unwrap_or(now);
        let id = turn.unwrap_or_else(|| {
            let id = made_id(&speaker, &text, time, session.as_deref());
            let times = seen.entry(id.clone()).or_default();
            *times += 1;
            if *times == 1 { id } else { format!("{id}-{times}") }
        });
        Turn {
            bank: bank.clone(),
            turn: id,
            version: 0,
            speaker,
            text,
            time,
            session,
            thread: None,
            reply_to: None,
            attachments: Vec::new(),
        }
    };
    Ok(said.into_iter().map(turn).collect())
}

fn now() -> Result<EventTime, ToolError> {
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
