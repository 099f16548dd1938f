//! Results to stdout, messages to stderr.
//!
//! In: text. Out: the text, flushed. A closed stdout is an error, a closed stderr is not.

use std::io::Write;

use anyhow::Result;
use ripplemem::pipeline::UnreadableAt;

/// Writes a part of the result to stdout, as it is.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a message for a person to stderr.
pub(crate) fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "ripplemem: {text}"));
}

/// Names each record that a command could not read, and what became of it.
pub(crate) fn say_unreadable(unreadable: &[UnreadableAt], outcome: &str) {
    for at in unreadable {
        say(&format!("{at}; {outcome}"));
    }
}
