//! The sessions of a bank, with their titles.
//!
//! In: a bank, and which names. Out: its sessions by name, each with its turns and times; or a title that is durable.
//! A session is what turns name as such. It is forgotten by its turns, with `/v1/forget`, and its title goes with them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocking_work::blocking,
    memory_api::{MemoryApi, wait},
    problem::{ApiProblem, wrong_id},
    read_limiters::ReadScope,
};
use crate::access::{AccessRight, Caller};
use pipeline::Cancellation;
use ripplemem::{SessionSpan, TurnSpan};
use types::model::{Bank, EventTime, SessionTitle, TurnEvent};

/// Sessions that are listed without `limit`.
const LISTED: usize = 100;
/// Most sessions of one list.
const MAX_LISTED: usize = 1_000;

/// Which sessions of a bank to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionListRequest {
    /// The bank.
    pub bank: Bank,
    /// Only those whose names begin with this.
    pub prefix: Option<String>,
    /// Where the list goes on.
    pub from: Option<String>,
    /// Most sessions.
    pub limit: Option<usize>,
}

/// Sessions of a bank, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Sessions")]
pub struct SessionList {
    /// The bank.
    pub bank: Bank,
    /// The sessions.
    pub sessions: Vec<SessionView>,
    /// Where the list goes on, as `from`; absent at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Session")]
pub struct SessionView {
    /// Its name, as its turns have it.
    pub session: String,
    /// Its title, if one was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How many turns it has; 0 if it has only a title.
    pub turns: u64,
    /// When its first turn was said; absent without turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<EventTime>,
    /// When its last turn was said; absent without turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<EventTime>,
}

/// A title for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NameSession")]
pub struct NameSessionRequest {
    /// The bank.
    pub bank: Bank,
    /// The session, as its turns name it; it need not have turns yet.
    pub session: String,
    /// The title, at most 1,024 bytes; empty removes it.
    #[schemars(length(max = 1_024))]
    pub title: String,
    /// Most milliseconds to wait until lists have it; 10,000 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 600_000))]
    pub wait_ms: Option<u64>,
}

/// A title is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NamedSession")]
pub struct NameSessionResponse {
    /// The bank.
    pub bank: Bank,
    /// The session.
    pub session: String,
    /// Where the title lies, as in `WrittenTurns`.
    pub after: String,
    /// Whether lists have it already.
    pub reflected: bool,
}

impl SessionView {
    /// The form of a session of a bank.
    #[must_use]
    pub fn of(SessionSpan { session, title, turns }: SessionSpan) -> Self {
        let (turns, first, last) = match turns {
            Some(TurnSpan { count, first, last }) => (count as u64, Some(first), Some(last)),
            None => (0, None, None),
        };
        Self { session, title, turns, first, last }
    }
}

impl MemoryApi {
    /// The sessions of a bank, by name.
    ///
    /// # Errors
    /// [`ApiProblem`] for a wrong field, without the right to read, or if the log failed.
    pub async fn sessions(&self, who: &Caller, list: SessionListRequest) -> Result<SessionList, ApiProblem> {
        let SessionListRequest { bank, prefix, from, limit } = list;
        let limit = limit.unwrap_or(LISTED);
        if !(1..=MAX_LISTED).contains(&limit) {
            return Err(ApiProblem::invalid(format!("limit: {limit}; allowed is 1 to {MAX_LISTED}")));
        }
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        let (prefix, from) = (prefix.unwrap_or_default(), from.unwrap_or_default());
        let found = move |_: &Cancellation| Ok(memory.sessions(&of, &prefix, &from, limit + 1)?);
        let mut found = self.read(who, &bank, ReadScope::Little, found).await?;
        let next = (found.len() > limit).then(|| found.pop()).flatten().map(|session| session.session);
        Ok(SessionList { bank, sessions: found.into_iter().map(SessionView::of).collect(), next })
    }

    /// Sets the title of a session. Returns once it is durable and, within `wait_ms`, in lists.
    ///
    /// # Errors
    /// [`ApiProblem`] for a wrong field, without the right to write, or if the log failed.
    pub async fn name_session(
        &self,
        who: &Caller,
        name: NameSessionRequest,
    ) -> Result<NameSessionResponse, ApiProblem> {
        let NameSessionRequest { bank, session, title, wait_ms } = name;
        who.may_in(AccessRight::Write, &bank)?;
        let (wait, memory) = (wait(wait_ms)?, Arc::clone(&self.memory));
        let event = SessionTitle { bank: bank.clone(), session: session.clone(), title };
        let written = blocking(move || memory.put([TurnEvent::SessionTitle(event)]).map_err(wrong_id)).await?;
        let reflected = self.reflects(&written, wait).await;
        Ok(NameSessionResponse { bank, session, after: written.to_string(), reflected })
    }
}
