//! Whether a context delivers the turns that hold a question's evidence (decision 37).
//!
//! In: the units that a context shows, its text, and what a turn requires. Out: whether the turn is delivered. A turn
//! is delivered when a unit names it as a source, and both that unit's quotes from the turn and the context's text
//! contain every caption of the turn and every sentence with a content word. A unit that a language model restated
//! quotes nothing; it delivers the turns that it names if the context contains its restatement. Texts are compared
//! without regard to case, white space and resolved dates in square brackets.

use memory::language::{
    attachment_text::attachment_phrase,
    sentences::{has_content, sentences},
};
use types::model::EvidenceUnit;

/// The text of a turn that a context must contain to deliver the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequiredText(Vec<String>);

impl RequiredText {
    /// The sentences of a turn that have a content word, and its captions.
    pub(crate) fn of(text: &str, captions: &[&str]) -> Self {
        let line = one_line(text);
        let said = sentences(&line).into_iter().filter_map(|r| line.get(r)).filter(|s| has_content(s, 1));
        Self(said.chain(captions.iter().copied()).map(normalised).filter(|s| !s.is_empty()).collect())
    }

    /// Whether this text contains all of it.
    fn is_in(&self, words: &NormalisedText) -> bool {
        self.0.iter().all(|s| words.0.contains(s.as_str()))
    }
}

/// A normalised text: lower case, single spaces, no resolved dates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NormalisedText(String);

impl NormalisedText {
    /// Normalises a text.
    pub(crate) fn of(text: &str) -> Self {
        Self(normalised(text))
    }

    fn holds(&self, words: &str) -> bool {
        self.0.contains(&normalised(words))
    }
}

/// What a context shows of one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownUnit<'a> {
    /// The turns that it names as sources.
    pub(crate) sources: Vec<&'a str>,
    /// Its quotes: turn and text.
    pub(crate) quoted: Vec<(&'a str, &'a str)>,
    /// Its restatement by a language model, which quotes no turn.
    pub(crate) restated: Option<&'a str>,
}

impl<'a> From<&'a EvidenceUnit> for ShownUnit<'a> {
    fn from(unit: &'a EvidenceUnit) -> Self {
        let quoted = unit.excerpts.iter().map(|e| (e.turn.as_str(), e.text.as_str())).collect();
        let restated = match unit.excerpts.as_slice() {
            [only] if only.text == unit.restatement => Some(unit.restatement.as_str()),
            _ => None,
        };
        Self { sources: unit.sources.iter().map(String::as_str).collect(), quoted, restated }
    }
}

/// Whether one of these units delivers the turn in the context that was made from them.
pub(crate) fn is_delivered(
    turn: &str,
    required: &RequiredText,
    units: &[ShownUnit<'_>],
    context: &NormalisedText,
) -> bool {
    let named = || units.iter().filter(|u| u.sources.contains(&turn));
    if named().filter_map(|u| u.restated).any(|words| context.holds(words)) {
        return true;
    }
    let quotes = named().any(|u| {
        let quoted: Vec<&str> = u.quoted.iter().filter(|(t, _)| *t == turn).map(|(_, text)| *text).collect();
        !quoted.is_empty() && required.is_in(&NormalisedText::of(&quoted.join(" ")))
    });
    quotes && required.is_in(context)
}

fn normalised(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        match after.split_once(']') {
            // Shared media are also in brackets, but begin with a name and a colon, so they stay.
            Some((inside, tail))
                if !inside.contains(['[', '\n']) && attachment_phrase(&format!("[{inside}]")).is_none() =>
            {
                out.truncate(out.trim_end().len());
                rest = tail;
            }
            _ => {
                out.push('[');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    one_line(&out).to_lowercase()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, captions: &[&str], quoted: &[(&str, &str)], expected: bool) {
        let shown = [ShownUnit { sources: vec!["t1"], quoted: quoted.to_vec(), restated: None }];
        let required = RequiredText::of(text, captions);
        let lines: Vec<String> = quoted.iter().map(|(_, words)| format!("[13:56] Ada: {words}\n")).collect();
        let context = NormalisedText::of(&lines.concat());
        assert_eq!(is_delivered("t1", &required, &shown, &context), expected, "{text} by {quoted:?}");
        assert!(!is_delivered("t2", &required, &shown, &context), "another turn is not delivered");
        let empty = NormalisedText::of("## 8 May 2023\n");
        assert!(!is_delivered("t1", &required, &shown, &empty), "what the context does not hold is not delivered");
    }

    #[test]
    fn a_turn_is_delivered_when_a_unit_that_names_it_quotes_its_informative_sentences() {
        let said = "Oh wow! I bought a red kayak yesterday. It leaks.";
        check(said, &[], &[("t1", "Oh wow! I bought a red kayak yesterday. It leaks.")], true);
        check(said, &[], &[("t1", "i bought  a red KAYAK\nyesterday [7 May 2023]. It leaks.")], true);
        check(said, &[], &[("t1", "I bought a red kayak [the one] yesterday. It leaks.")], true);
        check(said, &[], &[("t1", "I bought a red kayak yesterday.")], false);
        check(said, &[], &[("t1", "I bought a red kayak yesterday."), ("t1", "It leaks.")], true);
        check(said, &[], &[("t0", said)], false);
        check(said, &[], &[], false);
        check("Wait [what? A kayak sank.", &[], &[("t1", "Wait [what? A kayak sank."), ("t1", "[14:02] Yes")], true);
        check("Look at this", &["a photo of a boat"], &[("t1", "Look at this")], false);
        check("Look at this", &["a photo of a boat"], &[("t1", "Look at this [photo: a photo of a boat]")], true);
    }

    #[test]
    fn a_restatement_delivers_the_turns_that_it_names() {
        let said = "Ada bought a red kayak on 7 May 2023.";
        let shown = [ShownUnit { sources: vec!["t1", "t2"], quoted: vec![("t1", said)], restated: Some(said) }];
        let required = RequiredText::of("I bought a red kayak yesterday.", &[]);
        let context = NormalisedText::of(&format!("## 8 May 2023\n[13:56] {said} (7 May 2023)\n"));
        assert!(is_delivered("t1", &required, &shown, &context) && is_delivered("t2", &required, &shown, &context));
        assert!(!is_delivered("t3", &required, &shown, &context));
        assert!(!is_delivered("t1", &required, &shown, &NormalisedText::of("[13:56] Ada bought a kayak.")));
    }
}
