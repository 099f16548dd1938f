//! What holds of the persons of a bank.
//!
//! In: a bank that the caller may read, a person, kinds, turns, a point of the past, and the most tokens. Out: the lines
//! of a profile with their turns, as JSON and as text. The clock only says which plans are open.

use std::sync::Arc;

use super::{memory_api::MemoryApi, past_point::past_point, problem::ApiProblem, read_limiters::ReadScope};
use crate::access::{AccessRight, Caller};
use pipeline::Cancellation;
use ripplemem::ProfileQuery;
use types::model::{Bank, EventTime, Profile, Selector, StatementKind};

/// Most tokens of a profile, where the request does not say, and at most.
const DEFAULT_TOKENS: u32 = 1_000;
const MAX_TOKENS: u32 = 200_000;

/// Whose profile is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileRequest {
    /// The bank.
    pub bank: Bank,
    /// A speaker of the bank; without it, all.
    pub person: Option<String>,
    /// Only these kinds; all if there are none.
    pub kinds: Vec<StatementKind>,
    /// Whether superseded lines and past plans are shown, too.
    pub past: bool,
    /// Whether open plans, whatever the kinds, and the latest sessions are shown, for an agent that begins.
    pub begin: bool,
    /// Only what these turns say, as if nothing else had been said.
    pub select: Option<Selector>,
    /// The profile as it was: an offset of the bank's partition of the memory log, or a time of appending in RFC 3339.
    pub as_of: Option<String>,
    /// Most tokens of the text; 1,000 without it.
    pub most_tokens: Option<u32>,
}

impl ProfileRequest {
    /// All that holds of everybody in a bank.
    #[must_use]
    pub fn of(bank: Bank) -> Self {
        let (person, kinds, past, begin) = (None, Vec::new(), false, false);
        Self { bank, person, kinds, past, begin, select: None, as_of: None, most_tokens: None }
    }

    /// The parameters of `GET /v1/profile` that ask for the same.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static str, Option<String>)> {
        let Self { bank, person, kinds, past, begin, select, as_of, most_tokens } = self;
        let kinds = kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(",");
        let flag = |set: bool| set.then(|| "true".to_owned());
        vec![
            ("bank", Some(bank.to_string())),
            ("person", person.clone()),
            ("kinds", Some(kinds).filter(|kinds| !kinds.is_empty())),
            ("past", flag(*past)),
            ("begin", flag(*begin)),
            ("where", select.as_ref().and_then(|select| serde_json::to_string(select).ok())),
            ("as_of", as_of.clone()),
            ("most_tokens", most_tokens.map(|most| most.to_string())),
        ]
    }
}

impl MemoryApi {
    /// What holds of the persons of a bank.
    ///
    /// # Errors
    /// [`ApiProblem`]: too many tokens, a selector that is refused, or a past that is not kept.
    pub async fn profile(&self, who: &Caller, show: ProfileRequest) -> Result<Profile, ApiProblem> {
        let ProfileRequest { bank, person, kinds, past, begin, select, as_of, most_tokens } = show;
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        let most_tokens = most_tokens.unwrap_or(DEFAULT_TOKENS);
        if !(1..=MAX_TOKENS).contains(&most_tokens) {
            let problem = format!("most_tokens: {most_tokens} is out of range; allowed is 1 to {MAX_TOKENS}");
            return Err(ApiProblem::invalid(problem));
        }
        if begin && as_of.is_some() {
            return Err(ApiProblem::invalid("begin: is of the present; leave as_of out, or begin"));
        }
        if let Some(select) = &select {
            select.check().map_err(|problem| ApiProblem::invalid(format!("where.{problem}")))?;
        }
        let at = as_of.map(|text| past_point("as_of", &text)).transpose()?;
        let now = EventTime::new(jiff::Timestamp::now().as_millisecond(), 0)
            .map_err(|e| ApiProblem::invalid(e.to_string()))?;
        let memory = Arc::clone(&self.memory);
        let reads = if at.is_some() || select.is_some() { ReadScope::AllOfIt } else { ReadScope::Little };
        let (of, most_tokens) = (bank.clone(), most_tokens as usize);
        let query = ProfileQuery { bank, person, kinds, past, begin, select, most_tokens, now };
        self.read(who, &of, reads, move |cancellation: &Cancellation| {
            let replica = match at {
                Some(at) => memory.replica().past(&query.bank, at)?,
                None => Arc::clone(memory.replica()),
            };
            Ok(memory.profile(&replica, &query, cancellation)?)
        })
        .await
    }
}
