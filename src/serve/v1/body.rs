//! The body of a request, within limits.
//!
//! In: a body as it arrives, and whose it is. Out: its bytes and their room, or a problem: too large, too
//! slow, or too much of all bodies at once. Bytes are counted as they come, not as a header announces them.
//! No sender has more than a part of the room, so that none takes it from the others.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::body::Body;
use futures_util::StreamExt;

use crate::{
    serve::api::{Code, Problem},
    sync,
};

/// Largest body of a call.
pub(in crate::serve) const MAX_BYTES: usize = 8 << 20;
/// Bytes of all bodies that are being read and worked on.
const ALL_BYTES: usize = 64 << 20;
/// Of one sender.
const SENDER_BYTES: usize = ALL_BYTES / 4;
/// A body is whole after this time.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The room for all bodies of a service.
#[derive(Clone, Default)]
pub(in crate::serve) struct Bodies(Arc<Mutex<Taken>>);

#[derive(Default)]
struct Taken {
    all: usize,
    by_sender: HashMap<String, usize>,
}

/// A whole body.
pub(in crate::serve) struct Whole {
    pub(in crate::serve) bytes: Vec<u8>,
    /// To be held for as long as the bytes, or what was made of them, are.
    pub(in crate::serve) room: Room,
}

/// Room for bytes; free again when it is dropped.
pub(in crate::serve) struct Room {
    bodies: Bodies,
    sender: Option<String>,
    bytes: usize,
}

impl Bodies {
    /// Reads a body to its end, `most` bytes at most. `sender` names whose it is, such as a token; None for
    /// those whom the service trusts.
    pub(in crate::serve) async fn read(&self, body: Body, sender: Option<&str>, most: usize) -> Result<Whole, Problem> {
        let slow = |_| {
            Problem::new(Code::Slow, format!("the body was not whole within {} s; send it faster", TIMEOUT.as_secs()))
        };
        let mut whole = Whole { bytes: Vec::new(), room: self.room(sender) };
        tokio::time::timeout(TIMEOUT, whole.read_on(body, most)).await.map_err(slow)??;
        Ok(whole)
    }

    fn room(&self, sender: Option<&str>) -> Room {
        Room { bodies: self.clone(), sender: sender.map(str::to_owned), bytes: 0 }
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

impl Room {
    /// Takes more room.
    fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        let mut taken = sync::lock(&self.bodies.0);
        if taken.all + bytes > ALL_BYTES {
            return Err(Problem::new(Code::Busy, "too many large requests at once; send them again in a moment"));
        }
        if let Some(sender) = &self.sender {
            let mine = taken.by_sender.entry(sender.clone()).or_default();
            if *mine + bytes > SENDER_BYTES {
                let detail = "too many large requests of this sender at once; send them one after another";
                return Err(Problem::new(Code::Busy, detail));
            }
            *mine += bytes;
        }
        taken.all += bytes;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut taken = sync::lock(&self.bodies.0);
        taken.all -= self.bytes;
        if let Some(sender) = &self.sender
            && let Some(mine) = taken.by_sender.get_mut(sender)
        {
            *mine -= self.bytes;
            if *mine == 0 {
                taken.by_sender.remove(sender);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sender_leaves_room_for_the_others_and_room_becomes_free() {
        let bodies = Bodies::default();
        let detail = |refused: Result<(), Problem>| refused.expect_err("refused").detail;
        let (mut one, mut two) = (bodies.room(Some("a")), bodies.room(Some("a")));
        one.grow(MAX_BYTES).unwrap();
        two.grow(MAX_BYTES).unwrap();
        assert!(detail(bodies.room(Some("a")).grow(1)).contains("this sender"));
        let mut trusted = bodies.room(None);
        trusted.grow(ALL_BYTES - SENDER_BYTES - 1).unwrap();
        let mut other = bodies.room(Some("b"));
        other.grow(1).unwrap();
        assert!(detail(bodies.room(Some("b")).grow(1)).contains("too many large requests at once"));
        drop((one, trusted));
        other.grow(1).unwrap();
        drop((two, other));
        let taken = sync::lock(&bodies.0);
        assert_eq!((taken.all, taken.by_sender.len()), (0, 0));
    }
}
