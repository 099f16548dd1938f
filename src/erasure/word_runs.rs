//! Runs of words in bytes, whatever the bytes are part of: text, JSON, a page of a table.
//!
//! In: bytes. Out: the words, in normal form, and a keyed hash of each run of the last three to eight of them. A word
//! is adjacent letters and digits, with their marks; in a script without spaces, each character is a word. Text gives
//! the same words however it was typed, and however often JSON escapes it. The form of words from before there was a
//! normal form is read, too, for fingerprints in that form.

use unicode_normalization::char::is_combining_mark;

use super::text_normal_form::{BackslashReading, each_normal};
use types::model::is_word_by_itself;

/// Words in the longest run.
pub(super) const RUN: usize = 8;
/// Words in the shortest run.
pub(super) const MIN: usize = 3;

/// The base of the rolling hash, and its powers.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
const POWERS: [u64; RUN + 1] = {
    let (mut powers, mut at) = ([1u64; RUN + 1], 1);
    while at <= RUN {
        powers[at] = powers[at - 1].wrapping_mul(BASE);
        at += 1;
    }
    powers
};

/// Calls `each` with the offset of each word, and its UTF-8 in normal form.
pub(super) fn each_word(bytes: &[u8], mut each: impl FnMut(usize, &[u8])) {
    let (mut start, mut word, mut is_alone) = (0, Vec::<u8>::new(), false);
    each_normal(bytes, BackslashReading::Escape, &mut |at, letter: char| {
        let is_mark = !letter.is_ascii() && !word.is_empty() && is_combining_mark(letter);
        if !is_mark {
            if !word.is_empty() && (is_alone || !letter.is_alphanumeric() || is_word_by_itself(letter)) {
                each(start, &word);
                word.clear();
            }
            if !letter.is_alphanumeric() {
                return;
            }
            if word.is_empty() {
                start = at;
            }
            is_alone = is_word_by_itself(letter);
        }
        if letter.is_ascii() {
            word.push(letter as u8);
        } else {
            word.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
    });
    if !word.is_empty() {
        each(start, &word);
    }
}

/// Calls `each` with the offset of each character, and the character if it is a letter or digit; `None` for any other
/// one. An escape of JSON is read as the character that it stands for.
fn each_character(bytes: &[u8], mut each: impl FnMut(usize, Option<char>)) {
    let mut at = 0;
    while let Some(first) = bytes.get(at) {
        let (letter, length) = match *first {
            byte if byte.is_ascii_alphanumeric() => (Some(char::from(byte)), 1),
            b'\\' => escaped(&bytes[at..]),
            byte if byte.is_ascii() => (None, 1),
            _ => beyond_ascii(&bytes[at..]),
        };
        each(at, letter);
        at += length;
    }
}

/// As [`each_word`], with the words in the earlier form: in lower case, as they were typed, without marks.
pub(super) fn each_word_as_typed(bytes: &[u8], mut each: impl FnMut(usize, &[u8])) {
    let (mut start, mut word) = (0, Vec::<u8>::new());
    each_character(bytes, |at, letter| {
        if !word.is_empty() && letter.is_none_or(is_word_by_itself) {
            each(start, &word);
            word.clear();
        }
        if let Some(letter) = letter {
            if word.is_empty() {
                start = at;
            }
            if letter.is_ascii() {
                word.push(letter.to_ascii_lowercase() as u8);
            } else {
                letter.to_lowercase().for_each(|c| word.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()));
            }
            if is_word_by_itself(letter) {
                each(start, &word);
                word.clear();
            }
        }
    });
    if !word.is_empty() {
        each(start, &word);
    }
}

/// The escaped character at any number of backslashes, as in JSON inside JSON, and how many bytes it takes.
fn escaped(bytes: &[u8]) -> (Option<char>, usize) {
    let slashes = bytes.iter().take_while(|byte| **byte == b'\\').count();
    match bytes.get(slashes) {
        Some(b'n' | b'r' | b't' | b'b' | b'f') => (None, slashes + 1),
        Some(b'u') => {
            let Some(code) = bytes.get(slashes..).and_then(code_of) else { return (None, slashes) };
            let after = bytes.get(slashes + 5..).unwrap_or_default();
            let more = after.iter().take_while(|byte| **byte == b'\\').count();
            // A character beyond the first 65,536 is a pair of escapes.
            let (code, length) = match (code, after.get(more..).and_then(code_of)) {
                (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) if more > 0 => {
                    (0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00), slashes + 5 + more + 5)
                }
                _ => (code, slashes + 5),
            };
            (char::from_u32(code).filter(|c| c.is_alphanumeric()), length)
        }
        _ => (None, slashes),
    }
}

/// The code of an escape after its backslashes.
fn code_of(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The multi-byte letter at the start of these bytes, and how many bytes it takes.
fn beyond_ascii(bytes: &[u8]) -> (Option<char>, usize) {
    let length = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return (None, 1),
    };
    let text = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
    match text.and_then(|text| text.chars().next()) {
        Some(letter) => (Some(letter).filter(|c| c.is_alphanumeric()), length),
        None => (None, 1),
    }
}

/// ASCII letters, in one case, and digits.
const ALPHABET: u32 = 36;

/// Hashes of words. They say nothing to anyone without the key.
pub(super) struct WordHasher {
    key: [u8; 32],
    /// The hashes of one and of two ASCII letters or digits: compressed bytes are full of them.
    short: Vec<u64>,
}

impl WordHasher {
    pub(super) fn new(key: [u8; 32]) -> Self {
        let letters = || (0..ALPHABET).filter_map(|letter| char::from_digit(letter, ALPHABET)).map(|c| c as u8);
        let of_one = letters().map(|one| hash(&key, &[one]));
        let of_two = letters().flat_map(|one| letters().map(move |two| [one, two])).map(|two| hash(&key, &two));
        let short = of_one.chain(of_two).collect();
        Self { key, short }
    }

    fn of(&self, word: &[u8]) -> u64 {
        place_of_short(word).and_then(|place| self.short.get(place)).copied().unwrap_or_else(|| hash(&self.key, word))
    }
}

/// The index of the hash of a short word.
fn place_of_short(word: &[u8]) -> Option<usize> {
    let letter = |byte: u8| char::from(byte).to_digit(ALPHABET);
    let place = match *word {
        [one] => letter(one)?,
        [one, two] => ALPHABET + ALPHABET * letter(one)? + letter(two)?,
        _ => return None,
    };
    Some(place as usize)
}

fn hash(key: &[u8; 32], word: &[u8]) -> u64 {
    let hash = blake3::keyed_hash(key, word);
    let (first, _) = hash.as_bytes().split_at(8);
    first.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The last words of some bytes.
pub(super) struct RecentWordBuffer<'h> {
    hashes: &'h WordHasher,
    words: [HashedWord; RUN],
    /// The number of words so far.
    count: usize,
    /// The hashes of the last words, by their number.
    sums: [u64; RUN + 1],
}

#[derive(Default)]
struct HashedWord {
    start: usize,
    hash: u64,
    text: Vec<u8>,
}

impl<'h> RecentWordBuffer<'h> {
    /// A buffer without words.
    pub(super) fn new(hashes: &'h WordHasher) -> Self {
        Self { hashes, words: Default::default(), count: 0, sums: [0; RUN + 1] }
    }

    /// Adds a word that begins at `start`.
    pub(super) fn push(&mut self, start: usize, text: &[u8]) {
        let hash = self.hashes.of(text);
        for (length, power) in POWERS.iter().enumerate().skip(MIN) {
            let leaving = if self.count < length { 0 } else { self.back(length).hash.wrapping_mul(*power) };
            self.sums[length] = self.sums[length].wrapping_mul(BASE).wrapping_add(hash).wrapping_sub(leaving);
        }
        let word = &mut self.words[self.count % RUN];
        (word.start, word.hash) = (start, hash);
        word.text.clear();
        word.text.extend_from_slice(text);
        self.count += 1;
    }

    /// The word `length` words before the next one.
    fn back(&self, length: usize) -> &HashedWord {
        &self.words[(self.count - length) % RUN]
    }

    /// How many words there were.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The hash of the last `length` words, from [`MIN`] to [`RUN`]; `None` if there are fewer.
    pub(super) fn hash_of_last(&self, length: usize) -> Option<u32> {
        (self.count >= length).then(|| (self.sums[length] >> 32) as u32)
    }

    /// The offset of the last `length` words, and their text with a space between two words.
    pub(super) fn last(&self, length: usize) -> (usize, Vec<u8>) {
        let words: Vec<&[u8]> = (1..=length).rev().map(|back| self.back(back).text.as_slice()).collect();
        (self.back(length).start, words.join(&b' '))
    }
}

#[cfg(test)]
mod tests {
    use unicode_normalization::UnicodeNormalization as _;

    use super::*;

    fn words(bytes: &[u8]) -> Vec<String> {
        let (mut words, mut typed) = (Vec::new(), Vec::new());
        each_word(bytes, |_, word| words.push(String::from_utf8(word.to_vec()).unwrap().nfc().collect()));
        each_word_as_typed(bytes, |_, word| typed.push(String::from_utf8(word.to_vec()).unwrap()));
        assert_eq!(words, typed);
        words
    }

    #[test]
    fn text_gives_the_same_words_as_it_is_and_as_json_escapes_it() {
        let text = "She said:\n\"Über C:\\new, OK?\"\tNo\u{1}\u{e9}t\u{e9} 你好.";
        let expected = ["she", "said", "über", "c", "ew", "ok", "no", "été", "你", "好"];
        assert_eq!(words(text.as_bytes()), expected);
        let once = serde_json::Value::from(text).to_string();
        let twice = serde_json::Value::from(once.as_str()).to_string();
        assert_eq!(words(once.as_bytes()), expected);
        assert_eq!(words(twice.as_bytes()), expected);
        assert_eq!(words(br"\u00e9t\u00E9 \\u4f60\u597d"), ["été", "你", "好"]);
        assert_eq!(
            words(r"\ud840\udc00x \\uD800\\uDF30 \ud83d\ude00b \ud840 c 𠀀".as_bytes()),
            ["𠀀", "x", "𐌰", "b", "c", "𠀀"]
        );
        assert_eq!(words(b"\xff\xfeab\xc3 c\xe4\xbd"), ["ab", "c"]);
    }

    #[test]
    fn marks_belong_to_their_letters_and_all_forms_of_a_word_are_one() {
        let read = |text: &str| {
            let mut words = Vec::new();
            each_word(text.as_bytes(), |at, word| words.push((at, String::from_utf8(word.to_vec()).unwrap())));
            words
        };
        let words = |text: &str| read(text).into_iter().map(|(_, word)| word).collect::<Vec<_>>();
        for (one, other) in [
            ("José đã gặp Nguyễn", "JOSE\u{301} ĐA\u{303} GA\u{323}\u{306}P Nguye\u{302}\u{303}n"),
            ("각하 김", "\u{1100}\u{1161}\u{11a8}\u{1112}\u{1161} \u{1100}\u{1175}\u{11b7}"),
            ("ガス, Straße", "ｶﾞｽ STRAS\u{ad}SE"),
            ("สมชาย ก็มา", "สมชาย\u{200b} ก็มา"),
        ] {
            assert_eq!(words(one), words(other));
        }
        assert_eq!(read("Jose\u{301} bo"), [(0, "jose\u{301}".to_owned()), (7, "bo".to_owned())]);
        assert_eq!(words("ส้ม"), ["ส้", "ม"]);
        assert_ne!(words("José"), words("Jose"));
    }

    #[test]
    fn a_run_has_one_hash_wherever_it_stands() {
        let hashes = WordHasher::new([7; 32]);
        let run = |text: &str, length: usize| {
            let mut last = RecentWordBuffer::new(&hashes);
            each_word(text.as_bytes(), |start, word| last.push(start, word));
            (last.hash_of_last(length), last.last(length))
        };
        for length in MIN..=RUN {
            let (alone, (_, text)) = run("One two three four five six seven eight", length);
            let far = format!("{}one TWO three, four five six seven eight", "zero and more ".repeat(40));
            let (inside, (start, same)) = run(&far, length);
            assert_eq!((alone, &text), (inside, &same));
            assert!(far[start..].to_lowercase().replace(',', "") == String::from_utf8(text).unwrap());
            assert_ne!(alone, run("One two three four five six seven nine", length).0);
        }
        assert_eq!(RecentWordBuffer::new(&hashes).hash_of_last(MIN), None);
    }

    #[test]
    fn the_hashes_of_short_words_are_those_of_the_key() {
        let hashes = WordHasher::new([7; 32]);
        for word in ["0", "9", "a", "z", "00", "az", "z9", "zz", "é", "ée", "abc"] {
            assert_eq!(hashes.of(word.as_bytes()), hash(&[7; 32], word.as_bytes()), "{word}");
            assert_eq!(place_of_short(word.as_bytes()).is_some(), word.is_ascii() && word.len() < 3, "{word}");
        }
        assert_eq!(hashes.short.len(), 36 + 36 * 36);
    }
}
