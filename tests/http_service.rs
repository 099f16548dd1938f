//! A service on an embedded log as a process of its own, and raw HTTP to it.

use std::{
    io::{Read, Write},
    net::TcpStream,
    ops::Deref,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use server::address_of;

use super::support::write;

/// A running `ripplemem serve`; killed when it is dropped.
pub(crate) struct HttpService {
    child: Child,
    client: HttpClient,
}

/// Raw requests to an address.
pub(crate) struct HttpClient {
    pub(crate) address: String,
}

impl Deref for HttpService {
    type Target = HttpClient;
    fn deref(&self) -> &HttpClient {
        &self.client
    }
}

/// A pipeline file in a directory, with the deterministic embedder and the log beside it.
pub(crate) fn pipeline_file(home: &Path, extra: &str) -> PathBuf {
    write(&home.join("p.toml"), format!("version = 1\nembed.model = \"fixed\"\nlog.directory = \"log\"\n{extra}"))
}

impl HttpService {
    /// Serves the directory's pipeline file on a free port; `command` is `serve` with its arguments.
    pub(crate) fn start(home: &Path, command: &[&str]) -> Self {
        Self::run(home, Command::new(env!("CARGO_BIN_EXE_ripplemem")).args(command))
    }

    /// Serves a directory's pipeline file with a limit on the files that it may open.
    pub(crate) fn limited(home: &Path, files: usize) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_ripplemem")]);
        command.args(["serve", "--listen", "127.0.0.1:0", "--pipeline"]).arg(home.join("p.toml"));
        Self::run(home, &mut command)
    }

    fn run(home: &Path, command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::from(std::fs::File::create(home.join("stderr")).unwrap()))
            .spawn()
            .unwrap();
        let holder = format!("process {}", child.id());
        let started = Instant::now();
        let address = loop {
            if let Some(address) = address_of(&home.join("log"), &holder) {
                break address.address;
            }
            let said = || std::fs::read_to_string(home.join("stderr")).unwrap_or_default();
            assert!(child.try_wait().unwrap().is_none(), "{}", said());
            assert!(started.elapsed() < Duration::from_secs(60), "{}", said());
            std::thread::sleep(Duration::from_millis(2));
        };
        Self { child, client: HttpClient { address } }
    }

    /// Serves the pipeline file of a directory.
    pub(crate) fn of(home: &Path) -> Self {
        let file = home.join("p.toml");
        Self::start(home, &["serve", "--listen", "127.0.0.1:0", "--pipeline", file.to_str().unwrap()])
    }

    /// Serves the pipeline file of a directory, and logs what `lines` says, as `RUST_LOG`.
    pub(crate) fn that_logs(home: &Path, lines: &str) -> Self {
        Self::with_variable(home, "RUST_LOG", lines)
    }

    /// Serves the pipeline file of a directory with an environment variable.
    pub(crate) fn with_variable(home: &Path, name: &str, value: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ripplemem"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--pipeline"]).arg(home.join("p.toml"));
        Self::run(home, command.env(name, value))
    }

    /// Asks it to end, and waits; returns whether it ended well.
    pub(crate) fn stop(mut self) -> bool {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.child.wait().unwrap().success()
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl HttpClient {
    /// A connection.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Sends a whole request, with these further header lines; returns the status, the type and the JSON.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String, Value) {
        answer(&mut self.begin(method, path, headers, body)).unwrap()
    }

    /// Sends a whole request; returns the connection for its response.
    pub(crate) fn begin(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        let host = if headers.contains("Host:") { String::new() } else { format!("Host: {}\r\n", self.address) };
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{host}{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        // A body that is refused early is not read to its end.
        let _ = stream.write_all(body);
        stream
    }

    /// As [`Self::send`], for a response that is not JSON: the status and the body.
    pub(crate) fn send_text(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String) {
        let mut stream = self.begin(method, path, headers, body);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        (status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let (status, _, body) = self.send("GET", path, "", b"");
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let (status, _, answer) = self.send("POST", path, "", body.to_string().as_bytes());
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }
}

/// Waits until this number of questions wait for a turn.
pub(crate) fn questions_wait(service: &HttpService, headers: &str, questions: usize) {
    let line = format!("ripplemem_questions_waiting{{what=\"turn\"}} {questions}");
    let begun = Instant::now();
    while !service.send_text("GET", "/metrics", headers, b"").1.lines().any(|found| found == line) {
        assert!(begun.elapsed() < Duration::from_secs(300), "{line} is never seen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for HttpService {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a response to its end; `None` if there is none.
pub(crate) fn answer(stream: &mut TcpStream) -> Option<(u16, String, Value)> {
    let mut bytes = Vec::new();
    // A connection that was reset after the response still gave one.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let kind = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap_or_default();
    Some((status, kind.to_owned(), serde_json::from_str(body).unwrap_or(Value::Null)))
}
