//! The arguments that say which turns of a bank are meant.
//!
//! In: `--speaker`, `--since`, `--until`, `--session`, `--thread`. Out: a selector.

use anyhow::{Context, Result};
use clap::Args;
use nouns::model::{EventTime, Selector};

/// Which turns of a bank.
#[derive(Args)]
pub(crate) struct SelectorArguments {
    /// Those of this speaker, by the whole name. May be given several times.
    #[arg(long = "speaker", value_name = "NAME")]
    speakers: Vec<String>,
    /// Those said at this time or later, such as 2024-05-06T00:00:00+02:00.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Those said before this time.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Those of this session.
    #[arg(long)]
    session: Option<String>,
    /// Those of this thread.
    #[arg(long)]
    thread: Option<String>,
}

impl SelectorArguments {
    /// What the arguments name; nothing where none is given.
    pub(crate) fn selector(self) -> Result<Selector> {
        let time = |name: &str, text: Option<String>| {
            text.map(|text| EventTime::parse(&text)).transpose().with_context(|| format!("--{name}"))
        };
        let Self { speakers, since, until, session, thread } = self;
        let (since, until) = (time("since", since)?, time("until", until)?);
        Ok(Selector { speakers, since, until, session, thread, ..Selector::default() })
    }
}
