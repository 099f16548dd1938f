//! What holds of a person: statements as the memory holds them, and the lines that they make together.
//!
//! In: the statements of memory records. Out: lines of a profile, each with the turns that say it and what superseded
//! it. `live_statement` is one statement; `profile_line` joins those that say the same, and says which one is over. The
//! dataflow keeps the lines (`dataflow::profile_view`).

pub(super) mod live_statement;
pub(super) mod profile_line;
