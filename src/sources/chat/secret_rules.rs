//! The rules by which keys, tokens and passwords are known.
//!
//! In: `secret_rules.toml`, which says what each rule is for. Out: the compiled rules. Nothing is read while the
//! program runs.

use std::{collections::HashSet, sync::LazyLock};

use regex::{Captures, Regex, RegexSet};
use serde::Deserialize;

/// The fewest different characters of a secret that is `varied`.
const VARIED_CHARACTERS: usize = 8;
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
    pub(super) regex: Regex,
    varied: bool,
    value: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    rule: Vec<RuleEntry>,
    stand_ins: StandIns,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleEntry {
    kind: String,
    pattern: String,
    #[serde(default)]
    varied: bool,
    #[serde(default)]
    value: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StandIns {
    words: HashSet<String>,
    patterns: Vec<String>,
}

impl SecretRules {
    fn of(file: RuleFile) -> Result<Self, regex::Error> {
        let rule = |entry: RuleEntry| {
            let RuleEntry { kind, pattern, varied, value } = entry;
            Ok(SecretRule { kind, regex: Regex::new(&pattern)?, varied, value })
        };
        let rules = file.rule.into_iter().map(rule).collect::<Result<_, regex::Error>>()?;
        let patterns = RegexSet::new(file.stand_ins.patterns.iter().map(|pattern| format!("(?i){pattern}")))?;
        Ok(Self { rules, words: file.stand_ins.words, patterns })
    }

    /// What stays of a match, before and behind the secret; `None` if the match is no secret.
    pub(super) fn kept<'t>(&self, rule: &SecretRule, found: &Captures<'t>) -> Option<[&'t str; 2]> {
        let whole = found.get(0)?;
        let kept = KEPT_GROUPS.map(|name| found.name(name));
        // A kept group stands at the beginning of a match or at its end.
        let before = kept.iter().flatten().find(|group| group.start() == whole.start());
        let behind = kept.iter().flatten().find(|group| group.end() == whole.end() && group.start() > whole.start());
        let [before, behind] = [before, behind].map(|group| group.map_or("", |group| group.as_str()));
        let secret = whole.as_str().get(before.len()..whole.len() - behind.len())?;
        let is_secret = (!rule.varied || is_varied(secret)) && (!rule.value || !self.is_stand_in(secret));
        is_secret.then_some([before, behind])
    }

    fn is_stand_in(&self, value: &str) -> bool {
        let bare = value.trim_end_matches([')', ']', '}', '.', ':', '!', '?', '`', '|', '>']);
        self.words.contains(&bare.to_lowercase()) || self.patterns.is_match(value)
    }
}

/// Whether a text has letters and digits, and enough different characters.
fn is_varied(secret: &str) -> bool {
    let different: HashSet<char> = secret.chars().collect();
    let has = |is: fn(&char) -> bool| different.iter().any(is);
    different.len() >= VARIED_CHARACTERS && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
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
    }
}
