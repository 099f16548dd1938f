//! The language of a text, from its script and its words (decision 53).
//!
//! In: a text, and the language of what was said before it. Out: what the text itself shows, and the language that it
//! is read in. A text that shows too little, such as "Ok!" or a name, is read in the language of what was said before
//! it. English is recognised like every other language, and a foreign name or a quoted word in English text does not
//! change it.

use std::{collections::HashMap, sync::LazyLock};

use unicode_segmentation::UnicodeSegmentation;

use super::{
    language_table::TABLE,
    writing_script::{WritingScript, script},
};
use crate::language::sentences::is_function_word;
use types::model::Language;

/// What a text shows about its language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LanguageDetection {
    /// This one.
    Surely(Language),
    /// This one, or another one in the same script.
    Likely(Language),
    /// It shows no language.
    Nothing,
}

/// A letter of a script without spaces, or a syllable, counts as this many Latin letters.
const LATIN_LETTERS: usize = 3;
/// The least evidence for a language in Latin letters: one word that no other language of the table has, or several
/// that few others have.
const MIN: f32 = 1.0;
/// The least number of words that show it: a single word may be a name, or an English word that is not in the English
/// list ("car", "Bo").
const MIN_WORDS: usize = 2;
/// Another language needs this many times as much evidence as English.
const MORE_THAN_ENGLISH: f32 = 2.0;
/// The maximum number of characters that are read; the beginning of a long text shows its language.
const MAX_READ_CHARACTERS: usize = 2_000;

/// The language of a text that follows one in another, or in the same, language.
#[must_use]
pub fn language_of(text: &str, before: Language) -> Language {
    match told(text) {
        LanguageDetection::Surely(language) => language,
        LanguageDetection::Likely(language) if share_script(language, before) => before,
        LanguageDetection::Likely(language) => language,
        LanguageDetection::Nothing => before,
    }
}

/// The language of each of several texts, in order. Texts at the beginning that show no language are read as
/// `otherwise`.
#[must_use]
pub fn languages_of<'t>(texts: impl IntoIterator<Item = &'t str>, otherwise: Language) -> Vec<Language> {
    let mut before = otherwise;
    let each = texts.into_iter().map(|text| {
        before = language_of(text, before);
        before
    });
    each.collect()
}

/// What a text itself shows about its language.
#[must_use]
pub fn told(text: &str) -> LanguageDetection {
    let text = text.char_indices().nth(MAX_READ_CHARACTERS).map_or(text, |(end, _)| text.get(..end).unwrap_or(text));
    if text.is_ascii() {
        return by_words(text);
    }
    let (mut latin, mut foreign) = (0, 0);
    let mut scripts = ScriptCounts::default();
    for found in text.chars().filter_map(script) {
        match found {
            WritingScript::Latin => latin += 1,
            WritingScript::Han | WritingScript::Kana | WritingScript::Hangul => foreign += LATIN_LETTERS,
            _ => foreign += 1,
        }
        scripts.add(found);
    }
    if foreign == 0 {
        return by_words(text);
    }
    if latin > foreign {
        // "I ate 火锅" is English, "我买了 iPhone 15 Pro Max" is not.
        match by_words(text) {
            LanguageDetection::Nothing => {}
            told => return told,
        }
    }
    scripts.told(text)
}

/// The number of letters of each script.
#[derive(Default)]
struct ScriptCounts {
    cyrillic: usize,
    greek: usize,
    arabic: usize,
    devanagari: usize,
    thai: usize,
    han: usize,
    kana: usize,
    hangul: usize,
    other: usize,
}

impl ScriptCounts {
    fn add(&mut self, script: WritingScript) {
        match script {
            WritingScript::Latin => {}
            WritingScript::Cyrillic => self.cyrillic += 1,
            WritingScript::Greek => self.greek += 1,
            WritingScript::Arabic => self.arabic += 1,
            WritingScript::Devanagari => self.devanagari += 1,
            WritingScript::Thai => self.thai += 1,
            WritingScript::Han => self.han += 1,
            WritingScript::Kana => self.kana += 1,
            WritingScript::Hangul => self.hangul += 1,
            WritingScript::Unspaced | WritingScript::Other => self.other += 1,
        }
    }

    fn told(&self, text: &str) -> LanguageDetection {
        let east_asian = self.han + self.kana + self.hangul;
        let most = [east_asian, self.cyrillic, self.greek, self.arabic, self.devanagari, self.thai, self.other]
            .into_iter()
            .max()
            .unwrap_or_default();
        if most == east_asian {
            return match (self.kana > 0, self.hangul > self.han) {
                (_, true) => LanguageDetection::Surely(Language::Ko),
                (true, _) => LanguageDetection::Surely(Language::Ja),
                _ => LanguageDetection::Likely(Language::Zh),
            };
        }
        if most == self.cyrillic {
            return by_letters(text, CYRILLIC, Language::Ru);
        }
        if most == self.arabic {
            return by_letters(text, ARABIC, Language::Ar);
        }
        LanguageDetection::Surely(match most {
            n if n == self.greek => Language::El,
            n if n == self.devanagari => Language::Hi,
            n if n == self.thai => Language::Th,
            _ => Language::Und,
        })
    }
}

/// Letters that only one of the languages of a script has.
type LanguageLetters = &'static [(Language, &'static str)];
const CYRILLIC: LanguageLetters = &[(Language::Uk, "іїєґІЇЄҐ"), (Language::Ru, "ыэъёЫЭЪЁ")];
const ARABIC: LanguageLetters = &[(Language::Fa, "پچژگکی"), (Language::Ar, "ةىيكأإ")];
/// Letters that only one of the languages in Latin script has.
const LATIN: LanguageLetters = &[
    (Language::De, "ßẞ"),
    (Language::Es, "ñÑ¿¡"),
    (Language::Fr, "œŒêûîëÊÎ"),
    (Language::Pt, "ãõÃÕ"),
    (Language::Pl, "łŁżŻźŹśŚńŃęĘąĄćĆ"),
    (Language::Tr, "ğĞşŞıİ"),
    (Language::Vi, "ơƠưƯđĐăĂ"),
];

/// Decides by the letters that only one language of a script has, or else by the words.
fn by_letters(text: &str, letters: LanguageLetters, otherwise: Language) -> LanguageDetection {
    let count = |of: &str| text.chars().filter(|c| of.contains(*c)).count();
    let counts = letters.iter().map(|(language, of)| (count(of), *language));
    if let Some((1.., language)) = counts.max_by_key(|(count, _)| *count) {
        return LanguageDetection::Surely(language);
    }
    match by_words(text) {
        LanguageDetection::Nothing => LanguageDetection::Likely(otherwise),
        told => told,
    }
}

/// The languages of each function word.
static FUNCTION_WORDS: LazyLock<HashMap<&'static str, Vec<Language>>> = LazyLock::new(|| {
    let mut words: HashMap<&'static str, Vec<Language>> = HashMap::new();
    for entry in TABLE {
        for word in entry.function.split(' ') {
            let languages = words.entry(word).or_default();
            if !languages.contains(&entry.language) {
                languages.push(entry.language);
            }
        }
    }
    words
});

/// The evidence for each language.
#[derive(Default)]
struct LanguageEvidence {
    shares: [f32; Language::ALL.len()],
    /// The number of words that show it, each counted once.
    words: [usize; Language::ALL.len()],
}

impl LanguageEvidence {
    fn add(&mut self, language: Language, share: f32, is_new: bool) {
        let at = usize::from(language.number());
        self.shares[at] += share;
        self.words[at] += usize::from(is_new);
    }
}

/// Decides by the function words, each shared among the languages that have it, and by the letters that only one
/// language has. A capitalised word inside a text is a name, or English "I".
fn by_words(text: &str) -> LanguageDetection {
    let mut evidence = LanguageEvidence::default();
    let mut seen: Vec<String> = Vec::new();
    for (place, word) in text.unicode_words().enumerate() {
        let lower = word.to_lowercase();
        let is_name = place > 0 && word.chars().next().is_some_and(char::is_uppercase);
        for half in lower.split(['\'', '\u{2019}']) {
            let english = is_function_word(half);
            let others = if is_name { None } else { FUNCTION_WORDS.get(half) }.map_or(&[][..], Vec::as_slice);
            if others.is_empty() && !english {
                continue;
            }
            let is_new = !seen.iter().any(|seen| seen == half);
            let share = 1.0 / (others.len() + usize::from(english)).max(1) as f32;
            others.iter().for_each(|language| evidence.add(*language, share, is_new));
            if english {
                evidence.add(Language::En, share, is_new);
            }
            if is_new {
                seen.push(half.to_owned());
            }
        }
        if !word.is_ascii() {
            if word.chars().any(|c| matches!(c, '\u{1ea0}'..='\u{1ef9}')) {
                evidence.add(Language::Vi, 1.0, true);
            }
            for (language, of) in LATIN {
                if word.chars().any(|c| of.contains(c)) {
                    evidence.add(*language, 0.5, true);
                }
            }
        }
    }
    let of = |language: Language| evidence.shares[usize::from(language.number())];
    let english = of(Language::En);
    let others = Language::ALL.into_iter().filter(|language| !language.is_english());
    // Among equals the first one wins, so that only the order of the list decides.
    let best = others.reduce(|best, other| if of(other) > of(best) { other } else { best }).unwrap_or_default();
    let words = evidence.words[usize::from(best.number())];
    if of(best) >= MIN && words >= MIN_WORDS && of(best) >= MORE_THAN_ENGLISH * english {
        return LanguageDetection::Surely(best);
    }
    if english >= MIN && english > of(best) {
        return LanguageDetection::Surely(Language::En);
    }
    LanguageDetection::Nothing
}

/// Whether text that is probably in one language may be in the other.
fn share_script(a: Language, b: Language) -> bool {
    use Language::{Ar, Fa, Ja, Ru, Uk, Zh};
    let groups: [&[Language]; 3] = [&[Zh, Ja], &[Ru, Uk], &[Ar, Fa]];
    groups.iter().any(|group| group.contains(&a) && group.contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each text was written for this test, as a textbook of the language would print it; none comes from another
    /// source.
    #[test]
    fn each_language_is_told_from_a_short_turn() {
        use Language::*;
        for (text, language) in [
            ("I don't know what to do with it", En),
            ("Wow, that's great! Where did you go?", En),
            ("Ich habe gestern mit meiner Schwester gekocht", De),
            ("Das ist nicht der Hund von Anna", De),
            ("Ayer fui al cine con mi hermana", Es),
            ("¿Dónde está el perro?", Es),
            ("Hier, je suis allé au marché avec mon frère", Fr),
            ("Qu'est-ce que tu fais ?", Fr),
            ("Ieri sono andato al mercato con mia sorella", It),
            ("Ontem fui ao mercado com a minha irmã", Pt),
            ("Gisteren ben ik met mijn zus naar de markt geweest", Nl),
            ("Wczoraj byłam z siostrą na targu", Pl),
            ("Вчера я ходила на рынок с сестрой", Ru),
            ("Вчора я ходила на ринок із сестрою", Uk),
            ("Dün kız kardeşimle pazara gittim", Tr),
            ("Χθες πήγα στην αγορά με την αδελφή μου", El),
            ("ذهبت أمس إلى السوق مع أختي", Ar),
            ("دیروز با خواهرم به بازار رفتم", Fa),
            ("कल मैं अपनी बहन के साथ बाज़ार गया", Hi),
            ("Kemarin saya pergi ke pasar dengan kakak saya", Id),
            ("Hôm qua tôi đi chợ với chị gái", Vi),
            ("เมื่อวานฉันไปตลาดกับพี่สาว", Th),
            ("昨天我和姐姐去了市场", Zh),
            ("昨日、姉と市場に行きました", Ja),
            ("어제 언니와 시장에 갔어요", Ko),
            ("אתמול הלכתי לשוק עם אחותי", Und),
            ("我买了 iPhone 15 Pro Max", Zh),
            ("We ate 火锅 at the new place", En),
        ] {
            assert_eq!(language_of(text, En), language, "{text}");
        }
    }

    #[test]
    fn what_tells_nothing_is_read_as_what_was_said_before() {
        use Language::*;
        for text in ["Ok!", "Anna Müller", "😀", "", "12.5.", "Casa de la Playa", "haha"] {
            assert_eq!(told(text), LanguageDetection::Nothing, "{text}");
        }
        assert_eq!(language_of("東京大学", Ja), Ja);
        assert_eq!(language_of("東京大学", De), Zh);
        assert_eq!(language_of("Слава", Uk), Uk);
        assert_eq!(
            languages_of(["Ok!", "Ich bin nicht da", "Ok!", "where is the dog?", "Ok!"], Fr),
            [Fr, De, De, En, En]
        );
    }

    /// Foreign names and single words in English talk.
    #[test]
    fn english_stays_english() {
        for text in [
            "We flew from El Paso to Los Angeles and then to La Paz",
            "Thanks for the crème brûlée, it was delicious",
            "My name is José and I am from São Paulo",
            "Les Misérables is on at the theater, do you want to go?",
            "Die Hard was on tv and I was in bed",
            "me too",
            "so nice",
            "no way",
            "i am in",
            "hi mom",
            "on my way home",
            "was it an open door?",
            "Hey Bo! I sold my car last week.",
            "Nice car!",
            "Bo, Di and I",
            "Ask Mi or Da",
        ] {
            assert!(
                matches!(told(text), LanguageDetection::Nothing | LanguageDetection::Surely(Language::En)),
                "{text}: {:?}",
                told(text)
            );
        }
    }
}
