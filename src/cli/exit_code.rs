//! The exit codes that have a name.
//!
//! 0 is success, 1 is a failure, and 2 is wrong usage (from clap). They never change, because scripts depend on them.

/// The command is done, but some input was rejected, or some records could not be read.
pub(crate) const REJECTED: u8 = 3;
/// The pipeline file is not valid (`EX_CONFIG` of sysexits).
pub(crate) const INVALID_PIPELINE: u8 = 78;
