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

use super::{
    SnapshotError, TableFile, UpdateTable, manifest::shard_directory, store::SnapshotStore, update_tables::batches,
};

/// The encoded size of a row group in bytes; a row group stays in memory until it is full.
const GROUP_BYTES: usize = 1 << 20;
/// How many rows are encoded at once: the library takes twelve bytes for each number of a vector while it encodes.
const ROWS_AT_ONCE: usize = 16;
/// The encoded size of a page in bytes. Until a page is full, the library takes eight bytes for each of its numbers,
/// which take at most one byte in the page.
const PAGE_BYTES: usize = 64 << 10;

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

    /// Writes rows of a table to a new file, each batch as it comes; `None` if there are no rows.
    pub(super) fn write(
        &self,
        table: UpdateTable,
        path: String,
        rows: impl Iterator<Item = Result<RecordBatch, SnapshotError>>,
    ) -> Result<Option<TableFile>, SnapshotError> {
        let Some((file, bytes)) = encode(self.store.place(), table, path, rows)? else { return Ok(None) };
        self.store.put(&file.path, bytes)?;
        Ok(Some(file))
    }

    /// The rows of a file, read as they are consumed.
    pub(super) fn read<'f>(
        &'f self,
        file: &'f TableFile,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, SnapshotError>> + 'f, SnapshotError> {
        self.rows(file, file.read(&self.store)?)
    }

    /// The rows of a file whose bytes were read.
    pub(super) fn rows<'f>(
        &'f self,
        file: &'f TableFile,
        bytes: Bytes,
    ) -> Result<impl Iterator<Item = Result<RecordBatch, SnapshotError>> + 'f, SnapshotError> {
        let unfit = |problem| file.unfit(&self.store, problem);
        Ok(batches(bytes, &[]).map_err(unfit)?.map(move |batch| batch.map_err(unfit)))
    }

    /// A path that no file has.
    pub(super) fn new_path(&mut self, table: UpdateTable) -> String {
        self.count += 1;
        format!("{}/{}-{:06}.parquet", Self::directory(self.partition, table), self.run, self.count)
    }
}

/// Encodes rows as a Parquet file; `None` if there are no rows.
pub(super) fn encode(
    place: &str,
    table: UpdateTable,
    path: String,
    rows: impl Iterator<Item = Result<RecordBatch, SnapshotError>>,
) -> Result<Option<(TableFile, Bytes)>, SnapshotError> {
    let failed = |e: &dyn std::fmt::Display| parquet_failed(&format!("{place}/{path}"), e);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_bytes(Some(GROUP_BYTES))
        .set_data_page_size_limit(PAGE_BYTES)
        .build();
    let (mut writer, mut count) = (None, 0);
    for batch in rows {
        let batch = batch?;
        if batch.num_rows() == 0 {
            continue;
        }
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(
                ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties.clone())).map_err(|e| failed(&e))?,
            ),
        };
        count += batch.num_rows();
        for from in (0..batch.num_rows()).step_by(ROWS_AT_ONCE) {
            let rows = batch.slice(from, ROWS_AT_ONCE.min(batch.num_rows() - from));
            writer.write(&rows).map_err(|e| failed(&e))?;
        }
    }
    let Some(writer) = writer else { return Ok(None) };
    let bytes = Bytes::from(writer.into_inner().map_err(|e| failed(&e))?);
    let blake3 = blake3::hash(&bytes).to_hex().to_string();
    let file = TableFile { table, path, rows: count as u64, bytes: bytes.len() as u64, blake3 };
    Ok(Some((file, bytes)))
}

/// The error of a file that could not be encoded.
pub(super) fn parquet_failed(place: &str, e: &dyn std::fmt::Display) -> SnapshotError {
    SnapshotError::Place { place: place.to_owned(), doing: "encoding Parquet", problem: e.to_string() }
}
