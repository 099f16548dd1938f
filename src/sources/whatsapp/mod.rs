//! WhatsApp: the text that the app exports for one chat.
//!
//! In: `_chat.txt` or `WhatsApp Chat with NAME.txt`, alone, in a directory or in the zip archive that the app makes.
//! Out: messages, deletions, and notices from the app as skips. The format has no ids, no time zone and no fixed form
//! of dates; the form of the dates is found from the whole file, in a first pass over it. Media files are never opened.
//!
//! `header` reads the date, time and AM/PM marker at the start of a line, `half_day` knows these markers, `date_order`
//! finds the order of day and month, `persian_calendar` converts dates of the Persian calendar, `survey` is the first
//! pass, `body` finds what a message is, `phrases` lists the app's own texts in its languages, `reader` puts messages
//! together.

mod body;
mod date_order;
mod half_day;
mod header;
mod persian_calendar;
mod phrases;
mod reader;
mod survey;

#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
