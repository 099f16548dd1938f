//! Forgetting turns by what they have in common: who said them, when, in which session or thread.
//!
//! In: a bank, a selector and the caller. Out, for a dry run: how many turns the selector takes, and some of them.
//! Otherwise: where the durable deletions lie, and whether answers still reflect the turns. A request first waits until
//! all durable turns are read in, so that it misses no acknowledged turn. Only a log in a directory can list turns.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocking::blocking,
    calls::{Api, wait},
    problem::Problem,
    short_ids::{name_of, unlisted},
    turns::TurnView,
};
use crate::access::{Caller, Right};
use nouns::model::{Bank, Selector};

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
    /// Where the deletions lie, as in [`super::WrittenTurns`]; empty where nothing was deleted.
    pub after: String,
    /// Whether no answer reflects the turns any more. False for a dry run, and where the time was too short; a
    /// question with this `after` does not reflect them.
    pub gone: bool,
}

impl Api {
    /// Deletes the turns of a bank that a selector takes, and waits until no answer reflects them.
    ///
    /// # Errors
    /// [`Problem`] for a wrong field, without the right, if turns are still being read in after the wait, or if the log
    /// failed or cannot list turns.
    pub async fn forget_turns(&self, who: &Caller, forget: ForgetTurns) -> Result<ForgottenTurns, Problem> {
        let ForgetTurns { bank, select, confirm, dry_run, wait_ms } = forget;
        select.check().map_err(|problem| Problem::invalid(format!("select: {problem}")))?;
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
                return Ok((None, turns, shown, Some(name)));
            }
            if confirm.is_some_and(|confirm| confirm != name) {
                let problem = "confirm: other turns are meant than in that dry run; nothing was deleted; repeat it";
                return Err(Problem::invalid(problem));
            }
            if held.is_empty() {
                return Ok((None, 0, Vec::new(), None));
            }
            let ids = held.iter().map(|held| held.turn.turn.clone());
            Ok((Some(memory.forget_all(&of, ids)?), turns, Vec::new(), None))
        });
        let (written, turns, shown, confirm) = deleted.await?;
        let gone = match &written {
            Some(written) => self.reflects(written, wait).await,
            None => !dry_run,
        };
        let after = written.map(|written| written.to_string()).unwrap_or_default();
        Ok(ForgottenTurns { bank, turns: may_read.then_some(turns), shown, confirm, after, gone })
    }
}
