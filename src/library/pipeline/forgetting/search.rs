//! Looking for words, or for fingerprints of words, in stored bytes, decompressed.
//!
//! In: what is looked for, and files. Out: where it lies. Each file is read as it is, and then as what it is: tables and
//! journals of the embedded stores entry by entry, superseded ones included, their files of long values as a whole;
//! Parquet page by page; and whatever is packed with Zstandard inside. The words are held in memory alone.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use aho_corasick::AhoCorasick;
use bytes::Bytes;
use memchr::memmem;
use parquet::file::reader::{ChunkReader, FileReader as _, SerializedFileReader};

use super::{
    PipelineError,
    vector_forms::{each_vector_of_parquet, json_of},
};
use models::embed::cached_vectors;

/// The first bytes of a frame of Zstandard.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Bytes of a file that are read at once, where it is read as it is.
const READ_BYTES: usize = 8 << 20;
/// The longest words, in bytes: far below what is read at once, so that they are found across two reads.
const LONGEST_WORDS: usize = 64 << 10;
/// How deep packed bytes lie in packed bytes.
const DEPTH: u32 = 3;
/// Findings that are kept of a file; more of them say nothing more.
const FOUND_IN_FILE: usize = 16;
/// How often a journal is read until its last entry is whole, and the pause in between.
const JOURNAL_READS: u32 = 3;
const JOURNAL_PAUSE: Duration = Duration::from_millis(100);
/// Tags of a journal's entries.
mod tag {
    pub(super) const START: u8 = 1;
    pub(super) const ITEM: u8 = 2;
    pub(super) const END: u8 = 3;
    pub(super) const CLEAR: u8 = 4;
}

/// Where words lie.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The file, or the URL of a bucket's object.
    pub file: PathBuf,
    /// Where in it: an offset in bytes, or the offset of a record in the log.
    pub at: String,
    /// The operation whose fingerprint was found; none where words were looked for.
    pub operation: Option<String>,
}

/// What a search read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Search {
    /// Bytes on the disk.
    pub bytes: u64,
    /// Files.
    pub files: u64,
    /// Where words lie.
    pub found: Vec<Found>,
    /// The operations of which a fingerprint was found.
    pub operations: BTreeSet<String>,
    /// Files that could not be read whole, and why.
    pub unread: Vec<(PathBuf, String)>,
}

/// What is looked for.
pub(super) trait Needles {
    /// How many bytes are searched again with what follows them, so that nothing is missed between two reads.
    fn longest(&self) -> usize;
    /// Calls `found` with where in the bytes something begins, and with the operation that it is a fingerprint of.
    fn find(&self, bytes: &[u8], found: &mut dyn FnMut(usize, Option<&str>));
    /// Whether vectors are looked for, too: each is searched as memory records write it, whatever its form.
    fn has_vectors(&self) -> bool;
}

/// Words that are looked for, without regard to the case of ASCII letters.
pub(super) struct Words {
    words: AhoCorasick,
    longest: usize,
}

impl Words {
    /// As they are, and as JSON escapes them.
    pub(super) fn new(words: &[String]) -> Result<Self, PipelineError> {
        let refused = |problem: String| PipelineError::Forget { what: "--words".to_owned(), problem };
        let mut needles: Vec<String> = Vec::new();
        for word in words.iter().map(|word| word.trim()) {
            if word.is_empty() {
                return Err(refused("one of them is empty; it would be everywhere".to_owned()));
            }
            let escaped = serde_json::Value::from(word).to_string();
            needles.extend([word.to_owned(), escaped.trim_matches('"').to_owned()]);
        }
        if needles.is_empty() {
            return Err(refused("none is given".to_owned()));
        }
        let longest = needles.iter().map(String::len).max().unwrap_or(0);
        if longest > LONGEST_WORDS {
            return Err(refused(format!("one of them has more than {LONGEST_WORDS} bytes; give a part of it")));
        }
        let words = AhoCorasick::builder().ascii_case_insensitive(true).build(&needles);
        Ok(Self { words: words.map_err(|e| refused(e.to_string()))?, longest })
    }
}

impl Needles for Words {
    fn longest(&self) -> usize {
        self.longest
    }

    fn find(&self, bytes: &[u8], found: &mut dyn FnMut(usize, Option<&str>)) {
        if let Some(first) = self.words.find(bytes) {
            found(first.start(), None);
        }
    }

    fn has_vectors(&self) -> bool {
        false
    }
}

/// Searches files.
pub(super) struct Searcher<'w> {
    needles: &'w dyn Needles,
    search: Search,
    /// How many were found in the file that is being read.
    in_file: usize,
}

impl<'w> Searcher<'w> {
    pub(super) fn new(needles: &'w dyn Needles) -> Self {
        Self { needles, search: Search::default(), in_file: 0 }
    }

    pub(super) fn done(mut self) -> Search {
        self.search.found.sort();
        self.search.found.dedup();
        self.search
    }

    /// Searches a file, or every file below a directory.
    pub(super) fn below(&mut self, path: &Path) {
        let listed = match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>),
            Ok(_) => return self.file(path),
            Err(error) => Err(error),
        };
        match listed {
            Ok(mut entries) => {
                entries.sort_by_key(fs::DirEntry::file_name);
                entries.iter().for_each(|entry| self.below(&entry.path()));
            }
            Err(error) => self.unread(path, &error),
        }
    }

    fn file(&mut self, path: &Path) {
        self.in_file = 0;
        let is_in = |folder: &str| path.parent().is_some_and(|parent| parent.ends_with(folder));
        let read = if is_in("blobs") { self.values(path) } else { self.raw(path) };
        match read {
            Ok(bytes) => {
                self.search.bytes += bytes;
                self.search.files += 1;
            }
            Err(error) => return self.unread(path, &error),
        }
        let is = |name: &str| path.extension().is_some_and(|extension| extension == name);
        let unpacked = if is("parquet") {
            let open = || File::open(path).map_err(|e| e.to_string());
            open().and_then(|file| self.parquet(file, path)).and_then(|()| self.vectors(open()?, path))
        } else if is("jnl") {
            self.journal(path)
        } else if is_in("tables") {
            self.table(path)
        } else {
            self.packed(path)
        };
        if let Err(problem) = unpacked {
            self.unread(path, &problem);
        }
    }

    /// Searches an object of a bucket: Parquet by pages, and anything as it is.
    pub(super) fn object(&mut self, name: &Path, bytes: &Bytes) {
        self.in_file = 0;
        self.search.bytes += bytes.len() as u64;
        self.search.files += 1;
        let mut unread: &[u8] = bytes;
        let read = self.blocks(&mut unread, name, "byte").map(drop).map_err(|e| e.to_string());
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

    /// A store replaces its files while they are read; what it removed is no place any more.
    fn unread(&mut self, path: &Path, problem: &dyn std::fmt::Display) {
        if path.exists() {
            self.not_read(path, problem);
        }
    }

    fn raw(&mut self, path: &Path) -> io::Result<u64> {
        self.blocks(&mut File::open(path)?, path, "byte")
    }

    /// Looks at what is read, and returns how many bytes that were.
    fn blocks(&mut self, from: &mut dyn io::Read, path: &Path, unit: &str) -> io::Result<u64> {
        let (mut block, mut read, mut kept) = (vec![0; READ_BYTES], 0u64, 0);
        loop {
            let more = from.read(&mut block[kept..])?;
            if more == 0 {
                return Ok(read);
            }
            let start = read - kept as u64;
            read += more as u64;
            let end = kept + more;
            self.look(&block[..end], path, &mut |at| format!("{unit} {}", start + at as u64), 0);
            kept = end.min(self.needles.longest().saturating_sub(1));
            block.copy_within(end - kept..end, 0);
        }
    }

    /// Looks at bytes, and at what is packed in them.
    fn look(&mut self, bytes: &[u8], path: &Path, at: &mut dyn FnMut(usize) -> String, depth: u32) {
        let needles = self.needles;
        needles.find(bytes, &mut |start, operation| self.note(path, at(start), operation));
        if depth == DEPTH {
            return;
        }
        let mut from = 0;
        while let Some(next) = memmem::find(bytes.get(from..).unwrap_or_default(), &ZSTD_MAGIC) {
            let start = from + next;
            let mut unpacked = Vec::new();
            // Other bytes may begin like a frame; what was unpacked before the first that does not fit counts.
            if let Ok(frame) = zstd::stream::read::Decoder::with_buffer(&bytes[start..]) {
                drop(frame.single_frame().read_to_end(&mut unpacked));
            }
            self.look(&unpacked, path, &mut |_| at(start), depth + 1);
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
            self.search.found.push(Found { file: path.to_owned(), at, operation });
        }
    }

    /// An entry of an embedded store, with its vectors where it is one of the cache.
    fn entry(&mut self, key: &[u8], value: &[u8], path: &Path) {
        self.look(key, path, &mut |_| place_of(key), 0);
        self.look(value, path, &mut |_| place_of(key), 0);
        let vectors = if self.needles.has_vectors() { cached_vectors(value) } else { None };
        for vector in vectors.into_iter().flatten() {
            self.look(json_of(&vector).as_bytes(), path, &mut |_| place_of(key), DEPTH);
        }
    }

    /// A table of an embedded store: every version of every entry.
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

    /// A file of long values of an embedded store, as a whole: a value is packed by itself, and may lie anywhere.
    fn values(&mut self, path: &Path) -> io::Result<u64> {
        let bytes = fs::read(path)?;
        self.look(&bytes, path, &mut |at| format!("byte {at}"), 0);
        Ok(bytes.len() as u64)
    }

    /// A file that is packed as a whole, which may be larger than what is read at once.
    fn packed(&mut self, path: &Path) -> Result<(), String> {
        let failed = |e: io::Error| e.to_string();
        let mut file = File::open(path).map_err(failed)?;
        let mut first = [0; ZSTD_MAGIC.len()];
        if file.read_exact(&mut first).is_err() || first != ZSTD_MAGIC {
            return Ok(());
        }
        let mut unpacked = zstd::stream::read::Decoder::new(File::open(path).map_err(failed)?).map_err(failed)?;
        self.blocks(&mut unpacked, path, "unpacked byte").map(drop).map_err(failed)
    }

    /// A journal of an embedded store: its entries up to the room that is still empty.
    fn journal(&mut self, path: &Path) -> Result<(), String> {
        let mut left = None;
        // The last entry may be in the middle of its write.
        for _ in 0..JOURNAL_READS {
            let bytes = fs::read(path).map_err(|e| e.to_string())?;
            let mut rest = bytes.as_slice();
            while let Some((key, value)) = next_item(&mut rest) {
                self.entry(key, &value, path);
            }
            left = rest.iter().any(|byte| *byte != 0).then(|| bytes.len() - rest.len());
            if left.is_none() {
                break;
            }
            std::thread::sleep(JOURNAL_PAUSE);
        }
        left.map_or(Ok(()), |at| Err(format!("it cannot be read from byte {at} on")))
    }

    /// A Parquet file: the pages of every column, unpacked.
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

    /// The vectors of a Parquet file, which its pages hold in pieces.
    fn vectors<R: ChunkReader + 'static>(&mut self, file: R, path: &Path) -> Result<(), String> {
        if !self.needles.has_vectors() {
            return Ok(());
        }
        each_vector_of_parquet(file, &mut |vector| {
            self.look(json_of(vector).as_bytes(), path, &mut |_| "a vector".to_owned(), DEPTH);
        })
    }
}

/// What a key of the embedded log names.
fn place_of(key: &[u8]) -> String {
    match key.split_first_chunk::<4>() {
        Some((partition, offset)) if offset.len() == 8 => {
            let offset = offset.iter().fold(0u64, |offset, byte| offset << 8 | u64::from(*byte));
            format!("partition {}, offset {offset}", u32::from_be_bytes(*partition))
        }
        _ => format!("the entry of a key of {} bytes", key.len()),
    }
}

/// The next key and value of a journal; none at its end, or where it cannot be read.
fn next_item<'b>(rest: &mut &'b [u8]) -> Option<(&'b [u8], Vec<u8>)> {
    loop {
        let mut at = *rest;
        let found = match take::<1>(&mut at)? {
            [tag::START] => take::<12>(&mut at).map(|_| None),
            [tag::END] => take::<12>(&mut at).map(|_| None),
            [tag::CLEAR] => take::<8>(&mut at).map(|_| None),
            [tag::ITEM] => item(&mut at).map(Some),
            _ => None,
        }?;
        *rest = at;
        if found.is_some() {
            return found;
        }
    }
}

/// The kind of the value, that of its compression, the keyspace, three lengths, the key and the value.
fn item<'b>(at: &mut &'b [u8]) -> Option<(&'b [u8], Vec<u8>)> {
    let [_, compression] = take::<2>(at)?;
    take::<8>(at)?;
    let key = usize::from(u16::from_le_bytes(take(at)?));
    let (length, stored) = (u32::from_le_bytes(take(at)?), u32::from_le_bytes(take(at)?));
    let (key, after) = at.split_at_checked(key)?;
    let (value, after) = after.split_at_checked(stored as usize)?;
    let value = match compression {
        0 => value.to_vec(),
        1 => lz4_flex::decompress(value, length as usize).ok()?,
        _ => return None,
    };
    *at = after;
    Some((key, value))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{RecordBatch, StringArray};
    use arrow_schema::{DataType, Field, Schema};
    use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
    use parquet::{arrow::ArrowWriter, basic::Compression, file::properties::WriterProperties};

    use super::*;

    /// The file names in which the words lie.
    fn found(home: &Path, words: &str) -> BTreeSet<String> {
        let words = Words::new(&[words.to_owned()]).unwrap();
        let mut searcher = Searcher::new(&words);
        searcher.below(home);
        let search = searcher.done();
        assert_eq!(search.unread, []);
        let kind = |found: &Found| {
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
        assert!(Words::new(&[]).is_err() && Words::new(&[" ".to_owned()]).is_err());
        // Longer words than are read at once would never be found, and count as gone.
        assert!(Words::new(&["a".repeat(LONGEST_WORDS + 1)]).is_err());
    }

    #[test]
    fn words_are_found_in_every_packing() {
        let home = tempfile::tempdir().unwrap();
        let long = format!("{}the vermilion submarine{}", "a".repeat(600), "b".repeat(600));
        let packed = zstd::bulk::compress(long.as_bytes(), 1).unwrap();
        let inside = [b"before", &packed[..], &zstd::bulk::compress(b"after", 1).unwrap()].concat();
        fs::write(home.path().join("packed"), inside).unwrap();
        let schema = Arc::new(Schema::new(vec![Field::new("text", DataType::Utf8, false)]));
        let rows =
            RecordBatch::try_new(schema.clone(), vec![Arc::new(StringArray::from(vec![long.as_str(); 3]))]).unwrap();
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default()));
        let properties = properties.set_statistics_enabled(parquet::file::properties::EnabledStatistics::None).build();
        let file = File::create(home.path().join("rows.parquet")).unwrap();
        let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        assert_eq!(found(home.path(), "vermilion submarine"), names(&["packed", "rows.parquet"]));
        assert_eq!(found(home.path(), "vermilion balloon"), names(&[]));
    }

    #[test]
    fn words_are_found_in_journals_and_in_tables_also_once_they_are_superseded() {
        let home = tempfile::tempdir().unwrap();
        let (database, keyspace) = store(home.path());
        // Long values are packed in journals.
        let long = format!("{}the vermilion submarine", "abc ".repeat(2_000));
        keyspace.insert([0u8; 12], long.as_str()).unwrap();
        database.persist(PersistMode::SyncAll).unwrap();
        let journal = names(&["0.jnl"]);
        assert_eq!(found(home.path(), "vermilion submarine"), journal);
        assert_eq!(found(home.path(), "vermilion balloon"), names(&[]));
        keyspace.insert([1u8; 12], "the azure balloon").unwrap();
        keyspace.rotate_memtable_and_wait().unwrap();
        assert_eq!(found(home.path(), "azure balloon"), names(&["0.jnl", "table"]));
        // The older table still holds it. Below, so does a table whose blocks are packed.
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
        let keyspace = database.keyspace("k", models::store::long_values).unwrap();
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

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let home = tempfile::tempdir().unwrap();
        for (path, bytes) in [("tables/7", &b"no table"[..]), ("0.jnl", b"no journal"), ("a.parquet", b"no rows")] {
            let path = home.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let words = Words::new(&["journal".to_owned()]).unwrap();
        let mut searcher = Searcher::new(&words);
        searcher.below(home.path());
        let search = searcher.done();
        let unread: Vec<_> = search.unread.iter().map(|(path, _)| path.strip_prefix(home.path()).unwrap()).collect();
        assert_eq!(unread, ["0.jnl", "a.parquet", "tables/7"].map(Path::new));
        assert_eq!(search.found.len(), 1, "it was read as it is");
    }
}
