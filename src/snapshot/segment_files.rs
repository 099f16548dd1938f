//! Writes and reads the Parquet files of a snapshot's segments.
//!
//! In: batches of an update table. Out: files with unique names, and back. Two runs never write the
//! same name, and a file is never overwritten.

use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use super::{SnapshotError, TableFile, UpdateTable, manifest::shard_directory, store::SnapshotStore, update::batches};

/// Rows of a row group.
const GROUP_ROWS: usize = 8_192;
/// Rows that are encoded at once: the library takes eight bytes for each number of a vector meanwhile.
const ROWS_AT_ONCE: usize = 512;

/// The files of the writer of one shard.
pub(super) struct SegmentFiles {
    /// Where they are stored.
    pub store: Arc<SnapshotStore>,
    partition: u32,
    /// A name that no other writer has.
    run: String,
    count: u64,
}

impl SegmentFiles {
    pub(super) fn new(store: Arc<SnapshotStore>, partition: u32, run: String) -> Self {
        Self { store, partition, run, count: 0 }
    }

    /// The partition of the shard.
    pub(super) fn partition(&self) -> u32 {
        self.partition
    }

    /// The name that no other writer has.
    pub(super) fn run(&self) -> &str {
        &self.run
    }

    /// The directory of a table.
    pub(super) fn directory(partition: u32, table: UpdateTable) -> String {
        format!("{}/{}", shard_directory(partition), table.name())
    }

    /// Writes rows of a table to a new file; `None` without rows.
    pub(super) fn write(
        &mut self,
        table: UpdateTable,
        rows: &[RecordBatch],
    ) -> Result<Option<TableFile>, SnapshotError> {
        let path = self.new_path(table);
        let Some((file, bytes)) = encode(self.store.place(), table, path, rows)? else { return Ok(None) };
        self.store.put(&file.path, bytes)?;
        Ok(Some(file))
    }

    /// All rows of a file.
    pub(super) fn read(&self, file: &TableFile) -> Result<Vec<RecordBatch>, SnapshotError> {
        let unfit = |problem| file.unfit(&self.store, problem);
        batches(file.read(&self.store)?, &[]).map_err(unfit)?.map(|batch| batch.map_err(unfit)).collect()
    }

    /// A path that no file has.
    pub(super) fn new_path(&mut self, table: UpdateTable) -> String {
        self.count += 1;
        format!("{}/{}-{:06}.parquet", Self::directory(self.partition, table), self.run, self.count)
    }
}

/// Encodes rows as a Parquet file; `None` without rows.
pub(super) fn encode(
    place: &str,
    table: UpdateTable,
    path: String,
    rows: &[RecordBatch],
) -> Result<Option<(TableFile, Bytes)>, SnapshotError> {
    let count: usize = rows.iter().map(RecordBatch::num_rows).sum();
    let Some(first) = rows.first().filter(|_| count > 0) else { return Ok(None) };
    let failed = |e: &dyn std::fmt::Display| parquet_failed(&format!("{place}/{path}"), e);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), first.schema(), Some(properties)).map_err(|e| failed(&e))?;
    for batch in rows {
        for from in (0..batch.num_rows()).step_by(ROWS_AT_ONCE) {
            let rows = batch.slice(from, ROWS_AT_ONCE.min(batch.num_rows() - from));
            writer.write(&rows).map_err(|e| failed(&e))?;
        }
    }
    let bytes = Bytes::from(writer.into_inner().map_err(|e| failed(&e))?);
    let blake3 = blake3::hash(&bytes).to_hex().to_string();
    let file = TableFile { table, path, rows: count as u64, bytes: bytes.len() as u64, blake3 };
    Ok(Some((file, bytes)))
}

/// The error of a file that could not be encoded.
pub(super) fn parquet_failed(place: &str, e: &dyn std::fmt::Display) -> SnapshotError {
    SnapshotError::Place { place: place.to_owned(), doing: "encoding Parquet", problem: e.to_string() }
}
