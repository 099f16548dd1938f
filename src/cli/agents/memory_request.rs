//! Requests of a hook to the service: one connection, no runtime, no redirects, no retries.
//!
//! In: an address, a token, and until when an answer is of use. Out: the body of an answer of 200, or why there is none.
//! Whatever the other side sends, a request ends by its deadline and reads no more than 8 MiB.

use std::{
    io::{self, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

/// The largest answer.
const MAX_BYTES: usize = 8 << 20;
/// The largest head of an answer.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum HookRequestFailure {
    /// No process answers at the address.
    #[error("the service is away")]
    Away,
    /// The deadline passed.
    #[error("the service did not answer in time")]
    Late,
    /// The service refused.
    #[error("the service answered {0}")]
    Status(u16),
    /// It is no answer of HTTP.
    #[error("the answer of the service cannot be read")]
    Form,
}

/// A connection to the service.
pub(super) struct MemoryRequest {
    stream: TcpStream,
    host: String,
    token: String,
    until: Instant,
    /// What was read beyond the last answer.
    rest: Vec<u8>,
}

impl MemoryRequest {
    /// Connects.
    pub(super) fn connect(address: &str, token: &str, until: Instant) -> Result<Self, HookRequestFailure> {
        let socket = address.parse().map_err(|_| HookRequestFailure::Form)?;
        let stream = TcpStream::connect_timeout(&socket, left(until)?).map_err(|error| failure(&error, true))?;
        // Without it, the second request on the connection would wait for an acknowledgement.
        let _ = stream.set_nodelay(true);
        Ok(Self { stream, host: address.to_owned(), token: token.to_owned(), until, rest: Vec::new() })
    }

    /// Sends a request, with a body of JSON or without one, and reads the answer's body.
    pub(super) fn send(&mut self, method: &str, path: &str, body: Option<&str>) -> Result<Vec<u8>, HookRequestFailure> {
        let body = body.unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        let limit = left(self.until)?;
        self.stream.set_write_timeout(Some(limit)).map_err(|error| failure(&error, false))?;
        self.stream.write_all(request.as_bytes()).map_err(|error| failure(&error, false))?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Vec<u8>, HookRequestFailure> {
        let end = loop {
            if let Some(at) = self.rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            if self.rest.len() > MAX_HEAD_BYTES {
                return Err(HookRequestFailure::Form);
            }
            self.read_more()?;
        };
        let head = String::from_utf8_lossy(self.rest.get(..end).unwrap_or_default()).into_owned();
        self.rest.drain(..end);
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse::<u16>().ok());
        let (mut length, mut is_chunked) = (None, false);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse::<usize>().ok(),
                "transfer-encoding" => is_chunked = value.to_ascii_lowercase().contains("chunked"),
                _ => {}
            }
        }
        let body = match (is_chunked, length) {
            (true, _) => self.chunks()?,
            (false, Some(length)) => self.take(length)?,
            (false, None) => return Err(HookRequestFailure::Form),
        };
        match status {
            Some(200) => Ok(body),
            Some(status) => Err(HookRequestFailure::Status(status)),
            None => Err(HookRequestFailure::Form),
        }
    }

    fn chunks(&mut self) -> Result<Vec<u8>, HookRequestFailure> {
        let mut body = Vec::new();
        loop {
            let end = loop {
                if let Some(at) = self.rest.windows(2).position(|bytes| bytes == b"\r\n") {
                    break at;
                }
                if self.rest.len() > MAX_HEAD_BYTES {
                    return Err(HookRequestFailure::Form);
                }
                self.read_more()?;
            };
            let line = String::from_utf8_lossy(self.rest.get(..end).unwrap_or_default()).into_owned();
            self.rest.drain(..end + 2);
            let size = line.split(';').next().and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
            let size = size.filter(|size| body.len() + size <= MAX_BYTES).ok_or(HookRequestFailure::Form)?;
            body.extend(self.take(size)?);
            self.take(2)?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, HookRequestFailure> {
        if length > MAX_BYTES {
            return Err(HookRequestFailure::Form);
        }
        while self.rest.len() < length {
            self.read_more()?;
        }
        let behind = self.rest.split_off(length);
        Ok(std::mem::replace(&mut self.rest, behind))
    }

    fn read_more(&mut self) -> Result<(), HookRequestFailure> {
        let mut bytes = [0; 16 << 10];
        self.stream.set_read_timeout(Some(left(self.until)?)).map_err(|error| failure(&error, false))?;
        match self.stream.read(&mut bytes).map_err(|error| failure(&error, false))? {
            0 => Err(HookRequestFailure::Form),
            count => {
                self.rest.extend(bytes.get(..count).unwrap_or_default());
                Ok(())
            }
        }
    }
}

/// The time until the deadline.
fn left(until: Instant) -> Result<Duration, HookRequestFailure> {
    until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).ok_or(HookRequestFailure::Late)
}

fn failure(error: &io::Error, is_connecting: bool) -> HookRequestFailure {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => HookRequestFailure::Late,
        _ if is_connecting => HookRequestFailure::Away,
        _ => HookRequestFailure::Form,
    }
}
