//! The manifests of the store's keyspaces, checked before the store is opened.
//!
//! In: the store's directory. Out: nothing, or which file is not what was written. The
//! store writes a checksum of each keyspace's manifest (`vN`) into its file `current`
//! and never looks at it again: it deletes a keyspace without `current`, and a damaged
//! manifest ends the process by an assertion whose unwinding panics once more. So both
//! are found here, while everything still lies where it was.

use std::{
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

/// Checks the manifests of all keyspaces of the store in `path`.
pub(super) fn check(path: &Path) -> Result<(), Unfit> {
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
        let numbered = entry.file_name().to_str().is_some_and(|name| name.parse::<u64>().is_ok());
        if !numbered {
            return Err(Unfit::Damaged(entry.path()));
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
