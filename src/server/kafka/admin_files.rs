//! The files of the administration that the service writes: a token that no setting names, and the port that the
//! system chose.
//!
//! In: `[admin]`. Out: the token that requests must show. A missing file is created, for its owner alone. No error
//! shows the token.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use nouns::config::Pipeline;

use crate::admin_token::{AdminError, address_file, of_variable, read_token, refused, token_file};

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

fn create_directory(path: &Path) -> Result<(), AdminError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    directory.map_or(Ok(()), |directory| {
        fs::create_dir_all(directory).map_err(|e| refused(directory, &e, "check the directory"))
    })
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
    use crate::admin_token::admin_access;

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
