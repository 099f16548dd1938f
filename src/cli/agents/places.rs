//! Where the files of coding agents' memory are.
//!
//! In: the environment. Out: paths. Everything is below the user's own directory for data, `~/.local/share/ripplemem`,
//! but the pipeline file of the service, which people may edit, in `~/.config/ripplemem`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use models::embed::asset_paths;

/// The places of a user.
#[derive(Debug, Clone)]
pub(super) struct AgentPlaces {
    data: PathBuf,
    config: PathBuf,
    /// The user's home directory.
    pub(super) home: PathBuf,
}

impl AgentPlaces {
    /// The places of the user who runs this process.
    pub(super) fn of_user() -> Result<Self> {
        let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let home = home.context("the system does not say where home is; set HOME")?;
        let data = asset_paths::of_user().unwrap_or_else(|| home.join(".local/share/ripplemem"));
        Ok(Self { config: config_home(&home).join("ripplemem"), data, home })
    }

    /// The log of the memory: the user's own, which commands take without `--data`.
    pub(super) fn memory(&self) -> PathBuf {
        self.data.join("memory")
    }

    /// The directory of everything else.
    pub(super) fn directory(&self) -> PathBuf {
        self.data.join("agents")
    }

    /// How the service is reached.
    pub(super) fn service_file(&self) -> PathBuf {
        self.directory().join("service.json")
    }

    /// The tokens of the service.
    pub(super) fn tokens(&self) -> PathBuf {
        self.directory().join("tokens.json")
    }

    /// Held by the service while it runs.
    pub(super) fn service_lock(&self) -> PathBuf {
        self.directory().join("service.lock")
    }

    /// Touched by the hook that starts the service.
    pub(super) fn service_start(&self) -> PathBuf {
        self.directory().join("service.start")
    }

    /// What a service that a hook started says.
    pub(super) fn service_log(&self) -> PathBuf {
        self.directory().join("service.log")
    }

    /// The pipeline file of the service.
    pub(super) fn pipeline(&self) -> PathBuf {
        self.config.join("agents-service.toml")
    }

    /// The unit of the service, where systemd runs one for the user.
    pub(super) fn unit(&self) -> PathBuf {
        config_home(&self.home).join("systemd/user").join(super::systemd_unit::NAME)
    }

    /// What became of a program's hooks.
    pub(super) fn runs(&self, program: &str) -> PathBuf {
        self.directory().join("runs").join(format!("{program}.json"))
    }

    /// What the sessions of a program were given.
    pub(super) fn given(&self) -> PathBuf {
        self.directory().join("given")
    }

    /// What a program's files were before, and that it is installed.
    pub(super) fn receipt(&self, program: &str) -> PathBuf {
        self.directory().join("installed").join(format!("{program}.json"))
    }
}

fn config_home(home: &Path) -> PathBuf {
    let named = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    named.unwrap_or_else(|| home.join(".config"))
}
