//! Turns, already chosen, to one unit.
//!
//! In: one turn, a question and its answer, or turns that follow each other, and the people of the window. Out: the
//! unit's words, cues and parts. The words stay as they were said, between quotation marks,
//! with the speaker and the one spoken to named in front, so that I, you and we are tied to
//! names; resolved dates are added in square brackets. Cues that the words do not ground
//! are empty (decision 9).

use std::sync::LazyLock;

use regex::Regex;

use super::{DraftPart, DraftUnit};
use crate::{
    language::{
        names::NameText,
        sentences::{content, has_content, is_question, sentences},
        shared::{named, shared},
        tense::{Tense, tense},
        time_words::time_words,
        times::{TimeMention, find_times, render_interval},
        vague::has_vague_time,
    },
    model::{Attachment, Cues, Interval, Marks, WindowTurn, canonical_name},
};

/// A turn, or the questions of one, on its way into a unit.
pub(super) struct Piece<'w> {
    pub(super) held: &'w WindowTurn,
    /// The words taken from it, single spaces between them.
    pub(super) words: String,
    /// What was shared with it, where it is taken whole.
    pub(super) shared: Vec<String>,
    /// Whom the platform says it answers.
    pub(super) replies_to: Option<&'w str>,
    /// Whether it answers the piece before it.
    pub(super) answers: bool,
}

impl<'w> Piece<'w> {
    /// The whole turn.
    pub(super) fn whole(held: &'w WindowTurn) -> Self {
        let shared = held.turn.attachments.iter().filter_map(shared_thing).collect();
        Self { held, words: one_line(&held.turn.text), shared, replies_to: None, answers: false }
    }

    /// Only what it asks.
    pub(super) fn questions(held: &'w WindowTurn) -> Self {
        let (asked, _) = split_questions(&one_line(&held.turn.text));
        Self { held, words: asked, shared: Vec::new(), replies_to: None, answers: false }
    }

    fn speaker(&self) -> &'w str {
        &self.held.turn.speaker
    }

    /// What the unit keeps of it.
    pub(super) fn part(&self) -> DraftPart {
        DraftPart {
            turn: self.held.turn.turn.clone(),
            ordinal: self.held.ordinal,
            speaker: self.speaker().to_owned(),
            said_at: self.held.turn.time,
            text: self.text(),
            marks: marks(&self.words),
        }
    }

    /// What is embedded: the words, captions included.
    fn text(&self) -> String {
        let captions = self.shared.iter().cloned();
        std::iter::once(self.words.clone()).filter(|w| !w.is_empty()).chain(captions).collect::<Vec<_>>().join(" ")
    }
}

/// One unit of a turn, of a question and its answer, or of turns that follow each other;
/// `people` are the window's speakers.
pub(super) fn draft(pieces: &[Piece<'_>], people: &[String]) -> Option<DraftUnit> {
    let (first, last) = (pieces.first()?, pieces.last()?);
    let mut participants = Vec::new();
    let mut places = Vec::new();
    let mut restatement = String::new();
    let mut times = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        let text = piece.text();
        let partner = pieces.iter().find(|p| p.speaker() != piece.speaker()).map(|p| p.speaker().to_owned());
        let names = NameText::of(&text);
        let to = partner.or_else(|| spoken_to(piece, &names, people));
        let others: Vec<String> = people.iter().filter(|p| *p != piece.speaker()).cloned().collect();
        let friends = names.companions(people);
        let known: Vec<String> = people.iter().chain(&friends).cloned().collect();
        places.extend(names.locations(&known));
        participants.push(piece.speaker().to_owned());
        participants.extend(to.clone());
        participants.extend(names.mentions(&others));
        participants.extend(friends);
        let found = find_times(&piece.words, Some(piece.held.turn.time));
        if i > 0 {
            restatement.push(' ');
        }
        restatement.push_str(&restate(piece, to.as_deref().filter(|_| !piece.answers), piece.answers, &found));
        times.push(found);
    }
    let mut participants: Vec<String> = participants.iter().map(|p| canonical_name(p)).collect();
    for list in [&mut participants, &mut places] {
        list.sort_unstable();
        list.dedup();
    }
    Some(DraftUnit {
        restatement,
        cues: Cues { participants, locations: places, time: event_time(last, &times) },
        said_at: last.held.turn.time,
        sources: pieces.iter().map(|p| p.held.turn.turn.clone()).collect(),
        ordinal: first.held.ordinal,
        before: None,
        parts: pieces.iter().map(Piece::part).collect(),
        restated: false,
    })
}

/// What stands out in a turn's words.
fn marks(words: &str) -> Marks {
    let quoted = |open: char, close: char| words.split_once(open).is_some_and(|(_, rest)| rest.contains(close));
    Marks {
        times: u8::try_from(time_words(words)).unwrap_or(u8::MAX),
        asks: is_question(words) || words.trim_end().ends_with('?'),
        quotes: quoted('"', '"') || quoted('\u{201c}', '\u{201d}'),
    }
}

/// Whether a text holds at least a number of content words, the names of the people
/// present not counted.
pub(super) fn informative(text: &str, people: &[String], least: u32) -> bool {
    let least = usize::try_from(least).unwrap_or(usize::MAX);
    let name = |word: &str| {
        people
            .iter()
            .flat_map(|p| p.split_whitespace())
            .map(str::to_lowercase)
            .any(|n| n == word || (word.chars().count() >= 3 && n.starts_with(word)))
    };
    content(text).filter(|w| !name(w)).take(least).count() >= least
}

/// The questions of a text, and the rest of it.
pub(super) fn split_questions(text: &str) -> (String, String) {
    if !text.contains('?') {
        return (String::new(), text.to_owned());
    }
    let (mut asked, mut rest) = (Vec::new(), Vec::new());
    for sentence in sentences(text).into_iter().filter_map(|r| text.get(r)) {
        if is_question(sentence) { asked.push(sentence) } else { rest.push(sentence) }
    }
    (asked.join(" "), rest.join(" "))
}

/// The words of a text with single spaces between them.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What an attachment shows, as a part's text has it.
pub(super) fn shared_thing(attachment: &Attachment) -> Option<String> {
    let caption = attachment.caption.as_deref().map(one_line).filter(|c| !c.is_empty())?;
    Some(shared(attachment.kind.as_deref().map(one_line).as_deref(), &caption))
}

/// Whom a turn clearly speaks to: the person it calls, the one whose turn it answers, or
/// "you" where only two people are present.
fn spoken_to(piece: &Piece<'_>, names: &NameText<'_>, people: &[String]) -> Option<String> {
    let others: Vec<String> = people.iter().filter(|p| *p != piece.speaker()).cloned().collect();
    names.addressee(&others).or_else(|| piece.replies_to.map(str::to_owned)).or_else(|| match others.as_slice() {
        [other] if says_you(&piece.words) => Some(other.clone()),
        _ => None,
    })
}

fn says_you(words: &str) -> bool {
    YOU.as_ref().is_some_and(|r| r.is_match(words))
}

/// `None` only if the pattern were malformed, which the tests rule out.
static YOU: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?-u:\b)(?:you|your|yours|yourself|ya|let['’]?s|we both|both of us|the two of us|us both)(?-u:\b)")
        .ok()
});

/// `A said to B: "…" and shared a photo: …`, with resolved dates in square brackets.
fn restate(piece: &Piece<'_>, to: Option<&str>, answers: bool, times: &[TimeMention]) -> String {
    let speaker = piece.speaker();
    let shared = piece.shared.iter().filter_map(|thing| named(thing)).collect::<Vec<_>>().join(" and ");
    let words = with_dates(&piece.words, times);
    let said = match (answers, is_question(&piece.words), to) {
        (true, ..) => format!("{speaker} answered"),
        (_, true, Some(to)) => format!("{speaker} asked {to}"),
        (_, true, None) => format!("{speaker} asked"),
        (_, false, Some(to)) => format!("{speaker} said to {to}"),
        (_, false, None) => format!("{speaker} said"),
    };
    match (words.is_empty(), shared.is_empty()) {
        (false, true) => format!("{said}: \"{words}\""),
        (false, false) => format!("{said}: \"{words}\" and shared {shared}"),
        (true, _) if answers => format!("{speaker} answered and shared {shared}"),
        (true, _) => format!("{speaker} shared {shared}"),
    }
}

/// The words with the date of every time that cannot be read without its anchor.
fn with_dates(words: &str, times: &[TimeMention]) -> String {
    let mut out = String::with_capacity(words.len() + 24 * times.len());
    let mut done = 0;
    for mention in times.iter().filter(|m| !m.complete) {
        let rest = words.get(mention.range.end..).unwrap_or_default();
        let possessive = ["'s", "’s"].iter().find(|s| rest.starts_with(**s)).map_or(0, |s| s.len());
        let end = mention.range.end + possessive;
        out.push_str(words.get(done..end).unwrap_or_default());
        out.push_str(&format!(" [{}]", render_interval(&mention.interval)));
        done = end;
    }
    out.push_str(words.get(done..).unwrap_or_default());
    out
}

/// T by decision 9: the first time the last piece names, else the first the question names;
/// else the moment itself for what is asked, wished, planned or stated as it is now; empty
/// for a vague time and for a past that is not dated.
fn event_time(last: &Piece<'_>, times: &[Vec<TimeMention>]) -> Option<Interval> {
    if let Some(mention) = times.iter().rev().find_map(|found| found.first()) {
        return Some(mention.interval);
    }
    let now = Some(Interval::at(last.held.turn.time));
    let words = last.words.as_str();
    if has_vague_time(words) {
        return None;
    }
    let (_, told) = split_questions(words);
    let (mut past, mut present) = (0, 0);
    for sentence in sentences(&told).into_iter().filter_map(|r| told.get(r)).filter(|s| has_content(s, 1)) {
        if tense(sentence) == Tense::Past { past += 1 } else { present += 1 }
    }
    if past > 0 && past >= present { None } else { now }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_for_you_is_well_formed() {
        assert!(YOU.is_some());
        assert!(says_you("Thank you!") && says_you("Let’s go") && !says_you("young") && !says_you("I ran"));
    }

    #[test]
    fn questions_are_told_from_the_rest() {
        let check = |text: &str, asked: &str, rest: &str| {
            assert_eq!(split_questions(text), (asked.to_owned(), rest.to_owned()), "{text}");
        };
        check("I ran. And you?", "And you?", "I ran.");
        check("Why? Because.", "Why?", "Because.");
        check("", "", "");
    }

    #[test]
    fn names_of_those_present_are_no_information() {
        let people = ["Melanie".to_owned()];
        assert!(!informative("Hey Mel!", &people, 1));
        assert!(informative("Hey Mel, pottery!", &people, 1));
        assert!(!informative("Hey Mel, pottery!", &people, 2));
    }
}
