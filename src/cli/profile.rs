//! `ripplemem profile`.
//!
//! In: a bank, and whose profile is asked for. Out: what persons said that lasts, as text or JSON; or, for a turn, which
//! of its sentences state something, and which do not.

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use memory::statements::{StatedSentence, explain_statements, is_called_user};
use pipeline::{Cancellation, stored_turns};
use replica::Replica;
use ripplemem::{ProfileQuery, profile_of};
use server::api::{ProfileRequest, TurnList};
use terminal::print;
use types::{
    config::{LogKind, Pipeline},
    model::{Bank, EventTime, Profile, StatementKind, Turn},
};

use super::{
    as_of_argument::parse_as_of,
    memory_access::{MemoryAccess, open_or_reach, service_on_kafka},
    memory_args::MemoryArgs,
    selector_args::parse_selector,
    turn_ids::{whole_id, whole_id_there},
};

/// Show what the persons of a bank said that lasts: instructions, preferences, facts and plans.
#[derive(Args)]
pub(crate) struct ProfileArgs {
    /// The bank.
    #[arg(long)]
    bank: String,
    /// Only this speaker.
    #[arg(long)]
    person: Option<String>,
    /// Only these kinds: instruction, preference, fact, plan. May be repeated.
    #[arg(long)]
    kind: Vec<String>,
    /// Show superseded lines and plans whose time has passed, too.
    #[arg(long)]
    past: bool,
    /// For an agent that begins: show open plans, whatever the kinds, and the latest sessions, too.
    #[arg(long, conflicts_with = "as_of")]
    begin: bool,
    /// Show only what turns say that this selector takes, as JSON: {"session_prefix": "team/"}.
    #[arg(long = "where", value_name = "JSON")]
    select: Option<String>,
    /// Most tokens of the text.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    most_tokens: u32,
    /// The profile as it was: an offset of the bank's partition of the memory topic, or a time of appending in RFC 3339.
    #[arg(long)]
    as_of: Option<String>,
    /// Say of each sentence of this turn what it states, or why it states nothing that lasts.
    #[arg(long, conflicts_with_all = ["person", "kind", "past", "begin", "select", "as_of"])]
    why: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl ProfileArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (pipeline, bank) = (self.memory.pipeline()?, Bank::parse(&self.bank)?);
        if let Some(turn) = &self.why {
            print(&why(&pipeline, &bank, turn)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        let profile = self.profile(&pipeline, bank)?;
        if self.json {
            print(&format!("{}\n", serde_json::to_string_pretty(&profile)?))?;
        } else {
            print(if profile.text.is_empty() { "nothing that lasts was said\n" } else { &profile.text })?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn profile(&self, pipeline: &Pipeline, bank: Bank) -> Result<Profile> {
        let kind = |name: &String| StatementKind::of_name(name).with_context(|| format!("--kind: {name:?} is no kind"));
        let kinds = self.kind.iter().map(kind).collect::<Result<Vec<_>>>()?;
        let as_of = self.as_of.as_deref().map(|text| parse_as_of("--as-of", text)).transpose()?;
        let select = self.select.as_deref().map(parse_selector).transpose()?;
        let (person, past, begin) = (self.person.clone(), self.past, self.begin);
        let mut service = match reached(pipeline)? {
            MemoryAccess::Here(service) => service,
            MemoryAccess::There(reached) => {
                let (as_of, most_tokens) = (self.as_of.clone(), Some(self.most_tokens));
                let show = ProfileRequest { bank, person, kinds, past, begin, select, as_of, most_tokens };
                return Ok(reached.profile(&show, None, None)?);
            }
        };
        service.pause_model();
        service.catch_up()?;
        let now = EventTime::new(jiff::Timestamp::now().as_millisecond(), 0)?;
        let most_tokens = self.most_tokens as usize;
        let query = ProfileQuery { bank, person, kinds, past, begin, select, most_tokens, now };
        let shown = |replica: &Replica| profile_of(service.log(), replica, &query, &Cancellation::default());
        Ok(match as_of {
            Some(at) => {
                let past = service.replica().past(&query.bank, at)?;
                shown(&past)?
            }
            None => shown(service.replica())?,
        })
    }
}

fn reached(pipeline: &Pipeline) -> Result<MemoryAccess> {
    if pipeline.log.kind == LogKind::Kafka {
        let reached = service_on_kafka(pipeline)?;
        let reached = reached.context(
            "a profile comes from a running service; start `ripplemem run FILE` with http.listen on this machine",
        )?;
        return Ok(MemoryAccess::There(reached));
    }
    open_or_reach(pipeline)
}

/// Of each sentence of a turn, what it states or why it states nothing. The language is that of the turn alone.
fn why(pipeline: &Pipeline, bank: &Bank, turn: &str) -> Result<String> {
    let missing = || format!("bank {bank} holds no turn {turn:?}; `ripplemem turns --bank {bank}` lists its turns");
    let held = match reached(pipeline)? {
        MemoryAccess::Here(mut service) => {
            service.pause_model();
            service.catch_up()?;
            let id = whole_id(service.log(), bank, turn.to_owned())?;
            let found = stored_turns(service.log(), bank, &|held| held == id, 1)?;
            (*found.first().with_context(missing)?.turn).clone()
        }
        MemoryAccess::There(reached) => {
            let id = whole_id_there(&reached, bank, turn.to_owned())?;
            let list: TurnList =
                reached.get("/v1/turns", &[("bank", Some(bank.as_str())), ("turn", Some(id.as_str()))])?;
            let held = list.turns.into_iter().find(|held| held.turn == id).with_context(missing)?;
            Turn { kind: held.kind, ..Turn::new(bank.clone(), &held.turn, &held.speaker, &held.text, held.time) }
        }
    };
    let mut out = String::new();
    for StatedSentence { text, stated, reason } in explain_statements(&held, pipeline.extract.language) {
        out.push_str(&format!("{text}\n"));
        for of in &stated {
            out.push_str(&format!("  {}: {} {}\n", of.kind.name(), of.relation, of.object));
            if of.kind == StatementKind::Instruction && !is_called_user(&of.speaker) {
                out.push_str(
                    "  an order counts only where an assistant takes part, or its speaker is called \"user\"\n",
                );
            }
        }
        if let Some(reason) = reason {
            out.push_str(&format!("  nothing: {reason}\n"));
        }
    }
    Ok(out)
}
