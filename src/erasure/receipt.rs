//! Receipts: what an operation has reached, for its requester.
//!
//! In: an operation, and the key file if one is configured. Out: times and counts, without a word or an id of a turn,
//! and an HMAC-SHA256 over them.

use std::path::Path;

use jiff::Timestamp;
use ring::hmac;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ForgetOperation, ForgetOperationStore, MemoryProgress, PipelineError,
    operator_key::{failed, hex, key_of},
    retention_rule::RetentionRule,
};
use logs::{self, TopicRetention};
use types::{config::Pipeline, model::Bank};

/// How far an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ForgetStage {
    /// It is durable; a crash or a restart does not undo it.
    Accepted,
    /// No answer, unit, edge or statistic reflects the turns.
    Hidden,
    /// What others said in their windows is back, read again by the language model where one extracts.
    Rebuilt,
    /// Their words are in no byte that this memory stores.
    Erased,
}

/// What became of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// The operation's id.
    pub operation: String,
    /// The bank.
    pub bank: Bank,
    /// How many turns it names.
    pub turns: u64,
    /// The last stage that it has reached.
    pub stage: ForgetStage,
    /// When it was asked for.
    #[schemars(with = "String")]
    pub requested: Timestamp,
    /// When it was hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub hidden: Option<Timestamp>,
    /// When it was rebuilt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub rebuilt: Option<Timestamp>,
    /// When it was erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub erased: Option<Timestamp>,
    /// By when it is to be erased; absent where only a request erases. On Kafka: by when the topics have dropped its
    /// words, as their own settings say; absent where one of them never does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub due: Option<Timestamp>,
    /// On Kafka, the topics that never drop words: a sentence for each, with the setting to change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub never: Vec<String>,
    /// Dead letters that were emptied when it was asked for, because they state the same speaker or bank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letters: Option<u64>,
    /// Records of the turns log that were emptied when it was erased, with those of other operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emptied_turns: Option<u64>,
    /// Dead letters that were emptied then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emptied_dead_letters: Option<u64>,
    /// Bytes that were written then, to replace the files that held the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewritten_bytes: Option<u64>,
    /// The rule of retention that deleted the turns; absent where somebody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionRule>,
    /// HMAC-SHA256, in hexadecimal digits, over the JSON of this receipt without this field and without spaces, with
    /// the secret of `forget.key_file`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hmac_sha256: Option<String>,
}

/// The receipts of all operations, after settling them.
pub fn receipts(
    forgets: ForgetOperationStore<'_>,
    settled: &MemoryProgress<'_>,
    key_file: Option<&Path>,
) -> Result<Vec<Receipt>, PipelineError> {
    forgets.settle(settled)?;
    noted(forgets, key_file)
}

/// The receipts of all operations, as last noted.
fn noted(forgets: ForgetOperationStore<'_>, key_file: Option<&Path>) -> Result<Vec<Receipt>, PipelineError> {
    let (all, leaving) = (forgets.all()?, forgets.log.topic_retention()?);
    all.iter().map(|operation| Receipt::of(operation, key_file, leaving.as_ref())).collect()
}

/// The receipts of a log, as last noted: of a log in a directory that no process has open, or of one on Kafka, whose
/// services note them.
///
/// # Errors
/// As the log's.
pub fn stored_receipts(pipeline: &Pipeline) -> Result<Vec<Receipt>, PipelineError> {
    let log = logs::open(&pipeline.log)?;
    noted(ForgetOperationStore::of(&*log, &pipeline.forget), pipeline.forget.key_file.as_deref())
}

impl Receipt {
    /// The receipt of an operation, signed with the secret of a file. `leaving` holds when words leave a log on Kafka.
    pub fn of(
        operation: &ForgetOperation,
        key_file: Option<&Path>,
        leaving: Option<&TopicRetention>,
    ) -> Result<Self, PipelineError> {
        let at = |ms: i64| Timestamp::from_millisecond(ms).unwrap_or_default();
        let ForgetOperation {
            operation,
            bank,
            turns,
            requested_ms,
            due_ms,
            hidden_ms,
            rebuilt_ms,
            erased,
            dead_letters,
            retention,
            ..
        } = operation;
        let stage = match (hidden_ms, rebuilt_ms, erased) {
            (_, _, Some(_)) => ForgetStage::Erased,
            (_, Some(_), None) => ForgetStage::Rebuilt,
            (Some(_), None, None) => ForgetStage::Hidden,
            (None, None, None) => ForgetStage::Accepted,
        };
        // Until the turns are hidden, answers may quote them, and a new record of the memory may hold them.
        let left_ms = leaving.filter(|leaving| leaving.never.is_empty()).map(|leaving| {
            let within_ms = i64::try_from(leaving.within_ms).unwrap_or(i64::MAX);
            hidden_ms.unwrap_or(*requested_ms).saturating_add(within_ms)
        });
        let mut receipt = Self {
            operation: operation.clone(),
            bank: bank.clone(),
            turns: *turns,
            stage,
            requested: at(*requested_ms),
            hidden: hidden_ms.map(at),
            rebuilt: rebuilt_ms.map(at),
            erased: erased.map(|(ms, _)| at(ms)),
            due: due_ms.or(left_ms).map(at),
            never: leaving.map(|leaving| leaving.never.clone()).unwrap_or_default(),
            dead_letters: *dead_letters,
            emptied_turns: erased.map(|(_, erased)| erased.turns),
            emptied_dead_letters: erased.map(|(_, erased)| erased.dead_letters),
            rewritten_bytes: erased.map(|(_, erased)| erased.rewritten_bytes),
            retention: retention.clone(),
            hmac_sha256: None,
        };
        if let Some(path) = key_file {
            receipt.hmac_sha256 = Some(receipt.signature(path)?);
        }
        Ok(receipt)
    }

    fn signature(&self, key_file: &Path) -> Result<String, PipelineError> {
        let key = key_of(key_file)?;
        let json = serde_json::to_vec(self).map_err(|e| failed(key_file, e.to_string()))?;
        Ok(hex(hmac::sign(&key, &json).as_ref()))
    }
}
