//! Our entries in each program's settings.
//!
//! In: a program, the home directory with the variables that move it, and the commands that call us. Out: the files that
//! have entries of ours, with these entries. Reads nothing but which of two names of a file exists.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{
    json_settings::JsonEntry,
    plugins::{cline_script, opencode_plugin, pi_extension},
    program::AgentProgram,
    settings_file::{OwnContent, SettingsFile, SettingsForm},
    toml_settings::TomlTable,
    yaml_settings::YamlLines,
};

/// How long a program waits for a hook, in seconds. The hook itself ends long before.
const HOOK_SECONDS: u64 = 2;
/// Our name among the servers of a program.
const NAME: &str = "ripplemem";

/// A home directory.
pub struct ProgramHome<'a> {
    /// The directory.
    pub home: PathBuf,
    /// A variable of the environment by its name.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Whether a file exists.
    pub exists: &'a dyn Fn(&Path) -> bool,
}

/// The commands by which a program calls us.
#[derive(Debug, Clone)]
pub struct OwnCommands {
    /// The whole path of our program.
    pub program: String,
}

impl OwnCommands {
    /// The arguments of a hook.
    #[must_use]
    pub fn hook_arguments(program: AgentProgram, event: &str) -> [String; 4] {
        ["agents", "hook", program.name(), event].map(str::to_owned)
    }

    /// The command of a hook as one line for a shell.
    fn hook_line(&self, program: AgentProgram, event: &str) -> String {
        format!("{} {}", shell_word(&self.program), Self::hook_arguments(program, event).join(" "))
    }

    /// The arguments of the server of tools.
    fn mcp_arguments(program: AgentProgram) -> Value {
        json!(["agents", "mcp", program.name()])
    }
}

/// What every hook of a program has in its command, and no other command has.
fn mark(program: AgentProgram) -> String {
    format!("agents hook {}", program.name())
}

/// The files of a program that have entries of ours.
#[must_use]
pub fn settings_of(program: AgentProgram, place: &ProgramHome<'_>, own: &OwnCommands) -> Vec<SettingsFile> {
    let home = |path: &str| place.home.join(path);
    let moved = |variable: &str, path: &str| match (place.variable)(variable).filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => home(path),
    };
    let server = json!({"command": own.program, "args": OwnCommands::mcp_arguments(program)});
    let typed = |kind: &str| {
        let mut server = server.clone();
        server["type"] = kind.into();
        server
    };
    let tools = |path: PathBuf, names: &'static [&'static str], value: Value| {
        json_file(path, "the tools (MCP)", vec![JsonEntry::Member { path: names, name: NAME, value }])
    };
    match program {
        AgentProgram::ClaudeCode => {
            let folder = (place.variable)("CLAUDE_CONFIG_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
            let servers = folder.as_ref().map_or_else(|| home(".claude.json"), |folder| folder.join(".claude.json"));
            let settings = folder.unwrap_or_else(|| home(".claude")).join("settings.json");
            let hook = |event: &str| {
                let line = own.hook_line(program, event);
                json!({"hooks": [{"type": "command", "command": line, "timeout": HOOK_SECONDS}]})
            };
            vec![
                json_file(settings, "two hooks", hooks(program, &hook)),
                tools(servers, &["mcpServers"], typed("stdio")),
            ]
        }
        AgentProgram::Codex => {
            let folder = moved("CODEX_HOME", ".codex");
            let hook = |event: &str| {
                let line = own.hook_line(program, event);
                json!({"hooks": [{"type": "command", "command": line, "timeout": HOOK_SECONDS}]})
            };
            let values = vec![("command", json!(own.program)), ("args", OwnCommands::mcp_arguments(program))];
            let table = TomlTable { parent: "mcp_servers", name: NAME, values };
            vec![
                json_file(folder.join("hooks.json"), "two hooks", hooks(program, &hook)),
                file(folder.join("config.toml"), "the tools (MCP)", OwnContent::Toml(table)),
            ]
        }
        AgentProgram::Gemini => {
            let folder = (place.variable)("GEMINI_CLI_HOME").filter(|folder| !folder.is_empty());
            let folder = folder.map_or_else(|| place.home.clone(), PathBuf::from).join(".gemini");
            let hook = |event: &str| {
                let line = own.hook_line(program, event);
                let timeout = HOOK_SECONDS * 1_000;
                json!({"hooks": [{"name": NAME, "type": "command", "command": line, "timeout": timeout}]})
            };
            let mut entries = hooks(program, &hook);
            entries.push(JsonEntry::Member { path: &["mcpServers"], name: NAME, value: server });
            vec![json_file(folder.join("settings.json"), "two hooks and the tools (MCP)", entries)]
        }
        AgentProgram::Copilot => {
            let folder = moved("COPILOT_HOME", ".copilot");
            let mut events = serde_json::Map::new();
            for event in program.events() {
                let line = own.hook_line(program, event);
                let power = OwnCommands::hook_arguments(program, event).join(" ");
                let power = format!("& '{}' {power}", own.program.replace('\'', "''"));
                let hook = json!({"type": "command", "bash": line, "powershell": power, "timeoutSec": HOOK_SECONDS});
                events.insert((*event).to_owned(), json!([hook]));
            }
            let text = pretty(&json!({"version": 1, "hooks": events}));
            let mut server = typed("local");
            server["tools"] = json!(["*"]);
            vec![
                whole(folder.join("hooks/ripplemem.json"), "two hooks", text, false),
                tools(folder.join("mcp-config.json"), &["mcpServers"], server),
            ]
        }
        AgentProgram::Opencode => {
            let folder = moved("XDG_CONFIG_HOME", ".config").join("opencode");
            let with_comments = folder.join("opencode.jsonc");
            let settings = if (place.exists)(&with_comments) { with_comments } else { folder.join("opencode.json") };
            let mut command = vec![json!(own.program)];
            command.extend(OwnCommands::mcp_arguments(program).as_array().cloned().unwrap_or_default());
            let server = json!({"type": "local", "command": command, "enabled": true});
            vec![
                whole(
                    folder.join("plugin/ripplemem.js"),
                    "a plugin that calls the hook",
                    opencode_plugin(&own.program),
                    false,
                ),
                tools(settings, &["mcp"], server),
            ]
        }
        AgentProgram::Pi => {
            let folder = moved("PI_CODING_AGENT_DIR", ".pi/agent");
            let path = folder.join("extensions/ripplemem.ts");
            vec![whole(path, "an extension that calls the hook", pi_extension(&own.program), false)]
        }
        AgentProgram::Cline => {
            let script = |event: &str| {
                let path = home("Documents/Cline/Hooks").join(event);
                whole(path, "a script that calls the hook", cline_script(&own.hook_line(program, event)), true)
            };
            let mut files: Vec<SettingsFile> = program.events().iter().map(|event| script(event)).collect();
            files.push(tools(home(".cline/data/settings/cline_mcp_settings.json"), &["mcpServers"], server));
            files
        }
        AgentProgram::Cursor => vec![tools(home(".cursor/mcp.json"), &["mcpServers"], server)],
        AgentProgram::QwenCode => vec![tools(home(".qwen/settings.json"), &["mcpServers"], server)],
        AgentProgram::VsCode => {
            let path = editor_home(place).join("Code/User/mcp.json");
            vec![tools(path, &["servers"], typed("stdio"))]
        }
        AgentProgram::ClaudeDesktop => {
            let path = editor_home(place).join("Claude/claude_desktop_config.json");
            vec![tools(path, &["mcpServers"], server)]
        }
        AgentProgram::Zed => {
            let folder = if cfg!(windows) { editor_home(place).join("Zed") } else { home(".config/zed") };
            vec![tools(folder.join("settings.json"), &["context_servers"], server)]
        }
        AgentProgram::Goose => {
            let folder = if cfg!(windows) {
                editor_home(place).join("Block/goose/config")
            } else {
                moved("XDG_CONFIG_HOME", ".config").join("goose")
            };
            let lines = format!(
                "  {NAME}:\n    type: stdio\n    name: {NAME}\n    enabled: true\n    cmd: {}\n    args: {}\n    timeout: \
                 300\n",
                json!(own.program),
                OwnCommands::mcp_arguments(program)
            );
            let lines = YamlLines { mapping: "extensions", lines };
            vec![file(folder.join("config.yaml"), "the tools (MCP)", OwnContent::Yaml(lines))]
        }
        AgentProgram::Windsurf => vec![tools(home(".codeium/windsurf/mcp_config.json"), &["mcpServers"], server)],
    }
}

/// Where editors keep their settings.
fn editor_home(place: &ProgramHome<'_>) -> PathBuf {
    if cfg!(target_os = "macos") {
        place.home.join("Library/Application Support")
    } else if cfg!(windows) {
        place.home.join("AppData/Roaming")
    } else {
        place.home.join(".config")
    }
}

/// A hook for each moment of a program.
fn hooks(program: AgentProgram, hook: &dyn Fn(&str) -> Value) -> Vec<JsonEntry> {
    let of = |event: &&str| JsonEntry::Element {
        path: vec!["hooks".to_owned(), (*event).to_owned()],
        mark: mark(program),
        value: hook(event),
    };
    program.events().iter().map(of).collect()
}

fn json_file(path: PathBuf, about: &'static str, entries: Vec<JsonEntry>) -> SettingsFile {
    file(path, about, OwnContent::Json(entries))
}

fn whole(path: PathBuf, about: &'static str, text: String, is_program: bool) -> SettingsFile {
    file(path, about, OwnContent::Whole { text, is_program })
}

fn file(path: PathBuf, about: &'static str, form: OwnContent) -> SettingsFile {
    SettingsFile { path, about, form: SettingsForm(form) }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// A word of a command line, for the shells of Unix and of Windows.
fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/\\:._-+~".contains(letter);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false if cfg!(windows) => format!("\"{word}\""),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(program: AgentProgram) -> Vec<SettingsFile> {
        let place = ProgramHome { home: PathBuf::from("/home/odalys"), variable: &|_| None, exists: &|_| false };
        settings_of(program, &place, &OwnCommands { program: "/opt/ripple mem/ripplemem".to_owned() })
    }

    #[test]
    fn each_program_gets_its_entries_once_and_loses_them_whole() {
        for program in AgentProgram::all() {
            let files = files(program);
            assert!(!files.is_empty());
            for file in files {
                assert!(file.path.starts_with("/home/odalys"), "{}", file.path.display());
                let with = file.with_own(None).unwrap();
                assert!(with.contains("/opt/ripple mem/ripplemem") && with.ends_with('\n'), "{with}");
                assert_eq!(file.with_own(Some(&with)).unwrap(), with);
                let left = file.without_own(&with).unwrap().unwrap_or_default();
                assert!(!left.contains("ripplemem"), "{left}");
            }
        }
    }

    #[test]
    fn hooks_stand_where_their_programs_look() {
        let text = |program, at: usize| {
            let files = files(program);
            files[at].with_own(None).unwrap()
        };
        let value: Value = serde_json::from_str(&text(AgentProgram::ClaudeCode, 0)).unwrap();
        let hook = &value["hooks"]["UserPromptSubmit"][0]["hooks"][0];
        assert_eq!(hook["command"], "'/opt/ripple mem/ripplemem' agents hook claude-code UserPromptSubmit");
        assert_eq!((&hook["timeout"], &hook["type"]), (&json!(2), &json!("command")));
        let value: Value = serde_json::from_str(&text(AgentProgram::Gemini, 0)).unwrap();
        assert_eq!(value["hooks"]["BeforeAgent"][0]["hooks"][0]["timeout"], 2_000);
        assert_eq!(value["mcpServers"]["ripplemem"]["args"], json!(["agents", "mcp", "gemini"]));
        let toml = text(AgentProgram::Codex, 1);
        assert!(toml.starts_with("[mcp_servers.ripplemem]\n"), "{toml}");
    }

    #[test]
    fn variables_move_a_programs_settings() {
        let variable = |name: &str| (name == "CODEX_HOME").then(|| "/elsewhere".to_owned());
        let place = ProgramHome { home: PathBuf::from("/home/odalys"), variable: &variable, exists: &|_| false };
        let own = OwnCommands { program: "/b".to_owned() };
        let files = settings_of(AgentProgram::Codex, &place, &own);
        assert_eq!(files[0].path, PathBuf::from("/elsewhere/hooks.json"));
    }
}
