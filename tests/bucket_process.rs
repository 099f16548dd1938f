//! An S3 server for a test, and a proxy to it that fails as planned.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use super::support::Python;

/// A running server with a bucket called `memory`.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts the server; if it is not installed, reports the test as skipped and returns `None`.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let python = Python::with("moto", test)?;
        let mut child = python
            .command()
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap()).lines();
        let here = "Running on http://";
        let line =
            told.by_ref().map(Result::unwrap).find(|line| line.contains(here)).expect("the server prints its address");
        let address = line.split(here).nth(1).unwrap().trim().parse().unwrap();
        std::thread::spawn(move || told.for_each(drop));
        let server = Self { child, address };
        let made = server.ask("PUT", "/memory", b"");
        assert!(made.starts_with("HTTP/1.1 200"), "{made}");
        Some(server)
    }

    /// The response to a request.
    pub(crate) fn ask(&self, method: &str, path: &str, body: &[u8]) -> String {
        String::from_utf8_lossy(&forward(self.address, &request(method, path, body))).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What the proxy does with a request.
pub(crate) enum Fate {
    /// Forwards it.
    Passes,
    /// Forwards it after a delay.
    Late(Duration),
    /// Refuses it with a status.
    Refused(u16),
    /// Closes the connection without forwarding it.
    Dropped,
    /// Forwards it, and closes the connection without a response.
    Unanswered,
    /// Forwards it, and returns half of the response.
    Halved,
    /// Keeps the connection open without a response.
    Silence,
    /// Forwards it after another request with this body.
    Overtaken(Vec<u8>),
}

type Plan = Box<dyn FnMut(&str) -> Fate + Send>;

/// A proxy to a server.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    plan: Arc<Mutex<Plan>>,
}

impl Proxy {
    /// `plan` sees the first line of each request.
    pub(crate) fn to(server: &Server, plan: impl FnMut(&str) -> Fate + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, behind) = (listener.local_addr().unwrap(), server.address);
        let plan: Arc<Mutex<Plan>> = Arc::new(Mutex::new(Box::new(plan)));
        let shared = Arc::clone(&plan);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let plan = Arc::clone(&shared);
                std::thread::spawn(move || carry(stream, behind, &plan));
            }
        });
        Self { address, plan }
    }

    /// Replaces the plan.
    pub(crate) fn set_plan(&self, plan: impl FnMut(&str) -> Fate + Send + 'static) {
        *self.plan.lock().unwrap() = Box::new(plan);
    }
}

/// Handles one request and its response.
fn carry(mut stream: TcpStream, behind: SocketAddr, plan: &Mutex<Plan>) {
    let Some(request) = read(&mut stream) else { return };
    let first = String::from_utf8_lossy(request.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
    let fate = plan.lock().unwrap()(&first);
    let answer = match fate {
        Fate::Passes => forward(behind, &request),
        Fate::Late(by) => {
            std::thread::sleep(by);
            forward(behind, &request)
        }
        Fate::Refused(status) => {
            format!("HTTP/1.1 {status} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
        }
        Fate::Dropped => Vec::new(),
        Fate::Unanswered => {
            forward(behind, &request);
            Vec::new()
        }
        Fate::Halved => {
            let answer = forward(behind, &request);
            answer[..answer.len() / 2].to_vec()
        }
        Fate::Silence => {
            // Until the client closes the connection.
            drop(stream.read(&mut [0]));
            Vec::new()
        }
        Fate::Overtaken(body) => {
            let path = first.split(' ').nth(1).unwrap_or_default();
            forward(behind, &self::request("PUT", path, &body));
            forward(behind, &request)
        }
    };
    drop(stream.write_all(&answer));
    drop(stream.shutdown(Shutdown::Both));
}

fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    // The server requires credentials, but does not check the signature.
    let who = "AWS4-HMAC-SHA256 Credential=test/20240501/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: s3\r\nAuthorization: {who}\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// A complete request; `None` when the connection ends before.
fn read(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    let mut part = [0; 16_384];
    loop {
        let end = request.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            if request.len() >= end + 4 + length.unwrap_or(0) {
                return Some(request);
            }
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return None,
            Ok(read) => request.extend_from_slice(&part[..read]),
        }
    }
}

/// The response to a request, after which the server closes the connection.
fn forward(to: SocketAddr, request: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    let Ok(mut stream) = TcpStream::connect(to) else { return answer };
    let end = request.windows(2).position(|two| two == b"\r\n").unwrap_or_default();
    let parts = [&request[..end], b"\r\nConnection: close", &request[end..]].concat();
    drop(stream.write_all(&parts));
    drop(stream.read_to_end(&mut answer));
    answer
}

/// Gives a process the server's address and credentials.
pub(crate) fn with_credentials(command: &mut Command, address: SocketAddr) -> &mut Command {
    command
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ENDPOINT", format!("http://{address}"))
        .env("AWS_ALLOW_HTTP", "true")
        .env("NO_PROXY", "127.0.0.1")
}
