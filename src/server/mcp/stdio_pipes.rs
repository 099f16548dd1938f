//! The client's standard streams, within bounds.
//!
//! In: the client's input and output. Out: the client's messages for the server, one per line, and the server's
//! answers for the client. A line that is too long is answered at once with an error, and only its id is kept. While
//! the requests in progress reach their limit, in number or in bytes, nothing more is read: a client that sends and
//! never reads fills its own pipe and not our memory. Notifications wait behind the requests too. A line that is not a
//! message is answered here, so that the server answers every request that it gets.
//!
//! The transport of `rmcp` (3.11) bounds a line, too, but drops a longer one without an answer, and it reads on however
//! many requests are in progress.

use crate::log_events;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream, duplex},
    sync::watch,
};

use super::rpc_message::{INVALID_REQUEST, check, error, parse_message};
use crate::v1::MAX_BYTES;
use types::lone_surrogates::replace_lone_surrogates;

/// Most requests in progress.
const MAX_REQUESTS: usize = 256;
/// Once the requests in progress have this many bytes, no other message is read.
const MAX_WAITING_BYTES: usize = 64 << 20;
/// Size of each buffer between the streams and the server, in bytes.
const ON_ITS_WAY: usize = 64 << 10;

/// Connects the client's streams to a server. Returns the server's two ends, and the work that moves the messages. The
/// work ends once the client's input has ended and the server has closed its end.
pub(super) fn bounded_pipes<R, W>(input: R, output: W) -> (DuplexStream, DuplexStream, impl Future<Output = ()>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (to_server, server_reads) = duplex(ON_ITS_WAY);
    let (server_writes, from_server) = duplex(ON_ITS_WAY);
    let (open, _) = watch::channel(OpenRequests::default());
    let (refused, refusals) = tokio::sync::mpsc::channel(1);
    let work = async move {
        let inward = read(input, to_server, &open, &refused);
        let outward = write(from_server, output, &open, refusals);
        // The answers end once the server has closed its end, which it does when its input has ended.
        futures_util::future::join(inward, outward).await;
    };
    (server_reads, server_writes, work)
}

/// The requests in progress, by id, each with its bytes.
#[derive(Default)]
struct OpenRequests(HashMap<String, usize>);

impl OpenRequests {
    fn has_room(&self) -> bool {
        self.0.len() < MAX_REQUESTS && self.0.values().sum::<usize>() < MAX_WAITING_BYTES
    }
}

/// What is read of an answer; anything in its other fields is skipped.
#[derive(Deserialize)]
struct AnswerHead {
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
}

/// An id as text that is the same however the id was escaped.
fn name_of(id: &Value) -> String {
    id.to_string()
}

/// Passes the client's messages to the server.
async fn read(
    input: impl AsyncRead + Unpin,
    mut server: DuplexStream,
    open: &watch::Sender<OpenRequests>,
    refused: &tokio::sync::mpsc::Sender<Vec<u8>>,
) {
    let mut input = BufReader::new(input);
    let mut room = open.subscribe();
    let mut line = Vec::new();
    let mut has_waited = false;
    loop {
        if !room.borrow_and_update().has_room() {
            if !std::mem::replace(&mut has_waited, true) {
                log_events::client_slow(MAX_REQUESTS);
            }
            // The sender is `open`, so the channel is never closed here.
            drop(room.changed().await);
            continue;
        }
        match next_line(&mut input, &mut line).await {
            InputLine::Whole => {
                if line.trim_ascii().is_empty() {
                    continue;
                }
                let json = replace_lone_surrogates(&line);
                match message_in(&json) {
                    Ok(message) => {
                        note_message(&message, json.len(), open);
                        // The last line may have no line break.
                        let passes = async {
                            server.write_all(json.trim_ascii_end()).await?;
                            server.write_all(b"\n").await
                        };
                        if passes.await.is_err() {
                            return;
                        }
                    }
                    Err(error) => {
                        if refused.send(format!("{error}\n").into_bytes()).await.is_err() {
                            return;
                        }
                    }
                }
            }
            InputLine::TooLong(id) => {
                log_events::message_too_long(MAX_BYTES);
                let why = format!("the message has more than {MAX_BYTES} bytes; divide it among several calls");
                let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32600, "message": why}});
                if refused.send(format!("{error}\n").into_bytes()).await.is_err() {
                    return;
                }
            }
            InputLine::End => return,
        }
    }
}

/// The message of a line.
///
/// # Errors
/// The answer that says what is wrong with it.
fn message_in(line: &[u8]) -> Result<Value, Value> {
    let message = parse_message(line)?;
    if message.is_array() {
        let problem = "a batch; send each message on a line of its own";
        return Err(error(&Value::Null, INVALID_REQUEST, problem));
    }
    check(&message)?;
    Ok(message)
}

/// Counts a request as in progress; a cancelled one no longer, because it need not be answered.
fn note_message(message: &Value, bytes: usize, open: &watch::Sender<OpenRequests>) {
    let Some(method) = message.get("method").and_then(Value::as_str) else { return };
    match message.get("id") {
        Some(id) => open.send_modify(|open| {
            open.0.insert(name_of(id), bytes);
        }),
        None if method == "notifications/cancelled" => {
            if let Some(id) = message.pointer("/params/requestId") {
                open.send_modify(|open| {
                    open.0.remove(&name_of(id));
                });
            }
        }
        None => {}
    }
}

/// Passes the server's messages and the refusals to the client, each as a whole.
async fn write(
    server: DuplexStream,
    mut output: impl AsyncWrite + Unpin,
    open: &watch::Sender<OpenRequests>,
    mut refusals: tokio::sync::mpsc::Receiver<Vec<u8>>,
) {
    let mut server = BufReader::new(server);
    let mut line = Vec::new();
    loop {
        // `line` keeps the part of a line that was read when the other branch runs.
        let answered = tokio::select! {
            read = server.read_until(b'\n', &mut line) => match read {
                Ok(bytes) if bytes > 0 || !line.is_empty() => true,
                _ => return,
            },
            Some(refusal) = refusals.recv(), if line.is_empty() => {
                if output.write_all(&refusal).await.is_err() || output.flush().await.is_err() {
                    return;
                }
                false
            }
        };
        if !answered {
            continue;
        }
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return;
        }
        if let Ok(AnswerHead { id: Some(id), method: None }) = serde_json::from_slice(&line) {
            open.send_modify(|open| {
                open.0.remove(&name_of(&id));
            });
        }
        line.clear();
    }
}

/// The result of reading a line.
enum InputLine {
    /// A line that is not too long.
    Whole,
    /// A line that is too long, with the id of its request; null if none was found.
    TooLong(Value),
    /// The input has ended.
    End,
}

/// Reads a line into `line`.
async fn next_line(input: &mut (impl AsyncBufReadExt + Unpin), line: &mut Vec<u8>) -> InputLine {
    line.clear();
    let mut too_long: Option<IdScanner> = None;
    loop {
        let Ok(bytes) = input.fill_buf().await else { return InputLine::End };
        if bytes.is_empty() {
            // The last line may have no line break.
            return match too_long {
                Some(scan) => InputLine::TooLong(scan.id()),
                None if line.is_empty() => InputLine::End,
                None => InputLine::Whole,
            };
        }
        let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let piece = end.and_then(|end| bytes.get(..end)).unwrap_or(bytes);
        let taken = piece.len();
        match &mut too_long {
            Some(scan) => scan.take(piece),
            None if line.len() + taken > MAX_BYTES + 1 => {
                let mut scan = IdScanner::default();
                scan.take(line);
                scan.take(piece);
                *line = Vec::new();
                too_long = Some(scan);
            }
            None => line.extend_from_slice(piece),
        }
        input.consume(taken);
        if end.is_some() {
            return too_long.map_or(InputLine::Whole, |scan| InputLine::TooLong(scan.id()));
        }
    }
}

/// Finds the id of a message that is too long to be kept, byte by byte.
#[derive(Default)]
struct IdScanner {
    /// How many objects and lists are open.
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// The first bytes of the last string at depth 1, which may be the name of a field.
    name: Vec<u8>,
    /// Whether the next byte may belong to the value of `id`.
    in_id: bool,
    id: Vec<u8>,
}

impl IdScanner {
    /// Most bytes of an id that are read.
    const MAX: usize = 256;

    fn take(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.byte(*byte));
    }

    fn byte(&mut self, byte: u8) {
        if self.in_id {
            let ends = !self.in_string && matches!(byte, b',' | b'}');
            if ends || self.id.len() > Self::MAX {
                self.in_id = false;
            } else {
                self.id.push(byte);
            }
        }
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ if self.depth == 1 && self.name.len() < 3 => self.name.push(byte),
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.name.clear();
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 && self.name == b"id" && self.id.is_empty() => self.in_id = true,
            b',' => self.name.clear(),
            _ => {}
        }
    }

    /// The id, if it is a string or a number; null otherwise.
    fn id(&self) -> Value {
        let id = serde_json::from_slice(&self.id).unwrap_or_default();
        if matches!(id, Value::String(_) | Value::Number(_)) { id } else { Value::Null }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    fn call(id: usize) -> String {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n")
    }

    #[test]
    fn a_line_that_is_too_long_is_answered_by_its_id_and_the_next_one_goes_through() {
        let long = "x".repeat(MAX_BYTES + 1);
        for (before, after, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"a","params":{"id":8,"text":""#, r#""}}"#, json!(7)),
            (r#"{"params":{"id":8,"text":"\"id\":9,"#, r#""},"id" : "a\"b","method":"c"}"#, json!("a\"b")),
            (r#"{"method":"id","params":[":"#, r#""]}"#, Value::Null),
            ("", "", Value::Null),
        ] {
            runtime().block_on(async {
                let input = format!("{before}{long}{after}\n{}", call(1));
                let (mut client, output) = duplex(1 << 20);
                let (mut server_reads, server_writes, work) = bounded_pipes(input.as_bytes(), output);
                let server = async {
                    let mut read = String::new();
                    server_reads.read_to_string(&mut read).await.unwrap();
                    assert_eq!(read, call(1));
                    drop(server_writes);
                };
                futures_util::future::join(work, server).await;
                let mut told = String::new();
                client.read_to_string(&mut told).await.unwrap();
                let told: Value = serde_json::from_str(&told).unwrap();
                assert_eq!((&told["id"], &told["error"]["code"]), (&id, &json!(-32600)), "{before}");
                assert!(told["error"]["message"].as_str().unwrap().contains("divide"));
            });
        }
    }

    #[test]
    fn a_client_that_never_reads_is_read_no_further_until_it_does() {
        let sent = 4 * MAX_REQUESTS;
        runtime().block_on(async {
            let input: String = (0..sent).map(call).collect();
            // Not even one answer fits into the client's pipe.
            let (mut client, output) = duplex(16);
            let (server_reads, mut server_writes, work) = bounded_pipes(input.as_bytes(), output);
            let (taken, mut taken_by_server) = watch::channel(0);
            // It answers everything that it gets, as fast as it can.
            let server = async {
                let mut lines = BufReader::new(server_reads).lines();
                let mut answers: Vec<Value> = Vec::new();
                while let Some(line) = lines.next_line().await.unwrap() {
                    let message: Value = serde_json::from_str(&line).unwrap();
                    answers.push(message["id"].clone());
                    taken.send_modify(|taken| *taken += 1);
                    if answers.len() == MAX_REQUESTS {
                        for id in answers.drain(..) {
                            let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
                            server_writes.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
                        }
                    }
                }
                drop(server_writes);
            };
            let reader = async {
                while *taken_by_server.borrow_and_update() < MAX_REQUESTS {
                    taken_by_server.changed().await.unwrap();
                }
                // Everything that can happen without the client has happened.
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
                assert_eq!(*taken_by_server.borrow(), MAX_REQUESTS, "no more than may be in progress");
                let mut answers = String::new();
                client.read_to_string(&mut answers).await.unwrap();
                assert_eq!(answers.lines().count(), sent);
            };
            futures_util::future::join3(work, server, reader).await;
        });
    }

    #[test]
    fn a_request_that_is_answered_or_cancelled_makes_room() {
        let note = |line: &str, open: &watch::Sender<OpenRequests>| {
            note_message(&message_in(line.as_bytes()).unwrap(), line.len(), open);
        };
        let (open, room) = watch::channel(OpenRequests::default());
        for id in 0..MAX_REQUESTS {
            note(&call(id), &open);
        }
        assert!(!room.borrow().has_room());
        note(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#, &open);
        assert!(room.borrow().has_room());
        for no_request in
            [r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]
        {
            note(no_request, &open);
        }
        assert_eq!(room.borrow().0.len(), MAX_REQUESTS - 1);
        let large = format!(r#"{{"jsonrpc":"2.0","id":"l","method":"{}"}}"#, "x".repeat(MAX_WAITING_BYTES));
        let (open, room) = watch::channel(OpenRequests::default());
        note(&large, &open);
        assert!(!room.borrow().has_room());
    }

    /// Each of these lines took a place for ever, until no other message was read.
    #[test]
    fn no_line_takes_a_place_that_its_answer_does_not_free() {
        let odd = [
            (r#"{"jsonrpc":"2.0","id":"\u00e9\/1","method":"ping"}"#, None),
            (r#"{"jsonrpc":"2.0","id":5,"method":"ping","params":{"text":"\ud83d kayak"}}"#, None),
            (r#"{"jsonrpc":"2.0","id":6,"method":"ping","params":[1]}"#, Some(json!(6))),
            (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, Some(json!(7))),
            (r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}"#, Some(Value::Null)),
            (r#"[{"jsonrpc":"2.0","id":8,"method":"ping"}]"#, Some(Value::Null)),
            ("junk", Some(Value::Null)),
            ("", None),
        ];
        runtime().block_on(async {
            let rounds = MAX_REQUESTS;
            let once = odd.each_ref().map(|(line, _)| *line).join("\n");
            // The last line has no line break.
            let input = vec![once; rounds].join("\n") + &call(1).trim_end().replace(":1,", ":\"last\",");
            let (mut client, output) = duplex(1 << 20);
            let (server_reads, mut server_writes, work) = bounded_pipes(input.as_bytes(), output);
            let server = async {
                let mut lines = BufReader::new(server_reads).lines();
                let mut last = Value::Null;
                while let Some(line) = lines.next_line().await.unwrap() {
                    let message: Value = serde_json::from_str(&line).unwrap();
                    last = message["id"].clone();
                    // As a server does that escapes no more than it must.
                    let answer = json!({"jsonrpc": "2.0", "id": last, "result": {}});
                    server_writes.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
                }
                drop(server_writes);
                last
            };
            let reader = async {
                let mut answers = String::new();
                client.read_to_string(&mut answers).await.unwrap();
                answers
            };
            let ((), last, answers) = futures_util::future::join3(work, server, reader).await;
            assert_eq!(last, "last");
            let errors: Vec<Value> = answers
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap())
                .filter(|answer| answer.get("error").is_some())
                .map(|answer| answer["id"].clone())
                .collect();
            let expected: Vec<Value> = odd.into_iter().filter_map(|(_, id)| id).collect();
            assert_eq!(errors, vec![expected; rounds].concat());
            assert_eq!(answers.lines().count(), rounds * 7 + 1);
        });
    }
}
