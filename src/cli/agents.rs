//! `ripplemem agents`.
//!
//! In: what to do about coding agents' transcripts in a home directory. Out: reading is paused, or goes on. A pause is
//! kept in a file there, so that it holds for every process that reads them, also after a restart.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use sources::AgentPauses;
use terminal::print;
use types::model::EventTime;

/// Pause the reading of coding agents' transcripts, and let it go on.
#[derive(Args)]
pub(crate) struct AgentPauseArgs {
    #[command(subcommand)]
    order: AgentsOrder,
}

#[derive(Subcommand)]
enum AgentsOrder {
    /// Read no transcripts until `resume`, whichever process would; what is said meanwhile stays out of the memory.
    Pause(HomeArgs),
    /// End the pause.
    Resume {
        #[command(flatten)]
        home: HomeArgs,
        /// Read what was said in the pause, too.
        #[arg(long)]
        with_pause: bool,
    },
    /// Say whether reading is paused.
    Status(HomeArgs),
}

#[derive(Args)]
struct HomeArgs {
    /// The home directory; without it, your own.
    #[arg(long)]
    home: Option<PathBuf>,
}

impl AgentPauseArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let now = EventTime::new(Timestamp::now().as_millisecond(), 0).context("the clock")?;
        let line = match self.order {
            AgentsOrder::Pause(home) => {
                let mut pauses = home.pauses()?;
                let is_new = pauses.pause(now)?;
                let since = pauses.since().unwrap_or(now);
                let file = pauses.path().display();
                if is_new {
                    format!("paused since {since}; {file} says so")
                } else {
                    format!("paused since {since} already")
                }
            }
            AgentsOrder::Resume { home, with_pause } => match home.pauses()?.resume(now, with_pause)? {
                false => "reading is not paused".to_owned(),
                true if with_pause => "reading goes on, with what was said in the pause".to_owned(),
                true => "reading goes on; what was said in the pause stays out".to_owned(),
            },
            AgentsOrder::Status(home) => match home.pauses()?.since() {
                Some(since) => format!("paused since {since}"),
                None => "not paused".to_owned(),
            },
        };
        print(&format!("{line}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl HomeArgs {
    fn pauses(self) -> Result<AgentPauses> {
        let home = self.home.or_else(std::env::home_dir);
        let home = home.context("--home: missing, and the system does not say where home is")?;
        Ok(AgentPauses::of(&home)?)
    }
}
