//! Whether texts contain the names that a language model returned.
//!
//! In: texts, and names from a model. Out: the names that the texts contain, so that no invented
//! name is kept. Every word of a name must occur, in any order and place: "Ann Lee" may be called
//! Ann in one turn and Lee in another. A word may occur with a short ending ("Annas", "Lisbon's").
//! Scripts without spaces between words are searched as substrings.

use std::collections::BTreeSet;

use types::model::canonical_name;

/// The maximum number of letters in an ending.
const ENDING: usize = 2;
/// The minimum number of letters in a word that may have an ending.
const STEM: usize = 3;

/// The texts in which names are looked up.
#[derive(Debug, Default)]
pub struct GroundingTexts {
    words: BTreeSet<String>,
    /// The texts in scripts without spaces.
    runs: String,
}

impl GroundingTexts {
    /// Adds a text.
    pub fn add(&mut self, text: &str) {
        let text = text.to_lowercase();
        if text.chars().any(is_unspaced) {
            self.runs.push_str(&text);
            self.runs.push('\n');
        }
        self.words.extend(words(&text).map(str::to_owned));
    }

    /// The names that the texts contain, canonical, sorted, each once.
    #[must_use]
    pub fn grounded(&self, names: &[String]) -> Vec<String> {
        let all: BTreeSet<String> =
            names.iter().map(|name| canonical_name(name)).filter(|name| self.contains(name)).collect();
        all.into_iter().collect()
    }

    /// Whether the texts contain every word of a name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let mut any = false;
        words(&name).all(|word| {
            any = true;
            self.has(word)
        }) && any
    }

    fn has(&self, word: &str) -> bool {
        if word.chars().any(is_unspaced) {
            return self.runs.contains(word);
        }
        let letters = word.chars().count();
        let most = letters + if letters < STEM { 0 } else { ENDING };
        let longer = self.words.range(word.to_owned()..).take_while(|known| known.starts_with(word));
        longer.into_iter().any(|known| known.chars().count() <= most)
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Thai, Lao, Burmese, Khmer, kana and ideographs.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{9fff}' | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_the_texts_contain_are_grounded() {
        let check = |text: &str, name: &str, expected: bool| {
            let mut grounding = GroundingTexts::default();
            text.split('|').for_each(|text| grounding.add(text));
            assert_eq!(grounding.contains(name), expected, "{name:?} in {text:?}");
        };
        check("I met Ann|Lee was there", "Ann Lee", true);
        check("I bought new shoes", "New York", false);
        check("the annual fair", "Ann", false);
        check("Annas Haus in Wien", "Anna", true);
        check("in Lisbon's old town", "Lisbon", true);
        check("It is 5 km", "5", true);
        check("It is 55 km", "5", false);
        check("Łódź", "łódź", true);
        check("昨日東京に行った", "東京", true);
        check("昨日東京に行った", "大阪", false);
        check("anything", " - ", false);
        let mut grounding = GroundingTexts::default();
        grounding.add("Zoe and Ann");
        let names = ["Zoe", "ann", "Ann ", "Bo"].map(str::to_owned);
        assert_eq!(grounding.grounded(&names), ["ann", "zoe"]);
    }
}
