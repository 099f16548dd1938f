//! Turns texts into the stems and numbers by which facts are compared.
//!
//! In: English text. Out: numbered stems without function words, number words and months; and numbers and days in one
//! form each, so that `1,200` is `1200`, `two` is `2` and `March 15th` is `3-15`. Written only for the metric: it must
//! not change together with the memory's own handling of words, which it measures.

use std::collections::{BTreeSet, HashMap};

use tantivy::tokenizer::{Language, RawTokenizer, Stemmer, TextAnalyzer};

const FUNCTION_WORDS: &str = "a about above after again all also am an and any are as at be because been before being \
    below between both but by can could did do does doing don down during each few for from further had has have \
    having he her here hers him his how i if in into is it its just me more most my no nor not now of off on once \
    only or other our ours out over own same she should so some such than that the their theirs them then there \
    these they this those through to too under until up us very was we were what when where which while who whom \
    why will with would you your yours s t re ve ll d m im ive id lets let per vs via etc eg ie";
const NUMBER_WORDS: [&str; 13] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const MONTH_WORDS: &str = "january february march april may june july august september october november december jan \
    feb mar apr jun jul aug sep sept oct nov dec";

/// Numbers the stems of one conversation.
pub(super) struct StemNumbers {
    stemmer: TextAnalyzer,
    /// The number of each stem.
    numbers: HashMap<String, usize>,
    /// The stem's number for each word; `None` for words that do not count.
    of_word: HashMap<String, Option<usize>>,
}

impl StemNumbers {
    /// No stems yet.
    pub(super) fn new() -> Self {
        let stemmer = TextAnalyzer::builder(RawTokenizer::default()).filter(Stemmer::new(Language::English)).build();
        let left_out = FUNCTION_WORDS.split_whitespace().chain(NUMBER_WORDS).chain(MONTH_WORDS.split_whitespace());
        let of_word = left_out.map(|word| (word.to_owned(), None)).collect();
        Self { stemmer, numbers: HashMap::new(), of_word }
    }

    /// The stems of a text.
    pub(super) fn of(&mut self, text: &str) -> BTreeSet<usize> {
        words(text).into_iter().filter_map(|word| self.stem(word)).collect()
    }

    fn stem(&mut self, word: String) -> Option<usize> {
        if let Some(known) = self.of_word.get(&word) {
            return *known;
        }
        let mut stem = word.clone();
        let mut stream = self.stemmer.token_stream(&word);
        if let Some(token) = stream.next() {
            stem.clone_from(&token.text);
        }
        drop(stream);
        let next = self.numbers.len();
        let number = Some(*self.numbers.entry(stem).or_insert(next));
        self.of_word.insert(word, number);
        number
    }
}

/// The words that consist of letters, in lower case, without apostrophes and without the `'s` of a genitive.
fn words(text: &str) -> Vec<String> {
    let lower = lower(text);
    let bytes = lower.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let from = at;
        at += run(bytes, at, u8::is_ascii_lowercase);
        if at == from {
            at += 1;
            continue;
        }
        if bytes.get(at) == Some(&b'\'') {
            let rest = run(bytes, at + 1, u8::is_ascii_lowercase);
            at += if rest > 0 { rest + 1 } else { 0 };
        }
        let word = lower.get(from..at).unwrap_or_default().replace("'s", "").replace('\'', "");
        if !word.is_empty() {
            found.push(word);
        }
    }
    found
}

/// The numbers and days of a text, each in one form.
pub(super) fn numbers(text: &str) -> BTreeSet<String> {
    let lower = lower(text);
    let bytes = lower.as_bytes();
    let mut found = BTreeSet::new();
    let mut at = 0;
    while at < bytes.len() {
        match day_at(&lower, at) {
            Some((day, end)) => {
                found.insert(day);
                at = end;
            }
            None => at += 1,
        }
    }
    at = 0;
    while at < bytes.len() {
        let (letters, digits) = (run(bytes, at, u8::is_ascii_lowercase), run(bytes, at, u8::is_ascii_digit));
        if letters > 0 {
            let word = lower.get(at..at + letters).unwrap_or_default();
            let number = NUMBER_WORDS.iter().position(|w| *w == word).filter(|n| *n != 1);
            found.extend(number.map(|n| n.to_string()));
        } else if digits > 0 {
            let end = number_end(bytes, at + digits);
            found.insert(plain(lower.get(at..end).unwrap_or_default()));
            at = end;
            continue;
        }
        at += letters.max(1);
    }
    found
}

/// `1,200` as `1200`, `2.50` as `2.5`; a text that is not a number, such as `12:30` or `1.2.3`, stays as it is.
fn plain(number: &str) -> String {
    let without = number.replace(',', "");
    without.parse::<f64>().map_or(without, |value| value.to_string())
}

fn number_end(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b'.' | b',' | b':' | b'/')) {
        let digits = run(bytes, at + 1, u8::is_ascii_digit);
        if digits == 0 {
            break;
        }
        at += 1 + digits;
    }
    at
}

/// The day that is named at this position, as `3-15`, and where its name ends.
fn day_at(text: &str, at: usize) -> Option<(String, usize)> {
    if !begins_word(text, at) {
        return None;
    }
    month_and_day(text, at).or_else(|| day_and_month(text, at)).or_else(|| written_date(text, at))
}

/// `march 15th`, `mar. 15`.
fn month_and_day(text: &str, at: usize) -> Option<(String, usize)> {
    let bytes = text.as_bytes();
    let (month, mut end) = month(bytes, at)?;
    if bytes.get(end) == Some(&b'.') {
        end += 1;
    }
    if bytes.get(end) != Some(&b' ') {
        return None;
    }
    let (day, end) = day(bytes, end + 1)?;
    ends_word(text, end).then(|| (format!("{month}-{day}"), end))
}

/// `15 march`, `15th of march`.
fn day_and_month(text: &str, at: usize) -> Option<(String, usize)> {
    let bytes = text.as_bytes();
    let (day, end) = day(bytes, at)?;
    if bytes.get(end) != Some(&b' ') {
        return None;
    }
    let after_of = if bytes.get(end + 1..end + 4) == Some(&b"of "[..]) { end + 4 } else { end + 1 };
    let (month, end) = month(bytes, after_of)?;
    ends_word(text, end).then(|| (format!("{month}-{day}"), end))
}

/// `2024-03-15`.
fn written_date(text: &str, at: usize) -> Option<(String, usize)> {
    let bytes = text.as_bytes();
    let number = |from: usize, digits: usize| -> Option<u32> {
        let part = bytes.get(from..from + digits)?;
        part.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(part).ok()?.parse().ok())?
    };
    number(at, 4)?;
    let (month, day, end) = (number(at + 5, 2)?, number(at + 8, 2)?, at + 10);
    let dashes = bytes.get(at + 4) == Some(&b'-') && bytes.get(at + 7) == Some(&b'-');
    (dashes && ends_word(text, end)).then(|| (format!("{month}-{day}"), end))
}

/// The month with which a word begins, and where the word ends.
fn month(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let first = bytes.get(at..at + 3)?;
    let month = MONTHS.iter().position(|m| m.as_bytes() == first)? + 1;
    Some((month, at + run(bytes, at, u8::is_ascii_lowercase)))
}

/// One or two digits, and where they end, with `st`, `nd`, `rd` or `th`.
fn day(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let digits = run(bytes, at, u8::is_ascii_digit);
    if !matches!(digits, 1 | 2) {
        return None;
    }
    let end = at + digits;
    let day = std::str::from_utf8(bytes.get(at..end)?).ok()?.parse().ok()?;
    let suffix = bytes.get(end..end + 2).is_some_and(|s| [&b"st"[..], b"nd", b"rd", b"th"].contains(&s));
    Some((day, if suffix { end + 2 } else { end }))
}

/// How many bytes of a kind follow each other from this position.
fn run(bytes: &[u8], at: usize, is: impl Fn(&u8) -> bool) -> usize {
    bytes.get(at..).unwrap_or_default().iter().take_while(|b| is(b)).count()
}

/// Whether no letter or digit comes directly before this position; false inside a character.
fn begins_word(text: &str, at: usize) -> bool {
    text.get(..at).is_some_and(|before| !before.chars().next_back().is_some_and(is_of_word))
}

fn ends_word(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|after| !after.chars().next().is_some_and(is_of_word))
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn lower(text: &str) -> String {
    text.replace('\u{2019}', "'").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lose_genitives_and_apostrophes() {
        assert_eq!(
            words("The user’s plan isn't v2 — O'Neil's, '90s"),
            ["the", "user", "plan", "isnt", "v", "oneil", "s", "s"]
        );
    }

    #[test]
    fn stems_leave_out_function_words_numbers_and_months() {
        let mut stems = StemNumbers::new();
        assert_eq!(stems.of("What are the two plans for May?").len(), 1);
        assert_eq!(stems.of("planning the plans"), stems.of("planned"));
    }

    #[test]
    fn numbers_and_days_have_one_form() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(numbers(text).iter().map(String::as_str).collect::<Vec<_>>(), expected, "{text}");
        };
        check("1,200 rows, 2.50 EUR, v3", &["1200", "2.5", "3"]);
        check("March 15th, 2024", &["15", "2024", "3-15"]);
        check("the 1st of Sept and Jun. 7", &["1", "6-7", "7", "9-1"]);
        check("2024-03-05 at 12:30", &["12:30", "2024", "3", "3-5", "5"]);
        check("two of one, none of twofold", &["2"]);
        check("March 2024, march 15x", &["15", "2024"]);
        check("version 1.2.3 on 3/4.", &["1.2.3", "3/4"]);
    }
}
