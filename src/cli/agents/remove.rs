//! `ripplemem agents remove PROGRAM`.
//!
//! In: programs. Out: each file as it was to the byte, if nobody has written it since, else without our entries; and no
//! service once no program is left. What is remembered stays.

use std::{fs, process::ExitCode};

use agents::AgentProgram;
use anyhow::{Context, Result, ensure};
use terminal::print;

use super::{
    changes::{FileChange, text_of},
    install::{ProgramArgs, agrees, files, shown},
    places::AgentPlaces,
    receipts::InstallReceipt,
    service,
};

/// Removes.
pub(super) fn remove(arguments: &ProgramArgs) -> Result<ExitCode> {
    let places = AgentPlaces::of_user()?;
    let planned = shown(arguments, &|program| changes_of(&places, program))?;
    if !agrees(arguments, "remove this")? {
        print("nothing was written\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    for (program, changes) in planned {
        changes.iter().filter(|change| change.is_any()).try_for_each(FileChange::write)?;
        for path in [places.receipt(program.name()), places.runs(program.name())] {
            if path.exists() {
                fs::remove_file(&path).with_context(|| format!("{}: cannot be removed", path.display()))?;
            }
        }
        print(&format!("{}: removed; restart it\n", program.label()))?;
    }
    if !AgentProgram::all().any(|program| places.receipt(program.name()).exists()) {
        print(&format!("{}\n", service::take_away(&places)?))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What a removal changes in a program's files.
fn changes_of(places: &AgentPlaces, program: AgentProgram) -> Result<Vec<FileChange>> {
    let receipt = InstallReceipt::read(&places.receipt(program.name()))?.unwrap_or_default();
    let mut changes = Vec::new();
    let files = files(places, program)?;
    // Where `install` ran with another value of a variable such as CLAUDE_CONFIG_DIR.
    for (path, known) in receipt.files.iter().filter(|(path, _)| files.iter().all(|file| file.path != **path)) {
        let Some(text) = text_of(path)? else { continue };
        ensure!(
            known.is_untouched(&text),
            "{}: written since `install`, and not where {} looks now; run `remove` with the variables that `install` \
             had, such as CLAUDE_CONFIG_DIR",
            path.display(),
            program.label()
        );
        let (path, after) = (path.clone(), known.before.clone());
        changes.push(FileChange { path, about: "as it was", before: Some(text), after, is_program: false });
    }
    for file in files {
        let Some(text) = text_of(&file.path)? else { continue };
        let after = match receipt.files.get(&file.path) {
            Some(known) if known.is_untouched(&text) => known.before.clone(),
            Some(_) => file.without_own(&text).with_context(|| file.path.display().to_string())?,
            // Without a receipt, a whole file may be somebody else's.
            None => file.without_own(&text).ok().flatten().or_else(|| Some(text.clone())),
        };
        let about = file.about;
        changes.push(FileChange { path: file.path, about, before: Some(text), after, is_program: false });
    }
    Ok(changes)
}
