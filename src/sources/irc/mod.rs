//! IRC logs, whichever client or bot wrote them.
//!
//! In: a log file, or a directory or archive of them. Out: messages, one channel after another, oldest first. Never
//! guesses who is a bot, and never guesses the meaning of a line that no client writes.
//!
//! `reader` goes through the files; `log_file` opens one and reads its beginning; `log_path` reads channel, network and
//! day from its path. `encoding` decodes a line's bytes, `line` reads what it reports, and `timestamp` reads its time;
//! `clock` gives each line its date, and `nicks` gives each nick its account.

mod clock;
mod encoding;
mod line;
mod log_file;
mod log_path;
mod nicks;
mod reader;
#[cfg(test)]
mod tests;
mod timestamp;

pub(super) use reader::FORMAT;
