//! A text's words and their stems, by its language.
//!
//! In: a text that is not in English, and its language. Out: the stem of each word in lower case, without function
//! words. In text without spaces (Chinese, Japanese, Thai), ICU's dictionaries find the words. In addition, every two
//! neighbouring letters are a term, so that a name that is in no dictionary is found. English text has its own rules
//! (`TermAnalyzer`); only its passages without spaces are split here. The dictionaries are compiled in. No
//! floating-point model is used, so that words are the same on every processor.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::LazyLock,
};

use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed, options::WordBreakInvariantOptions};
use tantivy::tokenizer::{RawTokenizer, Stemmer, TextAnalyzer, TokenStream};
use unicode_segmentation::UnicodeSegmentation;

use super::{
    language_table::{TABLE, entry},
    writing_script::is_unspaced,
};
use types::model::Language;

/// The maximum number of bytes in a word; longer ones are links or keys.
const MAX: usize = 64;
/// The length of an ending that inflection may add to a name, in characters, and how many characters must be left
/// without it.
const ENDINGS: std::ops::RangeInclusive<usize> = 1..=3;
const MIN_NAME: usize = 3;
/// The maximum number of letters in a name in text without spaces.
const MAX_NAME: usize = 4;

/// The function words of each language.
static FUNCTION_WORDS: LazyLock<HashMap<Language, HashSet<&'static str>>> =
    LazyLock::new(|| TABLE.iter().map(|entry| (entry.language, entry.function.split(' ').collect())).collect());

/// ICU's segmenter, by dictionaries.
static SEGMENTER: LazyLock<WordSegmenterBorrowed<'static>> =
    LazyLock::new(|| WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()));

/// Splits texts into stems.
#[derive(Default)]
pub struct StemAnalyzer {
    stemmers: HashMap<Language, Option<TextAnalyzer>>,
}

impl std::fmt::Debug for StemAnalyzer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Splitter")
    }
}

impl StemAnalyzer {
    /// Calls `give` with each stem of a text, and with whether it counts as a word: pairs of letters in text without
    /// spaces do not.
    pub fn for_each_stem(&mut self, text: &str, language: Language, mut give: impl FnMut(&str, bool)) {
        for (run, unspaced) in runs(text) {
            if unspaced {
                stem_unspaced(run, language, &mut give);
            } else {
                self.stem_spaced(run, language, &mut give);
            }
        }
    }

    /// The stems of a text, each as often as it occurs.
    #[must_use]
    pub fn stems(&mut self, text: &str, language: Language) -> Vec<String> {
        let mut stems = Vec::new();
        self.for_each_stem(text, language, |stem, _| stems.push(stem.to_owned()));
        stems
    }

    fn stem_spaced(&mut self, run: &str, language: Language, give: &mut impl FnMut(&str, bool)) {
        let functions = FUNCTION_WORDS.get(&language);
        // Latin words inside Chinese or Russian text are usually English.
        let latin = if is_in_latin(language) { language } else { Language::En };
        for word in run.unicode_words() {
            let lower = fold_word(word, language);
            // An apostrophe joins an article or a pronoun to a word, except in Ukrainian, where it is part of the
            // spelling.
            let split: &[char] = if language == Language::Uk { &[] } else { &['\'', '\u{2019}', '.', ':'] };
            for half in lower.split(split).filter(|half| !half.is_empty() && half.len() <= MAX) {
                if functions.is_some_and(|words| words.contains(half)) {
                    continue;
                }
                let of = if half.is_ascii() { latin } else { language };
                self.stem_word(half, of, |stem| give(stem, true));
            }
        }
    }

    fn stem_word(&mut self, word: &str, language: Language, give: impl FnOnce(&str)) {
        let analyzer = self.stemmers.entry(language).or_insert_with(|| {
            let stemmer = Stemmer::new(stemmer_of(language)?);
            Some(TextAnalyzer::builder(RawTokenizer::default()).filter(stemmer).build())
        });
        let Some(analyzer) = analyzer else { return give(word) };
        let mut stream = analyzer.token_stream(word);
        match stream.next() {
            Some(token) => give(&token.text),
            None => give(word),
        }
    }
}

/// The ranges of the words of a text: ICU's words in text without spaces, otherwise those between marks and spaces.
#[must_use]
pub fn word_ranges(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut from = 0;
    for (run, unspaced) in runs(text) {
        let mut add = |at: usize, word: &str| ranges.push(from + at..from + at + word.len());
        if unspaced {
            let mut at = 0;
            for word in segments(run) {
                add(at, word);
                at += word.len();
            }
        } else {
            run.unicode_word_indices().for_each(|(at, word)| add(at, word));
        }
        from += run.len();
    }
    ranges
}

/// The number of words of a text: ICU's words in text without spaces, otherwise those between spaces.
#[must_use]
pub fn word_count(text: &str) -> usize {
    if text.is_ascii() || !text.contains(is_unspaced) {
        return text.split_whitespace().count();
    }
    let spaced = |run: &str| run.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
    runs(text).map(|(run, unspaced)| if unspaced { segments(run).count() } else { spaced(run) }).sum()
}

/// The forms of names that the words of a question may stand for: each word without possible endings; in text without
/// spaces, every run of two to four letters. They are only used to look up the names of known speakers.
#[must_use]
pub fn name_forms(text: &str, language: Language) -> Vec<String> {
    let mut forms = Vec::new();
    if language.is_english() && text.is_ascii() {
        return forms;
    }
    for (run, unspaced) in runs(text) {
        if unspaced {
            let letters: Vec<char> = run.chars().collect();
            for length in 2..=MAX_NAME {
                forms.extend(letters.windows(length).map(|some| some.iter().collect::<String>()));
            }
            continue;
        }
        for word in run.unicode_words() {
            let letters: Vec<char> = fold_word(word, language).chars().collect();
            let bare = ENDINGS.filter_map(|ending| letters.len().checked_sub(ending)).filter(|left| *left >= MIN_NAME);
            if !language.is_english() {
                forms.extend(bare.map(|left| letters.iter().take(left).collect::<String>()));
            }
        }
    }
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// The passages of a text with and without spaces, alternating.
fn runs(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let unspaced = is_unspaced(rest.chars().next()?);
        let end = rest.find(|c: char| is_unspaced(c) != unspaced).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        Some((run, unspaced))
    })
}

/// The words of a passage without spaces, and every two neighbouring letters.
fn stem_unspaced(run: &str, language: Language, give: &mut impl FnMut(&str, bool)) {
    let functions = FUNCTION_WORDS.get(&language);
    let mut pairs: HashMap<&str, usize> = HashMap::new();
    for word in segments(run).filter(|word| functions.is_none_or(|words| !words.contains(word))) {
        give(word, true);
        *pairs.entry(word).or_default() += 1;
    }
    let starts: Vec<usize> = run.grapheme_indices(true).map(|(at, _)| at).chain([run.len()]).collect();
    for three in starts.windows(3) {
        let pair = run.get(three[0]..three[2]).unwrap_or_default();
        // A word of two letters is its own pair.
        match pairs.get_mut(pair).filter(|left| **left > 0) {
            Some(left) => *left -= 1,
            None => give(pair, false),
        }
    }
}

/// ICU's words of a passage without spaces.
fn segments(run: &str) -> impl Iterator<Item = &str> {
    let mut from = 0;
    SEGMENTER.segment_str(run).skip(1).filter_map(move |end| {
        let word = run.get(from..end);
        from = end;
        word
    })
}

/// A word in lower case. Letters that are written in several ways are changed to one form.
fn fold_word(word: &str, language: Language) -> String {
    match language {
        Language::Tr => word.replace('İ', "i").replace('I', "ı").to_lowercase(),
        Language::Ar | Language::Fa => {
            // Vowel signs and the stretching mark are optional.
            let signs = |c: &char| !matches!(c, '\u{640}' | '\u{64b}'..='\u{652}' | '\u{200c}');
            let one_form = |c| match c {
                'ي' | 'ى' => 'ی',
                'ك' => 'ک',
                'أ' | 'إ' | 'آ' => 'ا',
                other => other,
            };
            let folded: String = word.chars().filter(signs).collect();
            if language == Language::Fa { folded.chars().map(one_form).collect() } else { folded }
        }
        _ => word.to_lowercase(),
    }
}

fn is_in_latin(language: Language) -> bool {
    use Language::{De, En, Es, Fr, Id, It, Nl, Pl, Pt, Tr, Vi};
    matches!(language, De | En | Es | Fr | Id | It | Nl | Pl | Pt | Tr | Vi)
}

/// The stemmer of a language, if there is one.
fn stemmer_of(language: Language) -> Option<tantivy::tokenizer::Language> {
    use tantivy::tokenizer::Language as Stems;
    Some(match language {
        Language::En => Stems::English,
        Language::Ar => Stems::Arabic,
        Language::De => Stems::German,
        Language::El => Stems::Greek,
        Language::Es => Stems::Spanish,
        Language::Fr => Stems::French,
        Language::It => Stems::Italian,
        Language::Nl => Stems::Dutch,
        Language::Pt => Stems::Portuguese,
        Language::Ru => Stems::Russian,
        Language::Tr => Stems::Turkish,
        _ => return None,
    })
}

/// Whether a word in lower case carries grammar in a language of the table.
#[must_use]
pub fn is_function_word_of(word: &str, language: Language) -> bool {
    entry(language).is_some() && FUNCTION_WORDS.get(&language).is_some_and(|words| words.contains(word))
}

/// Whether a word in lower case is one in which questions are put in a language of the table; English has its own list
/// (`question`).
#[must_use]
pub fn is_weak_word_of(word: &str, language: Language) -> bool {
    entry(language).is_some_and(|entry| entry.weak.split(' ').any(|weak| weak == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(language: Language, text: &str, expected: &[&str]) {
        let mut found: Vec<String> = Vec::new();
        StemAnalyzer::default().for_each_stem(text, language, |stem, is_word| {
            if is_word {
                found.push(stem.to_owned())
            }
        });
        assert_eq!(found, expected, "{language}: {text}");
    }

    /// The words follow ICU's dictionaries, the stems Snowball's published rules.
    #[test]
    fn words_are_those_of_the_language() {
        use Language::*;
        check(De, "Ich habe gestern die Hunde gesehen", &["gest", "hund", "geseh"]);
        check(Fr, "l'ami de mes amis", &["ami", "amis"]);
        check(Ru, "Вчера я видела собаку и собаки", &["вчер", "видел", "собак", "собак"]);
        check(Hi, "मेरी किताबें", &["किताबें"]);
        check(Pl, "Nie ma psa w domu", &["psa", "domu"]);
        check(Zh, "我们昨天去了北京大学", &["昨天", "去了", "北京", "大学"]);
        check(Zh, "我买了running鞋", &["买", "run", "鞋"]);
        check(Th, "ฉันไปตลาด", &["ตลาด"]);
        check(Ja, "東京に行きました", &["東京", "行き"]);
        check(Ko, "시장에 갔어요", &["시장에", "갔어요"]);
        check(Tr, "KIZ İstanbul'da", &["kız", "istanbul"]);
        check(Und, "הלכתי לשוק", &["הלכתי", "לשוק"]);
    }

    #[test]
    fn pairs_of_letters_stand_beside_the_words_of_text_without_spaces() {
        let mut splitter = StemAnalyzer::default();
        let mut pairs = Vec::new();
        splitter.for_each_stem("王小明喜欢火锅", Language::Zh, |stem, is_word| {
            if !is_word {
                pairs.push(stem.to_owned())
            }
        });
        assert!(pairs.iter().any(|pair| pair == "王小"), "{pairs:?}");
        assert!(!pairs.iter().any(|pair| pair == "火锅"), "a word is no second term: {pairs:?}");
        let question = splitter.stems("王小明在哪里？", Language::Zh);
        assert!(question.iter().any(|stem| stem == "小明"), "{question:?}");
    }

    #[test]
    fn lengths_are_in_words() {
        assert_eq!(word_count("one two  three"), 3);
        assert_eq!(word_count("我们昨天去了北京大学。"), 5);
        assert_eq!(word_count("ich bin für dich da"), 5);
        assert_eq!(word_count(""), 0);
    }

    #[test]
    fn names_are_found_inflected_and_in_text_without_spaces() {
        let has = |text: &str, language, name: &str| name_forms(text, language).iter().any(|form| form == name);
        assert!(has("Wo ist Annas Hund?", Language::De, "anna"));
        assert!(has("Где живёт собака Ивана?", Language::Ru, "иван"));
        assert!(has("小明住在哪里？", Language::Zh, "小明"));
        assert!(has("田中さんの犬", Language::Ja, "田中"));
        assert!(name_forms("Where is Anna's dog?", Language::En).is_empty());
    }
}
