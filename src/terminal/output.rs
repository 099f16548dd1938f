//! Results to stdout, messages to stderr.
//!
//! In: text. Out: the text, flushed. On a terminal, control characters are shown instead of obeyed, since the text may
//! come from what someone said. A closed stdout is an error; a closed stderr is not.

use std::{
    borrow::Cow,
    io::{IsTerminal, Write},
};

use anyhow::Result;
use memory::recall::terminal_text;
use ripplemem::UnreadableTopicRecord;

/// Writes a part of the result to stdout: to a terminal with control characters made visible, otherwise unchanged.
pub fn print(text: &str) -> Result<()> {
    let out = std::io::stdout();
    let text = if out.is_terminal() { terminal_text(text) } else { Cow::Borrowed(text) };
    let mut out = out.lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes a message for a person to stderr.
pub fn say(text: &str) {
    drop(writeln!(std::io::stderr(), "ripplemem: {}", terminal_text(text)));
}

/// Names each record that a command could not read, and says what happened to it.
pub fn say_unreadable(unreadable: &[UnreadableTopicRecord], outcome: &str) {
    for at in unreadable {
        say(&format!("{at}; {outcome}"));
    }
}
