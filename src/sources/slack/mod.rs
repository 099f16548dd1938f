//! Slack's export: a zip archive or a directory, as Slack or slackdump writes it.
//!
//! In: a folder for each conversation with a file for each day, and lists of channels and users, any of which may be
//! missing; or a conversation that slackdump dumped into one file. Out: messages, deletions that tombstones show, and
//! counts of the platform's own notices. The id of a message is its `ts` as written, and is never treated as a number.
//! Tokens in the addresses of files are never stored.
//!
//! `reader` goes through the files, `directory` knows channels and users, `message` reads one message (`lenient_fields`
//! reads the fields that integrations fill), `mrkdwn` and `blocks` turn Slack's markup into text. `workspace` reads the
//! same messages live.

mod blocks;
mod directory;
mod lenient_fields;
mod message;
mod mrkdwn;
mod reader;
mod workspace;

#[cfg(test)]
mod tests;

pub(super) use reader::FORMAT;
pub(super) use workspace::SlackWorkspace;
