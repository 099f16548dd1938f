//! The tenant.
//!
//! In: a name. Out: a checked name, and its identity in the dataflow. Nothing is ever
//! joined across banks.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FieldError, limits::MAX_BANK_CHARACTERS};

/// A tenant: 1 to 128 characters, segments of `[A-Za-z0-9._-]` joined by `/`.
///
/// No segment is empty, `.` or `..`, so that a prefix always matches whole segments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(extend("pattern" = "^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$", "minLength" = 1, "maxLength" = 128))]
pub struct Bank(Box<str>);

impl Bank {
    /// Checks a bank's name.
    ///
    /// # Errors
    /// [`FieldError`] that names the offending segment.
    pub fn parse(name: &str) -> Result<Self, FieldError> {
        const REMEDY: &str = "use 1 to 128 characters: segments of letters, digits, '.', '_' or '-', joined by '/'";
        if name.is_empty() || name.len() > MAX_BANK_CHARACTERS {
            return Err(FieldError::new("bank", format!("{} characters long", name.chars().count()), REMEDY));
        }
        for segment in name.split('/') {
            let plain = segment.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
            if segment.is_empty() || segment == "." || segment == ".." || !plain {
                return Err(FieldError::new("bank", format!("segment {segment:?} of {name:?} is not allowed"), REMEDY));
            }
        }
        Ok(Self(name.into()))
    }

    /// The name as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `prefix`, or begins with its segments.
    #[must_use]
    pub fn is_within(&self, prefix: &str) -> bool {
        self.0.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The bank's identity in the dataflow: 128 bits of the BLAKE3 hash of its name.
    #[must_use]
    pub fn key(&self) -> BankKey {
        let hash = blake3::hash(self.0.as_bytes());
        let mut low = [0u8; 16];
        low.copy_from_slice(&hash.as_bytes()[..16]);
        BankKey(u128::from_le_bytes(low))
    }
}

impl fmt::Display for Bank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Bank {
    type Error = FieldError;
    fn try_from(name: String) -> Result<Self, FieldError> {
        Self::parse(&name)
    }
}

impl From<Bank> for String {
    fn from(bank: Bank) -> Self {
        bank.0.into()
    }
}

/// A bank inside the dataflow: 128 bits, so that no two tenants collide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BankKey(pub u128);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_segments() {
        for good in ["a", "acme/support", "A.b_c-9", "a/b/c", &"x".repeat(128)] {
            assert_eq!(Bank::parse(good).map(String::from).as_deref(), Ok(good));
        }
        for bad in ["", "/", "a/", "/a", "a//b", ".", "..", "a/../b", "a b", "ü", "a\n", &"x".repeat(129)] {
            let error = Bank::parse(bad).expect_err(bad).to_string();
            assert!(error.starts_with("bank: ") && error.contains("use 1 to 128 characters"), "{error}");
        }
    }
}
