//! The languages that a text may be read in.
//!
//! In: a code of ISO 639-1. Out: a language. The code that reads a text in it is in the module `language` of the crate
//! `memory`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A language, by its code of ISO 639-1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Arabic.
    Ar,
    /// German.
    De,
    /// Greek.
    El,
    /// Spanish.
    Es,
    /// Persian.
    Fa,
    /// French.
    Fr,
    /// Hindi.
    Hi,
    /// Indonesian.
    Id,
    /// Italian.
    It,
    /// Japanese.
    Ja,
    /// Korean.
    Ko,
    /// Dutch.
    Nl,
    /// Polish.
    Pl,
    /// Portuguese.
    Pt,
    /// Russian.
    Ru,
    /// Thai.
    Th,
    /// Turkish.
    Tr,
    /// Ukrainian.
    Uk,
    /// Vietnamese.
    Vi,
    /// Chinese.
    Zh,
    /// Another one: its words are taken as they stand.
    Und,
}

impl Language {
    /// Every language, in the order of [`Self::number`].
    pub const ALL: [Self; 22] = [
        Self::En,
        Self::Ar,
        Self::De,
        Self::El,
        Self::Es,
        Self::Fa,
        Self::Fr,
        Self::Hi,
        Self::Id,
        Self::It,
        Self::Ja,
        Self::Ko,
        Self::Nl,
        Self::Pl,
        Self::Pt,
        Self::Ru,
        Self::Th,
        Self::Tr,
        Self::Uk,
        Self::Vi,
        Self::Zh,
        Self::Und,
    ];

    /// Its code; `und` for a language that is not in this list.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Ar => "ar",
            Self::De => "de",
            Self::El => "el",
            Self::Es => "es",
            Self::Fa => "fa",
            Self::Fr => "fr",
            Self::Hi => "hi",
            Self::Id => "id",
            Self::It => "it",
            Self::Ja => "ja",
            Self::Ko => "ko",
            Self::Nl => "nl",
            Self::Pl => "pl",
            Self::Pt => "pt",
            Self::Ru => "ru",
            Self::Th => "th",
            Self::Tr => "tr",
            Self::Uk => "uk",
            Self::Vi => "vi",
            Self::Zh => "zh",
            Self::Und => "und",
        }
    }

    /// Its name in English.
    #[must_use]
    pub fn english_name(self) -> &'static str {
        match self {
            Self::En => "English",
            Self::Ar => "Arabic",
            Self::De => "German",
            Self::El => "Greek",
            Self::Es => "Spanish",
            Self::Fa => "Persian",
            Self::Fr => "French",
            Self::Hi => "Hindi",
            Self::Id => "Indonesian",
            Self::It => "Italian",
            Self::Ja => "Japanese",
            Self::Ko => "Korean",
            Self::Nl => "Dutch",
            Self::Pl => "Polish",
            Self::Pt => "Portuguese",
            Self::Ru => "Russian",
            Self::Th => "Thai",
            Self::Tr => "Turkish",
            Self::Uk => "Ukrainian",
            Self::Vi => "Vietnamese",
            Self::Zh => "Chinese",
            Self::Und => "another language",
        }
    }

    /// The language of a code.
    #[must_use]
    pub fn of_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.code() == code)
    }

    /// Its position in [`Self::ALL`], with which it is stored in one byte.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The language with this [number](Self::number); English if no language has it.
    #[must_use]
    pub fn of_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or_default()
    }

    /// Whether it is English, which a record does not state.
    #[must_use]
    pub fn is_english(&self) -> bool {
        *self == Self::En
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_numbers_read_back() {
        for (language, number) in Language::ALL.into_iter().zip(0..) {
            assert_eq!(Language::of_code(language.code()), Some(language));
            assert_eq!((language.number(), Language::of_number(number)), (number, language));
            let json = serde_json::to_string(&language).expect("JSON");
            assert_eq!(json, format!("\"{language}\""));
        }
        assert_eq!((Language::of_number(255), Language::of_code("xx")), (Language::En, None));
    }
}
