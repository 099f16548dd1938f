//! The body of a request, within limits.
//!
//! In: a body as it arrives, and its sender. Out: its bytes and their share of the limit on all bodies, or a problem:
//! it is too large or too slow, or all bodies together are too large. JSON may come in gzip, in UTF-16 or with a byte
//! order mark, and is plain afterwards; zstd and deflate are refused by name. Bytes are counted as they arrive, not as
//! a header announces them. A token has at most a part of that limit, so that it cannot take all from others.

use std::{borrow::Cow, io::Read, sync::Arc, time::Duration};

use axum::body::Body;
use flate2::read::MultiGzDecoder;
use futures_util::StreamExt;
use types::lone_surrogates::replace_lone_surrogates;

use crate::{
    api::{ApiProblem, ProblemCode},
    quota::{Quota, QuotaLimits, QuotaRefusals, QuotaShare},
};

/// Largest body of a call.
pub(crate) const MAX_BYTES: usize = 8 << 20;
/// Most bytes of all bodies that are being read or used.
const ALL_BYTES: usize = 64 << 20;
/// Most bytes of one sender's bodies.
const SENDER_BYTES: usize = ALL_BYTES / 4;
/// The time in which a whole body must arrive.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The messages when too many bytes are in use.
const REFUSALS: QuotaRefusals = QuotaRefusals {
    all: "bytes of bodies are in use already; send large requests again in a moment",
    of_one: "bytes of bodies of this sender are in use already; send large requests one after another",
};

/// The bodies of a service that are being read or used.
#[derive(Clone)]
pub(crate) struct BodyReader(Arc<Quota>);

impl Default for BodyReader {
    fn default() -> Self {
        Self(Quota::new(QuotaLimits { all: ALL_BYTES, of_one: SENDER_BYTES }, REFUSALS))
    }
}

/// A whole body.
pub(crate) struct RequestBody {
    pub(crate) bytes: Vec<u8>,
    /// Keep it as long as the bytes, or what was made of them.
    pub(crate) room: QuotaShare,
}

impl BodyReader {
    /// Reads a body to its end, at most `most` bytes. `sender` is the sender's name, such as that of a token; `None` if
    /// only the limit on all bodies applies.
    pub(crate) async fn read(&self, body: Body, sender: Option<&str>, most: usize) -> Result<RequestBody, ApiProblem> {
        let slow = |_| {
            ApiProblem::new(
                ProblemCode::Slow,
                format!("the body did not arrive within {} s; send it faster", TIMEOUT.as_secs()),
            )
        };
        let mut whole = RequestBody { bytes: Vec::new(), room: self.0.share(sender) };
        tokio::time::timeout(TIMEOUT, whole.read_on(body, most)).await.map_err(slow)??;
        Ok(whole)
    }

    /// As [`Self::read`], for a JSON body; unpacked it has at most `most` bytes, too.
    pub(crate) async fn read_json(
        &self,
        body: Body,
        sender: Option<&str>,
        most: usize,
    ) -> Result<RequestBody, ApiProblem> {
        self.read(body, sender, most).await?.into_json(most)
    }
}

/// The first bytes of a body in gzip.
const GZIP: &[u8] = b"\x1f\x8b";
/// The first bytes of bodies that are packed in ways that cannot be read here.
const PACKED: [(&[u8], &str); 4] =
    [(b"\x28\xb5\x2f\xfd", "zstd"), (b"\x78\x01", "deflate"), (b"\x78\x9c", "deflate"), (b"\x78\xda", "deflate")];
/// The next step for a body that cannot be read.
pub(super) const SEND_PLAIN: &str = "send it as it is, or in gzip";

impl RequestBody {
    /// The body as plain JSON.
    fn into_json(mut self, most: usize) -> Result<Self, ApiProblem> {
        if self.bytes.starts_with(GZIP) {
            let mut bytes = Vec::new();
            let packed = std::mem::take(&mut self.bytes);
            let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
            let damaged = |e| ApiProblem::invalid(format!("the gzip body cannot be unpacked: {e}; send it again"));
            MultiGzDecoder::new(&packed[..]).take(limit).read_to_end(&mut bytes).map_err(damaged)?;
            if bytes.len() > most {
                let detail = format!(
                    "the body has more than {most} bytes when it is unpacked; divide it among several requests"
                );
                return Err(ApiProblem::new(ProblemCode::TooLarge, detail));
            }
            if bytes.starts_with(GZIP) {
                let detail = format!("the body is packed in gzip twice, which is not read; {SEND_PLAIN}");
                return Err(ApiProblem::new(ProblemCode::MediaType, detail));
            }
            self.room.grow(bytes.len().saturating_sub(packed.len()))?;
            self.bytes = bytes;
        } else if let Some((_, name)) = PACKED.iter().find(|(start, _)| self.bytes.starts_with(start)) {
            let detail = format!("the body is packed in {name}, which is not read; {SEND_PLAIN}");
            return Err(ApiProblem::new(ProblemCode::MediaType, detail));
        }
        self.bytes = match &self.bytes[..] {
            [0xef, 0xbb, 0xbf, rest @ ..] => rest.to_vec(),
            [0xff, 0xfe, rest @ ..] => utf8_of(rest, u16::from_le_bytes),
            [0xfe, 0xff, rest @ ..] => utf8_of(rest, u16::from_be_bytes),
            // UTF-16 without a mark: JSON begins with an ASCII character, and holds no zero byte in UTF-8.
            [0x01..=0x7f, 0, ..] => utf8_of(&self.bytes, u16::from_le_bytes),
            [0, 0x01..=0x7f, ..] => utf8_of(&self.bytes, u16::from_be_bytes),
            _ => self.bytes,
        };
        if let Cow::Owned(whole) = replace_lone_surrogates(&self.bytes) {
            self.bytes = whole;
        }
        Ok(self)
    }

    async fn read_on(&mut self, body: Body, most: usize) -> Result<(), ApiProblem> {
        let mut frames = body.into_data_stream();
        while let Some(frame) = frames.next().await {
            let frame = frame.map_err(|e| ApiProblem::invalid(format!("the body broke off: {e}; send it again")))?;
            if self.bytes.len() + frame.len() > most {
                let detail = format!("the body has more than {most} bytes; divide it among several requests");
                return Err(ApiProblem::new(ProblemCode::TooLarge, detail));
            }
            self.room.grow(frame.len())?;
            self.bytes.extend_from_slice(&frame);
        }
        Ok(())
    }
}

/// A text in UTF-16 as UTF-8; invalid units become the replacement character.
fn utf8_of(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Vec<u8> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| unit(*pair)).chain((!rest.is_empty()).then_some(0xfffd));
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn read(bytes: &[u8], most: usize) -> Result<String, ApiProblem> {
        let whole = RequestBody { bytes: bytes.to_vec(), room: BodyReader::default().0.share(None) };
        whole.into_json(most).map(|whole| String::from_utf8(whole.bytes).expect("plain UTF-8"))
    }

    #[test]
    fn json_is_plain_however_it_was_packed() {
        let text = "{\"text\": \"grüß dich 🍜\"}";
        let gzip = |bytes: &[u8]| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(bytes).expect("memory");
            gzip.finish().expect("memory")
        };
        let marked = format!("\u{feff}{text}");
        let little: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = marked.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let packed = gzip(text.as_bytes());
        for bytes in [text.as_bytes(), marked.as_bytes(), &little, &big, &little[2..], &big[2..], &packed] {
            assert_eq!(read(bytes, 1_000).as_deref(), Ok(text), "{bytes:?}");
        }
        assert_eq!(read(b"{\"text\": \"\\ud83d\"}", 1_000).as_deref(), Ok("{\"text\": \"\\ufffd\"}"));
        assert_eq!(read(&packed, 10).map_err(|problem| problem.status), Err(413));
        assert_eq!(read(&packed[..packed.len() - 9], 1_000).map_err(|problem| problem.status), Err(400));
        let zstd = read(b"\x28\xb5\x2f\xfd\0\0", 1_000).expect_err("it is not read");
        assert!(zstd.status == 415 && zstd.detail.contains("zstd"), "{zstd:?}");
        let twice = read(&gzip(&packed), 1_000).expect_err("it is not read");
        assert!(twice.status == 415 && twice.detail.contains("twice"), "{twice:?}");
    }
}
