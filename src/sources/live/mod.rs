//! Live sources follow chat platforms while people talk.
//!
//! In: the settings of a source, and what its last run committed. Out: batches of turn events and dead letters, each
//! with the position after it; both belong in one transaction. A message becomes the same turn as in an export of its
//! platform. It is confirmed to its platform once it is durable, never before. Edits and deletions are versions of
//! their turn, and a duplicate changes nothing. A setting, a message or an error never contains a secret. Nothing from
//! a conversation that the user did not choose is stored, not even as a dead letter.
//!
//! `live_source` is a source as its runner sees it. `live_feed` is the interface that each platform implements:
//! `telegram`, `discord`, `matrix`, `slack` (with `slack_gap` for what happened while the app was offline), `transcripts` for
//! agents on this machine, and `signed_webhook`, the webhook for everything else. `recent_messages` remembers the last messages that were received.
//! `webhook` checks incoming requests by their `signature`; `webhook_inbox` holds them for their source.
//! `platform_client` calls a platform's API, and `abandoned_part` says when one part of it is given up; `socket` keeps
//! a connection to it, `recent_ids` recognises duplicates, `platform_secret` reads tokens.

mod abandoned_part;
mod discord;
mod error;
mod live_feed;
mod live_source;
mod matrix;
mod platform_client;
mod platform_secret;
mod recent_ids;
mod recent_messages;
mod signature;
mod signed_webhook;
mod slack;
mod slack_gap;
mod socket;
mod telegram;
mod transcripts;
mod webhook;
mod webhook_inbox;

pub use error::LiveError;
pub use live_source::{LiveBatch, LiveSource, check_stored};
pub use webhook::{SourceWebhook, VerifiedRequest, WebhookDelivery};
