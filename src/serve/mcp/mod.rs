//! The tools for agents, over the Model Context Protocol.
//!
//! In: requests of a client, on standard input. Out: results of six tools, on standard output, which
//! carries nothing else. A tool that fails answers with an error that says what to do; the server goes
//! on. It ends when the client closes standard input.
//!
//! - `tools`: what the tools take and give, as types with schemas; `tool_schema` makes the schemas.
//! - `access`: what the tools ask of a memory; `local` is one in this process, `opened_memory` opens it.
//! - `calls`: what each tool does.
//! - `server`: the protocol's requests, on `rmcp`; `resources` are the banks.
//! - `stdio`: a server on standard input and output.

mod access;
mod calls;
mod local;
mod opened_memory;
mod server;
mod stdio;
mod tool_schema;
mod tools;

pub use stdio::{McpError, McpOptions, serve_stdio};
