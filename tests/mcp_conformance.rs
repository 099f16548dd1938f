//! The conformance suite of the Model Context Protocol against `/mcp`. Most of its scenarios call the tools, the
//! resources and the prompts of a server made for it; each is named below with what we do not have. The test is
//! named as skipped if npm reaches no network.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Command, Output},
};

use super::{
    http_service::{HttpService, pipeline_file},
    skipped::skip,
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
const ABSENT: [(&str, &[&str]); 4] = [
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
        "it reads or follows a resource of a server made for the suite, test://*",
        &[
            "resources-read-text",
            "resources-read-binary",
            "resources-templates-read",
            "resources-subscribe",
            "resources-unsubscribe",
        ],
    ),
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

/// The suite with the scenarios of revision 2025-11-25, and the one with those of 2026-07-28.
const OF_2025: &str = "@modelcontextprotocol/conformance@0.1.16";
const OF_2026: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

/// Scenarios of revision 2026-07-28 that any server can be asked, each with the checks that need what we do not
/// have: tools of a server made for the suite (test_missing_capability, test_streaming_elicitation,
/// test_logging_tool), and prompts.
const STATELESS: [(&str, &[&str]); 6] = [
    (
        "server-stateless",
        &[
            "sep-2575-http-server-no-independent-requests-on-stream",
            "sep-2575-missing-capability-http-400",
            "sep-2575-server-no-log-without-loglevel",
            "sep-2575-server-rejects-undeclared-capability",
        ],
    ),
    ("caching", &["sep-2549-prompts-list-caching-hints"]),
    ("http-header-validation", &[]),
    ("sep-2164-resource-not-found", &[]),
    ("tools-list", &[]),
    ("resources-list", &[]),
];

fn conformance(suite: &str, arguments: &[&str]) -> std::io::Result<Output> {
    let mut command = Command::new("npx");
    // Without a network it gives up soon.
    command.env("npm_config_fetch_retries", "0").env("npm_config_fetch_timeout", "60000");
    command.args(["-y", "-p", "node@22", "-p", suite, "conformance"]);
    command.args(arguments).output()
}

/// Whether the suite can be run. If not, reports the test as skipped.
fn is_there(suite: &str, test: &str) -> bool {
    match conformance(suite, &["list"]) {
        Ok(output) if output.status.success() => return true,
        Ok(output) => skip(test, String::from_utf8_lossy(&output.stderr).trim()),
        Err(error) => skip(test, &format!("npx: {error}; scripts/setup --browser installs it")),
    }
    false
}

#[test]
fn the_conformance_suite_passes_but_for_what_is_not_offered() {
    let test = "the_conformance_suite_passes_but_for_what_is_not_offered";
    if !is_there(OF_2025, test) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let results = home.path().join("results");
    let url = format!("http://{}/mcp", service.address);
    let output = conformance(OF_2025, &["server", "--url", &url, "--output-dir", results.to_str().unwrap()]).unwrap();
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

#[test]
fn the_scenarios_of_the_revision_without_sessions_pass_but_for_what_is_not_offered() {
    let test = "the_scenarios_of_the_revision_without_sessions_pass_but_for_what_is_not_offered";
    if !is_there(OF_2026, test) {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let url = format!("http://{}/mcp", service.address);
    for (scenario, absent) in STATELESS {
        let asked = ["server", "--url", &url, "--scenario", scenario, "--spec-version", "2026-07-28"];
        let output = conformance(OF_2026, &asked).unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // Each check is a line: its time, its name in brackets, how it ended.
        let check = |line: &str| {
            let (name, rest) = line.split_once(" [")?.1.split_once(']')?;
            let ended = ["SUCCESS", "FAILURE", "WARNING"].into_iter().find(|ended| rest.contains(ended))?;
            Some((name.trim().to_owned(), ended))
        };
        let checks: Vec<(String, &str)> = said.lines().filter_map(check).collect();
        let failed = checks.iter().filter(|(_, ended)| *ended != "SUCCESS").map(|(name, _)| name.as_str());
        let failed: BTreeSet<&str> = failed.collect();
        assert_eq!(failed, absent.iter().copied().collect(), "{scenario}: {said}");
        assert!(checks.len() > failed.len(), "{scenario}: {said}");
    }
    assert!(service.stop());
}
