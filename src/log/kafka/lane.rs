//! One partition read in order.
//!
//! In: where to begin, how many. Out: records, until the end that the reader must reach:
//! what was there when it began, and what this process wrote since. What others write comes
//! when the broker hands it over. A position that has expired is an error, never a jump.

use std::time::{Duration, Instant};

use rdkafka::{
    Message, Offset, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode},
    message::{BorrowedMessage, Headers},
    util::Timeout,
};

use super::{
    super::{LogError, Record},
    client::{Cluster, TRYING, Watch, let_go},
};

/// Kilobytes that are fetched ahead of a partition's reader.
const QUEUED_KILOBYTES: usize = 4_096;
/// One wait for the broker.
const POLL: Duration = Duration::from_millis(20);

/// A record with its headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    /// The record.
    pub record: Record,
    /// Its headers, in order.
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Raw {
    /// A message as it came.
    pub(crate) fn of(message: &BorrowedMessage<'_>) -> Self {
        let headers = message.headers().map_or_else(Vec::new, |headers| {
            headers.iter().map(|h| (h.key.to_owned(), h.value.map(<[u8]>::to_vec))).collect()
        });
        let record = Record {
            offset: message.offset().unsigned_abs(),
            append_ms: message.timestamp().to_millis().unwrap_or_default(),
            key: message.key().unwrap_or_default().to_vec(),
            value: message.payload().map(<[u8]>::to_vec),
        };
        Self { record, headers }
    }
}

/// The first offset of a partition that is left, and the one after the last that is committed;
/// asked for so long.
pub(crate) fn span(
    cluster: &Cluster,
    consumer: &BaseConsumer<Watch>,
    watch: &Watch,
    (topic, partition): (&str, i32),
    patience: Duration,
) -> Result<(u64, u64), LogError> {
    // A leader that moves, or that was late with its sign of life, is known again in a moment.
    let until = Instant::now() + patience;
    loop {
        let error = match consumer.fetch_watermarks(topic, partition, patience) {
            Ok((low, high)) => return Ok((low.unsigned_abs(), high.unsigned_abs())),
            Err(error) => error,
        };
        let told = cluster.failed(watch, format!("asking for the end of {topic}/{partition}"), &error);
        if !matches!(told, LogError::Cluster { passing: true, .. }) || Instant::now() > until {
            return Err(told);
        }
        std::thread::sleep(POLL);
        // A client that reads nothing keeps what it was told of a topic, also that nobody leads it.
        drop(consumer.fetch_metadata(Some(topic), patience));
    }
}

fn reader(cluster: &Cluster, topic: &str) -> Result<(Watch, BaseConsumer<Watch>), LogError> {
    let watch = Watch::default();
    let made = cluster.reader(QUEUED_KILOBYTES).create_with_context(watch.clone());
    let consumer = made.map_err(|e| cluster.failed(&watch, format!("opening {topic}"), &e))?;
    Ok((watch, consumer))
}

/// A reader of one partition.
pub(crate) struct Lane {
    topic: String,
    partition: i32,
    pub(super) watch: Watch,
    consumer: BaseConsumer<Watch>,
    /// Where the consumer goes on; none before it was told.
    next: Option<u64>,
    /// Where the partition ended when it was opened.
    reach: u64,
    /// Everything before this was written by this process: the end cannot lie before it,
    /// also while the mark that makes it visible is still on its way.
    must: u64,
    /// There is no more, but for what others write.
    ended: bool,
}

impl Lane {
    /// Reads nothing yet; notes where the partition ends now. In a topic that only
    /// transactions write to (`marked`), the last offset is the mark of the last one.
    pub(crate) fn open(cluster: &Cluster, topic: &str, partition: u32, marked: bool) -> Result<Self, LogError> {
        let (watch, consumer) = reader(cluster, topic)?;
        let mut lane = Self {
            topic: topic.to_owned(),
            partition: partition as i32,
            watch,
            consumer,
            next: None,
            reach: 0,
            must: 0,
            ended: false,
        };
        lane.reach = lane.span(cluster)?.1.saturating_sub(u64::from(marked));
        Ok(lane)
    }

    /// The first offset that is left, and the one after the last that is committed.
    pub(crate) fn span(&mut self, cluster: &Cluster) -> Result<(u64, u64), LogError> {
        let until = Instant::now() + cluster.timeout();
        loop {
            let place = (self.topic.as_str(), self.partition);
            match span(cluster, &self.consumer, &self.watch, place, TRYING.min(cluster.timeout())) {
                Err(LogError::Cluster { passing: true, .. }) if Instant::now() < until => self.renew(cluster)?,
                done => return done,
            }
        }
    }

    /// Another client in place of one that may be stranded; it goes on where it is told.
    fn renew(&mut self, cluster: &Cluster) -> Result<(), LogError> {
        let (watch, consumer) = reader(cluster, &self.topic)?;
        let_go(std::mem::replace(&mut self.consumer, consumer));
        (self.watch, self.next, self.ended) = (watch, None, false);
        Ok(())
    }

    /// The first offset whose record bears this time or a later one; the end where none does.
    pub(crate) fn offset_at(&mut self, cluster: &Cluster, append_ms: i64) -> Result<u64, LogError> {
        let mut list = TopicPartitionList::new();
        let doing = || format!("asking {} for a time", self.name());
        let failed = |e: &KafkaError| cluster.failed(&self.watch, doing(), e);
        let asked = Offset::Offset(append_ms);
        list.add_partition_offset(&self.topic, self.partition, asked).map_err(|e| failed(&e))?;
        let found = self.consumer.offsets_for_times(list, cluster.timeout()).map_err(|e| failed(&e))?;
        match found.elements().first().map(|element| (element.error(), element.offset())) {
            Some((Ok(()), Offset::Offset(offset))) => Ok(offset.unsigned_abs()),
            Some((Err(error), _)) => Err(failed(&error)),
            _ => Ok(self.span(cluster)?.1),
        }
    }

    /// A record before this offset was written by this process and must be seen.
    pub(crate) fn must_reach(&mut self, offset: u64) {
        if offset > self.must {
            self.must = offset;
            self.ended = false;
        }
    }

    /// Everything before this offset is known to be there.
    pub(crate) fn seen(&self) -> u64 {
        self.next.unwrap_or_default().max(self.reach).max(self.must)
    }

    /// Offsets from `position` on; 0 when none of them holds a record: marks of transactions
    /// have offsets, too.
    pub(crate) fn behind(&mut self, cluster: &Cluster, position: u64) -> Result<u64, LogError> {
        let at_end = |lane: &Self| lane.ended && lane.next == Some(position);
        // One who has read on is at work: there is something, and its place is left alone.
        if !at_end(self) && self.next.is_none_or(|next| next <= position) {
            self.read(cluster, position, 1)?;
        }
        if at_end(self) {
            return Ok(0);
        }
        Ok(self.span(cluster)?.1.saturating_sub(position))
    }

    /// At most `limit` records from `from` on; fewer only when the end was reached.
    pub(crate) fn read(&mut self, cluster: &Cluster, from: u64, limit: usize) -> Result<Vec<Raw>, LogError> {
        if self.watch.stranded() {
            self.renew(cluster)?;
        }
        let done = self.read_on(cluster, from, limit);
        if matches!(done, Err(LogError::Cluster { passing: true, .. })) {
            self.renew(cluster)?;
        }
        done
    }

    pub(super) fn read_on(&mut self, cluster: &Cluster, from: u64, limit: usize) -> Result<Vec<Raw>, LogError> {
        let mut records = Vec::new();
        if limit == 0 {
            return Ok(records);
        }
        if self.next != Some(from) {
            let end = self.span(cluster)?.1;
            if from > end.max(self.must) {
                return Ok(records);
            }
            self.begin(cluster, from)?;
            self.ended = from >= end && from >= self.must;
        }
        let mut patience = Instant::now() + cluster.timeout();
        while records.len() < limit {
            let at_end = self.ended || self.next.is_some_and(|next| next >= self.reach && next >= self.must);
            let wait = if at_end { Timeout::from(Duration::ZERO) } else { POLL.into() };
            match self.consumer.poll(wait) {
                Some(Ok(message)) => {
                    let raw = Raw::of(&message);
                    self.next = Some(raw.record.offset + 1);
                    self.ended = false;
                    patience = Instant::now() + cluster.timeout();
                    records.push(raw);
                }
                Some(Err(KafkaError::PartitionEOF(_))) => self.ended = self.next.is_some_and(|next| next >= self.must),
                Some(Err(error)) => self.judge(cluster, &error)?,
                None if at_end => break,
                None if Instant::now() > patience => {
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

    fn begin(&mut self, cluster: &Cluster, from: u64) -> Result<(), LogError> {
        let mut list = TopicPartitionList::new();
        let failed =
            |e: &KafkaError| cluster.failed(&self.watch, format!("going to offset {from} of {}", self.name()), e);
        list.add_partition_offset(&self.topic, self.partition, Offset::Offset(from as i64)).map_err(|e| failed(&e))?;
        self.consumer.assign(&list).map_err(|e| failed(&e))?;
        self.next = Some(from);
        self.ended = false;
        Ok(())
    }

    fn judge(&mut self, cluster: &Cluster, error: &KafkaError) -> Result<(), LogError> {
        use RDKafkaErrorCode as E;
        match error.rdkafka_error_code() {
            Some(E::AutoOffsetReset | E::OffsetOutOfRange) => {
                let position = self.next.unwrap_or_default();
                let (earliest, _) = self.span(cluster)?;
                Err(LogError::Expired { partition: self.partition as u32, position, earliest: earliest.max(position) })
            }
            Some(E::TopicAuthorizationFailed | E::GroupAuthorizationFailed) => {
                Err(cluster.failed(&self.watch, format!("reading {}", self.name()), error))
            }
            // The client goes on trying; the patience of the read decides.
            _ => Ok(()),
        }
    }
}
