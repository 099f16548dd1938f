//! IRC logs, whichever client or bot wrote them.
//!
//! In: a log file, or a directory or archive of them. Out: messages, one channel after the other,
//! oldest first. Never guesses who is a bot, and never what a line means that no client writes.
//!
//! `reader` walks the files; `log_file` opens one and looks at its beginning; `place` reads channel,
//! network and day from its path; `encoding` makes text of a line's bytes, `line` says what it
//! reports, `stamp` when; `clock` gives each line its date, `nicks` each nick its account.

mod clock;
mod encoding;
mod line;
mod log_file;
mod nicks;
mod place;
mod reader;
mod stamp;
#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
