//! How the embedded stores keep recent writes: the log, and the caches of vectors and responses (decision 44).
//!
//! In: how a keyspace is read; the path of a store. Out: options, the limit of a journal, and the steps by which a copy
//! replaces a store, whose old files may hold what was deleted.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use fjall::{CompressionType, KeyspaceCreateOptions, KvSeparationOptions, config::FilterPolicy};

/// Bytes of a keyspace that are kept in memory before they are written to a file. The library's default of 64 MiB would
/// add up to hundreds of MiB for the dozen keyspaces that a memory writes while it reads turns.
const UNWRITTEN_BYTES: u64 = 512 << 10;

/// Bytes of a file of long values, and of a keyspace of them that are kept in memory. Erasing writes whole files, and
/// each file costs an open and a line of the manifest.
const VALUES_BYTES: u64 = 2 << 20;

/// Values of at least this many bytes lie apart from their keys.
const LONG_BYTES: u32 = 512;

/// Upper limit of a cache's journals, in bytes: the smallest that the library accepts, an eighth of its default.
pub const CACHE_JOURNAL_BYTES: u64 = 64 << 20;

/// The options of a keyspace that is read by single keys, some of which it may not have: its filters recognise most
/// missing keys without a read. A keyspace keeps the options with which it was created.
pub fn keyspace_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default().max_memtable_size(UNWRITTEN_BYTES)
}

/// The options of a keyspace that is read only by ranges, for which filters are useless.
pub fn ranges_only() -> KeyspaceCreateOptions {
    keyspace_options().filter_policy(FilterPolicy::disabled())
}

/// The options of a keyspace that is read by single keys, all of which it has: the level that holds nine keys of ten
/// needs no filter.
pub fn known_keys() -> KeyspaceCreateOptions {
    keyspace_options().expect_point_read_hits(true)
}

/// The options of a keyspace that is read by single keys, all of which it has, and whose values are long and packed
/// already. They lie in files apart from the tables: a merge of tables copies the keys, and of the values only the
/// files that hold a superseded one.
pub fn long_values() -> KeyspaceCreateOptions {
    let apart = KvSeparationOptions::default()
        .compression(CompressionType::None)
        .separation_threshold(LONG_BYTES)
        .file_target_size(VALUES_BYTES)
        .staleness_threshold(0.0)
        .age_cutoff(1.0);
    known_keys().max_memtable_size(VALUES_BYTES).with_kv_separation(Some(apart))
}

/// The directory that holds the store of this path: the path itself, or its twin once a copy has taken its place.
pub fn directory_in_use(path: &Path) -> PathBuf {
    if mark(path).exists() { twin(path) } else { path.to_owned() }
}

/// Removes the directory that is not in use, which a rewrite left behind or did not finish. Call it with the store
/// open, so that no other process is writing a copy.
///
/// # Errors
/// The directory cannot be removed.
pub fn remove_unused(path: &Path) -> io::Result<()> {
    remove(&unused(path))
}

/// The directory for the next copy of a store; nothing is there.
///
/// # Errors
/// As [`remove_unused`].
pub fn directory_of_copy(path: &Path) -> io::Result<PathBuf> {
    remove_unused(path)?;
    Ok(unused(path))
}

/// Has the finished copy take the store's place, at once; close the store then, and open it again.
///
/// # Errors
/// The mark cannot be written or removed: the store is as before.
pub fn use_copy(path: &Path) -> io::Result<()> {
    let mark = mark(path);
    if mark.exists() {
        fs::remove_file(&mark)?
    } else {
        fs::File::create(&mark)?.sync_all()?
    }
    path.parent().map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all())
}

fn unused(path: &Path) -> PathBuf {
    if mark(path).exists() { path.to_owned() } else { twin(path) }
}

fn twin(path: &Path) -> PathBuf {
    path.with_extension("b")
}

/// The file that says that the twin is in use.
fn mark(path: &Path) -> PathBuf {
    path.with_extension("b-in-use")
}

/// Removes a directory, if there is one.
pub fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_the_place_of_a_store_at_once_and_what_is_left_over_goes() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("cache-1");
        let names = || {
            let mut names: Vec<_> = fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        fs::create_dir(directory_in_use(&path)).unwrap();
        let copy = directory_of_copy(&path).unwrap();
        fs::create_dir(&copy).unwrap();
        // An unfinished copy does not count.
        assert_eq!(directory_in_use(&path), path);
        remove_unused(&path).unwrap();
        assert_eq!(names(), ["cache-1"]);
        fs::create_dir(&copy).unwrap();
        use_copy(&path).unwrap();
        assert_eq!(directory_in_use(&path), copy);
        remove_unused(&path).unwrap();
        assert_eq!(names(), ["cache-1.b", "cache-1.b-in-use"]);
        fs::create_dir(directory_of_copy(&path).unwrap()).unwrap();
        use_copy(&path).unwrap();
        remove_unused(&path).unwrap();
        assert_eq!((directory_in_use(&path), names()), (path, vec!["cache-1".into()]));
    }
}
