//! Node and a browser for the tests of the page; if they or the page's packages are missing, a test is named as
//! skipped.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use super::skipped::skip;

/// The folder of the page's sources.
fn console() -> PathBuf {
    Path::new(super::ROOT).join("src/server/console")
}

/// The first of these programs that is there.
fn program(names: &[&str]) -> Option<String> {
    let runs = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    names.iter().find(runs).map(|name| (*name).to_owned())
}

/// Whether Node and the packages of the page's tests are there; else the test is named as skipped.
pub(crate) fn has_node(test: &str) -> bool {
    let has_packages = console().join("node_modules/.package-lock.json").exists();
    let missing = match (program(&["node"]), has_packages) {
        (None, _) => "Node is missing",
        (_, false) => "the packages of src/server/console are missing",
        (Some(_), true) => return true,
    };
    skip(test, &format!("{missing}; scripts/setup --browser installs it"));
    false
}

/// Runs a file of tests with Node, to its end.
pub(crate) fn node_test(file: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new("node");
    command.args(["--test", file]).current_dir(console()).envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// The browser, if Node and the packages of the page's tests are there as well; else the test is named as skipped.
pub(crate) fn browser(test: &str) -> Option<String> {
    if !has_node(test) {
        return None;
    }
    let browser = program(&["chromium", "chromium-browser", "google-chrome"]);
    if browser.is_none() {
        skip(test, "a browser is missing; scripts/setup --browser installs Chromium");
    }
    browser
}

/// The folder for the tests' pictures of the page.
pub(crate) fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("console")
}
