//! `ripplemem agents serve`: the one service behind all programs of a user.
//!
//! In: the pipeline file that `install` wrote. Out: a memory that follows transcripts and answers hooks, at a free port
//! of this machine. Only one runs at a time. It ends when it is stopped, and when its program was replaced: then the next
//! hook, or systemd, starts the new one.

use std::{
    fs,
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use server::access::{AccessRight, BankPrefix, NewGrant, TokenFile};
use storage::file_lock::{FileLock, FileLockError};
use terminal::{name_banks_of, pipeline_or_defaults, say, stop_by_signal, with_progress};
use types::config::{ChatPlatform, Pipeline};

use super::{
    given_files::replace, memory_request::MemoryRequest, places::AgentPlaces, service_file::ServiceFile, systemd_unit,
};

/// The token of the hooks, by its name in the file of tokens.
const TOKEN: &str = "agents-hooks";
/// How often the program is looked at.
const LOOK: Duration = Duration::from_secs(10);
/// How long a service that is to end has for it.
const END: Duration = Duration::from_secs(20);

/// Runs the service until it is stopped.
pub(super) fn serve() -> Result<ExitCode> {
    let places = AgentPlaces::of_user()?;
    let _lock = match FileLock::take(&places.service_lock()) {
        Ok(lock) => lock,
        Err(FileLockError::InUse(holder)) => {
            say(&format!("the service runs already ({holder})"));
            return Ok(ExitCode::SUCCESS);
        }
        Err(FileLockError::Failed(error)) => bail!("{}: {error}", places.service_lock().display()),
    };
    let pipeline = pipeline_or_defaults(Some(&places.pipeline()))?;
    let stop = stop_by_signal()?;
    end_with_program(stop);
    name_banks_of(&pipeline);
    with_progress(|progress| server::run(&pipeline, stop, progress))?;
    Ok(ExitCode::SUCCESS)
}

/// Sets the flag once the file of this program is another one.
fn end_with_program(stop: &'static AtomicBool) {
    let Ok(program) = std::env::current_exe() else { return };
    let began = identity(&program);
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
            let now = identity(&program);
            if now.is_some() && now != began {
                stop.store(true, Ordering::Relaxed);
            }
        }
    });
}

/// What changes when a file is replaced.
fn identity(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// What the service is set up with, in words and as it is written.
pub(super) struct ServicePlan {
    places: AgentPlaces,
    program: std::path::PathBuf,
    by_systemd: bool,
}

impl ServicePlan {
    /// The plan of a user.
    pub(super) fn of(places: &AgentPlaces) -> Result<Self> {
        let program = std::env::current_exe().context("the system does not say where this program is")?;
        Ok(Self { places: places.clone(), program, by_systemd: systemd_unit::is_here() })
    }

    /// What it does, for people.
    pub(super) fn text(&self) -> String {
        let start = match self.by_systemd {
            true => format!("systemd runs it ({})", self.places.unit().display()),
            false => "the first hook starts it".to_owned(),
        };
        format!(
            "service: one for all programs; it follows the transcripts of every program in {}, also those from before \
             (`ripplemem ingest agents --dry-run` shows them), in the memory {}; {start}; settings in {}\n",
            self.places.home.display(),
            self.places.memory().display(),
            self.places.pipeline().display(),
        )
    }

    /// Writes what is missing, and starts the service or has it started again.
    pub(super) fn set_up(&self) -> Result<()> {
        let places = &self.places;
        let written = |path: &Path, text: &str| {
            replace(path, text.as_bytes()).with_context(|| format!("{}: cannot be written", path.display()))
        };
        if !places.pipeline().exists() {
            written(&places.pipeline(), &self.pipeline_text())?;
        }
        // It must be valid before a service is started with it.
        let pipeline = pipeline_or_defaults(Some(&places.pipeline()))?;
        let old = ServiceFile::read(places);
        let token = match &old {
            Some(old) if TokenFile::read(&places.tokens())?.holds(&old.token) => old.token.clone(),
            _ => self.new_token()?,
        };
        let mut service = ServiceFile::new(places, self.program.clone(), token, self.by_systemd);
        service.memory.clone_from(&pipeline.log.directory);
        service.bank = bank_of(&pipeline);
        if let Some(old) = &old {
            service.deadline_ms = old.deadline_ms;
            // This call may be for another program, in a shell that does not know where the first one keeps its files.
            let mut variables = old.variables.clone();
            variables.append(&mut service.variables);
            service.variables = variables;
        }
        if old.as_ref() != Some(&service) {
            let text = serde_json::to_string_pretty(&service)?;
            written(&places.service_file(), &format!("{text}\n"))?;
        }
        if !self.by_systemd && old.is_some_and(|old| old.variables != service.variables) {
            // The next hook starts it, with the variables that are new.
            end(places)?;
        }
        if self.by_systemd {
            let unit = systemd_unit::text(&self.program, &service.variables);
            let is_new = fs::read_to_string(places.unit()).ok().as_deref() != Some(&unit);
            if is_new {
                written(&places.unit(), &unit)?;
                systemd_unit::start()?;
            } else {
                systemd_unit::start_again()?;
            }
        }
        Ok(())
    }

    fn pipeline_text(&self) -> String {
        let text = |path: std::path::PathBuf| toml_text(&path.display().to_string());
        format!(
            "# The service of coding agents' hooks: `ripplemem agents install` wrote this. Edit it as you like; `ripplemem\n\
             # agents remove` leaves a file that was edited. docs/coding-agents.md says more.\n\
             version = 1\n\
             log.directory = {}\n\
             # A free port; the hooks find it beside the memory.\n\
             http.listen = \"127.0.0.1:0\"\n\
             access.token_file = {}\n\n\
             # This table is your consent: transcripts of every program are read. `except = [\"~/private\"]` keeps some out.\n\
             [[source]]\n\
             name = \"agents\"\n\
             platform = \"transcripts\"\n",
            text(self.places.memory()),
            text(self.places.tokens()),
        )
    }

    fn new_token(&self) -> Result<String> {
        let mut tokens = TokenFile::read(&self.places.tokens())?;
        if tokens.grants().iter().any(|grant| grant.name == TOKEN && grant.revoked.is_none()) {
            tokens.revoke(TOKEN)?;
        }
        // A revoked name stays taken.
        let name = match tokens.grants().iter().filter(|grant| grant.name.starts_with(TOKEN)).count() {
            0 => TOKEN.to_owned(),
            count => format!("{TOKEN}-{count}"),
        };
        let grant = NewGrant {
            name,
            banks: vec![BankPrefix::Every],
            rights: vec![AccessRight::Read],
            expires: None,
            requests_per_minute: None,
        };
        Ok(tokens.add(grant)?.reveal().to_owned())
    }
}

/// The bank template of the source that follows transcripts.
fn bank_of(pipeline: &Pipeline) -> String {
    let source = pipeline.live.iter().find(|source| source.platform == ChatPlatform::Transcripts);
    source.map(|source| source.bank.clone()).unwrap_or_default()
}

fn toml_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// How the service does.
pub(super) enum AgentServiceState {
    /// It answers at this address.
    Answers(String),
    /// It is not reached, for this reason.
    Away(String),
    /// None is set up.
    None,
}

/// Asks the service how it does.
pub(super) fn state(places: &AgentPlaces) -> AgentServiceState {
    let Some(service) = ServiceFile::read(places) else { return AgentServiceState::None };
    let Some(address) = service.address() else {
        let start = if service.by_systemd {
            "`systemctl --user status ripplemem-agents` says why"
        } else {
            "the next hook starts it"
        };
        return AgentServiceState::Away(format!("it does not run; {start}"));
    };
    let until = Instant::now() + Duration::from_secs(2);
    let asked = MemoryRequest::connect(&address, &service.token, until)
        .and_then(|mut request| request.send("GET", "/v1/token", None));
    match asked {
        Ok(_) => AgentServiceState::Answers(address),
        Err(failure) => AgentServiceState::Away(format!("{address}: {failure}")),
    }
}

/// Ends the service and takes away what it was set up with. The memory stays. Returns what to say.
pub(super) fn take_away(places: &AgentPlaces) -> Result<String> {
    let Some(service) = ServiceFile::read(places) else { return Ok("no service is set up".to_owned()) };
    let ended = match FileLock::take(&places.service_lock()) {
        Err(FileLockError::InUse(_)) => "has ended",
        _ => "did not run",
    };
    if service.by_systemd && places.unit().exists() {
        systemd_unit::stop(&places.unit())?;
    }
    end(places)?;
    let plan = ServicePlan { places: places.clone(), program: service.program, by_systemd: service.by_systemd };
    let is_untouched = fs::read_to_string(places.pipeline()).is_ok_and(|text| text == plan.pipeline_text());
    let own = [places.service_file(), places.tokens(), places.service_start(), places.service_log()];
    let all = own.into_iter().chain(is_untouched.then(|| places.pipeline()));
    for path in all.filter(|path| path.exists()) {
        fs::remove_file(&path).with_context(|| format!("{}: cannot be removed", path.display()))?;
    }
    let memory = service.memory.display();
    Ok(format!("the service {ended}; the memory {memory} stays, `ripplemem turns` and `ripplemem forget` work on it"))
}

/// Ends the process that holds the service's lock, and waits for it.
fn end(places: &AgentPlaces) -> Result<()> {
    let began = Instant::now();
    let mut is_told = false;
    loop {
        let holder = match FileLock::take(&places.service_lock()) {
            Ok(_) => return Ok(()),
            Err(FileLockError::InUse(holder)) => holder,
            Err(FileLockError::Failed(error)) => bail!("{}: {error}", places.service_lock().display()),
        };
        if !is_told {
            let process = holder.strip_prefix("process ").and_then(|id| id.parse::<i32>().ok());
            let process = process.with_context(|| format!("{holder} is the service; end it"))?;
            #[cfg(unix)]
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), nix::sys::signal::Signal::SIGTERM)
                .with_context(|| format!("{holder} is the service, and cannot be ended"))?;
            #[cfg(not(unix))]
            bail!("process {process} is the service; end it, and remove again");
            is_told = true;
        }
        if began.elapsed() > END {
            bail!("{holder} is the service, and has not ended within {} s", END.as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
