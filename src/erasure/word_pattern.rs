//! Searches bytes for words, in the normal form of words.
//!
//! In: words. Out: where the first of them begins, however it is typed: as it is, as JSON escapes it, or as JSON inside
//! JSON does. A run of spaces, line breaks and other control characters is one space; punctuation must be the same. All
//! words are searched at once. They are held only in memory.

use std::collections::BTreeSet;

use aho_corasick::AhoCorasick;
use unicode_normalization::char::is_combining_mark;

use super::{
    PipelineError,
    storage_search::StoragePattern,
    text_normal_form::{BackslashReading, each_normal},
};

/// The longest words, in bytes: short enough, compared with one read, to be found across two reads.
const MAX_WORDS: usize = 64 << 10;
/// The most stored bytes for one byte of normal form: a pair of codes that JSON escapes three times.
const STORED_BYTES: usize = 18;
/// Bytes of spaces and of invisible characters between words that are still found across two reads.
const UNSEEN_BYTES: usize = 4 << 10;

/// Words to search for.
pub(super) struct WordPattern {
    finder: AhoCorasick,
    longest: usize,
}

impl WordPattern {
    /// Prepares the words for every form in which they may be stored.
    pub(super) fn new(words: &[String]) -> Result<Self, PipelineError> {
        let refused = |problem: &str| PipelineError::Forget { what: "--words".to_owned(), problem: problem.to_owned() };
        let mut needles = BTreeSet::new();
        for word in words {
            if word.len() > MAX_WORDS {
                return Err(refused(&format!("one of them has more than {MAX_WORDS} bytes; give a part of it")));
            }
            let forms = [BackslashReading::Escape, BackslashReading::Stand].map(|backslashes| {
                let form = normal(word.as_bytes(), backslashes);
                form.trim_ascii().to_vec()
            });
            if forms.iter().any(Vec::is_empty) {
                return Err(refused("one of them is empty, or nobody sees it; it would be everywhere"));
            }
            needles.extend(forms);
        }
        if needles.is_empty() {
            return Err(refused("none is given"));
        }
        let longest = needles.iter().map(Vec::len).max().unwrap_or(0) * STORED_BYTES + UNSEEN_BYTES;
        let finder = AhoCorasick::new(&needles).map_err(|e| refused(&e.to_string()))?;
        Ok(Self { finder, longest })
    }

    /// Where the first word begins, in normal form.
    fn first_in(&self, normal: &[u8]) -> Option<usize> {
        let mut found = self.finder.find_overlapping_iter(normal);
        found.find(|word| is_whole(&normal[word.start()..word.end()], &normal[word.end()..])).map(|word| word.start())
    }
}

/// Whether a word ends here: no mark follows, and nothing that completes a Korean syllable.
fn is_whole(word: &[u8], after: &[u8]) -> bool {
    if after.first().is_none_or(u8::is_ascii) {
        return true;
    }
    let Some(next) = std::str::from_utf8(&after[..after.len().min(4)]).map_or_else(
        |e| std::str::from_utf8(&after[..e.valid_up_to()]).ok().and_then(|text| text.chars().next()),
        |text| text.chars().next(),
    ) else {
        return true;
    };
    let is_jamo = |letter: char| matches!(letter, '\u{1100}'..='\u{11ff}');
    let last = std::str::from_utf8(word).ok().and_then(|word| word.chars().next_back());
    let completes = matches!(next, '\u{1160}'..='\u{11ff}') && last.is_some_and(is_jamo);
    !is_combining_mark(next) && !completes
}

/// Bytes in normal form, with one space for each run of spaces and control characters.
fn normal(bytes: &[u8], backslashes: BackslashReading) -> Vec<u8> {
    let mut normal = Vec::with_capacity(bytes.len());
    each_flat(bytes, backslashes, &mut |_, letter| push(&mut normal, letter));
    normal
}

fn push(to: &mut Vec<u8>, letter: char) {
    if letter.is_ascii() {
        to.push(letter as u8);
    } else {
        to.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

fn each_flat(bytes: &[u8], backslashes: BackslashReading, each: &mut impl FnMut(usize, char)) {
    let mut is_space = false;
    each_normal(bytes, backslashes, &mut |at, letter: char| {
        let was_space = is_space;
        is_space = letter == ' ' || letter.is_ascii_control() || (!letter.is_ascii() && letter.is_whitespace());
        match (is_space, was_space) {
            (true, true) => {}
            (true, false) => each(at, ' '),
            (false, _) => each(at, letter),
        }
    });
}

/// The offset in the bytes of a byte of their normal form.
fn place_of(bytes: &[u8], backslashes: BackslashReading, normal_at: usize) -> usize {
    let (mut read, mut place) = (0, None);
    each_flat(bytes, backslashes, &mut |at, letter| {
        if read >= normal_at {
            place.get_or_insert(at);
        }
        read += letter.len_utf8();
    });
    place.unwrap_or(0)
}

impl StoragePattern for WordPattern {
    fn longest(&self) -> usize {
        self.longest
    }

    fn find(&self, bytes: &[u8], found: &mut dyn FnMut(usize, Option<&str>)) {
        let first = |backslashes| {
            let at = self.first_in(&normal(bytes, backslashes))?;
            Some(place_of(bytes, backslashes, at))
        };
        // A backslash may stand for itself; then what follows it is no escape.
        let escapes = memchr::memchr(b'\\', bytes).and_then(|_| first(BackslashReading::Stand));
        if let Some(start) = first(BackslashReading::Escape).into_iter().chain(escapes).min() {
            found(start, None);
        }
    }

    fn has_vectors(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use unicode_normalization::UnicodeNormalization as _;

    use super::*;

    fn words(of: &[&str]) -> WordPattern {
        WordPattern::new(&of.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn first(words: &WordPattern, bytes: &str) -> Option<usize> {
        let mut first = None;
        words.find(bytes.as_bytes(), &mut |at, _| first = Some(at));
        first
    }

    #[test]
    fn a_few_words_and_many_are_found_alike() {
        let few = ["ababX", "no", "Zürich, \"the old\" town"];
        let others: Vec<String> = (0..500).map(|n| format!("word {n} of others")).collect();
        let many: Vec<&str> = few.into_iter().chain(others.iter().map(String::as_str)).collect();
        let (few, many) = (words(&few), words(&many));
        let far = "abab aba zürich, the ".repeat(40);
        for (text, at) in [
            ("ABABABx", Some(2)),
            ("ababab", None),
            ("n", None),
            ("yes, NO", Some(5)),
            ("in zürich, \\\"THE OLD\\\" town", Some(3)),
            ("in ZU\u{308}RICH,\n \"the old\" town", Some(3)),
            ("in zurich, \"the old\" town", None),
            ("", None),
        ] {
            for words in [&few, &many] {
                assert_eq!(first(words, text), at, "{text}");
                assert_eq!(first(words, &format!("{far}{text}")), at.map(|at| far.len() + at), "far: {text}");
            }
        }
    }

    #[test]
    fn words_are_found_in_every_form_in_which_a_text_may_be_stored() {
        for (asked, stored) in [
            ("José", "jose\u{301}"),
            ("Jose\u{301}", "JOSÉ"),
            ("ärzte", "Die ÄRZTE."),
            ("Straße", "STRASSE"),
            ("김민수", "\u{1100}\u{1175}\u{11b7}\u{1106}\u{1175}\u{11ab}\u{1109}\u{116e}"),
            ("Nguyễn Văn", "NGUYE\u{302}\u{303}N VA\u{306}N"),
            ("Γιώργος", "ο ΓΙΩΡΓΟΣ"),
            ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
            ("Ann Lee", "Ａｎｎ\u{3000}Ｌｅｅ"),
            ("office", "oﬃce"),
            ("Ann Lee", "An\u{200b}n\u{a0}\nL\u{ad}ee"),
            ("محمد", "ﻣﺤﻤﺪ"),
            ("İzmir", "izmir"),
            ("ガス", "ｶﾞｽ"),
            ("new", r"C:\new"),
            (r"C:\new", r"C:\\new"),
            ("🎉", "well 🎉!"),
        ] {
            let asked = words(&[asked]);
            for stored in [stored.to_owned(), stored.nfd().collect(), stored.nfc().collect(), stored.to_uppercase()] {
                let json = serde_json::json!({ "text": stored }).to_string();
                let codes: String = json.chars().map(code).collect();
                let codes_twice = codes.replace('\\', r"\\").replace('"', r#"\""#);
                for bytes in [&stored, &json, &format!("{json:?}"), &codes, &codes_twice] {
                    assert!(first(&asked, bytes).is_some(), "{bytes}");
                }
            }
        }
        for (asked, stored) in
            [("Jose", "José"), ("가", "각"), ("Straße", "Strase"), ("สม", "ส้ม"), ("Annlee", "Ann Lee")]
        {
            for stored in [stored.to_owned(), stored.nfd().collect::<String>()] {
                assert_eq!(first(&words(&[asked]), &stored), None, "{stored}");
            }
        }
    }

    /// A character as written by programs that escape all non-ASCII characters.
    fn code(letter: char) -> String {
        if letter.is_ascii() {
            return letter.to_string();
        }
        letter.encode_utf16(&mut [0; 2]).iter().map(|code| format!("\\u{code:04X}")).collect()
    }

    #[test]
    fn words_are_found_as_json_escapes_them_once_and_twice() {
        let text = "Zoë said \"ça va\" to 𐌰\nand 李.";
        let once = serde_json::Value::from(text).to_string();
        let twice = serde_json::Value::from(once.as_str()).to_string();
        // As written by programs that escape all non-ASCII characters.
        let codes = r#"Zo\u00eb said \"\u00E7a va\" to \uD800\udf30\nand \u674e."#;
        let codes_twice = codes.replace('\\', r"\\").replace('"', r#"\""#);
        for words in [words(&[text]), words(&[text, "another"]), {
            let others: Vec<String> = (0..500).map(|n| format!("word {n} of others")).collect();
            words(&others.iter().map(String::as_str).chain([text]).collect::<Vec<_>>())
        }] {
            for stored in [text, &once, &twice, codes, &codes_twice] {
                let at = stored.find('Z').unwrap();
                assert_eq!(first(&words, stored), Some(at), "{stored}");
                assert_eq!(first(&words, &stored.replace("va", "vas")), None, "{stored}");
            }
        }
        // Words that end with a quote or a backslash.
        for (word, stored) in [("\"no\"", r#"{\"text\":\"she said \\\"no\\\"\"}"#), ("C:\\", r#""C:\\new""#)] {
            assert!(first(&words(&[word]), stored).is_some(), "{word}");
        }
    }

    #[test]
    fn words_that_would_be_everywhere_or_never_found_are_refused() {
        assert!(WordPattern::new(&[]).is_err() && WordPattern::new(&[" ".to_owned()]).is_err());
        assert!(WordPattern::new(&["\u{200b}".to_owned()]).is_err());
        // Words longer than one read would never be found, and would count as gone.
        assert!(WordPattern::new(&["a".repeat(MAX_WORDS + 1)]).is_err());
    }
}
