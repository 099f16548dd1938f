//! Checks the memory's directory, and the addresses that a service would listen on.
//!
//! In: a pipeline. Out: findings. An address is bound for a moment; a file that tests the directory is removed.

use std::{
    io::ErrorKind,
    net::{SocketAddr, TcpListener},
    path::Path,
};

use types::config::Pipeline;

use super::finding::DoctorFinding;
use terminal::LISTEN;

/// With fewer free bytes on the disk than this, a memory soon stops, because for a while a store keeps two copies of
/// what it writes.
const LITTLE_SPACE: u64 = 1 << 30;

/// Whether the directory, or its nearest parent that exists, can be written, and the free space there.
pub(super) fn directory(path: &Path) -> Vec<DoctorFinding> {
    const OF: &str = "memory";
    // The last ancestor of a relative path is empty, which means the working directory.
    let there = |path: &&Path| path.as_os_str().is_empty() || path.exists();
    let nearest = path.ancestors().find(there).filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = path.display();
    let mut findings = vec![match tempfile::tempfile_in(nearest) {
        Ok(_) if nearest == path => DoctorFinding::ok(OF, format!("{shown} can be written")),
        Ok(_) => DoctorFinding::ok(OF, format!("{shown} does not exist yet; the first start creates it")),
        Err(error) => DoctorFinding::mend(
            OF,
            format!(
                "{} cannot be written ({error}); give this user the right to write it, or name another directory with \
                 --data or log.directory",
                nearest.display()
            ),
        ),
    }];
    findings.extend(readers(path));
    findings.extend(space(nearest));
    findings
}

/// Who else may read the directory.
#[cfg(unix)]
fn readers(path: &Path) -> Option<DoctorFinding> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = path.metadata().ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        DoctorFinding::note(
            "readers",
            format!(
                "{} has the mode {mode:03o}, so other users can read what is remembered; run `chmod 700` on it",
                path.display()
            ),
        )
    })
}

#[cfg(not(unix))]
fn readers(_: &Path) -> Option<DoctorFinding> {
    None
}

/// The free space of a disk.
#[cfg(unix)]
fn space(path: &Path) -> Option<DoctorFinding> {
    const OF: &str = "disk";
    let found = rustix::fs::statvfs(path);
    Some(match found.map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)) {
        Ok(bytes) if bytes >= LITTLE_SPACE => DoctorFinding::ok(OF, format!("{} free", gigabytes(bytes))),
        Ok(bytes) => {
            let (free, at) = (gigabytes(bytes), path.display());
            DoctorFinding::mend(OF, format!("{free} free at {at}; make room, or name a directory on another disk"))
        }
        Err(error) => DoctorFinding::note(OF, format!("the free space is not known ({error})")),
    })
}

#[cfg(not(unix))]
fn space(_: &Path) -> Option<DoctorFinding> {
    None
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

/// The addresses of a service on this pipeline.
pub(super) fn addresses(pipeline: &Pipeline) -> Vec<DoctorFinding> {
    let http = if pipeline.http.listen.is_empty() { LISTEN } else { &pipeline.http.listen };
    let metrics = Some(pipeline.metrics.listen.as_str()).filter(|listen| !listen.is_empty());
    std::iter::once(("http", http)).chain(metrics.map(|listen| ("metrics", listen))).map(address).collect()
}

fn address((of, listen): (&'static str, &str)) -> DoctorFinding {
    let Ok(parsed) = listen.parse::<SocketAddr>() else {
        return DoctorFinding::mend(of, format!("{listen:?} is not address:port; write an address such as {LISTEN}"));
    };
    match TcpListener::bind(parsed) {
        Ok(_) => DoctorFinding::ok(of, format!("{listen} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => DoctorFinding::note(
            of,
            format!(
                "somebody listens on {listen}; if that is this service, all is well; otherwise stop it, or choose \
                 another port ({of}.listen)"
            ),
        ),
        Err(error) => DoctorFinding::mend(
            of,
            format!("{listen} cannot be listened on ({error}); choose an address of this machine ({of}.listen)"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::FindingState;

    #[test]
    fn an_address_is_free_taken_or_not_of_this_machine() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = taken.local_addr().expect("bound").to_string();
        assert_eq!(address(("http", "127.0.0.1:0")).state, FindingState::Ok);
        assert_eq!(address(("http", &port)).state, FindingState::Note);
        assert_eq!(address(("metrics", "192.0.2.1:1")).state, FindingState::Mend);
        assert_eq!(address(("metrics", "here")).state, FindingState::Mend);
    }
}
