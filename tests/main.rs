//! The project's invariants, each by a test that fails when it is broken.

mod oracle;
