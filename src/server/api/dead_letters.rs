//! Dead letters for administrators: lists and removes them.
//!
//! In: a selection of dead letters, and the caller, who needs the right `admin` in every bank, since most dead letters
//! belong to no bank. Out: their number and the latest ones; or, on a log in a directory, the same dead letters removed
//! from every stored byte. Those of a bank under a hold stay.

use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{blocking_work::blocking, operations::ServiceOperations, problem::ApiProblem};
use crate::access::{AccessRight, Caller};
use erasure::{DeadLetterList, ErasureReport, LetterSelector, StoredDeadLetter, empty_letters, stored_dead_letters};
use types::model::Bank;

/// Letters that are shown if the request does not say.
const SHOWN: usize = 20;
/// Most letters that are shown.
const MAX_SHOWN: usize = 1_000;

/// Dead letters to list or to remove.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SelectLetters")]
pub struct DeadLettersRequest {
    /// Which of them.
    pub select: LetterSelector,
    /// Erases the dead letters from disk, all copies included, as `POST /v1/admin/erase` does with turns. Only for a
    /// log in a directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remove: bool,
    /// Most letters that are shown, before they are removed; 20 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000))]
    pub limit: Option<usize>,
}

/// Dead letters that were asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DeadLetters")]
pub struct DeadLettersResponse {
    /// How many there are, or were before they were removed.
    pub letters: u64,
    /// The latest of them, the latest first.
    pub shown: Vec<DeadLetterView>,
    /// How many were removed; absent where that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
    /// What it took to erase their bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<ErasureReport>,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterView {
    /// Its offset in the log.
    pub offset: u64,
    /// When it was written.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The bank that it was for; absent where that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank: Option<Bank>,
    /// Where the record came from.
    pub origin: String,
    /// What was wrong and what to do.
    pub reason: String,
    /// The record, cut to 4,096 bytes.
    pub payload: String,
}

impl DeadLetterView {
    /// The JSON form of a letter.
    #[must_use]
    pub fn of(StoredDeadLetter { offset, append_ms, letter }: StoredDeadLetter) -> Self {
        let at = Timestamp::from_millisecond(append_ms).unwrap_or_default();
        Self { offset, at, bank: letter.bank, origin: letter.origin, reason: letter.reason, payload: letter.payload }
    }
}

impl DeadLettersRequest {
    /// Checks it.
    ///
    /// # Errors
    /// [`ApiProblem`] names the field.
    fn check(&self) -> Result<usize, ApiProblem> {
        self.select.check().map_err(|problem| ApiProblem::invalid(format!("select: {problem}")))?;
        match self.limit.unwrap_or(SHOWN) {
            limit @ 0..=MAX_SHOWN => Ok(limit),
            limit => Err(ApiProblem::invalid(format!("limit: {limit}; allowed is 0 to {MAX_SHOWN}"))),
        }
    }
}

impl ServiceOperations {
    /// Lists dead letters, or removes them.
    ///
    /// # Errors
    /// [`ApiProblem`] for a wrong field, without the right, if letters are to be removed on Kafka, or if the log
    /// failed.
    pub async fn dead_letters(
        &self,
        who: &Caller,
        asked: DeadLettersRequest,
    ) -> Result<DeadLettersResponse, ApiProblem> {
        who.may_everywhere(AccessRight::Admin)?;
        let limit = asked.check()?;
        let DeadLettersRequest { select, remove, .. } = asked;
        let log = Arc::clone(&self.log);
        if remove && log.erasable().is_none() {
            return Err(ApiProblem::invalid(
                "remove: on Kafka, dead letters leave their topic as its retention.ms and segment.ms say; `ripplemem \
                 validate FILE --topics` names the hours, and log.kafka.dead_letters_retention_hours sets them",
            ));
        }
        let memory = remove.then(|| self.memory()).transpose()?;
        blocking(move || {
            let DeadLetterList { count, latest } = stored_dead_letters(&*log, &select, limit)?;
            let shown = latest.into_iter().map(DeadLetterView::of).collect();
            let listed = DeadLettersResponse { letters: count, shown, removed: None, erased: None };
            let Some(memory) = memory else { return Ok(listed) };
            let removed = empty_letters(&*log, memory.forget_settings(), &select, None)?;
            let erased = if removed > 0 { Some(memory.erase()?) } else { None };
            Ok(DeadLettersResponse { removed: Some(removed), erased, ..listed })
        })
        .await
    }
}
