//! WhatsApp: the text that the app exports of one chat.
//!
//! In: `_chat.txt` or `WhatsApp Chat with NAME.txt`, alone, in a directory or in the zip archive that
//! the app makes. Out: messages, deletions, and notices of the app as skips. The format has no ids, no
//! zone and no fixed form of dates: what a file leaves open is settled from the whole file, in a first
//! pass over it. Media files are never opened.
//!
//! `header` reads the date, time and half of the day at the start of a line, `date_order` finds the
//! order of day and month, `survey` is the first pass, `body` tells what a message is, `phrases`
//! and `media_phrases` have the app's own texts in its languages, `reader` puts messages together.

mod body;
mod date_order;
mod header;
mod media_phrases;
mod phrases;
mod reader;
mod survey;

#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
