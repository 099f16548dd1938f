//! What a drain returns: the windows that changed, and the records to write for each.

use types::model::{SessionTitle, Turn, Window};

/// The reserved session of deletions whose turn has not arrived. It has one window, at ordinal 0, which never closes.
/// Each of its records holds a deleted turn without text, and no unit, so that the deletion survives a restart.
pub const UNSEEN_SESSION: &str = "deleted:";

/// The reserved session of the titles of sessions. Like [`UNSEEN_SESSION`] it has one window, which never closes. Each
/// of its records holds one title, as the text of a deleted turn, and no unit.
pub const TITLE_SESSION: &str = SessionTitle::RESERVED;

/// What the id of a title's record begins with. No turn has such an id.
pub(super) const TITLE_ID: char = '\u{1}';

/// The id of the record that holds the title of a session.
pub(super) fn title_id(session: &str) -> String {
    format!("{TITLE_ID}{session}")
}

/// The session whose title a record of [`TITLE_SESSION`] holds, and the title; `None` for any other turn.
#[must_use]
pub fn session_title(turn: &Turn) -> Option<(&str, &str)> {
    Some((turn.turn.strip_prefix(TITLE_ID)?, &turn.text))
}

/// What an event did to its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteEffect {
    /// It changed what stands, or it is no event of a turn.
    Written,
    /// The turn stands just so already.
    Unchanged,
    /// Nothing: a newer version or a deletion stands.
    Stale,
}

/// A window that changed since the last drain, and the records to write for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowChange {
    /// The window with its current turns: leading context first, deleted turns included. For [`UNSEEN_SESSION`], only
    /// the turns in `write_open`.
    pub window: Window,
    /// True: write one final record, key (bank, window). False: see `write_open`.
    pub closed: bool,
    /// Ids of the turns whose open record is to be written, key (bank, window, turn). Empty if `closed`.
    pub write_open: Vec<String>,
    /// Ids of the turns whose open record is in the log and is to be removed.
    pub remove_open: Vec<String>,
}
