//! The transcripts of all programs in a home directory.
//!
//! In: a home directory. Out: what was said to every program that keeps transcripts there, oldest first. A file that
//! cannot be read is a dead letter, one that is not its program's is counted, and the others are read.

use std::path::Path;

use super::{
    agent_places::{agent_files, agent_folders, aider_files},
    pauses::AgentPauses,
    transcript_reader::{TranscriptFileToRead, TranscriptReader},
};
use crate::{
    SourceError,
    chat::{ChatReader, TimeOrderedReader},
    format::{FormatOpener, SourceFormat},
};
use types::config::SourceSettings;

/// The format of a home directory.
pub(crate) const FORMAT: SourceFormat = SourceFormat {
    name: "agents",
    about: "all coding agents' transcripts in a home directory",
    standard_input: false,
    only: Some("projects"),
    looks_like: |_| false,
    open: FormatOpener::Chat(open),
};

fn open(settings: &SourceSettings) -> Result<Box<dyn ChatReader>, SourceError> {
    let home = settings.path.as_path();
    let mut files = agent_files(&agent_folders(home, is_own(home)));
    files.extend(aider_files(home));
    let files: Vec<TranscriptFileToRead> = files
        .iter()
        .enumerate()
        .filter_map(|(number, file)| {
            TranscriptFileToRead::alone(file.program, &file.path, u32::try_from(number).unwrap_or(u32::MAX))
        })
        .collect();
    if files.iter().all(TranscriptFileToRead::is_of_other_form) {
        return Err(SourceError::Format {
            path: home.to_owned(),
            line: 1,
            column: 1,
            problem: "no transcript of a program that is known is in it".to_owned(),
            remedy: "name the home directory in which the programs keep theirs",
        });
    }
    let reader = TranscriptReader::of_files(files, settings, format!("transcripts in {}", home.display()))?;
    Ok(Box::new(TimeOrderedReader::new(reader.without(AgentPauses::of(home)?))))
}

/// Whether a home directory is that of the person who runs this process, whose environment then counts, too.
pub(super) fn is_own(home: &Path) -> bool {
    std::env::home_dir().is_some_and(|own| own == home)
}
