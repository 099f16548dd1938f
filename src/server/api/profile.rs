//! What holds of the persons of a bank.
//!
//! In: a bank that the caller may read, a person, kinds, a point of the past, and the most tokens. Out: the lines of a
//! profile with their turns, as JSON and as text. The clock only says which plans are open.

use std::sync::Arc;

use super::{memory_api::MemoryApi, past_point::past_point, problem::ApiProblem, read_limiters::ReadScope};
use crate::access::{AccessRight, Caller};
use memory::recall::{ProfileChoice, ProfilePage, profile_page};
use types::model::{Bank, EventTime, Profile, StatementKind};

/// Most tokens of a profile, where the request does not say, and at most.
const DEFAULT_TOKENS: u32 = 1_000;
const MAX_TOKENS: u32 = 200_000;

/// Whose profile is asked for.
#[derive(Debug, Clone)]
pub struct ProfileRequest {
    /// The bank.
    pub bank: Bank,
    /// A speaker of the bank; without it, all.
    pub person: Option<String>,
    /// Only these kinds; all if there are none.
    pub kinds: Vec<StatementKind>,
    /// Whether superseded lines and past plans are shown, too.
    pub past: bool,
    /// The profile as it was: an offset of the bank's partition of the memory log, or a time of appending in RFC 3339.
    pub as_of: Option<String>,
    /// Most tokens of the text; 1,000 without it.
    pub most_tokens: Option<u32>,
}

impl MemoryApi {
    /// What holds of the persons of a bank.
    ///
    /// # Errors
    /// [`ApiProblem`]: an unknown bank, too many tokens, or a past that is not kept.
    pub async fn profile(&self, who: &Caller, show: ProfileRequest) -> Result<Profile, ApiProblem> {
        let ProfileRequest { bank, person, kinds, past, as_of, most_tokens } = show;
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        let most_tokens = most_tokens.unwrap_or(DEFAULT_TOKENS);
        if !(1..=MAX_TOKENS).contains(&most_tokens) {
            let problem = format!("most_tokens: {most_tokens} is out of range; allowed is 1 to {MAX_TOKENS}");
            return Err(ApiProblem::invalid(problem));
        }
        let at = as_of.map(|text| past_point("as_of", &text)).transpose()?;
        let now = EventTime::new(jiff::Timestamp::now().as_millisecond(), 0)
            .map_err(|e| ApiProblem::invalid(e.to_string()))?;
        let choice = ProfileChoice { kinds, past, now, most_tokens: most_tokens as usize };
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        let reads = if at.is_some() { ReadScope::AllOfIt } else { ReadScope::Little };
        self.read(who, &bank, reads, move |_| {
            let replica = match at {
                Some(at) => memory.replica().past(&of, at)?,
                None => Arc::clone(memory.replica()),
            };
            let found = replica.profile(&of, person.as_deref())?;
            let ProfilePage { lines, text, tokens, left_out } = profile_page(&found.value, &choice);
            let (tokens, left_out) = (tokens as u32, left_out as u32);
            Ok(Profile { bank: of, person, lines, text, tokens, left_out, reflects: found.reflects })
        })
        .await
    }
}
