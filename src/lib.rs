//! RippleMem: long-term memory for LLM agents as a live dataflow.
//!
//! [`Memory`] is the surface for programs that keep a memory of their own:
//!
//! ```no_run
//! use ripplemem::{Memory, config::Pipeline, model::{Bank, EventTime, Question, Turn}, pipeline::Asked};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let memory = Memory::open(&Pipeline::parse("version = 1")?)?; // in ./ripplemem-data
//! let (bank, said_at) = (Bank::parse("acme/support")?, EventTime::parse("2024-05-06T09:00:00Z")?);
//! // Durable on return; extraction and embedding follow in the background.
//! let written = memory.put([Turn::new(bank.clone(), "1", "Ann", "I moved to Lisbon.", said_at)])?;
//! let question = Question { bank, text: "Where does Ann live?".to_owned(), asked_at: None };
//! // `after` waits until the answer reflects what was written.
//! let evidence = memory.ask_and_wait(Asked::now(question).after(&written))?;
//! println!("{}", evidence.context);
//! memory.close()?;
//! # Ok(())
//! # }
//! ```
//! `examples/remember_and_ask.rs` does more: a deletion, and the changes of the graph.
//!
//! What `memory` holds is a pure function of the memory log: clocks, files and models stay in the
//! rooms before it. The rooms, in the data's order, and the question that each answers:
//!
//! | room | question |
//! |---|---|
//! | [`model`] | What are the nouns: turn, window, unit, edge, question, evidence? |
//! | [`config`] | What may a pipeline file say? |
//! | [`source`] | Where do turns come from? |
//! | [`log`] | Where are turns and memory records stored durably? |
//! | [`window`] | Which turns belong together? |
//! | [`language`] | What do English sentences say of names, places and times? |
//! | [`endpoint`] | How are servers of models called? |
//! | [`llm`] | What may a language model be asked, and what did it answer before? |
//! | [`extract`] | What is worth remembering in a window? |
//! | [`embed`] | Which vector does a text have? |
//! | [`memory`] | Which units are there, what links them, and which does a question call to mind? |
//! | [`recall`] | Which evidence answers a question? |
//! | [`snapshot`] | How is the memory restored, and what was it in the past? |
//! | [`pipeline`] | How do the rooms work together, from a turn to an answer? |
//! | [`serve`] | How does all this run as a service, over HTTP or on Kafka? |
//! | [`telemetry`] | Which metrics does a service have? |
//! | [`eval`] | How good is it, beside the baselines? |
//! | [`schema`] | Which JSON Schema does each record have? |
//! | `chunked_map` | How do many entries lie in order in little room? |
//! | `sparse` | How does a collection have little more room than it needs? |
//! | `store` | How do the embedded stores hold what was written lately? |
//! | [`sync`] | What happens to a lock whose holder panicked? |
//!
//! Cargo features, all of them default but the last: `cli` is the program; `kafka` the log on Kafka and
//! the service there; `eval` the evaluation; `imessage` the reader of Messages' database; `live` the sources
//! that follow chat platforms; `mcp` the tools for agents; `qwen3` runs Qwen3-Embedding on this machine.

#![cfg_attr(
    not(all(feature = "imessage", feature = "kafka", feature = "live", feature = "mcp")),
    allow(
        dead_code,
        unused_imports,
        reason = "some of what a smaller build has is called by the service, the live sources or the tools alone"
    )
)]

mod chunked_map;
pub mod config;
pub mod embed;
pub mod endpoint;
#[cfg(feature = "eval")]
pub mod eval;
pub mod extract;
pub mod language;
pub mod llm;
pub mod log;
pub mod memory;
pub mod model;
pub mod pipeline;
pub mod recall;
pub mod schema;
pub mod serve;
pub mod snapshot;
pub mod source;
mod sparse;
mod store;
pub mod sync;
pub mod telemetry;
pub mod window;

pub use pipeline::Memory;

/// Reports a skipped test on standard error; the harness hides what a passed test prints.
#[cfg(test)]
fn skipped(what: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "SKIPPED {what}"));
}

/// Runs a test again in a process of its own, where no other test takes memory; true in that process.
#[cfg(test)]
fn in_own_process(test: &str) -> bool {
    const MARK: &str = "RIPPLEMEM_OWN_PROCESS";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let mut command = std::process::Command::new(std::env::current_exe().expect("this program"));
    let output = command.args([test, "--exact", "--nocapture"]).env(MARK, "1").output().expect("a process");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{test} is not the name of a test: {said}");
    false
}

/// Bytes of this process in memory; 0 where the system does not tell.
#[cfg(test)]
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4_096
}
