//! Where programs keep their transcripts in a home directory.
//!
//! In: a home directory. Out: the files of every program that has some there, and the folders to watch for more. The
//! places are those of Linux, macOS and Windows alike: those that do not exist are passed over. Never follows symbolic
//! links to folders, so that no walk is endless.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use super::{
    aider, claude_code, cline, codex, continue_dev, copilot_cli,
    databases::{CURSOR_PROGRAM, GOOSE_PROGRAM, OPENCODE_PROGRAM, ZED_PROGRAM},
    gemini_cli, pi,
    program::TranscriptProgram,
    qwen_code,
};

/// How far below a home directory projects with Aider's files are looked for.
const AIDER_LEVELS: usize = 4;
/// How many folders are looked at for them at most.
const AIDER_FOLDERS: usize = 20_000;
/// Folders in which no project lies.
const NO_PROJECTS: [&str; 8] =
    ["AppData", "Library", "__pycache__", "build", "node_modules", "site-packages", "target", "venv"];
/// How far below its place a file may lie.
const LEVELS: usize = 12;

/// A place of a program.
struct AgentPlace {
    program: &'static TranscriptProgram,
    /// Below the home directory.
    path: &'static str,
    /// An environment variable that names another folder, and the place below that folder.
    moved_by: Option<(&'static str, &'static str)>,
}

/// A transcript in a home directory.
#[derive(Debug, Clone)]
pub(super) struct AgentFile {
    pub(super) program: &'static TranscriptProgram,
    pub(super) path: PathBuf,
}

const fn place(program: &'static TranscriptProgram, path: &'static str) -> AgentPlace {
    AgentPlace { program, path, moved_by: None }
}

const fn movable(
    program: &'static TranscriptProgram,
    path: &'static str,
    variable: &'static str,
    below: &'static str,
) -> AgentPlace {
    AgentPlace { program, path, moved_by: Some((variable, below)) }
}

const PLACES: &[AgentPlace] = &[
    movable(&claude_code::PROGRAM, ".claude/projects", "CLAUDE_CONFIG_DIR", "projects"),
    movable(&codex::PROGRAM, ".codex/sessions", "CODEX_HOME", "sessions"),
    movable(&codex::PROGRAM, ".codex/archived_sessions", "CODEX_HOME", "archived_sessions"),
    movable(&gemini_cli::PROGRAM, ".gemini/tmp", "GEMINI_CLI_HOME", ".gemini/tmp"),
    movable(&copilot_cli::PROGRAM, ".copilot/session-state", "COPILOT_HOME", "session-state"),
    movable(&OPENCODE_PROGRAM, ".local/share/opencode", "XDG_DATA_HOME", "opencode"),
    place(&qwen_code::PROGRAM, ".qwen/projects"),
    movable(&pi::PROGRAM, ".pi/agent/sessions", "PI_CODING_AGENT_DIR", "sessions"),
    place(&cline::PROGRAM, ".cline/data/sessions"),
    place(&continue_dev::PROGRAM, ".continue/sessions"),
    movable(&GOOSE_PROGRAM, ".local/share/goose/sessions", "XDG_DATA_HOME", "goose/sessions"),
    place(&GOOSE_PROGRAM, "AppData/Roaming/Block/goose/data/sessions"),
    movable(&ZED_PROGRAM, ".local/share/zed/threads", "XDG_DATA_HOME", "zed/threads"),
    place(&ZED_PROGRAM, "Library/Application Support/Zed/threads"),
    place(&ZED_PROGRAM, "AppData/Local/Zed/threads"),
];

/// Where editors keep their data, below the home directory, on each system.
const EDITOR_HOMES: [&str; 3] = [".config", "Library/Application Support", "AppData/Roaming"];
/// Editors that Cline and Roo are extensions of.
const EDITORS: [&str; 4] = ["Code", "Code - Insiders", "VSCodium", "Cursor"];
/// The folders of these extensions.
const EXTENSIONS: [&str; 2] = ["saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline"];

/// The folders in which programs keep transcripts, whether they exist or not. `uses_environment` says that environment
/// variables of the programs are followed.
pub(super) fn agent_folders(home: &Path, uses_environment: bool) -> Vec<(&'static TranscriptProgram, PathBuf)> {
    let mut folders = Vec::new();
    for AgentPlace { program, path, moved_by } in PLACES {
        let moved = moved_by.filter(|_| uses_environment).and_then(|(variable, below)| {
            let folder = env::var_os(variable).filter(|folder| !folder.is_empty())?;
            Some(Path::new(&folder).join(below))
        });
        folders.push((*program, moved.unwrap_or_else(|| home.join(path))));
    }
    for editors in EDITOR_HOMES {
        for editor in EDITORS {
            let storage = home.join(editors).join(editor).join("User/globalStorage");
            for extension in EXTENSIONS {
                folders.push((&cline::PROGRAM, storage.join(extension).join("tasks")));
            }
            if editor == "Cursor" {
                folders.push((&CURSOR_PROGRAM, storage));
            }
        }
    }
    folders
}

/// The transcripts in these folders, by their names: whether one is the program's, its beginning says.
pub(super) fn agent_files(folders: &[(&'static TranscriptProgram, PathBuf)]) -> Vec<AgentFile> {
    let mut files = Vec::new();
    for (program, folder) in folders {
        let levels = if program.is_database { 1 } else { LEVELS };
        walk(folder, "", levels, &mut |name, path| {
            if (program.has_name)(name) {
                files.push(AgentFile { program, path });
            }
        });
    }
    files
}

/// Aider's files, which lie in the folders of projects.
pub(super) fn aider_files(home: &Path) -> Vec<AgentFile> {
    const NAME: &str = ".aider.chat.history.md";
    let (mut files, mut level) = (Vec::new(), vec![home.to_owned()]);
    let mut folders = 0;
    for _ in 0..=AIDER_LEVELS {
        let mut below = Vec::new();
        for folder in std::mem::take(&mut level) {
            folders += 1;
            if folders > AIDER_FOLDERS {
                return files;
            }
            let path = folder.join(NAME);
            if path.is_file() {
                files.push(AgentFile { program: &aider::PROGRAM, path });
            }
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let is_left_out = name.to_str().is_none_or(|name| name.starts_with('.') || NO_PROJECTS.contains(&name));
                if !is_left_out && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    below.push(entry.path());
                }
            }
        }
        below.sort();
        level = below;
    }
    files
}

/// Gives every file below a folder, with its path below it.
fn walk(folder: &Path, below: &str, levels: usize, take: &mut impl FnMut(&str, PathBuf)) {
    // A folder that is not there, or may not be read, holds nothing.
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        if kind.is_dir() {
            if levels > 1 {
                walk(&entry.path(), &name, levels - 1, take);
            }
        } else if kind.is_file() || entry.path().is_file() {
            take(&name, entry.path());
        }
    }
}
