//! The interface of both logs, with what a change of the embedding model and complete forgetting need of them.

use std::{ops::ControlFlow, sync::Arc};

use super::{
    KeyedValue, LiveKey, LogError, LogRecord, ReadBatch, ReadProgress, SourceLog, Topic, Transaction, TransactionEnd,
    WritePosition, partition_of,
};
use types::{
    model::{Bank, DeadLetter, ModelRef, TurnEvent},
    wake_signal::WakeSignal,
};

/// A durable log.
pub trait Log: SourceLog {
    /// The partition count of the memory topic, the divisor in [`super::partition_of`].
    fn partitions(&self) -> u32;
    /// Appends events to their banks' partitions ([`super::partition_of`]) and returns when they
    /// are durable: synced as the fsync policy says, or replicated by the cluster. After an error
    /// some of them may be in the log; appending all of them again is harmless.
    fn append_turns(&self, events: &[TurnEvent]) -> Result<WritePosition, LogError>;
    /// As [`Self::append_turns`], of events of one bank: readers see all of them at once or none, also if this process
    /// ends in between.
    fn append_together(&self, events: &[TurnEvent]) -> Result<WritePosition, LogError> {
        self.append_turns(events)
    }
    /// Appends a source's rejects.
    fn append_dead_letters(&self, letters: &[DeadLetter]) -> Result<(), LogError>;
    /// Becomes the only owner of a partition, and fences the previous owner: its commits fail
    /// from now on, and its open transaction is aborted.
    fn own(&self, partition: u32) -> Result<(), LogError>;
    /// Gives up a partition, and drops what this process holds for it.
    fn disown(&self, _partition: u32) {}
    /// Maintains an owned partition between its commits: ends a committed transaction that the cluster shows to no one.
    fn maintain(&self, _partition: u32) -> Result<(), LogError> {
        Ok(())
    }
    /// Raised when a topic may have grown, when the partitions of this process may have changed, or when a memory that
    /// follows this log accepts records again.
    fn news(&self) -> &Arc<WakeSignal>;
    /// Commits a transaction to an owned partition, all or nothing. After an error its outcome
    /// is unknown: own the partition again, and read what it holds.
    fn commit(&self, transaction: &Transaction) -> Result<(), LogError>;
    /// Reads up to `limit` live records from offset `from` on. A shorter read has reached the end:
    /// it includes everything that the log held when it was opened, and everything written through
    /// this value since. Records of other writers appear once the broker delivers them.
    fn read(&self, topic: Topic, partition: u32, from: u64, limit: usize) -> Result<ReadBatch, LogError>;
    /// The offset that the partition's next record will get.
    fn end(&self, topic: Topic, partition: u32) -> Result<u64, LogError>;
    /// The offset after the last turn that a turns partition has now, including turns of a transaction that is still
    /// open and commits later. Unlike [`Self::end`], a read position reaches it.
    fn end_of_turns(&self, partition: u32) -> Result<u64, LogError> {
        self.end(Topic::Turns, partition)
    }
    /// Where the last complete transaction of a partition of either memory topic ends.
    fn last_transaction(&self, topic: Topic, partition: u32) -> Result<TransactionEnd, LogError>;
    /// How many turns the turns partition has from `position` on. If there are many, those far behind are counted by
    /// their offsets, some of which may hold no turn.
    fn lag(&self, partition: u32, position: u64) -> Result<u64, LogError>;
    /// The first offset from `position` on that may hold a turn: on Kafka, the last offsets of a partition may hold
    /// markers of transactions, or turns of aborted ones.
    fn after_markers(&self, _partition: u32, position: u64) -> Result<u64, LogError> {
        Ok(position)
    }
    /// How many records the memory partition has from an offset on, counted as in [`Self::lag`].
    fn records_after(&self, partition: u32, offset: u64) -> Result<u64, LogError> {
        Ok(self.end(Topic::Memory, partition)?.saturating_sub(offset))
    }
    /// How far transactions cover the turns partition. If this value does not own the partition, a transaction that is
    /// still open may hide what was committed after it.
    fn progress(&self, partition: u32) -> Result<ReadProgress, LogError>;
    /// The first offset of the turns partition that no transaction covers, of any bank; see [`Self::progress`].
    fn read_position(&self, partition: u32) -> Result<u64, LogError> {
        Ok(self.progress(partition)?.low())
    }
    /// The keys of all live records of a memory partition, with their offsets, for a log that
    /// keeps deletions only until its next start. `None` for a log that keeps them for
    /// [`super::REMOVALS_KEPT_MS`].
    fn live_keys(&self, partition: u32) -> Result<Option<Vec<LiveKey>>, LogError>;
    /// Whether a later record of the memory topic has the same key as a record that was read, and so replaces it: for
    /// each key, only the last record counts. Always false for a log that returns only live records.
    fn is_replaced(&self, _partition: u32, _record: &LogRecord) -> Result<bool, LogError> {
        Ok(false)
    }
    /// Why a memory topic's control record, such as a read position, cannot be read. `None` for any other record, and
    /// for a log that returns no control records.
    fn control_problem(&self, _record: &LogRecord) -> Option<String> {
        None
    }
    /// Calls `each` with the live records of a memory partition whose keys begin with `prefix`, in key order, as of one
    /// moment, until `each` breaks. `wanted` decides by key and offset whether a record is read; it may be called for
    /// several records before the first is read. On Kafka the first call for a partition reads all of it, and later
    /// calls what was added since.
    fn live_records(
        &self,
        partition: u32,
        prefix: &[u8],
        wanted: &mut dyn FnMut(&[u8], u64) -> bool,
        each: &mut dyn FnMut(&LogRecord) -> ControlFlow<()>,
    ) -> Result<(), LogError>;
    /// The first offset of a bank's turns that [`Self::live_records`] may lack.
    fn listed_to(&self, bank: &Bank) -> Result<u64, LogError> {
        Ok(self.progress(partition_of(bank, self.partitions()))?.of(bank))
    }
    /// The entries beside the log's records whose names begin with `prefix`, by name.
    fn entries(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, LogError>;
    /// Appends events and changes entries in one write, all or nothing. On Kafka these are two writes, first the
    /// events, then the entries in order: after an error or a crash, only the first part may be written.
    fn append_with_entries(&self, events: &[TurnEvent], entries: Vec<LogEntry>) -> Result<WritePosition, LogError>;
    /// When words of deleted turns leave the log's topics, by the topics' settings; `None` for a log whose records are
    /// erased.
    fn topic_retention(&self) -> Result<Option<TopicRetention>, LogError> {
        Ok(None)
    }
    /// Calls `each` with every memory record that transactions of a turns partition wrote, in
    /// order, including superseded records that are still stored. Returns how far the turns are covered.
    fn replay(&self, partition: u32, each: &mut dyn FnMut(&LogRecord)) -> Result<ReadProgress, LogError>;
    /// The generation of the memory topic that this log reads and writes, from 1.
    fn generation(&self) -> u32;
    /// This log, if its records can be erased: not on Kafka, where topic settings decide how long records stay.
    fn erasable(&self) -> Option<&dyn ErasableLog> {
        None
    }
    /// This log, if other processes write to it: a key may have another record by now than the one that was read here.
    fn shared(&self) -> Option<&dyn SharedLog> {
        None
    }
    /// Fences the writer of the next generation: its copy may lack what was just written here.
    fn interrupt_next(&self) -> Result<(), LogError>;
}

/// A log whose memory moves to a topic of a later generation, for vectors of another model.
pub trait GenerationalLog: Log {
    /// Creates the next generation if it does not exist, and becomes its only writer.
    fn begin_next(&self) -> Result<(), LogError>;
    /// Writes records to the next generation, all or nothing, with the progress from which the partition will continue.
    fn fill_next(&self, partition: u32, records: &[KeyedValue], progress: &ReadProgress) -> Result<(), LogError>;
    /// Makes the next generation the current one, atomically, for every process that opens the log
    /// from now on. Do not use this value afterwards.
    fn switch(&self, model: &ModelRef) -> Result<(), LogError>;
    /// Deletes the generations before the current one; returns their names.
    fn drop_old(&self) -> Result<Vec<String>, LogError>;
}

/// An entry that a log keeps beside its records: its name, and its value; `None` removes it.
pub type LogEntry = (String, Option<Vec<u8>>);

/// When words leave topics whose settings decide how long records stay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicRetention {
    /// The milliseconds after which the last of these topics has dropped them.
    pub within_ms: u64,
    /// The topics that never drop them: a sentence for each, with the setting to change.
    pub never: Vec<String>,
}

/// A log to which several processes write: what a bank that sleeps needs beyond [`Log`].
pub trait SharedLog: Log {
    /// Calls `each` with the key and the offset of every live record of a memory partition whose key begins with one of
    /// the prefixes, and with the index of that prefix, as of one moment.
    fn places(
        &self,
        partition: u32,
        prefixes: &[Vec<u8>],
        each: &mut dyn FnMut(usize, &[u8], u64),
    ) -> Result<(), LogError>;
    /// Whether [`Self::places`] of a partition reads only what was added since an earlier call, and waits for no other
    /// call.
    fn has_places(&self, partition: u32) -> bool;
    /// The records of a memory partition at these offsets, in their order, also those that later records of their keys
    /// replaced. Those that compaction has removed are left out.
    fn records_at(&self, partition: u32, offsets: &[u64]) -> Result<Vec<LogRecord>, LogError>;
}

/// A log whose records can be erased: what complete forgetting needs beyond [`Log`].
pub trait ErasableLog: Log {
    /// Replaces the values of records of the turns or the dead letters, by offset, all or nothing. Offsets, keys and
    /// append times stay.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if the topic holds no such record.
    fn replace(&self, topic: Topic, partition: u32, values: &[(u64, Vec<u8>)]) -> Result<(), LogError>;
    /// Removes from the disk every byte that was replaced, superseded or deleted before the call, and every generation
    /// of the memory but the current one: an unfinished next one has to begin again. Returns how many bytes this wrote.
    /// Reads and writes continue meanwhile.
    ///
    /// # Errors
    /// [`LogError::NotErased`] while a reader holds old bytes; a later call finishes it.
    fn scrub(&self) -> Result<u64, LogError>;
}
