//! The project's invariants, each held by a test that fails when it is broken.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod bad_input;
mod broker_process;
mod bucket_process;
mod buckets;
mod calibrate;
mod chat_samples;
mod containers;
mod docs;
mod dry_run;
mod eval;
mod imports;
mod kafka;
mod kafka_questions;
mod kafka_reading;
mod kafka_snapshots;
mod llm;
mod model_process;
mod oracle;
mod path;
mod pipelines;
mod quarantine;
mod reading;
mod recovery;
mod reembed;
mod replay;
mod schemas;
mod served_model;
mod snapshots;
mod support;
mod tidy;
mod transfer;
mod worked_model;
mod worked_page;
mod worked_trace;
