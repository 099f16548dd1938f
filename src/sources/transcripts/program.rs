//! What the mechanism of transcripts needs to know about a program.
//!
//! In: nothing. Out: the shape of the constant that each program's file exports, and whether an export holds files of
//! that program. Reads the beginnings of a few files.

use super::{findings::Findings, transcript_file::TranscriptFile};
use crate::{SourceError, chat::FileSample};

/// How many files of a folder are looked at to recognise a program.
const LOOKED_AT: usize = 64;

/// A program that writes transcripts.
#[derive(Debug)]
pub(super) struct TranscriptProgram {
    /// The name of its format, which also begins the ids of its turns.
    pub(super) agent: &'static str,
    /// Its name, which its assistant speaks under.
    pub(super) speaker: &'static str,
    /// Whether its times have no zone.
    pub(super) has_local_times: bool,
    /// Whether its files are databases, which hold the sessions of several projects.
    pub(super) is_database: bool,
    /// Whether its messages are known by their words, and a file is rewritten while one is said.
    pub(super) is_rewritten: bool,
    /// Whether a file may be one of its transcripts, by its path in the export.
    pub(super) has_name: fn(&str) -> bool,
    /// Whether a file is one of its transcripts, by its beginning.
    pub(super) has_head: fn(&str) -> bool,
    /// Reads a file.
    pub(super) read: fn(&TranscriptFile<'_>, &mut Findings) -> Result<(), SourceError>,
}

impl TranscriptProgram {
    /// Whether a file, a folder or an archive holds a transcript of this program.
    pub(super) fn is_in(&self, sample: &FileSample) -> bool {
        if sample.is_file() {
            return (self.has_head)(sample.head());
        }
        let files = sample.entries().filter(|entry| (self.has_name)(entry)).take(LOOKED_AT);
        files.into_iter().any(|entry| (self.has_head)(&sample.head_of(entry)))
    }
}

/// Whether the beginning of a file names a field.
pub(super) fn names(head: &str, field: &str) -> bool {
    head.contains(&format!("\"{field}\""))
}
