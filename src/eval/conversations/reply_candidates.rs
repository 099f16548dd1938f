//! Runs the window's choice over a log, line by line.
//!
//! In: a log, and a gap. Out: for each line, the choices with their features, and which of them was taken. A line joins
//! the conversation of the line that it answers.

use std::collections::{BTreeMap, VecDeque};

use super::annotated_log::{AnnotatedLine, AnnotatedLog};
use memory::window::{ConversationTurn, REACH};

/// A line of a log, and the lines that it may answer.
pub(super) struct ReplyCandidates<'c> {
    pub(super) line: usize,
    pub(super) new: ConversationTurn<'c>,
    /// The earlier lines, newest first, and what was said in them.
    pub(super) lines: &'c [usize],
    pub(super) before: &'c [ConversationTurn<'c>],
}

/// Calls `take` for each line of a log; it returns which of the earlier lines the line answers.
pub(super) fn run(log: &AnnotatedLog, gap_ms: i64, mut take: impl FnMut(&ReplyCandidates<'_>) -> Option<usize>) {
    let mut conversations: BTreeMap<usize, usize> = BTreeMap::new();
    let mut recent: VecDeque<(usize, &AnnotatedLine)> = VecDeque::new();
    for (at, line) in log.lines.iter().enumerate() {
        let Some(line) = line else { continue };
        let near = recent.iter().filter(|(_, old)| line.unix_ms.saturating_sub(old.unix_ms) <= gap_ms);
        let (lines, before): (Vec<usize>, Vec<ConversationTurn<'_>>) = near
            .map(|(number, old)| (*number, said(old, conversations.get(number).copied().unwrap_or(*number))))
            .unzip();
        let new = said(line, usize::MAX);
        let taken = take(&ReplyCandidates { line: at, new, lines: &lines, before: &before });
        let conversation = taken.and_then(|taken| before.get(taken)).map_or(at, |old| old.conversation);
        conversations.insert(at, conversation);
        recent.push_front((at, line));
        recent.truncate(REACH);
    }
}

fn said(line: &AnnotatedLine, conversation: usize) -> ConversationTurn<'_> {
    ConversationTurn { speaker: &line.speaker, unix_ms: line.unix_ms, words: &line.words, conversation }
}
