//! Directories that only their owner may read.
//!
//! In: a path. Out: the directory, made with its missing parents, for its owner alone. One that exists keeps its
//! permissions: they are its operator's.

use std::{fs::DirBuilder, io, path::Path};

/// Makes a directory where there is none.
///
/// # Errors
/// It cannot be made.
pub fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
