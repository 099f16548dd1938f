//! Ends an owner's transactions that have ended for the cluster, but still look open to a partition.
//!
//! The end of a transaction is a marker in each partition that it wrote to. A cluster that was killed before it wrote
//! the markers, or that elected a leader without them, may never write them: Kafka 4.3 treats the partitions of a
//! broker that has just started as deleted. Then no newer owner and no timeout ends the transaction, and a reader of
//! committed records stops before it for good.
//!
//! In: an owner without an open transaction, and the partitions that it may have written to. Out: none of this owner's
//! transactions is open there any more. A producer's next marker also ends what it left open, so the owner writes the
//! records of that transaction again and commits them; if the last record of the transaction was never written, it
//! aborts instead. Writing twice has the effect of any redelivery: a memory record replaces itself, and a turn changes
//! nothing.

use super::log_events;
use std::{
    collections::HashMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use rdkafka::{
    consumer::BaseConsumer,
    message::{Header, OwnedHeaders},
};

use super::{
    client::{ATTEMPT_TIMEOUT, KafkaClientState, KafkaCluster, drop_in_background},
    partition_reader::{PartitionReader, ReadIsolation, span},
    transactional_producer::{OutgoingRecord, TransactionalProducer},
};
use crate::{LogError, RawRecord};
use types::sync;

/// The header of a turn or a dead letter that names the owner whose transaction wrote it.
const OWNER_HEADER: &str = "ripplemem_owner";
/// How long a transaction that is ending may still look open.
pub(super) const ENDING: Duration = Duration::from_millis(500);
/// After this time, a commit that was visible is checked again.
const CHECKED_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// The pause between two checks.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Records that are read at once.
const READ_AT_ONCE: usize = 256;

impl OutgoingRecord<'_> {
    /// This record, for a topic that all owners share, with the name of its owner.
    pub(super) fn with_owner_header(self, owner: &str) -> Self {
        let headers = self.headers.unwrap_or_default().insert(Header { key: OWNER_HEADER, value: Some(owner) });
        Self { headers: Some(headers), ..self }
    }
}

/// Where an owner writes.
pub(super) struct ProducerPartitions<'a> {
    /// The topic and partition of the record that ends each of its transactions.
    pub home: (&'a str, u32),
    /// The key of that record.
    pub last_key: &'a [u8],
    /// Whether the owner writes records of this key there.
    pub is_ours: &'a dyn Fn(&[u8]) -> bool,
    /// The other partitions; there its records have [`OWNER_HEADER`].
    pub beside: Vec<(String, u32)>,
}

/// The ends of partitions, for readers of one kind.
pub(super) struct ClusterEnds {
    sees: ReadIsolation,
    watch: KafkaClientState,
    client: BaseConsumer<KafkaClientState>,
}

impl ClusterEnds {
    /// Connects to the cluster.
    pub(super) fn open(cluster: &KafkaCluster, sees: ReadIsolation) -> Result<Self, LogError> {
        let (watch, client) = sees.consumer(cluster, "the ends of partitions")?;
        Ok(Self { sees, watch, client })
    }

    /// The offset after the last record that a reader of this kind is shown.
    pub(super) fn of(&mut self, cluster: &KafkaCluster, (topic, partition): (&str, u32)) -> Result<u64, LogError> {
        if self.watch.stranded() {
            let fresh = Self::open(cluster, self.sees)?;
            drop_in_background(std::mem::replace(self, fresh).client);
        }
        let timeout = ATTEMPT_TIMEOUT.min(cluster.timeout());
        span(cluster, &self.client, &self.watch, (topic, partition as i32), timeout).map(|(_, end)| end)
    }
}

/// A partition whose last records are not shown: the first offset that is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HiddenRange {
    topic: String,
    partition: u32,
    from: u64,
}

impl ProducerPartitions<'_> {
    /// The partitions that still hide records after [`ENDING`].
    fn hidden(&self, cluster: &KafkaCluster) -> Result<Vec<HiddenRange>, LogError> {
        let (mut all, mut committed) =
            (ClusterEnds::open(cluster, ReadIsolation::All)?, ClusterEnds::open(cluster, ReadIsolation::Committed)?);
        let until = Instant::now() + ENDING;
        let beside = self.beside.iter().map(|(topic, partition)| (topic.as_str(), *partition));
        let mut places: Vec<(&str, u32)> = std::iter::once(self.home).chain(beside).collect();
        loop {
            let mut hidden = Vec::new();
            for (topic, partition) in std::mem::take(&mut places) {
                let written = all.of(cluster, (topic, partition))?;
                let from = committed.of(cluster, (topic, partition))?;
                if from < written {
                    hidden.push(HiddenRange { topic: topic.to_owned(), partition, from });
                    places.push((topic, partition));
                }
            }
            if hidden.is_empty() || Instant::now() > until {
                return Ok(hidden);
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }

    /// The owner's open transaction in its home; `None` if another owner's transaction hides it.
    fn read_home(&self, cluster: &KafkaCluster, hidden: &HiddenRange) -> Result<Option<HomeTransaction>, LogError> {
        let mut open: Option<HomeTransaction> = None;
        hidden.each(cluster, &mut |raw| {
            let is_ours = (self.is_ours)(&raw.record.key);
            if is_ours {
                let open = open.get_or_insert_with(HomeTransaction::default);
                open.is_whole |= raw.record.key == self.last_key;
                open.records.push(raw);
            }
            // The owner that began the hidden records ends them; then what lies behind them is decided.
            is_ours || open.is_some()
        })?;
        Ok(open)
    }
}

/// An open transaction of an owner in its home.
#[derive(Default)]
struct HomeTransaction {
    records: Vec<RawRecord>,
    /// Whether the record that ends it was written.
    is_whole: bool,
}

impl HiddenRange {
    /// Reads what is hidden, until `each` returns false.
    fn each(&self, cluster: &KafkaCluster, each: &mut dyn FnMut(RawRecord) -> bool) -> Result<(), LogError> {
        let mut reader = PartitionReader::open_for(cluster, &self.topic, self.partition, ReadIsolation::All)?;
        let mut from = self.from;
        loop {
            let raw = reader.read(cluster, from, READ_AT_ONCE)?;
            let Some(last) = raw.last() else { return Ok(()) };
            from = last.record.offset + 1;
            for raw in raw {
                if !each(raw) {
                    return Ok(());
                }
            }
        }
    }

    /// The hidden records that this owner wrote.
    fn all_of(&self, cluster: &KafkaCluster, owner: &str) -> Result<Vec<RawRecord>, LogError> {
        let mut found = Vec::new();
        self.each(cluster, &mut |raw| {
            let is_ours = |(key, value): &(String, Option<Vec<u8>>)| {
                key == OWNER_HEADER && value.as_deref() == Some(owner.as_bytes())
            };
            if raw.headers.iter().any(is_ours) {
                found.push(raw);
            }
            true
        })?;
        Ok(found)
    }
}

impl TransactionalProducer {
    /// Ends the transactions that this owner left open. Those of another owner stay open.
    ///
    /// # Errors
    /// As [`Self::commit`].
    pub(super) fn end_unmarked(&self, cluster: &KafkaCluster, places: &ProducerPartitions<'_>) -> Result<(), LogError> {
        let hidden = places.hidden(cluster)?;
        let (mut again, mut is_whole) = (Vec::new(), true);
        // The home comes first.
        for of in &hidden {
            let records = if (of.topic.as_str(), of.partition) == places.home {
                let Some(open) = places.read_home(cluster, of)? else { return Ok(()) };
                is_whole = open.is_whole;
                open.records
            } else {
                of.all_of(cluster, self.name())?
            };
            if !records.is_empty() {
                let (how, HiddenRange { topic, partition, from }) =
                    (if is_whole { "committed" } else { "aborted" }, of);
                log_events::open_transaction_ended(topic, *partition, *from, how);
            }
            again.extend(records.into_iter().map(|raw| (of, raw)));
        }
        if again.is_empty() {
            return Ok(());
        }
        // The record that ends a transaction comes last.
        let (home, beside): (Vec<_>, Vec<_>) =
            again.iter().partition(|(of, _)| (of.topic.as_str(), of.partition) == places.home);
        let records = beside.into_iter().chain(home).map(|(of, raw)| OutgoingRecord {
            topic: &of.topic,
            partition: Some(of.partition),
            key: Some(raw.record.key.as_slice()).filter(|key| !key.is_empty()),
            value: raw.record.value.as_deref(),
            headers: Some(headers_of(raw)).filter(|_| !raw.headers.is_empty()),
        });
        if is_whole { self.commit(cluster, records).map(drop) } else { self.write_and_abort(cluster, records) }
    }
}

/// The last commit of each partition, until it is known to be visible to others.
#[derive(Default)]
pub(super) struct UnseenCommits {
    last: Mutex<HashMap<u32, LastCommit>>,
    /// Opened by the first check.
    ends: Mutex<Option<ClusterEnds>>,
}

/// The last offset in each partition, and when to check it next.
#[derive(Clone)]
struct LastCommit {
    due: Instant,
    last: HashMap<(String, i32), i64>,
}

impl UnseenCommits {
    /// Notes what was committed.
    pub(super) fn note(&self, partition: u32, last: HashMap<(String, i32), i64>) {
        sync::lock(&self.last).insert(partition, LastCommit { due: Instant::now() + ENDING, last });
    }

    /// The commit to check now. It is checked again later, because a cluster may lose what it has shown.
    pub(super) fn due(&self, partition: u32) -> Option<HashMap<(String, i32), i64>> {
        let mut last = sync::lock(&self.last);
        let commit = last.get_mut(&partition).filter(|commit| commit.due <= Instant::now())?;
        commit.due = Instant::now() + CHECKED_AGAIN_AFTER;
        Some(commit.last.clone())
    }

    /// Forgets a partition that another owner has now, or whose owner checks all of it first.
    pub(super) fn forget(&self, partition: u32) {
        sync::lock(&self.last).remove(&partition);
    }

    /// Whether readers of committed records are shown these offsets.
    pub(super) fn shows(&self, cluster: &KafkaCluster, last: &HashMap<(String, i32), i64>) -> Result<bool, LogError> {
        let mut ends = sync::lock(&self.ends);
        let ends = match &mut *ends {
            Some(ends) => ends,
            None => ends.insert(ClusterEnds::open(cluster, ReadIsolation::Committed)?),
        };
        for ((topic, partition), offset) in last {
            if ends.of(cluster, (topic, partition.unsigned_abs()))? <= offset.unsigned_abs() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn headers_of(raw: &RawRecord) -> OwnedHeaders {
    let mut headers = OwnedHeaders::new();
    for (key, value) in &raw.headers {
        headers = headers.insert(Header { key, value: value.as_ref() });
    }
    headers
}
