//! What the log on Kafka does beside reading and writing: checks that its last commits are visible to others, counts
//! unread records, and gives turns and dead letters their written form.
//!
//! In: owned partitions, and positions. Out: no transaction of this process that the cluster left open, and counts. The
//! log's own readers keep their positions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Instant,
};

use super::{
    KafkaLog, control_records,
    record_values::error_headers,
    transactional_producer::OutgoingRecord,
    unmarked_transactions::{CHECK_INTERVAL, ENDING, ProducerPartitions},
    unread_counter::{UnreadCount, UnreadCounter},
};
use crate::{Log as _, LogError, Topic, partition_of};
use types::{
    model::{DeadLetter, TurnEvent},
    sync,
};

impl KafkaLog {
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
