//! The conformance suite of the Model Context Protocol against `/mcp`. Most of its scenarios call the tools, the
//! resources and the prompts of a server made for it; each is named below with what we do not have. The test is
//! named as skipped where npm reaches no network.

use std::{
    collections::BTreeMap,
    process::{Command, Output},
};

use super::{
    broker_process::skip,
    http_service::{HttpService, pipeline_file},
};

/// What we must pass.
const PASSED: [&str; 6] = [
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
];

/// What we do not have, by scenario.
const ABSENT: [(&str, &[&str]); 5] = [
    (
        "it calls a tool of a server made for the suite, test_*",
        &[
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-with-logging",
            "tools-call-error",
            "tools-call-with-progress",
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ],
    ),
    (
        "it reads a resource of a server made for the suite, test://*",
        &["resources-read-text", "resources-read-binary", "resources-templates-read"],
    ),
    ("no session is kept that a change could be sent to", &["resources-subscribe", "resources-unsubscribe"]),
    (
        "no prompts",
        &[
            "prompts-list",
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
        ],
    ),
    ("no completions, and no log sent to the client", &["completion-complete", "logging-set-level"]),
];

fn conformance(arguments: &[&str]) -> std::io::Result<Output> {
    let mut command = Command::new("npx");
    // Without a network it gives up soon.
    command.env("npm_config_fetch_retries", "0").env("npm_config_fetch_timeout", "60000");
    command.args(["-y", "-p", "node@22", "-p", "@modelcontextprotocol/conformance@0.1.16", "conformance"]);
    command.args(arguments).output()
}

#[test]
fn the_conformance_suite_passes_but_for_what_is_not_offered() {
    let test = "the_conformance_suite_passes_but_for_what_is_not_offered";
    match conformance(&["list"]) {
        Ok(output) if output.status.success() => {}
        Ok(output) => return skip(test, String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => return skip(test, &format!("npx: {error}")),
    }
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let results = home.path().join("results");
    let url = format!("http://{}/mcp", service.address);
    let output = conformance(&["server", "--url", &url, "--output-dir", results.to_str().unwrap()]).unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let summary = said.split("=== SUMMARY ===").nth(1).unwrap_or_else(|| panic!("{said}"));
    let scenario = |line: &str| {
        let (mark, rest) = line.trim().split_once(' ')?;
        let (name, _) = rest.split_once(':')?;
        matches!(mark, "✓" | "✗").then(|| (name.to_owned(), mark == "✓"))
    };
    let found: BTreeMap<String, bool> = summary.lines().filter_map(scenario).collect();
    let absent = ABSENT.iter().flat_map(|(_, names)| names.iter()).map(|name| ((*name).to_owned(), false));
    let passed = PASSED.iter().map(|name| ((*name).to_owned(), true));
    let expected: BTreeMap<String, bool> = passed.chain(absent).collect();
    assert_eq!(found, expected, "{said}");
    assert!(service.stop());
}
