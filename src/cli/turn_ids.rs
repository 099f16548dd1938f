//! Whole ids of turns, for commands that take an id or a short one.
//!
//! In: what the user gave, and the turns that it may mean, from the log or from the process that has it open. Out: the
//! whole id. A short id of several turns is refused with a name for each of them, as over HTTP.

use anyhow::{Result, bail};
use logs::Log;
use pipeline::stored_turns;
use server::{
    MemoryHttpClient,
    api::{self, ambiguous_id_problem, is_shortened, matches_id},
};
use types::model::{Bank, Selector};

use super::turns::listed_on_kafka;

/// The whole id for an id or a short id, from the log of a memory that has caught up.
pub(super) fn whole_id(log: &dyn Log, bank: &Bank, asked: String) -> Result<String> {
    if !is_shortened(&asked) {
        return Ok(asked);
    }
    let held = stored_turns(log, bank, &|id| matches_id(&asked, id), usize::MAX)?;
    only_one(bank, &asked, held.into_iter().map(|held| held.turn.turn.clone()).collect())
}

/// The same on Kafka, once the services have extracted all that is durable.
pub(super) fn whole_id_on_kafka(log: &dyn Log, bank: &Bank, asked: String) -> Result<String> {
    if !is_shortened(&asked) {
        return Ok(asked);
    }
    let held = listed_on_kafka(log, bank, &Selector::default())?.into_iter();
    let ids = held.map(|held| held.turn.turn.clone()).filter(|id| matches_id(&asked, id)).collect();
    only_one(bank, &asked, ids)
}

/// The same, from the process that has the memory open.
pub(super) fn whole_id_there(reached: &MemoryHttpClient, bank: &Bank, asked: String) -> Result<String> {
    if !is_shortened(&asked) {
        return Ok(asked);
    }
    let of = [("bank", Some(bank.as_str())), ("turn", Some(asked.as_str()))];
    let api::TurnList { turns, .. } = reached.get("/v1/turns", &of)?;
    only_one(bank, &asked, turns.into_iter().map(|turn| turn.turn).collect())
}

fn only_one(bank: &Bank, asked: &str, mut ids: Vec<String>) -> Result<String> {
    match (ids.pop(), ids.is_empty()) {
        (Some(id), true) => Ok(id),
        (None, _) => bail!(
            "turn: {asked:?} is a short id, and bank {bank} holds no turn that it means; list its turns, or give the \
             whole id"
        ),
        (Some(last), false) => {
            bail!(ambiguous_id_problem(asked, ids.iter().map(String::as_str).chain([last.as_str()])))
        }
    }
}
