//! The format of the store's journals: reads a journal, and empties one in place.
//!
//! In, to read: bytes of a journal. Out: the keys and values of its items, decompressed. In, to empty: a journal whose
//! entries all lie in tables, while nothing is written. Out: a journal of the same length without them. The store
//! begins a new journal only after 64 MB, and continues writing where it was. So the bytes before that place are
//! replaced by entries of a keyspace that does not exist, which a start skips; their values are zeros that take no disk
//! space. If the process dies meanwhile, the next start finds a shorter journal, and tables hold what it lacks.
//!
//! An entry: the start (tag, count of items, number of the write), the item (tag, kind of the value, compression,
//! keyspace, lengths of key, value and stored value, key, value), the end (tag, 64-bit XXH3 of the item, magic bytes).

use std::{
    borrow::Cow,
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
};

use xxhash_rust::xxh3::Xxh3Default;

/// What an entry begins with.
mod tag {
    pub(super) const START: u8 = 1;
    pub(super) const ITEM: u8 = 2;
    pub(super) const END: u8 = 3;
    pub(super) const CLEAR: u8 = 4;
}

/// The start of a batch of one item, of write 0.
const START: [u8; 13] = [tag::START, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// An item up to its lengths: a plain value of keyspace 0, which has no name, under an empty key.
const ITEM: [u8; 13] = [tag::ITEM, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
const MAGIC: [u8; 4] = *b"FJL\x03";
/// Bytes of an entry without its value: its start, the item with two lengths, and its end.
const FRAME_BYTES: u64 = 13 + 13 + 8 + 13;
/// Bytes of an entry; the last one may have twice as many. A start holds a whole entry in memory.
const ENTRY_BYTES: u64 = 1 << 20;
/// Bytes that are read at once.
const BLOCK_BYTES: usize = 1 << 20;

/// Empties a journal. If the store has removed it meanwhile, there is nothing to do.
pub(super) fn empty(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let length = file.metadata()?.len();
    let end = end_of(&mut file, length)?;
    // No record fits into less.
    if end < FRAME_BYTES {
        return Ok(());
    }
    file.set_len(0)?;
    file.set_len(length)?;
    let mut at = 0;
    while at < end {
        let rest = end - at;
        let bytes = if rest < 2 * ENTRY_BYTES { rest } else { ENTRY_BYTES };
        write_entry(&mut file, at, bytes)?;
        at += bytes;
    }
    file.sync_all()
}

/// Writes an entry of this many bytes around the zeros that are there, which become its value.
fn write_entry(file: &mut File, at: u64, bytes: u64) -> io::Result<()> {
    let value = bytes - FRAME_BYTES;
    // An entry has less than 2 MiB.
    let length = (value as u32).to_le_bytes();
    let item = [&ITEM[..], &length, &length].concat();
    let mut sum = Xxh3Default::new();
    sum.update(&item);
    sum.update(&vec![0; value as usize]);
    file.seek(SeekFrom::Start(at))?;
    file.write_all(&[&START[..], &item].concat())?;
    file.seek(SeekFrom::Current(value as i64))?;
    file.write_all(&[&[tag::END][..], &sum.digest().to_le_bytes(), &MAGIC].concat())
}

/// Where the store continues writing: after the last byte that is not zero, which is the last of an entry.
fn end_of(file: &mut File, length: u64) -> io::Result<u64> {
    let (mut end, mut block) = (length, vec![0; BLOCK_BYTES]);
    while end > 0 {
        let from = end.saturating_sub(BLOCK_BYTES as u64);
        let part = &mut block[..(end - from) as usize];
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(part)?;
        if let Some(last) = part.iter().rposition(|byte| *byte != 0) {
            return Ok(from + last as u64 + 1);
        }
        end = from;
    }
    Ok(0)
}

/// A key and a value of a journal.
pub(crate) type JournalItem<'b> = (&'b [u8], Cow<'b, [u8]>);

/// The next item of a journal; `None` at its end, or if it cannot be read.
pub fn next_item<'b>(rest: &mut &'b [u8]) -> Option<JournalItem<'b>> {
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

/// Reads the kind of the value, its compression, the keyspace, three lengths, the key and the value.
fn item<'b>(at: &mut &'b [u8]) -> Option<JournalItem<'b>> {
    let [_, compression] = take::<2>(at)?;
    take::<8>(at)?;
    let key = usize::from(u16::from_le_bytes(take(at)?));
    let (length, stored) = (u32::from_le_bytes(take(at)?), u32::from_le_bytes(take(at)?));
    let (key, after) = at.split_at_checked(key)?;
    let (value, after) = after.split_at_checked(stored as usize)?;
    let value = match compression {
        0 => Cow::Borrowed(value),
        1 => Cow::Owned(lz4_flex::decompress(value, length as usize).ok()?),
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
    use fjall::{Database, KeyspaceCreateOptions, PersistMode};
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    /// The expected parts of the format that a journal with a short and a compressed value lacks.
    fn not_found(journal: &[u8], short: JournalItem, long: JournalItem) -> Vec<&'static str> {
        let (mut rest, mut items, mut ends) = (journal, Vec::new(), Vec::new());
        while let Some(item) = next_item(&mut rest) {
            items.push(item);
            ends.push(journal.len() - rest.len());
        }
        let at = |wanted: &JournalItem| items.iter().position(|item| item == wanted);
        let is_packed = |at: usize| matches!(items[at].1, Cow::Owned(_));
        // What `write_entry` would write around the item as it was stored.
        let entry = at(&short).and_then(|at| {
            let from = ends[at].checked_sub(ITEM.len() + 8 + short.0.len() + short.1.len())?;
            let start = journal[..from].split_last_chunk::<13>()?.1;
            let end = journal[ends[at]..].first_chunk::<13>()?;
            Some((*start, &journal[from..ends[at]], *end))
        });
        let parts = [
            ("an item that is plain", at(&short).is_some_and(|at| !is_packed(at))),
            ("an item that is packed with LZ4", at(&long).is_some_and(is_packed)),
            ("the start of an entry", entry.is_some_and(|(start, ..)| start[..5] == START[..5])),
            ("the tag of an entry's end", entry.is_some_and(|(.., end)| end[0] == tag::END)),
            ("the checksum of an entry", entry.is_some_and(|(_, item, end)| end[1..9] == xxh3_64(item).to_le_bytes())),
            ("the magic bytes of an entry's end", entry.is_some_and(|(.., end)| end[9..] == MAGIC)),
            ("the empty room", rest.iter().skip(13).all(|byte| *byte == 0)),
        ];
        parts.into_iter().filter(|(_, is_there)| !is_there).map(|(part, _)| part).collect()
    }

    #[test]
    fn the_form_of_a_journal_is_the_one_of_the_store() {
        let home = tempfile::tempdir().unwrap();
        let database = Database::builder(home.path()).open().unwrap();
        let keyspace = database.keyspace("k", KeyspaceCreateOptions::default).unwrap();
        let long = "abc ".repeat(2_000);
        keyspace.insert("long", long.as_str()).unwrap();
        keyspace.insert("short", "value").unwrap();
        database.persist(PersistMode::SyncAll).unwrap();
        let journal = std::fs::read(home.path().join("0.jnl")).unwrap();
        let short_item: JournalItem = (b"short", Cow::Borrowed(b"value"));
        let long_item: JournalItem = (b"long", Cow::Borrowed(long.as_bytes()));
        let missing = |journal: &[u8]| not_found(journal, short_item.clone(), long_item.clone());
        assert!(
            missing(&journal).is_empty(),
            "fjall's journals have another form; log/embedded/journal.rs no longer finds {:?}",
            missing(&journal)
        );
        // A changed format is reported by the name of the part.
        let magic = memchr::memmem::rfind(&journal, &MAGIC).unwrap();
        let mut changed = journal.clone();
        changed[magic + 3] += 1;
        assert_eq!(missing(&changed), ["the magic bytes of an entry's end"]);
    }
}
