//! The file of tokens.
//!
//! In: a path. Out: the grants; a change is written as a whole, so that a service reads the file either before it or
//! after it. Processes that change the file wait for each other, and each changes what the previous one wrote, so no
//! change is lost. The file holds no tokens, but anyone who can write it can grant rights, so a file that others may
//! write is refused.

use std::{
    collections::HashSet,
    fs::{File, Metadata, OpenOptions},
    io::{self, ErrorKind, Read as _, Write as _},
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use storage::{file_lock::FileLock, private_directory::create_private};

use super::{
    AccessError, TokenSecret,
    grant::{AccessRight, BankPrefix, TokenGrant},
    token_secret::{from_hex, hash, to_hex},
};

/// The version of the file's format.
const VERSION: u32 = 1;
/// The largest file: some tens of thousands of tokens.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// The longest name.
const MAX_NAME_BYTES: usize = 64;
/// The suffix of the lock file's name.
const LOCK: &str = ".lock";

/// The file's content.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFileContent {
    version: u32,
    tokens: Vec<TokenGrant>,
}

/// A file of tokens.
pub struct TokenFile {
    path: PathBuf,
    grants: Vec<TokenGrant>,
}

/// What a new token may do.
#[derive(Debug, Clone)]
pub struct NewGrant {
    /// Its name: letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// The banks it reaches.
    pub banks: Vec<BankPrefix>,
    /// What it may do there.
    pub rights: Vec<AccessRight>,
    /// The time from which it is refused.
    pub expires: Option<Timestamp>,
    /// The maximum number of requests per minute.
    pub requests_per_minute: Option<NonZeroU32>,
}

impl TokenFile {
    /// Reads a file; a missing file has no tokens.
    ///
    /// # Errors
    /// [`AccessError::File`] when it cannot be read, or its content is not valid.
    pub fn read(path: &Path) -> Result<Self, AccessError> {
        let failed = |problem: String| AccessError::File { path: path.to_owned(), problem };
        let unreadable = |e: io::Error| failed(format!("{e}; check its permissions"));
        let file = match open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Ok(Self { path: path.to_owned(), grants: Vec::new() });
            }
            Err(e) => return Err(unreadable(e)),
        };
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(failed("not a regular file; put the file of tokens there".to_owned()));
        }
        if metadata.len() > MAX_FILE_BYTES {
            return Err(failed(format!("larger than {MAX_FILE_BYTES} bytes; put the file of tokens there")));
        }
        let mut text = String::new();
        file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(unreadable)?;
        if others_may_write(&metadata) {
            return Err(failed(
                "other users than its owner may write it; run chmod 600 on it, and check the tokens".to_owned(),
            ));
        }
        let content: TokenFileContent =
            serde_json::from_str(&text).map_err(|e| failed(format!("{e}; correct it, or make it again")))?;
        if content.version != VERSION {
            let found = content.version;
            return Err(failed(format!(
                "version {found}, but this build reads {VERSION}; use the build that wrote it"
            )));
        }
        let (mut names, mut hashes) = (HashSet::new(), HashSet::new());
        for grant in &content.tokens {
            let Some(hash) = from_hex(&grant.sha256) else {
                return Err(failed(format!("token {:?}: sha256 is not 64 hexadecimal digits", grant.name)));
            };
            if !names.insert(&grant.name) || !hashes.insert(hash) {
                return Err(failed(format!(
                    "token {:?}: another token has its name or its sha256; remove one",
                    grant.name
                )));
            }
        }
        Ok(Self { path: path.to_owned(), grants: content.tokens })
    }

    /// The tokens, in the order in which they were made.
    #[must_use]
    pub fn grants(&self) -> &[TokenGrant] {
        &self.grants
    }

    /// Whether this secret is that of a token that was not revoked.
    #[must_use]
    pub fn holds(&self, secret: &str) -> bool {
        let hash = hash(secret);
        self.grants.iter().any(|grant| grant.revoked.is_none() && from_hex(&grant.sha256) == Some(hash))
    }

    /// Adds a token to the file as it is now, and writes the file. The caller shows the token once.
    ///
    /// # Errors
    /// [`AccessError`] for a name that exists or is not valid, or when the file cannot be written.
    pub fn add(&mut self, new: NewGrant) -> Result<TokenSecret, AccessError> {
        let NewGrant { name, banks, rights, expires, requests_per_minute } = new;
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if name.is_empty() || name.len() > MAX_NAME_BYTES || !plain {
            return Err(AccessError::Invalid(format!(
                "token {name:?}: use 1 to {MAX_NAME_BYTES} letters, digits, '.', '_' or '-'"
            )));
        }
        let _lock = self.lock()?;
        if self.grants.iter().any(|grant| grant.name == name && grant.revoked.is_none()) {
            return Err(AccessError::Exists { path: self.path.clone(), name });
        }
        let secret = TokenSecret::generate()?;
        // A revoked token of this name stays refused without its entry.
        self.grants.retain(|grant| grant.name != name);
        self.grants.push(TokenGrant {
            name,
            sha256: to_hex(&hash(secret.reveal())),
            banks,
            rights: rights.into_iter().collect(),
            created: Timestamp::now(),
            expires,
            revoked: None,
            requests_per_minute,
        });
        self.write()?;
        Ok(secret)
    }

    /// Refuses a token from now on, in the file as it is now, and writes it.
    ///
    /// # Errors
    /// [`AccessError::Unknown`] if there is no such token; [`AccessError::File`].
    pub fn revoke(&mut self, name: &str) -> Result<(), AccessError> {
        let _lock = self.lock()?;
        let Some(grant) = self.grants.iter_mut().find(|grant| grant.name == name) else {
            return Err(AccessError::Unknown { path: self.path.clone(), name: name.to_owned() });
        };
        grant.revoked.get_or_insert_with(Timestamp::now);
        self.write()
    }

    /// Waits until no other process changes the file, and reads it again; no other process changes it until the result
    /// is dropped. The lock is on a file beside it, which stays, because the file itself is replaced.
    fn lock(&mut self) -> Result<FileLock, AccessError> {
        let mut path = self.path.clone().into_os_string();
        path.push(LOCK);
        let path = PathBuf::from(path);
        let failed = |e: std::io::Error| AccessError::File {
            path: path.clone(),
            problem: format!("it cannot be locked: {e}; check the directory"),
        };
        create_private(self.directory()).map_err(failed)?;
        let lock = FileLock::wait(&path).map_err(failed)?;
        self.grants = Self::read(&self.path)?.grants;
        Ok(lock)
    }

    fn directory(&self) -> &Path {
        self.path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// Replaces the file, under the lock; only its owner may read the new one.
    fn write(&self) -> Result<(), AccessError> {
        let failed = |problem: String| AccessError::File { path: self.path.clone(), problem };
        let unwritten = |e: std::io::Error| failed(format!("{e}; check the directory"));
        let content = TokenFileContent { version: VERSION, tokens: self.grants.clone() };
        let text = serde_json::to_string_pretty(&content).map_err(|e| failed(e.to_string()))?;
        let mut file = tempfile::NamedTempFile::new_in(self.directory()).map_err(unwritten)?;
        file.write_all(text.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(unwritten)?;
        file.as_file().sync_all().map_err(unwritten)?;
        file.persist(&self.path).map_err(|e| unwritten(e.error))?;
        Ok(())
    }
}
/// Opens a file to read, without waiting: a pipe without a writer would block the thread that checks for changes.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    options.open(path)
}

#[cfg(unix)]
fn others_may_write(metadata: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o022 != 0
}

#[cfg(not(unix))]
fn others_may_write(_: &Metadata) -> bool {
    false
}

#[cfg(test)]
pub(super) use tests::grant;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    pub(in crate::access) fn grant(name: &str, bank: &str, rights: &[AccessRight]) -> NewGrant {
        NewGrant {
            name: name.to_owned(),
            banks: vec![bank.parse().unwrap()],
            rights: rights.to_vec(),
            expires: None,
            requests_per_minute: None,
        }
    }

    /// It would block the thread that checks for changes, and no later revocation would take effect.
    #[cfg(unix)]
    #[test]
    fn a_pipe_in_place_of_the_file_is_refused_at_once() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = TokenFile::read(&path).err().unwrap().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }

    #[test]
    fn a_token_is_in_the_file_by_its_hash_alone() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("deep/tokens.json");
        let mut file = TokenFile::read(&path).unwrap();
        let secret = file.add(grant("agent", "acme", &[AccessRight::Read])).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(secret.reveal()) && text.contains(&to_hex(&hash(secret.reveal()))), "{text}");
        let again = TokenFile::read(&path).unwrap();
        assert_eq!(again.grants(), file.grants());
        let error = file.add(grant("agent", "*", &[])).unwrap_err();
        assert!(matches!(error, AccessError::Exists { .. }), "{error}");
        assert!(matches!(file.revoke("nobody"), Err(AccessError::Unknown { .. })));
        file.revoke("agent").unwrap();
        let new = file.add(grant("agent", "*", &[])).unwrap();
        assert_ne!(new.reveal(), secret.reveal());
        for bad in ["", "a b", "ü", &"x".repeat(65)] {
            assert!(matches!(file.add(grant(bad, "*", &[])), Err(AccessError::Invalid(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_change_is_made_to_what_another_process_wrote_and_waits_for_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        TokenFile::read(&path).unwrap().add(grant("victim", "acme", &[AccessRight::Read])).unwrap();
        let (mut one, mut other) = (TokenFile::read(&path).unwrap(), TokenFile::read(&path).unwrap());
        one.revoke("victim").unwrap();
        other.add(grant("agent", "acme", &[AccessRight::Read])).unwrap();
        let now = TokenFile::read(&path).unwrap();
        let names: Vec<_> = now.grants().iter().map(|grant| (grant.name.as_str(), grant.revoked.is_some())).collect();
        assert_eq!(names, [("victim", true), ("agent", false)]);

        let lock = one.lock().unwrap();
        let (done, is_done) = std::sync::mpsc::channel();
        let adding = std::thread::spawn(move || {
            other.add(grant("third", "acme", &[AccessRight::Read])).unwrap();
            done.send(()).unwrap();
        });
        assert!(is_done.recv_timeout(std::time::Duration::from_millis(200)).is_err(), "it does not wait");
        drop(lock);
        adding.join().unwrap();
        assert_eq!(TokenFile::read(&path).unwrap().grants().len(), 3);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_write_or_that_is_damaged_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("tokens.json");
        let mut file = TokenFile::read(&path).unwrap();
        file.add(grant("agent", "acme", &[AccessRight::Read])).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let good = fs::read_to_string(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
        assert!(TokenFile::read(&path).err().unwrap().to_string().contains("chmod 600"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let twice = good.replacen("[\n", &format!("[\n{},\n", serde_json::to_string(&file.grants()[0]).unwrap()), 1);
        for bad in [&good[..good.len() / 2], &good.replace("\"version\": 1", "\"version\": 2"), &twice, "{}"] {
            fs::write(&path, bad).unwrap();
            let error = TokenFile::read(&path).err().unwrap_or_else(|| panic!("taken: {bad}")).to_string();
            assert!(error.contains("tokens.json"), "{error}");
        }
    }
}
