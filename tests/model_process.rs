//! Starts the scripted model (`tests/scripted_model`) as a separate process.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::Value;
use types::config::Pipeline;

/// A scripted model, killed when it is dropped.
pub(crate) struct ScriptedModel {
    child: Child,
    /// The base URL.
    pub(crate) endpoint: String,
}

impl ScriptedModel {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(super::scripted_model()).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut endpoint = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut endpoint).unwrap();
        Self { child, endpoint: endpoint.trim().to_owned() }
    }

    /// The `[llm]` table for this endpoint and a model named by its script.
    pub(crate) fn toml(&self, model: &str) -> String {
        format!("[llm]\nendpoint = \"{}\"\nmodel = \"{model}\"\n", self.endpoint)
    }

    /// A pipeline that uses this endpoint.
    pub(crate) fn pipeline(&self, directory: &std::path::Path, model: &str, extra: &str) -> Pipeline {
        super::support::pipeline(directory, &format!("{extra}\n{}", self.toml(model)))
    }

    /// The bodies of all requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let url = self.endpoint.replace("/v1", "/requests");
        let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        std::io::Write::write_all(&mut stream, format!("GET /{path} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
