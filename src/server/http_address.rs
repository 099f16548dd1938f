//! Where the process that has a directory open is reached, written beside the directory's lock.
//!
//! In: the address of a listener, and the token of the commands if it requires one. Out: the file `http.address`, for
//! the commands of the same directory and of the same user. It names its process, so that an address that a killed
//! process left is never taken for another's.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use super::access::TokenSecret;
use storage::private_directory::create_private;

/// The file, in `log.directory`.
const FILE: &str = "http.address";

/// Writes the address of this process. Nobody but its owner may read the file.
pub(super) fn write(directory: &Path, address: &str, token: Option<&TokenSecret>) -> io::Result<()> {
    // With a log on Kafka, the directory may not exist yet.
    create_private(directory)?;
    // Renamed into its place, so that nobody reads half of it.
    let mut draft = tempfile::NamedTempFile::new_in(directory)?;
    let token = token.map_or("", TokenSecret::reveal);
    write!(draft, "process {}\n{address}\n{token}\n", std::process::id())?;
    draft.persist(directory.join(FILE)).map(drop).map_err(|e| e.error)
}

/// Removes it, unless another process has written its own since.
pub(super) fn remove(directory: &Path) {
    let own = format!("process {}", std::process::id());
    if address_of(directory, &own).is_some() {
        // If this fails, the file names a process that has ended.
        drop(fs::remove_file(directory.join(FILE)));
    }
}

/// Where a process is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAddress {
    /// Its loopback address.
    pub address: String,
    /// The token to show, if one is required.
    pub token: Option<String>,
}

/// The address of the process `holder`, such as `process 4711`, which has the directory open; `None` if it serves none.
#[must_use]
pub fn address_of(directory: &Path, holder: &str) -> Option<HttpAddress> {
    let text = fs::read_to_string(directory.join(FILE)).ok()?;
    let mut lines = text.lines();
    let (process, address) = (lines.next()?, lines.next()?.to_owned());
    let token = lines.next().filter(|token| !token.is_empty()).map(str::to_owned);
    (process == holder).then_some(HttpAddress { address, token })
}

/// The address of the last service on Kafka that names this directory and has not been stopped; `None` if there is
/// none. A killed service leaves its address behind: no process answers there.
#[must_use]
pub fn running_address(directory: &Path) -> Option<HttpAddress> {
    let text = fs::read_to_string(directory.join(FILE)).ok()?;
    address_of(directory, text.lines().next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_process_is_not_taken() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(address_of(home.path(), "process 1"), None);
        write(home.path(), "127.0.0.1:4711", None).unwrap();
        let own = format!("process {}", std::process::id());
        let address = "127.0.0.1:4711".to_owned();
        assert_eq!(address_of(home.path(), &own), Some(HttpAddress { address: address.clone(), token: None }));
        let secret = TokenSecret::generate().unwrap();
        write(home.path(), "127.0.0.1:4711", Some(&secret)).unwrap();
        let token = Some(secret.reveal().to_owned());
        assert_eq!(address_of(home.path(), &own), Some(HttpAddress { address, token }));
        assert_eq!(address_of(home.path(), "another process"), None);
        remove(home.path());
        assert_eq!(address_of(home.path(), &own), None);
    }
}
