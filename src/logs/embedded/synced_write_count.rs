//! The count of synced writes, in a file beside the store.
//!
//! In: the count. Out: the same count at the next start. After a crash the store drops a tail that
//! it cannot read: it does not know whether those writes were acknowledged. With this count the log
//! knows. The file is not synced after each write, which would double the cost, so after a power cut
//! its count may be too low, but never too high.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

const NAME: &str = "acknowledged";
const UNFINISHED: &str = "acknowledged.new";
const BYTES: usize = 16;

/// The open file.
#[derive(Debug)]
pub(super) struct SyncedWriteCount {
    file: File,
}

impl SyncedWriteCount {
    /// The count in `directory`; `None` if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or its checksum does not match ([`io::ErrorKind::InvalidData`]).
    pub(super) fn read(directory: &Path) -> io::Result<Option<u64>> {
        let mut bytes = Vec::with_capacity(BYTES);
        match File::open(directory.join(NAME)) {
            Ok(file) => file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        match bytes.split_first_chunk::<8>() {
            Some((count, sum)) if sum == checksum(*count) => Ok(Some(u64::from_be_bytes(*count))),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{NAME}: checksum does not match"))),
        }
    }

    /// Creates the file with `count`, and syncs it. It is written under another name and renamed, so that
    /// a kill leaves either the old file or the new one, never an empty one.
    ///
    /// # Errors
    /// The file cannot be created or written.
    pub(super) fn open(directory: &Path, count: u64) -> io::Result<Self> {
        let unfinished = directory.join(UNFINISHED);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&unfinished)?;
        let mut acknowledged = Self { file };
        acknowledged.write(count)?;
        acknowledged.sync()?;
        std::fs::rename(unfinished, directory.join(NAME))?;
        File::open(directory)?.sync_all()?;
        Ok(acknowledged)
    }

    /// Overwrites the count in place. It fits one sector, so it is never half written.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write(&mut self, count: u64) -> io::Result<()> {
        let mut bytes = [0u8; BYTES];
        let (head, tail) = bytes.split_at_mut(8);
        head.copy_from_slice(&count.to_be_bytes());
        tail.copy_from_slice(&checksum(count.to_be_bytes()));
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&bytes)
    }

    /// Syncs the file.
    ///
    /// # Errors
    /// The operating system cannot sync it.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

fn checksum(count: [u8; 8]) -> [u8; 8] {
    let mut sum = [0u8; 8];
    sum.copy_from_slice(&blake3::hash(&count).as_bytes()[..8]);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_back_and_damage_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(SyncedWriteCount::read(directory.path()).unwrap(), None);
        let mut file = SyncedWriteCount::open(directory.path(), 7).unwrap();
        assert_eq!(SyncedWriteCount::read(directory.path()).unwrap(), Some(7));
        file.write(8).unwrap();
        assert_eq!(SyncedWriteCount::read(directory.path()).unwrap(), Some(8));
        // A process killed while it creates the file leaves the old one.
        std::fs::write(directory.path().join(UNFINISHED), b"").unwrap();
        assert_eq!(SyncedWriteCount::read(directory.path()).unwrap(), Some(8));
        drop(SyncedWriteCount::open(directory.path(), 9).unwrap());
        assert_eq!(SyncedWriteCount::read(directory.path()).unwrap(), Some(9));
        let path = directory.path().join(NAME);
        for damaged in [&b""[..], &b"1234"[..], &[0u8; 16][..], &[0u8; 17][..]] {
            std::fs::write(&path, damaged).unwrap();
            let error = SyncedWriteCount::read(directory.path()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{damaged:?}");
        }
    }
}
