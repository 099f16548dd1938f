//! The records of a topic of a log in a directory, for commands on this machine that read the log of a running service.
//!
//! In: the caller, who needs the right `admin`, a topic, a partition and an offset. Out: a page of its records, byte by
//! byte as they are stored, and which records of a bank are live.

use std::{ops::ControlFlow, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocking_work::blocking,
    operations::ServiceOperations,
    problem::{ApiProblem, ProblemCode},
};
use crate::access::{AccessRight, Caller};
use logs::{Log, LogError, LogRecord, RawRecord, TopicView};
use pipeline::PipelineError;
use types::model::{Bank, MemoryKey};

/// Topics whose records are shown.
const TOPICS: [&str; 3] = ["turns", "memory", "dead-letters"];
/// Most records of a page.
const MAX_RECORDS: usize = 1_024;
/// Records read at once.
const READ_AT_ONCE: usize = 16;
/// A page ends with the record that brings its keys and values to this size, in bytes.
const PAGE_BYTES: usize = 8 << 20;

/// Which records of a topic are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPageRequest {
    /// turns, memory or dead-letters.
    pub topic: String,
    /// The partition; 0 without it.
    pub partition: Option<u32>,
    /// The first offset; 0 without it.
    pub from: Option<u64>,
    /// In place of `from`: the first record that was appended then or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Most records; 64 without it. 0 asks for the offsets alone.
    pub limit: Option<usize>,
    /// Of the topic memory: the bank whose live records are listed, too.
    pub bank: Option<Bank>,
}

/// A page of the records of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Records")]
pub struct RecordPage {
    /// How many partitions the topic has.
    pub partitions: u32,
    /// The first stored offset of the partition.
    pub first: u64,
    /// The offset that its next record will get.
    pub end: u64,
    /// The offset of the first record that was asked for.
    pub from: u64,
    /// In order; none at the end of the partition. There may be fewer than were asked for.
    pub records: Vec<StoredRecord>,
    /// With `bank`: the offsets of the bank's live records in the partition, as of one moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Vec<u64>>,
}

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoredRecord {
    /// Its offset.
    pub offset: u64,
    /// When it was appended, in milliseconds since 1970.
    pub append_ms: i64,
    /// The bytes of its key, in base64.
    pub key: String,
    /// The bytes of its value, in base64; null if it deletes its key.
    pub value: Option<String>,
}

impl StoredRecord {
    fn of(record: &LogRecord) -> Self {
        Self {
            offset: record.offset,
            append_ms: record.append_ms,
            key: BASE64.encode(&record.key),
            value: record.value.as_ref().map(|value| BASE64.encode(value)),
        }
    }

    /// The record's bytes.
    ///
    /// # Errors
    /// Text that is not base64.
    pub fn bytes(&self) -> Result<RawRecord, base64::DecodeError> {
        let record = LogRecord {
            offset: self.offset,
            append_ms: self.append_ms,
            key: BASE64.decode(&self.key)?,
            value: self.value.as_ref().map(|value| BASE64.decode(value)).transpose()?,
        };
        Ok(RawRecord { record, headers: Vec::new() })
    }
}

impl ServiceOperations {
    /// A page of the records of a topic.
    ///
    /// # Errors
    /// [`ApiProblem`] without the right, on Kafka, or for a topic or partition that is not there.
    pub async fn records(&self, who: &Caller, read: RecordPageRequest) -> Result<RecordPage, ApiProblem> {
        who.may_everywhere(AccessRight::Admin)?;
        let RecordPageRequest { topic, partition, from, since_ms, limit, bank } = read;
        if self.log.erasable().is_none() {
            return Err(ApiProblem::invalid("the log is on Kafka: read its topics there"));
        }
        if !TOPICS.contains(&topic.as_str()) {
            return Err(ApiProblem::invalid(format!("topic {topic:?}: write one of {}", TOPICS.join(", "))));
        }
        if bank.is_some() && topic != "memory" {
            return Err(ApiProblem::invalid("bank: only the topic memory lists the live records of a bank"));
        }
        let mut view = TopicView::of(Arc::clone(&self.log), &topic);
        let (partition, partitions) = (partition.unwrap_or_default(), view.partitions());
        if partition >= partitions {
            let detail = format!("{topic}: no partition {partition}; it has {partitions}");
            return Err(ApiProblem::new(ProblemCode::NotFound, detail));
        }
        let log = Arc::clone(&self.log);
        let limit = limit.unwrap_or(READ_AT_ONCE * 4).min(MAX_RECORDS);
        blocking(move || {
            let failed = |error| ApiProblem::from(PipelineError::from(error));
            let (first, end) = view.span(partition).map_err(failed)?;
            let from = match since_ms {
                Some(since) => view.offset_at(partition, since).map_err(failed)?,
                None => from.unwrap_or_default(),
            };
            let (mut next, mut bytes, mut records) = (from, 0, Vec::new());
            while records.len() < limit && bytes < PAGE_BYTES {
                let read = view.read(partition, next, READ_AT_ONCE.min(limit - records.len())).map_err(failed)?;
                let Some(last) = read.last() else { break };
                next = last.record.offset + 1;
                for RawRecord { record, .. } in &read {
                    bytes += record.key.len() + record.value.as_ref().map_or(0, Vec::len);
                    records.push(StoredRecord::of(record));
                }
            }
            let live = bank.map(|bank| live_offsets(&*log, partition, &bank)).transpose().map_err(failed)?;
            Ok(RecordPage { partitions, first, end, from, records, live })
        })
        .await
    }
}

/// The offsets of a bank's live records.
fn live_offsets(log: &dyn Log, partition: u32, bank: &Bank) -> Result<Vec<u64>, LogError> {
    let mut live = Vec::new();
    let mut listed = |_: &[u8], offset| {
        live.push(offset);
        false
    };
    log.live_records(partition, &MemoryKey::prefix(bank), &mut listed, &mut |_| ControlFlow::Continue(()))?;
    Ok(live)
}
