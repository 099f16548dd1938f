//! When transcripts are not to be read: what is said in a pause stays out of the memory.
//!
//! In: a home directory, and the time. Out: pauses, which are kept in a file there, so that a pause outlasts every
//! process. What was said in a pause is left out also later, until the pause is taken back.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{SourceError, error::unreadable};
use types::model::EventTime;

/// The file, below the home directory.
const FILE: &str = ".config/ripplemem/agents.toml";

/// The pauses of a home directory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentPauses {
    path: PathBuf,
    pauses: Vec<AgentPause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentPause {
    from: EventTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<EventTime>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PauseFile {
    #[serde(default)]
    pause: Vec<AgentPause>,
}

impl AgentPauses {
    /// Reads the pauses of a home directory.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read, or is not one.
    pub fn of(home: &Path) -> Result<Self, SourceError> {
        let path = home.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(unreadable(&path, 0, error)),
        };
        match toml::from_str::<PauseFile>(&text) {
            Ok(PauseFile { pause }) => Ok(Self { path, pauses: pause }),
            Err(error) => Err(SourceError::Format {
                path,
                line: 1,
                column: 1,
                problem: format!("not a list of pauses: {}", error.message()),
                remedy: "mend it, or delete it and pause again",
            }),
        }
    }

    /// Since when reading is paused; `None` if it is not.
    #[must_use]
    pub fn since(&self) -> Option<EventTime> {
        self.pauses.iter().find(|pause| pause.until.is_none()).map(|pause| pause.from)
    }

    /// The file in which the pauses are.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a pause. Returns whether none was on.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be written.
    pub fn pause(&mut self, now: EventTime) -> Result<bool, SourceError> {
        if self.since().is_some() {
            return Ok(false);
        }
        self.pauses.push(AgentPause { from: now, until: None });
        self.write().map(|()| true)
    }

    /// Ends the pause. What was said in it stays out, unless it is `taken_back`. Returns whether one was on.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be written.
    pub fn resume(&mut self, now: EventTime, taken_back: bool) -> Result<bool, SourceError> {
        if self.since().is_none() {
            return Ok(false);
        }
        if taken_back {
            self.pauses.retain(|pause| pause.until.is_some());
        } else {
            self.pauses.iter_mut().filter(|pause| pause.until.is_none()).for_each(|pause| pause.until = Some(now));
        }
        self.write().map(|()| true)
    }

    /// Whether there never was a pause.
    pub(super) fn is_empty(&self) -> bool {
        self.pauses.is_empty()
    }

    /// Whether something was said in a pause.
    pub(super) fn covers(&self, time: EventTime) -> bool {
        let is_in = |pause: &AgentPause| {
            time.unix_ms >= pause.from.unix_ms && pause.until.is_none_or(|until| time.unix_ms < until.unix_ms)
        };
        self.pauses.iter().any(is_in)
    }

    fn write(&self) -> Result<(), SourceError> {
        let failed = |error| unreadable(&self.path, 0, error);
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let text = toml::to_string(&PauseFile { pause: self.pauses.clone() });
        let text = text.map_err(|error| failed(io::Error::other(error)))?;
        fs::create_dir_all(folder).map_err(failed)?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        file.write_all(
            b"# When ripplemem does not read transcripts: `ripplemem agents pause` and `resume` write this.\n\n",
        )
        .and_then(|()| file.write_all(text.as_bytes()))
        .and_then(|()| file.as_file().sync_all())
        .map_err(failed)?;
        file.persist(&self.path).map(drop).map_err(|error| failed(error.error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_outlasts_the_process_and_can_be_taken_back() {
        let home = tempfile::TempDir::new().unwrap();
        let at = |hour: u32| EventTime::parse(&format!("2026-05-04T{hour:02}:00:00Z")).unwrap();
        let pauses = || AgentPauses::of(home.path()).unwrap();
        assert_eq!((pauses().since(), pauses().resume(at(1), false).unwrap()), (None, false));
        assert!(pauses().pause(at(2)).unwrap() && !pauses().pause(at(3)).unwrap());
        assert_eq!(pauses().since(), Some(at(2)));
        assert_eq!([1, 2, 9].map(|hour| pauses().covers(at(hour))), [false, true, true]);
        assert!(pauses().resume(at(4), false).unwrap());
        assert_eq!([1, 2, 3, 4].map(|hour| pauses().covers(at(hour))), [false, true, true, false]);
        assert!(pauses().pause(at(6)).unwrap() && pauses().resume(at(7), true).unwrap());
        assert_eq!((pauses().since(), pauses().covers(at(6)), pauses().covers(at(3))), (None, false, true));
        fs::write(pauses().path(), "pause = 7").unwrap();
        let error = AgentPauses::of(home.path()).unwrap_err().to_string();
        assert!(error.contains("agents.toml") && error.contains("list of pauses"), "{error}");
    }
}
