//! The tools for agents, over the Model Context Protocol.
//!
//! In: requests of a client, on standard input or over HTTP. Out: results of six tools, and the banks as
//! resources; standard output carries nothing else. A tool that fails answers with an error that says what
//! to do; the server goes on.
//!
//! - `tools`: what the tools take and give, as types with schemas; `tool_schema` makes the schemas.
//! - `access`: the calls of a memory, in this process or in another; `call_error` why one
//!   failed, `opened_memory` opens it.
//! - `calls`: what each tool does.
//! - `server`: the protocol's requests, on `rmcp`; `resources` are the banks.
//! - `stdio`: a server on standard input and output; `http`: one at `/mcp` of a memory that is served.

mod access;
mod call_error;
mod calls;
mod http;
mod opened_memory;
mod resources;
mod server;
mod stdio;
mod tool_schema;
mod tools;

pub(super) use http::routes;
pub use stdio::{McpError, McpOptions, serve_stdio};
