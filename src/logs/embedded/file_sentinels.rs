//! Whether the files of an open log are still there.
//!
//! In: the log's directory. Out: whether its paths still lead to the directories and files that were opened. An open
//! file that was removed still takes writes, but they are lost when the process ends, so they must not be called
//! durable. Only files that the store never replaces are checked.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The paths that a log keeps from its first start on, from the outside in.
const KEPT: [&str; 4] = ["", "writer.lock", "store", "store/version"];

/// Files and directories, each with its identity.
pub(super) struct FileSentinels(Vec<(PathBuf, FileIdentity)>);

/// Device and inode: they differ if another file takes the same path.
type FileIdentity = (u64, u64);

impl FileSentinels {
    /// The sentinels of a log's directory.
    ///
    /// # Errors
    /// One of them is missing, or cannot be examined.
    pub(super) fn of(directory: &Path) -> io::Result<Self> {
        let of = |name: &&str| {
            let path = directory.join(name);
            Ok((path.clone(), identity(&path)?))
        };
        KEPT.iter().map(of).collect::<io::Result<_>>().map(Self)
    }

    /// Whether every path still leads to the same file.
    pub(super) fn are_there(&self) -> bool {
        self.0.iter().all(|(path, of)| identity(path).is_ok_and(|now| now == *of))
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<FileIdentity> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// On other systems an open file cannot be removed.
#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<FileIdentity> {
    fs::metadata(path).map(|_| (0, 0))
}
