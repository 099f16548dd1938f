//! Mail in mbox files, and single mails in `.eml` files.
//!
//! In: a file, a folder or a zip archive of them. Out: mails, oldest first, each once. A mail's text is
//! what its author wrote: quoted replies, signatures and the footers of mailing lists are cut. Mails
//! that answer each other are a thread. Each file is a conversation of its own.
//!
//! `mails` finds where mails begin, `mail` reads a mail, `mail_date` reads its date, `own_words` removes what its
//! author did not write, `reader` puts mails in order and into threads.

mod mail;
mod mail_date;
mod mails;
mod own_words;
mod reader;
#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
