//! `ripplemem sessions`.
//!
//! In: a bank, and which of its sessions; or a session and its title. Out: the sessions by name, as a table for people
//! or as JSON lines. It also works while a service has the directory open, and beside the services on Kafka.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use logs::Log;
use ripplemem::Memory;
use server::api::{NameSessionRequest, NameSessionResponse, SessionList, SessionView};
use terminal::{print, say};
use types::{
    config::{LogKind, Pipeline},
    model::{Bank, SessionTitle, TurnEvent},
};

use super::{
    memory_access::{MemoryAccess, open_or_reach},
    memory_args::MemoryArgs,
    turns::wait_until_read,
};

/// List the sessions of a bank by name, or set the title of one.
#[derive(Args)]
pub(crate) struct SessionsArgs {
    /// The bank.
    #[arg(long)]
    bank: String,
    /// Only sessions whose names begin with this.
    #[arg(long)]
    prefix: Option<String>,
    /// Go on at this name.
    #[arg(long)]
    from: Option<String>,
    /// List at most this many sessions.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// Set the title of this session; an empty title removes it.
    #[arg(long, requires = "title", conflicts_with_all = ["prefix", "from"])]
    name: Option<String>,
    /// The title.
    #[arg(long, requires = "name")]
    title: Option<String>,
    /// Print a line of JSON for each session.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl SessionsArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (pipeline, bank) = (self.memory.pipeline()?, Bank::parse(&self.bank)?);
        if let Some((session, title)) = self.name.clone().zip(self.title.clone()) {
            return name_session(&pipeline, SessionTitle { bank, session, title });
        }
        let listed = |log: &dyn Log| -> Result<(Vec<SessionView>, Option<String>)> {
            let (prefix, from) = (self.prefix.as_deref(), self.from.as_deref());
            let listed = Memory::sessions_of(log, &bank, prefix, from, self.limit.saturating_add(1))?;
            let next = listed.get(self.limit).map(|session| session.session.clone());
            Ok((listed.into_iter().take(self.limit).map(SessionView::of).collect(), next))
        };
        let (sessions, next) = match reached_memory(&pipeline)? {
            None => {
                let log = logs::open(&pipeline.log)?;
                wait_until_read(&*log, &bank)?;
                listed(&*log)?
            }
            Some(MemoryAccess::Here(mut service)) => {
                service.pause_model();
                service.catch_up()?;
                listed(service.log())?
            }
            Some(MemoryAccess::There(reached)) => {
                let limit = self.limit.to_string();
                let of = [
                    ("bank", Some(bank.as_str())),
                    ("prefix", self.prefix.as_deref()),
                    ("from", self.from.as_deref()),
                    ("limit", Some(limit.as_str())),
                ];
                let listed: SessionList = reached.get("/v1/sessions", &of)?;
                (listed.sessions, listed.next)
            }
        };
        for session in &sessions {
            let line = if self.json { serde_json::to_string(session)? } else { table_line(session) };
            print(&format!("{line}\n"))?;
        }
        if let Some(next) = next {
            say(&format!("there are more; --from {next:?} lists on"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The memory of a log in a directory; `None` for a log on Kafka.
fn reached_memory(pipeline: &Pipeline) -> Result<Option<MemoryAccess>> {
    match pipeline.log.kind {
        LogKind::Kafka => Ok(None),
        LogKind::Embedded => open_or_reach(pipeline).map(Some),
    }
}

/// Writes the title of a session.
fn name_session(pipeline: &Pipeline, title: SessionTitle) -> Result<ExitCode> {
    let event = TurnEvent::SessionTitle(title.clone());
    event.check()?;
    match reached_memory(pipeline)? {
        None => drop(logs::open(&pipeline.log)?.append_turns(&[event])?),
        Some(MemoryAccess::Here(mut service)) => {
            service.pause_model();
            service.log().append_turns(&[event])?;
            service.catch_up()?;
        }
        Some(MemoryAccess::There(reached)) => {
            let SessionTitle { bank, session, title } = title;
            let name = NameSessionRequest { bank, session, title, wait_ms: None };
            let _: NameSessionResponse = reached.put("/v1/sessions", &name)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A session on one line: its name, its turns with the times of the first and the last, and its title.
fn table_line(session: &SessionView) -> String {
    let SessionView { session, title, turns, first, last } = session;
    let time = |time: &Option<types::model::EventTime>| time.map_or_else(|| "-".to_owned(), |time| time.to_string());
    format!("{session}\t{turns}\t{}\t{}\t{}", time(first), time(last), title.as_deref().unwrap_or_default())
}
