//! A token: 256 random bits, written as text.
//!
//! In: the system's random numbers. Out: a token to show once, and its hash to keep. The bits are random, so it is not
//! possible to find a token for a plain SHA-256 by trying, and the time that a lookup by the hash takes reveals
//! nothing.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use super::AccessError;

/// What every token begins with, so that repository scanners recognise it.
const PREFIX: &str = "ripplemem_";

/// SHA-256 of a token.
pub(super) type TokenHash = [u8; 32];

/// A token.
pub struct TokenSecret(String);

impl TokenSecret {
    /// A new one.
    ///
    /// # Errors
    /// [`AccessError::Invalid`] when the system has no random numbers.
    pub fn generate() -> Result<Self, AccessError> {
        let mut bits = [0_u8; 32];
        getrandom::fill(&mut bits)
            .map_err(|e| AccessError::Invalid(format!("the system provides no random numbers: {e}")))?;
        Ok(Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bits))))
    }

    /// The text, for the person who asked for it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The hash of a token as a request shows it.
pub(super) fn hash(token: &str) -> TokenHash {
    Sha256::digest(token.as_bytes()).into()
}

/// Lower-case hexadecimal digits.
pub(super) fn to_hex(hash: &TokenHash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash of 64 hexadecimal digits.
pub(super) fn from_hex(text: &str) -> Option<TokenHash> {
    let digits = text.as_bytes();
    let mut hash = [0_u8; 32];
    if digits.len() != 2 * hash.len() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_256_random_bits_and_shows_in_no_debug_text() {
        let (one, other) = (TokenSecret::generate().unwrap(), TokenSecret::generate().unwrap());
        assert_ne!(one.reveal(), other.reveal());
        let bits = one.reveal().strip_prefix(PREFIX).expect("the prefix");
        assert_eq!(URL_SAFE_NO_PAD.decode(bits).unwrap().len(), 32);
        assert!(!format!("{one:?}").contains(bits));
        let hash = hash(one.reveal());
        assert_eq!(from_hex(&to_hex(&hash)), Some(hash));
        assert_eq!((from_hex("00"), from_hex(&"é".repeat(32))), (None, None));
    }

    /// The example of FIPS 180-2.
    #[test]
    fn the_hash_is_sha_256() {
        assert_eq!(to_hex(&hash("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
