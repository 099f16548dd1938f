//! The tools for agents, over the Model Context Protocol.
//!
//! In: requests of a client, on standard input or over HTTP. Out: results of eleven tools; banks, questions and profiles
//! as resources; a notification when a followed question or profile changed. Standard output carries nothing else. A
//! tool that fails answers with an error that says what to do; the server goes on.
//!
//! - `tools`: what the tools take and give, as types with schemas; `tool_schema` makes the schemas.
//! - `memory_access`: the calls of a memory, in this process or in another; `tool_call_error`: why a call failed;
//!   `lazy_memory`: opens the memory.
//! - `tool_calls`: what each tool does.
//! - `mcp_server`: the protocol's requests, on `rmcp`; `resources`: the banks, questions and profiles.
//! - `resource_follower`: one question or profile that a client follows; `resource_notifier`: all that one client follows;
//!   `sessions`: the clients over HTTP of the protocol's revision with sessions.
//! - `stdio`: a server on standard input and output, within the bounds of `stdio_pipes`; `http_route`: a server at
//!   `/mcp`; `rpc_message`: what both check of a message.

mod http_route;
mod lazy_memory;
mod mcp_server;
mod memory_access;
mod resource_follower;
mod resource_notifier;
mod resources;
mod rpc_message;
mod sessions;
mod stdio;
mod stdio_pipes;
mod tool_call_error;
mod tool_calls;
mod tool_schema;
mod tools;

pub(super) use http_route::routes;
pub use stdio::{McpError, McpOptions, serve_stdio};
