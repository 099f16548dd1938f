//! A client of server-sent events: a connection, and what a follower puts together from it.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
};

use serde_json::Value;

use super::http_service::HttpClient;

/// A stream of events.
pub(crate) struct EventStream {
    reader: BufReader<Chunks>,
    /// The status of the response.
    pub(crate) status: u16,
}

/// An event: its name, id and data. A comment has no name.
#[derive(Debug, Clone)]
pub(crate) struct ServerEvent {
    pub(crate) name: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// The body of a chunked response.
struct Chunks {
    stream: BufReader<TcpStream>,
    left: usize,
    /// The last chunk was read.
    is_complete: bool,
}

impl Read for Chunks {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            self.left = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            if self.left == 0 {
                self.is_complete = line.trim() == "0";
                return Ok(0);
            }
            self.left += 2;
        }
        let most = into.len().min(self.left);
        let taken = self.stream.read(&mut into[..most])?;
        self.left -= taken;
        Ok(taken)
    }
}

impl EventStream {
    /// Sends a GET; reads the head of the response.
    pub(crate) fn open(client: &HttpClient, path: &str, headers: &str) -> Self {
        Self::sent(client, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", client.address))
    }

    /// Sends a POST; reads the head of the response.
    pub(crate) fn post(client: &HttpClient, path: &str, headers: &str, body: &Value) -> Self {
        let (body, host) = (body.to_string(), &client.address);
        let length = body.len();
        Self::sent(
            client,
            &format!(
                "POST {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            ),
        )
    }

    /// Checks that a stream tells proxies to pass events on at once, and neither to store nor to compress them.
    fn sent(client: &HttpClient, request: &str) -> Self {
        let mut stream = client.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        let mut first = String::new();
        stream.read_line(&mut first).unwrap();
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let (mut line, mut head) = (String::new(), String::new());
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).unwrap();
            head.push_str(&line.to_ascii_lowercase());
        }
        if head.contains("content-type: text/event-stream") {
            for said in ["x-accel-buffering: no\r\n", "cache-control: no-cache, no-store, no-transform\r\n"] {
                assert!(head.contains(said), "{said:?} is missing: {head}");
            }
        }
        Self { reader: BufReader::new(Chunks { stream, left: 0, is_complete: false }), status }
    }

    /// Whether the response came to its own end, and was not cut off.
    pub(crate) fn is_complete(&self) -> bool {
        self.reader.get_ref().is_complete
    }

    /// The next event; none at the end.
    pub(crate) fn next(&mut self) -> Option<ServerEvent> {
        let mut event = ServerEvent { name: String::new(), id: None, data: Value::Null };
        loop {
            let mut line = String::new();
            match self.reader.read_line(&mut line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => panic!("no event in time: {error}"),
            }
            match line.trim_end_matches(['\r', '\n']).split_once(": ") {
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("id", id)) => event.id = Some(id.to_owned()),
                // The two bytes at the end of a chunk are an empty line, too.
                Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                _ if event.name.is_empty() => {}
                _ => return Some(event),
            }
        }
    }
}

/// The evidence as a follower puts it together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Followed {
    units: BTreeMap<String, Value>,
    order: Vec<String>,
    /// The last progress.
    pub(crate) progress: Value,
    pub(crate) id: Option<String>,
    /// The events so far, by name.
    pub(crate) seen: Vec<String>,
    anew: bool,
}

impl Followed {
    /// Takes an event, as docs/http.md says.
    pub(crate) fn take(&mut self, event: &ServerEvent) {
        self.seen.push(event.name.clone());
        assert_eq!(event.id.is_some(), event.name == "progress", "only a progress has an id: {event:?}");
        let id = |unit: &Value| unit["id"].as_str().unwrap().to_owned();
        match event.name.as_str() {
            "reset" => *self = Self { seen: std::mem::take(&mut self.seen), ..Self::default() },
            "snapshot" => {
                if event.data["from"] == 0 {
                    (self.units, self.order) = Default::default();
                }
                assert_eq!(event.data["from"], self.order.len(), "the pieces follow each other");
                for unit in event.data["units"].as_array().unwrap() {
                    self.order.push(id(unit));
                    self.units.insert(id(unit), unit.clone());
                }
            }
            "delta" => {
                let of = |name: &str| event.data[name].as_array().unwrap().clone();
                for removed in of("removed") {
                    assert_eq!(removed.as_object().unwrap().len(), 2, "its id and its rank alone: {removed}");
                    assert_eq!(self.order[removed["rank"].as_u64().unwrap() as usize], id(&removed));
                    assert!(self.units.remove(&id(&removed)).is_some());
                }
                for updated in of("updated") {
                    let old = self.units.insert(id(&updated["unit"]), updated["unit"].clone());
                    assert!(old.is_some());
                }
                for added in of("added") {
                    let old = self.units.insert(id(&added["unit"]), added["unit"].clone());
                    assert_eq!(old, None);
                }
                self.order = of("order").iter().map(|id| id.as_str().unwrap().to_owned()).collect();
                assert_eq!(self.order.len(), self.units.len());
            }
            "progress" => {
                self.progress = event.data.clone();
                self.id.clone_from(&event.id);
                assert_eq!(self.progress["units"], self.order.len());
            }
            other => panic!("{other}: {}", event.data),
        }
        self.anew = event.name == "progress";
    }

    /// Whether nothing is missing.
    pub(crate) fn is_complete(&self) -> bool {
        self.anew
    }

    /// Ids and excerpts, in order.
    pub(crate) fn evidence(&self) -> Vec<(Value, Value)> {
        self.order.iter().map(|id| (Value::from(id.as_str()), self.units[id]["excerpts"].clone())).collect()
    }

    /// The offset of a topic that the last progress reflects.
    pub(crate) fn offset(&self, topic: &str) -> u64 {
        let reflects = self.progress["reflects"].as_array().into_iter().flatten();
        reflects.filter(|at| at["topic"] == topic).find_map(|at| at["next_offset"].as_u64()).unwrap_or_default()
    }

    /// Takes events up to a progress that reflects the turns before an offset.
    pub(crate) fn reach(&mut self, stream: &mut EventStream, turns: u64) {
        while !self.is_complete() || self.offset("turns") < turns {
            self.take(&stream.next().expect("the stream goes on"));
        }
    }
}

/// The evidence of an answer, as [`Followed::evidence`].
pub(crate) fn evidence_of(answer: &Value) -> Vec<(Value, Value)> {
    answer["units"].as_array().unwrap().iter().map(|unit| (unit["id"].clone(), unit["excerpts"].clone())).collect()
}
