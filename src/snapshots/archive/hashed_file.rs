//! A file that hashes and counts what is written to it.

use std::{
    fs::File,
    io::{self, Write},
};

/// A file, with the BLAKE3 and the number of its bytes.
pub(super) struct HashedFile {
    pub file: File,
    pub hash: blake3::Hasher,
    pub bytes: u64,
}

impl HashedFile {
    pub(super) fn new(file: File) -> Self {
        Self { file, hash: blake3::Hasher::new(), bytes: 0 }
    }
}

impl Write for HashedFile {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.file.write(buffer)?;
        self.hash.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
