//! Names of files in exports and on disks.
//!
//! In: a path, with the separators of any system. Out: its last part. Reads nothing.

/// The name of a file without its folders.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
