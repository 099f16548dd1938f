//! One writer a directory: a locked file with the writer's process id in it.
//!
//! In: a directory. Out: a lock that the system releases when the process ends, however
//! it ends, or the id of the process that holds it. A file left behind locks nothing.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

const NAME: &str = "writer.lock";

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(super) struct WriterLock {
    _file: File,
}

/// Why there is no lock.
#[derive(Debug)]
pub(super) enum Refused {
    /// Somebody has it: `process 4711`, or `another process`.
    Held(String),
    /// The file could not be opened or locked.
    Failed(io::Error),
}

impl WriterLock {
    /// Takes the lock of a directory, or says at once who has it.
    pub(super) fn take(directory: &Path) -> Result<Self, Refused> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(directory.join(NAME))
            .map_err(Refused::Failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Refused::Held(holder(&mut file))),
            Err(TryLockError::Error(e)) => return Err(Refused::Failed(e)),
        }
        // The id only serves the message: a full disk must not keep a reader out.
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(std::process::id().to_string().as_bytes()));
        Ok(Self { _file: file })
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(20).read_to_string(&mut text).ok().and_then(|_| text.trim().parse::<u32>().ok()) {
        Some(id) => format!("process {id}"),
        None => "another process".to_owned(),
    }
}
