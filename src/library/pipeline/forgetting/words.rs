//! Words that are looked for in bytes, without regard to the case of ASCII letters.
//!
//! In: words. Out: where the first of them begins, as it is, as JSON escapes it, or as JSON inside JSON does. A few
//! words are looked for by the first bytes of each, in every case, with vector instructions; many of them all at once,
//! byte by byte. The words are held in memory alone.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, Span, packed};

use super::{PipelineError, search::Needles};

/// The longest words, in bytes: so far below what is read at once that they are found across two reads, also where each
/// byte is escaped twice.
const LONGEST_WORDS: usize = 64 << 10;
/// The most words that are looked for by their first bytes.
const FEW: usize = 64;
/// First bytes of words that are looked for in every case: fewer of them where that lets more words be looked for so.
const HEAD_BYTES: [usize; 2] = [4, 3];

/// Words that are looked for.
pub(super) struct Words {
    needles: BTreeSet<String>,
    finder: Finder,
    longest: usize,
}

/// What finds words.
enum Finder {
    /// Where one may begin.
    Heads(packed::Searcher),
    /// Where one is.
    Whole(AhoCorasick),
}

impl Words {
    /// As they are, and as JSON escapes them once and twice.
    pub(super) fn new(words: &[String]) -> Result<Self, PipelineError> {
        let refused = |problem: String| PipelineError::Forget { what: "--words".to_owned(), problem };
        let mut needles = BTreeSet::new();
        for word in words.iter().map(|word| word.trim()) {
            if word.is_empty() {
                return Err(refused("one of them is empty; it would be everywhere".to_owned()));
            }
            if word.len() > LONGEST_WORDS {
                return Err(refused(format!("one of them has more than {LONGEST_WORDS} bytes; give a part of it")));
            }
            let once = escaped(word);
            let in_ascii = with_codes(&once);
            needles.extend([escaped(&once), escaped(&in_ascii), once, in_ascii, word.to_owned()]);
        }
        if needles.is_empty() {
            return Err(refused("none is given".to_owned()));
        }
        let longest = needles.iter().map(String::len).max().unwrap_or(0);
        let finder = match HEAD_BYTES.into_iter().find_map(|bytes| heads_of(&needles, bytes)) {
            Some(heads) => Finder::Heads(heads),
            None => {
                let words = AhoCorasick::builder().ascii_case_insensitive(true).build(&needles);
                Finder::Whole(words.map_err(|e| refused(e.to_string()))?)
            }
        };
        Ok(Self { needles, finder, longest })
    }

    /// Where the first word begins, of the places where one may.
    fn first_of(&self, heads: &packed::Searcher, bytes: &[u8]) -> Option<usize> {
        let mut from = 0;
        while let Some(head) = heads.find_in(bytes, Span { start: from, end: bytes.len() }) {
            if self.is_begun_by(&bytes[head.start()..]) {
                return Some(head.start());
            }
            from = head.start() + 1;
        }
        None
    }

    fn is_begun_by(&self, bytes: &[u8]) -> bool {
        let is_here = |needle: &String| {
            bytes.get(..needle.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(needle.as_bytes()))
        };
        self.needles.iter().any(is_here)
    }
}

/// A text as JSON holds it between quotes.
fn escaped(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.get(1..json.len() - 1).unwrap_or_default().to_owned()
}

/// A text with an escape for each code of what is not ASCII, as many programs write JSON.
fn with_codes(text: &str) -> String {
    let (mut codes, mut out) = ([0; 2], String::new());
    for letter in text.chars() {
        if letter.is_ascii() {
            out.push(letter);
        } else {
            letter.encode_utf16(&mut codes).iter().for_each(|code| out.push_str(&format!("\\u{code:04x}")));
        }
    }
    out
}

/// Finds the first bytes of words in every case; none where they are too many for that, or the processor cannot do it.
fn heads_of(needles: &BTreeSet<String>, bytes: usize) -> Option<packed::Searcher> {
    if needles.len() > FEW {
        return None;
    }
    let mut heads = BTreeSet::new();
    for needle in needles {
        let mut cases: Vec<Vec<u8>> = vec![Vec::new()];
        for byte in needle.bytes().take(bytes) {
            let in_cases = BTreeSet::from([byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]);
            let longer = |head: &Vec<u8>| {
                in_cases.iter().map(|byte| [head.as_slice(), &[*byte]].concat()).collect::<Vec<Vec<u8>>>()
            };
            cases = cases.iter().flat_map(longer).collect();
        }
        heads.extend(cases);
    }
    packed::Searcher::new(&heads)
}

impl Needles for Words {
    fn longest(&self) -> usize {
        self.longest
    }

    fn find(&self, bytes: &[u8], found: &mut dyn FnMut(usize, Option<&str>)) {
        let first = match &self.finder {
            Finder::Heads(heads) => self.first_of(heads, bytes),
            Finder::Whole(words) => words.find(bytes).map(|word| word.start()),
        };
        if let Some(start) = first {
            found(start, None);
        }
    }

    fn has_vectors(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(of: &[&str]) -> Words {
        Words::new(&of.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).unwrap()
    }

    fn first(words: &Words, bytes: &str) -> Option<usize> {
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
        assert!(matches!(many.finder, Finder::Whole(_)));
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        assert!(matches!(few.finder, Finder::Heads(_)));
        let far = "abab aba zürich, the ".repeat(40);
        for (text, at) in [
            ("ABABABx", Some(2)),
            ("ababab", None),
            ("n", None),
            ("yes, NO", Some(5)),
            ("in zürich, \\\"THE OLD\\\" town", Some(3)),
            ("in zÜrich, \"the old\" town", None),
            ("", None),
        ] {
            for words in [&few, &many] {
                assert_eq!(first(words, text), at, "{text}");
                assert_eq!(first(words, &format!("{far}{text}")), at.map(|at| far.len() + at), "far: {text}");
            }
        }
    }

    #[test]
    fn words_are_found_as_json_escapes_them_once_and_twice() {
        let text = "Zoë said \"ça va\" to 𐌰\nand 李.";
        let once = serde_json::Value::from(text).to_string();
        let twice = serde_json::Value::from(once.as_str()).to_string();
        // As programs write it that escape whatever is not ASCII.
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
        // A word that ends with a quote or a backslash.
        for (word, stored) in [("\"no\"", r#"{\"text\":\"she said \\\"no\\\"\"}"#), ("C:\\", r#""C:\\new""#)] {
            assert!(first(&words(&[word]), stored).is_some(), "{word}");
        }
    }

    #[test]
    fn words_that_would_be_everywhere_or_never_found_are_refused() {
        assert!(Words::new(&[]).is_err() && Words::new(&[" ".to_owned()]).is_err());
        // Longer words than are read at once would never be found, and count as gone.
        assert!(Words::new(&["a".repeat(LONGEST_WORDS + 1)]).is_err());
    }
}
