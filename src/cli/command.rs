//! The list of commands as one enum.
//!
//! In: `file::Command` for each command, where `Command` derives `clap::Args` and has
//! `run(self) -> Result<ExitCode>`. Out: the enum `Command` that clap parses, and its dispatch.

/// Defines `Command` from a list of commands.
macro_rules! commands {
    ($($(#[$feature:meta])? $file:ident :: $command:ident),+ $(,)?) => {
        /// What the process is told to do.
        #[derive(clap::Subcommand)]
        pub(crate) enum Command {
            $($(#[$feature])? $command($file::$command)),+
        }

        impl Command {
            /// Runs the command to its end.
            pub(crate) fn run(self) -> anyhow::Result<std::process::ExitCode> {
                match self {
                    $($(#[$feature])? Self::$command(command) => command.run()),+
                }
            }
        }
    };
}

pub(crate) use commands;
