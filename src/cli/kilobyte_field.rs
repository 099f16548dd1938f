//! A number of kilobytes that Linux states in a file below `/proc`.
//!
//! In: the file, and the name of the field. Out: bytes; `None` where there is no such file or field.

use std::fs;

/// The bytes of a field.
pub(super) fn kilobyte_field(path: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1_024)
}
