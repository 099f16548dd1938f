//! The requests and responses of the calls, each with one JSON form.
//!
//! Values without behaviour. `schemas/openapi.v1.json` is generated from these types.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::put_record::PutRecord;
use erasure::Receipt;
use logs::Log;
use memory::index::{DataflowAnswer, GraphCensus, MemoryFootprint};
use pipeline::{Cancellation, PipelineError, count_plain_ids};
use types::{
    model::{Bank, DeadLetter, EventTime, LogPosition, PrecedingTurn, Question, Selector},
    null_fields::null_as_default,
};

/// Turns, edits, deletions and ends of sessions to write.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Put")]
pub struct PutTurnsRequest {
    /// The records, as in the turns topic; one without `type` is a turn. At most 10,000.
    #[schemars(with = "Vec<PutRecord>", length(max = 10_000))]
    pub turns: Vec<Box<RawValue>>,
    /// What a reader of exports could not read; it is kept with its reason, after the turns, and changes no
    /// answer. Needs the right `admin` in every bank, since most of it is of none. Its texts are cut to 4,096 bytes
    /// each.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<DeadLetter>>", length(max = 10_000))]
    pub dead_letters: Vec<DeadLetter>,
    /// Most milliseconds to wait, once they are durable, until answers reflect the turns; 0 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 600_000))]
    pub wait_ms: Option<u64>,
    /// Whether the turns and deletions, at most 1,000 of one bank, are written at once or not at all.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub together: bool,
}

/// Turns are durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "WrittenTurns")]
pub struct PutTurnsResponse {
    /// Where they lie, `PARTITION:OFFSET` of the last in each partition, joined by commas: the `after` of a
    /// question whose answer is to reflect them. Empty where there was none.
    pub after: String,
    /// How many they are, those that are not kept included.
    pub turns: u64,
    /// Whether answers reflect them already.
    pub reflected: bool,
    /// How many of them are not kept because their ids were forgotten before; absent for none. With `reflected` that
    /// is final; without it, a deletion that is not read in yet is not counted. On Kafka only the instance that
    /// extracts the bank's partition knows it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub not_kept: u64,
    /// The ids of these, at most 100. What somebody forgot stays forgotten whatever the version: send it with another
    /// id. After a deletion that has a version, as some platforms send, a higher version of the turn is kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forgotten: Vec<String>,
    /// The ids of the records that changed nothing because a newer version or a deletion stands, those of `forgotten`
    /// and repeated deletions included. Known for what was read within `wait_ms`: complete with `reflected`. On Kafka
    /// only the instance that extracts the bank's partition knows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<String>,
    /// The versions that stand, by turn, of the records with a condition or with the version `next`, and of those that
    /// are written together; without those that are deleted for good.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, u64>,
}

/// Whether a count says nothing.
pub(super) fn is_none(count: &u64) -> bool {
    *count == 0
}

/// A question, and what its answer must reflect.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ask")]
pub struct AskRequest {
    /// The bank that is asked.
    pub bank: Bank,
    /// The question, at most 8,192 bytes.
    pub text: String,
    /// When it is asked, in RFC 3339; relative times such as "yesterday" need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_at: Option<EventTime>,
    /// Who asks: a speaker of the bank, to whom "I" and "my" refer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asker: Option<String>,
    /// The last turns of the running conversation, oldest first; at most 8,192 bytes.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<PrecedingTurn>>")]
    pub said_before: Vec<PrecedingTurn>,
    /// Most tokens (o200k) of the context; `recall.stop.most_tokens` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub most_tokens: Option<u32>,
    /// How many of the best parts that are not quoted the trace shows; none without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 200))]
    pub near: Option<u32>,
    /// Whether the trace of each round shows the units that the walk reached, and the edges to them.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub walk: bool,
    /// Whether rankings without the graph stand beside the answer, each within the tokens of its context.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub compare: bool,
    /// The profile whose recall settings apply, in place of those of the pipeline file: `default`, `paper`,
    /// `paper-longmemeval` or `paper-evermembench`. Units and edges stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The turns that may be quoted: what it does not take is no candidate, and nothing is reached over it. It narrows an
    /// answer, and is no right: banks and tokens are.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub select: Option<Selector>,
    /// Whether each excerpt has the metadata of its turn.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub metadata: bool,
    /// The `after` of turns of this bank: the answer waits until it reflects them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Asks the memory as it was: an offset of the bank's partition of the memory log, or a time of
    /// appending in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// Most milliseconds until the answer; `serve.deadline_ms` without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 600_000))]
    pub timeout_ms: Option<u64>,
    /// Whether the language model of `[llm]` answers in words, too; that takes its own time after the evidence.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(with = "Option<bool>")]
    pub answer: bool,
}

impl AskRequest {
    /// A question, with the default for everything else.
    #[must_use]
    pub fn of(question: Question) -> Self {
        let Question { bank, text, asked_at, asker, said_before, most_tokens, near, walk, compare, profile, .. } =
            question;
        let Question { select, metadata, .. } = question;
        let (after, as_of, timeout_ms, answer) = (None, None, None, false);
        Self {
            bank,
            text,
            asked_at,
            asker,
            said_before,
            most_tokens,
            near,
            walk,
            compare,
            profile,
            select,
            metadata,
            after,
            as_of,
            timeout_ms,
            answer,
        }
    }
}

/// A turn to delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Forget")]
pub struct ForgetRequest {
    /// Its bank.
    pub bank: Bank,
    /// Its id, or its short id where the log lists turns.
    pub turn: String,
    /// The version that must stand, or nothing is deleted; 0 if the turn must be absent or deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_version: Option<u64>,
    /// Most milliseconds to wait until no answer reflects it any more; 10,000 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 600_000))]
    pub wait_ms: Option<u64>,
}

/// A deletion is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Forgotten")]
pub struct ForgetResponse {
    /// The bank.
    pub bank: Bank,
    /// The turn's whole id.
    pub turn: String,
    /// Whether the memory held it. False: nothing was deleted, and a turn with this id that comes later is not
    /// taken. Absent where that cannot be told: some turns are not read in yet, or the log is on Kafka.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// Where the deletion lies, as in `WrittenTurns`.
    pub after: String,
    /// Whether no answer reflects the turn any more. False: the time was too short; a question with this
    /// `after` does not reflect it.
    pub gone: bool,
    /// What the operation has reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

/// What is held, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Digest")]
pub struct MemoryDigest {
    /// The bank; absent for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank: Option<Bank>,
    /// The number of units.
    pub units: u64,
    /// The number of semantic edges.
    pub semantic_edges: u64,
    /// The number of structural edges.
    pub structural_edges: u64,
    /// A hash that depends only on the set of units and edges.
    pub hash: String,
    /// The offsets that it reflects.
    pub reflects: Vec<LogPosition>,
}

impl MemoryDigest {
    /// The response for the memory's counts.
    #[must_use]
    pub fn of(bank: Option<Bank>, counted: DataflowAnswer<GraphCensus>) -> Self {
        let DataflowAnswer {
            value: GraphCensus { units, semantic_edges, structural_edges, hash, .. }, reflects, ..
        } = counted;
        Self { bank, units, semantic_edges, structural_edges, hash: format!("{hash:032x}"), reflects }
    }
}

/// How much room units take in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Stats")]
pub struct MemoryStats {
    /// The bank; absent for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank: Option<Bank>,
    /// All of the parts.
    pub bytes: u64,
    /// Part by part.
    pub parts: MemoryFootprint,
    /// The offsets that it reflects.
    pub reflects: Vec<LogPosition>,
    /// Where the request has `plain_ids`: the banks with turns whose ids hold a phone number or a mail address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_ids: Option<Vec<PlainIdCount>>,
}

/// Turns whose ids hold a phone number or a mail address, as earlier builds stored them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PlainIds")]
pub struct PlainIdCount {
    /// The bank.
    pub bank: Bank,
    /// How many turns.
    pub turns: u64,
}

impl PlainIdCount {
    /// Those of some banks; banks without are left out.
    ///
    /// # Errors
    /// As [`count_plain_ids`].
    pub fn of(
        log: &dyn Log,
        banks: impl IntoIterator<Item = Bank>,
        cancellation: &Cancellation,
    ) -> Result<Vec<Self>, PipelineError> {
        let mut found = Vec::new();
        for bank in banks {
            let turns = count_plain_ids(log, &bank, cancellation)?;
            found.extend((turns > 0).then_some(Self { bank, turns }));
        }
        Ok(found)
    }
}

impl MemoryStats {
    /// The response for the memory's footprint.
    #[must_use]
    pub fn of(
        bank: Option<Bank>,
        measured: DataflowAnswer<MemoryFootprint>,
        plain_ids: Option<Vec<PlainIdCount>>,
    ) -> Self {
        let DataflowAnswer { value: parts, reflects, .. } = measured;
        Self { bank, bytes: parts.bytes(), parts, reflects, plain_ids }
    }
}
