//! A pattern of words with gaps, and its match in the tokens of a sentence.
//!
//! In: a line of a table, such as `i @adv* prefer <object>`; tokens. Out: what stands in the gaps. Elements stand
//! between spaces: words between `|`, `@NAME` for those of a macro, with `?` where they may be missing, `*` where they
//! may be repeated, `+` where the object begins with them, `-` where they are what is replaced, and `=` where they
//! belong to the subject.
//! Gaps: `<object>`, `<old>` (what is replaced) and `<any>` take as few tokens as they can, but at
//! least one, and up to the end if they are last; `<thing>` takes none to three words, `<name>` one to four capitals,
//! `<number>` a number. `<any>` and `<thing>` never hold a mark other than a hyphen's or a quote's.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use super::text_tokens::{TextToken, phrase_words};
use types::model::Language;

/// A gap of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    Object,
    Old,
    Any,
    Thing,
    Name,
    Number,
}

/// What words of a pattern are besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WordRole {
    None,
    /// The object begins with them.
    Object,
    /// They are what is replaced.
    Old,
    /// They belong to the subject.
    Subject,
}

#[derive(Debug)]
enum PatternElement {
    Words { phrases: Vec<Vec<String>>, optional: bool, repeated: bool, role: WordRole },
    Gap(Gap),
}

/// A pattern of words with gaps.
#[derive(Debug)]
pub(super) struct PhrasePattern {
    elements: Vec<PatternElement>,
}

/// What a pattern found, as ranges of tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PatternMatch {
    pub object: Option<Range<usize>>,
    pub old: Option<Range<usize>>,
    pub subject: Option<Range<usize>>,
    /// Where the object begins with words of the pattern.
    opened: Option<usize>,
    /// Where the object is a name or a number: it ends where it does.
    pub is_closed: bool,
    /// The tokens of the pattern's own words; a quotation may not hold them.
    pub words: Vec<usize>,
    /// The token after the match.
    pub end: usize,
}

/// The most words of `<thing>`, `<name>` and a repeated element.
const MAX_THING: usize = 3;
const MAX_NAME: usize = 4;
const MAX_REPEATED: usize = 3;
/// The most tokens of `<any>`.
const MAX_ANY: usize = 24;

impl PhrasePattern {
    /// Reads a pattern; `None` if it names a macro or a gap that there is not, or begins with a gap.
    pub(super) fn read(text: &str, macros: &HashMap<&str, &str>, language: Language) -> Option<Self> {
        let mut elements = Vec::new();
        for element in text.split(' ').filter(|element| !element.is_empty()) {
            if let Some(gap) = element.strip_prefix('<') {
                elements.push(PatternElement::Gap(match gap.strip_suffix('>')? {
                    "object" => Gap::Object,
                    "old" => Gap::Old,
                    "any" => Gap::Any,
                    "thing" => Gap::Thing,
                    "name" => Gap::Name,
                    "number" => Gap::Number,
                    _ => return None,
                }));
                continue;
            }
            let suffix =
                element.chars().next_back().filter(|c| matches!(c, '?' | '*' | '+' | '-' | '=') && element.len() > 1);
            let body = suffix.map_or(element, |c| element.trim_end_matches(c));
            let (optional, repeated) = (matches!(suffix, Some('?' | '*')), suffix == Some('*'));
            let role = match suffix {
                Some('+') => WordRole::Object,
                Some('-') => WordRole::Old,
                Some('=') => WordRole::Subject,
                _ => WordRole::None,
            };
            let mut phrases = Vec::new();
            for phrase in body.split('|') {
                let words = match phrase.strip_prefix('@') {
                    Some(name) => macros.get(name)?,
                    None => phrase,
                };
                phrases.extend(words.split('|').map(|phrase| phrase_words(phrase, language)));
            }
            phrases.sort_by_key(|words| std::cmp::Reverse(words.len()));
            elements.push(PatternElement::Words { phrases, optional, repeated, role });
        }
        let begins = matches!(elements.first(), Some(PatternElement::Words { .. }));
        begins.then_some(Self { elements })
    }

    /// The words with which a match may begin.
    pub(super) fn first_words(&self) -> BTreeSet<String> {
        let mut first = BTreeSet::new();
        for element in &self.elements {
            let PatternElement::Words { phrases, optional, .. } = element else { break };
            first.extend(phrases.iter().filter_map(|words| words.first().cloned()));
            if !optional {
                break;
            }
        }
        first
    }

    /// The match that begins at a token, before token `end`.
    pub(super) fn find(&self, tokens: &[TextToken], at: usize, end: usize) -> Option<PatternMatch> {
        matched(&self.elements, tokens.get(..end)?, at, PatternMatch::default())
    }
}

fn matched(elements: &[PatternElement], tokens: &[TextToken], at: usize, so_far: PatternMatch) -> Option<PatternMatch> {
    let Some((element, rest)) = elements.split_first() else {
        let opened = so_far.opened.map(|start| start..so_far.object.as_ref().map_or(at, |object| object.end));
        let object = opened.or_else(|| so_far.object.clone());
        return Some(PatternMatch { object, end: at, ..so_far });
    };
    match element {
        PatternElement::Words { phrases, optional, repeated, role } => {
            let most = if *repeated { MAX_REPEATED } else { 1 };
            let opens = || (*role == WordRole::Object).then_some(at);
            let so_far = PatternMatch { opened: so_far.opened.or_else(opens), ..so_far };
            words_matched((phrases, *role), most, (rest, tokens), at, &so_far)
                .or_else(|| optional.then(|| matched(rest, tokens, at, so_far.clone()))?)
        }
        PatternElement::Gap(gap) => gap_matched(*gap, rest, tokens, at, &so_far),
    }
}

fn words_matched(
    (phrases, role): (&[Vec<String>], WordRole),
    most: usize,
    (rest, tokens): (&[PatternElement], &[TextToken]),
    at: usize,
    so_far: &PatternMatch,
) -> Option<PatternMatch> {
    if most == 0 {
        return None;
    }
    phrases.iter().filter(|words| begins_with(tokens, at, words)).find_map(|words| {
        let mut with = so_far.clone();
        with.words.extend(at..at + words.len());
        let after = at + words.len();
        match role {
            WordRole::Subject => with.subject = Some(with.subject.map_or(at, |subject| subject.start)..after),
            WordRole::Old => with.old = Some(at..after),
            WordRole::None | WordRole::Object => {}
        }
        words_matched((phrases, role), most - 1, (rest, tokens), after, &with)
            .or_else(|| matched(rest, tokens, after, with))
    })
}

fn gap_matched(
    gap: Gap,
    rest: &[PatternElement],
    tokens: &[TextToken],
    at: usize,
    so_far: &PatternMatch,
) -> Option<PatternMatch> {
    let left = tokens.len().saturating_sub(at);
    let plain = || tokens.iter().skip(at).take_while(|token| !token.is_mark).count();
    let (least, most) = match gap {
        Gap::Object | Gap::Old => (1, left),
        Gap::Any => (1, plain().min(MAX_ANY)),
        Gap::Thing => (0, plain().min(MAX_THING)),
        Gap::Name => {
            let capitals = tokens.iter().skip(at).take_while(|token| token.is_capital).count().min(MAX_NAME);
            (1, capitals)
        }
        Gap::Number => {
            (1, usize::from(tokens.get(at).is_some_and(|token| token.lower.contains(|c: char| c.is_ascii_digit()))))
        }
    };
    let take = |count: usize| {
        let mut with = so_far.clone();
        let range = at..at + count;
        match gap {
            Gap::Object => with.object = Some(range),
            Gap::Name | Gap::Number => (with.object, with.is_closed) = (Some(range), true),
            Gap::Old => with.old = Some(range),
            Gap::Thing => with.subject = Some(range).filter(|range| !range.is_empty()),
            Gap::Any => {}
        }
        matched(rest, tokens, at + count, with)
    };
    // A name is as long as it can be, and so is a gap at the end.
    if gap == Gap::Name || rest.is_empty() {
        return (least..=most).rev().find_map(take);
    }
    (least..=most).find_map(take)
}

/// Whether these words stand at a place.
pub(super) fn begins_with(tokens: &[TextToken], at: usize, words: &[String]) -> bool {
    let here = tokens.get(at..at + words.len());
    here.is_some_and(|here| here.iter().zip(words).all(|(token, word)| token.lower == *word))
}

#[cfg(test)]
mod tests {
    use super::{super::text_tokens::text_tokens, *};

    #[test]
    fn gaps_take_what_the_words_around_them_leave() {
        let macros = HashMap::from([("adv", "really|just")]);
        let check = |pattern: &str, text: &str, object: Option<&str>, old: Option<&str>| {
            let pattern = PhrasePattern::read(pattern, &macros, Language::En).expect("a pattern");
            let tokens = text_tokens(text, Language::En);
            let found = pattern.find(&tokens, 0, tokens.len());
            let words = |range: Range<usize>| {
                let (first, last) = (&tokens[range.start], &tokens[range.end - 1]);
                text[first.range.start..last.range.end].to_owned()
            };
            let found_words = found.map(|found| (found.object.map(words), found.old.map(words))).unwrap_or_default();
            assert_eq!(found_words, (object.map(str::to_owned), old.map(str::to_owned)), "{text}");
        };
        check("i @adv* prefer <object>", "I really just prefer tea", Some("tea"), None);
        check("i @adv* prefer <object>", "I would prefer tea", None, None);
        check("use <object> instead_of <old>", "use tabs instead of spaces", Some("tabs"), Some("spaces"));
        check("i'm no_longer a? vegan|baker-", "I'm no longer a baker", None, Some("baker"));
        check("use|take+ <object>", "use tabs now", Some("use tabs now"), None);
        check("i have two|a+ cats", "I have two cats", Some("two cats"), None);
        check("my name is <name>", "My name is Ann Lee and", Some("Ann Lee"), None);
        check("i'm <number> years?", "I'm 30 years", Some("30"), None);
        assert!(PhrasePattern::read("i <nothing>", &macros, Language::En).is_none());
        assert!(PhrasePattern::read("<object> is", &macros, Language::En).is_none());
    }
}
