//! The texts that the app writes itself, in the languages in which it is known to export.
//!
//! In: `phrases.toml`, which says what each list is for. Out: the lists. Nothing is read while the program runs.

use std::{
    collections::{BTreeMap, HashSet},
    sync::LazyLock,
};

use serde::Deserialize;

/// The lists.
pub(super) static PHRASES: LazyLock<WhatsappPhrases> = LazyLock::new(|| {
    // A file that cannot be read fails the test below.
    toml::from_str(include_str!("phrases.toml")).unwrap_or_default()
});

/// The lists of `phrases.toml`, by their names there: sets are compared with whole texts, lists with parts.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WhatsappPhrases {
    pub(super) edited: HashSet<String>,
    pub(super) deleted: HashSet<String>,
    pub(super) deleted_by: Vec<String>,
    pub(super) waiting: HashSet<String>,
    pub(super) calls: HashSet<String>,
    pub(super) notices: Vec<String>,
    pub(super) notice_verbs: Vec<String>,
    pub(super) file_names: Vec<String>,
    pub(super) omitted_in_brackets: HashSet<String>,
    pub(super) attached_in_brackets: HashSet<String>,
    pub(super) attached_in_parentheses: HashSet<String>,
    pub(super) morning: HashSet<String>,
    pub(super) afternoon: HashSet<String>,
    omitted: BTreeMap<String, HashSet<String>>,
}

impl WhatsappPhrases {
    /// The kind of what was left out, if a text says that something was.
    pub(super) fn kind_of_omitted(&self, phrase: &str) -> Option<&str> {
        self.omitted.iter().find(|(_, known)| known.contains(phrase)).map(|(kind, _)| kind.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whatsapp::body::phrase;

    #[test]
    fn every_phrase_stands_once_and_in_the_form_that_is_compared() {
        let _: WhatsappPhrases = toml::from_str(include_str!("phrases.toml")).unwrap();
        let table: toml::Table = include_str!("phrases.toml").parse().unwrap();
        let texts = |list: &toml::Value| -> Vec<String> {
            list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let by_kind = table["omitted"].as_table().unwrap();
        let omitted: Vec<String> = by_kind.values().flat_map(texts).collect();
        let lists =
            table.iter().filter(|(name, _)| *name != "omitted").map(|(name, list)| (name.as_str(), texts(list)));
        for (name, texts) in lists.chain([("omitted", omitted)]) {
            assert!(!texts.is_empty(), "{name}");
            let mut seen = HashSet::new();
            for text in &texts {
                assert!(seen.insert(text), "{name}: {text:?} stands twice");
                assert_eq!(*text, text.to_lowercase(), "{name}");
                // Beginnings and parts of a text may end with a space.
                if !matches!(name, "file_names" | "notices" | "notice_verbs") {
                    assert_eq!(*text, phrase(text), "{name}: no text is compared in this form");
                }
            }
        }
        for (kind, texts_of_kind) in by_kind {
            for text in texts(texts_of_kind) {
                assert_eq!(PHRASES.kind_of_omitted(&text), Some(kind.as_str()), "{text}");
            }
        }
    }
}
