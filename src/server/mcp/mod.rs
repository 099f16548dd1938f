//! The tools for agents, over the Model Context Protocol.
//!
//! In: requests of a client, on standard input or over HTTP. Out: results of nine tools; banks and questions as
//! resources; a notification when the evidence of a followed question changed. Standard output carries nothing else.
//! A tool that fails answers with an error that says what to do; the server goes on.
//!
//! - `tools`: what the tools take and give, as types with schemas; `tool_schema` makes the schemas.
//! - `access`: the calls of a memory, in this process or in another; `call_error`: why a call failed;
//!   `opened_memory`: opens the memory.
//! - `calls`: what each tool does.
//! - `server`: the protocol's requests, on `rmcp`; `resources`: the banks and questions.
//! - `follower`: one question that a client follows; `listener`: all that one client follows; `sessions`: the clients
//!   over HTTP of the protocol's revision with sessions.
//! - `stdio`: a server on standard input and output, within the bounds of `pipes`; `http`: a server at `/mcp`;
//!   `message`: what both check of a message.

mod access;
mod call_error;
mod calls;
mod follower;
mod http;
mod listener;
mod message;
mod opened_memory;
mod pipes;
mod resources;
mod server;
mod sessions;
mod stdio;
mod tool_schema;
mod tools;

pub(super) use http::routes;
pub use stdio::{McpError, McpOptions, serve_stdio};
