//! Live sources on Kafka: turns and positions in one transaction.
//!
//! In: the names of sources, and transactions. Out: what each source committed last. The topic `sources` is compacted
//! and holds two records per source: its position under its name, and the names that it has given. A source's name
//! determines its partition of the topic, and the consumer group assigns that partition to one instance. A newer writer
//! of a source fences the earlier one.

use super::{
    KafkaLog,
    partition_reader::PartitionReader,
    record_values::{check_sizes, json_of},
    topic_setup::{self, OptionalTopics, SOURCES, SOURCES_PARTITIONS},
    transactional_producer::{OutgoingRecord, TransactionalProducer},
    unmarked_transactions::ProducerPartitions,
};
use crate::{
    DeletionRegistry, Log, LogError, SourceLog, SourceState, SourceTransaction, SourceWriter, Topic,
    WriteOutcomeRegistry, id_salt, murmur2::murmur2, source_log::names_key,
};
use types::model::IdSalt;

/// Records that are read at once.
const READ_AT_ONCE: usize = 256;

/// The key of the salt of ids. No source has a name with a space.
const SALT: &str = "id salt";
/// How often to try making the salt, while other processes try it too.
const SALT_ATTEMPTS: usize = 8;

/// The partition of a source.
#[must_use]
pub fn partition_of_source(source: &str) -> u32 {
    (murmur2(source.as_bytes()) & 0x7fff_ffff) % SOURCES_PARTITIONS
}

impl KafkaLog {
    /// Creates the topic of live sources, or checks it.
    ///
    /// # Errors
    /// [`LogError`], as [`Self::open`].
    pub fn ensure_sources(&self) -> Result<(), LogError> {
        let optional = OptionalTopics { sources: true, ..OptionalTopics::default() };
        topic_setup::ensure(self.cluster(), self.partitions(), optional).map(drop)
    }

    /// The salt that a record holds.
    fn salt_in(&self, stored: &[u8]) -> Result<IdSalt, LogError> {
        let salt = std::str::from_utf8(stored).ok().and_then(IdSalt::parse);
        salt.ok_or_else(|| self.no_salt("it is none".to_owned()))
    }

    fn no_salt(&self, problem: String) -> LogError {
        LogError::Cluster {
            brokers: self.cluster().settings.brokers.clone(),
            doing: format!("reading the salt of ids in {}", self.cluster().topic(SOURCES)),
            problem,
            remedy: "put back its record, or no turn that is read again is recognised",
            retriable: false,
        }
    }

    /// What a source committed last; empty for a source that never committed.
    fn state_of(&self, source: &str) -> Result<SourceState, LogError> {
        let topic = self.cluster().topic(SOURCES);
        let mut reader = PartitionReader::open(self.cluster(), &topic, partition_of_source(source), true)?;
        // Another source of the same partition may have stalled with an open transaction that hides our position.
        reader.settle(self.cluster())?;
        let (name, names) = (source.as_bytes().to_vec(), names_key(source));
        let mut state = SourceState::default();
        let mut from = reader.span(self.cluster())?.0;
        loop {
            let raw = reader.read(self.cluster(), from, READ_AT_ONCE)?;
            let Some(last) = raw.last() else { break };
            from = last.record.offset + 1;
            for record in raw.into_iter().map(|raw| raw.record) {
                if record.key == name {
                    state.cursor = record.value;
                } else if record.key == names {
                    state.names = record.value;
                }
            }
        }
        Ok(state)
    }
}

impl SourceLog for KafkaLog {
    fn take_source<'a>(&'a self, source: &str) -> Result<(Box<dyn SourceWriter + 'a>, SourceState), LogError> {
        // The previous writer is fenced first, so that what is read afterwards is final.
        let owner = TransactionalProducer::take(self.cluster(), &format!("source.{source}"), 0)?;
        let topic = self.cluster().topic(SOURCES);
        let writer = KafkaSourceWriter { log: self, owner, topic, source: source.to_owned() };
        writer.end_unmarked()?;
        let state = self.state_of(source)?;
        Ok((Box::new(writer), state))
    }

    /// The salt is stored like a source's position, under a name that no source can have. It has one writer at a time:
    /// an earlier writer is fenced, and what it wrote is read.
    fn id_salt_or(&self, first: Option<IdSalt>) -> Result<IdSalt, LogError> {
        self.ensure_sources()?;
        let mut outcome = Err(LogError::Fenced { partition: 0 });
        for _ in 0..SALT_ATTEMPTS {
            let (mut writer, state) = self.take_source(SALT)?;
            if let Some(stored) = state.cursor {
                return self.salt_in(&stored);
            }
            let salt = first.map_or_else(id_salt::random, Ok).map_err(|e| self.no_salt(e.to_string()))?;
            let cursor = salt.to_hex().into_bytes();
            outcome = writer.commit(&SourceTransaction { cursor, ..SourceTransaction::default() }).map(|()| salt);
            if !matches!(outcome, Err(LogError::Fenced { .. })) {
                break;
            }
        }
        outcome
    }

    fn made_id_salt(&self) -> Result<Option<IdSalt>, LogError> {
        if topic_setup::partitions_of(self.cluster(), &self.cluster().topic(SOURCES))? == 0 {
            return Ok(None);
        }
        self.state_of(SALT)?.cursor.map(|stored| self.salt_in(&stored)).transpose()
    }

    fn deletions(&self) -> &DeletionRegistry {
        &self.deletions
    }

    fn outcomes(&self) -> &WriteOutcomeRegistry {
        &self.outcomes
    }
}

struct KafkaSourceWriter<'a> {
    log: &'a KafkaLog,
    owner: TransactionalProducer,
    topic: String,
    source: String,
}

impl KafkaSourceWriter<'_> {
    /// Ends this source's transactions that the cluster left open.
    fn end_unmarked(&self) -> Result<(), LogError> {
        let (name, names) = (self.source.as_bytes(), names_key(&self.source));
        let places = ProducerPartitions {
            home: (&self.topic, partition_of_source(&self.source)),
            last_key: name,
            is_ours: &|key| key == name || key == names,
            beside: self.log.shared_places()?,
        };
        self.owner.end_unmarked(self.log.cluster(), &places)
    }
}

impl SourceWriter for KafkaSourceWriter<'_> {
    fn commit(&mut self, transaction: &SourceTransaction) -> Result<(), LogError> {
        let SourceTransaction { events, dead_letters, cursor, names } = transaction;
        let turns = json_of(Topic::Turns, events)?;
        let letters = json_of(Topic::DeadLetters, dead_letters)?;
        check_sizes(Topic::Turns, 0, turns.iter().map(Vec::as_slice))?;
        check_sizes(Topic::DeadLetters, 0, letters.iter().map(Vec::as_slice))?;
        let partition = Some(partition_of_source(&self.source));
        let names_key = names_key(&self.source);
        let state = |key, value| OutgoingRecord {
            topic: &self.topic,
            partition,
            key: Some(key),
            value: Some(value),
            headers: None,
        };
        let records = events
            .iter()
            .zip(&turns)
            .map(|(event, value)| self.log.outgoing_turn(event, value).with_owner_header(self.owner.name()));
        let records =
            records
                .chain(dead_letters.iter().zip(&letters).map(|(letter, value)| {
                    self.log.outgoing_letter(letter, value).with_owner_header(self.owner.name())
                }))
                .chain(names.iter().map(|names| state(&names_key, names)))
                .chain(std::iter::once(state(self.source.as_bytes(), cursor)));
        let committed = self.owner.commit(self.log.cluster(), records)?;
        self.log.reach_written(&committed.last);
        // The source may write nothing for a long time, and meanwhile no reader would be shown this commit.
        if self.log.is_commit_visible(&committed.last)? { Ok(()) } else { self.end_unmarked() }
    }
}
