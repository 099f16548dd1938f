//! The token of the administration, and where it is reached.
//!
//! In: `[admin]`. Out: the token, from an environment variable or from a file that only its owner may
//! read, and the address. The service creates a missing file; a client never does. No error shows the
//! token.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use nouns::config::{AdminSettings, Pipeline};

/// The file of a port that the service chose.
const ADDRESS_FILE: &str = "admin.address";
/// The file of a token that no setting names.
const TOKEN_FILE: &str = "admin.token";
/// Shortest token, in bytes.
const MIN_TOKEN_BYTES: usize = 16;

/// Why the administration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The variable of the token is not set, or too short.
    #[error("admin.token_env: the environment variable {variable} {problem}; write at least 16 characters into it")]
    Variable {
        /// The variable.
        variable: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// No service with these settings has ever run here.
    #[error("{path}: it does not exist; start the service, which writes it")]
    NotStarted {
        /// The file of the token or of the address.
        path: PathBuf,
    },
    /// The file of the token or of the address cannot be used.
    #[error("{path}: {problem}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        problem: String,
    },
}

/// How a client reaches the administration.
pub struct AdminAccess {
    /// Address and port.
    pub address: String,
    /// What it must show.
    pub token: String,
}

/// How to reach the administration of the pipeline's running service; None where `admin.listen` is empty.
///
/// # Errors
/// [`AdminError`] that names the variable or the file.
pub fn admin_access(pipeline: &Pipeline) -> Result<Option<AdminAccess>, AdminError> {
    let AdminSettings { listen, token_env, .. } = &pipeline.admin;
    if listen.is_empty() {
        return Ok(None);
    }
    let address = if listen.ends_with(":0") {
        let path = address_file(pipeline);
        match fs::read_to_string(&path) {
            Ok(address) => address.trim().to_owned(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(AdminError::NotStarted { path }),
            Err(e) => return Err(refused(&path, &e, "check its permissions")),
        }
    } else {
        listen.clone()
    };
    let token = if token_env.is_empty() {
        let path = token_file(pipeline);
        read_token(&path)?.ok_or(AdminError::NotStarted { path })?
    } else {
        of_variable(token_env)?
    };
    Ok(Some(AdminAccess { address, token }))
}

/// The token that requests to this service must show; a missing file is created.
pub(super) fn service_token(pipeline: &Pipeline) -> Result<String, AdminError> {
    let variable = &pipeline.admin.token_env;
    if !variable.is_empty() {
        return of_variable(variable);
    }
    let path = token_file(pipeline);
    match read_token(&path)? {
        Some(token) => Ok(token),
        None => create_token(&path),
    }
}

/// Tells clients the port that the system chose.
pub(super) fn write_address(pipeline: &Pipeline, address: &str) -> Result<(), AdminError> {
    let path = address_file(pipeline);
    create_directory(&path)?;
    fs::write(&path, address).map_err(|e| refused(&path, &e, "check the directory"))
}

fn address_file(pipeline: &Pipeline) -> PathBuf {
    pipeline.log.directory.join(ADDRESS_FILE)
}

fn token_file(pipeline: &Pipeline) -> PathBuf {
    pipeline.admin.token_file.clone().unwrap_or_else(|| pipeline.log.directory.join(TOKEN_FILE))
}

fn refused(path: &Path, problem: &dyn std::fmt::Display, remedy: &str) -> AdminError {
    AdminError::File { path: path.to_owned(), problem: format!("{problem}; {remedy}") }
}

fn create_directory(path: &Path) -> Result<(), AdminError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    directory.map_or(Ok(()), |directory| {
        fs::create_dir_all(directory).map_err(|e| refused(directory, &e, "check the directory"))
    })
}

fn of_variable(variable: &str) -> Result<String, AdminError> {
    let wrong = |problem| AdminError::Variable { variable: variable.to_owned(), problem };
    let token = std::env::var(variable).map_err(|_| wrong("is not set"))?.trim().to_owned();
    if token.len() < MIN_TOKEN_BYTES { Err(wrong("is too short")) } else { Ok(token) }
}

/// The token in a file; None without the file.
fn read_token(path: &Path) -> Result<Option<String>, AdminError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(refused(path, &e, "check its permissions")),
    };
    let metadata = file.metadata().map_err(|e| refused(path, &e, "check its permissions"))?;
    if others_may_read(&metadata) {
        return Err(refused(path, &"others than its owner may read it", "chmod 600 it, and change the token"));
    }
    let token = io::read_to_string(file).map_err(|e| refused(path, &e, "write a token of letters and digits"))?;
    let token = token.trim().to_owned();
    if token.len() < MIN_TOKEN_BYTES {
        return Err(refused(path, &"the token is too short", "write at least 16 characters, or remove the file"));
    }
    Ok(Some(token))
}

#[cfg(unix)]
fn others_may_read(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn others_may_read(_: &fs::Metadata) -> bool {
    false
}

fn create_token(path: &Path) -> Result<String, AdminError> {
    create_directory(path)?;
    let failed = |e: &dyn std::fmt::Display| refused(path, e, "check the directory");
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|e| failed(&e))?;
    let token = blake3::Hash::from_bytes(bytes).to_hex().to_string();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|e| failed(&e))?;
    file.write_all(token.as_bytes()).and_then(|()| file.sync_all()).map_err(|e| failed(&e))?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline(directory: &Path, listen: &str) -> Pipeline {
        let mut pipeline = Pipeline::parse("version = 1").unwrap();
        pipeline.log.directory = directory.join("log");
        pipeline.admin.listen = listen.to_owned();
        pipeline
    }

    #[test]
    fn a_service_makes_a_token_that_a_client_of_the_same_user_reads() {
        let home = tempfile::tempdir().unwrap();
        let pipeline = pipeline(home.path(), "127.0.0.1:0");
        assert!(matches!(admin_access(&pipeline), Err(AdminError::NotStarted { .. })));
        let token = service_token(&pipeline).unwrap();
        assert_eq!((token.len(), service_token(&pipeline).unwrap()), (64, token.clone()));
        write_address(&pipeline, "127.0.0.1:4711").unwrap();
        let access = admin_access(&pipeline).unwrap().unwrap();
        assert_eq!((access.address.as_str(), access.token), ("127.0.0.1:4711", token));
        assert!(admin_access(&self::pipeline(home.path(), "")).unwrap().is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_or_a_short_token_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let pipeline = pipeline(home.path(), "127.0.0.1:1");
        service_token(&pipeline).unwrap();
        let path = token_file(&pipeline);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(&path, "short").unwrap();
        assert!(service_token(&pipeline).unwrap_err().to_string().contains("too short"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        for error in [service_token(&pipeline).unwrap_err(), admin_access(&pipeline).err().unwrap()] {
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
    }
}
