//! Forgets turns by a selector: who said them, when, in which session or thread; and lists receipts.
//!
//! In: a bank, a selector and the caller. Out, for a dry run: how many turns the selector takes, and some of them.
//! Otherwise: the offsets of the durable deletions, and whether answers still reflect the turns. A request first waits
//! until all durable turns are extracted, so that it misses no acknowledged turn. On Kafka a request may also be a
//! record of a topic (`crate::kafka`).

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

use super::{
    api_forms::is_none,
    blocking_work::blocking,
    memory_api::{MemoryApi, wait},
    problem::{ApiProblem, ProblemCode, wrong_id},
    read_limiters::ReadScope,
    short_ids::selection_hash,
    turn_list::TurnView,
};
use crate::{
    access::{AccessRight, Caller},
    single_flight::SingleFlightResult,
};
use erasure::{DurableDeletion, Receipt, empty_letters, forget_turns, letters_with, stored_dead_letters};
use logs::{Log, WritePosition};
use pipeline::{Cancellation, selected_turns};
use types::{
    config::ForgetSettings,
    model::{Bank, Selector},
    schema,
};

/// Most turns that a dry run shows.
const SHOWN: usize = 20;

/// Turns to delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ForgetTurns")]
pub struct ForgetTurnsRequest {
    /// Their bank.
    pub bank: Bank,
    /// Which of them; `select` is another name of it.
    #[serde(rename = "where", alias = "select")]
    pub select: Selector,
    /// The `confirm` of a dry run: nothing is deleted if other turns are meant by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// With nothing but `select.turns`: also those of these ids that the bank does not hold, so that none of them is
    /// taken when it comes later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unheld: bool,
    /// Only counts them, and shows some; deletes nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// Most milliseconds to wait until no answer reflects them any more; 10,000 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 600_000))]
    pub wait_ms: Option<u64>,
}

/// What became of turns that were to be deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ForgottenTurns")]
pub struct ForgetTurnsResponse {
    /// Their bank.
    pub bank: Bank,
    /// How many the bank held. Absent for a token that may not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// How many records that were rejected (dead letters) went with them, or of a dry run would go: those whose record
    /// names one of `select.speakers` as its sender, or with `select.all` those that state the bank. Absent for none,
    /// for a token that may not read, where a time or a conversation narrows the selection, and on Kafka.
    #[serde(default, skip_serializing_if = "is_none")]
    pub dead_letters: u64,
    /// Of a dry run: the latest of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<TurnView>,
    /// Of a dry run: names exactly the turns that were meant, for the request that deletes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// With `unheld`: the ids that the bank did not hold. Empty for a token that may not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_held: Vec<String>,
    /// Where the deletions lie, as in `WrittenTurns`; empty where nothing was deleted.
    pub after: String,
    /// Whether no answer reflects the turns any more. False for a dry run, and where the time was too short; a
    /// question with this `after` does not reflect them.
    pub gone: bool,
    /// What the operation has reached. Absent where nothing was deleted, and for a token that may not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

/// What became of the operations that forgot turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Forgets")]
pub struct ForgetReceipts {
    /// The latest first.
    pub forgets: Vec<Receipt>,
}

/// What a request did.
pub(crate) struct ForgetTurnsOutcome {
    deleted: Option<DurableDeletion>,
    /// How many turns the bank held.
    turns: u64,
    shown: Vec<TurnView>,
    confirm: Option<String>,
    not_held: Vec<String>,
    dead_letters: u64,
}

impl ForgetTurnsRequest {
    /// Checks what it selects.
    ///
    /// # Errors
    /// [`ApiProblem`] names the field.
    pub(crate) fn check(&self) -> Result<(), ApiProblem> {
        let select = &self.select;
        select.check().map_err(|problem| ApiProblem::invalid(format!("select: {problem}")))?;
        if self.unheld && *select != (Selector { turns: select.turns.clone(), ..Selector::default() }) {
            return Err(ApiProblem::invalid("unheld: only ids can be unheld; name nothing but select.turns"));
        }
        Ok(())
    }

    /// Lists the extracted turns that it selects, and deletes them, unless it is a dry run. The list ends early if the
    /// client has left; deletions that have begun are written.
    ///
    /// # Errors
    /// [`ApiProblem`] if `confirm` names other turns than the selected ones, a hold covers the bank, or the log failed.
    ///
    /// With `bankless`, dead letters whose bank cannot be read count, too.
    pub(crate) fn carry_out(
        self,
        log: &dyn Log,
        settings: &ForgetSettings,
        cancellation: &Cancellation,
        bankless: bool,
    ) -> Result<ForgetTurnsOutcome, ApiProblem> {
        let Self { bank, select, confirm, unheld, dry_run, wait_ms: _ } = self;
        let held = selected_turns(log, &bank, &select, cancellation)?;
        let (turns, name) = (held.len() as u64, selection_hash(&held));
        let letters = letters_with(&bank, &select, bankless).filter(|_| log.erasable().is_some());
        let (shown, not_held) = (Vec::new(), Vec::new());
        let nothing = ForgetTurnsOutcome { deleted: None, turns, shown, confirm: None, not_held, dead_letters: 0 };
        if dry_run {
            let shown = held.iter().rev().take(SHOWN).map(TurnView::of).collect();
            let dead_letters =
                letters.map_or(Ok(0), |letters| stored_dead_letters(log, &letters, 0).map(|held| held.count))?;
            return Ok(ForgetTurnsOutcome { shown, confirm: Some(name), dead_letters, ..nothing });
        }
        if confirm.is_some_and(|confirm| confirm != name) {
            let problem = "confirm: other turns are meant than in that dry run; nothing was deleted; repeat it";
            return Err(ApiProblem::invalid(problem));
        }
        let mut ids: BTreeSet<String> = held.iter().map(|held| held.turn.turn.clone()).collect();
        let not_held: Vec<String> = select.turns.into_iter().filter(|id| unheld && ids.insert(id.clone())).collect();
        let deleted = match ids.is_empty() {
            true => None,
            false => Some(forget_turns(log, settings, &bank, ids).map_err(wrong_id)?),
        };
        let dead_letters = letters.map_or(Ok(0), |letters| empty_letters(log, settings, &letters, deleted.as_ref()))?;
        Ok(ForgetTurnsOutcome { deleted, not_held, dead_letters, ..nothing })
    }
}

impl ForgetTurnsOutcome {
    /// The positions of the deletions; `None` if nothing was deleted.
    pub(crate) fn written(&self) -> Option<&WritePosition> {
        self.deleted.as_ref().map(|deleted| &deleted.written)
    }

    /// The id of the operation; `None` if nothing was deleted.
    pub(crate) fn operation(&self) -> Option<&str> {
        self.deleted.as_ref().map(|deleted| deleted.operation.operation.as_str())
    }

    /// The answer, to a caller that may read.
    pub(crate) fn answer(self, bank: Bank, gone: bool, receipt: Option<Receipt>) -> ForgetTurnsResponse {
        let after = self.written().map(ToString::to_string).unwrap_or_default();
        let Self { turns, shown, confirm, not_held, dead_letters, .. } = self;
        ForgetTurnsResponse { bank, turns: Some(turns), dead_letters, shown, confirm, not_held, after, gone, receipt }
    }
}

/// The schemas of the topics by which turns are forgotten on Kafka, by their names.
#[must_use]
pub fn forget_schemas() -> Vec<(&'static str, Schema)> {
    let about = "One request to forget turns, as the body of `POST /v1/forget`. The key is the bank's name.";
    let forgotten = "The answer to a request to forget turns, in the topic of answers.";
    vec![
        ("forgets", schema::titled_schema(ForgetTurnsRequest::json_schema, about)),
        ("forgotten", schema::titled_schema(ForgetTurnsResponse::json_schema, forgotten)),
    ]
}

impl MemoryApi {
    /// Deletes the turns of a bank that a selector takes, and waits until no answer reflects them.
    ///
    /// # Errors
    /// [`ApiProblem`] for a wrong field, without the right, if turns are still not extracted after the wait, or if the
    /// log failed.
    pub async fn forget_turns(
        &self,
        who: &Caller,
        forget: ForgetTurnsRequest,
    ) -> Result<ForgetTurnsResponse, ApiProblem> {
        forget.check()?;
        let (bank, dry_run) = (forget.bank.clone(), forget.dry_run);
        let may_read = if dry_run {
            who.may_in(AccessRight::Read, &bank)?;
            true
        } else {
            who.may_in(AccessRight::Read, &bank).is_ok()
        };
        // Last, because the audit log notes the right that was checked last.
        who.may_in(AccessRight::Forget, &bank)?;
        self.check_here(&bank)?;
        let wait = wait(forget.wait_ms)?;
        // Durable turns are listed only once they are extracted.
        self.wait_until_extracted(std::slice::from_ref(&bank), wait.max(Duration::from_secs(1))).await?;
        let memory = Arc::clone(&self.memory);
        // A caller with the right in some banks only must not remove what may belong to others.
        let bankless = who.sees_all(AccessRight::Forget);
        let carry_out = move |cancellation: &Cancellation| {
            forget.carry_out(&**memory.log(), memory.forget_settings(), cancellation, bankless)
        };
        let carried = self.read_in_scope(who, AccessRight::Forget, &bank, ReadScope::AllOfIt, carry_out).await?;
        let gone = match carried.written() {
            Some(written) => self.reflects(written, wait).await,
            None => !dry_run,
        };
        let operation = carried.operation().filter(|_| may_read).map(str::to_owned);
        let receipt = self.receipt_of(operation).await?;
        let forgotten = carried.answer(bank, gone, receipt);
        Ok(if may_read {
            forgotten
        } else {
            ForgetTurnsResponse { turns: None, dead_letters: 0, not_held: Vec::new(), ..forgotten }
        })
    }

    /// The receipts of the operations of a bank, or of every bank in which the caller may forget.
    ///
    /// # Errors
    /// [`ApiProblem`] without the right, if the log failed, or if a log on Kafka does not answer within some seconds.
    pub async fn forgets(&self, who: &Caller, bank: Option<Bank>) -> Result<ForgetReceipts, ApiProblem> {
        match &bank {
            Some(bank) => who.may_in(AccessRight::Forget, bank)?,
            None => who.may(AccessRight::Forget)?,
        }
        let (memory, looks) = (Arc::clone(&self.memory), Arc::clone(&self.receipts));
        let receipts = move || -> Result<Vec<Receipt>, ApiProblem> {
            if memory.log().erasable().is_some() {
                return Ok(memory.receipts()?);
            }
            let SingleFlightResult { found, problem } =
                looks.run_shared(move || memory.receipts().map_err(|error| error.to_string()));
            match problem {
                Some(problem) => Err(ApiProblem::new(ProblemCode::Failed, problem)),
                None => Ok(found.unwrap_or_default()),
            }
        };
        let mut forgets = blocking(receipts).await?;
        forgets.retain(|receipt| match &bank {
            Some(bank) => receipt.bank == *bank,
            None => who.still_may_in(AccessRight::Forget, &receipt.bank).is_ok(),
        });
        Ok(ForgetReceipts { forgets })
    }

    /// The receipt of an operation, by its id.
    pub(super) async fn receipt_of(&self, operation: Option<String>) -> Result<Option<Receipt>, ApiProblem> {
        let Some(operation) = operation else { return Ok(None) };
        let memory = Arc::clone(&self.memory);
        blocking(move || Ok(memory.receipt(&operation)?)).await
    }
}

#[cfg(test)]
mod tests {
    use types::config::Pipeline;

    use super::*;

    #[test]
    fn an_id_that_is_named_twice_is_one_turn() {
        let home = tempfile::tempdir().unwrap();
        let mut pipeline = Pipeline::parse("version = 1").unwrap();
        pipeline.log.directory = home.path().join("log");
        let log = logs::open(&pipeline.log).unwrap();
        let turns = ["a", "b", "a"].map(str::to_owned).into();
        let request = ForgetTurnsRequest {
            bank: Bank::parse("b").unwrap(),
            select: Selector { turns, ..Selector::default() },
            confirm: None,
            unheld: true,
            dry_run: false,
            wait_ms: None,
        };
        let carried = request.carry_out(&*log, &pipeline.forget, &Cancellation::default(), true).unwrap();
        assert_eq!((carried.turns, carried.not_held), (0, vec!["a".to_owned(), "b".to_owned()]));
    }
}
