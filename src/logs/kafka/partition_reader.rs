//! A reader of one partition, in order.
//!
//! In: an offset and a limit. Out: records. A read ends early only at the end that it must reach:
//! the end when the reader was opened, or the last record that this process wrote since, whichever
//! is later. Records of other writers appear once the broker delivers them. An offset that has
//! expired is an error; the reader never skips ahead.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
    message::{BorrowedMessage, Headers},
    util::Timeout,
};

use super::client::{ATTEMPT_TIMEOUT, KafkaClientState, KafkaCluster, drop_in_background};
use crate::{LogError, LogRecord, RawRecord};
use types::wake_signal::WakeSignal;

/// Kilobytes of a partition to prefetch: four fetches.
const QUEUED_KILOBYTES: usize = 1_024;
/// How long to wait for open transactions before the thread serves other partitions.
const SETTLING: Duration = Duration::from_secs(10);
/// Timeout of one poll.
const POLL: Duration = Duration::from_millis(20);

impl RawRecord {
    /// The record of a message.
    pub fn of(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().map_or_else(Vec::new, |headers| {
            headers.iter().map(|h| (h.key.to_owned(), h.value.map(<[u8]>::to_vec))).collect()
        });
        let record = LogRecord {
            offset: message.offset().unsigned_abs(),
            append_ms: message.timestamp().to_millis().unwrap_or_default(),
            key: message.key().unwrap_or_default().to_vec(),
            value: message.payload().map(<[u8]>::to_vec),
        };
        Self { record, headers }
    }
}

/// The first stored offset of a partition and the end of its committed records (the watermarks).
/// Retries for up to `timeout`.
pub fn span(
    cluster: &KafkaCluster,
    consumer: &BaseConsumer<KafkaClientState>,
    watch: &KafkaClientState,
    (topic, partition): (&str, i32),
    timeout: Duration,
) -> Result<(u64, u64), LogError> {
    // A partition has no leader for a moment while it moves.
    let until = Instant::now() + timeout;
    loop {
        let error = match consumer.fetch_watermarks(topic, partition, timeout) {
            Ok((low, high)) => return Ok((low.unsigned_abs(), high.unsigned_abs())),
            Err(error) => error,
        };
        let failed = cluster.failed(watch, format!("asking for the end of {topic}/{partition}"), &error);
        if !matches!(failed, LogError::Cluster { retriable: true, .. }) || Instant::now() > until {
            return Err(failed);
        }
        std::thread::sleep(POLL);
        // An idle client does not refresh its metadata, and would not notice the new leader.
        drop(consumer.fetch_metadata(Some(topic), timeout));
    }
}

/// Which records a reader is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadIsolation {
    /// Committed records, up to the first open transaction.
    Committed,
    /// Every record, also of transactions that are open or were aborted.
    All,
}

impl ReadIsolation {
    /// A client with this isolation.
    pub(super) fn consumer(
        self,
        cluster: &KafkaCluster,
        topic: &str,
    ) -> Result<(KafkaClientState, BaseConsumer<KafkaClientState>), LogError> {
        let watch = KafkaClientState::default();
        let mut config = cluster.reader(QUEUED_KILOBYTES);
        if self == Self::All {
            config.set("isolation.level", "read_uncommitted");
        }
        let made = config.create_with_context(watch.clone());
        let consumer = made.map_err(|e| cluster.failed(&watch, format!("opening {topic}"), &e))?;
        Ok((watch, consumer))
    }
}

/// A reader of one partition.
pub struct PartitionReader {
    topic: String,
    partition: i32,
    sees: ReadIsolation,
    pub(super) watch: KafkaClientState,
    consumer: BaseConsumer<KafkaClientState>,
    /// The offset that the consumer reads next; `None` before its first assignment.
    next: Option<u64>,
    /// The partition's end when the reader was opened.
    opened_end: u64,
    /// The end of what this process wrote. A read must reach it, even while the transaction marker
    /// that makes those records visible is still on its way.
    written_end: u64,
    /// Whether `next` is the end; other writers may add records.
    ended: bool,
    /// Raised when records may be waiting.
    news: Option<Arc<WakeSignal>>,
}

impl PartitionReader {
    /// Asks where the partition ends now; reads nothing yet. In a topic to which only transactions write
    /// (`transactional`), the last offset is a transaction marker, not a record.
    pub fn open(cluster: &KafkaCluster, topic: &str, partition: u32, transactional: bool) -> Result<Self, LogError> {
        let mut reader = Self::open_for(cluster, topic, partition, ReadIsolation::Committed)?;
        reader.opened_end = reader.opened_end.saturating_sub(u64::from(transactional));
        Ok(reader)
    }

    /// As [`Self::open`], with another isolation.
    pub(super) fn open_for(
        cluster: &KafkaCluster,
        topic: &str,
        partition: u32,
        sees: ReadIsolation,
    ) -> Result<Self, LogError> {
        let (watch, consumer) = sees.consumer(cluster, topic)?;
        let mut reader = Self {
            topic: topic.to_owned(),
            partition: partition as i32,
            sees,
            watch,
            consumer,
            next: None,
            opened_end: 0,
            written_end: 0,
            ended: false,
            news: None,
        };
        reader.opened_end = reader.span(cluster)?.1;
        Ok(reader)
    }

    /// The first stored offset, and the end of the committed records.
    pub fn span(&mut self, cluster: &KafkaCluster) -> Result<(u64, u64), LogError> {
        let until = Instant::now() + cluster.timeout();
        loop {
            let of = (self.topic.as_str(), self.partition);
            match span(cluster, &self.consumer, &self.watch, of, ATTEMPT_TIMEOUT.min(cluster.timeout())) {
                Err(LogError::Cluster { retriable: true, .. }) if Instant::now() < until => {
                    self.replace_client(cluster)?
                }
                result => return result,
            }
        }
    }

    /// Waits until every transaction that wrote to the partition before this call has ended, and makes the next reads
    /// reach all of them. Only committed records up to the first open transaction are read: without this wait, the open
    /// transaction of a stalled writer hides what others committed after it, such as a position.
    ///
    /// # Errors
    /// [`LogError::Cluster`], worth a retry, if a transaction stays open for longer than ten seconds.
    pub fn settle(&mut self, cluster: &KafkaCluster) -> Result<(), LogError> {
        let until = Instant::now() + SETTLING.min(cluster.timeout());
        let (watch, all) = ReadIsolation::All.consumer(cluster, &self.topic)?;
        let of = (self.topic.as_str(), self.partition);
        let (_, written) = span(cluster, &all, &watch, of, cluster.timeout())?;
        drop_in_background(all);
        loop {
            let (_, committed) = self.span(cluster)?;
            if committed >= written {
                self.opened_end = self.opened_end.max(written.saturating_sub(1));
                return Ok(());
            }
            if Instant::now() > until {
                return Err(LogError::Cluster {
                    brokers: cluster.settings.brokers.clone(),
                    doing: format!("waiting for the transactions of {} up to offset {written}", self.name()),
                    problem: format!(
                        "a transaction that began at offset {committed} is still open; if that stays so, \
                         kafka-transactions.sh find-hanging --topic {} --partition {} shows it",
                        self.topic, self.partition
                    ),
                    remedy: "the cluster aborts it once its writer has been silent for too long; this request is tried again",
                    retriable: true,
                });
            }
            std::thread::sleep(POLL);
        }
    }

    /// Replaces a client that may be stranded. The next read assigns the new one.
    fn replace_client(&mut self, cluster: &KafkaCluster) -> Result<(), LogError> {
        let (watch, consumer) = self.sees.consumer(cluster, &self.topic)?;
        drop_in_background(std::mem::replace(&mut self.consumer, consumer));
        (self.watch, self.next, self.ended) = (watch, None, false);
        if let Some(news) = self.news.clone() {
            self.announce(&news);
        }
        Ok(())
    }

    /// From now on, raises the signal whenever records arrive.
    pub fn announce(&mut self, news: &Arc<WakeSignal>) {
        let raised = Arc::clone(news);
        self.consumer.set_nonempty_callback(move || raised.raise());
        self.news = Some(Arc::clone(news));
    }

    /// The first offset with this append time or a later one; the end when there is none.
    pub fn offset_at(&mut self, cluster: &KafkaCluster, append_ms: i64) -> Result<u64, LogError> {
        let mut list = TopicPartitionList::new();
        let doing = || format!("asking {} for a time", self.name());
        let failed = |e: &KafkaError| cluster.failed(&self.watch, doing(), e);
        let time = Offset::Offset(append_ms);
        list.add_partition_offset(&self.topic, self.partition, time).map_err(|e| failed(&e))?;
        let found = self.consumer.offsets_for_times(list, cluster.timeout()).map_err(|e| failed(&e))?;
        match found.elements().first().map(|element| (element.error(), element.offset())) {
            Some((Ok(()), Offset::Offset(offset))) => Ok(offset.unsigned_abs()),
            Some((Err(error), _)) => Err(failed(&error)),
            _ => Ok(self.span(cluster)?.1),
        }
    }

    /// Makes the next reads reach this offset: this process wrote a record before it.
    pub fn must_reach(&mut self, offset: u64) {
        if offset > self.written_end {
            self.written_end = offset;
            self.ended = false;
        }
    }

    /// Makes the next reads reach `end`, the partition's end now. The last offsets may hold markers.
    pub fn reach(&mut self, end: u64) {
        if end > self.opened_end {
            // The client reports the end of a partition only once; after a seek it reports it again.
            (self.opened_end, self.next, self.ended) = (end, None, false);
        }
    }

    /// The partition is known to reach at least this offset.
    pub fn known_end(&self) -> u64 {
        self.next.unwrap_or_default().max(self.opened_end).max(self.written_end)
    }

    /// Reads up to `limit` records from `from` on; fewer only at the end.
    pub fn read(&mut self, cluster: &KafkaCluster, from: u64, limit: usize) -> Result<Vec<RawRecord>, LogError> {
        if self.watch.stranded() {
            self.replace_client(cluster)?;
        }
        let result = self.read_once(cluster, from, limit);
        if matches!(result, Err(LogError::Cluster { retriable: true, .. })) {
            self.replace_client(cluster)?;
        }
        result
    }

    /// As [`Self::read`], without replacing the client.
    pub(super) fn read_once(
        &mut self,
        cluster: &KafkaCluster,
        from: u64,
        limit: usize,
    ) -> Result<Vec<RawRecord>, LogError> {
        let mut records = Vec::new();
        if limit == 0 {
            return Ok(records);
        }
        if self.next != Some(from) {
            let end = self.span(cluster)?.1;
            if from > end.max(self.written_end) {
                return Ok(records);
            }
            self.seek(cluster, from)?;
            self.ended = from >= end && from >= self.written_end;
        }
        let mut deadline = Instant::now() + cluster.timeout();
        while records.len() < limit {
            let at_end =
                self.ended || self.next.is_some_and(|next| next >= self.opened_end && next >= self.written_end);
            let wait = if at_end { Timeout::from(Duration::ZERO) } else { POLL.into() };
            match self.consumer.poll(wait) {
                Some(Ok(message)) => {
                    let raw = RawRecord::of(&message);
                    self.next = Some(raw.record.offset + 1);
                    self.ended = false;
                    deadline = Instant::now() + cluster.timeout();
                    records.push(raw);
                }
                Some(Err(KafkaError::PartitionEOF(_))) => {
                    self.ended = self.next.is_some_and(|next| next >= self.written_end);
                }
                Some(Err(error)) => self.check(cluster, &error)?,
                None if at_end => break,
                None if Instant::now() > deadline => {
                    let error = KafkaError::MessageConsumption(RDKafkaErrorCode::OperationTimedOut);
                    return Err(cluster.failed(&self.watch, format!("reading {}", self.name()), &error));
                }
                None => {}
            }
        }
        Ok(records)
    }

    fn name(&self) -> String {
        format!("{}/{}", self.topic, self.partition)
    }

    /// Makes the consumer continue at offset `from`.
    pub(super) fn seek(&mut self, cluster: &KafkaCluster, from: u64) -> Result<(), LogError> {
        let mut list = TopicPartitionList::new();
        let failed =
            |e: &KafkaError| cluster.failed(&self.watch, format!("going to offset {from} of {}", self.name()), e);
        list.add_partition_offset(&self.topic, self.partition, Offset::Offset(from as i64)).map_err(|e| failed(&e))?;
        self.consumer.assign(&list).map_err(|e| failed(&e))?;
        // librdkafka 2.12 ends the process (`rktp_started`) if a partition is assigned again, or the client dropped,
        // before it has processed the stop of the previous assignment. Its only queue is served in order: the first
        // answer comes after the stop is sent, the second after it is processed.
        for _ in 0..2 {
            self.consumer.assignment().map_err(|e| failed(&e))?;
        }
        self.next = Some(from);
        self.ended = false;
        Ok(())
    }

    /// Fails on an error that a retry cannot fix.
    fn check(&mut self, cluster: &KafkaCluster, error: &KafkaError) -> Result<(), LogError> {
        use RDKafkaErrorCode as E;
        match error.rdkafka_error_code() {
            Some(E::AutoOffsetReset | E::OffsetOutOfRange) => {
                let position = self.next.unwrap_or_default();
                let (earliest, _) = self.span(cluster)?;
                if earliest <= position {
                    // A broker that has just started may know less of the partition than it showed before.
                    return Err(cluster.failed(&self.watch, format!("reading {} at {position}", self.name()), error));
                }
                Err(LogError::Expired { partition: self.partition as u32, position, earliest })
            }
            Some(E::TopicAuthorizationFailed | E::GroupAuthorizationFailed) => {
                Err(cluster.failed(&self.watch, format!("reading {}", self.name()), error))
            }
            // The client retries until the read's deadline.
            _ => Ok(()),
        }
    }
}
