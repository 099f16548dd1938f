//! Prints past the test harness, which hides the output of passed tests.

/// Reports a skipped test.
pub(crate) fn skip(test: &str, why: &str) {
    print(&format!("SKIPPED {test}: {why}"));
}

/// Prints a line on stderr.
pub(crate) fn print(text: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "{text}"));
}
