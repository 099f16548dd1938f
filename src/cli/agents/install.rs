//! `ripplemem agents install PROGRAM`.
//!
//! In: programs. Out: what would be written, and once the user agrees, our entries in each program's settings and one
//! service. A second time changes nothing.

use std::{
    io::{BufRead as _, IsTerminal as _},
    process::ExitCode,
};

use agents::{AgentProgram, OwnCommands, ProgramHome, SettingsFile, settings_of};
use anyhow::{Context, Result, ensure};
use clap::Args;
use models::embed::{
    asset_paths,
    setup::{DEFAULT_MODEL, required_files},
};
use terminal::{print, say};

use super::{
    changes::{FileChange, text_of},
    places::AgentPlaces,
    receipts::{FileBefore, InstallReceipt, hash},
    service::ServicePlan,
};

/// Which programs, and whether the user has agreed.
#[derive(Args)]
pub(super) struct ProgramArgs {
    /// claude-code, codex, gemini, copilot, opencode, pi, cline; only the tools (MCP) for cursor, qwen-code, vscode,
    /// claude-desktop, zed, goose, windsurf.
    #[arg(required = true, value_parser = program)]
    pub(super) programs: Vec<AgentProgram>,
    /// Write without asking.
    #[arg(long)]
    pub(super) yes: bool,
    /// Write nothing: show what would be written.
    #[arg(long, conflicts_with = "yes")]
    pub(super) dry_run: bool,
}

/// The program of an argument.
pub(super) fn program(name: &str) -> Result<AgentProgram, String> {
    let known = || AgentProgram::all().map(AgentProgram::name).collect::<Vec<_>>().join(", ");
    AgentProgram::of_name(name).ok_or_else(|| format!("not a program that is known; write one of {}", known()))
}

/// Installs.
pub(super) fn install(arguments: &ProgramArgs) -> Result<ExitCode> {
    let places = AgentPlaces::of_user()?;
    let service = ServicePlan::of(&places)?;
    let planned = shown(arguments, &|program| changes_of(&places, program))?;
    print(&service.text())?;
    if !has_model() {
        print("the embedding model is missing, without which the service does not start: run `ripplemem setup`\n")?;
    }
    if !agrees(arguments, "write this")? {
        print("nothing was written\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut receipts = Vec::new();
    for (program, changes) in &planned {
        let mut receipt = InstallReceipt::read(&places.receipt(program.name()))?.unwrap_or_default();
        for (change, file) in changes.iter().zip(&files(&places, *program)?) {
            note(&mut receipt, change, file)?;
        }
        receipts.push(receipt);
    }
    service.set_up()?;
    for ((program, changes), receipt) in planned.into_iter().zip(receipts) {
        // Before the files: what was written without a receipt could not be restored.
        receipt.write(&places.receipt(program.name()))?;
        changes.iter().filter(|change| change.is_any()).try_for_each(FileChange::write)?;
        print(&format!("{}: installed; {}\n", program.label(), program.trust()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the default embedding model and what runs it are in their places.
fn has_model() -> bool {
    let homes = asset_paths::homes();
    required_files(std::env::consts::ARCH, &[DEFAULT_MODEL.to_owned()])
        .is_ok_and(|files| files.iter().all(|file| homes.iter().any(|home| home.join(&file.path).exists())))
}

/// Keeps what a file was.
fn note(receipt: &mut InstallReceipt, change: &FileChange, file: &SettingsFile) -> Result<()> {
    let Some(after) = change.after.as_deref().map(hash) else { return Ok(()) };
    let old = receipt.files.get(&change.path);
    let before = match (&change.before, old) {
        // Our own entries from before are no part of what the file was.
        (Some(text), Some(old)) if old.is_untouched(text) => old.before.clone(),
        (Some(text), _) => file.without_own(text)?,
        (None, _) => None,
    };
    let is_whole_file_of_another = old.is_none()
        && before.is_none()
        && change.before.as_ref().is_some_and(|text| Some(text) != change.after.as_ref());
    ensure!(
        !is_whole_file_of_another,
        "{}: a file of another program is there; move it away, or call `ripplemem agents hook` from it",
        change.path.display()
    );
    receipt.files.insert(change.path.clone(), FileBefore { before, after });
    Ok(())
}

/// Prints what is to change for each program, and returns it.
pub(super) fn shown(
    arguments: &ProgramArgs,
    changes_of: &dyn Fn(AgentProgram) -> Result<Vec<FileChange>>,
) -> Result<Vec<(AgentProgram, Vec<FileChange>)>> {
    let show = |&program: &AgentProgram| {
        let changes = changes_of(program)?;
        print(&format!("{}:\n", program.label()))?;
        changes.iter().try_for_each(|change| print(&change.text()))?;
        Ok((program, changes))
    };
    arguments.programs.iter().map(show).collect()
}

/// What our entries change in a program's files.
pub(super) fn changes_of(places: &AgentPlaces, program: AgentProgram) -> Result<Vec<FileChange>> {
    let of = |file: SettingsFile| {
        let before = text_of(&file.path)?;
        let after = file.with_own(before.as_deref()).with_context(|| file.path.display().to_string())?;
        let is_program = file.is_program();
        Ok(FileChange { path: file.path, about: file.about, before, after: Some(after), is_program })
    };
    files(places, program)?.into_iter().map(of).collect()
}

/// The files of a program that have entries of ours.
pub(super) fn files(places: &AgentPlaces, program: AgentProgram) -> Result<Vec<SettingsFile>> {
    let own = std::env::current_exe().context("the system does not say where this program is")?;
    let own = OwnCommands { program: own.display().to_string() };
    let variable = |name: &str| std::env::var(name).ok();
    let exists = |path: &std::path::Path| path.exists();
    let home = ProgramHome { home: places.home.clone(), variable: &variable, exists: &exists };
    Ok(settings_of(program, &home, &own))
}

/// Whether the user agrees.
///
/// # Errors
/// When there is no terminal to ask on.
pub(super) fn agrees(arguments: &ProgramArgs, what: &str) -> Result<bool> {
    if arguments.yes || arguments.dry_run {
        return Ok(arguments.yes);
    }
    let input = std::io::stdin();
    ensure!(input.is_terminal(), "nothing was written; --yes does it, --dry-run only shows it");
    say(&format!("{what}? Type yes."));
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}
