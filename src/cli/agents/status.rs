//! `ripplemem agents status`, and what `doctor` says of it.
//!
//! In: programs; without any, those that are installed. Out: for each of them whether its entries are as they should be,
//! when each hook last ran, what it gave and why it gave nothing; and how the service does.

use std::fmt::Write as _;

use agents::AgentProgram;
use anyhow::Result;

use super::{
    hook_runs::{HookRun, read_runs},
    install::changes_of,
    places::AgentPlaces,
    service::{self, AgentServiceState},
};

/// The state of programs and of the service, in words.
pub(super) fn status(programs: &[AgentProgram]) -> Result<String> {
    let places = AgentPlaces::of_user()?;
    let installed = || AgentProgram::all().filter(|program| places.receipt(program.name()).exists());
    let programs = if programs.is_empty() { installed().collect() } else { programs.to_vec() };
    let mut text = String::new();
    for program in programs {
        // Settings that cannot be read are no reason to say nothing of the other programs.
        let of = of_program(&places, program).unwrap_or_else(|error| format!("{}: {error:#}\n", program.name()));
        text.push_str(&of);
    }
    let service = match service::state(&places) {
        AgentServiceState::Answers(address) => format!("it answers at {address}"),
        AgentServiceState::Away(why) => why,
        AgentServiceState::None => "none is set up".to_owned(),
    };
    let _ = writeln!(text, "service: {service}");
    Ok(text)
}

fn of_program(places: &AgentPlaces, program: AgentProgram) -> Result<String> {
    let mut text = String::new();
    let state = if places.receipt(program.name()).exists() { "installed" } else { "not installed" };
    let _ = writeln!(text, "{}: {state}", program.name());
    for change in changes_of(places, program)? {
        let state = match (change.is_any(), &change.before) {
            (false, _) => "as it should be",
            (true, None) => "missing",
            (true, Some(_)) => "not as it should be; `ripplemem agents install` mends it",
        };
        let _ = writeln!(text, "  {}: {} {state}", change.path.display(), change.about);
    }
    let runs = read_runs(&places.runs(program.name()));
    for event in program.events() {
        let said = runs.get(*event).map_or_else(|| format!("never ran: {}", program.trust()), said);
        let _ = writeln!(text, "  {event}: {said}");
    }
    if program.events().is_empty() {
        let _ = writeln!(text, "  {}", program.trust());
    }
    Ok(text)
}

fn said(run: &HookRun) -> String {
    let at = jiff::Timestamp::from_millisecond(run.at_ms).map(|at| at.to_string()).unwrap_or_default();
    let gave = match run.reason.as_str() {
        "" => format!("gave {} quotes, at most {} tokens", run.quotes, run.tokens),
        reason => format!("gave nothing: {reason}"),
    };
    format!("last ran {at}, {} ms, {gave}", run.took_ms)
}

/// What `doctor` says of coding agents.
pub(in crate::cli) enum AgentsHealth {
    /// No program has a hook of ours.
    NotInstalled,
    /// These programs have one, and the service answers.
    Works(String),
    /// The service does not run and will be started.
    Waits(String),
    /// Something must be mended.
    Sick(String),
}

/// How the memory of coding agents does.
pub(in crate::cli) fn health() -> AgentsHealth {
    let Ok(places) = AgentPlaces::of_user() else { return AgentsHealth::NotInstalled };
    let installed: Vec<AgentProgram> =
        AgentProgram::all().filter(|program| places.receipt(program.name()).exists()).collect();
    if installed.is_empty() {
        return AgentsHealth::NotInstalled;
    }
    let names = installed.iter().map(|program| program.name()).collect::<Vec<_>>().join(", ");
    for program in &installed {
        match changes_of(&places, *program) {
            Ok(changes) if changes.iter().any(super::changes::FileChange::is_any) => {
                let name = program.name();
                return AgentsHealth::Sick(format!(
                    "the entries of {name} are not as they should be; run `ripplemem agents install {name}`"
                ));
            }
            Ok(_) => {}
            Err(error) => return AgentsHealth::Sick(format!("{}: {error:#}", program.name())),
        }
    }
    match service::state(&places) {
        AgentServiceState::Answers(address) => {
            AgentsHealth::Works(format!("{names}; the service answers at {address}"))
        }
        AgentServiceState::Away(why) => AgentsHealth::Waits(format!("{names}; the service: {why}")),
        AgentServiceState::None => AgentsHealth::Sick(format!(
            "{names}; no service is set up; run `ripplemem agents install {}`",
            names.replace(',', "")
        )),
    }
}
