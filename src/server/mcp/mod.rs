//! The tools for agents, over the Model Context Protocol.
//!
//! In: requests of a client, on standard input or over HTTP. Out: results of six tools; banks and questions as
//! resources; a notification when the evidence of a question changed that the client follows. Standard output
//! carries nothing else. A tool that fails answers with an error that says what to do; the server goes on.
//!
//! - `tools`: what the tools take and give, as types with schemas; `tool_schema` makes the schemas.
//! - `access`: the calls of a memory, in this process or in another; `call_error` why one
//!   failed, `opened_memory` opens it.
//! - `calls`: what each tool does.
//! - `server`: the protocol's requests, on `rmcp`; `resources` are the banks and questions.
//! - `follower`: one question that a client follows; `listener` what one client follows; `sessions` the
//!   clients over HTTP, where the protocol's revision has sessions.
//! - `stdio`: a server on standard input and output; `http`: one at `/mcp` of a memory that is served.

mod access;
mod call_error;
mod calls;
mod follower;
mod http;
mod listener;
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
