//! A scripted chat platform: it speaks HTTP and WebSocket on a local port, and does what a test says.
//!
//! In: a function that replies to requests, and texts to send over the WebSocket. Out: what the client
//! asked for and sent. Each connection has a thread; all end with the test's process.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use serde_json::Value;
use tungstenite::{Message, WebSocket, protocol::CloseFrame};

/// A request of the client.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The path without the leading slash and without the query.
    pub(crate) path: String,
    /// The query's parameters, or those of a JSON body.
    pub(crate) given: BTreeMap<String, String>,
    /// The body, if it is JSON.
    pub(crate) body: Value,
    /// The header `authorization`.
    pub(crate) authorization: String,
}

/// A reply: the status, more headers, and the body.
pub(crate) type Reply = (u16, &'static str, Value);

/// What happens on the WebSocket, from the newest connection.
pub(crate) enum Heard {
    /// A client has connected; texts for it go here. Dropping it cuts the connection, and `close CODE`
    /// closes it with that code.
    Connected(Sender<String>),
    /// The client has sent a text.
    Text(Value),
}

/// A running platform.
pub(crate) struct Platform {
    pub(crate) address: String,
    pub(crate) heard: Receiver<Heard>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Platform {
    /// Starts it. `reply` gets the platform's address, too.
    pub(crate) fn start(reply: impl Fn(&str, &Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (hears, heard) = mpsc::channel();
        let (log, reply, own) = (Arc::clone(&asked), Arc::new(reply), address.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (log, reply, own, hears) = (Arc::clone(&log), Arc::clone(&reply), own.clone(), hears.clone());
                std::thread::spawn(move || {
                    let mut start = [0; 7];
                    // The path of WebSockets is /ws.
                    while matches!(stream.peek(&mut start), Ok(1..=6)) {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    if &start == b"GET /ws" {
                        talk(stream, &hears);
                    } else {
                        answer(stream, &own, &log, &*reply);
                    }
                });
            }
        });
        Self { address, heard, asked }
    }

    /// What was asked for so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Waits for a WebSocket connection; texts that come meanwhile are passed over.
    pub(crate) fn connected(&self) -> Sender<String> {
        loop {
            match self.heard.recv_timeout(Duration::from_secs(60)).unwrap() {
                Heard::Connected(sends) => return sends,
                Heard::Text(_) => {}
            }
        }
    }

    /// Waits for a text of the client that `wanted` accepts.
    pub(crate) fn text(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            match self.heard.recv_timeout(Duration::from_secs(60)).unwrap() {
                Heard::Text(text) if wanted(&text) => return text,
                _ => {}
            }
        }
    }
}

/// Answers one request and closes the connection.
fn answer(mut stream: TcpStream, own: &str, log: &Mutex<Vec<Asked>>, reply: &(dyn Fn(&str, &Asked) -> Reply + Sync)) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    let head_end = loop {
        let Ok(read @ 1..) = stream.read(&mut buffer) else { return };
        bytes.extend_from_slice(&buffer[..read]);
        if let Some(at) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let header = |name: &str| {
        let line = head.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")));
        line.and_then(|line| line.split_once(':')).map_or(String::new(), |(_, value)| value.trim().to_owned())
    };
    let length: usize = header("content-length").parse().unwrap_or_default();
    while bytes.len() < head_end + length {
        let Ok(read @ 1..) = stream.read(&mut buffer) else { return };
        bytes.extend_from_slice(&buffer[..read]);
    }
    let body: Value = serde_json::from_slice(&bytes[head_end..]).unwrap_or_default();
    let target = head.split_whitespace().nth(1).unwrap_or_default();
    let url = url::Url::parse(&format!("http://x{target}")).unwrap();
    let mut given: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    for (key, value) in body.as_object().into_iter().flatten() {
        given.insert(key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    let path = url.path().trim_start_matches('/').to_owned();
    let asked = Asked { path, given, body, authorization: header("authorization") };
    log.lock().unwrap().push(asked.clone());
    let (status, headers, body) = reply(own, &asked);
    let body = body.to_string();
    let text = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{body}",
        body.len()
    );
    drop(stream.write_all(text.as_bytes()));
}

/// Sends what the test says and reports what comes, until the test drops its end or the client leaves.
fn talk(stream: TcpStream, hears: &Sender<Heard>) {
    let timeouts = stream.try_clone().unwrap();
    let Ok(mut socket): Result<WebSocket<TcpStream>, _> = tungstenite::accept(stream) else { return };
    timeouts.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let (sends, texts) = mpsc::channel::<String>();
    drop(hears.send(Heard::Connected(sends)));
    loop {
        match texts.try_recv() {
            Ok(text) if text.starts_with("close ") => {
                let code: u16 = text["close ".len()..].parse().unwrap();
                drop(socket.close(Some(CloseFrame { code: code.into(), reason: "as told".into() })));
                // The client answers, unless it is gone.
                while socket.read().is_ok() {}
                return;
            }
            Ok(text) => {
                if socket.send(Message::text(text)).is_err() {
                    return;
                }
                continue;
            }
            Err(mpsc::TryRecvError::Disconnected) => return,
            Err(mpsc::TryRecvError::Empty) => {}
        }
        match socket.read() {
            Ok(Message::Text(text)) => {
                drop(hears.send(Heard::Text(serde_json::from_str(&text).unwrap_or_default())));
            }
            Ok(_) => {}
            Err(tungstenite::Error::Io(e))
                if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => return,
        }
    }
}
