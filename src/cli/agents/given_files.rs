//! What sessions were given, a file each.
//!
//! In: a program and a session, by whatever name. Out: what it was given, and a file that is replaced as a whole. Files
//! that nobody touched for a month go. A file that cannot be read counts as nothing given.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use agents::GivenTurns;

/// How long a session's file is kept after its last change.
const KEPT: Duration = Duration::from_hours(30 * 24);

/// The file of a session.
pub(super) struct GivenFile {
    path: PathBuf,
}

impl GivenFile {
    /// The file of a session, by the session's mark.
    pub(super) fn of(directory: &Path, mark: &str) -> Self {
        Self { path: directory.join(format!("{mark}.json")) }
    }

    /// What the session was given.
    pub(super) fn read(&self) -> GivenTurns {
        let read = || serde_json::from_slice(&fs::read(&self.path).ok()?).ok();
        read().unwrap_or_default()
    }

    /// Keeps what the session was given.
    pub(super) fn write(&self, given: &GivenTurns) -> io::Result<()> {
        replace(&self.path, &serde_json::to_vec(given)?)
    }
}

/// Removes the files of sessions that have long ended.
pub(super) fn remove_old(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let is_old = |entry: &fs::DirEntry| {
        let changed = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        changed.and_then(|changed| SystemTime::now().duration_since(changed).ok()).is_some_and(|age| age > KEPT)
    };
    // One that cannot be removed now is removed later.
    entries.flatten().filter(is_old).for_each(|entry| drop(fs::remove_file(entry.path())));
}

/// Replaces a file as a whole, so that nobody reads half of it. Makes its directory.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let draft =
        folder.join(format!(".{}.{}", path.file_name().unwrap_or_default().to_string_lossy(), std::process::id()));
    let write = || fs::write(&draft, bytes).and_then(|()| fs::rename(&draft, path));
    write().or_else(|_| fs::create_dir_all(folder).and_then(|()| write()))
}
