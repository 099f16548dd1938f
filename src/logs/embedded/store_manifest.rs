//! Checks the manifests of the store's keyspaces before the store is opened, and finds the damaged table after a read
//! has failed.
//!
//! In: the store's directory. Out: nothing, or the damaged file. The store writes a checksum of each keyspace's
//! manifest (`vN`) into the keyspace's file `current`, but never verifies it. It deletes a keyspace without `current`,
//! and a damaged manifest aborts the process by a panic during unwinding. This check finds both before the store
//! changes anything. While keyspaces are created or deleted, the file `changing` beside the store lists the other
//! keyspaces, which must stay complete. The store's errors name no file, so a damaged table, or file of long values, is
//! found by the checksums that the manifests hold.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Cursor, ErrorKind},
    path::{Path, PathBuf},
};

use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

/// Why a store must not be opened.
pub(super) enum StoreFault {
    /// The file is missing, or differs from what was written.
    Damaged(PathBuf),
    /// A file could not be read.
    Unreadable(io::Error),
}

/// The file that lists the keyspaces that must be complete while others change. Without it, all must be complete.
const CHANGING: &str = "changing";
const CHANGING_UNFINISHED: &str = "changing.new";

/// Records that keyspaces are being created or deleted. All existing keyspaces except `deleted` must
/// stay complete.
pub(super) fn begin_change(directory: &Path, store: &Path, deleted: &[u64]) -> io::Result<()> {
    let mut complete = String::new();
    for entry in fs::read_dir(store.join("keyspaces"))? {
        let number = entry?.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
        if let Some(number) = number.filter(|number| !deleted.contains(number)) {
            complete.push_str(&format!("{number}\n"));
        }
    }
    let unfinished = directory.join(CHANGING_UNFINISHED);
    fs::write(&unfinished, complete)?;
    fs::File::open(&unfinished)?.sync_all()?;
    fs::rename(unfinished, directory.join(CHANGING))?;
    fs::File::open(directory)?.sync_all()
}

/// Records that the change is done: every keyspace must be complete again.
pub(super) fn end_change(directory: &Path) -> io::Result<()> {
    match fs::remove_file(directory.join(CHANGING)) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

fn must_be_complete(directory: &Path) -> Result<Option<BTreeSet<u64>>, StoreFault> {
    match fs::read_to_string(directory.join(CHANGING)) {
        Ok(text) => Ok(Some(text.lines().filter_map(|line| line.parse().ok()).collect())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(StoreFault::Unreadable(e)),
    }
}

/// Checks the manifests of the store in `path`, a subdirectory of `directory`.
pub(super) fn check(directory: &Path, path: &Path) -> Result<(), StoreFault> {
    let complete = must_be_complete(directory)?;
    let keyspaces = path.join("keyspaces");
    for file in [path.join("version"), keyspaces.clone()] {
        if !file.try_exists().map_err(StoreFault::Unreadable)? {
            return Err(StoreFault::Damaged(file));
        }
    }
    for entry in fs::read_dir(keyspaces).map_err(StoreFault::Unreadable)? {
        let entry = entry.map_err(StoreFault::Unreadable)?;
        if !entry.file_type().map_err(StoreFault::Unreadable)?.is_dir() {
            continue;
        }
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok()) else {
            return Err(StoreFault::Damaged(entry.path()));
        };
        if complete.as_ref().is_some_and(|complete| !complete.contains(&number)) {
            continue;
        }
        manifest_of(&entry.path())?;
    }
    Ok(())
}

/// The first table or file of long values of the store in `path` that is missing or differs from what was written;
/// `None` if all are whole. Reads the files up to that one. The store may be open, and may replace files meanwhile.
pub(super) fn damaged_table(path: &Path) -> Option<PathBuf> {
    let keyspaces = fs::read_dir(path.join("keyspaces")).ok()?;
    keyspaces.filter_map(Result::ok).find_map(|keyspace| damaged_table_of(&keyspace.path()))
}

fn damaged_table_of(keyspace: &Path) -> Option<PathBuf> {
    // If the store wrote another manifest meanwhile, its tables are checked instead.
    loop {
        let (manifest, bytes) = manifest_of(keyspace).ok()?;
        let tables = tables(&bytes)?.into_iter().map(|of| ("tables", of));
        let values = values(&bytes)?.into_iter().map(|of| ("blobs", of));
        let damaged = tables.chain(values).find_map(|(kind, (number, sum))| {
            let file = keyspace.join(kind).join(number.to_string());
            (sum_of(&file).ok() != Some(sum)).then_some(file)
        })?;
        if manifest_of(keyspace).is_ok_and(|(newest, _)| newest == manifest) {
            return Some(damaged);
        }
    }
}

/// The tables of a manifest: number and 128-bit XXH3 of each. The section `tables` has levels, levels have runs, and
/// runs have tables, each list after its count. A table has a number, the kind of checksum (0), the checksum, 8 bytes.
fn tables(manifest: &[u8]) -> Option<Vec<(u64, u128)>> {
    let (mut rest, mut found) = (section(manifest, b"tables")?, Vec::new());
    for _level in 0..take::<1>(&mut rest)?[0] {
        for _run in 0..take::<1>(&mut rest)?[0] {
            for _table in 0..u32::from_le_bytes(take(&mut rest)?) {
                let number = u64::from_le_bytes(take(&mut rest)?);
                let [0] = take(&mut rest)? else { return None };
                found.push((number, u128::from_le_bytes(take(&mut rest)?)));
                take::<8>(&mut rest)?;
            }
        }
    }
    Some(found)
}

/// The files of long values of a manifest: number and 128-bit XXH3 of each. The section `blob_files` has their count,
/// and of each file the number, the kind of checksum (0) and the checksum.
fn values(manifest: &[u8]) -> Option<Vec<(u64, u128)>> {
    let (mut rest, mut found) = (section(manifest, b"blob_files")?, Vec::new());
    for _file in 0..u32::from_le_bytes(take(&mut rest)?) {
        let number = u64::from_le_bytes(take(&mut rest)?);
        let [0] = take(&mut rest)? else { return None };
        found.push((number, u128::from_le_bytes(take(&mut rest)?)));
    }
    Some(found)
}

fn section<'m>(manifest: &'m [u8], name: &[u8]) -> Option<&'m [u8]> {
    let archive = sfa::Reader::from_reader(&mut Cursor::new(manifest)).ok()?;
    let section = archive.toc().section(name)?;
    let from = usize::try_from(section.pos()).ok()?;
    manifest.get(from..from.checked_add(usize::try_from(section.len()).ok()?)?)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}

fn sum_of(file: &Path) -> io::Result<u128> {
    struct ManifestChecksum(Xxh3Default);
    impl io::Write for ManifestChecksum {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut sum = ManifestChecksum(Xxh3Default::new());
    io::copy(&mut fs::File::open(file)?, &mut sum)?;
    Ok(sum.0.digest128())
}

/// The path and the bytes of a keyspace's manifest. The file `current` holds the manifest's number, its 128-bit XXH3,
/// and the kind of checksum (0).
fn manifest_of(keyspace: &Path) -> Result<(PathBuf, Vec<u8>), StoreFault> {
    let current = keyspace.join("current");
    let bytes = read(&current)?;
    let parts = bytes.split_first_chunk::<8>().and_then(|(id, rest)| Some((id, rest.split_first_chunk::<16>()?)));
    let Some((id, (sum, [0]))) = parts else {
        return Err(StoreFault::Damaged(current));
    };
    let manifest = keyspace.join(format!("v{}", u64::from_le_bytes(*id)));
    let bytes = read(&manifest)?;
    if xxh3_128(&bytes) != u128::from_le_bytes(*sum) {
        return Err(StoreFault::Damaged(manifest));
    }
    Ok((manifest, bytes))
}

fn read(file: &Path) -> Result<Vec<u8>, StoreFault> {
    fs::read(file).map_err(|e| match e.kind() {
        ErrorKind::NotFound => StoreFault::Damaged(file.to_owned()),
        _ => StoreFault::Unreadable(e),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fjall::Database;

    use super::*;

    /// The dependencies whose private formats are known, with their versions: `journal`, `erasing`, this file and
    /// `src/erasure/storage_search.rs` read or rewrite them.
    const KNOWN: [(&str, &str); 4] =
        [("fjall", "3.1.13"), ("lsm-tree", "3.1.10"), ("lz4_flex", "0.13.1"), ("sfa", "1.0.0")];

    #[test]
    fn the_lock_file_has_the_versions_whose_form_is_known() {
        let lock = include_str!("../../../Cargo.lock");
        for (package, version) in KNOWN {
            let of_package = format!("name = \"{package}\"\nversion = ");
            let locked: Vec<&str> = lock.split(&of_package).skip(1).filter_map(|rest| rest.lines().next()).collect();
            assert_eq!(
                locked,
                [format!("{version:?}")],
                "{package} has another version: see that the tests of the form pass, also over a store that the \
                 version before wrote, and name it here and in Cargo.toml"
            );
        }
    }

    /// The expected parts of the format that are missing in a keyspace with a table and a file of long values.
    fn not_found(store: &Path, keyspace: &Path) -> Vec<&'static str> {
        let manifest = manifest_of(keyspace).ok().map(|(_, bytes)| bytes);
        let has_section = |name: &[u8]| manifest.as_deref().is_some_and(|bytes| section(bytes, name).is_some());
        let tables = manifest.as_deref().and_then(tables).unwrap_or_default();
        let values = manifest.as_deref().and_then(values).unwrap_or_default();
        let is_whole = |kind: &str, files: &[(u64, u128)]| {
            let sum = |number: u64| sum_of(&keyspace.join(kind).join(number.to_string())).ok();
            !files.is_empty() && files.iter().all(|(number, expected)| sum(*number) == Some(*expected))
        };
        let scanned = tables.first().and_then(|(number, _)| {
            let path = keyspace.join("tables").join(number.to_string());
            let cache = Arc::new(lsm_tree::Cache::with_capacity_bytes(1 << 20));
            let sum = lsm_tree::Checksum::from_raw(0);
            let table = lsm_tree::Table::recover(path, sum, 0, 0, cache, None, false, false).ok()?;
            table.scan().ok().map(|entries| entries.filter_map(Result::ok).count())
        });
        let parts = [
            ("the file `version` of the store", store.join("version").is_file()),
            ("the file `current`, or the manifest that it names", manifest.is_some()),
            ("the manifest's section `tables`", has_section(b"tables")),
            ("the manifest's section `blob_files`", has_section(b"blob_files")),
            ("the numbers and the checksums of tables", is_whole("tables", &tables)),
            ("the numbers and the checksums of files of long values", is_whole("blobs", &values)),
            ("the entries of a table", scanned == Some(2)),
        ];
        parts.into_iter().filter(|(_, is_there)| !is_there).map(|(part, _)| part).collect()
    }

    #[test]
    fn the_form_of_manifests_and_tables_is_the_one_of_the_store() {
        let home = tempfile::tempdir().unwrap();
        let database = Database::builder(home.path()).open().unwrap();
        let keyspace = database.keyspace("k", storage::keyspaces::long_values).unwrap();
        keyspace.insert("short", "value").unwrap();
        keyspace.insert("long", "abc ".repeat(2_000)).unwrap();
        keyspace.rotate_memtable_and_wait().unwrap();
        let path = keyspace.path().to_owned();
        drop((keyspace, database));
        let missing = || not_found(home.path(), &path);
        assert!(
            missing().is_empty(),
            "fjall's or lsm-tree's files have another form; log/embedded/store_manifest.rs no longer finds {:?}",
            missing()
        );
        // A changed format is reported by the name of the part.
        let table = fs::read_dir(path.join("tables")).unwrap().next().unwrap().unwrap().path();
        let mut bytes = fs::read(&table).unwrap();
        bytes.push(0);
        fs::write(&table, bytes).unwrap();
        assert!(missing().contains(&"the numbers and the checksums of tables"), "{:?}", missing());
        assert!(!missing().contains(&"the manifest's section `tables`"), "{:?}", missing());
    }
}
