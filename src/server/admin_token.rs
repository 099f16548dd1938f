//! The token of the administration, and where it is reached.
//!
//! In: `[admin]`. Out: the token, from an environment variable or from a file that only its owner may
//! read, and the address. A client creates no file. No error shows the token.

use std::{
    fs::{self, File},
    io,
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

pub(super) fn address_file(pipeline: &Pipeline) -> PathBuf {
    pipeline.log.directory.join(ADDRESS_FILE)
}

pub(super) fn token_file(pipeline: &Pipeline) -> PathBuf {
    pipeline.admin.token_file.clone().unwrap_or_else(|| pipeline.log.directory.join(TOKEN_FILE))
}

pub(super) fn refused(path: &Path, problem: &dyn std::fmt::Display, remedy: &str) -> AdminError {
    AdminError::File { path: path.to_owned(), problem: format!("{problem}; {remedy}") }
}

pub(super) fn of_variable(variable: &str) -> Result<String, AdminError> {
    let wrong = |problem| AdminError::Variable { variable: variable.to_owned(), problem };
    let token = std::env::var(variable).map_err(|_| wrong("is not set"))?.trim().to_owned();
    if token.len() < MIN_TOKEN_BYTES { Err(wrong("is too short")) } else { Ok(token) }
}

/// The token in a file; None without the file.
pub(super) fn read_token(path: &Path) -> Result<Option<String>, AdminError> {
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
