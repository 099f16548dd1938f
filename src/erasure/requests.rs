//! Deletions on request: turns of a bank, and the dead letters that belong to them.
//!
//! In: a log, the settings, a bank. Out: an operation that is durable, or why nothing was deleted. Reads turns
//! only where a hold covers some of a bank.

use std::collections::HashSet;

use super::{DurableDeletion, ForgetOperationStore, LetterSelector, PipelineError};
use logs::Log;
use pipeline::stored_turns;
use types::{
    config::{ForgetSettings, LegalHoldSettings},
    model::{Bank, Selector},
};

/// Deletes turns of a bank for good, as one operation: once it is durable, the next start finishes what a crash left.
/// Repeating it is harmless.
///
/// # Errors
/// [`PipelineError::Held`]: a hold covers one of them; nothing was written. [`PipelineError::Turn`]: an id that no turn
/// can have; nothing was written. [`PipelineError::Forget`]: the key file cannot be read, or the ledger cannot be
/// written; nothing was deleted.
/// [`PipelineError::Log`]: some may have been written.
pub fn forget_turns(
    log: &dyn Log,
    settings: &ForgetSettings,
    bank: &Bank,
    turns: impl IntoIterator<Item = String>,
) -> Result<DurableDeletion, PipelineError> {
    let turns: Vec<String> = turns.into_iter().collect();
    check_holds(log, settings, bank, &turns)?;
    let now_ms = jiff::Timestamp::now().as_millisecond();
    ForgetOperationStore::of(log, settings).begin(bank, turns, now_ms, None)
}

/// The dead letters that belong to the turns of a selector: those that state one of its speakers, or with `all` those
/// that state the bank; with `bankless` also those of the speakers whose bank cannot be read. `None` if a time or a
/// conversation narrows the selector, which dead letters do not state.
#[must_use]
pub fn letters_with(bank: &Bank, select: &Selector, bankless: bool) -> Option<LetterSelector> {
    let Selector { speakers, all, mentions, .. } = select;
    let alone = Selector { speakers: speakers.clone(), all: *all, mentions: mentions.clone(), ..Selector::default() };
    let names_some = *select == alone && (*all || !speakers.is_empty());
    let of = LetterSelector { senders: speakers.clone(), bank: Some(bank.clone()), ..LetterSelector::default() };
    names_some.then_some(LetterSelector { bankless: bankless && !all, ..of })
}

/// Empties dead letters, and notes their number in the operation that they belong to. `None` on Kafka, where topic
/// settings decide how long they stay.
///
/// # Errors
/// [`PipelineError::Held`] if a hold covers their bank, and [`PipelineError::Log`].
pub fn empty_letters(
    log: &dyn Log,
    settings: &ForgetSettings,
    select: &LetterSelector,
    deleted: Option<&DurableDeletion>,
) -> Result<u64, PipelineError> {
    if let Some(bank) = &select.bank
        && let Some(hold) = settings.hold_of(bank)
    {
        return Err(held(bank, hold, None));
    }
    if log.erasable().is_none() {
        return Ok(0);
    }
    let operation = deleted.map(|deleted| deleted.operation.operation.as_str());
    let now_ms = jiff::Timestamp::now().as_millisecond();
    ForgetOperationStore::of(log, settings).empty_letters(select, operation, now_ms)
}

/// Refuses to delete turns that a hold covers. Reads the bank's records if a hold covers only some of its turns.
///
/// # Errors
/// [`PipelineError::Held`], and [`PipelineError::Log`].
pub fn check_holds(
    log: &dyn Log,
    settings: &ForgetSettings,
    bank: &Bank,
    turns: &[String],
) -> Result<(), PipelineError> {
    let mut stored = None;
    for hold in settings.holds_of(bank) {
        let Some(select) = &hold.select else { return Err(held(bank, hold, None)) };
        let selection = select.compile().map_err(|problem| PipelineError::Select { problem })?;
        let stored = match &mut stored {
            Some(stored) => stored,
            none => {
                // A turn is stored by its id as it was sent, or in the form that deletions have.
                let mut ids: HashSet<String> = turns.iter().cloned().collect();
                for turn in turns {
                    ids.insert(log.deleted_form(turn)?.into_owned());
                }
                none.insert(stored_turns(log, bank, &|id| ids.contains(id), usize::MAX)?)
            }
        };
        if let Some(taken) = stored.iter().find(|stored| selection.takes(&stored.turn)) {
            return Err(held(bank, hold, Some(&taken.turn.turn)));
        }
    }
    Ok(())
}

/// Why nothing is deleted: a hold that covers a bank, or a turn of it.
fn held(bank: &Bank, hold: &LegalHoldSettings, turn: Option<&str>) -> PipelineError {
    let of_turn = turn.map(|turn| format!(", for turn {turn:?}")).unwrap_or_default();
    let reason = hold.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    PipelineError::Held { bank: bank.clone(), by: hold.bank.clone(), reason: format!("{of_turn}{reason}") }
}
