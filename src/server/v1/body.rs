//! The body of a request, within limits.
//!
//! In: a body as it arrives, and whose it is. Out: its bytes and their room, or a problem: too large, too
//! slow, or too much of all bodies at once. Bytes are counted as they come, not as a header announces them.
//! No sender has more than a part of the room, so that none takes it from the others.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use futures_util::StreamExt;

use crate::{
    api::{Code, Problem},
    quota::{Limits, Quota, Refusals, Share},
};

/// Largest body of a call.
pub(crate) const MAX_BYTES: usize = 8 << 20;
/// Bytes of all bodies that are being read and worked on.
const ALL_BYTES: usize = 64 << 20;
/// Of one sender.
const SENDER_BYTES: usize = ALL_BYTES / 4;
/// A body is whole after this time.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What is said where too much is in use.
const REFUSALS: Refusals = Refusals {
    all: "bytes of bodies are in use already; send large requests again in a moment",
    of_one: "bytes of bodies of this sender are in use already; send large requests one after another",
};

/// The bodies of a service that are being read and worked on.
#[derive(Clone)]
pub(crate) struct Bodies(Arc<Quota>);

impl Default for Bodies {
    fn default() -> Self {
        Self(Quota::new(Limits { all: ALL_BYTES, of_one: SENDER_BYTES }, REFUSALS))
    }
}

/// A whole body.
pub(crate) struct Whole {
    pub(crate) bytes: Vec<u8>,
    /// To be held for as long as the bytes, or what was made of them, are.
    pub(crate) room: Share,
}

impl Bodies {
    /// Reads a body to its end, `most` bytes at most. `sender` names whose it is, such as a token; None for
    /// those whom the service trusts.
    pub(crate) async fn read(&self, body: Body, sender: Option<&str>, most: usize) -> Result<Whole, Problem> {
        let slow = |_| {
            Problem::new(Code::Slow, format!("the body was not whole within {} s; send it faster", TIMEOUT.as_secs()))
        };
        let mut whole = Whole { bytes: Vec::new(), room: self.0.share(sender) };
        tokio::time::timeout(TIMEOUT, whole.read_on(body, most)).await.map_err(slow)??;
        Ok(whole)
    }
}

impl Whole {
    async fn read_on(&mut self, body: Body, most: usize) -> Result<(), Problem> {
        let mut frames = body.into_data_stream();
        while let Some(frame) = frames.next().await {
            let frame = frame.map_err(|e| Problem::invalid(format!("the body broke off: {e}; send it again")))?;
            if self.bytes.len() + frame.len() > most {
                let detail = format!("the body has more than {most} bytes; divide it among several requests");
                return Err(Problem::new(Code::TooLarge, detail));
            }
            self.room.grow(frame.len())?;
            self.bytes.extend_from_slice(&frame);
        }
        Ok(())
    }
}
