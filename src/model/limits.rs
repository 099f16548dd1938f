//! The limits of what may enter the system, and the version of its records.

/// The version that every record of every topic carries in `schema`.
pub const SCHEMA_VERSION: u32 = 1;
/// The oldest version of a memory record that is read: the one before, where there is one.
pub const OLDEST_SCHEMA_VERSION: u32 = if SCHEMA_VERSION > 1 { SCHEMA_VERSION - 1 } else { 1 };
/// Longest text of a turn, in bytes of UTF-8.
pub const MAX_TEXT_BYTES: usize = 65_536;
/// Longest turn id, speaker, session or thread name, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 256;
/// First year of the time of a turn.
pub const FIRST_YEAR: i16 = 1900;
/// Last year of the time of a turn.
pub const LAST_YEAR: i16 = 2199;
