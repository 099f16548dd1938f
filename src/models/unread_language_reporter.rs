//! Turns in languages that the embedding model does not read.
//!
//! In: the languages of turns, of each bank or of all together. Out: if most turns are in languages that the model does
//! not read, a notice with the line to write. It reads no text itself; a notice never contains a word of what was said.

use std::collections::{BTreeMap, BTreeSet};

use crate::embed::setup::MULTILINGUAL;
use types::{
    config::{EmbedSettings, ModelSettings},
    model::Language,
};

/// The least number of turns from which anything is concluded about a bank.
const MIN_TURNS: u64 = 20;

/// How many turns there are in each language.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LanguageCounts(BTreeMap<Language, u64>);

impl From<BTreeMap<Language, u64>> for LanguageCounts {
    fn from(counts: BTreeMap<Language, u64>) -> Self {
        Self(counts)
    }
}

impl LanguageCounts {
    /// Counts a turn.
    pub fn add(&mut self, language: Language) {
        *self.0.entry(language).or_default() += 1;
    }

    /// If most turns are in languages that the model does not read: the most frequent of these languages, and the share
    /// of all turns that is in any of them.
    #[must_use]
    pub fn unread_by(&self, model: &ModelSettings) -> Option<(Language, f64)> {
        let all: u64 = self.0.values().sum();
        let unread = || self.0.iter().filter(|(language, _)| !model.reads(**language));
        let of_unread: u64 = unread().map(|(_, turns)| turns).sum();
        let most = unread().max_by_key(|(_, turns)| **turns).map(|(language, _)| *language)?;
        (all >= MIN_TURNS && 2 * of_unread > all).then_some((most, of_unread as f64 / all as f64))
    }
}

/// The notice about turns that the model does not read, with the line to write. `whose` names the turns: `the turns of
/// bank a`.
#[must_use]
pub fn notice(whose: &str, (language, share): (Language, f64), embed: &EmbedSettings) -> String {
    format!(
        "{:.0} % of {whose} are in languages that the model {} does not read, most of them in {} ({language}): \
         answers will miss them. Write embed.model = \"{MULTILINGUAL}\" (`ripplemem setup --multilingual` installs it); \
         `ripplemem reembed` changes the model of what is stored",
        100.0 * share,
        embed.model,
        language.english_name(),
    )
}

/// Reports each language that the model does not read, once.
#[derive(Debug, Default)]
pub struct UnreadLanguageReporter {
    counts: LanguageCounts,
    told: BTreeSet<Language>,
}

impl UnreadLanguageReporter {
    /// Counts turns; returns the notice if most turns that this process has seen cannot be read, and the language has
    /// not been reported yet.
    pub fn add(
        &mut self,
        languages: impl Iterator<Item = Language>,
        embed: &EmbedSettings,
        model: &ModelSettings,
    ) -> Option<String> {
        languages.for_each(|language| self.counts.add(language));
        let found = self.counts.unread_by(model)?;
        self.told.insert(found.0).then(|| notice("the turns that came", found, embed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::config::Pipeline;

    #[test]
    fn a_bank_that_the_model_does_not_read_is_told_so_once() {
        let of = |model: &str| {
            let pipeline = Pipeline::parse(&format!("version = 1\nembed.model = \"{model}\"")).expect("a known model");
            (pipeline.model(), pipeline.embed)
        };
        let (english, embed) = of("all-MiniLM-L6-v2-int8");
        let turns = |count, language| std::iter::repeat_n(language, count);
        let mut unread = UnreadLanguageReporter::default();
        assert_eq!(unread.add(turns(12, Language::Zh), &embed, &english), None, "too few");
        let told = unread.add(turns(12, Language::Zh), &embed, &english).expect("most are unread");
        for words in
            ["100 %", "all-MiniLM-L6-v2-int8", "Chinese (zh)", "embed.model = \"multilingual-e5-small\"", "setup"]
        {
            assert!(told.contains(words), "{told}");
        }
        assert_eq!(unread.add(turns(12, Language::Zh), &embed, &english), None, "said already");
        assert_eq!(UnreadLanguageReporter::default().add(turns(30, Language::En), &embed, &english), None);
        let (every, embed) = of("multilingual-e5-small");
        assert_eq!(UnreadLanguageReporter::default().add(turns(30, Language::Zh), &embed, &every), None);
        let mut mixed = LanguageCounts::default();
        turns(15, Language::En).chain(turns(15, Language::De)).for_each(|language| mixed.add(language));
        assert_eq!(mixed.unread_by(&english), None, "half of them is not most");
    }
}
