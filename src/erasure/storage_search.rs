//! Searches stored bytes, decompressed, for words or for fingerprints of words.
//!
//! In: a pattern, and places. Out: where it was found; the result does not depend on the number of threads. Each file
//! is read by its format: tables and journals of the embedded stores entry by entry, superseded ones included, their
//! files of long values as a whole; Parquet page by page; and everything in them that is compressed with Zstandard.
//! Then its bytes are read as they are. A thread has one file at a time, and holds a few blocks of it. A link below a
//! place is not followed: its target is not the memory's. It is reported, unless its target is searched anyway.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read as _},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use memchr::memmem;
use parquet::file::reader::{ChunkReader, FileReader as _, SerializedFileReader};
use zstd::{stream::read::Decoder, zstd_safe::DCtx};

use super::vector_forms::{each_vector_of_parquet, json_of};
use logs::next_journal_item;
use models::embed::cached_vectors;

/// The first bytes of a frame of Zstandard.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bytes that are read or decompressed at once.
const READ_BYTES: usize = 8 << 20;
/// Bytes of a damaged frame that are decompressed at once: bytes decompressed together with the damage are lost.
const DAMAGED_BYTES: usize = 1 << 10;
/// How many levels of compressed bytes in compressed bytes are read.
const DEPTH: u32 = 3;
/// The most listings of the files while a store replaces them.
const LISTINGS: usize = 8;
/// Matches that are kept per file; more say nothing new.
const FOUND_IN_FILE: usize = 16;
/// How often a journal is read until its last entry is whole, and the pause in between.
const JOURNAL_READS: u32 = 3;
const JOURNAL_PAUSE: Duration = Duration::from_millis(100);

/// A place where words were found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StorageMatch {
    /// The file, or the URL of a bucket's object.
    pub file: PathBuf,
    /// Where in it: an offset in bytes, or the offset of a record in the log.
    pub at: String,
    /// The operation whose fingerprint was found; `None` in a search for words.
    pub operation: Option<String>,
}

/// What a search read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StorageSearchReport {
    /// Bytes on the disk.
    pub bytes: u64,
    /// Files.
    pub files: u64,
    /// Where words were found.
    pub found: Vec<StorageMatch>,
    /// The operations of which a fingerprint was found.
    pub operations: BTreeSet<String>,
    /// Files that could not be read completely, and why.
    pub unread: Vec<(PathBuf, String)>,
}

impl StorageSearchReport {
    /// Adds another report.
    pub(super) fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.files += other.files;
        self.operations.extend(other.operations);
        self.found.extend(other.found);
        self.found.sort();
        self.found.dedup();
        self.unread.extend(other.unread);
        self.unread.sort();
        self.unread.dedup();
    }
}

/// What to search for.
pub(super) trait StoragePattern: Sync {
    /// How many bytes are searched again with those that follow, so that nothing is missed between two reads.
    fn longest(&self) -> usize;
    /// Calls `found` with each match's offset in the bytes, and the operation if it is a fingerprint.
    fn find(&self, bytes: &[u8], found: &mut dyn FnMut(usize, Option<&str>));
    /// Whether vectors are searched, too: each is searched in the form of memory records, whatever its stored form.
    fn has_vectors(&self) -> bool;
}

/// Searches all files at or below the places, on at most `threads` threads.
pub(super) fn search_files(needles: &dyn StoragePattern, places: &[PathBuf], threads: usize) -> StorageSearchReport {
    let (mut search, mut seen, mut replaced) = (StorageSearchReport::default(), BTreeSet::new(), Vec::new());
    let real: Vec<PathBuf> = places.iter().filter_map(|place| place.canonicalize().ok()).collect();
    // What a store removed before it was read may now be in a file that is not in the last listing.
    for _ in 0..LISTINGS {
        let (mut lister, mut files) = (StorageSearcher::new(needles), Vec::new());
        // The place itself may be a link: its owner named it.
        for place in places.iter().filter(|place| place.exists()) {
            lister.list(place, fs::metadata(place), &real, &mut files);
        }
        files.retain(|(_, path)| seen.insert(path.clone()));
        // The largest first, so that threads end together.
        files.sort_unstable();
        files.reverse();
        replaced.clear();
        for searcher in std::iter::once(lister).chain(searchers(needles, &files, threads)) {
            search.add(searcher.search);
            replaced.extend(searcher.replaced);
        }
        if replaced.is_empty() {
            break;
        }
    }
    search.add(StorageSearchReport { unread: replaced, ..StorageSearchReport::default() });
    search
}

/// Searches files in their order; returns the searcher of each thread, with what it found.
fn searchers<'w>(
    needles: &'w dyn StoragePattern,
    files: &[(u64, PathBuf)],
    threads: usize,
) -> Vec<StorageSearcher<'w>> {
    let next = AtomicUsize::new(0);
    let search_some = || {
        let mut searcher = StorageSearcher::new(needles);
        while let Some((_, path)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            // After a panic, neither the file nor matches in other files may be lost.
            if catch_unwind(AssertUnwindSafe(|| searcher.file(path))).is_err() {
                searcher.not_read(path, &"reading it panicked; please report this");
            }
        }
        searcher
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads.min(files.len())).map(|_| scope.spawn(search_some)).collect();
        let ended = running.into_iter().map(|thread| match thread.join() {
            Ok(searcher) => searcher,
            Err(panic) => resume_unwind(panic),
        });
        ended.collect()
    })
}

/// Searches one file after another.
pub(super) struct StorageSearcher<'w> {
    needles: &'w dyn StoragePattern,
    search: StorageSearchReport,
    /// Files that were removed before they were read, with the error of their reading.
    replaced: Vec<(PathBuf, String)>,
    /// The number of matches in the file that is being read.
    in_file: usize,
    /// Finds where a frame of Zstandard may begin.
    frames: memmem::Finder<'static>,
    /// Decompressors, one for each depth that was reached: making one takes longer than decompressing a short frame.
    unpackers: Vec<DCtx<'static>>,
    /// Blocks of [`READ_BYTES`] that are free now.
    blocks: Vec<Vec<u8>>,
}

impl<'w> StorageSearcher<'w> {
    pub(super) fn new(needles: &'w dyn StoragePattern) -> Self {
        Self {
            needles,
            search: StorageSearchReport::default(),
            replaced: Vec::new(),
            in_file: 0,
            frames: memmem::Finder::new(&ZSTD_MAGIC),
            unpackers: Vec::new(),
            blocks: Vec::new(),
        }
    }

    /// The report, in the order of reading.
    pub(super) fn done(self) -> StorageSearchReport {
        self.search
    }

    /// Lists a file, or every file below a directory, with its size. `real` are the places without links.
    fn list(
        &mut self,
        path: &Path,
        found: io::Result<fs::Metadata>,
        real: &[PathBuf],
        files: &mut Vec<(u64, PathBuf)>,
    ) {
        let listed = match found {
            Ok(meta) if meta.is_dir() => fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>),
            Ok(meta) if meta.is_file() => return files.push((meta.len(), path.to_owned())),
            Ok(meta) if meta.is_symlink() => return self.link(path, real),
            // Pipes and sockets hold nothing, and reading one could last for ever.
            Ok(_) => return,
            Err(error) => Err(error),
        };
        match listed {
            Ok(entries) => {
                for entry in entries {
                    let path = entry.path();
                    self.list(&path, fs::symlink_metadata(&path), real, files);
                }
            }
            Err(error) => self.unread(path, &error),
        }
    }

    /// Reports a link that leads out of the searched places.
    fn link(&mut self, path: &Path, real: &[PathBuf]) {
        match path.canonicalize() {
            Ok(target) if real.iter().any(|place| target.starts_with(place)) => {}
            // The link leads nowhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            _ => {
                self.not_read(path, &"it is a link, and what it leads to was not read; look there, or remove the link")
            }
        }
    }

    fn file(&mut self, path: &Path) {
        self.in_file = 0;
        let is_in = |folder: &str| path.parent().is_some_and(|parent| parent.ends_with(folder));
        let is = |name: &str| path.extension().is_some_and(|extension| extension == name);
        let unpacked = if is("parquet") {
            let open = || File::open(path).map_err(|e| e.to_string());
            let pages = open().and_then(|file| self.parquet(file, path));
            pages.and_then(|()| self.vectors(open()?, path)).map(|()| true)
        } else if is("jnl") {
            self.journal(path).map(|()| true)
        } else if is_in("tables") {
            self.table(path).map(|()| true)
        } else if is_in("blobs") {
            self.values(path).map(|()| true)
        } else {
            self.packed(path)
        };
        // What was decompressed above is not decompressed again.
        let depth = if unpacked == Ok(true) { DEPTH } else { 0 };
        match self.raw(path, depth) {
            Ok(bytes) => {
                self.search.bytes += bytes;
                self.search.files += 1;
                if let Err(problem) = unpacked {
                    self.unread(path, &problem);
                }
            }
            Err(error) => self.unread(path, &error),
        }
    }

    /// Searches an object of a bucket: Parquet page by page, and anything as it is.
    pub(super) fn object(&mut self, name: &Path, bytes: &Bytes) {
        self.in_file = 0;
        self.search.bytes += bytes.len() as u64;
        self.search.files += 1;
        let mut unread: &[u8] = bytes;
        let read = self.read(&mut unread, READ_BYTES, name, &mut |at| format!("byte {at}"), 0);
        let read = read.map(drop).map_err(|e| e.to_string());
        let is_parquet = name.extension().is_some_and(|extension| extension == "parquet");
        let unpacked = if is_parquet {
            self.parquet(bytes.clone(), name).and_then(|()| self.vectors(bytes.clone(), name))
        } else {
            Ok(())
        };
        if let Err(problem) = read.and(unpacked) {
            self.not_read(name, &problem);
        }
    }

    /// Notes a place that could not be read.
    pub(super) fn not_read(&mut self, place: &Path, problem: &dyn std::fmt::Display) {
        self.search.unread.push((place.to_owned(), problem.to_string()));
    }

    /// Notes a file that could not be read, or, if the store removed it meanwhile, that it was replaced.
    fn unread(&mut self, path: &Path, problem: &dyn std::fmt::Display) {
        if path.exists() {
            self.not_read(path, problem);
        } else {
            self.replaced.push((path.to_owned(), problem.to_string()));
        }
    }

    fn raw(&mut self, path: &Path, depth: u32) -> io::Result<u64> {
        self.read(&mut File::open(path)?, READ_BYTES, path, &mut |at| format!("byte {at}"), depth)
    }

    /// Searches all that can be read, at most `most` bytes per read, and returns how many bytes that were.
    fn read(
        &mut self,
        from: &mut dyn io::Read,
        most: usize,
        path: &Path,
        at: &mut dyn FnMut(u64) -> String,
        depth: u32,
    ) -> io::Result<u64> {
        let mut block = self.blocks.pop().unwrap_or_else(|| vec![0; READ_BYTES]);
        let (mut read, mut kept) = (0u64, 0);
        let ended = loop {
            let start = read - kept as u64;
            let (more, ended) = fill(from, most, &mut block[kept..]);
            read += more as u64;
            let end = kept + more;
            if more > 0 {
                self.look(&block[..end], path, &mut |found| at(start + found as u64), depth);
            }
            if let Some(ended) = ended {
                break ended;
            }
            kept = end.min(self.needles.longest().saturating_sub(1));
            block.copy_within(end - kept..end, 0);
        };
        self.blocks.push(block);
        ended.map(|()| read)
    }

    /// Searches bytes, and compressed frames in them.
    fn look(&mut self, bytes: &[u8], path: &Path, at: &mut dyn FnMut(usize) -> String, depth: u32) {
        let needles = self.needles;
        needles.find(bytes, &mut |start, operation| self.note(path, at(start), operation));
        if depth == DEPTH {
            return;
        }
        let mut from = 0;
        while let Some(next) = self.frames.find(bytes.get(from..).unwrap_or_default()) {
            let start = from + next;
            let mut unpacker = self.unpackers.pop().unwrap_or_default();
            // Other bytes may look like a frame; what was decompressed before the first invalid byte counts.
            for most in [READ_BYTES, DAMAGED_BYTES] {
                let mut frame = Decoder::with_context(&bytes[start..], &mut unpacker).single_frame();
                if self.read(&mut frame, most, path, &mut |_| at(start), depth + 1).is_ok() {
                    break;
                }
            }
            self.unpackers.push(unpacker);
            from = start + 1;
        }
    }

    fn note(&mut self, path: &Path, at: String, operation: Option<&str>) {
        self.in_file += 1;
        let operation = operation.map(str::to_owned);
        if let Some(operation) = &operation {
            self.search.operations.insert(operation.clone());
        }
        if self.in_file <= FOUND_IN_FILE {
            self.search.found.push(StorageMatch { file: path.to_owned(), at, operation });
        }
    }

    /// Searches an entry of an embedded store, and its vectors if it is an entry of the cache.
    fn entry(&mut self, key: &[u8], value: &[u8], path: &Path) {
        self.look(key, path, &mut |_| place_of(key), 0);
        self.look(value, path, &mut |_| place_of(key), 0);
        let vectors = if self.needles.has_vectors() { cached_vectors(value) } else { None };
        for vector in vectors.into_iter().flatten() {
            self.look(json_of(&vector).as_bytes(), path, &mut |_| place_of(key), DEPTH);
        }
    }

    /// Searches a table of an embedded store: every version of every entry.
    fn table(&mut self, path: &Path) -> Result<(), String> {
        let cache = Arc::new(lsm_tree::Cache::with_capacity_bytes(1 << 20));
        let sum = lsm_tree::Checksum::from_raw(0);
        let table = lsm_tree::Table::recover(path.to_owned(), sum, 0, 0, cache, None, false, false);
        for entry in table.and_then(|table| table.scan()).map_err(|e| e.to_string())? {
            let entry = entry.map_err(|e| e.to_string())?;
            self.entry(&entry.key.user_key, &entry.value, path);
        }
        Ok(())
    }

    /// Searches a file of long values of an embedded store as a whole: a value is compressed alone, at any offset.
    fn values(&mut self, path: &Path) -> Result<(), String> {
        let bytes = fs::read(path).map_err(|e| e.to_string())?;
        self.look(&bytes, path, &mut |at| format!("byte {at}"), 0);
        Ok(())
    }

    /// Searches a file that is compressed as a whole; returns whether it is one.
    fn packed(&mut self, path: &Path) -> Result<bool, String> {
        let failed = |e: io::Error| e.to_string();
        let mut file = File::open(path).map_err(failed)?;
        let mut first = [0; ZSTD_MAGIC.len()];
        if file.read_exact(&mut first).is_err() || first != ZSTD_MAGIC {
            return Ok(false);
        }
        let mut unpacked = Decoder::new(File::open(path).map_err(failed)?).map_err(failed)?;
        let read = self.read(&mut unpacked, READ_BYTES, path, &mut |at| format!("unpacked byte {at}"), 0);
        read.map(|_| true).map_err(failed)
    }

    /// Searches a journal of an embedded store: its entries up to the space that is still empty.
    fn journal(&mut self, path: &Path) -> Result<(), String> {
        let mut left = None;
        // The last entry may still be being written.
        for _ in 0..JOURNAL_READS {
            left = self.entries(path).map_err(|e| e.to_string())?;
            if left.is_none() {
                break;
            }
            std::thread::sleep(JOURNAL_PAUSE);
        }
        left.map_or(Ok(()), |at| Err(format!("it cannot be read from byte {at} on")))
    }

    /// Searches the entries of a journal. If not all can be read, returns the byte from which on.
    fn entries(&mut self, path: &Path) -> io::Result<Option<u64>> {
        let mut file = File::open(path)?;
        let (mut bytes, mut read) = (Vec::new(), 0u64);
        loop {
            let more = file.by_ref().take(READ_BYTES as u64).read_to_end(&mut bytes)?;
            let mut rest = bytes.as_slice();
            while let Some((key, value)) = next_journal_item(&mut rest) {
                self.entry(key, &value, path);
            }
            let end = bytes.len() - rest.len();
            read += end as u64;
            bytes.drain(..end);
            // No entry begins with 0: only empty space may follow, of which one byte is kept.
            if bytes.first() == Some(&0) {
                if bytes.iter().any(|byte| *byte != 0) {
                    return Ok(Some(read));
                }
                bytes.truncate(1);
            }
            if more == 0 {
                return Ok(bytes.iter().any(|byte| *byte != 0).then_some(read));
            }
        }
    }

    /// Searches a Parquet file: the pages of every column, decompressed.
    fn parquet<R: ChunkReader + 'static>(&mut self, file: R, path: &Path) -> Result<(), String> {
        let reader = SerializedFileReader::new(file).map_err(|e| e.to_string())?;
        for group in 0..reader.num_row_groups() {
            let rows = reader.get_row_group(group).map_err(|e| e.to_string())?;
            for column in 0..rows.num_columns() {
                let chunk = rows.metadata().column(column);
                let (name, offset) = (chunk.column_path().string(), chunk.byte_range().0);
                for page in rows.get_column_page_reader(column).map_err(|e| e.to_string())? {
                    let page = page.map_err(|e| e.to_string())?;
                    self.look(page.buffer(), path, &mut |_| format!("column {name}, chunk at byte {offset}"), 0);
                }
            }
        }
        Ok(())
    }

    /// Searches the vectors of a Parquet file, which its pages hold in pieces.
    fn vectors<R: ChunkReader + 'static>(&mut self, file: R, path: &Path) -> Result<(), String> {
        if !self.needles.has_vectors() {
            return Ok(());
        }
        each_vector_of_parquet(file, &mut |vector| {
            self.look(json_of(vector).as_bytes(), path, &mut |_| "a vector".to_owned(), DEPTH);
        })
    }
}

/// Describes what a key of the embedded log names.
fn place_of(key: &[u8]) -> String {
    match key.split_first_chunk::<4>() {
        Some((partition, offset)) if offset.len() == 8 => {
            let offset = offset.iter().fold(0u64, |offset, byte| offset << 8 | u64::from(*byte));
            format!("partition {}, offset {offset}", u32::from_be_bytes(*partition))
        }
        _ => format!("the entry of a key of {} bytes", key.len()),
    }
}

/// Reads until a buffer is full, at most `most` bytes at once; returns how many, and how the input ended if it did.
fn fill(from: &mut dyn io::Read, most: usize, buffer: &mut [u8]) -> (usize, Option<io::Result<()>>) {
    let mut filled = 0;
    while filled < buffer.len() {
        let end = buffer.len().min(filled + most);
        match from.read(&mut buffer[filled..end]) {
            Ok(0) => return (filled, Some(Ok(()))),
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (filled, Some(Err(error))),
        }
    }
    (filled, None)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{RecordBatch, StringArray};
    use arrow_schema::{DataType, Field, Schema};
    use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
    use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};

    use super::{super::word_pattern::WordPattern, *};

    fn words(of: &str) -> WordPattern {
        WordPattern::new(&[of.to_owned()]).unwrap()
    }

    fn searched(home: &Path, needles: &dyn StoragePattern, threads: usize) -> StorageSearchReport {
        search_files(needles, &[home.to_owned()], threads)
    }

    /// The names of the files in which the words were found.
    fn found(home: &Path, of: &str) -> BTreeSet<String> {
        let search = searched(home, &words(of), 2);
        assert_eq!(search.unread, []);
        file_names(&search)
    }

    /// The names of the files with a match.
    fn file_names(search: &StorageSearchReport) -> BTreeSet<String> {
        let kind = |found: &StorageMatch| {
            let name = found.file.file_name().unwrap().to_string_lossy().into_owned();
            if found.file.parent().unwrap().ends_with("tables") { "table".to_owned() } else { name }
        };
        search.found.iter().map(kind).collect()
    }

    fn names(of: &[&str]) -> BTreeSet<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    fn store(home: &Path) -> (Database, Keyspace) {
        let database = Database::builder(home.join("store")).open().unwrap();
        let keyspace = database.keyspace("k", KeyspaceCreateOptions::default).unwrap();
        (database, keyspace)
    }

    #[test]
    fn words_are_found_as_they_are_and_as_json_escapes_them_across_blocks_and_cases() {
        let home = tempfile::tempdir().unwrap();
        let text = "she said \"Zanzibar\", tab\there";
        fs::write(home.path().join("plain"), format!("... {text} ...")).unwrap();
        fs::write(home.path().join("json"), serde_json::Value::from(text).to_string()).unwrap();
        let far = [vec![b'x'; READ_BYTES - 7], text.to_uppercase().into_bytes()].concat();
        fs::write(home.path().join("far"), far).unwrap();
        fs::write(home.path().join("other"), "she said nothing").unwrap();
        assert_eq!(found(home.path(), text), names(&["plain", "json", "far"]));
    }

    #[test]
    fn words_are_found_in_every_packing() {
        let home = tempfile::tempdir().unwrap();
        let long = format!("{}the vermilion submarine{}", "a".repeat(600), "b".repeat(600));
        let packed = zstd::bulk::compress(long.as_bytes(), 1).unwrap();
        let inside = [b"before", &packed[..], &zstd::bulk::compress(b"after", 1).unwrap()].concat();
        fs::write(home.path().join("packed"), inside).unwrap();
        let after_others = [b"before", &ZSTD_MAGIC[..], &[0xffu8; 40], &packed].concat();
        fs::write(home.path().join("after others"), after_others).unwrap();
        fs::write(home.path().join("whole"), &packed).unwrap();
        fs::write(home.path().join("twice"), zstd::bulk::compress(&[b"before", &packed[..]].concat(), 1).unwrap())
            .unwrap();
        write_rows(&home.path().join("rows.parquet"), &long);
        let all = names(&["after others", "packed", "rows.parquet", "twice", "whole"]);
        assert_eq!(found(home.path(), "vermilion submarine"), all);
        assert_eq!(found(home.path(), "vermilion balloon"), names(&[]));
    }

    /// Writes a Parquet file in which only the text is compressed.
    fn write_rows(path: &Path, text: &str) {
        let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, false)]));
        let rows = RecordBatch::try_new(schema.clone(), vec![Arc::new(StringArray::from(vec![text; 3]))]).unwrap();
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
        let properties = properties.set_statistics_enabled(parquet::file::properties::EnabledStatistics::None).build();
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), schema, Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn words_are_found_before_what_is_damaged_in_a_packing() {
        let home = tempfile::tempdir().unwrap();
        let numbers: String = (0..100_000).map(|n| format!("{n},")).collect();
        let (before, after) = numbers.split_at(50_000);
        let packed = zstd::bulk::compress(format!("{before}the vermilion submarine{after}").as_bytes(), 1).unwrap();
        let half = packed.len() / 2;
        assert_eq!(memmem::find(&packed, b"vermilion"), None);
        fs::write(home.path().join("cut"), [b"here: ", &packed[..half]].concat()).unwrap();
        fs::write(home.path().join("damaged"), [b"here: ", &packed[..half], &vec![0xffu8; half]].concat()).unwrap();
        assert_eq!(found(home.path(), "vermilion submarine"), names(&["cut", "damaged"]));
    }

    #[test]
    fn words_are_found_in_journals_and_in_tables_also_once_they_are_superseded() {
        let home = tempfile::tempdir().unwrap();
        let (database, keyspace) = store(home.path());
        // Journals compress long values.
        let long = format!("{}the vermilion submarine", "abc ".repeat(2_000));
        keyspace.insert([0u8; 12], long.as_str()).unwrap();
        database.persist(PersistMode::SyncAll).unwrap();
        let journal = names(&["0.jnl"]);
        assert_eq!(found(home.path(), "vermilion submarine"), journal);
        assert_eq!(found(home.path(), "vermilion balloon"), names(&[]));
        keyspace.insert([1u8; 12], "the azure balloon").unwrap();
        keyspace.rotate_memtable_and_wait().unwrap();
        assert_eq!(found(home.path(), "azure balloon"), names(&["0.jnl", "table"]));
        // The older table still holds it. Below, so does a table with compressed blocks.
        keyspace.insert([1u8; 12], "nothing").unwrap();
        keyspace.rotate_memtable_and_wait().unwrap();
        assert!(found(home.path(), "azure balloon").contains("table"));
        keyspace.major_compact().unwrap();
        assert!(found(home.path(), "vermilion submarine").contains("table"));
        drop((keyspace, database));
        assert!(found(home.path(), "vermilion submarine").contains("table"));
    }

    #[test]
    fn words_are_found_in_files_of_long_values_also_once_they_are_superseded() {
        let home = tempfile::tempdir().unwrap();
        let database = Database::builder(home.path().join("store")).open().unwrap();
        let keyspace = database.keyspace("k", storage::keyspaces::long_values).unwrap();
        let noise: String = (0..60u8).map(|part| blake3::hash(&[part]).to_hex().to_string()).collect();
        let packed = zstd::bulk::compress(format!("{noise} the vermilion submarine").as_bytes(), 1).unwrap();
        keyspace.insert([0u8; 12], packed).unwrap();
        keyspace.rotate_memtable_and_wait().unwrap();
        assert_eq!(found(home.path(), "vermilion submarine"), names(&["0", "0.jnl"]));
        keyspace.insert([0u8; 12], "nothing").unwrap();
        keyspace.rotate_memtable_and_wait().unwrap();
        assert!(found(home.path(), "vermilion submarine").contains("0"));
        assert_eq!(found(home.path(), "vermilion balloon"), names(&[]));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed_and_is_named_unless_it_leads_to_what_is_searched() {
        use std::os::unix::fs::symlink;

        let home = tempfile::tempdir().unwrap();
        let (place, outside) = (home.path().join("log"), home.path().join("outside"));
        for directory in [&place, &outside] {
            fs::create_dir(directory).unwrap();
        }
        fs::write(outside.join("secret"), "the azure balloon").unwrap();
        fs::write(place.join("own"), "nothing").unwrap();
        symlink(&outside, place.join("directory")).unwrap();
        symlink(outside.join("secret"), place.join("file")).unwrap();
        symlink("own", place.join("inside")).unwrap();
        symlink("nowhere", place.join("dangling")).unwrap();
        symlink("..", place.join("above")).unwrap();
        drop(std::os::unix::net::UnixListener::bind(place.join("socket")).unwrap());
        symlink(&place, home.path().join("named")).unwrap();
        // The place itself may be a link.
        for place in [&place, &home.path().join("named")] {
            let search = searched(place, &words("azure balloon"), 2);
            let unread: Vec<_> = search.unread.iter().map(|(path, _)| path.strip_prefix(place).unwrap()).collect();
            assert_eq!(unread, ["above", "directory", "file"].map(Path::new));
            assert!(search.unread.iter().all(|(_, problem)| problem.contains("link")), "{:?}", search.unread);
            assert_eq!((search.found, search.files), (Vec::new(), 1));
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let home = tempfile::tempdir().unwrap();
        for (path, bytes) in [("tables/7", &b"no table"[..]), ("0.jnl", b"no journal"), ("a.parquet", b"no rows")] {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let search = searched(home.path(), &words("journal"), 2);
        let unread: Vec<_> = search.unread.iter().map(|(path, _)| path.strip_prefix(home.path()).unwrap()).collect();
        assert_eq!(unread, ["0.jnl", "a.parquet", "tables/7"].map(Path::new));
        assert_eq!(search.found.len(), 1, "it was read as it is");
    }

    #[test]
    fn the_result_is_the_same_however_many_threads_search() {
        let home = tempfile::tempdir().unwrap();
        let long = format!("{}the vermilion submarine{}", "a".repeat(600), "b".repeat(600));
        let (database, keyspace) = store(home.path());
        keyspace.insert([0u8; 12], long.as_str()).unwrap();
        keyspace.rotate_memtable_and_wait().unwrap();
        keyspace.insert([1u8; 12], "the azure balloon").unwrap();
        database.persist(PersistMode::SyncAll).unwrap();
        drop((keyspace, database));
        write_rows(&home.path().join("rows.parquet"), &long);
        fs::write(home.path().join("packed"), zstd::bulk::compress(long.as_bytes(), 1).unwrap()).unwrap();
        for n in 0..20 {
            fs::write(home.path().join(format!("{n}.jsonl")), "an azure BALLOON\n".repeat(n)).unwrap();
        }
        fs::write(home.path().join("none.parquet"), "no rows").unwrap();
        let words = WordPattern::new(&["vermilion submarine".to_owned(), "azure balloon".to_owned()]).unwrap();
        let alone = searched(home.path(), &words, 1);
        assert_eq!(searched(home.path(), &words, 4), alone);
        let (found, lines) = (file_names(&alone), (1..20).map(|n| format!("{n}.jsonl")).collect());
        assert!(found.is_superset(&names(&["packed", "rows.parquet", "table"])), "{found:?}");
        assert!(found.is_superset(&lines) && found.iter().any(|name| name.ends_with(".jnl")), "{found:?}");
        let [(unread, _)] = &alone.unread[..] else { panic!("{:?}", alone.unread) };
        assert_eq!(unread, &home.path().join("none.parquet"));
    }

    /// Words, and a function that is called whenever bytes are searched for them.
    struct Meanwhile<F> {
        words: WordPattern,
        happens: F,
    }

    impl<F: Fn(&[u8]) + Sync> StoragePattern for Meanwhile<F> {
        fn longest(&self) -> usize {
            self.words.longest()
        }

        fn find(&self, bytes: &[u8], found: &mut dyn FnMut(usize, Option<&str>)) {
            (self.happens)(bytes);
            self.words.find(bytes, found);
        }

        fn has_vectors(&self) -> bool {
            false
        }
    }

    #[test]
    fn a_file_whose_reading_panics_is_named_and_others_are_read() {
        let home = tempfile::tempdir().unwrap();
        for name in ["a", "panic", "z"] {
            fs::write(home.path().join(name), format!("{name}: the azure balloon")).unwrap();
        }
        let happens = |bytes: &[u8]| assert!(!bytes.starts_with(b"panic"), "as the test wants");
        let search = searched(home.path(), &Meanwhile { words: words("azure balloon"), happens }, 2);
        let files: Vec<_> = search.found.iter().map(|found| found.file.clone()).collect();
        assert_eq!(files, ["a", "z"].map(|name| home.path().join(name)));
        let [(unread, problem)] = &search.unread[..] else { panic!("{:?}", search.unread) };
        assert_eq!((unread, problem.contains("panicked")), (&home.path().join("panic"), true));
    }

    #[test]
    fn what_a_store_moves_before_it_is_read_is_read_where_it_lies_then() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("large"), "nothing ".repeat(1_000)).unwrap();
        fs::write(at("old"), "the azure balloon").unwrap();
        let happens = |_: &[u8]| drop(fs::rename(at("old"), at("new")));
        let search = searched(home.path(), &Meanwhile { words: words("azure balloon"), happens }, 1);
        let files: Vec<_> = search.found.iter().map(|found| found.file.clone()).collect();
        assert_eq!((files, search.unread, search.files), (vec![at("new")], Vec::new(), 2));
    }
}
