//! The producer that commits to a partition as its only owner (decision 28).
//!
//! In: transactions. Out: each is written as a whole or not at all. A newer owner of the same
//! partition fences this one: its commit fails, and none of its records becomes visible. The queue is drained before
//! the commit, because librdkafka would sleep for up to 100 ms there.

use super::log_events;
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use rdkafka::{
    error::{KafkaError, RDKafkaErrorCode},
    message::OwnedHeaders,
    producer::{BaseProducer, BaseRecord, Producer},
};
use tracing::debug_span;

use super::client::{ATTEMPT_TIMEOUT, KafkaClientState, KafkaCluster};
use crate::LogError;

/// One record to write.
pub struct OutgoingRecord<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its partition; `None`: chosen by its key.
    pub partition: Option<u32>,
    /// Its key, which may be empty; `None`: no key.
    pub key: Option<&'a [u8]>,
    /// Its value; `None` deletes the key.
    pub value: Option<&'a [u8]>,
    /// Its headers.
    pub headers: Option<OwnedHeaders>,
}

/// Queues a record; waits until `until` at the latest for space in the queue.
pub fn send(
    producer: &BaseProducer<KafkaClientState>,
    out: OutgoingRecord<'_>,
    until: Instant,
) -> Result<(), KafkaError> {
    let OutgoingRecord { topic, partition, key, value, headers } = out;
    let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(topic);
    if let Some(partition) = partition {
        record = record.partition(partition as i32);
    }
    if let Some(key) = key {
        record = record.key(key);
    }
    if let Some(value) = value {
        record = record.payload(value);
    }
    if let Some(headers) = headers {
        record = record.headers(headers);
    }
    loop {
        match producer.send(record) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) if Instant::now() < until => {
                record = back;
                producer.poll(Duration::from_millis(5));
            }
            Err((error, _)) => return Err(error),
        }
    }
}

/// Pause between polls for acknowledgements: the client's own `flush` keeps a core busy.
const DRAIN_PAUSE: Duration = Duration::from_micros(200);

/// Waits until every queued record is acknowledged or has failed. A client that has lost its brokers never gets there.
pub fn drain(producer: &BaseProducer<KafkaClientState>, until: Instant) -> Result<(), KafkaError> {
    while producer.in_flight_count() > 0 {
        producer.poll(Duration::ZERO);
        std::thread::sleep(DRAIN_PAUSE);
        if Instant::now() > until || producer.client().context().stranded() {
            return Err(KafkaError::MessageProduction(RDKafkaErrorCode::MessageTimedOut));
        }
    }
    Ok(())
}

/// The owner of one partition.
pub(super) struct TransactionalProducer {
    /// Its role and partition: `extract.3`.
    name: String,
    partition: u32,
    watch: KafkaClientState,
    producer: BaseProducer<KafkaClientState>,
}

/// The outcome of a commit.
pub(super) struct CommitOutcome {
    /// The last offset of each (topic, partition) that was written to.
    pub last: HashMap<(String, i32), i64>,
}

impl TransactionalProducer {
    /// Fences the previous owner of the partition in this role.
    pub(super) fn take(cluster: &KafkaCluster, role: &str, partition: u32) -> Result<Self, LogError> {
        let name = format!("{role}.{partition}");
        let id = format!("{}.{name}", cluster.settings.prefix);
        let until = Instant::now() + cluster.timeout();
        loop {
            let watch = KafkaClientState::default();
            let failed = |e: &_| cluster.failed(&watch, format!("taking over partition {partition}"), e);
            let producer: BaseProducer<KafkaClientState> =
                cluster.transactional(&id).create_with_context(watch.clone()).map_err(|e| failed(&e))?;
            match producer.init_transactions(ATTEMPT_TIMEOUT.min(cluster.timeout())) {
                Ok(()) => return Ok(Self { name, partition, watch, producer }),
                Err(error) if retriable(&error) && Instant::now() < until => {}
                Err(error) => {
                    producer.poll(Duration::from_millis(10));
                    return Err(failed(&error));
                }
            }
        }
    }

    /// Its role and partition.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Commits all records or none. Do not use this owner after an error.
    pub(super) fn commit<'a>(
        &self,
        cluster: &KafkaCluster,
        records: impl Iterator<Item = OutgoingRecord<'a>>,
    ) -> Result<CommitOutcome, LogError> {
        let _span = debug_span!("transaction", partition = self.partition).entered();
        let until = Instant::now() + cluster.timeout();
        let last = self.write(cluster, records, until)?;
        loop {
            match self.producer.commit_transaction(ATTEMPT_TIMEOUT.min(cluster.timeout())) {
                Ok(()) => {
                    log_events::transaction_committed();
                    return Ok(CommitOutcome { last });
                }
                Err(error) if retriable(&error) && Instant::now() < until && !self.watch.stranded() => {}
                Err(error) => {
                    if matches!(&error, KafkaError::Transaction(e) if e.txn_requires_abort()) {
                        self.abort(cluster);
                    }
                    return Err(self.failed(cluster, "committing a transaction", &error));
                }
            }
        }
    }

    /// Writes records and aborts, so that no reader is shown them. Do not use this owner after an error.
    pub(super) fn write_and_abort<'a>(
        &self,
        cluster: &KafkaCluster,
        records: impl Iterator<Item = OutgoingRecord<'a>>,
    ) -> Result<(), LogError> {
        drop(self.write(cluster, records, Instant::now() + cluster.timeout())?);
        let aborted = self.producer.abort_transaction(cluster.timeout());
        aborted.map_err(|e| self.failed(cluster, "aborting a transaction", &e))
    }

    /// Begins a transaction and writes its records; returns the last offset in each partition.
    fn write<'a>(
        &self,
        cluster: &KafkaCluster,
        records: impl Iterator<Item = OutgoingRecord<'a>>,
        until: Instant,
    ) -> Result<HashMap<(String, i32), i64>, LogError> {
        self.producer.begin_transaction().map_err(|e| self.failed(cluster, "beginning a transaction", &e))?;
        drop(self.watch.take_deliveries());
        for record in records {
            let (topic, length) = (record.topic.to_owned(), record.value.map_or(0, <[u8]>::len));
            if let Err(error) = send(&self.producer, record, until) {
                self.abort(cluster);
                let doing = format!("writing a record of {length} bytes to {topic}");
                return Err(self.failed(cluster, &doing, &error));
            }
        }
        if let Err(error) = drain(&self.producer, until) {
            return Err(self.failed(cluster, "writing a transaction", &error));
        }
        let deliveries = self.watch.take_deliveries();
        if let Some(error) = deliveries.failed {
            self.abort(cluster);
            return Err(self.failed(cluster, "writing a transaction", &error));
        }
        Ok(deliveries.last)
    }

    /// If this fails, the next owner or the broker's transaction timeout aborts the transaction.
    fn abort(&self, cluster: &KafkaCluster) {
        drop(self.producer.abort_transaction(ATTEMPT_TIMEOUT.min(cluster.timeout())));
    }

    fn failed(&self, cluster: &KafkaCluster, doing: &str, error: &KafkaError) -> LogError {
        use RDKafkaErrorCode as E;
        let fenced = |code| {
            matches!(code, E::Fenced | E::ProducerFenced | E::InvalidProducerEpoch | E::InvalidProducerIdMapping)
        };
        let fatal = self.producer.client().fatal_error().map(|(code, _)| code);
        if error.rdkafka_error_code().into_iter().chain(fatal).any(fenced) {
            return LogError::Fenced { partition: self.partition };
        }
        cluster.failed(&self.watch, format!("{doing} of partition {}", self.partition), error)
    }
}

fn retriable(error: &KafkaError) -> bool {
    matches!(error, KafkaError::Transaction(e) if e.is_retriable())
}
