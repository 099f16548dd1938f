//! What unit tests of several crates share.
//!
//! In: the name of a test. Out: a line that says what was skipped, a separate process for a test that measures its own
//! memory, and the size of that memory. Used only by tests.

use std::{env, fs, io::Write, process::Command};

/// Reports a skipped test on standard error; the harness hides what a passed test prints.
pub fn skipped(what: &str) {
    drop(writeln!(std::io::stderr(), "SKIPPED {what}"));
}

/// Runs a test again in a process of its own, in which no other test takes memory; true in that process.
///
/// # Panics
/// If the test fails there, or no test has this name.
#[must_use]
pub fn in_own_process(test: &str) -> bool {
    const MARK: &str = "RIPPLEMEM_OWN_PROCESS";
    if env::var_os(MARK).is_some() {
        return true;
    }
    let mut command = Command::new(env::current_exe().expect("this program"));
    let output = command.args([test, "--exact", "--nocapture"]).env(MARK, "1").output().expect("a process");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{test} is not the name of a test: {said}");
    false
}

/// Bytes of memory that this process uses; 0 if the system does not report it.
#[must_use]
pub fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4_096
}
