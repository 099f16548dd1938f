//! The rules by which keys, tokens and passwords are known.
//!
//! In: `secret_rules.toml`, which says what each rule is for. Out: the compiled rules. Nothing is read while the
//! program runs.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
    sync::LazyLock,
};

use regex::{Regex, RegexSet};
use serde::Deserialize;

/// The fewest different characters of a secret that is `varied`.
const VARIED_CHARACTERS: usize = 8;
/// The fewest characters of a secret that is `mixed`, and of one that goes on to the next blank.
const MIXED_CHARACTERS: usize = 6;
const RUN_CHARACTERS: usize = 4;
/// A part that is not in the file. `None` only if the pattern were malformed, which a test rules out.
static UNKNOWN_PART: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("%[a-z]+%").ok());
/// The names of groups whose text stays.
const KEPT_GROUPS: [&str; 2] = ["keep", "keep2"];

/// The rules. A file that cannot be read fails the test below.
pub(super) static SECRET_RULES: LazyLock<SecretRules> = LazyLock::new(|| {
    let file: RuleFile = toml::from_str(include_str!("secret_rules.toml")).unwrap_or_default();
    SecretRules::of(file).unwrap_or_default()
});

/// The compiled rules.
#[derive(Default)]
pub(super) struct SecretRules {
    pub(super) rules: Vec<SecretRule>,
    words: HashSet<String>,
    patterns: RegexSet,
}

/// One rule.
pub(super) struct SecretRule {
    /// What a match is counted as.
    pub(super) kind: String,
    regex: Regex,
    /// What a text needs to have for a match, so that most texts are passed over quickly.
    needs: Option<Regex>,
    varied: bool,
    mixed: bool,
    value: bool,
    run: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    parts: BTreeMap<String, String>,
    rule: Vec<RuleEntry>,
    stand_ins: StandIns,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    kind: String,
    pattern: String,
    needs: Option<String>,
    #[serde(default)]
    varied: bool,
    #[serde(default)]
    mixed: bool,
    #[serde(default)]
    value: bool,
    #[serde(default)]
    run: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StandIns {
    words: HashSet<String>,
    patterns: Vec<String>,
}

impl SecretRules {
    fn of(file: RuleFile) -> Result<Self, regex::Error> {
        let whole = |pattern: &str| {
            let fill = |pattern: String, (name, part): (&String, &String)| pattern.replace(&format!("%{name}%"), part);
            let filled = file.parts.iter().fold(pattern.to_owned(), fill);
            match UNKNOWN_PART.as_ref().and_then(|unknown| unknown.find(&filled)) {
                Some(name) => Err(regex::Error::Syntax(format!("no part is called {}", name.as_str()))),
                None => Regex::new(&filled),
            }
        };
        let rule = |entry: RuleEntry| {
            let RuleEntry { kind, pattern, needs, varied, mixed, value, run } = entry;
            let needs = needs.map(|pattern| whole(&pattern)).transpose()?;
            Ok(SecretRule { kind, regex: whole(&pattern)?, needs, varied, mixed, value, run })
        };
        let rules = file.rule.into_iter().map(rule).collect::<Result<_, regex::Error>>()?;
        let patterns = RegexSet::new(file.stand_ins.patterns.iter().map(|pattern| format!("(?i){pattern}")))?;
        Ok(Self { rules, words: file.stand_ins.words, patterns })
    }

    /// The first match of a rule in a text behind `from`: where it has a secret, and whether it is one.
    pub(super) fn next(&self, rule: &SecretRule, text: &str, from: usize) -> Option<(Range<usize>, bool)> {
        let found = rule.regex.captures_at(text, from)?;
        let whole = found.get(0)?;
        let kept = KEPT_GROUPS.map(|name| found.name(name));
        // A kept group stands at the beginning of a match or at its end.
        let before = kept.iter().flatten().find(|group| group.start() == whole.start());
        let behind = kept.iter().flatten().find(|group| group.end() == whole.end() && group.start() > whole.start());
        let begin = before.map_or(whole.start(), regex::Match::end);
        let matched = text.get(begin..behind.map_or(whole.end(), regex::Match::start))?;
        let secret = if rule.run { value_in(text.get(begin..)?) } else { matched };
        let is_secret = (!rule.varied || is_varied(secret))
            && (!rule.mixed || has_letters_and_digits(secret) && secret.chars().count() >= MIXED_CHARACTERS)
            && (!rule.run || secret.chars().count() >= RUN_CHARACTERS)
            && (!rule.value || !self.is_stand_in(secret));
        Some((begin..begin + secret.len(), is_secret))
    }

    fn is_stand_in(&self, value: &str) -> bool {
        let is_one = |value: &str| {
            let bare = value.trim_end_matches([')', ']', '}', '.', ':', '!', '?', '`', '|', '>']);
            self.words.contains(&bare.to_lowercase()) || self.patterns.is_match(value)
        };
        // Arguments without blanks between them: the first one is the value.
        is_one(value) || value.split_once([',', ';']).is_some_and(|(first, _)| is_one(first))
    }
}

impl SecretRule {
    /// Whether a text may have a match.
    pub(super) fn may_match(&self, text: &str) -> bool {
        self.needs.as_ref().is_none_or(|needs| needs.is_match(text))
    }
}

/// The value with which a text begins: to a blank, or to the next assignment in a list, an escape or a tag. A mark that
/// ends a part of a sentence, and a bracket that closes one before the value, are no part of it.
fn value_in(text: &str) -> &str {
    let ends_at = |(at, mark): (usize, char)| {
        let behind = text.get(at + mark.len_utf8()..).unwrap_or_default();
        match mark {
            '"' => true,
            ',' | ';' => behind.is_empty() || is_assignment(behind),
            '&' => is_assignment(behind),
            '\\' => behind.is_empty() || behind.starts_with(['n', 'r', 't', '"', '\'']),
            '<' => behind.starts_with('/'),
            _ => mark.is_whitespace(),
        }
    };
    let end = text.char_indices().find(|found| ends_at(*found)).map_or(text.len(), |(at, _)| at);
    let mut value = text.get(..end).unwrap_or(text);
    let [round, square, curly] = ['(', '[', '{'].map(|open| value.contains(open));
    while let Some(last) = value.chars().next_back() {
        let ends = match last {
            ',' | ';' | '\'' | '`' => true,
            ')' => !round,
            ']' => !square,
            '}' => !curly,
            _ => false,
        };
        if !ends {
            break;
        }
        value = value.get(..value.len() - last.len_utf8()).unwrap_or_default();
    }
    value
}

/// Whether a text begins with a name and the sign of an assignment.
fn is_assignment(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    rest.len() < text.len() && rest.starts_with(['=', ':'])
}

/// Whether a text has letters and digits, and enough different characters.
fn is_varied(secret: &str) -> bool {
    let different: HashSet<char> = secret.chars().collect();
    different.len() >= VARIED_CHARACTERS && has_letters_and_digits(secret)
}

fn has_letters_and_digits(secret: &str) -> bool {
    secret.chars().any(|c| c.is_ascii_digit()) && secret.chars().any(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_no_rule_matches_nothing() {
        let file: RuleFile = toml::from_str(include_str!("secret_rules.toml")).unwrap();
        assert!(file.stand_ins.words.iter().all(|word| *word == word.to_lowercase()));
        let rules = SecretRules::of(file).unwrap();
        assert!(rules.rules.len() > 30 && rules.rules.iter().all(|rule| !rule.regex.is_match("")));
        let entry = "[parts]\nword = 'key'\n[[rule]]\nkind = 'k'\npattern = 'key'\nneeds = '%wrod%'";
        let file: RuleFile = toml::from_str(&format!("{entry}\n[stand_ins]\nwords = []\npatterns = []")).unwrap();
        assert!(SecretRules::of(file).is_err_and(|error| error.to_string().contains("%wrod%")));
    }

    #[test]
    fn a_value_ends_where_something_else_begins() {
        for (run, value) in [
            ("Xk,29dkq!zz", "Xk,29dkq!zz"),
            ("hunter22,", "hunter22"),
            ("hunter22,user=ines", "hunter22"),
            ("hunter22&user=ines", "hunter22"),
            ("a&b;c'd)", "a&b;c'd"),
            ("a(b)c)", "a(b)c)"),
            ("hunter22\\nnext", "hunter22"),
            ("hunter22</code>", "hunter22"),
            ("',", ""),
        ] {
            assert_eq!(value_in(run), value, "{run}");
        }
    }
}
