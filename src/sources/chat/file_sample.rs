//! The beginning of a file, from which its format is recognised.
//!
//! In: a path. Out: the name, the first 64 KiB, and the names of the entries of a directory or an archive. Never reads
//! the whole file.

use std::{io::Read, path::Path};

use super::export_tree::ExportTree;
use crate::{SourceError, compression::without_ending};

/// How much of a file is read.
const SAMPLE_BYTES: u64 = 64 * 1024;
/// The suffixes of archives.
const ARCHIVE_ENDINGS: [&str; 6] = [".zip", ".7z", ".rar", ".tar", ".tar.gz", ".tgz"];

/// What is known about a file before it is opened.
pub struct FileSample {
    tree: ExportTree,
    head: String,
}

impl FileSample {
    /// Looks at a file, a directory or an archive.
    ///
    /// # Errors
    /// [`SourceError`] when it cannot be read.
    pub fn of(path: &Path) -> Result<Self, SourceError> {
        let tree = ExportTree::look(path, SAMPLE_BYTES)?;
        let head = if tree.is_file() { tree.entries().first().map(|e| head(&tree, &e.name)) } else { None };
        Ok(Self { head: head.transpose()?.unwrap_or_default(), tree })
    }

    /// The name of the file or directory itself, without its folder; of a file in gzip, without that ending.
    pub fn name(&self) -> String {
        let name = self.tree.path().file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        if self.is_file() { without_ending(&name).to_owned() } else { name }
    }

    /// The path itself.
    pub fn path(&self) -> &Path {
        self.tree.path()
    }

    /// Whether it is a single file, not a directory or an archive.
    pub fn is_file(&self) -> bool {
        self.tree.is_file()
    }

    /// The first 64 KiB of a file, without a byte order mark, and with bytes that are not UTF-8 replaced; empty for a
    /// directory or an archive.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// The names of the entries of a directory or an archive, sorted, with `/` between folders. For
    /// a file, its own name.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.tree.entries().iter().map(|e| e.name.as_str())
    }

    /// The names of the archives inside a directory or an archive. They are not opened.
    pub(crate) fn archives(&self) -> Vec<String> {
        let is_archive = |name: &&str| {
            let name = name.to_lowercase();
            ARCHIVE_ENDINGS.iter().any(|ending| name.ends_with(ending))
        };
        if self.is_file() { Vec::new() } else { self.entries().filter(is_archive).map(str::to_owned).collect() }
    }

    /// As [`FileSample::head`], for an entry; empty if it cannot be read.
    pub fn head_of(&self, entry: &str) -> String {
        head(&self.tree, entry).unwrap_or_default()
    }

    /// Whether the file begins like a JSON object or array and its head holds all these keys.
    pub fn has_json_keys(&self, keys: &[&str]) -> bool {
        has_json_keys(&self.head, keys)
    }
}

/// Whether a text begins like a JSON object or array and holds all these keys.
pub fn has_json_keys(head: &str, keys: &[&str]) -> bool {
    let holds = |key: &&str| {
        let quoted = format!("\"{key}\"");
        head.match_indices(&quoted)
            .any(|(at, _)| head.get(at + quoted.len()..).is_some_and(|rest| rest.trim_start().starts_with(':')))
    };
    head.trim_start().starts_with(['{', '[']) && keys.iter().all(holds)
}

/// Whether a text is blank, or an object that begins with this key or is cut inside it.
pub(crate) fn begins_with_key(head: &str, key: &str) -> bool {
    let start = format!("{{\"{key}\"");
    let words = head.chars().filter(|c| !c.is_whitespace() && *c != '\u{feff}');
    start.starts_with(&words.take(start.chars().count()).collect::<String>())
}

fn head(tree: &ExportTree, entry: &str) -> Result<String, SourceError> {
    let mut bytes = Vec::new();
    let read = tree.read(entry)?.take(SAMPLE_BYTES).read_to_end(&mut bytes);
    read.map_err(|e| tree.unreadable(entry, 0, e))?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}
