//! `ripplemem doctor`: what this machine and this configuration lack, before a service is started.
//!
//! In: a pipeline. Out: a line for each thing that was looked at, with what to do where it must be mended, and exit
//! code 1 where something must. Starts no service and opens no memory; what it writes to try a directory it removes.
//!
//! - `command`: the arguments, and the order of the lines.
//! - `finding`: a line.
//! - `machine`: processor, open files; `models`: ONNX Runtime, the embedding model, the language model.
//! - `places`: the memory's directory, the addresses; `broker`: the Kafka cluster.

mod broker;
mod command;
mod finding;
mod machine;
mod models;
mod places;

pub(super) use command::Doctor;
