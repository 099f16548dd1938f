//! Counts how many links and how many whole conversations are found.
//!
//! In: annotated logs. Out: counts. A link is a pair of lines. A line that begins a conversation is linked to itself,
//! and so is every server notice. A conversation is a set of marked lines that links connect; a conversation of a
//! single line does not count. Both rules are those of the irc-disentanglement tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde::Serialize;

use super::{
    annotated_log::{AnnotatedLog, AnnotatedLogError, read},
    reply_candidates::run,
};
use memory::window::antecedent;

/// How many are marked, how many were chosen, and how many are both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LinkCounts {
    /// Marked by people.
    pub marked: usize,
    /// Chosen.
    pub chosen: usize,
    /// Both.
    pub right: usize,
}

impl LinkCounts {
    /// The share of the chosen ones that are right.
    #[must_use]
    pub fn precision(&self) -> f64 {
        self.right as f64 / self.chosen.max(1) as f64
    }

    /// The share of the marked ones that are found.
    #[must_use]
    pub fn recall(&self) -> f64 {
        self.right as f64 / self.marked.max(1) as f64
    }

    /// The harmonic mean of precision and recall.
    #[must_use]
    pub fn f1(&self) -> f64 {
        2.0 * self.right as f64 / (self.marked + self.chosen).max(1) as f64
    }

    fn add(&mut self, marked: usize, chosen: usize, right: usize) {
        self.marked += marked;
        self.chosen += chosen;
        self.right += right;
    }
}

/// The figures of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ConversationScore {
    /// Logs.
    pub logs: usize,
    /// Marked lines.
    pub lines: usize,
    /// Links.
    pub links: LinkCounts,
    /// Conversations that are found whole.
    pub conversations: LinkCounts,
}

/// Measures the window's choice on the annotated logs of a directory; no line answers a line that was written more than
/// `gap_minutes` earlier.
///
/// # Errors
/// [`AnnotatedLogError`] when a file cannot be read.
pub fn score_conversations(directory: &Path, gap_minutes: u32) -> Result<ConversationScore, AnnotatedLogError> {
    let mut score = ConversationScore::default();
    for log in read(directory)? {
        score.logs += 1;
        score.lines += log.links.len();
        let marked: BTreeSet<(usize, usize)> =
            log.links.iter().flat_map(|(line, answered)| answered.iter().map(|old| (*old, *line))).collect();
        let chosen = chosen(&log, i64::from(gap_minutes) * 60_000);
        score.links.add(marked.len(), chosen.len(), marked.intersection(&chosen).count());
        let (marked, chosen) = (conversations(&log, &marked), conversations(&log, &chosen));
        score.conversations.add(marked.len(), chosen.len(), marked.intersection(&chosen).count());
    }
    Ok(score)
}

/// The links of the marked lines, as the window chooses them.
fn chosen(log: &AnnotatedLog, gap_ms: i64) -> BTreeSet<(usize, usize)> {
    let mut links: BTreeMap<usize, usize> = log.links.keys().map(|line| (*line, *line)).collect();
    run(log, gap_ms, |choice| {
        let answered = antecedent(&choice.new, choice.before);
        let old = answered.and_then(|at| choice.lines.get(at)).copied();
        if let (Some(link), Some(old)) = (links.get_mut(&choice.line), old) {
            *link = old;
        }
        answered
    });
    links.into_iter().map(|(line, old)| (old, line)).collect()
}

/// The conversations of more than one marked line.
fn conversations(log: &AnnotatedLog, links: &BTreeSet<(usize, usize)>) -> BTreeSet<BTreeSet<usize>> {
    // For each line, the lowest line of its conversation so far; for each lowest line, all lines of the conversation.
    let mut least: BTreeMap<usize, usize> = BTreeMap::new();
    let mut members: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for line in links.iter().flat_map(|(a, b)| [a, b]) {
        least.insert(*line, *line);
        members.insert(*line, BTreeSet::from([*line]));
    }
    for (a, b) in links {
        let (Some(&a), Some(&b)) = (least.get(a), least.get(b)) else { continue };
        if a == b {
            continue;
        }
        let moved = members.remove(&a.max(b)).unwrap_or_default();
        least.extend(moved.iter().map(|line| (*line, a.min(b))));
        members.entry(a.min(b)).or_default().extend(moved);
    }
    let marked = |lines: BTreeSet<usize>| -> BTreeSet<usize> {
        lines.into_iter().filter(|line| log.links.contains_key(line)).collect()
    };
    members.into_values().map(marked).filter(|lines| lines.len() > 1).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn links_and_conversations_are_counted_as_published() {
        let home = tempfile::tempdir().unwrap();
        let log = "[10:00] <ann> how do I mount a usb stick?\n[10:00] <cy> anyone using the new kernel?\n\
                   [10:01] <bo> ann: mount /dev/sdb1 /mnt\n=== dee [d@x] has joined\n[10:01] <ann> bo: thanks\n";
        fs::write(home.path().join("x.raw.txt"), log).unwrap();
        fs::write(home.path().join("x.annotation.txt"), "0 0 -\n1 1 -\n0 2 -\n3 3 -\n2 4 -\n1 4 -\n").unwrap();
        let score = score_conversations(home.path(), 60).unwrap();
        assert_eq!((score.logs, score.lines), (1, 5));
        assert_eq!(score.links, LinkCounts { marked: 6, chosen: 5, right: 5 });
        // The marked links connect all three conversations.
        assert_eq!(score.conversations, LinkCounts { marked: 1, chosen: 1, right: 0 });
        fs::write(home.path().join("x.annotation.txt"), "0 0 -\n1 1 -\n0 2 -\n3 3 -\n2 4 -\n").unwrap();
        let score = score_conversations(home.path(), 60).unwrap();
        assert_eq!(score.conversations, LinkCounts { marked: 1, chosen: 1, right: 1 });
        assert!((score.links.f1() - 1.0).abs() < 1e-9);
    }
}
