//! Where the process that has a directory open is reached, written beside the directory's lock.
//!
//! In: the address of a listener. Out: the file `http.address`, for the commands of the same directory. It
//! names its process, so that an address that a killed process left is never taken for another's.

use std::{fs, io, path::Path};

/// The file, in `log.directory`.
const FILE: &str = "http.address";

/// Writes the address of this process.
pub(super) fn write(directory: &Path, address: &str) -> io::Result<()> {
    // Renamed into its place, so that nobody reads half of it.
    let draft = directory.join(format!("{FILE}.new"));
    fs::write(&draft, format!("process {}\n{address}\n", std::process::id()))?;
    fs::rename(draft, directory.join(FILE))
}

/// Removes it.
pub(super) fn remove(directory: &Path) {
    // One that stays names a process that is gone.
    drop(fs::remove_file(directory.join(FILE)));
}

/// The address of the process that has the directory open, such as `process 4711`; None where it serves
/// none.
#[must_use]
pub fn address_of(directory: &Path, holder: &str) -> Option<String> {
    let text = fs::read_to_string(directory.join(FILE)).ok()?;
    let (process, address) = text.trim().split_once('\n')?;
    (process == holder).then(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_process_is_not_taken() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(address_of(home.path(), "process 1"), None);
        write(home.path(), "127.0.0.1:4711").unwrap();
        let own = format!("process {}", std::process::id());
        assert_eq!(address_of(home.path(), &own).as_deref(), Some("127.0.0.1:4711"));
        assert_eq!(address_of(home.path(), "another process"), None);
        remove(home.path());
        assert_eq!(address_of(home.path(), &own), None);
    }
}
