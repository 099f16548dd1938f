//! The ledger: a file outside the log's directory that records what was forgotten.
//!
//! In: operations with the ids of their turns. Out: a line of JSON for each, on the disk before the operation is in the
//! log; at a start, all of them. A restored backup of the log lacks later operations, and gets them again. An
//! unfinished last line was never acknowledged: the next line replaces it.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, BufRead, BufReader, Read as _, Seek, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{PipelineError, retention_rule::RetentionRule};
use types::model::Bank;

/// An operation, as a line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LedgerLine {
    pub(super) operation: String,
    pub(super) bank: Bank,
    pub(super) requested_ms: i64,
    pub(super) turns: BTreeSet<String>,
    /// The rule that deleted them; `None` if a person asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retention: Option<RetentionRule>,
}

/// A ledger at a path.
pub(super) struct ForgetLedger {
    path: PathBuf,
}

impl ForgetLedger {
    pub(super) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Adds an operation; on return it is on the disk.
    pub(super) fn add(&self, line: &LedgerLine) -> Result<(), PipelineError> {
        let mut json = serde_json::to_vec(line).map_err(|e| self.failed(&e))?;
        json.push(b'\n');
        self.append(&json).map_err(|e| self.failed(&e))
    }

    fn append(&self, line: &[u8]) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let is_new = !self.path.exists();
        let mut file = options.open(&self.path)?;
        let end = end_of_lines(&mut file)?;
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        file.write_all(line)?;
        file.sync_all()?;
        match self.path.parent().filter(|parent| is_new && !parent.as_os_str().is_empty()) {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    }

    /// All operations; empty if there is no file yet.
    pub(super) fn lines(&self) -> Result<Vec<LedgerLine>, PipelineError> {
        let file = match File::open(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened.map_err(|e| self.failed(&e))?,
        };
        let (mut reader, mut lines, mut line) = (BufReader::new(file), Vec::new(), Vec::new());
        while reader.read_until(b'\n', &mut line).map_err(|e| self.failed(&e))? > 0 && line.ends_with(b"\n") {
            let number = lines.len() + 1;
            let read = serde_json::from_slice(&line);
            lines.push(read.map_err(|e| self.failed(&format!("line {number}: {e}; put back a copy of the file")))?);
            line.clear();
        }
        Ok(lines)
    }

    fn failed(&self, problem: &dyn std::fmt::Display) -> PipelineError {
        PipelineError::Forget { what: format!("the ledger {}", self.path.display()), problem: problem.to_string() }
    }
}

/// The offset after the last complete line.
fn end_of_lines(file: &mut File) -> io::Result<u64> {
    const BLOCK: u64 = 4_096;
    let mut end = file.seek(SeekFrom::End(0))?;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        let mut block = Vec::new();
        io::Read::by_ref(file).take(end - start).read_to_end(&mut block)?;
        if let Some(last) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_not_finished_is_replaced_by_the_next() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("ledger.jsonl");
        let (ledger, bank) = (ForgetLedger::at(&path), Bank::parse("b").unwrap());
        assert_eq!(ledger.lines().unwrap(), []);
        let turns = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
        let line = |operation: &str, ids: &[&str]| {
            let (operation, bank, turns) = (operation.to_owned(), bank.clone(), turns(ids));
            LedgerLine { operation, bank, requested_ms: 5, turns, retention: None }
        };
        ledger.add(&line("1", &["a", "b"])).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for torn in [&b"{"[..], &vec![b'x'; 10_000]] {
            std::fs::write(&path, [&whole, torn].concat()).unwrap();
            assert_eq!(ledger.lines().unwrap().len(), 1);
        }
        ledger.add(&line("2", &["c"])).unwrap();
        let lines = ledger.lines().unwrap();
        assert_eq!(lines.iter().map(|line| line.operation.as_str()).collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(lines[0].turns, turns(&["a", "b"]));
        std::fs::write(&path, b"{}\n").unwrap();
        assert!(ledger.lines().unwrap_err().to_string().contains("line 1"));
    }
}
