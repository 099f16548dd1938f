//! Writes a topic of a log to Parquet, without a service: once to its end, or continuously as it grows.
//!
//! In: a topic of either log, and where to begin. Out: the rows of an [`Archive`]. Takes over no
//! partition and extracts nothing; each run continues where the previous one ended.

use std::{collections::BTreeMap, path::Path};

use logs::{LogError, TopicView};
use snapshots::{Archive, ArchiveIndex, ArchiveTable, SnapshotError, TopicRow};
use types::{
    config::{ExpiredTurnPolicy, LogSettings},
    model::EventTime,
};

/// Records of a partition read at once.
const READ_RECORDS: usize = 1_024;

/// Why a replay stopped.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The tables could not be written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// `from` has no known form.
    #[error("from {0:?}: write earliest, an offset, or a time such as 2026-05-06T09:00:00Z")]
    From(String),
    /// There is no such partition.
    #[error("{topic}: no partition {partition}; it has {partitions}")]
    NoPartition {
        /// The topic.
        topic: String,
        /// The partition of the request.
        partition: u32,
        /// The topic's number of partitions.
        partitions: u32,
    },
    /// The next records have expired.
    #[error(
        "{topic}/{partition}: offset {position} comes next, but the topic now begins at {earliest}; the records in \
         between have expired: begin at earliest, or set log.kafka.expired = \"earliest\" to continue without them"
    )]
    Expired {
        /// The topic.
        topic: String,
        /// The partition.
        partition: u32,
        /// The offset that comes next.
        position: u64,
        /// The first offset that is left.
        earliest: u64,
    },
}

/// Where a replay begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplayStart {
    Earliest,
    Offset(u64),
    /// In milliseconds since 1970.
    Time(i64),
}

impl ReplayStart {
    fn parse(text: &str) -> Result<Self, ReplayError> {
        if text == "earliest" {
            return Ok(Self::Earliest);
        }
        let offset = text.parse().ok().map(Self::Offset);
        let time = || EventTime::parse(text).ok().map(|time| Self::Time(time.unix_ms));
        offset.or_else(time).ok_or_else(|| ReplayError::From(text.to_owned()))
    }
}

/// What to replay, and to which directory.
#[derive(Debug, Clone, Copy)]
pub struct ReplayRequest<'r> {
    /// The topic.
    pub table: ArchiveTable,
    /// Directory of the tables; each is a subdirectory of it.
    pub to: &'r Path,
    /// One partition; `None`: all.
    pub partition: Option<u32>,
    /// `earliest`, an offset, or a time in RFC 3339, for records appended then or later. `None`: a new directory begins
    /// at the earliest.
    pub from: Option<&'r str>,
    /// Whether to make a directory for each bank.
    pub by_bank: bool,
}

/// A running replay.
pub struct TopicReplay {
    table: ArchiveTable,
    view: TopicView,
    archive: Archive,
    expired: ExpiredTurnPolicy,
    /// By partition: its end when the replay was opened.
    ends: BTreeMap<u32, u64>,
}

impl TopicReplay {
    /// Opens the log and the directory, and finds the position of each partition.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn open(log: &LogSettings, request: &ReplayRequest<'_>) -> Result<Self, ReplayError> {
        Self::of(TopicView::open(log, request.table.name())?, log.kafka.expired, request)
    }

    /// As [`Self::open`], for a topic that is open already. `expired` says what happens to records that are no longer
    /// stored.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn of(
        mut view: TopicView,
        expired: ExpiredTurnPolicy,
        request: &ReplayRequest<'_>,
    ) -> Result<Self, ReplayError> {
        let ReplayRequest { table, to, partition, from, by_bank } = *request;
        let begin = from.map(ReplayStart::parse).transpose()?;
        let partitions = view.partitions();
        if let Some(partition) = partition.filter(|p| *p >= partitions) {
            return Err(ReplayError::NoPartition { topic: view.name().to_owned(), partition, partitions });
        }
        let mut archive = Archive::open(&to.join(table.name()), table, view.name(), by_bank, from)?;
        // A partition that was added since then begins at the same place as the others.
        let begin = begin.unwrap_or(ReplayStart::parse(&archive.index().from)?);
        let mut ends = BTreeMap::new();
        for partition in (0..partitions).filter(|p| partition.is_none_or(|only| only == *p)) {
            let (earliest, end) = view.span(partition)?;
            let mut position = match (archive.next(partition), begin) {
                (Some(next), _) => next,
                (None, ReplayStart::Earliest) => earliest,
                (None, ReplayStart::Offset(offset)) => offset,
                (None, ReplayStart::Time(append_ms)) => view.offset_at(partition, append_ms)?.max(earliest),
            };
            if position < earliest {
                if expired == ExpiredTurnPolicy::Stop {
                    let topic = view.name().to_owned();
                    return Err(ReplayError::Expired { topic, partition, position, earliest });
                }
                position = earliest;
            }
            archive.begin(partition, position);
            ends.insert(partition, end);
        }
        Ok(Self { table, view, archive, expired, ends })
    }

    /// Takes the next records of each partition, up to its end when the replay was opened, or with `beyond` newer ones,
    /// too. Returns their number; 0 at the end.
    ///
    /// # Errors
    /// [`ReplayError`]; complete files stay.
    pub fn step(&mut self, beyond: bool) -> Result<u64, ReplayError> {
        let mut rows = 0;
        for (partition, end) in self.ends.clone() {
            let from = self.archive.next(partition).unwrap_or_default();
            if !beyond && from >= end {
                continue;
            }
            let raws = match self.view.read(partition, from, READ_RECORDS) {
                Err(LogError::Expired { position, earliest, .. }) => {
                    if self.expired == ExpiredTurnPolicy::Stop {
                        let topic = self.view.name().to_owned();
                        return Err(ReplayError::Expired { topic, partition, position, earliest });
                    }
                    self.archive.begin(partition, earliest);
                    continue;
                }
                other => other?,
            };
            for raw in raws.into_iter().filter(|raw| beyond || raw.record.offset < end) {
                let record = raw.record;
                let row = TopicRow::new(
                    self.table,
                    partition,
                    record.offset,
                    record.append_ms,
                    record.key,
                    record.value,
                    raw.headers,
                );
                self.archive.push(row)?;
                rows += 1;
            }
        }
        Ok(rows)
    }

    /// Completes the files of all records taken.
    ///
    /// # Errors
    /// [`ReplayError`].
    pub fn finish(&mut self) -> Result<(), ReplayError> {
        Ok(self.archive.finish()?)
    }

    /// How many offsets are left between the positions and the ends when the replay was opened; not every offset has a
    /// record.
    #[must_use]
    pub fn left(&self) -> u64 {
        let left = |(partition, end): (&u32, &u64)| end.saturating_sub(self.archive.next(*partition).unwrap_or(*end));
        self.ends.iter().map(left).sum()
    }

    /// What the complete files hold.
    #[must_use]
    pub fn index(&self) -> &ArchiveIndex {
        self.archive.index()
    }

    /// A caveat for readers of the tables.
    #[must_use]
    pub fn notice(&self) -> Option<&'static str> {
        (self.table == ArchiveTable::Memory)
            .then_some("the memory topic is compacted: if a record was written again, its earlier versions may be gone")
    }
}
