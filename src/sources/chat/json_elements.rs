//! The values under given paths in a large JSON file, one at a time.
//!
//! In: a stream of JSON, and paths such as `messages/*` or `chats/list/*/messages/*`: keys with `/` between them, `*`
//! for every element of an array; `*` alone is a top-level array. Out: each value under one of the paths, in the file's
//! order, as its bytes and its line. Memory is bounded by the largest value; one beyond [`MAX_VALUE_BYTES`] is cut. A
//! value that is not valid JSON is still returned: its end is found by tracking brackets and strings, and the scan
//! continues after it. A byte order mark is skipped. If a list is expected, a stream without a list of such values
//! gives a value with a problem.

use std::{
    borrow::Cow,
    io::{self, BufRead, BufReader, Read},
};

use serde::de::DeserializeOwned;

use types::{lone_surrogates::replace_lone_surrogates, model::DeadLetter};

/// The longest value that is kept.
const MAX_VALUE_BYTES: usize = 16 << 20;
/// The longest key that can be part of a path.
const MAX_KEY_BYTES: usize = 256;
/// The deepest nesting inside a value: serde_json reads no deeper either.
const MAX_DEPTH: usize = 128;
const ENDS_EARLY: &str = "the file ends early, inside this record; export or copy it again";
const NO_LIST: &str = "holds no list of messages; export it again";

/// A scan of a stream of JSON.
pub(crate) struct JsonElements {
    input: BufReader<Box<dyn Read + Send>>,
    read_bytes: u64,
    line: u64,
    paths: Vec<Vec<&'static str>>,
    /// The containers around the current position that lie on a requested path.
    open: Vec<JsonContainer>,
    /// Containers that were closed since the last key or value, the outermost first. They are opened again if the text
    /// that follows shows that the closing brackets were left over from a damaged value.
    closed: Vec<JsonContainer>,
    started: bool,
    ended: bool,
    /// Whether a stream without a list of values has a problem.
    expects_list: bool,
    has_list: bool,
    /// Whether a problem was returned.
    has_told: bool,
}

/// An object, with the key whose value comes next or came last; or an array.
enum JsonContainer {
    Object { key: String, value_next: bool },
    Array,
}

/// A value under one of the paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonElement {
    /// Which of the paths, counted from 0.
    pub path: usize,
    /// The line on which it begins, from 1.
    pub line: u64,
    /// Its bytes as they are in the file, except that lone surrogates are replaced.
    pub bytes: Vec<u8>,
    /// Why it is incomplete: the file ends inside it, or it is too long.
    pub problem: Option<&'static str>,
}

/// What the paths request of the value at the current position.
enum WantedJson {
    Whole(usize),
    Inside,
    Nothing,
}

impl JsonElements {
    /// Scans a stream for the values under these paths.
    pub(crate) fn new(input: Box<dyn Read + Send>, paths: &[&'static str]) -> Self {
        Self {
            input: BufReader::with_capacity(1 << 16, input),
            read_bytes: 0,
            line: 1,
            paths: paths.iter().map(|path| path.split('/').collect()).collect(),
            open: Vec::new(),
            closed: Vec::new(),
            started: false,
            ended: false,
            expects_list: false,
            has_list: false,
            has_told: false,
        }
    }

    /// The same scan. If a list is expected and none is under the paths, it returns an empty value with a problem.
    pub(crate) fn expect_list(self, expects_list: bool) -> Self {
        Self { expects_list, ..self }
    }

    /// The next value; `None` at the end of the stream.
    ///
    /// # Errors
    /// When the stream cannot be read.
    pub(crate) fn next(&mut self) -> io::Result<Option<JsonElement>> {
        if !self.started {
            self.started = true;
            self.skip_byte_order_mark()?;
        }
        while let Some(byte) = self.peek()? {
            let key_next = matches!(self.open.last(), Some(JsonContainer::Object { value_next: false, .. }));
            let in_object = matches!(self.open.last(), Some(JsonContainer::Object { .. }));
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.take(byte),
                b',' => {
                    if self.open.is_empty() {
                        self.reopen();
                    }
                    self.value_next(false);
                    self.take(byte);
                }
                b':' => {
                    self.value_next(in_object);
                    self.take(byte);
                }
                b'}' | b']' => {
                    self.close(byte);
                    self.take(byte);
                }
                b'"' if key_next => {
                    let read = self.key()?;
                    self.closed.clear();
                    if let Some(JsonContainer::Object { key, .. }) = self.open.last_mut() {
                        *key = read;
                    }
                }
                b'{' | b'[' if key_next => {
                    if self.closed.is_empty() {
                        self.extent(byte, false)?;
                    } else {
                        self.reopen();
                    }
                }
                // Neither a key nor a value: a stray byte of a damaged file.
                _ if key_next => self.take(byte),
                _ => {
                    self.closed.clear();
                    let element = self.value(byte)?;
                    if element.is_some() {
                        return Ok(element);
                    }
                }
            }
        }
        let (line, problem) = if !self.open.is_empty() && !self.ended {
            (self.line, ENDS_EARLY)
        } else if self.expects_list && !self.has_list && !self.has_told {
            (1, NO_LIST)
        } else {
            return Ok(None);
        };
        (self.ended, self.has_told) = (true, true);
        Ok(Some(JsonElement { path: 0, line, bytes: Vec::new(), problem: Some(problem) }))
    }

    /// How many bytes were read.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// The line that the scan has reached.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Takes the value that begins with `first`: returns it, enters it, or skips it.
    fn value(&mut self, first: u8) -> io::Result<Option<JsonElement>> {
        match self.wanted() {
            WantedJson::Whole(path) => {
                let line = self.line;
                let (bytes, problem) = self.extent(first, true)?;
                self.has_told |= problem.is_some();
                let bytes = match replace_lone_surrogates(&bytes) {
                    Cow::Owned(whole) => whole,
                    Cow::Borrowed(_) => bytes,
                };
                Ok(Some(JsonElement { path, line, bytes, problem }))
            }
            WantedJson::Inside if first == b'{' => {
                self.open.push(JsonContainer::Object { key: String::new(), value_next: false });
                self.take(first);
                Ok(None)
            }
            WantedJson::Inside if first == b'[' => {
                self.has_list |= self.is_list_next();
                self.open.push(JsonContainer::Array);
                self.take(first);
                Ok(None)
            }
            // Some programs write a list without elements as null.
            WantedJson::Inside if first == b'n' && !self.open.is_empty() => {
                let is_list = self.is_list_next();
                let (bytes, _) = self.extent(first, true)?;
                self.has_list |= is_list && bytes == b"null";
                Ok(None)
            }
            _ => {
                self.extent(first, false)?;
                Ok(None)
            }
        }
    }

    /// What the paths request of a value at the current position.
    fn wanted(&self) -> WantedJson {
        let mut inside = self.open.is_empty();
        for (number, path) in self.paths.iter().enumerate() {
            let along = self.is_along(path);
            if along && path.len() == self.open.len() && !self.open.is_empty() {
                return WantedJson::Whole(number);
            }
            inside |= along;
        }
        if inside { WantedJson::Inside } else { WantedJson::Nothing }
    }

    /// Whether the current position lies on a path.
    fn is_along(&self, path: &[&'static str]) -> bool {
        self.open.iter().enumerate().all(|(at, container)| match (container, path.get(at)) {
            (JsonContainer::Object { key, .. }, Some(wanted)) => *wanted != "*" && *wanted == key.as_str(),
            (JsonContainer::Array, Some(wanted)) => *wanted == "*",
            (_, None) => false,
        })
    }

    /// Whether a list at the current position would hold values under one of the paths.
    fn is_list_next(&self) -> bool {
        self.paths.iter().any(|path| path.get(self.open.len()) == Some(&"*") && self.is_along(path))
    }

    /// Leaves the containers that a closing bracket ends. One that fits none of them is left over
    /// from a damaged value.
    fn close(&mut self, byte: u8) {
        let fits = |container: &JsonContainer| matches!(container, JsonContainer::Array) == (byte == b']');
        if let Some(at) = self.open.iter().rposition(fits) {
            let inner = self.open.split_off(at);
            self.closed.splice(0..0, inner);
        }
        self.value_next(false);
    }

    /// Re-enters the containers that were closed by mistake.
    fn reopen(&mut self) {
        self.open.append(&mut self.closed);
    }

    /// Sets whether a value or a key comes next in the innermost object.
    fn value_next(&mut self, value: bool) {
        if let Some(JsonContainer::Object { value_next, .. }) = self.open.last_mut() {
            *value_next = value;
        }
    }

    /// Reads a string that is a key.
    fn key(&mut self) -> io::Result<String> {
        let (mut bytes, _) = self.extent(b'"', true)?;
        bytes.truncate(MAX_KEY_BYTES);
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Reads to the end of the value that begins with `first`, and keeps its bytes if asked to.
    ///
    /// A line break inside a string shows that an earlier quote is missing or superfluous: the string counts as closed
    /// there, so that one damaged value does not swallow the rest of the file. A closing bracket that does not match
    /// the innermost open bracket closes all brackets up to the one that it matches. If it matches none, the value ends
    /// before it. The value also ends before an object that begins where a key is expected.
    fn extent(&mut self, first: u8, keep: bool) -> io::Result<(Vec<u8>, Option<&'static str>)> {
        let mut kept = Vec::new();
        let mut problem = None;
        let mut last = first;
        let mut brackets: Vec<u8> = Vec::new();
        let mut depth_beyond = 0usize;
        let (mut string, mut escape) = (false, false);
        let is_scalar = !matches!(first, b'{' | b'[' | b'"');
        loop {
            let chunk = match self.input.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                chunk => chunk?,
            };
            if chunk.is_empty() {
                if !is_scalar || !self.open.is_empty() {
                    problem = problem.or(Some(ENDS_EARLY));
                    self.ended = true;
                }
                return Ok((kept, problem));
            }
            let mut used = 0;
            let mut finished = false;
            for &byte in chunk {
                if is_scalar {
                    if matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n') {
                        finished = true;
                        break;
                    }
                    used += 1;
                    continue;
                }
                if string {
                    match byte {
                        _ if escape => escape = false,
                        b'\\' => escape = true,
                        b'"' => string = false,
                        _ => {}
                    }
                    if byte == b'\n' {
                        (string, escape, last) = (false, false, b',');
                    }
                    used += 1;
                    if !string && brackets.is_empty() {
                        finished = true;
                        break;
                    }
                    continue;
                }
                match byte {
                    b'"' => string = true,
                    b'{' if last == b',' && brackets.last() == Some(&b'{') => {
                        finished = true;
                        break;
                    }
                    b'{' | b'[' if brackets.len() < MAX_DEPTH => brackets.push(byte),
                    b'{' | b'[' => depth_beyond += 1,
                    b'}' | b']' if depth_beyond > 0 => depth_beyond -= 1,
                    b'}' | b']' => {
                        let opening = if byte == b'}' { b'{' } else { b'[' };
                        match brackets.iter().rposition(|b| *b == opening) {
                            Some(at) => brackets.truncate(at),
                            None => {
                                finished = true;
                                break;
                            }
                        }
                    }
                    _ => {}
                }
                used += 1;
                if !byte.is_ascii_whitespace() {
                    last = byte;
                }
                if brackets.is_empty() && !string {
                    finished = true;
                    break;
                }
            }
            let part = chunk.get(..used).unwrap_or(chunk);
            self.line += part.iter().filter(|b| **b == b'\n').count() as u64;
            if keep {
                let room = MAX_VALUE_BYTES.saturating_sub(kept.len());
                if part.len() > room {
                    problem = Some("longer than 16 MiB; leave it out of the export");
                }
                kept.extend_from_slice(part.get(..room).unwrap_or(part));
            }
            self.read_bytes += used as u64;
            self.input.consume(used);
            if finished {
                return Ok((kept, problem));
            }
        }
    }

    fn skip_byte_order_mark(&mut self) -> io::Result<()> {
        for expected in *b"\xEF\xBB\xBF" {
            if self.peek()? != Some(expected) {
                break;
            }
            self.take(expected);
        }
        Ok(())
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            match self.input.fill_buf() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                chunk => return Ok(chunk?.first().copied()),
            }
        }
    }

    /// Consumes the byte that `peek` returned.
    fn take(&mut self, byte: u8) {
        self.input.consume(1);
        self.read_bytes += 1;
        self.line += u64::from(byte == b'\n');
    }
}

impl JsonElement {
    /// The value as `T`; if it cannot be read as one, a dead letter with the origin `FILE:LINE`.
    pub(crate) fn parse<T: DeserializeOwned>(&self, file: &str) -> Result<T, DeadLetter> {
        if let Some(problem) = self.problem {
            return Err(self.reject(file, problem.to_owned()));
        }
        let text = std::str::from_utf8(&self.bytes).map_err(|e| {
            self.reject(file, format!("not UTF-8 after byte {}; re-encode the file as UTF-8", e.valid_up_to()))
        })?;
        serde_json::from_str(text).map_err(|e| {
            // serde counts lines and columns from the start of the value.
            let line = self.line + (e.line() as u64).saturating_sub(1);
            let place = format!("{}:{line}", file);
            let message = e.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            let remedy =
                if e.is_data() { "the export has another form here" } else { "not JSON; mend it or export it again" };
            DeadLetter::new(place, format!("{message}; {remedy}"), &self.bytes)
        })
    }

    /// A dead letter for this value with the origin `FILE:LINE`.
    pub(crate) fn reject(&self, file: &str, reason: String) -> DeadLetter {
        DeadLetter::new(format!("{file}:{}", self.line), reason, &self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Everything under the paths: path, line, text and whether something is wrong with it. The stream is read one byte
    /// at a time as well as all at once.
    fn check(json: &str, paths: &[&'static str], expected: &[(usize, u64, &str, bool)]) {
        struct Drops(Cursor<Vec<u8>>);
        impl Read for Drops {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let one = buffer.len().min(1);
                self.0.read(&mut buffer[..one])
            }
        }
        let whole = Cursor::new(json.as_bytes().to_vec());
        for input in [Box::new(whole.clone()) as Box<dyn Read + Send>, Box::new(Drops(whole))] {
            let mut elements = JsonElements::new(input, paths);
            let mut found = Vec::new();
            while let Some(e) = elements.next().unwrap() {
                let bad = e.parse::<serde_json::Value>("f").is_err();
                found.push((e.path, e.line, String::from_utf8(e.bytes).unwrap(), bad));
            }
            let found: Vec<_> = found.iter().map(|(p, l, t, b)| (*p, *l, t.as_str(), *b)).collect();
            assert_eq!(found, expected, "{json}");
            assert_eq!(elements.read_bytes(), json.len() as u64, "{json}");
            assert!(elements.next().unwrap().is_none());
        }
    }

    #[test]
    fn values_come_from_under_their_paths_with_their_lines() {
        check(
            "\u{feff}[1, \"a,]\",\n{\"b\": [2]}, null]",
            &["*"],
            &[(0, 1, "1", false), (0, 1, "\"a,]\"", false), (0, 2, "{\"b\": [2]}", false), (0, 2, "null", false)],
        );
        check(
            "{\"x\": {\"messages\": [0]}, \"name\": \"n\\\"\", \"messages\": [{\"id\": 1},\n{\"id\": 2}]}",
            &["name", "messages/*"],
            &[(0, 1, "\"n\\\"\"", false), (1, 1, "{\"id\": 1}", false), (1, 2, "{\"id\": 2}", false)],
        );
        check(
            "{\"chats\": {\"about\": [9], \"list\": [{\"id\": 7, \"messages\": [1, 2]}, {\"id\": 8, \"messages\": []}]}}",
            &["chats/list/*/id", "chats/list/*/messages/*"],
            &[(0, 1, "7", false), (1, 1, "1", false), (1, 1, "2", false), (0, 1, "8", false)],
        );
        check("{}", &["*"], &[]);
        check("", &["*"], &[]);
    }

    #[test]
    fn a_damaged_value_is_returned_and_the_scan_goes_on_behind_it() {
        let next = (0, 2, "{\"a\": 2}", false);
        for (damaged, kept) in [
            ("{\"a\": }", "{\"a\": }"),
            ("{\"a\": \"\\x05\"}", "{\"a\": \"\\x05\"}"),
            ("{\"a\": {\"b\": 1}", "{\"a\": {\"b\": 1},\n"),
            ("{\"a\": [1, 2}", "{\"a\": [1, 2}"),
            ("{\"a\": 1]}", "{\"a\": 1"),
            ("{\"a\": \"b}", "{\"a\": \"b},\n"),
            ("tru", "tru"),
            ("{a: 1}", "{a: 1}"),
        ] {
            check(&format!("[{damaged},\n{{\"a\": 2}}]"), &["*"], &[(0, 1, kept, true), next]);
            check(&format!("{{\"m\": [{damaged},\n{{\"a\": 2}}]}}"), &["m/*"], &[(0, 1, kept, true), next]);
        }
    }

    #[test]
    fn a_file_that_ends_early_says_so() {
        check("[{\"a\": 1}, {\"a\"", &["*"], &[(0, 1, "{\"a\": 1}", false), (0, 1, "{\"a\"", true)]);
        check("[{\"a\": 1},", &["*"], &[(0, 1, "{\"a\": 1}", false), (0, 1, "", true)]);
    }

    #[test]
    fn a_file_without_the_expected_list_is_told_once() {
        const PATHS: &[&str] = &["*", "messages/*", "name"];
        let found = |json: &str| {
            let mut elements = JsonElements::new(Box::new(Cursor::new(json.to_owned())), PATHS).expect_list(true);
            let mut problems = Vec::new();
            while let Some(element) = elements.next().unwrap() {
                problems.extend(element.problem.map(|problem| (element.line, problem)));
            }
            problems
        };
        for none in
            ["", " \n", "null", "{}", "5", "{\"ts\": 1}\n{\"ts\": 2}", "{\"data\": [1]}", "{\"name\": \"x\", \"mess"]
        {
            assert_eq!(found(none), [(1, NO_LIST)], "{none}");
        }
        for list in ["[]", "[1]\n[2]", "{\"messages\": []}", "{\"messages\": null}", "{\"a\": 1, \"messages\": [{}]}"] {
            assert_eq!(found(list), [], "{list}");
        }
        for cut in ["[1, ", "{\"messages\": ", "{\"name\": \"x"] {
            assert_eq!(found(cut), [(1, ENDS_EARLY)], "{cut}");
        }
    }

    #[test]
    fn a_dead_letter_names_the_line_of_the_problem() {
        let json = "[\n{\"a\": 1,\n\"b\": x}]";
        let mut elements = JsonElements::new(Box::new(Cursor::new(json)), &["*"]);
        let letter = elements.next().unwrap().unwrap().parse::<serde_json::Value>("day.json").unwrap_err();
        assert_eq!(letter.origin, "day.json:3");
        assert!(letter.reason.starts_with("expected value; not JSON"), "{}", letter.reason);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_run_on(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
                                            json in "[\\[\\]{}\",:a0\\\\ \n]{0,80}") {
            for input in [bytes, json.into_bytes()] {
                let length = input.len() as u64;
                let mut elements = JsonElements::new(Box::new(Cursor::new(input)), &["*", "a/*", "a/*/a"]);
                let mut found = 0;
                while let Some(element) = elements.next().unwrap() {
                    let _ = element.parse::<serde_json::Value>("f");
                    found += 1;
                    assert!(found <= length + 1);
                }
                assert_eq!(elements.read_bytes(), length);
            }
        }
    }
}
