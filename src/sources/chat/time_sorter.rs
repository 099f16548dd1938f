//! Records in order of time, in bounded memory.
//!
//! In: records in any order, each with its time in milliseconds and its place in the export. Out: the same records,
//! oldest first; records with the same time stay in the order in which they were added. Beyond [`RUN_BYTES`] they are
//! kept in an unnamed temporary file, sorted in runs that are merged at the end. The file disappears with the process.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    env,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{SourceError, error::unreadable};
use types::model::DeadLetter;

/// How many bytes are held and sorted at once.
const RUN_BYTES: usize = 32 << 20;
/// How many bytes all runs together read ahead.
const READ_AHEAD_BYTES: usize = 16 << 20;
/// The time of records that cannot be read: no message has it.
const REJECT_MS: i64 = i64::MIN;
/// Time, file, line and length of a record in the temporary file.
const HEADER_BYTES: usize = 24;

/// A record of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimedRecord {
    /// When it was said, in milliseconds since 1970.
    pub unix_ms: i64,
    /// Which file of the export, as the caller counts them.
    pub file: u32,
    /// The line on which it begins.
    pub line: u64,
    /// What the caller keeps of it.
    pub payload: Vec<u8>,
}

impl TimedRecord {
    /// What [`TimeSorter::add_reject`] took; `None` for a message.
    pub(crate) fn rejected<P: DeserializeOwned>(&self) -> Option<(P, DeadLetter)> {
        if self.unix_ms == REJECT_MS { serde_json::from_slice(&self.payload).ok() } else { None }
    }
}

/// Takes records in any order.
pub(crate) struct TimeSorter {
    held: Vec<TimedRecord>,
    held_bytes: usize,
    run_bytes: usize,
    /// The temporary file, and the position at which each run ends in it.
    spilled: Option<(File, Vec<u64>)>,
    count: u64,
}

/// Returns the records, oldest first.
pub(crate) struct SortedRecords {
    held: VecDeque<TimedRecord>,
    file: Option<File>,
    runs: Vec<SortedRun>,
    /// The time and the run of each run's next record.
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    count: u64,
}

/// A sorted part of the temporary file.
struct SortedRun {
    from: u64,
    to: u64,
    buffer: VecDeque<u8>,
    read_ahead: usize,
    head: Option<TimedRecord>,
}

impl TimeSorter {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self::with_run_bytes(RUN_BYTES)
    }

    fn with_run_bytes(run_bytes: usize) -> Self {
        Self { held: Vec::new(), held_bytes: 0, run_bytes, spilled: None, count: 0 }
    }

    /// Takes a record.
    ///
    /// # Errors
    /// [`SourceError`] when the temporary file cannot be written.
    pub(crate) fn add(&mut self, record: TimedRecord) -> Result<(), SourceError> {
        self.count += 1;
        self.held_bytes += record.payload.len() + size_of::<TimedRecord>();
        self.held.push(record);
        if self.held_bytes >= self.run_bytes { self.spill().map_err(temporary) } else { Ok(()) }
    }

    /// Takes a record that cannot be read. `place` identifies its conversation once the whole export is known. Such
    /// records come before all messages.
    ///
    /// # Errors
    /// As [`TimeSorter::add`].
    pub(crate) fn add_reject(&mut self, place: &impl Serialize, letter: &DeadLetter) -> Result<(), SourceError> {
        let payload = serde_json::to_vec(&(place, letter)).map_err(|e| temporary(e.into()))?;
        self.add(TimedRecord { unix_ms: REJECT_MS, file: 0, line: 0, payload })
    }

    /// All records, oldest first.
    ///
    /// # Errors
    /// [`SourceError`] when the temporary file cannot be written or read.
    pub(crate) fn oldest_first(mut self) -> Result<SortedRecords, SourceError> {
        if self.spilled.is_some() && !self.held.is_empty() {
            self.spill().map_err(temporary)?;
        }
        // A stable sort: records with the same time keep their order.
        self.held.sort_by_key(|r| r.unix_ms);
        let held = VecDeque::from(self.held);
        let mut sorted =
            SortedRecords { held, file: None, runs: Vec::new(), heads: BinaryHeap::new(), count: self.count };
        let Some((mut file, ends)) = self.spilled else { return Ok(sorted) };
        let read_ahead = (READ_AHEAD_BYTES / ends.len().max(1)).clamp(4 << 10, 256 << 10);
        let mut from = 0;
        for (index, to) in ends.into_iter().enumerate() {
            let mut run = SortedRun { from, to, buffer: VecDeque::new(), read_ahead, head: None };
            run.advance(&mut file).map_err(temporary)?;
            if let Some(head) = &run.head {
                sorted.heads.push(Reverse((head.unix_ms, index)));
            }
            sorted.runs.push(run);
            from = to;
        }
        sorted.file = Some(file);
        Ok(sorted)
    }

    fn spill(&mut self) -> io::Result<()> {
        if self.spilled.is_none() {
            self.spilled = Some((tempfile::tempfile()?, Vec::new()));
        }
        let Some((file, ends)) = &mut self.spilled else { return Ok(()) };
        self.held.sort_by_key(|r| r.unix_ms);
        let mut end = ends.last().copied().unwrap_or(0);
        let mut writer = io::BufWriter::with_capacity(1 << 18, &*file);
        for record in self.held.drain(..) {
            let length = u32::try_from(record.payload.len()).map_err(io::Error::other)?;
            writer.write_all(&record.unix_ms.to_le_bytes())?;
            writer.write_all(&record.file.to_le_bytes())?;
            writer.write_all(&record.line.to_le_bytes())?;
            writer.write_all(&length.to_le_bytes())?;
            writer.write_all(&record.payload)?;
            end += HEADER_BYTES as u64 + u64::from(length);
        }
        writer.flush()?;
        drop(writer);
        ends.push(end);
        self.held_bytes = 0;
        Ok(())
    }
}

impl SortedRecords {
    /// How many records there are altogether.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// [`SourceError`] when the temporary file cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<TimedRecord>, SourceError> {
        let Some(file) = &mut self.file else { return Ok(self.held.pop_front()) };
        // A run written later holds records that were added later, so the run with the lower index wins a tie.
        let Some(Reverse((_, index))) = self.heads.pop() else { return Ok(None) };
        let Some(run) = self.runs.get_mut(index) else { return Ok(None) };
        let record = run.head.take();
        run.advance(file).map_err(temporary)?;
        if let Some(head) = &run.head {
            self.heads.push(Reverse((head.unix_ms, index)));
        }
        Ok(record)
    }
}

impl SortedRun {
    /// Reads the next record into `head`.
    fn advance(&mut self, file: &mut File) -> io::Result<()> {
        self.head = None;
        if self.buffer.is_empty() && self.from == self.to {
            self.buffer = VecDeque::new();
            return Ok(());
        }
        let unix_ms = i64::from_le_bytes(self.bytes(file)?);
        let in_file = u32::from_le_bytes(self.bytes(file)?);
        let line = u64::from_le_bytes(self.bytes(file)?);
        let length = u32::from_le_bytes(self.bytes(file)?) as usize;
        self.fill(file, length)?;
        let payload = self.buffer.drain(..length).collect();
        self.head = Some(TimedRecord { unix_ms, file: in_file, line, payload });
        Ok(())
    }

    fn bytes<const N: usize>(&mut self, file: &mut File) -> io::Result<[u8; N]> {
        self.fill(file, N)?;
        let mut bytes = [0; N];
        for (to, from) in bytes.iter_mut().zip(self.buffer.drain(..N)) {
            *to = from;
        }
        Ok(bytes)
    }

    /// Reads on until the buffer holds this many bytes.
    fn fill(&mut self, file: &mut File, bytes: usize) -> io::Result<()> {
        while self.buffer.len() < bytes {
            let wanted = self.read_ahead.max(bytes - self.buffer.len()) as u64;
            let wanted = wanted.min(self.to - self.from);
            if wanted == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            file.seek(SeekFrom::Start(self.from))?;
            let mut chunk = vec![0; usize::try_from(wanted).map_err(io::Error::other)?];
            file.read_exact(&mut chunk)?;
            self.from += wanted;
            self.buffer.extend(chunk);
        }
        Ok(())
    }
}

/// The error for the temporary file.
fn temporary(error: io::Error) -> SourceError {
    unreadable(&env::temp_dir(), 0, error)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sorted(records: &[TimedRecord], run_bytes: usize) -> Vec<TimedRecord> {
        let mut order = TimeSorter::with_run_bytes(run_bytes);
        for record in records {
            order.add(record.clone()).unwrap();
        }
        let mut sorted = order.oldest_first().unwrap();
        assert_eq!(sorted.count(), records.len() as u64);
        let all = std::iter::from_fn(|| sorted.next().unwrap()).collect();
        assert_eq!(sorted.next().unwrap(), None, "the end is final");
        all
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_a_stable_sort_whatever_was_spilled(
            records in prop::collection::vec((-5i64..5, 0usize..300), 0..200),
            run_bytes in 1usize..5_000,
        ) {
            let records: Vec<TimedRecord> = records
                .into_iter()
                .enumerate()
                .map(|(line, (unix_ms, size))| TimedRecord { unix_ms, file: 7, line: line as u64, payload: vec![b'x'; size] })
                .collect();
            let mut expected = records.clone();
            expected.sort_by_key(|r| r.unix_ms);
            prop_assert_eq!(&sorted(&records, run_bytes), &expected);
            prop_assert_eq!(&sorted(&records, usize::MAX), &expected);
        }
    }

    #[test]
    fn a_reject_comes_first_with_its_place() {
        let letter = DeadLetter::new("f:3".to_owned(), "no time".to_owned(), b"{}");
        let message = TimedRecord { unix_ms: -5, file: 0, line: 1, payload: b"x".to_vec() };
        let mut order = TimeSorter::new();
        order.add(message.clone()).unwrap();
        order.add_reject(&Some(7), &letter).unwrap();
        let mut sorted = order.oldest_first().unwrap();
        assert_eq!(sorted.next().unwrap().unwrap().rejected::<Option<u32>>(), Some((Some(7), letter)));
        assert_eq!((message.rejected::<Option<u32>>(), sorted.next().unwrap()), (None, Some(message)));
    }

    #[test]
    fn a_record_longer_than_what_is_read_ahead_is_whole() {
        let record = |unix_ms| TimedRecord { unix_ms, file: 0, line: 1, payload: vec![b'y'; 600 << 10] };
        assert_eq!(sorted(&[record(2), record(1)], 1), [record(1), record(2)]);
    }
}
