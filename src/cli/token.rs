//! `ripplemem token`.
//!
//! In: a file of tokens, and what a token may do. Out: a new token, shown once; a list of names without the tokens
//! themselves; or a token that is refused from now on. A running service notices a change within about a second.

use std::{num::NonZeroU32, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};
use jiff::{Span, Timestamp, tz::TimeZone};
use server::access::{AccessRight, BankPrefix, NewGrant, TokenFile, TokenGrant};
use terminal::{print, say};
use types::config::Pipeline;

use super::memory_args::MemoryArgs;

/// Make, list and revoke the tokens with which requests over HTTP and MCP identify themselves.
#[derive(Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Subcommand)]
enum TokenCommand {
    /// Make a token and print it. It is shown only this once; the file keeps its SHA-256.
    Add(TokenAddArgs),
    /// Print the tokens' names, rights and banks.
    List(TokenListArgs),
    /// Refuse a token from now on.
    Revoke(TokenRevokeArgs),
}

#[derive(Args)]
struct TokenAddArgs {
    /// Its name in lists and in the audit log.
    name: String,
    /// A bank that it may access, with all banks below it; * is every bank. May be repeated.
    #[arg(long, required = true)]
    bank: Vec<BankPrefix>,
    /// What it may do: read, write, forget or admin. May be repeated; none includes another.
    #[arg(long, required = true)]
    right: Vec<AccessRight>,
    /// When it expires: a time in RFC 3339, or a span from now such as 90d or 12h. Without it, never.
    #[arg(long)]
    expires: Option<String>,
    /// The maximum number of requests per minute. Without it, there is no limit.
    #[arg(long)]
    requests_per_minute: Option<NonZeroU32>,
    #[command(flatten)]
    file: TokenFileArgs,
}

#[derive(Args)]
struct TokenListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    file: TokenFileArgs,
}

#[derive(Args)]
struct TokenRevokeArgs {
    /// The token's name.
    name: String,
    #[command(flatten)]
    file: TokenFileArgs,
}

/// Says which file of tokens is used.
#[derive(Args)]
struct TokenFileArgs {
    /// The file of tokens. Without it, the pipeline's `access.token_file`, or `tokens.json` in the log's directory.
    #[arg(long)]
    tokens: Option<PathBuf>,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl TokenFileArgs {
    fn read(&self) -> Result<TokenFile> {
        let of = |pipeline: Pipeline| {
            pipeline.access.token_file.unwrap_or_else(|| pipeline.log.directory.join("tokens.json"))
        };
        let path = self.tokens.clone().map_or_else(|| self.memory.pipeline().map(of), Ok)?;
        Ok(TokenFile::read(&path)?)
    }
}

impl TokenArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        match self.command {
            TokenCommand::Add(TokenAddArgs { name, bank, right, expires, requests_per_minute, file }) => {
                let expires = expires.as_deref().map(|text| expiry(text, Timestamp::now())).transpose()?;
                let mut file = file.read()?;
                let secret = file.add(NewGrant { name, banks: bank, rights: right, expires, requests_per_minute })?;
                print(&format!("{}\n", secret.reveal()))?;
                say("keep the token: it is not shown again");
            }
            TokenCommand::List(TokenListArgs { json, file }) => {
                let file = file.read()?;
                match json {
                    true => print(&format!("{}\n", serde_json::to_string_pretty(file.grants())?))?,
                    false => print(&file.grants().iter().map(line).collect::<String>())?,
                }
            }
            TokenCommand::Revoke(TokenRevokeArgs { name, file }) => {
                file.read()?.revoke(&name)?;
                say(&format!("token {name} is refused from now on"));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A token in words.
fn line(grant: &TokenGrant) -> String {
    let rights: Vec<&str> = grant.rights.iter().map(|right| right.name()).collect();
    let banks: Vec<String> = grant.banks.iter().map(BankPrefix::to_string).collect();
    let end = match (grant.revoked, grant.expires) {
        (Some(revoked), _) => format!(", revoked {revoked}"),
        (None, Some(expires)) => format!(", expires {expires}"),
        (None, None) => String::new(),
    };
    let limit = grant.requests_per_minute.map(|most| format!(", {most} requests per minute")).unwrap_or_default();
    format!("{}: {} in {}{limit}{end}\n", grant.name, rights.join(", "), banks.join(", "))
}

/// A time, or a span from `now`.
fn expiry(text: &str, now: Timestamp) -> Result<Timestamp> {
    let form = || format!("--expires {text:?}: neither a time in RFC 3339 nor a span such as 90d");
    let expires = match text.parse::<Timestamp>() {
        Ok(time) => time,
        Err(_) => {
            let span: Span = text.parse().with_context(form)?;
            now.to_zoned(TimeZone::UTC).checked_add(span).with_context(form)?.timestamp()
        }
    };
    // Such a token is useless: the sign or the year is wrong.
    ensure!(
        expires > now,
        "--expires {text:?}: the token would already have expired ({expires}); name a time in the future, or a span \
         such as 90d"
    );
    Ok(expires)
}
