//! Removes what must not be stored from texts, before anything is stored.
//!
//! In: patterns, and texts. Out: the texts with every match of a pattern replaced, and the number of replacements. The
//! set `secrets` finds e-mail addresses, card numbers with a correct check digit, keys and tokens by their usual forms,
//! and phone numbers. It can miss a secret that has none of these forms.

use std::{borrow::Cow, collections::BTreeMap};

use regex::{Captures, Regex};

use crate::SourceError;

/// The name of the built-in set.
const SECRETS: &str = "secrets";

/// Keys and tokens that services issue, by their prefixes; then whatever follows a name such as `password:`. Text
/// matched by a group named `keep` stays.
const KEYS: &str = r#"(?x)
    -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----(?s:.*?)(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\z)
    | \bxox[a-z]-[A-Za-z0-9-]{10,} | \bxapp-[A-Za-z0-9-]{10,} | \bxoxe\.[A-Za-z0-9.-]{10,}
    | https://hooks\.slack\.com/[A-Za-z0-9/_-]{10,}
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_[A-Za-z0-9_]{20,} | \bglpat-[A-Za-z0-9_-]{20,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b | \bAIza[0-9A-Za-z_-]{35} | \bya29\.[0-9A-Za-z_-]{20,}
    | \b[srp]k_(?:live|test)_[A-Za-z0-9]{16,} | \bsk-[A-Za-z0-9_-]{20,} | \bwhsec_[A-Za-z0-9]{20,}
    | \bnpm_[A-Za-z0-9]{30,} | \bhf_[A-Za-z0-9]{30,} | \bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
    | \bdop_v1_[a-f0-9]{40,} | \bAGE-SECRET-KEY-[A-Z0-9]{20,}
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*
    | \b[0-9]{8,10}:[A-Za-z0-9_-]{35}\b
    | (?P<keep>[a-z][a-z0-9+.-]*://[^\s/:@]+:)[^\s/@]+(?:@) # a password in an address
    | (?P<keep2>(?i:\b(?:api[\ _-]?key|access[\ _-]?key|secret|secret[\ _-]?key|token|auth[\ _-]?token
        |password|passwd|pwd|passphrase)["']?\s*[:=]\s*["']?))[^\s"',;]{4,}
    | (?P<keep3>(?i:\bbearer\s+))[A-Za-z0-9._~+/-]{16,}=*
"#;
const ADDRESSES: &str = r"(?i)\b[\p{L}0-9._%+-]+@[\p{L}0-9-]+(?:\.[\p{L}0-9-]+)*\.\p{L}{2,}\b";
const CARDS: &str = r"\b[2-6](?:[ -]?[0-9]){12,18}\b";
const PHONES: &str = r"(?x)
    (?:\+|\b00)[1-9][0-9]{0,2}(?:[\ ./-]{0,2}\(?[0-9]{1,5}\)?){2,6}\b
    | (?:\(\d{3}\)\ ?|\b\d{3}[.\ -])\d{3}[.\ -]\d{4}\b
    | \b0\d{2,4}[\ /-]\d{3,8}(?:[\ -]\d{2,5}){0,3}\b
";

/// The patterns of a source.
pub(super) struct Redaction(Vec<RedactionPattern>);

struct RedactionPattern {
    regex: Regex,
    mark: &'static str,
    /// A further condition that a match must meet.
    also: fn(&str) -> bool,
}

/// A regular expression, the replacement of a match, and a check whether a match counts.
type RedactionRule<'p> = (&'p str, &'static str, fn(&str) -> bool);

impl Redaction {
    /// Reads the patterns: `secrets`, or regular expressions.
    ///
    /// # Errors
    /// [`SourceError::Settings`] when one is not a regular expression, or matches an empty text.
    pub(super) fn new(patterns: &[String]) -> Result<Self, SourceError> {
        let invalid = |problem| SourceError::Settings { key: "redact", problem };
        let mut all = Vec::new();
        for pattern in patterns {
            let set: &[RedactionRule<'_>] = if pattern == SECRETS {
                &[
                    (KEYS, "[key]", any),
                    (ADDRESSES, "[address]", any),
                    (CARDS, "[card]", is_card),
                    (PHONES, "[phone]", is_phone),
                ]
            } else {
                &[(pattern.as_str(), "[redacted]", any)]
            };
            for (regex, mark, also) in set {
                let regex = Regex::new(regex).map_err(|e| {
                    invalid(format!("{pattern:?} is neither {SECRETS:?} nor a regular expression: {e}"))
                })?;
                if regex.is_match("") {
                    return Err(invalid(format!(
                        "{pattern:?} matches an empty text; write one that needs a character"
                    )));
                }
                all.push(RedactionPattern { regex, mark, also: *also });
            }
        }
        Ok(Self(all))
    }

    /// A text with every match replaced; replacements are counted by their mark.
    pub(super) fn apply<'a>(&self, text: &'a str, counts: &mut BTreeMap<&'static str, u64>) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for pattern in &self.0 {
            let mut count = 0;
            let replaced = pattern.regex.replace_all(&text, |found: &Captures<'_>| {
                let whole = found.get(0).map_or("", |m| m.as_str());
                if !(pattern.also)(whole) {
                    return whole.to_owned();
                }
                count += 1;
                let kept = ["keep", "keep2", "keep3"].into_iter().find_map(|name| found.name(name));
                let end = if whole.ends_with('@') { "@" } else { "" };
                format!("{}{}{end}", kept.map_or("", |m| m.as_str()), pattern.mark)
            });
            if count > 0 {
                text = Cow::Owned(replaced.into_owned());
                *counts.entry(pattern.mark).or_default() += count;
            }
        }
        text
    }
}

fn any(_: &str) -> bool {
    true
}

/// Whether digits end in the check digit that cards have (Luhn).
fn is_card(found: &str) -> bool {
    let digits: Vec<u32> = found.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) => double / 10 + double % 10,
        })
        .sum();
    (13..=19).contains(&digits.len()) && sum.is_multiple_of(10)
}

/// Whether there are as many digits as in a phone number, and the match is not a date such as 2024-05-01.
fn is_phone(found: &str) -> bool {
    (8..=15).contains(&found.chars().filter(char::is_ascii_digit).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(patterns: &[&str], cases: &[(&str, &str)]) {
        let patterns: Vec<String> = patterns.iter().map(|p| (*p).to_owned()).collect();
        let redaction = Redaction::new(&patterns).unwrap();
        for (text, expected) in cases {
            let mut counts = BTreeMap::new();
            assert_eq!(redaction.apply(text, &mut counts), *expected, "{text}");
            assert_eq!(counts.is_empty(), text == expected, "{text}: {counts:?}");
        }
    }

    #[test]
    fn secrets_are_taken_out_and_the_rest_stays() {
        let token = ["xox", "b-123456789012-abcdefGHIJ"].concat();
        let github = ["gh", "p_abcdefghijklmnopqrstuvwxyz0123456789"].concat();
        check(
            &["secrets"],
            &[
                ("Write to ann.b+x@mail.example.org, please.", "Write to [address], please."),
                ("Ask @ann at 10:30", "Ask @ann at 10:30"),
                ("Card 4111 1111 1111 1111 till 05/27", "Card [card] till 05/27"),
                ("4111-1111-1111-1112 has a wrong check digit", "4111-1111-1111-1112 has a wrong check digit"),
                ("ts 1700000000000 and 1454841601.000002", "ts 1700000000000 and 1454841601.000002"),
                (&format!("the bot has {token} now"), "the bot has [key] now"),
                (&github, "[key]"),
                ("password: hunter22, ok?", "password: [key], ok?"),
                ("API_KEY=\"abcd1234\"", "API_KEY=\"[key]\""),
                ("the token expired", "the token expired"),
                ("postgres://app:s3cret@db.example/x", "postgres://app:[key]@db.example/x"),
                ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----.", "[key]."),
                ("Call +49 170 1234567 or (555) 010-1234", "Call [phone] or [phone]"),
                ("Call 030/12345678 or 0044 20 7946 0958.", "Call [phone] or [phone]."),
                ("On 2024-05-01 at 10:00, 1,000,000 of 3.5", "On 2024-05-01 at 10:00, 1,000,000 of 3.5"),
                ("192.168.100.200 and 3 000 000", "192.168.100.200 and 3 000 000"),
            ],
        );
    }

    #[test]
    fn patterns_of_the_user_join_the_set() {
        check(
            &["secrets", "PROJ-[0-9]+", "(?i)nightfall"],
            &[("a@b.example: PROJ-12 is Nightfall", "[address]: [redacted] is [redacted]")],
        );
        check(&[], &[("a@b.example", "a@b.example")]);
    }

    #[test]
    fn a_pattern_that_is_wrong_is_named() {
        for (pattern, word) in [("a(", "regular expression"), ("x*", "empty text")] {
            let error = Redaction::new(&[pattern.to_owned()]).err().unwrap().to_string();
            assert!(error.starts_with("source.redact: ") && error.contains(word), "{error}");
        }
    }
}
