//! The body of a request, within limits.
//!
//! In: a body as it arrives. Out: its bytes, or a problem: too large, too slow, or too much of all
//! bodies at once. Bytes are counted as they come, not as a header announces them.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use futures_util::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::serve::api::{Code, Problem};

/// Largest body.
pub(super) const MAX_BYTES: usize = 8 << 20;
/// Bytes of all bodies that are being read and worked on.
const ALL_BYTES: usize = 64 << 20;
/// A body is whole after this time.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The room for all bodies.
#[derive(Clone)]
pub(in crate::serve) struct Bodies(Arc<Semaphore>);

/// A whole body; its room is free again when it is dropped.
pub(in crate::serve) struct Whole {
    pub(in crate::serve) bytes: Vec<u8>,
    /// Held for as long as the bytes are.
    room: Option<OwnedSemaphorePermit>,
}

impl Bodies {
    pub(in crate::serve) fn new() -> Self {
        Self(Arc::new(Semaphore::new(ALL_BYTES)))
    }

    /// Reads a body to its end.
    pub(in crate::serve) async fn read(&self, body: Body) -> Result<Whole, Problem> {
        let slow = |_| {
            Problem::new(Code::Slow, format!("the body was not whole within {} s; send it faster", TIMEOUT.as_secs()))
        };
        tokio::time::timeout(TIMEOUT, self.read_on(body)).await.map_err(slow)?
    }

    async fn read_on(&self, body: Body) -> Result<Whole, Problem> {
        let mut frames = body.into_data_stream();
        let mut whole = Whole { bytes: Vec::new(), room: None };
        while let Some(frame) = frames.next().await {
            let frame = frame.map_err(|e| Problem::invalid(format!("the body broke off: {e}; send it again")))?;
            if whole.bytes.len() + frame.len() > MAX_BYTES {
                let detail = format!("the body has more than {MAX_BYTES} bytes; divide it among several requests");
                return Err(Problem::new(Code::TooLarge, detail));
            }
            let more = u32::try_from(frame.len()).ok().and_then(|n| Arc::clone(&self.0).try_acquire_many_owned(n).ok());
            let Some(more) = more else {
                let detail = "too many large requests at once; send them again in a moment";
                return Err(Problem::new(Code::Busy, detail));
            };
            match &mut whole.room {
                Some(mine) => mine.merge(more),
                none => *none = Some(more),
            }
            whole.bytes.extend_from_slice(&frame);
        }
        Ok(whole)
    }
}
