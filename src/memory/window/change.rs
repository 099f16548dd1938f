//! What a drain returns: the windows that changed, and the records to write for each.

use types::model::Window;

/// The reserved session of deletions whose turn has not arrived. It has one window, at ordinal 0, which never closes.
/// Each of its records holds a deleted turn without text, and no unit, so that the deletion survives a restart.
pub const UNSEEN_SESSION: &str = "deleted:";

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
