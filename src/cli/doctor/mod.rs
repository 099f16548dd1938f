//! `ripplemem doctor`: what this machine and this configuration lack, before a service is started.
//!
//! In: a pipeline. Out: a line for each thing that was checked, with what to do if it must be fixed, and exit code 1 if
//! anything must be fixed. It starts no service and opens no memory, and removes what it writes to test a directory.
//!
//! - `command`: the arguments, and the order of the lines.
//! - `finding`: a line.
//! - `machine`: processor, open files; `banks`: the memory that they take.
//! - `models`: ONNX Runtime, the embedding model, the language model.
//! - `disk_and_network`: the memory's directory, the addresses; `broker`: the Kafka cluster;
//!   `coding_agents`: their hooks and the service behind them.

mod banks;
mod broker;
mod coding_agents;
mod command;
mod disk_and_network;
mod finding;
mod machine;
mod models;

pub(super) use command::DoctorArgs;
