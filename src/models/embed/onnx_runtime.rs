//! ONNX Runtime, loaded once for the process.
//!
//! In: the shared library's path. Out: the one environment that a process can have. The first library that loads stays
//! loaded; a later call with another path gets the same environment.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use ort::environment::Environment;

use super::EmbedError;
use types::sync;

static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
static LOADING: Mutex<()> = Mutex::new(());

/// The process's environment, loading `library` if there is none yet.
///
/// # Errors
/// [`EmbedError::Read`] or [`EmbedError::Damaged`] that names the library.
pub(crate) fn environment(library: &Path) -> Result<&'static Environment, EmbedError> {
    let _one_at_a_time = sync::lock(&LOADING);
    if let Some(environment) = ENVIRONMENT.get() {
        return Ok(environment);
    }
    check_complete(library)?;
    let damaged = |problem: String| EmbedError::Damaged { path: library.to_owned(), problem };
    let environment = ort::init_from(library)
        .map_err(|e| damaged(format!("is not a usable ONNX Runtime ({e})")))?
        .with_telemetry(false)
        .build()
        .map_err(|e| damaged(format!("ONNX Runtime does not start ({e})")))?;
    Ok(ENVIRONMENT.get_or_init(|| environment))
}

/// Refuses a truncated library. The loader would map it, and an access to the missing part would kill the process with
/// a signal.
fn check_complete(library: &Path) -> Result<(), EmbedError> {
    let read = |source| EmbedError::Read { path: library.to_owned(), source };
    let mut file = File::open(library).map_err(read)?;
    let length = file.metadata().map_err(read)?.len();
    let mut header = [0u8; 64];
    if file.read_exact(&mut header).is_err() {
        return Err(EmbedError::Damaged { path: library.to_owned(), problem: "is not a shared library".to_owned() });
    }
    match elf_length(&header) {
        Some(expected) if expected > length => Err(EmbedError::Damaged {
            path: library.to_owned(),
            problem: format!("is cut off: {length} of at least {expected} bytes"),
        }),
        _ => Ok(()),
    }
}

/// The end of the section table, which linkers write last. `None` if this is not a 64-bit little-endian ELF file; then
/// only the loader checks it.
fn elf_length(header: &[u8; 64]) -> Option<u64> {
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let offset = u64::from_le_bytes(header.get(0x28..0x30)?.try_into().ok()?);
    let size = u16::from_le_bytes(header.get(0x3A..0x3C)?.try_into().ok()?);
    let count = u16::from_le_bytes(header.get(0x3C..0x3E)?.try_into().ok()?);
    offset.checked_add(u64::from(size) * u64::from(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests only files that never load, because a library that loads would stay loaded for the other tests.
    fn check(content: &[u8], expected: &str) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("libonnxruntime.so");
        std::fs::write(&path, content).expect("written");
        let error = check_complete(&path).err().or_else(|| {
            ort::init_from(&path).err().map(|e| EmbedError::Damaged { path: path.clone(), problem: e.to_string() })
        });
        // Once a library is loaded, ort ignores another one, so there is nothing to assert.
        if let Some(error) = error {
            let message = error.to_string();
            assert!(message.contains("libonnxruntime.so") && message.contains(expected), "{message}");
        } else {
            assert!(ENVIRONMENT.get().is_some());
        }
    }

    #[test]
    fn a_damaged_library_is_named() {
        check(b"", "is not a shared library");
        check(&[b'x'; 4096], "failed to load");
        let mut cut = vec![0u8; 4096];
        cut[..6].copy_from_slice(b"\x7fELF\x02\x01");
        cut[0x28..0x30].copy_from_slice(&29_000_000u64.to_le_bytes());
        cut[0x3A] = 64;
        cut[0x3C] = 30;
        check(&cut, "is cut off: 4096 of at least 29001920 bytes");
    }

    #[test]
    fn a_missing_library_is_named() {
        let error = check_complete(Path::new("nowhere/libonnxruntime.so")).expect_err("it is not there");
        assert!(error.to_string().starts_with("nowhere/libonnxruntime.so: cannot be read"), "{error}");
    }
}
