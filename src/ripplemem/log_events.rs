//! What this crate writes to the log: one function per event, with its level, its fields and its words.
//!
//! In: what happened. Out: a log line. No line holds a word of what was said.

use tracing::{error, info, warn};
use types::logged_bank::LoggedBank;

/// The memory closed while a request to the embedding endpoint was open.
pub(crate) fn request_left_open() {
    info!("a request to the embedding endpoint is still open; its turns are extracted after the next start");
}

/// The new embedding model does not take a text of a window.
pub(crate) fn text_declined(bank: LoggedBank<'_>, window: u32) {
    warn!(%bank, window, "the model does not take a text of the window, which is found by its words alone");
}

/// Extraction stopped for good.
pub(crate) fn extraction_stopped(problem: &str) {
    error!(problem, "extraction has stopped; restart the service, the log holds every turn");
}
