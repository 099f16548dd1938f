//! The turns of a bank, for interfaces that list them.
//!
//! In: banks and ids, the right that the caller's request needs, and who sends it. Out: turns as the memory
//! holds them, of banks that the caller reaches. Nothing is written here. Only a log in a directory lists turns.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocking::blocking,
    calls::Api,
    problem::Problem,
    short_ids::{short_id, turns_meant, unlisted},
};
use crate::access::{Caller, Right};
use nouns::model::{Bank, EventTime, SpeakerKind};
use ripplemem::{
    log::Written,
    pipeline::{HeldTurn, TurnVersion},
};

/// Turns of a list, where the request does not say.
const LISTED: usize = 20;
/// Most turns of a list.
const MOST_LISTED: usize = 1_000;

/// Turns of a bank, the latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    /// The bank.
    pub bank: Bank,
    /// The turns.
    pub turns: Vec<TurnView>,
    /// Turns that fit the request and are not listed.
    pub more: u64,
}

/// A turn as the memory holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnView {
    /// Its id.
    pub turn: String,
    /// A short form of the id, which may stand for it.
    pub short: String,
    /// Who said it.
    pub speaker: String,
    /// What the speaker is, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<SpeakerKind>,
    /// When it was said.
    pub time: EventTime,
    /// The conversation that it belongs to, where it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What was said, as last edited.
    pub text: String,
}

impl TurnView {
    fn of(held: &HeldTurn) -> Self {
        let turn = &*held.turn;
        Self {
            turn: turn.turn.clone(),
            short: short_id(&turn.turn).into_owned(),
            speaker: turn.speaker.clone(),
            kind: turn.speaker_kind(),
            time: turn.time,
            session: turn.session.clone(),
            text: turn.text.clone(),
        }
    }
}

impl Api {
    /// The banks that hold something, pass, and are reached by the caller, who needs the right in `asked`.
    ///
    /// # Errors
    /// [`Problem`] without the right in `asked`.
    pub(crate) fn banks_where(
        &self,
        who: &Caller,
        right: Right,
        asked: &Bank,
        passes: &dyn Fn(&Bank) -> bool,
    ) -> Result<Vec<Bank>, Problem> {
        who.may_in(right, asked)?;
        Ok(self.memory.banks_where(&|bank| passes(bank) && who.reaches(bank)))
    }

    /// The turns of a bank, the latest first: at most `limit`, and with `turn` those that the id or short id means.
    ///
    /// # Errors
    /// [`Problem`] for a wrong limit, or where the log does not list turns.
    pub async fn list(
        &self,
        who: &Caller,
        bank: Bank,
        turn: Option<String>,
        limit: Option<usize>,
    ) -> Result<Turns, Problem> {
        let limit = limit.unwrap_or(LISTED);
        if !(1..=MOST_LISTED).contains(&limit) {
            return Err(Problem::invalid(format!("limit: {limit}; allowed is 1 to {MOST_LISTED}")));
        }
        who.may_in(Right::Read, &bank)?;
        self.check_here(&bank)?;
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        let held = blocking(move || {
            let held = match &turn {
                None => memory.turns(&of, &|_| true),
                Some(turn) => turns_meant(&memory, &of, turn),
            };
            held.map_err(unlisted)
        });
        let held = held.await?;
        let more = held.len().saturating_sub(limit) as u64;
        Ok(Turns { bank, turns: held.iter().rev().take(limit).map(TurnView::of).collect(), more })
    }

    /// Whether turns can be listed, so that short ids can be read.
    pub(crate) fn lists_turns(&self) -> bool {
        self.memory.lists_turns()
    }

    /// The turns of a bank by time, each as last edited; with `only`, the one with this id.
    ///
    /// # Errors
    /// [`Problem`] without the right in the bank, or where the log failed.
    pub(crate) async fn turns(
        &self,
        who: &Caller,
        right: Right,
        bank: &Bank,
        only: Option<String>,
    ) -> Result<Vec<HeldTurn>, Problem> {
        who.may_in(right, bank)?;
        let (memory, bank) = (Arc::clone(&self.memory), bank.clone());
        blocking(move || match only {
            Some(turn) => Ok(memory.turn(&bank, &turn)?.into_iter().collect()),
            None => Ok(memory.turns(&bank, &|_| true)?),
        })
        .await
    }

    /// When the versions at these offsets were appended, in milliseconds since 1970.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub(crate) async fn append_ms(
        &self,
        who: &Caller,
        right: Right,
        versions: Vec<(Bank, u64)>,
    ) -> Result<Vec<Option<i64>>, Problem> {
        versions.iter().try_for_each(|(bank, _)| who.may_in(right, bank))?;
        let memory = Arc::clone(&self.memory);
        blocking(move || {
            let each = versions.iter().map(|(bank, offset)| memory.append_ms(bank, *offset));
            Ok(each.collect::<Result<Vec<_>, _>>()?)
        })
        .await
    }

    /// The versions of a turn that the memory holds, oldest first.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub(crate) async fn versions(&self, who: &Caller, bank: &Bank, turn: &str) -> Result<Vec<TurnVersion>, Problem> {
        who.may_in(Right::Read, bank)?;
        let (memory, bank, turn) = (Arc::clone(&self.memory), bank.clone(), turn.to_owned());
        blocking(move || Ok(memory.versions(&bank, &turn)?)).await
    }

    /// Waits until lists and answers reflect every turn of these banks that is durable now.
    ///
    /// # Errors
    /// [`Problem`] where the time was too short.
    pub(crate) async fn caught_up(&self, banks: &[Bank], wait: Duration) -> Result<(), Problem> {
        let memory = Arc::clone(&self.memory);
        let end = blocking(move || Ok(memory.end()?)).await?;
        let mut awaited = Written::nothing(self.memory.partitions());
        banks.iter().filter_map(|bank| end.of(bank)).for_each(|(partition, next)| awaited.extend(partition, next));
        if self.reflects(&awaited, wait).await {
            return Ok(());
        }
        Err(self.late("turns that are durable are not extracted yet; ask again in a moment"))
    }
}
