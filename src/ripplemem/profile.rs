//! What persons of a bank said that lasts, as clients get it.
//!
//! In: a memory of the present or of the past, its log, and what is asked for. Out: a [`Profile`]. A bank that holds
//! nothing has an empty one, since an agent asks before anything is stored. The same memory gives the same profile; the
//! moment only says which plans are open.

use std::collections::HashSet;

use super::{latest_sessions::latest_sessions, turn_locator::TurnLocator};
use logs::Log;
use memory::{
    index::lines_of_some,
    recall::{ProfileChoice, ProfilePage, profile_page},
};
use pipeline::{Cancellation, PipelineError};
use replica::Replica;
use types::model::{Bank, EventTime, Profile, Selector, StatementKind};

/// What of a bank is asked for.
#[derive(Debug, Clone)]
pub struct ProfileQuery {
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
    /// The most tokens of the text.
    pub most_tokens: usize,
    /// The moment after which a plan is open.
    pub now: EventTime,
}

/// A profile from a log without an open memory.
///
/// # Errors
/// [`PipelineError`] for a memory that is loading, if the log failed, or if no one waits any more.
pub fn profile_of(
    log: &dyn Log,
    replica: &Replica,
    query: &ProfileQuery,
    cancellation: &Cancellation,
) -> Result<Profile, PipelineError> {
    profile(&TurnLocator::default(), log, replica, query, cancellation)
}

pub(super) fn profile(
    places: &TurnLocator,
    log: &dyn Log,
    replica: &Replica,
    query: &ProfileQuery,
    cancellation: &Cancellation,
) -> Result<Profile, PipelineError> {
    let ProfileQuery { bank, person, kinds, past, begin, select, most_tokens, now } = query;
    let (mut lines, reflects) = match replica.profile(bank, person.as_deref()) {
        Ok(found) => (found.value, found.reflects),
        Err(PipelineError::UnknownBank { .. }) => (Vec::new(), replica.read_to(bank)),
        Err(error) => return Err(error),
    };
    if let Some(select) = select {
        let selection = select.compile().map_err(|problem| PipelineError::Select { problem })?;
        let ids: HashSet<&str> = lines.iter().flat_map(|line| line.turns()).collect();
        let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
        let held = places.by_ids(log, bank, &ids)?;
        let taken = held.iter().filter(|held| selection.takes(&held.turn));
        let taken: HashSet<&str> = taken.map(|held| held.turn.turn.as_str()).collect();
        lines = lines_of_some(&lines, |turn| taken.contains(turn));
    }
    let sessions = if *begin { latest_sessions(places, log, bank, select.as_ref(), cancellation)? } else { Vec::new() };
    let mut kinds = kinds.clone();
    if *begin && !kinds.is_empty() && !kinds.contains(&StatementKind::Plan) {
        kinds.push(StatementKind::Plan);
    }
    let choice = ProfileChoice { kinds, past: *past, now: *now, most_tokens: *most_tokens };
    let ProfilePage { lines, sessions, text, tokens, left_out } = profile_page(&lines, sessions, &choice);
    let hashed = blake3::hash(&serde_json::to_vec(&(&lines, &sessions, left_out)).unwrap_or_default());
    Ok(Profile {
        bank: bank.clone(),
        person: person.clone(),
        lines,
        sessions,
        text,
        tokens: tokens as u32,
        left_out: left_out as u32,
        version: hashed.to_hex().chars().take(16).collect(),
        reflects,
    })
}
