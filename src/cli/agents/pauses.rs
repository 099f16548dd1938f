//! Pauses of the reading of coding agents' transcripts.
//!
//! In: a home directory. Out: reading is paused, or goes on. A pause is kept in a file there, so that it holds for every
//! process that reads them, also after a restart.

use anyhow::{Context, Result};
use clap::Args;
use jiff::Timestamp;
use sources::AgentPauses;
use std::path::PathBuf;
use types::model::EventTime;

/// Whose transcripts.
#[derive(Args)]
pub(super) struct AgentHomeArgs {
    /// The home directory; without it, your own.
    #[arg(long)]
    home: Option<PathBuf>,
}

/// Begins a pause. Returns what to say.
pub(super) fn pause(home: &AgentHomeArgs) -> Result<String> {
    let (mut pauses, now) = (home.pauses()?, now()?);
    let is_new = pauses.pause(now)?;
    let since = pauses.since().unwrap_or(now);
    let file = pauses.path().display();
    Ok(if is_new { format!("paused since {since}; {file} says so") } else { format!("paused since {since} already") })
}

/// Ends a pause. Returns what to say.
pub(super) fn resume(home: &AgentHomeArgs, with_pause: bool) -> Result<String> {
    let said = match home.pauses()?.resume(now()?, with_pause)? {
        false => "reading is not paused",
        true if with_pause => "reading goes on, with what was said in the pause",
        true => "reading goes on; what was said in the pause stays out",
    };
    Ok(said.to_owned())
}

/// Whether reading is paused, in words.
pub(super) fn pause_state(home: &AgentHomeArgs) -> Result<String> {
    Ok(match home.pauses()?.since() {
        Some(since) => format!("paused since {since}"),
        None => "not paused".to_owned(),
    })
}

fn now() -> Result<EventTime> {
    EventTime::new(Timestamp::now().as_millisecond(), 0).context("the clock")
}

impl AgentHomeArgs {
    fn pauses(&self) -> Result<AgentPauses> {
        let home = self.home.clone().or_else(std::env::home_dir);
        let home = home.context("--home: missing, and the system does not say where home is")?;
        Ok(AgentPauses::of(&home)?)
    }
}
