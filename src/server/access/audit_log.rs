//! The audit log: who did what, when, and with which result, without any content.
//!
//! In: a request that has ended. Out: a line of JSON in a file, written by a thread of its own. A file that
//! cannot be written, or a disk that hangs, neither refuses nor delays a request: the problem is logged, and a line
//! of its own counts the lines that were lost.

use crate::log_events;
use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded};
use jiff::Timestamp;
use serde::Serialize;

use super::{AccessError, AccessRight};
use types::model::Bank;

/// The maximum number of lines that wait for the disk.
const WAITING: usize = 16_384;
/// How long the last lines may take at the end.
const FLUSH: Duration = Duration::from_secs(5);

/// The audit log.
pub struct AuditLog {
    lines: Option<Sender<Vec<u8>>>,
    /// The number of lines for which there was no space.
    lost: Arc<AtomicU64>,
    /// Ends when the last line is written.
    written: Receiver<()>,
}

/// A request that has ended.
#[derive(Debug, Clone, Serialize)]
pub struct AuditEntry<'r> {
    /// When.
    pub time: Timestamp,
    /// The token's name; `None` if no token was needed or shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<&'r str>,
    /// The method and the route's pattern, or the tool.
    pub action: &'r str,
    /// The right that it needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<AccessRight>,
    /// The bank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bank: Option<&'r Bank>,
    /// The status of the response. A call that was denied has 403, even if its response has another status, as that of
    /// a tool does; a request whose client left before the response has 499.
    pub status: u16,
}

impl AuditLog {
    /// Opens a file to append to; only its owner may read a new one. Later problems are logged.
    ///
    /// # Errors
    /// [`AccessError::File`].
    pub fn open(path: &Path) -> Result<Self, AccessError> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|e| AccessError::File {
            path: path.to_owned(),
            problem: format!("{e}; name a file that can be written, or no file"),
        })?;
        let (lines, waiting) = bounded(WAITING);
        let (done, written) = bounded(0);
        let lost = Arc::<AtomicU64>::default();
        let (name, lost_lines) = (path.to_owned(), Arc::clone(&lost));
        let work = move || {
            // Dropped with the thread's work.
            let _done: Sender<()> = done;
            write(file, &waiting, &lost_lines, &|problem| {
                log_events::audit_log_failed(&AccessError::File { path: name.clone(), problem });
            });
        };
        std::thread::Builder::new().name("audit".to_owned()).spawn(work).map_err(|e| AccessError::File {
            path: path.to_owned(),
            problem: format!("the thread that writes it cannot start: {e}; raise the system's limit on threads"),
        })?;
        Ok(Self { lines: Some(lines), lost, written })
    }

    /// Queues a line, which is appended soon.
    pub fn note(&self, entry: &AuditEntry<'_>) {
        let Ok(mut line) = serde_json::to_vec(entry) else { return };
        line.push(b'\n');
        if self.lines.as_ref().is_none_or(|lines| lines.try_send(line).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for AuditLog {
    /// Waits until the last line is written, but only for a few seconds if a disk hangs.
    fn drop(&mut self) {
        self.lines = None;
        let _ = self.written.recv_timeout(FLUSH);
    }
}

/// Writes lines until all senders are dropped.
fn write(mut file: File, lines: &Receiver<Vec<u8>>, lost: &AtomicU64, say: &dyn Fn(String)) {
    for line in lines {
        let missing = lost.swap(0, Ordering::Relaxed);
        // There is one write per line, so that lines of several processes do not mix.
        let mut written = file.write_all(&line);
        if missing > 0 && written.is_ok() {
            let time = Timestamp::now();
            written = file.write_all(format!("{{\"time\":\"{time}\",\"lost\":{missing}}}\n").as_bytes());
        }
        if let Err(error) = written {
            lost.fetch_add(missing + 1, Ordering::Relaxed);
            say(format!("{error}; make room on the disk"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_who_did_what_and_is_appended() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("audit.jsonl");
        let bank = Bank::parse("acme").unwrap();
        for status in [200, 403] {
            let entry = AuditEntry {
                time: Timestamp::UNIX_EPOCH,
                token: Some("agent"),
                action: "POST /v1/ask",
                right: Some(AccessRight::Read),
                bank: Some(&bank),
                status,
            };
            AuditLog::open(&path).unwrap().note(&entry);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            r#"{"time":"1970-01-01T00:00:00Z","token":"agent","action":"POST /v1/ask","right":"read","bank":"acme","status":200}"#
        );
        assert_eq!(text.lines().count(), 2);
        assert!(AuditLog::open(home.path()).is_err());
    }

    #[test]
    fn a_disk_that_takes_nothing_holds_up_nobody_and_what_is_lost_is_counted() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("audit.jsonl");
        let (told, problems) = bounded(1);
        // No one can write to a file that was opened to be read.
        let closed = File::open(std::env::current_exe().unwrap()).unwrap();
        let (lines, waiting) = bounded(WAITING);
        let lost = AtomicU64::new(0);
        lines.send(b"1\n".to_vec()).unwrap();
        lines.send(b"2\n".to_vec()).unwrap();
        drop(lines);
        write(closed, &waiting, &lost, &|problem| drop(told.try_send(problem)));
        assert!(problems.try_recv().is_ok());
        assert_eq!(lost.load(Ordering::Relaxed), 2);
        let (lines, waiting) = bounded(1);
        lines.send(b"3\n".to_vec()).unwrap();
        drop(lines);
        write(File::create(&path).unwrap(), &waiting, &lost, &|problem| panic!("{problem}"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("3\n") && text.contains("\"lost\":2"), "{text}");
    }
}
