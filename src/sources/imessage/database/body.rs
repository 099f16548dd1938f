//! Finds the words of a message that are archived in `attributedBody`.
//!
//! In: any bytes. Out: the first `NSString` of Apple's typedstream, or why there is none. Never panics, and never reads
//! past the end. A string of more than [`MAX_MESSAGE_BYTES`] is cut to its beginning.

use crate::lines::MAX_MESSAGE_BYTES;

/// The beginning of a typedstream: its version, its name, and the system's version.
const HEADER: &[u8] = b"\x04\x0bstreamtyped";
/// The name of the class whose first object holds the words. `NSMutableString` inherits from it, so its
/// archive has this name, too.
const CLASS: &[u8] = b"\x08NSString";
/// Comes before the words: a new type, one letter long, `+` for bytes.
const BYTES: &[u8] = b"\x84\x01+";
/// How many bytes after the class's name the words may begin.
const NEAR: usize = 16;
/// Comes after the words: the end of the object.
const END: u8 = 0x86;

/// Why no words were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ImessageBodyError {
    #[error("attributedBody is not a typedstream; the message cannot be read")]
    Header,
    #[error("attributedBody holds no string; the message cannot be read")]
    NoString,
    #[error("attributedBody ends before its string does; the message cannot be read")]
    Cut,
    #[error("the string of attributedBody is not UTF-8; the message cannot be read")]
    Utf8,
}

/// The words of an archived string.
///
/// # Errors
/// [`ImessageBodyError`] when there are none that can be read.
pub(super) fn words(body: &[u8]) -> Result<&str, ImessageBodyError> {
    let rest = body.strip_prefix(HEADER).ok_or(ImessageBodyError::Header)?;
    let rest = behind(rest, CLASS, rest.len()).ok_or(ImessageBodyError::NoString)?;
    let rest = behind(rest, BYTES, NEAR).ok_or(ImessageBodyError::NoString)?;
    let (length, rest) = length(rest).ok_or(ImessageBodyError::Cut)?;
    if length > MAX_MESSAGE_BYTES {
        return beginning(rest.get(..MAX_MESSAGE_BYTES).ok_or(ImessageBodyError::Cut)?);
    }
    let (words, rest) = rest.split_at_checked(length).ok_or(ImessageBodyError::Cut)?;
    if rest.first() != Some(&END) {
        return Err(ImessageBodyError::Cut);
    }
    std::str::from_utf8(words).map_err(|_| ImessageBodyError::Utf8)
}

/// A text whose last character may be cut, without that character.
fn beginning(text: &[u8]) -> Result<&str, ImessageBodyError> {
    let end = match std::str::from_utf8(text) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => text.len(),
    };
    std::str::from_utf8(text.get(..end).unwrap_or(text)).map_err(|_| ImessageBodyError::Utf8)
}

/// The bytes after the first `mark` that begins within `near` bytes.
fn behind<'a>(bytes: &'a [u8], mark: &[u8], near: usize) -> Option<&'a [u8]> {
    let at = bytes.windows(mark.len()).take(near).position(|window| window == mark)?;
    bytes.get(at + mark.len()..)
}

/// A length, and the bytes after it. A length is one byte, or `0x81` and two bytes, or `0x82` and four bytes, lowest
/// first.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    match first {
        0..=0x7f => Some((usize::from(*first), rest)),
        0x81 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            Some((usize::from(u16::from_le_bytes(*length)), rest))
        }
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<4>()?;
            Some((usize::try_from(u32::from_le_bytes(*length)).ok()?, rest))
        }
        _ => None,
    }
}
