//! Live sources follow chat platforms while people talk.
//!
//! In: the settings of a source, and what its last run committed. Out: batches of turn events and dead letters, each
//! with the position after it; both belong in one transaction. A message becomes the same turn as in an export of its
//! platform. It is confirmed to its platform once it is durable, never before. Edits and deletions are versions of
//! their turn, and a duplicate changes nothing. A setting, a message or an error never contains a secret. Nothing from
//! a conversation that the user did not choose is stored, not even as a dead letter.
//!
//! `live_source` is a source as its runner sees it. `feed` is the interface that each platform implements: `telegram`,
//! `discord`, `matrix`, `slack` (with `slack_gap` for what happened while the app was offline), and `signed`, the
//! webhook for everything else. `heard` remembers the last messages that were received. `webhook` checks incoming
//! requests by their `signature`; `inbox` holds them for their source. `web` calls a platform's API, and `part` says when one
//! part of it is given up; `socket` keeps a connection to it, `recent` recognises duplicates, `secret` reads tokens.

mod discord;
mod error;
mod feed;
mod heard;
mod inbox;
mod live_source;
mod matrix;
mod part;
mod recent;
mod secret;
mod signature;
mod signed;
mod slack;
mod slack_gap;
mod socket;
mod telegram;
mod web;
mod webhook;

pub use error::LiveError;
pub use live_source::{LiveBatch, LiveSource, check_stored};
pub use webhook::{Delivered, Verified, Webhook};
