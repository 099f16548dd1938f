//! Maps evidence strings to the turns that they name.
//!
//! In: questions with the file's evidence strings, and the turns that the memory was given. Out:
//! questions with turn ids; those without any evidence left are removed. Every repaired or lost
//! string is counted.

use super::question::{Answerability, Dataset};
use crate::{dataset_damage::DatasetDamage, recording_source::BenchmarkTurns};

impl Dataset {
    /// Keeps the evidence that names turns which the memory was given, and the questions that
    /// have evidence left.
    pub(crate) fn resolve(&mut self, recorded: &BenchmarkTurns) {
        for letter in &recorded.rejects {
            self.problems.note(DatasetDamage::Rejected, format!("{}: {}", letter.origin, letter.reason));
        }
        let problems = &mut self.problems;
        let scorable = self.scorable;
        self.questions.retain_mut(|q| {
            let Some(turns) = recorded.turns.get(&q.bank) else {
                problems.note(DatasetDamage::NoConversation, &q.id);
                return false;
            };
            let mut found: Vec<String> = Vec::new();
            for piece in &q.evidence {
                let (turns_named, repaired) = named_turns(piece, |id| turns.contains_key(id));
                if turns_named.is_empty() {
                    problems.note(DatasetDamage::LostEvidence, format!("{}: {piece:?}", q.id));
                } else if repaired {
                    problems.note(DatasetDamage::RepairedEvidence, format!("{}: {piece:?}", q.id));
                }
                for turn in turns_named {
                    if !found.contains(&turn) {
                        found.push(turn);
                    }
                }
            }
            q.evidence = found;
            // An unsupported question has no evidence by design.
            let kept = !q.evidence.is_empty() || !scorable || q.answerability == Answerability::Unsupported;
            if !kept {
                problems.note(DatasetDamage::NoEvidence, &q.id);
            }
            kept
        });
    }
}

/// The maximum number of turns in a range; a longer one is taken for a typing error.
const MAX_OF_A_RANGE: u64 = 50;

/// The turns that an evidence string names, and whether the string was repaired.
///
/// A string that is a turn's id stays as it is. Otherwise every `D1:2`, `D:1:2`, `D01:02` or `D1;2`
/// in it is read as an id without leading zeros, and `D1:2-D1:5` or `D1:2-5` as all turns from the
/// first to the last; ids that name no turn are dropped.
fn named_turns(piece: &str, is_turn: impl Fn(&str) -> bool) -> (Vec<String>, bool) {
    if is_turn(piece) {
        return (vec![piece.to_owned()], false);
    }
    let mut found: Vec<String> = Vec::new();
    let mut rest = piece;
    while let Some(at) = rest.find('D') {
        rest = rest.get(at..).unwrap_or_default();
        let Some((session, first, tail)) = turn(rest) else {
            rest = rest.get(1..).unwrap_or_default();
            continue;
        };
        let (last, tail) = range_end(session, tail).unwrap_or((first, tail));
        let last = if last.saturating_sub(first) < MAX_OF_A_RANGE { last.max(first) } else { first };
        found.extend((first..=last).map(|turn| format!("D{session}:{turn}")).filter(|id| is_turn(id)));
        rest = tail;
    }
    (found, true)
}

/// The session and number of the id that a text begins with, and the rest.
fn turn(text: &str) -> Option<(u64, u64, &str)> {
    let tail = text.strip_prefix('D')?;
    let (session, tail) = number(tail.strip_prefix(':').unwrap_or(tail))?;
    let (turn, tail) = number(tail.strip_prefix([':', ';'])?)?;
    Some((session, turn, tail))
}

/// The last turn of a range in the same session, and the rest.
fn range_end(session: u64, tail: &str) -> Option<(u64, &str)> {
    let tail = tail.trim_start().strip_prefix(['-', '\u{2013}', '\u{2014}'])?.trim_start();
    match turn(tail) {
        Some((of, last, tail)) => (of == session).then_some((last, tail)),
        None => number(tail),
    }
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    digits.parse().ok().map(|n| (n, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(piece: &str, turns: &[&str], expected: &[&str], repaired: bool) {
        assert_eq!(
            named_turns(piece, |id| turns.contains(&id)),
            (expected.iter().map(|e| (*e).to_owned()).collect(), repaired),
            "{piece}"
        );
    }

    #[test]
    fn damaged_evidence_strings() {
        let turns = ["D8:6", "D9:17", "D11:26", "D30:5", "S1:2"];
        check("D8:6", &turns, &["D8:6"], false);
        check("S1:2", &turns, &["S1:2"], false);
        check("D8:6; D9:17", &turns, &["D8:6", "D9:17"], true);
        check("D9:17 D8:6,D8:99", &turns, &["D9:17", "D8:6"], true);
        check("D:11:26", &turns, &["D11:26"], true);
        check("D30:05", &turns, &["D30:5"], true);
        check("D8:5-7", &turns, &["D8:6"], true);
        check("D8:4 \u{2013} D8:6, D30:5", &turns, &["D8:6", "D30:5"], true);
        check("D8:6-D9:17", &turns, &["D8:6", "D9:17"], true);
        check("D8:6-600", &turns, &["D8:6"], true);
        check("D8;6", &turns, &["D8:6"], true);
        for lost in ["D", "", "D8", "D8:", "DD", "D8:7", "none", "D99999999999999999999:1", "Dé:1"] {
            check(lost, &turns, &[], true);
        }
    }
}
