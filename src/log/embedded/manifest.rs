//! The manifests of the store's keyspaces, checked before the store is opened.
//!
//! In: the store's directory. Out: nothing, or which file is not what was written. The
//! store writes a checksum of each keyspace's manifest (`vN`) into its file `current`
//! and never looks at it again: it deletes a keyspace without `current`, and a damaged
//! manifest ends the process by an assertion whose unwinding panics once more. So both
//! are found here, while everything still lies where it was. While keyspaces are made or
//! removed, a file beside the store says which others must be whole whatever happens.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use xxhash_rust::xxh3::xxh3_128;

/// Why a store must not be opened.
pub(super) enum Unfit {
    /// This file is missing, or does not hold what was written.
    Damaged(PathBuf),
    /// A file could not be read.
    Unreadable(io::Error),
}

/// The file that says which keyspaces must be whole; without it all must be.
const CHANGING: &str = "changing";
const CHANGING_FRESH: &str = "changing.new";

/// Says that keyspaces are made or removed from now on: all but `gone` must be whole.
pub(super) fn begin_change(directory: &Path, store: &Path, gone: &[u64]) -> io::Result<()> {
    let mut whole = String::new();
    for entry in fs::read_dir(store.join("keyspaces"))? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
        if let Some(number) = number.filter(|number| !gone.contains(number)) {
            whole.push_str(&format!("{number}\n"));
        }
    }
    let fresh = directory.join(CHANGING_FRESH);
    fs::write(&fresh, whole)?;
    fs::File::open(&fresh)?.sync_all()?;
    fs::rename(fresh, directory.join(CHANGING))?;
    fs::File::open(directory)?.sync_all()
}

/// Says that they were: every keyspace that is there must be whole.
pub(super) fn end_change(directory: &Path) -> io::Result<()> {
    match fs::remove_file(directory.join(CHANGING)) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn must_be_whole(directory: &Path) -> Result<Option<BTreeSet<u64>>, Unfit> {
    match fs::read_to_string(directory.join(CHANGING)) {
        Ok(text) => Ok(Some(text.lines().filter_map(|line| line.parse().ok()).collect())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Unfit::Unreadable(e)),
    }
}

/// Checks the manifests of the keyspaces of the store in `path`, a part of `directory`.
pub(super) fn check(directory: &Path, path: &Path) -> Result<(), Unfit> {
    let whole = must_be_whole(directory)?;
    let keyspaces = path.join("keyspaces");
    for file in [path.join("version"), keyspaces.clone()] {
        if !file.try_exists().map_err(Unfit::Unreadable)? {
            return Err(Unfit::Damaged(file));
        }
    }
    for entry in fs::read_dir(keyspaces).map_err(Unfit::Unreadable)? {
        let entry = entry.map_err(Unfit::Unreadable)?;
        if !entry.file_type().map_err(Unfit::Unreadable)?.is_dir() {
            continue;
        }
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok()) else {
            return Err(Unfit::Damaged(entry.path()));
        };
        if whole.as_ref().is_some_and(|whole| !whole.contains(&number)) {
            continue;
        }
        check_keyspace(&entry.path())?;
    }
    Ok(())
}

/// `current`: the number of the manifest, its XXH3 of 128 bits, the kind of checksum.
fn check_keyspace(keyspace: &Path) -> Result<(), Unfit> {
    let current = keyspace.join("current");
    let bytes = read(&current)?;
    let parts = bytes.split_first_chunk::<8>().and_then(|(id, rest)| Some((id, rest.split_first_chunk::<16>()?)));
    let Some((id, (sum, [0]))) = parts else {
        return Err(Unfit::Damaged(current));
    };
    let manifest = keyspace.join(format!("v{}", u64::from_le_bytes(*id)));
    if xxh3_128(&read(&manifest)?) != u128::from_le_bytes(*sum) {
        return Err(Unfit::Damaged(manifest));
    }
    Ok(())
}

fn read(file: &Path) -> Result<Vec<u8>, Unfit> {
    fs::read(file).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Unfit::Damaged(file.to_owned()),
        _ => Unfit::Unreadable(e),
    })
}
