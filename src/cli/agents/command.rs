//! The arguments of `ripplemem agents`.
//!
//! In: an order, and the programs it is about. Out: what became of it on stdout, and an exit code.

use std::process::ExitCode;

use agents::AgentProgram;
use anyhow::Result;
use clap::{Args, Subcommand};
use terminal::print;

use super::{
    install::{ProgramArgs, install, program},
    mcp::serve_tools,
    pauses::{AgentHomeArgs, pause, pause_state, resume},
    remove::remove,
    service::serve,
    service_start::detach,
    status::status,
};

/// Give coding agents this memory at each prompt, see how that goes, and pause the reading of their transcripts.
#[derive(Args)]
pub(crate) struct AgentOrderArgs {
    #[command(subcommand)]
    order: AgentsOrder,
}

#[derive(Subcommand)]
enum AgentsOrder {
    /// Give programs this memory: hooks, tools, and one service behind them. Shows what it writes, and asks.
    Install(ProgramArgs),
    /// Take our entries out of programs' settings. What is remembered stays.
    Remove(ProgramArgs),
    /// Say what works, when each hook last ran and what it gave, and whether reading is paused.
    Status {
        /// Only these programs; without any, those that are installed.
        #[arg(value_parser = program)]
        programs: Vec<AgentProgram>,
        #[command(flatten)]
        home: AgentHomeArgs,
    },
    /// Read no transcripts until `resume`, whichever process would; what is said meanwhile stays out of the memory.
    Pause(AgentHomeArgs),
    /// End the pause.
    Resume {
        #[command(flatten)]
        home: AgentHomeArgs,
        /// Read what was said in the pause, too.
        #[arg(long)]
        with_pause: bool,
    },
    /// Answer a program: PROGRAM EVENT, with the program's JSON on stdin. Programs call this; exit code 0 whatever happens.
    Hook {
        /// The program.
        program: String,
        /// The moment, by the program's name for it.
        event: String,
    },
    /// Serve the tools to a program (Model Context Protocol on stdin and stdout). Programs call this.
    Mcp {
        /// The program.
        #[arg(value_parser = program)]
        program: AgentProgram,
    },
    /// Run the service that follows transcripts and answers hooks. `install` has systemd or the first hook call this.
    Serve {
        /// Run it in a process of its own, and return.
        #[arg(long)]
        detach: bool,
    },
}

impl AgentOrderArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let line = match self.order {
            AgentsOrder::Install(programs) => return install(&programs),
            AgentsOrder::Remove(programs) => return remove(&programs),
            AgentsOrder::Mcp { program } => return serve_tools(program),
            AgentsOrder::Serve { detach: true } => return detach().map(|()| ExitCode::SUCCESS),
            AgentsOrder::Serve { detach: false } => return serve(),
            // Answered before the command line is read; here only with options, which a hook does not have.
            AgentsOrder::Hook { .. } => return Ok(ExitCode::SUCCESS),
            AgentsOrder::Pause(home) => pause(&home)?,
            AgentsOrder::Resume { home, with_pause } => resume(&home, with_pause)?,
            AgentsOrder::Status { programs, home } => {
                let pause = pause_state(&home)?;
                format!("{pause}\n{}", status(&programs)?.trim_end())
            }
        };
        print(&format!("{line}\n"))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Whether it runs until it is stopped.
    pub(crate) fn is_service(&self) -> bool {
        matches!(self.order, AgentsOrder::Serve { detach: false } | AgentsOrder::Mcp { .. })
    }
}
