//! Ids without phone numbers and mail addresses (decision 57).
//!
//! In: an id as a platform or an export has it, and the salt of a memory. Out: the same id, if it holds neither; else
//! `~` and a keyed hash of the whole id. The same id and salt always give the same hash, so a source that is read again
//! is recognised; without the salt, nobody can try numbers until one fits. Whatever looks like a number is hidden, even
//! if it is none: an id only has to be the same each time.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a hidden id begins with.
const MARK: char = '~';
/// The digits of a hidden id.
const HEX_DIGITS: usize = 32;
/// How many digits a phone number has.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;
/// The bytes of a salt.
const SALT_BYTES: usize = 32;

/// The salt with which a memory hides ids.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct IdSalt([u8; SALT_BYTES]);

impl From<IdSalt> for String {
    fn from(salt: IdSalt) -> Self {
        salt.to_hex()
    }
}

impl TryFrom<String> for IdSalt {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("a salt has 64 hexadecimal digits")
    }
}

/// Never prints the salt.
impl fmt::Debug for IdSalt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdSalt")
    }
}

impl IdSalt {
    /// A salt of these random bytes.
    #[must_use]
    pub fn new(bytes: [u8; SALT_BYTES]) -> Self {
        Self(bytes)
    }

    /// The salt that was written as hexadecimal digits; `None` if the text is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text.trim()).ok().map(|hash| Self(*hash.as_bytes()))
    }

    /// The salt as hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    /// An id without a phone number or a mail address.
    #[must_use]
    pub fn hide(&self, id: &str) -> String {
        if holds_contact(id) { self.hidden(id) } else { id.to_owned() }
    }

    /// The hidden form of an id.
    #[must_use]
    pub fn hidden(&self, id: &str) -> String {
        let hash = blake3::keyed_hash(&self.0, id.as_bytes()).to_hex();
        format!("{MARK}{}", hash.get(..HEX_DIGITS).unwrap_or_default())
    }
}

/// Whether an id has the form of a hidden one.
#[must_use]
pub fn is_hidden(id: &str) -> bool {
    let digits = id.strip_prefix(MARK);
    digits.is_some_and(|digits| digits.len() == HEX_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether an id holds a phone number or a mail address.
#[must_use]
pub fn holds_contact(id: &str) -> bool {
    if is_hidden(id) {
        return false;
    }
    let plain: String = id.replace("%2F", "/").chars().filter(|c| !is_mark(*c)).collect();
    holds_address(&plain) || holds_number(&plain)
}

/// An invisible character; WhatsApp writes some around numbers.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// `LOCAL@DOMAIN.TOP`. Ids of Matrix begin with `@`, and those of Teams have a kind in place of a domain.
fn holds_address(id: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '<' | '>' | '"' | ',' | ';' | '(' | ')' | '[' | ']');
    id.split(ends).any(|word| {
        let Some((local, domain)) = word.rsplit_once(['@', '＠']) else { return false };
        let Some((host, top)) = domain.trim_end_matches('.').rsplit_once('.') else { return false };
        let is_top = top.chars().count() >= 2 && top.chars().all(|c| c.is_alphabetic() || c == '-');
        let is_of_teams = local.starts_with("19:") || matches!(top, "spaces" | "skype");
        !local.is_empty() && !local.starts_with('@') && !host.is_empty() && is_top && !is_of_teams
    })
}

/// Seven to fifteen digits that begin with `+`, `00` or `0`, or are divided as in a phone number. A date, a UUID and a
/// plain count do not count.
fn holds_number(id: &str) -> bool {
    let letters: Vec<char> = id.chars().collect();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        if !(letter.is_numeric() || matches!(letter, '+' | '＋' | '(')) {
            at += 1;
            continue;
        }
        let run: Vec<char> = letters.iter().skip(at).copied().take_while(|c| is_of_number(*c)).collect();
        let before = at.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(at + run.len());
        let is_whole = [before, after].into_iter().flatten().all(|c| !c.is_alphanumeric() && !matches!(c, '_' | ':'));
        if is_number(&run, is_whole) {
            return true;
        }
        at += run.len().max(1);
    }
    false
}

/// A character of a number: a digit, or a separator.
fn is_of_number(c: char) -> bool {
    c.is_numeric()
        || c.is_whitespace()
        || matches!(c, '+' | '＋' | '(' | ')' | '-' | '.' | '\u{2010}'..='\u{2015}' | '\u{2212}')
}

fn is_number(run: &[char], is_whole: bool) -> bool {
    let text: String = run.iter().collect();
    let text = text.trim_matches(|c: char| !c.is_numeric() && !matches!(c, '+' | '＋' | '('));
    let digits = text.chars().filter(|c| c.is_numeric()).count();
    if text.starts_with(['+', '＋']) {
        // A number after `+` may be followed by another one, such as the position of the message.
        return digits >= *PHONE_DIGITS.start();
    }
    // A single point makes a decimal number, such as the time of a message of Slack.
    let dividers: Vec<char> = text.chars().filter(|c| !c.is_numeric()).collect();
    let is_divided = !dividers.is_empty() && dividers != ['.'];
    let (first, year) = (text.chars().next(), text.chars().take_while(|c| c.is_numeric()).count());
    let is_date = year == 4 && text.chars().nth(4) == Some('-') && text.chars().nth(7) == Some('-');
    let begins = first.is_some_and(|c| c == '(' || c.to_digit(10) == Some(0) || !c.is_ascii());
    PHONE_DIGITS.contains(&digits) && is_whole && !is_date && (is_divided || begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses_are_found_and_other_ids_stay() {
        for id in [
            "Trip/2024-05-01T10:00/+49 170 1234567",
            "Trip/2024-05-01T10:00/\u{202a}+49\u{a0}170\u{a0}1234567\u{202c}/2",
            "+15550100/1714557600000",
            "WhatsApp Chat with +1 (555) 010-0199/x",
            "Mum 0170 1234567/x",
            "(555) 010-0199",
            "555-010-0199",
            "01701234567/12",
            "+٤٩١٧٠١٢٣٤٥٦٧",
            "٠١٧٠١٢٣٤٥٦٧",
            "＋４９１７０１２３４５６７",
            "inbox/ann.lee@a.example",
            "jörg@büro.example/3",
            "list/Ann <ann@a.example>",
            "a%2Fann@a.example/1",
        ] {
            assert!(holds_contact(id), "{id}");
        }
        for id in [
            "C024BE91L/1714557600.000100",
            "C024BE91L/1.000001",
            "1234567890123456789/1234567890123456790",
            "channel1234567890/15",
            "user5/group12",
            "Trip/2024-05-01T10:00/Ann/2",
            "Trip/2024-05-01T10:00:05.123/Ann",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8/1714557600000",
            "10000000-1000-4000-8000-100000000000/1714557600000",
            "!tea:example.org/$123456-7890_ab:example.org",
            "@ann:example.org/1",
            "19:c1@thread.tacv2/1614618259349",
            "19:a_b@unq.gbl.spaces/16",
            "core%2Ftown-square/1714557600000/ann",
            "000000000000000000000001",
            "a@1714557600000",
            "no-id-0123456789abcdef0123456789abcdef",
            "~0123456789abcdef0123456789abcdef",
            "",
        ] {
            assert!(!holds_contact(id), "{id}");
        }
    }

    #[test]
    fn the_same_id_and_salt_give_the_same_hash() {
        let [a, b] = [1, 2].map(|byte| IdSalt::new([byte; SALT_BYTES]));
        let id = "Trip/+49 170 1234567";
        assert_eq!(a.hide("Trip/Ann"), "Trip/Ann");
        let hidden = a.hide(id);
        assert!(is_hidden(&hidden) && !is_hidden(id) && hidden == a.hide(id) && a.hide(&hidden) == hidden, "{hidden}");
        assert_ne!(hidden, b.hide(id));
        assert_eq!(IdSalt::parse(&format!("{}\n", a.to_hex())), Some(a));
        assert_eq!((IdSalt::parse("x"), format!("{a:?}")), (None, "IdSalt".to_owned()));
    }
}
