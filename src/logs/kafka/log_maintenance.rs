//! What the log on Kafka does beside reading and writing: checks that its last commits are visible to others, counts
//! unread records, and gives turns and dead letters their written form.
//!
//! In: owned partitions, and positions. Out: no transaction of this process that the cluster left open, and counts. The
//! log's own readers keep their positions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::{
    KafkaLog, control_records,
    record_values::{check_sizes, error_headers, json_of},
    topic_retention::read_topic_retention,
    transactional_producer::OutgoingRecord,
    unmarked_transactions::{CHECK_INTERVAL, ENDING, ProducerPartitions},
    unread_counter::{UnreadCount, UnreadCounter},
};
use crate::{Log as _, LogError, Topic, TopicRetention, WritePosition, partition_of};
use types::{
    model::{DeadLetter, TurnEvent},
    sync,
};

/// For how long the known retention of the topics is used before it is read again.
const LEAVING_KNOWN: Duration = Duration::from_secs(60);

impl KafkaLog {
    /// When words leave the topics; known for a while once it was read.
    pub(super) fn known_retention(&self) -> Result<TopicRetention, LogError> {
        let mut known = sync::lock(&self.leaving);
        if let Some((_, leaving)) = known.as_ref().filter(|(asked, _)| asked.elapsed() < LEAVING_KNOWN) {
            return Ok(leaving.clone());
        }
        let leaving = read_topic_retention(self.cluster(), self.generation())?;
        Ok(known.insert((Instant::now(), leaving)).1.clone())
    }

    /// A turn as it is written.
    pub(super) fn outgoing_turn<'a>(&'a self, event: &'a TurnEvent, value: &'a [u8]) -> OutgoingRecord<'a> {
        OutgoingRecord {
            topic: self.name(Topic::Turns),
            partition: Some(partition_of(event.bank(), self.partitions())),
            key: Some(event.bank().as_str().as_bytes()),
            value: Some(value),
            headers: None,
        }
    }

    /// Appends events in one transaction, and returns where they lie.
    pub(super) fn append_in_transaction(&self, events: &[TurnEvent]) -> Result<WritePosition, LogError> {
        let values = json_of(Topic::Turns, events)?;
        check_sizes(Topic::Turns, 0, values.iter().map(Vec::as_slice))?;
        let records = events.iter().zip(&values).map(|(event, value)| self.outgoing_turn(event, value));
        let last = self.group_writer.write(self.cluster(), records)?;
        self.reach_written(&last);
        Ok(self.position_of(events, &last))
    }

    /// Where events lie, by the last offset of each partition.
    pub(super) fn position_of(&self, events: &[TurnEvent], last: &HashMap<(String, i32), i64>) -> WritePosition {
        let mut written = WritePosition::nothing(self.partitions());
        written.name_banks(events.iter().map(TurnEvent::bank));
        for ((_, partition), offset) in last {
            written.extend(partition.unsigned_abs(), offset.unsigned_abs() + 1);
        }
        written
    }

    /// A dead letter as it is written.
    pub(super) fn outgoing_letter<'a>(&'a self, letter: &DeadLetter, value: &'a [u8]) -> OutgoingRecord<'a> {
        OutgoingRecord {
            topic: self.name(Topic::DeadLetters),
            partition: Some(0),
            key: None,
            value: Some(value),
            headers: Some(error_headers(letter, self.name(Topic::Turns))),
        }
    }

    /// The partitions to which every owner may write.
    pub(super) fn shared_places(&self) -> Result<Vec<(String, u32)>, LogError> {
        let turns = (0..self.turns_partitions()?).map(|partition| (self.name(Topic::Turns).to_owned(), partition));
        Ok(turns.chain(std::iter::once((self.name(Topic::DeadLetters).to_owned(), 0))).collect())
    }

    /// Ends the transactions of an owned partition that the cluster left open.
    pub(super) fn end_unmarked(&self, partition: u32) -> Result<(), LogError> {
        let Some(owner) = sync::lock(&self.owners).get(&partition).cloned() else { return Ok(()) };
        let (home, last_key) = (partition % self.partitions(), control_records::key(partition));
        let places = ProducerPartitions {
            home: (self.name(Topic::Memory), home),
            last_key: &last_key,
            // Turns of a partition beyond those of the memory are only forwarded.
            is_ours: &|key| key == last_key || (home == partition && control_records::describe_key(key).is_none()),
            beside: self.shared_places()?,
        };
        sync::lock(&owner).end_unmarked(self.cluster(), &places)
    }

    /// Whether readers of committed records are shown the latest commit.
    pub(super) fn is_commit_visible(&self, last: &HashMap<(String, i32), i64>) -> Result<bool, LogError> {
        let until = Instant::now() + ENDING;
        loop {
            let is_shown = self.unseen.shows(self.cluster(), last)?;
            if is_shown || Instant::now() > until {
                return Ok(is_shown);
            }
            std::thread::sleep(CHECK_INTERVAL);
        }
    }

    /// Checks some time after a commit that the partition's readers are shown it, and ends its transaction if not.
    pub(super) fn check_last_commit(&self, partition: u32) -> Result<(), LogError> {
        let Some(last) = self.unseen.due(partition) else { return Ok(()) };
        match self.unseen.shows(self.cluster(), &last) {
            Ok(true) => Ok(()),
            Ok(false) => self.end_unmarked(partition),
            // No transaction can be ended while the cluster is unavailable.
            Err(LogError::Cluster { retriable: true, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Counts the records behind a position.
    pub(super) fn count_unread(&self, topic: Topic, partition: u32, position: u64) -> Result<UnreadCount, LogError> {
        self.check_partition(topic, partition)?;
        let of = (topic, partition);
        let known = sync::lock(&self.counters).get(&of).cloned();
        let counter = match known {
            Some(counter) => counter,
            None => {
                let counter = UnreadCounter::open(self.cluster(), self.name(topic), partition)?;
                Arc::clone(sync::lock(&self.counters).entry(of).or_insert_with(|| Arc::new(Mutex::new(counter))))
            }
        };
        sync::lock(&counter).count(self.cluster(), position)
    }
}
