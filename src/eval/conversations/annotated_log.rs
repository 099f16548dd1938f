//! Annotated IRC logs.
//!
//! In: a directory with files `NAME.annotation.txt`, lines `A B -` that say that line B of the log answers line A, and
//! beside each the log `NAME.raw.txt` or `NAME.ascii.txt`. A line that begins a conversation names itself. Out: the
//! lines of each log with speaker, time and words; a server notice has none. Times are relative to the log: when the
//! hour decreases, a day has passed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use memory::window::TurnWords;

const ANNOTATION: &str = ".annotation.txt";
const SECONDS_A_DAY: i64 = 86_400;

/// Why annotated logs cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AnnotatedLogError {
    /// A file or the directory cannot be read.
    #[error("{}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The directory holds no annotations.
    #[error("{}: holds no file whose name ends in {ANNOTATION}; name a directory of irc-disentanglement", .0.display())]
    Empty(PathBuf),
    /// A line of an annotation cannot be read.
    #[error("{}, line {line}: {text:?} is not a link; a link is two line numbers followed by -", path.display())]
    Link {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
}

/// A line of a log that a person wrote.
#[derive(Debug)]
pub(super) struct AnnotatedLine {
    /// The speaker in lower case.
    pub(super) speaker: String,
    pub(super) unix_ms: i64,
    pub(super) words: TurnWords,
}

/// A log with its marked links.
#[derive(Debug)]
pub(super) struct AnnotatedLog {
    /// The lines; `None` for a server notice.
    pub(super) lines: Vec<Option<AnnotatedLine>>,
    /// For each line, the lines that it answers, or itself.
    pub(super) links: BTreeMap<usize, BTreeSet<usize>>,
}

/// Reads all logs of a directory, by name.
pub(super) fn read(directory: &Path) -> Result<Vec<AnnotatedLog>, AnnotatedLogError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        |source| AnnotatedLogError::Unreadable { path, source }
    };
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(directory).map_err(unreadable(directory))? {
        let name = entry.map_err(unreadable(directory))?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(ANNOTATION).map(str::to_owned));
    }
    if names.is_empty() {
        return Err(AnnotatedLogError::Empty(directory.to_owned()));
    }
    let mut logs = Vec::new();
    for name in names {
        let file = |ending: &str| directory.join(format!("{name}{ending}"));
        let annotation = file(ANNOTATION);
        let text = fs::read_to_string(&annotation).map_err(unreadable(&annotation))?;
        let links = links(&annotation, &text)?;
        let raw = [file(".raw.txt"), file(".ascii.txt")].into_iter().find(|path| path.is_file());
        let raw = raw.unwrap_or_else(|| file(".raw.txt"));
        let bytes = fs::read(&raw).map_err(unreadable(&raw))?;
        logs.push(AnnotatedLog { lines: lines(&String::from_utf8_lossy(&bytes)), links });
    }
    Ok(logs)
}

fn links(path: &Path, text: &str) -> Result<BTreeMap<usize, BTreeSet<usize>>, AnnotatedLogError> {
    let mut links: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let numbers: Vec<usize> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[a, b] = &numbers[..] else {
            return Err(AnnotatedLogError::Link { path: path.to_owned(), line: at + 1, text: line.to_owned() });
        };
        links.entry(a.max(b)).or_default().insert(a.min(b));
    }
    Ok(links)
}

fn lines(text: &str) -> Vec<Option<AnnotatedLine>> {
    let mut last = 0;
    text.lines().map(|line| read_line(line, &mut last)).collect()
}

/// Reads `[03:15] <nick> text` or `rust 2018-05-29 [21:20:37] <nick> text`; `* nick text` is an action.
fn read_line(line: &str, last: &mut i64) -> Option<AnnotatedLine> {
    let (before, rest) = line.split_once('[')?;
    if before.starts_with("===") {
        return None;
    }
    let (clock, rest) = rest.split_once(']')?;
    let clock: Vec<i64> = clock.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let &[hours, minutes, ..] = &clock[..] else { return None };
    let within = hours.checked_mul(3_600)?.checked_add(minutes.checked_mul(60)?)?;
    let within = within.checked_add(clock.get(2).copied().unwrap_or_default())?.rem_euclid(SECONDS_A_DAY);
    let mut seconds = last.div_euclid(SECONDS_A_DAY) * SECONDS_A_DAY + within;
    if seconds < *last - SECONDS_A_DAY / 2 {
        seconds += SECONDS_A_DAY;
    }
    *last = seconds;
    let rest = rest.trim_start();
    let (speaker, text) = match rest.strip_prefix('<') {
        Some(said) => said.split_once('>')?,
        None => {
            let done = rest.strip_prefix("* ")?;
            done.split_once(' ').unwrap_or((done, ""))
        }
    };
    Some(AnnotatedLine { speaker: speaker.to_lowercase(), unix_ms: seconds * 1_000, words: TurnWords::of(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_lines_are_read_and_midnight_passes() {
        let text =
            "[23:59] <Ann> hi\n=== bo [~b@x] has joined\n[00:01] * Bo waves\nrust 2018-05-29 [00:02:03] <c> x\nx\n";
        let found: Vec<_> = lines(text).into_iter().map(|line| line.map(|l| (l.speaker, l.unix_ms / 1_000))).collect();
        let at = |speaker: &str, seconds| Some((speaker.to_owned(), seconds));
        assert_eq!(found, [at("ann", 86_340), None, at("bo", 86_460), at("c", 86_523), None]);
    }

    #[test]
    fn a_directory_without_annotations_and_a_broken_link_are_named() {
        let home = tempfile::tempdir().unwrap();
        assert!(read(home.path()).unwrap_err().to_string().contains("annotation.txt"));
        fs::write(home.path().join("a.annotation.txt"), "0 0 -\n0 x -\n").unwrap();
        let problem = read(home.path()).unwrap_err().to_string();
        assert!(problem.contains("a.annotation.txt, line 2") && problem.contains("0 x -"), "{problem}");
    }
}
