//! Deletions on request: turns of a bank, and the dead letters that belong to them.
//!
//! In: a log, the settings, a bank. Out: an operation that is durable, or why nothing was deleted. Reads no turn.

use super::{DurableDeletion, ForgetOperationStore, LetterSelector, PipelineError};
use logs::Log;
use types::{
    config::ForgetSettings,
    model::{Bank, Selector},
};

/// Deletes turns of a bank for good, as one operation: once it is durable, the next start finishes what a crash left.
/// Repeating it is harmless.
///
/// # Errors
/// [`PipelineError::Held`]: a hold covers the bank; nothing was written. [`PipelineError::Turn`]: an id that no turn
/// can have; nothing was written. [`PipelineError::Forget`]: the key file cannot be read, or the ledger cannot be
/// written; nothing was deleted.
/// [`PipelineError::Log`]: some may have been written.
pub fn forget_turns(
    log: &dyn Log,
    settings: &ForgetSettings,
    bank: &Bank,
    turns: impl IntoIterator<Item = String>,
) -> Result<DurableDeletion, PipelineError> {
    check_hold(settings, bank)?;
    let now_ms = jiff::Timestamp::now().as_millisecond();
    ForgetOperationStore::of(log, settings).begin(bank, turns.into_iter().collect(), now_ms, None)
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
    if let Some(bank) = &select.bank {
        check_hold(settings, bank)?;
    }
    if log.erasable().is_none() {
        return Ok(0);
    }
    let operation = deleted.map(|deleted| deleted.operation.operation.as_str());
    let now_ms = jiff::Timestamp::now().as_millisecond();
    ForgetOperationStore::of(log, settings).empty_letters(select, operation, now_ms)
}

/// Refuses to delete turns of a bank that a hold covers.
///
/// # Errors
/// [`PipelineError::Held`].
pub fn check_hold(settings: &ForgetSettings, bank: &Bank) -> Result<(), PipelineError> {
    match settings.hold_of(bank) {
        Some(hold) => {
            let reason = hold.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            Err(PipelineError::Held { bank: bank.clone(), by: hold.bank.clone(), reason })
        }
        None => Ok(()),
    }
}
