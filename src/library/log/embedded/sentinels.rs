//! Whether the files of an open log are still there.
//!
//! In: the log's directory. Out: whether the directories and files that were opened are the ones that stand there now.
//! A removed file goes on taking writes, none of which is there after the end; nobody may be told that they are
//! durable. The store replaces other files of its own, which are not looked at.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// What a log keeps from its first start on, from the outside in.
const KEPT: [&str; 4] = ["", "writer.lock", "store", "store/version"];

/// Files and directories, each with its number.
pub(super) struct Sentinels(Vec<(PathBuf, Identity)>);

/// What tells a file from another one of its name.
type Identity = (u64, u64);

impl Sentinels {
    /// Those of a directory that was opened.
    ///
    /// # Errors
    /// One is not there.
    pub(super) fn of(directory: &Path) -> io::Result<Self> {
        let of = |name: &&str| {
            let path = directory.join(name);
            Ok((path.clone(), identity(&path)?))
        };
        KEPT.iter().map(of).collect::<io::Result<_>>().map(Self)
    }

    /// Whether all of them stand where they stood.
    pub(super) fn are_there(&self) -> bool {
        self.0.iter().all(|(path, of)| identity(path).is_ok_and(|now| now == *of))
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Elsewhere an open file cannot be removed.
#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<Identity> {
    fs::metadata(path).map(|_| (0, 0))
}
