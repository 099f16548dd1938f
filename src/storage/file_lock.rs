//! Locks on files: one holder at a time, among all processes.
//!
//! In: the path of a lock file, which is made and stays. Out: the lock, or the id of the process that holds it. The
//! operating system releases the lock when the process ends, however it ends. A leftover file locks nothing.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

/// A lock, held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

/// Why a lock was refused.
#[derive(Debug)]
pub enum FileLockError {
    /// Another process has it: `process 4711`, or `another process`.
    InUse(String),
    /// The file could not be opened or locked.
    Failed(io::Error),
}

impl FileLock {
    /// Takes the lock, without waiting for its holder.
    ///
    /// # Errors
    /// [`FileLockError`].
    pub fn take(path: &Path) -> Result<Self, FileLockError> {
        let mut file = open(path).map_err(FileLockError::Failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self::held(file)),
            Err(TryLockError::WouldBlock) => Err(FileLockError::InUse(holder(&mut file))),
            Err(TryLockError::Error(e)) => Err(FileLockError::Failed(e)),
        }
    }

    /// Takes the lock once it is free.
    ///
    /// # Errors
    /// The file could not be opened or locked.
    pub fn wait(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        file.lock()?;
        Ok(Self::held(file))
    }

    fn held(mut file: File) -> Self {
        // The id only serves the error message: writing it may fail, such as on a full disk.
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(std::process::id().to_string().as_bytes()));
        Self { file }
    }
}

impl Drop for FileLock {
    /// Unlocks explicitly: a child process that another thread is just starting has a copy of the
    /// descriptor until `exec`, and the lock would last until the last copy is closed.
    fn drop(&mut self) {
        // If this fails, closing the descriptor unlocks.
        let _ = self.file.unlock();
    }
}

/// Opens the file of a lock, which only its owner may read.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(20).read_to_string(&mut text).ok().and_then(|_| text.trim().parse::<u32>().ok()) {
        Some(id) => format!("process {id}"),
        None => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_unlocks_although_a_child_process_inherited_the_descriptor() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let lock = FileLock::take(&path).unwrap();
        let _inherited = lock.file.try_clone().unwrap();
        assert!(matches!(FileLock::take(&path), Err(FileLockError::InUse(_))));
        drop(lock);
        FileLock::take(&path).unwrap();
    }
}
