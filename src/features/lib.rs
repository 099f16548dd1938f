//! One set of features for every build. Contains no code.
//!
//! Its `Cargo.toml` enables the features of third-party crates that only some of our builds need, so that the demo, the
//! whole program and the tests share every compiled dependency.
