//! A WebSocket connection to a platform.
//!
//! In: an address, and texts to send. Out: texts as they arrive. Pings are answered while the connection is being read.
//! One thread reads and writes; a read waits only as long as the caller allows.

use std::{
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    sync::Arc,
    time::Duration,
};

use rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};
use rustls_platform_verifier::ConfigVerifierExt as _;
use tungstenite::{HandshakeError, Message, WebSocket};
use url::Url;

use super::error::LiveError;

/// The timeout for connecting and for writing.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The shortest wait: a timeout of zero would mean no timeout.
const MIN_WAIT: Duration = Duration::from_millis(1);

/// An open connection.
pub(super) struct LiveSocket {
    inner: WebSocket<SocketStream>,
}

/// What was received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SocketMessage {
    /// A text.
    Text(String),
    /// A sign of life, such as a ping.
    Beat,
    /// Nothing arrived in this time.
    Nothing,
    /// The other side closed the connection.
    Closed {
        /// The code, if it sent one.
        code: Option<u16>,
        /// The reason that it gave.
        reason: String,
    },
}

enum SocketStream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl LiveSocket {
    /// Connects to a `ws:` or `wss:` address.
    ///
    /// # Errors
    /// [`LiveError::Lost`] when that fails.
    pub(super) fn connect(address: &str) -> Result<Self, LiveError> {
        let url = Url::parse(address).map_err(|e| LiveError::Lost(format!("the platform named no address: {e}")))?;
        // Leaves out the query, which may hold a secret ticket.
        let shown = format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
        let lost = |problem: &dyn std::fmt::Display| LiveError::Lost(format!("{shown}: {problem}"));
        let stream = open(&url).map_err(|e| lost(&e))?;
        match tungstenite::client(url.as_str(), stream) {
            Ok((inner, _)) => Ok(Self { inner }),
            Err(HandshakeError::Interrupted(_)) => Err(lost(&"the handshake did not end in time")),
            Err(HandshakeError::Failure(e)) => Err(lost(&e)),
        }
    }

    /// Waits up to `wait` for a text.
    ///
    /// # Errors
    /// [`LiveError::Lost`] when the connection has broken.
    pub(super) fn read(&mut self, wait: Duration) -> Result<SocketMessage, LiveError> {
        let set = self.inner.get_ref().tcp().set_read_timeout(Some(wait.max(MIN_WAIT)));
        set.map_err(|e| LiveError::Lost(format!("the connection has broken: {e}")))?;
        match self.inner.read() {
            Ok(Message::Text(text)) => Ok(SocketMessage::Text(text.to_string())),
            Ok(Message::Close(frame)) => Ok(SocketMessage::Closed {
                code: frame.as_ref().map(|frame| frame.code.into()),
                reason: frame.map(|frame| frame.reason.to_string()).unwrap_or_default(),
            }),
            Ok(_) => Ok(SocketMessage::Beat),
            Err(tungstenite::Error::Io(e)) if is_timeout(&e) => Ok(SocketMessage::Nothing),
            Err(e) => Err(LiveError::Lost(format!("the connection has broken: {e}"))),
        }
    }

    /// Sends a text.
    ///
    /// # Errors
    /// [`LiveError::Lost`] when the connection has broken.
    pub(super) fn send(&mut self, text: String) -> Result<(), LiveError> {
        self.inner.send(Message::text(text)).map_err(|e| LiveError::Lost(format!("the connection has broken: {e}")))
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn open(url: &Url) -> io::Result<SocketStream> {
    let host = url.host_str().ok_or_else(|| io::Error::other("the address names no host"))?;
    let is_tls = url.scheme() == "wss";
    let port = url.port().unwrap_or(if is_tls { 443 } else { 80 });
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut failed = io::Error::other("the host has no address");
    let connected = (bare, port)
        .to_socket_addrs()?
        .find_map(|address| TcpStream::connect_timeout(&address, TIMEOUT).map_err(|e| failed = e).ok());
    let Some(tcp) = connected else { return Err(failed) };
    tcp.set_nodelay(true)?;
    tcp.set_read_timeout(Some(TIMEOUT))?;
    tcp.set_write_timeout(Some(TIMEOUT))?;
    if !is_tls {
        return Ok(SocketStream::Plain(tcp));
    }
    let config = ClientConfig::with_platform_verifier().map_err(io::Error::other)?;
    let name = ServerName::try_from(bare.to_owned()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    Ok(SocketStream::Tls(Box::new(StreamOwned::new(connection, tcp))))
}

impl SocketStream {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref(),
        }
    }
}

impl Read for SocketStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for SocketStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.write(bytes),
            Self::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}
