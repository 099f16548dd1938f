//! Forgetting turns by what they have in common: who said them, when, in which session or thread; and receipts.
//!
//! In: a bank, a selector and the caller. Out, for a dry run: how many turns the selector takes, and some of them.
//! Otherwise: where the durable deletions lie, and whether answers still reflect the turns. A request first waits until
//! all durable turns are read in, so that it misses no acknowledged turn. Only a log in a directory can list turns.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocking::blocking,
    calls::{Api, wait},
    problem::{Problem, wrong_id},
    short_ids::{name_of, unlisted},
    turns::TurnView,
};
use crate::access::{Caller, Right};
use nouns::model::{Bank, Selector};
use ripplemem::pipeline::{Deleted, Receipt};

/// Most turns that a dry run shows.
const SHOWN: usize = 20;

/// Turns to delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetTurns {
    /// Their bank.
    pub bank: Bank,
    /// Which of them.
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
pub struct ForgottenTurns {
    /// Their bank.
    pub bank: Bank,
    /// How many the bank held. Absent for a token that may not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Of a dry run: the latest of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<TurnView>,
    /// Of a dry run: names exactly the turns that were meant, for the request that deletes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// With `unheld`: the ids that the bank did not hold. Empty for a token that may not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_held: Vec<String>,
    /// Where the deletions lie, as in [`super::WrittenTurns`]; empty where nothing was deleted.
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
pub struct Forgets {
    /// The latest first.
    pub forgets: Vec<Receipt>,
}

impl Api {
    /// Deletes the turns of a bank that a selector takes, and waits until no answer reflects them.
    ///
    /// # Errors
    /// [`Problem`] for a wrong field, without the right, if turns are still being read in after the wait, or if the log
    /// failed or cannot list turns.
    pub async fn forget_turns(&self, who: &Caller, forget: ForgetTurns) -> Result<ForgottenTurns, Problem> {
        let ForgetTurns { bank, select, confirm, unheld, dry_run, wait_ms } = forget;
        select.check().map_err(|problem| Problem::invalid(format!("select: {problem}")))?;
        if unheld && select != (Selector { turns: select.turns.clone(), ..Selector::default() }) {
            return Err(Problem::invalid("unheld: only ids can be unheld; name nothing but select.turns"));
        }
        let may_read = if dry_run {
            who.may_in(Right::Read, &bank)?;
            true
        } else {
            who.may_in(Right::Read, &bank).is_ok()
        };
        // Last, because the audit log notes the right that was checked last.
        who.may_in(Right::Forget, &bank)?;
        self.check_here(&bank)?;
        let wait = wait(wait_ms)?;
        // Durable turns are listed only once they are read in.
        self.caught_up(std::slice::from_ref(&bank), wait.max(Duration::from_secs(1))).await?;
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        // In one blocking call: if the client leaves, deletions that have begun are still written.
        let deleted = blocking(move || {
            let held = memory.selected_turns(&of, &select).map_err(unlisted)?;
            let (turns, name) = (held.len() as u64, name_of(&held));
            if dry_run {
                let shown = held.iter().rev().take(SHOWN).map(TurnView::of).collect();
                return Ok((None, turns, shown, Some(name), Vec::new()));
            }
            if confirm.is_some_and(|confirm| confirm != name) {
                let problem = "confirm: other turns are meant than in that dry run; nothing was deleted; repeat it";
                return Err(Problem::invalid(problem));
            }
            let mut ids: BTreeSet<String> = held.iter().map(|held| held.turn.turn.clone()).collect();
            let not_held: Vec<String> = select.turns.into_iter().filter(|id| unheld && !ids.contains(id)).collect();
            ids.extend(not_held.iter().cloned());
            if ids.is_empty() {
                return Ok((None, 0, Vec::new(), None, not_held));
            }
            let deleted = memory.forget_all(&of, ids.into_iter()).map_err(wrong_id)?;
            Ok((Some(deleted), turns, Vec::new(), None, not_held))
        });
        let (deleted, turns, shown, confirm, not_held) = deleted.await?;
        let not_held = if may_read { not_held } else { Vec::new() };
        let gone = match &deleted {
            Some(deleted) => self.reflects(&deleted.written, wait).await,
            None => !dry_run,
        };
        let after = deleted.as_ref().map(|deleted| deleted.written.to_string()).unwrap_or_default();
        let receipt = self.receipt_of(deleted.filter(|_| may_read)).await?;
        let turns = may_read.then_some(turns);
        Ok(ForgottenTurns { bank, turns, shown, confirm, not_held, after, gone, receipt })
    }

    /// What became of the operations of a bank, or of every bank in which the caller may forget.
    ///
    /// # Errors
    /// [`Problem`] without the right, or where the log failed.
    pub async fn forgets(&self, who: &Caller, bank: Option<Bank>) -> Result<Forgets, Problem> {
        match &bank {
            Some(bank) => who.may_in(Right::Forget, bank)?,
            None => who.may(Right::Forget)?,
        }
        let memory = Arc::clone(&self.memory);
        let mut forgets = blocking(move || Ok(memory.receipts()?)).await?;
        forgets.retain(|receipt| match &bank {
            Some(bank) => receipt.bank == *bank,
            None => who.still_may_in(Right::Forget, &receipt.bank).is_ok(),
        });
        Ok(Forgets { forgets })
    }

    /// The receipt of deletions; none on Kafka.
    pub(super) async fn receipt_of(&self, deleted: Option<Deleted>) -> Result<Option<Receipt>, Problem> {
        let Some(operation) = deleted.and_then(|deleted| deleted.operation) else { return Ok(None) };
        let memory = Arc::clone(&self.memory);
        blocking(move || Ok(memory.receipt(&operation.operation)?)).await
    }
}
