//! The conditions for forgetting anything: the secret can be read, and what has to outlive the log's directory is
//! outside of it.
//!
//! In: the settings. Out: for a condition that does not hold, an error that names the file and what to do. Reads the
//! key file and follows symbolic links; writes nothing.

use std::path::{Path, PathBuf};

use super::{PipelineError, operator_key::key_of};
use types::config::{ForgetSettings, LogKind, Pipeline};

/// Checks what operations and receipts need, as a start and `ripplemem validate` do.
///
/// # Errors
/// [`PipelineError::Forget`].
pub fn check_forgetting(pipeline: &Pipeline) -> Result<(), PipelineError> {
    check_key(&pipeline.forget)?;
    check_places(pipeline)
}

/// Checks that the secret can be read, if the settings name a file with one.
///
/// # Errors
/// [`PipelineError::Forget`].
pub fn check_key(settings: &ForgetSettings) -> Result<(), PipelineError> {
    settings.key_file.as_deref().map_or(Ok(()), |path| key_of(path).map(drop))
}

/// Checks that no symbolic link leads what must lie outside the log's directory into it.
pub fn check_places(pipeline: &Pipeline) -> Result<(), PipelineError> {
    if pipeline.log.kind == LogKind::Kafka {
        return Ok(());
    }
    let directory = resolved(&pipeline.log.directory);
    match pipeline.forget.paths_outside_log().find(|(_, path)| resolved(path).starts_with(&directory)) {
        Some((key, path)) => Err(PipelineError::Forget {
            what: format!("{key} {}", path.display()),
            problem: "it lies in log.directory, which a restored backup replaces; name a place outside of it"
                .to_owned(),
        }),
        None => Ok(()),
    }
}

/// A path without symbolic links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (existing.canonicalize(), path.strip_prefix(existing)) {
            return real.join(rest);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_that_a_link_leads_into_the_log_is_refused_and_so_is_a_key_that_cannot_be_read() {
        let home = tempfile::tempdir().unwrap();
        let mut pipeline = Pipeline::parse("version = 1").unwrap();
        pipeline.log.directory = home.path().join("log");
        std::fs::create_dir(&pipeline.log.directory).unwrap();
        std::os::unix::fs::symlink("log", home.path().join("link")).unwrap();
        pipeline.forget.ledger = Some(home.path().join("ledger"));
        check_forgetting(&pipeline).unwrap();
        for inside in ["link/new/ledger", "log/ledger"] {
            pipeline.forget.ledger = Some(home.path().join(inside));
            let refused = check_forgetting(&pipeline).unwrap_err().to_string();
            assert!(refused.starts_with("forget.ledger ") && refused.contains("log.directory"), "{refused}");
        }
        pipeline.forget.ledger = None;
        let key = home.path().join("key");
        pipeline.forget.key_file = Some(key.clone());
        for secret in [None, Some(" \n")] {
            secret.iter().for_each(|secret| std::fs::write(&key, secret).unwrap());
            let refused = check_forgetting(&pipeline).unwrap_err().to_string();
            assert!(refused.contains(key.to_str().unwrap()) && refused.contains("random secret"), "{refused}");
        }
        std::fs::write(&key, "a long random secret").unwrap();
        check_forgetting(&pipeline).unwrap();
    }
}
