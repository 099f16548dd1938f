//! Which messages were read before.
//!
//! In: each message's key, a hash of what is known of it, and the file in which it stands. Out: whether it is new, has
//! changed, is as it was, or is a copy of a message in another file. A message belongs to the file in which it was read
//! first; another file's counts instead once that file is gone, or if there the person kept what the first one gave up.
//! Memory grows by about 32 bytes for each message.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64;

/// What is known of a message.
#[derive(Clone, Copy)]
struct KnownMessage {
    content: u32,
    file: u32,
    /// In which reading it was last seen.
    reading: u32,
    is_kept: bool,
}

/// The messages so far.
#[derive(Default)]
pub(super) struct KnownMessages {
    by_key: HashMap<u64, KnownMessage>,
    /// Files that no longer exist.
    gone: HashSet<u32>,
    reading: u32,
}

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageSighting {
    /// It was not read before.
    New,
    /// It was read before with other words, or in a branch that was given up.
    Changed,
    /// It was read before as it is.
    Same,
    /// It is a copy of another file's message, or of one before it in this file.
    Copy,
}

impl KnownMessages {
    /// Begins to read files, some of which may have been read before.
    pub(super) fn begin(&mut self) {
        self.reading = self.reading.wrapping_add(1);
    }

    /// Notes whether a file exists.
    pub(super) fn note(&mut self, file: u32, exists: bool) {
        if exists {
            self.gone.remove(&file);
        } else {
            self.gone.insert(file);
        }
    }

    /// Takes a message, and says what it is. `is_kept` says whether the person kept it.
    pub(super) fn see(&mut self, key: &str, content: &[u8], file: u32, is_kept: bool) -> MessageSighting {
        let reading = self.reading;
        let now = KnownMessage { content: (xxh3_64(content) >> 32) as u32, file, reading, is_kept };
        let key = xxh3_64(key.as_bytes());
        let Some(known) = self.by_key.get(&key).copied() else {
            self.by_key.insert(key, now);
            return MessageSighting::New;
        };
        let is_own = known.file == file && known.reading != reading;
        if !is_own && (known.is_kept || !is_kept) && !self.gone.contains(&known.file) {
            return MessageSighting::Copy;
        }
        self.by_key.insert(key, now);
        if known.content == now.content { MessageSighting::Same } else { MessageSighting::Changed }
    }
}

#[cfg(test)]
mod tests {
    use super::{MessageSighting::*, *};

    #[test]
    fn a_message_belongs_to_its_first_file() {
        let mut known = KnownMessages::default();
        let see = |known: &mut KnownMessages, text: &str, file| known.see("k", text.as_bytes(), file, true);
        known.begin();
        assert_eq!([see(&mut known, "a", 1), see(&mut known, "a", 1), see(&mut known, "b", 2)], [New, Copy, Copy]);
        known.begin();
        assert_eq!([see(&mut known, "b", 2), see(&mut known, "a", 1)], [Copy, Same]);
        known.begin();
        assert_eq!(see(&mut known, "a, longer", 1), Changed);
        known.note(1, false);
        known.begin();
        assert_eq!([see(&mut known, "a, longer", 3), see(&mut known, "b", 2)], [Same, Copy]);
    }

    #[test]
    fn a_branch_that_is_kept_anywhere_is_kept() {
        let mut known = KnownMessages::default();
        known.begin();
        assert_eq!(known.see("k", b"given up", 1, false), New);
        assert_eq!(known.see("k", b"given up", 2, false), Copy);
        assert_eq!(known.see("k", b"kept", 3, true), Changed);
        known.begin();
        assert_eq!(known.see("k", b"given up", 1, false), Copy);
    }
}
