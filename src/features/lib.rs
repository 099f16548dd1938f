//! One set of features for every build. Holds no code.
//!
//! Its `Cargo.toml` asks for features of other people's crates that only some of our builds need, so that the demo,
//! the whole program and the tests share every compiled dependency.
