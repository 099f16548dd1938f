//! The list of commands as one enum.
//!
//! In: `file::CommandArgs => Command` for each command, where `CommandArgs` derives `clap::Args` and has
//! `run(self) -> Result<ExitCode>`. Out: the enum `CliCommand` that clap parses, and its dispatch.

/// Defines `CliCommand` from a list of commands.
macro_rules! commands {
    ($($(#[cfg($feature:meta)])? $(#[command($about:meta)])? $file:ident :: $arguments:ident => $command:ident),+ $(,)?) => {
        /// What the process is asked to do.
        #[derive(clap::Subcommand)]
        pub(crate) enum CliCommand {
            $($(#[cfg($feature)])? $(#[command($about)])? $command($file::$arguments)),+
        }

        impl CliCommand {
            /// Runs the command to its end.
            pub(crate) fn run(self) -> anyhow::Result<std::process::ExitCode> {
                match self {
                    $($(#[cfg($feature)])? Self::$command(command) => command.run()),+
                }
            }
        }
    };
}

pub(crate) use commands;
