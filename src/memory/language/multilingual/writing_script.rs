//! Which script a letter belongs to.
//!
//! In: a character. Out: its script, if that helps to find the language. The ranges are blocks of Unicode; rare ones
//! are left out.

/// A script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WritingScript {
    Latin,
    Cyrillic,
    Greek,
    Arabic,
    Devanagari,
    Thai,
    Han,
    Kana,
    Hangul,
    /// Lao, Khmer, Burmese: without spaces, in languages that are not in the table.
    Unspaced,
    /// Any other script.
    Other,
}

/// The script of a letter; none for digits, marks and white space.
pub(super) fn script(c: char) -> Option<WritingScript> {
    Some(match c {
        'a'..='z' | 'A'..='Z' => WritingScript::Latin,
        '\0'..='\u{a9}' => return None,
        '\u{aa}'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' if c.is_alphabetic() => WritingScript::Latin,
        '\u{370}'..='\u{3ff}' | '\u{1f00}'..='\u{1fff}' if c.is_alphabetic() => WritingScript::Greek,
        '\u{400}'..='\u{52f}' if c.is_alphabetic() => WritingScript::Cyrillic,
        '\u{600}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
            if c.is_alphabetic() =>
        {
            WritingScript::Arabic
        }
        '\u{900}'..='\u{963}' | '\u{970}'..='\u{97f}' => WritingScript::Devanagari,
        '\u{e01}'..='\u{e4e}' => WritingScript::Thai,
        '\u{e80}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17d3}' if c.is_alphabetic() => {
            WritingScript::Unspaced
        }
        '\u{3005}'
        | '\u{3007}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}' => WritingScript::Han,
        '\u{3041}'..='\u{309f}'
        | '\u{30a1}'..='\u{30fa}'
        | '\u{30fc}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{ff66}'..='\u{ff9f}' => WritingScript::Kana,
        '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7a3}' => WritingScript::Hangul,
        _ if c.is_alphabetic() => WritingScript::Other,
        _ => return None,
    })
}

/// Whether a character belongs to a script without spaces between words: Chinese, Japanese, Thai and related scripts.
#[must_use]
pub fn is_unspaced(c: char) -> bool {
    c >= '\u{e01}'
        && (matches!(script(c), Some(WritingScript::Thai | WritingScript::Unspaced | WritingScript::Han | WritingScript::Kana))
            // Marks of these scripts that are not letters.
            || matches!(c, '\u{e31}'..='\u{e4e}' | '\u{eb1}'..='\u{ece}' | '\u{102b}'..='\u{103e}' | '\u{17b4}'..='\u{17d3}'))
}
