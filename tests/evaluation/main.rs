//! The program `ripplemem-eval`, through its command line.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod benchmark;
#[path = "../browser.rs"]
#[allow(dead_code, reason = "the tests of the console use the rest")]
mod browser;
mod calibrate;
#[path = "../model_process.rs"]
#[allow(dead_code, reason = "the tests of the service use the rest")]
mod model_process;
mod pages;
mod report_page;
mod schemas;
#[path = "../skipped.rs"]
mod skipped;
#[path = "../support.rs"]
#[allow(dead_code, reason = "the tests of the service use the rest")]
mod support;
mod worked_model;

/// The repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_ripplemem-eval");

/// The program that stands in for a language model. It belongs to the package `ripplemem`, so a run of these tests
/// alone needs `cargo build --bin scripted-model` first.
fn scripted_model() -> std::path::PathBuf {
    let program = std::path::Path::new(PROGRAM).with_file_name("scripted-model");
    assert!(program.exists(), "{} is missing; run `cargo build --bin scripted-model`", program.display());
    program
}
