//! How many writes were on the disk when the log last said so: a number beside the store.
//!
//! In: the count of writes that are synced. Out: the same count at the next start. The
//! store drops a tail that it cannot read, since after a crash it cannot tell a write
//! that was never acknowledged from one that was; with this count the log can. The file
//! itself is not synced after each write (that would double the cost), so that it may
//! lag behind after a power cut, and never runs ahead of the store.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

const NAME: &str = "acknowledged";
const FRESH: &str = "acknowledged.new";
const BYTES: usize = 16;

/// The open file.
#[derive(Debug)]
pub(super) struct Acknowledged {
    file: File,
}

impl Acknowledged {
    /// The count in `directory`; absent when there is no such file.
    ///
    /// # Errors
    /// When it cannot be read, or its checksum does not fit ([`io::ErrorKind::InvalidData`]).
    pub(super) fn read(directory: &Path) -> io::Result<Option<u64>> {
        let mut bytes = Vec::with_capacity(BYTES);
        match File::open(directory.join(NAME)) {
            Ok(file) => file.take(BYTES as u64 + 1).read_to_end(&mut bytes)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        match bytes.split_first_chunk::<8>() {
            Some((count, sum)) if sum == checksum(*count) => Ok(Some(u64::from_be_bytes(*count))),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, format!("{NAME}: checksum does not fit"))),
        }
    }

    /// Opens the file for writing, with `count` in it and on the disk. It is written beside
    /// its place and renamed, so that a kill leaves the old file or the new one, never an
    /// empty one.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub(super) fn open(directory: &Path, count: u64) -> io::Result<Self> {
        let fresh = directory.join(FRESH);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&fresh)?;
        let mut acknowledged = Self { file };
        acknowledged.write(count)?;
        acknowledged.sync()?;
        std::fs::rename(fresh, directory.join(NAME))?;
        File::open(directory)?.sync_all()?;
        Ok(acknowledged)
    }

    /// Puts `count` into the file, in place: one sector, so that it is never half of two.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&mut self, count: u64) -> io::Result<()> {
        let mut bytes = [0u8; BYTES];
        let (head, tail) = bytes.split_at_mut(8);
        head.copy_from_slice(&count.to_be_bytes());
        tail.copy_from_slice(&checksum(count.to_be_bytes()));
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&bytes)
    }

    /// Brings the file to the disk.
    ///
    /// # Errors
    /// When the system cannot.
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
    fn a_count_comes_back_and_damage_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Acknowledged::read(directory.path()).unwrap(), None);
        let mut file = Acknowledged::open(directory.path(), 7).unwrap();
        assert_eq!(Acknowledged::read(directory.path()).unwrap(), Some(7));
        file.write(8).unwrap();
        assert_eq!(Acknowledged::read(directory.path()).unwrap(), Some(8));
        // Killed while it was made: the file in place is still whole.
        std::fs::write(directory.path().join(FRESH), b"").unwrap();
        assert_eq!(Acknowledged::read(directory.path()).unwrap(), Some(8));
        drop(Acknowledged::open(directory.path(), 9).unwrap());
        assert_eq!(Acknowledged::read(directory.path()).unwrap(), Some(9));
        let path = directory.path().join(NAME);
        for damaged in [&b""[..], &b"1234"[..], &[0u8; 16][..], &[0u8; 17][..]] {
            std::fs::write(&path, damaged).unwrap();
            let error = Acknowledged::read(directory.path()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{damaged:?}");
        }
    }
}
