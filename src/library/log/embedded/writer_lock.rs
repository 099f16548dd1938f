//! One writer a directory: a locked file that contains the writer's process id.
//!
//! In: the path of the lock file. Out: the lock, or the id of the process that holds it. The
//! operating system releases the lock when the process ends, however it ends. A leftover file locks
//! nothing.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct WriterLock {
    file: File,
}

/// Why the lock was refused.
#[derive(Debug)]
pub(super) enum Refused {
    /// Another process has it: `process 4711`, or `another process`.
    InUse(String),
    /// The file could not be opened or locked.
    Failed(io::Error),
}

impl WriterLock {
    /// Takes the lock, without waiting for its holder.
    pub(super) fn take(path: &Path) -> Result<Self, Refused> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(Refused::Failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Refused::InUse(holder(&mut file))),
            Err(TryLockError::Error(e)) => return Err(Refused::Failed(e)),
        }
        // The id only serves the error message: writing it may fail, such as on a full disk.
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(std::process::id().to_string().as_bytes()));
        Ok(Self { file })
    }
}

impl Drop for WriterLock {
    /// Unlocks explicitly: a child process that another thread is just starting has a copy of the
    /// descriptor until `exec`, and the lock would last until the last copy is closed.
    fn drop(&mut self) {
        // If this fails, closing the descriptor unlocks.
        let _ = self.file.unlock();
    }
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
        let lock = WriterLock::take(&path).unwrap();
        let _inherited = lock.file.try_clone().unwrap();
        assert!(matches!(WriterLock::take(&path), Err(Refused::InUse(_))));
        drop(lock);
        WriterLock::take(&path).unwrap();
    }
}
