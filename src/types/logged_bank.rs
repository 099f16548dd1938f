//! How log lines name a bank.
//!
//! In: a bank. Out: its name if the settings allow that, otherwise a keyed hash, with which a reader of the log can
//! distinguish banks without learning their names.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::OnceLock,
};

use crate::model::Bank;

/// How banks are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BankNaming {
    /// By their names.
    Plain,
    /// By a hash with this key.
    Hashed([u8; 32]),
}

static NAMES: OnceLock<BankNaming> = OnceLock::new();

/// Sets how this process names banks; only the first call counts. Without a call, banks are hashed with a random key.
pub fn set_bank_naming(names: BankNaming) {
    // A second service in the same process uses the first one's settings.
    let _ = NAMES.set(names);
}

/// A bank in a log line.
#[derive(Debug, Clone, Copy)]
pub struct LoggedBank<'a>(pub &'a Bank);

impl fmt::Display for LoggedBank<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.get_or_init(|| BankNaming::Hashed(random_key())) {
            BankNaming::Plain => f.write_str(self.0.as_str()),
            BankNaming::Hashed(key) => f.write_str(&hashed(self.0, key)),
        }
    }
}

fn hashed(bank: &Bank, key: &[u8; 32]) -> String {
    let hash = blake3::keyed_hash(key, bank.as_str().as_bytes()).to_hex();
    format!("#{}", hash.get(..12).unwrap_or_default())
}

fn random_key() -> [u8; 32] {
    // The standard library's keys are random, but it shows only hashes made with them.
    let words = [0_u64, 1, 2, 3].map(|word| RandomState::new().hash_one(word));
    let mut key = [0; 32];
    key.chunks_exact_mut(8).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_tells_banks_apart_and_depends_on_the_key() {
        let bank = |name: &str| Bank::parse(name).unwrap();
        let (key, other) = ([1; 32], [2; 32]);
        let ann = hashed(&bank("ann"), &key);
        assert_eq!(ann, hashed(&bank("ann"), &key));
        assert_eq!(ann.len(), 13);
        assert!(ann != hashed(&bank("anna"), &key) && ann != hashed(&bank("ann"), &other));
        assert_ne!(random_key(), random_key());
        assert!(!LoggedBank(&bank("ann")).to_string().contains("ann"), "nobody has allowed names");
    }
}
