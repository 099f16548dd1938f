//! The salt with which a log's memory hides phone numbers and mail addresses in ids.
//!
//! In: the directory of a log. Out: its salt, which is made once, at random, and never changes. It has its own file, so
//! that a process that reads an export has it while another one has the log open. If two processes make one at the same
//! time, one wins, and both use its salt. An unreadable salt is an error: with another salt, everything that is read
//! again would be stored again.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

use ring::rand::{SecureRandom as _, SystemRandom};

use types::model::IdSalt;

/// The file in the directory.
const FILE: &str = "id-salt";

/// The salt of a directory's log. If there is none, `first` becomes it, or a new one.
///
/// # Errors
/// When the file cannot be read or written.
pub(super) fn of_directory(directory: &Path, first: Option<IdSalt>) -> io::Result<IdSalt> {
    if let Some(made) = made(directory)? {
        return Ok(made);
    }
    let path = directory.join(FILE);
    place(directory, &path, first.map_or_else(random, Ok)?)?;
    parsed(&fs::read_to_string(&path)?)
}

/// The salt of a directory's log, if one exists.
///
/// # Errors
/// When the file cannot be read.
pub(super) fn made(directory: &Path) -> io::Result<Option<IdSalt>> {
    match fs::read_to_string(directory.join(FILE)) {
        Ok(text) => parsed(&text).map(Some),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// A new salt.
///
/// # Errors
/// When the system gives no random bytes.
pub(super) fn random() -> io::Result<IdSalt> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random bytes"))?;
    Ok(IdSalt::new(bytes))
}

fn parsed(text: &str) -> io::Result<IdSalt> {
    let problem = format!("{FILE} holds no salt; put back the file from a copy of the directory");
    IdSalt::parse(text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, problem))
}

/// Writes the salt's file atomically, unless another process has written one.
fn place(directory: &Path, path: &Path, salt: IdSalt) -> io::Result<()> {
    let new = directory.join(format!("{FILE}.{}", salt.to_hex().get(..16).unwrap_or_default()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&new)?;
    file.write_all(format!("{}\n", salt.to_hex()).as_bytes())?;
    file.sync_all()?;
    let linked = match fs::hard_link(&new, path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // A file system without links.
        Err(_) if !path.exists() => fs::rename(&new, path),
        linked => linked,
    };
    drop(fs::remove_file(&new));
    linked?;
    #[cfg(unix)]
    File::open(directory)?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_salt_is_made_once_and_a_damaged_one_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let made: Vec<IdSalt> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| of_directory(home.path(), None))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
        });
        assert!(made.iter().all(|salt| *salt == made[0] && *salt != IdSalt::default()), "{}", made.len());
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
        let other = tempfile::tempdir().unwrap();
        assert_eq!(super::made(other.path()).unwrap(), None);
        let first = IdSalt::new([7; 32]);
        assert_eq!(of_directory(other.path(), Some(first)).unwrap(), first);
        assert_eq!(of_directory(home.path(), Some(first)).unwrap(), made[0], "the first one stays");
        assert_eq!(super::made(home.path()).unwrap(), Some(made[0]));
        fs::write(home.path().join(FILE), "x").unwrap();
        assert!(of_directory(home.path(), None).unwrap_err().to_string().contains("put back the file"));
    }
}
