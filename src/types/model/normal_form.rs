//! The one form in which words and names are compared, however they were typed.
//!
//! In: characters. Out: the same text in Unicode's compatibility forms (NFKC, as NFKD while it is read), with full case
//! folding of all scripts, and without invisible characters (soft hyphens, joiners, marks of direction, variation
//! selectors). Letters that share a capital are equal, too: a Turkish i with and without its dot, a Greek vowel with
//! and without its accent. So is an Arabic word that is stretched by a tatweel. Other accents and vowel signs stay:
//! `José` is not `Jose`. Looks nothing up, and changes no text that is stored.

use caseless::Caseless as _;
use unicode_normalization::{UnicodeNormalization as _, char::canonical_combining_class};

const DOT_ABOVE: char = '\u{307}';
const DOTLESS_I: char = '\u{131}';
const TATWEEL: char = '\u{640}';

/// A text in normal form.
#[must_use]
pub fn normal_form(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let (mut reader, mut out) = (NormalFormReader::default(), String::with_capacity(text.len()));
    text.char_indices().for_each(|(at, letter)| reader.push(at, letter, &mut |_, letter| out.push(letter)));
    reader.end(&mut |_, letter| out.push(letter));
    out.nfc().collect()
}

/// Brings a text into normal form character by character, decomposed.
#[derive(Debug, Default)]
pub struct NormalFormReader {
    /// The last character that is no mark.
    base: char,
    /// Its combining marks, each with its class and place; equal texts may have them in any order.
    marks: Vec<(u8, usize, char)>,
}

impl NormalFormReader {
    /// Reads the character at a place, and calls `each` with the characters that are complete, each with its place.
    pub fn push(&mut self, at: usize, letter: char, each: &mut impl FnMut(usize, char)) {
        if letter.is_ascii() {
            self.take(at, letter.to_ascii_lowercase(), each);
        } else if is_unseen(letter) {
        } else if is_itself(letter) {
            self.take(at, letter, each);
        } else {
            let folded = std::iter::once(letter).nfkd().default_case_fold().nfkd().default_case_fold().nfkd();
            for letter in folded.filter(|letter| !is_unseen(*letter)) {
                self.take(at, if letter == DOTLESS_I { 'i' } else { letter }, each);
            }
        }
    }

    /// Calls `each` with what is left.
    pub fn end(&mut self, each: &mut impl FnMut(usize, char)) {
        self.marks.sort_by_key(|(class, _, _)| *class);
        self.marks.drain(..).for_each(|(_, at, mark)| each(at, mark));
    }

    fn take(&mut self, at: usize, letter: char, each: &mut impl FnMut(usize, char)) {
        let class = if letter.is_ascii() || is_itself(letter) { 0 } else { canonical_combining_class(letter) };
        if class == 0 {
            if !self.marks.is_empty() {
                self.end(each);
            }
            self.base = letter;
            each(at, letter);
        } else if !is_lost_in_capitals(self.base, letter) {
            self.marks.push((class, at, letter));
        }
    }
}

/// Whether a capital of this letter is written without the mark.
fn is_lost_in_capitals(base: char, mark: char) -> bool {
    match base {
        'i' => mark == DOT_ABOVE,
        '\u{370}'..='\u{3ff}' => matches!(mark, '\u{300}' | '\u{301}' | '\u{313}' | '\u{314}' | '\u{342}'),
        _ => false,
    }
}

/// Chinese characters are their own form, and so is what stands for a byte that is no text: most bytes of a vector.
fn is_itself(letter: char) -> bool {
    matches!(letter, '\u{4e00}'..='\u{9fff}' | char::REPLACEMENT_CHARACTER)
}

/// Whether a character is invisible: Unicode's property `Default_Ignorable_Code_Point`, whose ranges never change, or
/// the line that stretches Arabic words.
fn is_unseen(letter: char) -> bool {
    matches!(letter, TATWEEL
        | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_form_however_it_was_typed() {
        for (one, other) in [
            ("Größe", "GRÖSSE"),
            ("GRÖẞE", "gro\u{308}sse"),
            ("ärzte", "ÄRZTE"),
            ("A\u{308}rzte", "ärzte"),
            ("Ὀδυσσεύς", "ΟΔΥΣΣΕΥΣ"),
            ("Γιώργος", "ΓΙΩΡΓΟΣ"),
            ("Дарья", "ДАРЬЯ"),
            ("İSTANBUL", "istanbul"),
            ("ISPARTA", "ısparta"),
            ("ﬁancée", "FIANCÉE"),
            ("Ｊｏｓｅ\u{301}", "José"),
            ("각하", "\u{1100}\u{1161}\u{11a8}\u{1112}\u{1161}"),
            ("Nguyễn", "NGUYE\u{302}\u{303}N"),
            ("Nguyễn", "nguye\u{302}\u{303}n"),
            ("ﻻ", "لا"),
            ("محـــمد", "محمد"),
            ("ｶﾞｽ", "ガス"),
            ("Straf\u{ad}recht", "strafrecht"),
            ("pass\u{200b}word", "Pass\u{2060}Word"),
            ("نمی\u{200c}خواهم", "نمیخواهم"),
            ("❤\u{fe0f}", "❤"),
            // Marks of other classes have no order; those of the same one do.
            ("q\u{307}\u{323}", "Q\u{323}\u{307}"),
            ("①", "1"),
            ("ᏣᎳᎩ", "ꮳꮃꭹ"),
            ("ᲐᲜᲐ", "ანა"),
        ] {
            assert_eq!(normal_form(one), normal_form(other), "{one:?} {other:?}");
            assert_eq!(normal_form(&normal_form(one)), normal_form(one), "{one:?}: its own form");
        }
        for (one, other) in [("José", "Jose"), ("각", "가"), ("ส้ม", "สม"), ("q\u{307}\u{301}", "q\u{301}\u{307}")]
        {
            assert_ne!(normal_form(one), normal_form(other), "{one:?} {other:?}");
        }
    }

    #[test]
    fn what_is_not_looked_up_is_its_own_form() {
        for letter in ['\u{4e00}', '\u{9fff}', char::REPLACEMENT_CHARACTER] {
            let looked_up: String = std::iter::once(letter).nfkd().default_case_fold().nfkd().collect();
            assert_eq!((looked_up, canonical_combining_class(letter)), (letter.to_string(), 0));
        }
    }

    #[test]
    fn each_character_keeps_its_place() {
        let (mut reader, mut read) = (NormalFormReader::default(), Vec::new());
        for (at, letter) in "aﬁ\u{323}\u{ad}É".char_indices() {
            reader.push(at, letter, &mut |at, letter| read.push((at, letter)));
        }
        reader.end(&mut |at, letter| read.push((at, letter)));
        assert_eq!(read, [(0, 'a'), (1, 'f'), (1, 'i'), (4, '\u{323}'), (8, 'e'), (8, '\u{301}')]);
    }
}
