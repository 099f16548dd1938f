//! Live sources: chat platforms that are followed while people talk.
//!
//! In: the settings of a source, and what its last run has committed. Out: batches of turn events and
//! dead letters, each with the position behind it; both belong into one transaction. A message becomes
//! the turn that an export of its platform makes of it. It is confirmed to its platform once it is
//! durable, never before. Edits and deletions are versions of their turn, and what comes twice changes
//! nothing. No secret stands in a setting, a message or an error. Nothing of a conversation that the
//! user did not choose is stored, not even as a dead letter.
//!
//! `live_source` is a source as its runner sees it; `feed` is what each platform implements:
//! `telegram`, `discord`, `matrix`, `slack` (with `slack_gap`, what happened while nobody listened, and `slack_heard`,
//! what was heard before), and `signed`, the webhook for everything else. `webhook` checks requests that come in, by
//! `signature`; `inbox` holds them for their source. `web` calls a platform's API, `socket` keeps a connection to it,
//! `recent` recognises what comes again, `secret` reads tokens.

mod discord;
mod error;
mod feed;
mod inbox;
mod live_source;
mod matrix;
mod recent;
mod secret;
mod signature;
mod signed;
mod slack;
mod slack_gap;
mod slack_heard;
mod socket;
mod telegram;
mod web;
mod webhook;

pub use error::LiveError;
pub use live_source::{LiveBatch, LiveSource, check_stored};
pub use webhook::{Delivered, Verified, Webhook};
