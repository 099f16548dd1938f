//! The memory itself: turns to windows, windows to units, units to a graph, a question to its evidence.
//!
//! In: turns, memory records with their vectors, questions. Out: windows, drafts of units, edges, evidence. Pure:
//! everything here is a function of what it is given. No clock, file, socket, model or async; no Kafka and no Arrow.
//! Code with effects comes before this crate (`models`), or drives it (`ingest`, `replica`).
//!
//! | module | question |
//! |---|---|
//! | [`language`] | What do sentences say of names, places and times? |
//! | [`window`] | Which turns belong together? |
//! | [`extract`] | What is worth remembering in a window? |
//! | [`statements`] | What do persons say that lasts? |
//! | [`index`] | Which units are there, what links them, and which does a question call to mind? |
//! | [`recall`] | Which evidence answers a question? |

pub mod extract;
pub mod index;
pub mod language;
pub mod recall;
pub mod statements;
pub mod window;
