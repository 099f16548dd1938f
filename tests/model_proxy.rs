//! A proxy in front of a language model's server, which counts what was answered and cuts streams off.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::Value;

/// A proxy; its threads end with the process.
pub(crate) struct ModelProxy {
    /// The base URL.
    pub(crate) endpoint: String,
    state: Arc<State>,
}

struct State {
    upstream: String,
    /// How many of the next responses are cut off, and after how many bytes.
    cuts: AtomicUsize,
    cut_after: AtomicUsize,
    /// Every request's body, and whether its response was passed on to its end.
    requests: Mutex<Vec<(Value, bool)>>,
}

impl ModelProxy {
    /// A proxy in front of the server at `endpoint`.
    pub(crate) fn start(endpoint: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = endpoint.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
        let state = Arc::new(State {
            upstream,
            cuts: AtomicUsize::new(0),
            cut_after: AtomicUsize::new(0),
            requests: Mutex::default(),
        });
        let endpoint = format!("http://{}/v1", listener.local_addr().unwrap());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                // A side that disconnects ends only its connection.
                std::thread::spawn(move || drop(state.pass(stream)));
            }
        });
        Self { endpoint, state }
    }

    /// Cuts off the next `times` responses after that many bytes.
    pub(crate) fn cut(&self, times: usize, after: usize) {
        self.state.cut_after.store(after, Ordering::SeqCst);
        self.state.cuts.store(times, Ordering::SeqCst);
    }

    /// The requests so far, each with whether it was answered to the end.
    pub(crate) fn requests(&self) -> Vec<(Value, bool)> {
        self.state.requests.lock().unwrap().clone()
    }

    /// How many requests were answered to the end.
    pub(crate) fn answered(&self) -> usize {
        self.requests().iter().filter(|(_, answered)| *answered).count()
    }
}

impl State {
    fn pass(&self, mut client: TcpStream) -> std::io::Result<()> {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") {
            client.read_exact(&mut byte)?;
            request.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&request).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        let mut body = vec![0; length.unwrap_or(0)];
        client.read_exact(&mut body)?;
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push((serde_json::from_slice(&body).unwrap_or_default(), false));
            requests.len() - 1
        };
        // One response per connection, so that its end is the connection's.
        let head = head.trim_end().to_owned() + "\r\nConnection: close\r\n\r\n";
        let mut server = TcpStream::connect(&self.upstream)?;
        server.write_all(head.as_bytes())?;
        server.write_all(&body)?;
        let take = |n: usize| n.checked_sub(1);
        let cut = self.cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_ok();
        let mut left = if cut { self.cut_after.load(Ordering::SeqCst) } else { usize::MAX };
        let (mut buffer, mut tail) = ([0; 4_096], Vec::new());
        loop {
            let read = server.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            let passed = &buffer[..read.min(left)];
            client.write_all(passed)?;
            left -= passed.len();
            tail.extend_from_slice(passed);
            tail.drain(..tail.len().saturating_sub(64));
            if left == 0 {
                return Ok(());
            }
        }
        let ended = tail.windows(6).any(|window| window == b"[DONE]");
        self.requests.lock().unwrap()[number].1 = ended;
        Ok(())
    }
}
