//! The project's invariants, each held by a test that fails when it is broken.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod access;
mod asking;
mod bad_input;
mod bench;
mod broker_process;
mod browser;
mod bucket_process;
mod buckets;
mod chat_kafka;
mod chat_samples;
mod coding_agents;
mod compare;
mod conditional_writes;
mod console;
mod containers;
mod context;
mod cross_origin;
mod docs;
mod document;
mod dry_run;
mod event_stream;
mod explain;
mod files;
mod first_run;
mod forgetting;
mod forgetting_forms;
mod history;
mod http;
mod http_limits;
mod http_load;
mod http_service;
mod imports;
mod kafka;
mod kafka_attacks;
mod kafka_conditions;
mod kafka_forgetting;
mod kafka_forwarded;
mod kafka_http;
mod kafka_instances;
mod kafka_markers;
mod kafka_outages;
mod kafka_oversize;
mod kafka_questions;
mod kafka_reading;
mod kafka_repair;
mod kafka_sleep;
mod kafka_snapshots;
mod library;
mod live;
mod live_discord;
mod live_kafka;
mod live_matrix;
mod live_platform;
mod live_recorded;
mod live_slack;
mod live_transcripts;
mod llm;
mod mcp;
mod mcp_conformance;
mod mcp_follow;
mod mem0;
mod metadata;
mod model_process;
mod model_proxy;
mod mutated;
mod mutated_fields;
mod mutated_requests;
mod operations;
mod oracle;
#[cfg(feature = "otlp")]
mod otlp;
mod passages;
mod path;
mod pipelines;
mod profile;
mod profile_beginning;
mod python_client;
mod quarantine;
mod question_client;
mod reading;
mod real_model;
mod recovery;
mod reembed;
mod replay;
mod reranker;
mod retention;
mod schemas;
mod served_model;
mod sessions;
mod skipped;
mod snapshots;
mod subscriptions;
mod support;
mod tidy;
mod transfer;
mod typescript_adapters;
mod typescript_client;
mod upgrades;
mod views;
mod worked_page;
mod worked_trace;

/// The repository.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_ripplemem");

/// The program that stands in for a language model.
fn scripted_model() -> &'static std::path::Path {
    std::path::Path::new(env!("CARGO_BIN_EXE_scripted-model"))
}
