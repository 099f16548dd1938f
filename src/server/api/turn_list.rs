//! The turns of a bank, for interfaces that list them.
//!
//! In: banks and ids, the caller, and the right that the request needs. Out: turns as the memory holds them, from banks
//! that the caller reaches. Nothing is written here.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocking_work::blocking,
    memory_api::MemoryApi,
    problem::ApiProblem,
    read_limiters::ReadScope,
    short_ids::{short_id, turns_by_any_ids},
};
use crate::access::{AccessRight, Caller};
use pipeline::{Cancellation, StoredTurn, TurnVersion};
use ripplemem::{TurnPage, TurnPageRequest, TurnSpan};
use types::model::{Attachment, Bank, EventTime, Metadata, Selector, SpeakerKind};

/// Turns of a list if the request does not say.
const LISTED: usize = 20;
/// Most turns of a list.
const MAX_LISTED: usize = 1_000;

/// Which turns of a bank are listed.
#[derive(Debug, Clone)]
pub struct TurnListRequest {
    /// The bank.
    pub bank: Bank,
    /// Only the turns that these ids or short ids mean; all without any.
    pub turns: Vec<String>,
    /// Only the turns that it takes; an empty selector takes all.
    pub select: Selector,
    /// In which order.
    pub order: ListOrder,
    /// Only the turns beyond the place that an earlier list of this order gave as `next`.
    pub before: Option<String>,
    /// Most turns; 20 without it.
    pub limit: Option<usize>,
}

/// The order of a list of turns, by the time at which they were said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Order")]
pub enum ListOrder {
    /// The latest first.
    #[default]
    Latest,
    /// The oldest first.
    Oldest,
}

/// The turns of a bank that a selector takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListTurns")]
pub struct SelectTurnsRequest {
    /// The bank.
    pub bank: Bank,
    /// The turns; all without it.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub select: Option<Selector>,
    /// In which order: the latest first without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<ListOrder>,
    /// Most turns; 20 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: Option<usize>,
    /// Where the list goes on: the `next` of an earlier one with the same `where` and `order`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
}

/// Turns of a bank, in the order of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Turns")]
pub struct TurnList {
    /// The bank.
    pub bank: Bank,
    /// The turns.
    pub turns: Vec<TurnView>,
    /// Turns that fit the request and are not listed, beyond `next`.
    pub more: u64,
    /// Where the list goes on: the `before` of another request; absent at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
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
    /// The thread that it belongs to, where it names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The id of the turn that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// What was said, as last edited.
    pub text: String,
    /// What was attached to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Its version; absent in a list of an earlier service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// What a program keeps beside the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// False where it is not to be recalled; absent where it is.
    #[serde(default = "is_recalled", skip_serializing_if = "Clone::clone")]
    #[schemars(with = "Option<bool>")]
    pub recall: bool,
    /// When this version was stored, in milliseconds since 1970. Absent for turns that an earlier build recorded, if the
    /// turns topic no longer has the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_ms: Option<i64>,
    /// When its first version was stored. Absent for turns that an earlier build recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_stored_ms: Option<i64>,
}

fn is_recalled() -> bool {
    true
}

impl TurnView {
    /// The JSON form of a stored turn.
    #[must_use]
    pub fn of(held: &StoredTurn) -> Self {
        let turn = &*held.turn;
        Self {
            turn: turn.turn.clone(),
            short: short_id(&turn.turn).into_owned(),
            speaker: turn.speaker.clone(),
            kind: turn.speaker_kind(),
            time: turn.time,
            session: turn.session.clone(),
            thread: turn.thread.clone(),
            reply_to: turn.reply_to.clone(),
            text: turn.text.clone(),
            attachments: turn.attachments.clone(),
            version: Some(turn.version),
            metadata: turn.metadata.clone(),
            recall: turn.recall,
            stored_ms: held.stored.map(|stored| stored.ms),
            first_stored_ms: held.stored.map(|stored| stored.first_ms),
        }
    }
}

/// A position in a bank's list of turns: the last turn that was listed.
#[derive(Debug, PartialEq, Eq)]
struct TurnCursor {
    said_ms: i64,
    turn: String,
}

impl TurnCursor {
    fn of(held: &StoredTurn) -> Self {
        Self { said_ms: held.turn.time.unix_ms, turn: held.turn.turn.clone() }
    }

    fn parse(text: &str) -> Result<Self, ApiProblem> {
        let parsed = text.split_once(':').and_then(|(said_ms, turn)| Some((said_ms.parse().ok()?, turn.to_owned())));
        let (said_ms, turn) = parsed
            .ok_or_else(|| ApiProblem::invalid(format!("before: {text:?}; send the `next` of an earlier list")))?;
        Ok(Self { said_ms, turn })
    }

    /// Keeps only the turns beyond this position, by time: before it, or after it in the order of the oldest first. If
    /// its turn was deleted or has another time by now, turns with the same time are listed again rather than left out.
    fn cut(&self, held: &mut Vec<StoredTurn>, order: ListOrder) {
        let is_own = |held: &StoredTurn| held.turn.turn == self.turn && held.turn.time.unix_ms == self.said_ms;
        let own = held.iter().position(is_own);
        match order {
            ListOrder::Latest => {
                let end = own.unwrap_or_else(|| held.partition_point(|held| held.turn.time.unix_ms <= self.said_ms));
                held.truncate(end);
            }
            ListOrder::Oldest => {
                let first = held.partition_point(|held| held.turn.time.unix_ms < self.said_ms);
                held.drain(..own.map_or(first, |own| own + 1));
            }
        }
    }
}

impl std::fmt::Display for TurnCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.said_ms, self.turn)
    }
}

impl MemoryApi {
    /// The banks that hold something, that `passes` accepts and that the caller reaches.
    ///
    /// # Errors
    /// [`ApiProblem`] if the caller lacks the right in `asked`.
    pub(crate) fn banks_where(
        &self,
        who: &Caller,
        right: AccessRight,
        asked: &Bank,
        passes: &dyn Fn(&Bank) -> bool,
    ) -> Result<Vec<Bank>, ApiProblem> {
        who.may_in(right, asked)?;
        Ok(self.memory.banks_where(&|bank| passes(bank) && who.reaches(bank)))
    }

    /// The turns of a bank that the request names, in its order.
    ///
    /// # Errors
    /// [`ApiProblem`] for a wrong field, without the right to read, or if the log failed.
    pub async fn list(&self, who: &Caller, list: TurnListRequest) -> Result<TurnList, ApiProblem> {
        let TurnListRequest { bank, turns: ids, select, order, before, limit } = list;
        let limit = limit.unwrap_or(LISTED);
        if !(1..=MAX_LISTED).contains(&limit) {
            return Err(ApiProblem::invalid(format!("limit: {limit}; allowed is 1 to {MAX_LISTED}")));
        }
        if !select.is_empty() {
            select.check().map_err(|problem| ApiProblem::invalid(problem.to_string()))?;
        }
        let before = before.map(|place| TurnCursor::parse(&place)).transpose()?;
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        // For a page, and for turns that are named, only their records are read.
        let is_page = ids.is_empty() && select.takes_all() && order == ListOrder::Latest;
        let is_named = ids.is_empty() && !select.turns.is_empty();
        if ids.len() > MAX_LISTED {
            return Err(ApiProblem::invalid(format!("turn: {} ids, more than {MAX_LISTED}; divide them", ids.len())));
        }
        let reads = if is_page || is_named { ReadScope::Little } else { ReadScope::AllOfIt };
        let held = move |cancellation: &Cancellation| {
            let mut count = None;
            let held = match ids.as_slice() {
                [_, ..] => turns_by_any_ids(&memory, &of, &ids, cancellation),
                [] if is_page => {
                    let until_ms = before.as_ref().map(|before| before.said_ms);
                    let page =
                        memory.page_of_turns(std::slice::from_ref(&of), TurnPageRequest { until_ms, skip: 0, limit });
                    page.map(|page| {
                        count = Some(page.count);
                        page.turns
                    })
                }
                [] if is_named => memory.turns_by_ids(&of, &select.turns),
                [] if select.takes_all() => memory.turns(&of, &|_| true, cancellation),
                [] => memory.selected_turns(&of, &select, cancellation),
            };
            let mut held = held?;
            if (is_named || !ids.is_empty()) && !select.takes_all() {
                let selection = select.compile().map_err(|problem| ApiProblem::invalid(problem.to_string()))?;
                held.retain(|held| selection.takes(&held.turn));
            }
            // The turns that are not on a page are all before it.
            let in_front = count.map_or(0, |count| count - held.len());
            if let Some(before) = before {
                before.cut(&mut held, order);
            }
            let more = (in_front + held.len()).saturating_sub(limit) as u64;
            if order == ListOrder::Latest {
                held.reverse();
            }
            held.truncate(limit);
            // Records of earlier builds do not say when their turns were stored.
            let stored_ms = |held: &StoredTurn| match held.stored {
                Some(stored) => Ok(Some(stored.ms)),
                None => memory.append_ms(&of, held.offset),
            };
            let times = held.iter().map(stored_ms).collect::<Result<Vec<_>, _>>()?;
            Ok((held, times, more))
        };
        let (held, times, more) = self.read(who, &bank, reads, held).await?;
        let next = held.last().filter(|_| more > 0).map(|last| TurnCursor::of(last).to_string());
        let view = |(held, stored_ms): (&StoredTurn, Option<i64>)| TurnView { stored_ms, ..TurnView::of(held) };
        Ok(TurnList { bank, turns: held.iter().zip(times).map(view).collect(), more, next })
    }

    /// The turns of a bank that a selector takes.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn list_selected(&self, who: &Caller, list: SelectTurnsRequest) -> Result<TurnList, ApiProblem> {
        let SelectTurnsRequest { bank, select, order, limit, before } = list;
        let (select, order) = (select.unwrap_or_default(), order.unwrap_or_default());
        self.list(who, TurnListRequest { bank, turns: Vec::new(), select, order, before, limit }).await
    }

    /// All turns of a bank by time, each as last edited. Reads all records of the bank.
    ///
    /// # Errors
    /// [`ApiProblem`] without the right in the bank, or if the log failed.
    pub(crate) async fn turns(
        &self,
        who: &Caller,
        right: AccessRight,
        bank: &Bank,
    ) -> Result<Vec<StoredTurn>, ApiProblem> {
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        let turns = move |cancellation: &Cancellation| Ok(memory.turns(&of, &|_| true, cancellation)?);
        self.read_in_scope(who, right, bank, ReadScope::AllOfIt, turns).await
    }

    /// The turns of a bank that a selector takes, by time; an empty one takes all.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub(crate) async fn selected_turns(
        &self,
        who: &Caller,
        bank: &Bank,
        select: Selector,
    ) -> Result<Vec<StoredTurn>, ApiProblem> {
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        let turns = move |cancellation: &Cancellation| Ok(memory.selected_turns(&of, &select, cancellation)?);
        self.read(who, bank, ReadScope::AllOfIt, turns).await
    }

    /// The turns of a bank with these ids, by time; those that it does not hold are left out.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub(crate) async fn turns_by_ids(
        &self,
        who: &Caller,
        right: AccessRight,
        bank: &Bank,
        ids: Vec<String>,
    ) -> Result<Vec<StoredTurn>, ApiProblem> {
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        self.read_in_scope(who, right, bank, ReadScope::Little, move |_| Ok(memory.turns_by_ids(&of, &ids)?)).await
    }

    /// A page of the turns of some banks, the latest first.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub(crate) async fn page_of_turns(
        &self,
        who: &Caller,
        banks: Vec<Bank>,
        of: TurnPageRequest,
    ) -> Result<TurnPage, ApiProblem> {
        banks.iter().try_for_each(|bank| who.may_in(AccessRight::Read, bank))?;
        let Some(first) = banks.first().cloned() else { return Ok(TurnPage { turns: Vec::new(), count: 0 }) };
        let memory = Arc::clone(&self.memory);
        let page = move |_: &Cancellation| {
            let mut page = memory.page_of_turns(&banks, of)?;
            page.turns.reverse();
            Ok(page)
        };
        self.read(who, &first, ReadScope::Little, page).await
    }

    /// The number of a bank's turns, and the times of the first and the last; `None` without turns.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub(crate) async fn span_of_turns(&self, who: &Caller, bank: &Bank) -> Result<Option<TurnSpan>, ApiProblem> {
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        self.read(who, bank, ReadScope::Little, move |_| Ok(memory.span_of_turns(&of)?)).await
    }

    /// When the versions at these offsets of the turns topic were appended, in milliseconds since 1970.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub(crate) async fn append_ms(
        &self,
        who: &Caller,
        right: AccessRight,
        versions: Vec<(Bank, u64)>,
    ) -> Result<Vec<Option<i64>>, ApiProblem> {
        versions.iter().try_for_each(|(bank, _)| who.may_in(right, bank))?;
        let Some(first) = versions.first().map(|(bank, _)| bank.clone()) else { return Ok(Vec::new()) };
        let memory = Arc::clone(&self.memory);
        let times = move |cancellation: &Cancellation| {
            let each = versions.iter().map(|(bank, offset)| {
                cancellation.check()?;
                memory.append_ms(bank, *offset)
            });
            Ok(each.collect::<Result<Vec<_>, _>>()?)
        };
        self.read_in_scope(who, right, &first, ReadScope::Little, times).await
    }

    /// The versions of a turn that the memory holds, oldest first.
    ///
    /// # Errors
    /// As [`Self::turns`].
    pub(crate) async fn versions(&self, who: &Caller, bank: &Bank, turn: &str) -> Result<Vec<TurnVersion>, ApiProblem> {
        let (memory, of, turn) = (Arc::clone(&self.memory), bank.clone(), turn.to_owned());
        let versions = move |cancellation: &Cancellation| Ok(memory.versions(&of, &turn, cancellation)?);
        self.read(who, bank, ReadScope::AllOfIt, versions).await
    }

    /// Waits until lists and answers reflect every turn of these banks that is durable now.
    ///
    /// # Errors
    /// [`ApiProblem`] if the wait was too short, or if the log failed.
    pub(crate) async fn wait_until_extracted(&self, banks: &[Bank], wait: Duration) -> Result<(), ApiProblem> {
        let (memory, banks) = (Arc::clone(&self.memory), banks.to_vec());
        let awaited = blocking(move || Ok(memory.end_of(&banks)?)).await?;
        if self.reflects(&awaited, wait).await {
            return Ok(());
        }
        Err(self.not_reflected_problem("some durable turns are not extracted yet; ask again in a moment"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::model::Turn;

    #[test]
    fn a_list_goes_on_behind_a_turn_also_once_that_is_gone() {
        let held = |id: &str, second: i64| {
            let time = EventTime::new(second * 1_000, 0).unwrap();
            let turn = Turn::new(Bank::parse("b").unwrap(), id, "Ann", "hi", time);
            StoredTurn { turn: Arc::new(turn), offset: 0, recorded_ms: 0, stored: None }
        };
        let all = || vec![held("1", 1), held("2", 2), held("3", 2), held("4", 3)];
        let before = |place: &str, mut of: Vec<StoredTurn>| {
            TurnCursor::parse(place).unwrap().cut(&mut of, ListOrder::Latest);
            of.iter().map(|held| held.turn.turn.clone()).collect::<Vec<_>>()
        };
        assert_eq!(before(&TurnCursor::of(&all()[2]).to_string(), all()), ["1", "2"]);
        let without: Vec<StoredTurn> = all().into_iter().filter(|held| held.turn.turn != "3").collect();
        assert_eq!(before("2000:3", without), ["1", "2"]);
        assert_eq!(before("2000:a:b", all()), ["1", "2", "3"]);
        let after = |place: &str, mut of: Vec<StoredTurn>| {
            TurnCursor::parse(place).unwrap().cut(&mut of, ListOrder::Oldest);
            of.iter().map(|held| held.turn.turn.clone()).collect::<Vec<_>>()
        };
        assert_eq!(after("2000:2", all()), ["3", "4"]);
        assert_eq!(after("2000:a", all()), ["2", "3", "4"], "again rather than left out");
        // An edit that moves the turn to another time moves no page.
        let moved = vec![held("1", 1), held("2", 2), held("4", 3), held("3", 9)];
        assert_eq!(
            (before("2000:3", moved.clone()), after("2000:3", moved)),
            (vec!["1".into(), "2".into()], vec!["2".into(), "4".into(), "3".into()])
        );
        assert!(TurnCursor::parse("yesterday").is_err() && TurnCursor::parse("x:1").is_err());
    }
}
