//! Signal: what sigexport writes from the desktop app, and what signal-cli receives.
//!
//! In: sigexport's folder, one of its `chat.md` or `data.json`, or the JSON that signal-cli and its REST interface
//! print, one envelope per line or as an array. Out: messages, edits as versions, deletions, and skips. An encrypted
//! backup is never read.
//!
//! `sigexport` reads the exporter's Markdown and JSON, `quote_index` finds the message that a quoted text belongs to,
//! `envelope` defines the types of signal-cli's JSON, `signal_cli` makes items from them, `reader` chooses among the
//! files.

mod envelope;
mod quote_index;
mod reader;
mod sigexport;
mod signal_cli;

#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
