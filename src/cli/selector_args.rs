//! The arguments that select some turns of a bank.
//!
//! In: `--speaker`, `--mentions`, `--since`, `--until`, `--session`, `--thread`, or `--where`. Out: a selector.

use anyhow::{Context, Result};
use clap::Args;
use types::model::{EventTime, Selector};

/// The turns that a command is about.
#[derive(Args)]
pub(crate) struct SelectorArgs {
    /// Turns of the speaker with this whole name. May be given several times.
    #[arg(long = "speaker", value_name = "NAME")]
    speakers: Vec<String>,
    /// Turns whose words contain this name; with --speaker, turns that fit either. May be given several times.
    #[arg(long, value_name = "NAME")]
    mentions: Vec<String>,
    /// Turns said at this time or later, such as 2024-05-06T00:00:00+02:00.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Turns said before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Turns of this session.
    #[arg(long)]
    session: Option<String>,
    /// Turns of this thread.
    #[arg(long)]
    thread: Option<String>,
    /// A selector as JSON, in place of the others: {"session_prefix": "team/", "metadata": {"path": ["k"], "eq": 1}}.
    #[arg(
        long = "where",
        value_name = "JSON",
        conflicts_with_all = ["speakers", "mentions", "since", "until", "session", "thread"]
    )]
    select: Option<String>,
}

impl SelectorArgs {
    /// The selector of the arguments; empty if none is given.
    pub(crate) fn selector(self) -> Result<Selector> {
        let time = |name: &str, text: Option<String>| {
            text.map(|text| EventTime::parse(&text)).transpose().with_context(|| format!("--{name}"))
        };
        let Self { speakers, mentions, since, until, session, thread, select } = self;
        if let Some(json) = select {
            return parse_selector(&json);
        }
        let (since, until) = (time("since", since)?, time("until", until)?);
        Ok(Selector { speakers, mentions, since, until, session, thread, ..Selector::default() })
    }
}

/// The selector of `--where`.
pub(crate) fn parse_selector(json: &str) -> Result<Selector> {
    serde_json::from_str(json).with_context(|| format!("--where {json}"))
}
