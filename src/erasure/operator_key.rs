//! The operator's key: the secret of `forget.key_file`.
//!
//! In: the path of the file. Out: a key for HMAC-SHA256. The secret is never printed or stored.

use std::{fmt::Write as _, path::Path};

use ring::hmac;

use super::PipelineError;

/// Reads the secret, without the spaces and line breaks around it.
pub(super) fn key_of(key_file: &Path) -> Result<hmac::Key, PipelineError> {
    let secret = std::fs::read(key_file)
        .map_err(|e| failed(key_file, format!("{e}; write a long random secret into a file that can be read here")))?;
    let secret = secret.trim_ascii();
    if secret.is_empty() {
        return Err(failed(key_file, "it is empty; write a long random secret".to_owned()));
    }
    Ok(hmac::Key::new(hmac::HMAC_SHA256, secret))
}

/// The error of a key file.
pub(super) fn failed(key_file: &Path, problem: String) -> PipelineError {
    PipelineError::Forget { what: format!("forget.key_file {}", key_file.display()), problem }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        // A string takes every write.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
