//! Composes one unit from turns that are already chosen.
//!
//! In: one turn, a question and its answer, or consecutive turns, and the window's speakers. Out: the unit's
//! restatement, cues and parts. The words stay unchanged, in quotation marks, with the speaker and the addressee named
//! in front, so that a reader can resolve I, you and we; resolved dates follow in square brackets. Cues for which the
//! words give no evidence are empty (decision 9). A long turn is never part of another turn's unit: it makes units of
//! its own, whose parts are its passages.

use std::{rc::Rc, sync::LazyLock};

use regex::Regex;

use super::{
    DraftPart, DraftUnit, TurnLanguages,
    passages::{PASSAGE_BYTES, Passage, WHOLE_BYTES, cut_passages},
};
use crate::language::{
    attachment_text::{attachment_phrase, attachment_text},
    multilingual::is_asking_mark,
    person_names::NameText,
    sentences::{has_content, is_question, iter_content_words, sentences},
    tense::{Tense, tense},
    times::{TimeMention, count_times_in, find_times_in, render_interval},
    vague_times::has_vague_time,
};
use types::model::{
    Attachment, Cues, Interval, Language, SpeakerKind, TextFeatures, TextRange, WindowTurn, canonical_name,
};

/// The maximum number of passages in a unit; the passages of a longer turn are divided among several units.
const MAX_PASSAGES: usize = 256;

/// A turn, only its questions, or some passages of it, as it enters a unit.
pub(super) struct Utterance<'w> {
    pub(super) window_turn: &'w WindowTurn,
    language: Language,
    /// The words, with single spaces between them; for passages, the text as it is.
    pub(super) words: String,
    /// If the turn is long, its words and attachments as one text, with its passages.
    long: Option<(Rc<str>, Vec<Passage>)>,
    /// If the turn makes several units, the number of this one and the number of units.
    number: Option<(usize, usize)>,
    /// The words with their own line breaks, if the whole turn is taken and has several lines.
    lines: Option<String>,
    /// What was shared in the turn, if the whole turn is taken.
    pub(super) shared: Vec<String>,
    /// The speaker that it replies to, by the platform's `reply_to`.
    pub(super) replies_to: Option<&'w str>,
    /// Whether it answers the utterance before it.
    pub(super) answers: bool,
}

impl<'w> Utterance<'w> {
    /// The whole turn.
    pub(super) fn whole(window_turn: &'w WindowTurn, languages: &TurnLanguages) -> Self {
        Self {
            lines: multiline_text(&window_turn.turn.text),
            shared: attachment_texts(window_turn).collect(),
            ..Self::of(window_turn, languages, one_line(&window_turn.turn.text))
        }
    }

    /// A whole short turn as one utterance, or a long turn as several, each with as many passages as a unit holds.
    pub(super) fn all(window_turn: &'w WindowTurn, languages: &TurnLanguages) -> Vec<Self> {
        if !makes_own_units(window_turn) {
            return vec![Self::whole(window_turn, languages)];
        }
        let said = std::iter::once(window_turn.turn.text.clone());
        let text: Rc<str> = said.chain(attachment_texts(window_turn)).collect::<Vec<_>>().join("\n").into();
        let passages = cut_passages(&text);
        let units = passages.len().div_ceil(MAX_PASSAGES);
        let of_unit = |(number, some): (usize, &[Passage])| {
            let start = some.first().map_or(0, |first| first.range.start);
            let end = some.last().map_or(start, |last| last.range.end);
            Self {
                long: Some((Rc::clone(&text), some.to_vec())),
                number: (units > 1).then_some((number, units)),
                ..Self::of(window_turn, languages, text.get(start..end).unwrap_or_default().trim().to_owned())
            }
        };
        (1..).zip(passages.chunks(MAX_PASSAGES)).map(of_unit).collect()
    }

    /// Only the turn's questions.
    pub(super) fn questions(window_turn: &'w WindowTurn, languages: &TurnLanguages) -> Self {
        let (asked, _) = split_questions(&one_line(&window_turn.turn.text));
        Self::of(window_turn, languages, asked)
    }

    /// These words of a turn, and nothing else from it.
    fn of(window_turn: &'w WindowTurn, languages: &TurnLanguages, words: String) -> Self {
        Self {
            window_turn,
            language: languages.of_turn(window_turn),
            words,
            long: None,
            number: None,
            lines: None,
            shared: Vec::new(),
            replies_to: None,
            answers: false,
        }
    }

    fn speaker(&self) -> &'w str {
        &self.window_turn.turn.speaker
    }

    /// The unit's part for a whole turn, or for its questions.
    pub(super) fn part(&self) -> DraftPart {
        let text = match &self.lines {
            Some(lines) => self.with_captions(lines, "\n"),
            None => self.text(),
        };
        self.part_of(text, None, marks(&self.words, self.language))
    }

    /// The unit's parts for it: one for each passage.
    fn parts(&self) -> Vec<DraftPart> {
        let Some((said, passages)) = &self.long else { return vec![self.part()] };
        // A turn is at most a few mebibytes long.
        let range = |start: usize, end: usize| {
            let [start, end, total] = [start, end, said.len()].map(|at| at as u32);
            Some(TextRange { start, end, total })
        };
        let passage = |passage: &Passage| {
            let text = passage.of(said);
            let marks = marks(&one_line(&text), self.language);
            self.part_of(text, range(passage.range.start, passage.range.end), marks)
        };
        passages.iter().map(passage).collect()
    }

    fn part_of(&self, text: String, range: Option<TextRange>, marks: TextFeatures) -> DraftPart {
        DraftPart {
            turn: self.window_turn.turn.turn.clone(),
            ordinal: self.window_turn.ordinal,
            speaker: self.speaker().to_owned(),
            kind: self.window_turn.turn.speaker_kind(),
            said_at: self.window_turn.turn.time,
            text,
            range,
            marks,
        }
    }

    /// The words on one line, with captions.
    fn text(&self) -> String {
        self.with_captions(&self.words, " ")
    }

    fn with_captions(&self, words: &str, gap: &str) -> String {
        let captions = self.shared.iter().map(String::as_str);
        std::iter::once(words).filter(|w| !w.is_empty()).chain(captions).collect::<Vec<_>>().join(gap)
    }
}

/// One unit of a turn, of a question and its answer, or of consecutive turns. `people` are the
/// window's speakers. `None` without an utterance.
pub(super) fn compose(utterances: &[Utterance<'_>], people: &[String]) -> Option<DraftUnit> {
    let (first, last) = (utterances.first()?, utterances.last()?);
    let mut participants = Vec::new();
    let mut places = Vec::new();
    let mut restatement = String::new();
    let mut times = Vec::new();
    for (i, utterance) in utterances.iter().enumerate() {
        let text = utterance.text();
        let partner = utterances.iter().find(|p| p.speaker() != utterance.speaker()).map(|p| p.speaker().to_owned());
        let names = NameText::of(&text);
        let to = partner.or_else(|| addressee(utterance, &names, people));
        let others: Vec<String> = people.iter().filter(|p| *p != utterance.speaker()).cloned().collect();
        let friends = names.companions(people);
        let known: Vec<String> = people.iter().chain(&friends).cloned().collect();
        // In German, every noun has a capital: "in Ruhe" is not a place.
        if utterance.language != Language::De {
            places.extend(names.locations(&known));
        }
        participants.push(utterance.speaker().to_owned());
        participants.extend(to.clone());
        participants.extend(names.mentions(&others));
        participants.extend(friends);
        let found = find_times_in(&utterance.words, utterance.language, Some(utterance.window_turn.turn.time));
        if i > 0 {
            restatement.push(' ');
        }
        restatement.push_str(&restate(
            utterance,
            to.as_deref().filter(|_| !utterance.answers),
            utterance.answers,
            &found,
        ));
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
        said_at: last.window_turn.turn.time,
        sources: utterances.iter().map(|p| p.window_turn.turn.turn.clone()).collect(),
        ordinal: first.window_turn.ordinal,
        before: None,
        parts: utterances.iter().flat_map(Utterance::parts).collect(),
        restated: false,
    })
}

/// Quotation marks other than the English ones.
const OTHER_QUOTES: [(char, char); 6] = [('「', '」'), ('『', '』'), ('《', '》'), ('„', '“'), ('«', '»'), ('»', '«')];

/// Times, questions and quotes in a turn's words.
fn marks(words: &str, language: Language) -> TextFeatures {
    let quoted = |open: char, close: char| words.split_once(open).is_some_and(|(_, rest)| rest.contains(close));
    TextFeatures {
        times: u8::try_from(count_times_in(words, language)).unwrap_or(u8::MAX),
        asks: is_question(words) || words.trim_end().ends_with(is_asking_mark),
        quotes: quoted('"', '"')
            || quoted('\u{201c}', '\u{201d}')
            || OTHER_QUOTES.iter().any(|(open, close)| quoted(*open, *close)),
        language,
    }
}

/// Whether a text has at least `least` content words, not counting the names of `people`.
pub(super) fn is_informative(text: &str, people: &[String], least: u32) -> bool {
    let least = usize::try_from(least).unwrap_or(usize::MAX);
    let name = |word: &str| {
        people
            .iter()
            .flat_map(|p| p.split_whitespace())
            .map(str::to_lowercase)
            .any(|n| n == word || (word.chars().count() >= 3 && n.starts_with(word)))
    };
    iter_content_words(text).filter(|w| !name(w)).take(least).count() >= least
}

/// The questions of a text, and the rest of it.
pub(super) fn split_questions(text: &str) -> (String, String) {
    if !text.contains(is_asking_mark) {
        return (String::new(), text.to_owned());
    }
    let (mut asked, mut rest) = (Vec::new(), Vec::new());
    for sentence in sentences(text).into_iter().filter_map(|r| text.get(r)) {
        if is_question(sentence) { asked.push(sentence) } else { rest.push(sentence) }
    }
    (asked.join(" "), rest.join(" "))
}

/// A text of several lines with its line breaks, without white space at the ends of lines; None for one line.
fn multiline_text(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.trim().lines().map(str::trim_end).collect();
    (lines.len() > 1).then(|| lines.join("\n"))
}

/// The words of a text with single spaces between them.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a turn makes units of its own, by passages.
pub(super) fn makes_own_units(turn: &WindowTurn) -> bool {
    let whole_bytes = match turn.turn.speaker_kind() {
        None | Some(SpeakerKind::Person) => WHOLE_BYTES,
        Some(SpeakerKind::Assistant | SpeakerKind::Tool | SpeakerKind::Bot) => PASSAGE_BYTES,
    };
    turn.turn.text.trim().len() + attachment_texts(turn).map(|thing| thing.len() + 1).sum::<usize>() > whole_bytes
}

/// What was shared in a turn, as a part's text shows it.
fn attachment_texts(turn: &WindowTurn) -> impl Iterator<Item = String> {
    turn.turn.attachments.iter().filter_map(caption)
}

/// An attachment's caption, in the form of a part's text.
pub fn caption(attachment: &Attachment) -> Option<String> {
    let text = attachment.caption.as_deref().map(one_line).filter(|c| !c.is_empty())?;
    Some(attachment_text(attachment.kind.as_deref().map(one_line).as_deref(), &text))
}

/// Whom a turn addresses: the person it names, the speaker it replies to, or, if it says "you" and only two people are
/// present, the other one.
fn addressee(utterance: &Utterance<'_>, names: &NameText<'_>, people: &[String]) -> Option<String> {
    let others: Vec<String> = people.iter().filter(|p| *p != utterance.speaker()).cloned().collect();
    names.addressee(&others).or_else(|| utterance.replies_to.map(str::to_owned)).or_else(|| match others.as_slice() {
        [other] if says_you(&utterance.words) => Some(other.clone()),
        _ => None,
    })
}

fn says_you(words: &str) -> bool {
    YOU.as_ref().is_some_and(|r| r.is_match(words))
}

/// `None` only if the pattern were malformed, which a test rules out.
static YOU: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)(?-u:\b)(?:you|your|yours|yourself|ya|let['’]?s|we both|both of us|the two of us|us both)(?-u:\b)")
        .ok()
});

/// `A said to B: "…" and shared a photo: …`, with resolved dates in square brackets.
fn restate(utterance: &Utterance<'_>, to: Option<&str>, answers: bool, times: &[TimeMention]) -> String {
    let speaker = utterance.speaker();
    let shared = utterance.shared.iter().filter_map(|thing| attachment_phrase(thing)).collect::<Vec<_>>().join(" and ");
    let words = with_dates(&utterance.words, times);
    let mut said = match (answers, is_question(&utterance.words), to) {
        (true, ..) => format!("{speaker} answered"),
        (_, true, Some(to)) => format!("{speaker} asked {to}"),
        (_, true, None) => format!("{speaker} asked"),
        (_, false, Some(to)) => format!("{speaker} said to {to}"),
        (_, false, None) => format!("{speaker} said"),
    };
    if let Some((number, units)) = utterance.number {
        said.push_str(&format!(" ({number} of {units})"));
    }
    match (words.is_empty(), shared.is_empty()) {
        (false, true) => format!("{said}: \"{words}\""),
        (false, false) => format!("{said}: \"{words}\" and shared {shared}"),
        (true, _) if answers => format!("{speaker} answered and shared {shared}"),
        (true, _) => format!("{speaker} shared {shared}"),
    }
}

/// The words, with the date of every relative time in square brackets.
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

/// The event time by decision 9: the first time in the last utterance that has one; otherwise the moment of speaking,
/// for questions, wishes, plans and the present; empty for a vague time and for an undated past.
fn event_time(last: &Utterance<'_>, times: &[Vec<TimeMention>]) -> Option<Interval> {
    if let Some(mention) = times.iter().rev().find_map(|found| found.first()) {
        return Some(mention.interval);
    }
    let now = Some(Interval::at(last.window_turn.turn.time));
    let words = last.words.as_str();
    if has_vague_time(words) {
        return None;
    }
    let (_, statements) = split_questions(words);
    let (mut past, mut present) = (0, 0);
    for sentence in sentences(&statements).into_iter().filter_map(|r| statements.get(r)).filter(|s| has_content(s, 1)) {
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
    fn questions_are_separated_from_the_rest() {
        let check = |text: &str, asked: &str, rest: &str| {
            assert_eq!(split_questions(text), (asked.to_owned(), rest.to_owned()), "{text}");
        };
        check("I ran. And you?", "And you?", "I ran.");
        check("Why? Because.", "Why?", "Because.");
        check("", "", "");
    }

    #[test]
    fn names_of_people_present_are_not_content() {
        let people = ["Melanie".to_owned()];
        assert!(!is_informative("Hey Mel!", &people, 1));
        assert!(is_informative("Hey Mel, pottery!", &people, 1));
        assert!(!is_informative("Hey Mel, pottery!", &people, 2));
    }
}
