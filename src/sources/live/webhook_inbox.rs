//! Holds the requests that wait for one source.
//!
//! In: bodies from the HTTP listener. Out: bodies, and a confirmation to their senders once they are durable. A request
//! whose feed ends before that is dropped, and its sender notices.

use std::time::Duration;

use crossbeam_channel::Receiver;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{live_feed::FeedArrival, webhook::WebhookDelivery};
use crate::chat::ChatItem;
use types::{lone_surrogates::replace_lone_surrogates, model::DeadLetter};

/// The maximum number of bodies that one commit covers.
const MAX_AT_ONCE: usize = 256;

/// The requests of one source.
pub(super) struct WebhookInbox {
    arriving: Receiver<WebhookDelivery>,
    /// The senders of bodies that were returned and are not durable yet.
    unconfirmed: Vec<oneshot::Sender<()>>,
}

impl WebhookInbox {
    pub(super) fn new(arriving: Receiver<WebhookDelivery>) -> Self {
        Self { arriving, unconfirmed: Vec::new() }
    }

    /// Waits up to `wait` for a request; returns the bodies that have arrived.
    pub(super) fn next(&mut self, wait: Duration) -> Vec<Vec<u8>> {
        let first = match self.arriving.recv_timeout(wait) {
            Ok(first) => Some(first),
            Err(crossbeam_channel::RecvTimeoutError::Timeout) => None,
            Err(crossbeam_channel::RecvTimeoutError::Disconnected) => {
                // The listener has ended; the sleep keeps the caller from spinning.
                std::thread::sleep(wait);
                None
            }
        };
        let mut bodies = Vec::new();
        for WebhookDelivery { body, durable } in first.into_iter().chain(self.arriving.try_iter()).take(MAX_AT_ONCE) {
            bodies.push(body);
            self.unconfirmed.push(durable);
        }
        bodies
    }

    /// As [`WebhookInbox::next`], parsed as JSON; a body that is not JSON becomes a reject in `arrival`.
    pub(super) fn next_json(&mut self, wait: Duration, origin: &str, arrival: &mut FeedArrival) -> Vec<Value> {
        let mut values = Vec::new();
        for body in self.next(wait) {
            arrival.moved = true;
            match serde_json::from_slice(&replace_lone_surrogates(&body)) {
                Ok(value) => values.push(value),
                Err(e) => {
                    let letter = DeadLetter::new(origin.to_owned(), format!("not JSON: {e}"), &body);
                    arrival.items.push(ChatItem::Reject { conversation: None, letter });
                }
            }
        }
        values
    }

    /// Confirms everything that was returned, because it is durable now.
    pub(super) fn confirm(&mut self) {
        for durable in self.unconfirmed.drain(..) {
            // The sender may have gone; if it sends the request again, nothing changes.
            let _ = durable.send(());
        }
    }
}
