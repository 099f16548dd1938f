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
//! let question = Question::new(bank, "Where does Ann live?");
//! // `after` waits until the answer reflects what was written.
//! let evidence = memory.ask_and_wait(Asked::now(question).after(&written))?;
//! println!("{}", evidence.context);
//! memory.close()?;
//! # Ok(())
//! # }
//! ```
//! `examples/remember_and_ask.rs` does more: a deletion, and the changes of the graph.
//!
//! What a memory holds is a pure function of its memory log: clocks, files and models stay in front of it. The
//! other crates, in the data's order: `nouns`, `sources` (turns in), `heart` (the memory itself, pure), `models`
//! (embedders and the language model), this one, `server` and `eval`.
//!
//! | module | question |
//! |---|---|
//! | [`file_lock`] | Who may write, of several processes? |
//! | [`private_directory`] | Who may read a directory? |
//! | [`log`] | Where are turns and memory records stored durably? |
//! | [`snapshot`] | How is the memory restored, and what was it in the past? |
//! | [`pipeline`] | How do the rooms work together, from a turn to an answer? |

pub mod file_lock;
pub mod log;
pub mod pipeline;
pub mod private_directory;
pub mod snapshot;

pub use nouns::{config, model};
pub use pipeline::Memory;
