//! The limits of what may enter the system, and the version of its records.

/// The version that every record of every topic carries in `schema`.
pub const SCHEMA_VERSION: u32 = 1;
/// The oldest version of a memory record that can be read: the previous one, if there is one.
pub const OLDEST_SCHEMA_VERSION: u32 = if SCHEMA_VERSION > 1 { SCHEMA_VERSION - 1 } else { 1 };
/// Longest text of a turn, in bytes of UTF-8.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// Longest question, in bytes of UTF-8. A sentence embedding model reads only its first 256 tokens; the rest costs time
/// and changes nothing.
pub const MAX_QUESTION_BYTES: usize = 8_192;
/// Most near misses that a question may ask for.
pub const MAX_NEAR_MISSES: u32 = 200;
/// Longest name of a bank, in characters; each of them is one byte.
pub const MAX_BANK_CHARACTERS: usize = 128;
/// Longest turn id, speaker, session or thread name, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 256;
/// The maximum number of attachments in a turn.
pub const MAX_ATTACHMENTS: usize = 100;
/// Longest address of an attachment, in bytes of UTF-8.
pub const MAX_URL_BYTES: usize = 8_192;
/// Largest metadata of a turn, in bytes of its JSON form.
pub const MAX_METADATA_BYTES: usize = 64 << 10;
/// Most levels of objects and arrays in the metadata of a turn. A record holds it several levels down, and no parser
/// here reads more than 128.
pub const MAX_METADATA_DEPTH: usize = 32;
/// Largest turn, in bytes of its JSON form.
pub const MAX_TURN_BYTES: usize = 2 << 20;
/// Longest origin and longest reason of a dead letter, in bytes of UTF-8.
pub(super) const MAX_REASON_BYTES: usize = 4_096;
/// First year of the time of a turn.
pub const FIRST_YEAR: i16 = 1900;
/// Last year of the time of a turn.
pub const LAST_YEAR: i16 = 2199;
