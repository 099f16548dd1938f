//! Coding agents: entries that come and go without a trace, hooks that are never in the way, and the whole loop with the
//! real programs of npm against a scripted model (`tests/agents/loop.py`).

use std::{
    collections::BTreeMap,
    fs,
    io::Write as _,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::skipped::skip;

/// Programs that have a hook, with the moment of a prompt and a call of it.
const HOOKS: [(&str, &str, &str); 7] = [
    ("claude-code", "UserPromptSubmit", r#"{"session_id":"s","cwd":"/k","prompt":"Who owns the harbour sensor?"}"#),
    ("codex", "UserPromptSubmit", r#"{"session_id":"s","cwd":"/k","prompt":"Who owns the harbour sensor?"}"#),
    ("gemini", "BeforeAgent", r#"{"session_id":"s","cwd":"/k","prompt":"Who owns the harbour sensor?"}"#),
    ("copilot", "userPromptSubmitted", r#"{"sessionId":"s","cwd":"/k","prompt":"Who owns the harbour sensor?"}"#),
    ("opencode", "chat.message", r#"{"sessionID":"s","directory":"/k","prompt":"Who owns the harbour sensor?"}"#),
    ("pi", "before_agent_start", r#"{"session_id":"s","cwd":"/k","prompt":"Who owns the harbour sensor?"}"#),
    ("cline", "UserPromptSubmit", r#"{"taskId":"s","cwd":"/k","prompt":"Who owns the harbour sensor?"}"#),
];

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(super::PROGRAM);
    command.args(arguments).env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap());
    command
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    command(home, arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a hook with these bytes on stdin; `None` leaves stdin open.
fn hook(home: &Path, program: &str, event: &str, input: Option<&[u8]>, off: bool) -> (Output, Duration) {
    let began = Instant::now();
    let mut command = command(home, &["agents", "hook", program, event]);
    if off {
        command.env("RIPPLEMEM_HOOKS", "off");
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take();
    if let Some(input) = input {
        // A hook that is switched off does not read it.
        drop(stdin.take().unwrap().write_all(input));
    }
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    (output, began.elapsed())
}

/// A home directory whose service is `address`, and is not started.
fn home_with(address: Option<&str>) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join(".local/share/ripplemem");
    fs::create_dir_all(data.join("agents")).unwrap();
    fs::create_dir_all(data.join("memory")).unwrap();
    let service = json!({
        "memory": data.join("memory"), "token": "t", "program": "/bin/true", "by_systemd": true, "deadline_ms": 300
    });
    fs::write(data.join("agents/service.json"), service.to_string()).unwrap();
    if let Some(address) = address {
        fs::write(data.join("memory/http.address"), format!("process {}\n{address}\n\n", std::process::id())).unwrap();
    }
    home
}

/// What the last run of a hook came to.
fn reason(home: &Path, program: &str, event: &str) -> String {
    let path = home.join(format!(".local/share/ripplemem/agents/runs/{program}.json"));
    let runs: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    runs[event]["reason"].as_str().unwrap().to_owned()
}

#[test]
fn hooks_are_never_in_the_way() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hanging = listener.local_addr().unwrap().to_string();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let huge = format!(r#"{{"session_id":"s","cwd":"/k","prompt":"{}"}}"#, "x y ".repeat(6 << 20));
    for (program, event, call) in HOOKS {
        let quiet = if program == "cline" {
            "{\"cancel\":false,\"contextModification\":\"\"}\n"
        } else if program == "gemini" {
            "{}\n"
        } else {
            ""
        };
        let nothing = |home: &Path, input: Option<&[u8]>, what: &str| {
            let (output, took) = hook(home, program, event, input, false);
            assert_eq!(output.status.code(), Some(0), "{program} {what}");
            assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), (quiet, ""), "{program} {what}");
            assert!(took < Duration::from_secs(2), "{program} {what}: {took:?}");
        };
        let bare = tempfile::tempdir().unwrap();
        nothing(bare.path(), Some(call.as_bytes()), "nothing is installed");
        let away = home_with(Some(&closed));
        nothing(away.path(), Some(call.as_bytes()), "the service is away");
        assert_eq!(reason(away.path(), program, event), "the service is away");
        let hangs = home_with(Some(&hanging));
        nothing(hangs.path(), Some(call.as_bytes()), "the service hangs");
        assert!(
            ["the service did not answer in time", "it took too long"]
                .contains(&reason(hangs.path(), program, event).as_str())
        );
        for (what, input) in [
            ("no input", &b""[..]),
            ("a broken one", &b"{\"session_id\":\"s"[..]),
            ("no text", &b"\xff\xfe\x00"[..]),
            ("a huge one", huge.as_bytes()),
        ] {
            nothing(hangs.path(), Some(input), what);
        }
        nothing(hangs.path(), None, "stdin stays open");
        let (output, _) = hook(hangs.path(), program, event, Some(call.as_bytes()), true);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), ""), "{program} is off");
    }
    for arguments in [&["agents", "hook"][..], &["agents", "hook", "emacs", "x"], &["agent", "hook", "codex", "Teapot"]]
    {
        let output = run(home_with(None).path(), arguments);
        assert_eq!((output.status.code(), output.stdout.len(), output.stderr.len()), (Some(0), 0, 0), "{arguments:?}");
    }
}

/// The files below a directory, but those of the memory.
fn files(home: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if !path.to_string_lossy().contains("/.local/") && !path.ends_with("agents-service.toml") {
                found.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(home, &mut found);
    found
}

#[test]
fn entries_come_and_go_without_a_trace() {
    let home = tempfile::tempdir().unwrap();
    let at = |path: &str| home.path().join(path);
    for (path, text) in [
        (".claude/settings.json", "{\n  // mine\n  \"hooks\": {\"SessionStart\": [{\"hooks\": []}],},\n}\n"),
        (".codex/config.toml", "# mine\nmodel = \"gpt-5\" # this one\n[mcp_servers.x]\ncommand = \"y\""),
        (".config/zed/settings.json", "// Zed settings\n{\n  \"theme\": \"One Dark\",\n}\n"),
        (".config/goose/config.yaml", "GOOSE_MODEL: x\nextensions:\n  developer:\n    enabled: true\n"),
        (".config/opencode/opencode.jsonc", "{ /* mine */ }"),
    ] {
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::write(at(path), text).unwrap();
    }
    let before = files(home.path());
    let all = [
        "claude-code",
        "codex",
        "gemini",
        "copilot",
        "opencode",
        "pi",
        "cline",
        "cursor",
        "qwen-code",
        "vscode",
        "claude-desktop",
        "zed",
        "goose",
        "windsurf",
    ];
    let order = |order: &str, more: &[&str]| {
        let output = run(home.path(), &[&["agents", order], &all[..], more].concat());
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let (is_done, shown, _) = order("install", &["--dry-run"]);
    assert!(is_done && shown.contains("+ ") && shown.contains("agents hook claude-code SessionStart"), "{shown}");
    let (is_done, _, said) = order("install", &[]);
    assert!(!is_done && said.contains("--yes"), "{said}");
    assert_eq!(files(home.path()), before, "nothing was written without consent");
    let (is_done, shown, said) = order("install", &["--yes"]);
    assert!(is_done, "{said}");
    assert!(shown.contains("trust both hooks in `/hooks`"), "{shown}");
    let installed = files(home.path());
    assert!(installed.len() > before.len());
    let service = at(".local/share/ripplemem/agents/service.json");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&service).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let token = fs::read_to_string(&service).unwrap();
    let (is_done, shown, _) = order("install", &["--yes"]);
    assert!(is_done && !shown.contains("+ "), "{shown}");
    assert_eq!(
        (files(home.path()), fs::read_to_string(&service).unwrap()),
        (installed.clone(), token),
        "twice is once"
    );
    let status = text(&run(home.path(), &["agents", "status"]).stdout);
    assert!(status.contains("SessionStart: never ran") && status.contains("as it should be"), "{status}");
    let doctor = text(&run(home.path(), &["doctor"]).stdout);
    assert!(doctor.contains("the next hook starts it"), "{doctor}");
    // What somebody else has written since stays, comments and all.
    let edited = text(&installed[&at(".codex/config.toml")]).replace("# mine", "# mine, edited");
    fs::write(at(".codex/config.toml"), &edited).unwrap();
    let (is_done, shown, said) = order("remove", &["--yes"]);
    assert!(is_done && shown.contains("stays"), "{shown} {said}");
    let mut left = files(home.path());
    let codex = text(&left.remove(&at(".codex/config.toml")).unwrap());
    assert!(
        codex.contains("# mine, edited") && codex.contains("# this one") && !codex.contains("ripplemem"),
        "{codex}"
    );
    let mut before = before;
    before.remove(&at(".codex/config.toml"));
    assert_eq!(left, before);
    assert!(!service.exists() && !at(".config/ripplemem/agents-service.toml").exists());
    // A file of another program is not replaced.
    let script = at("Documents/Cline/Hooks/UserPromptSubmit");
    fs::create_dir_all(script.parent().unwrap()).unwrap();
    fs::write(&script, "#!/bin/sh\n").unwrap();
    let refused = run(home.path(), &["agents", "install", "cline", "--yes"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("another program"), "{refused:?}");
    assert_eq!(fs::read_to_string(&script).unwrap(), "#!/bin/sh\n");
}

/// A variable moved a program's settings when its entries came, and is not set when they go.
#[test]
fn entries_go_from_where_they_came() {
    let home = tempfile::tempdir().unwrap();
    let elsewhere = home.path().join("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    let settings = elsewhere.join("settings.json");
    fs::write(&settings, "{}\n").unwrap();
    let install = || {
        let mut install = command(home.path(), &["agents", "install", "claude-code", "--yes"]);
        install.env("CLAUDE_CONFIG_DIR", &elsewhere).output().unwrap()
    };
    let installed = install();
    assert!(installed.status.success(), "{installed:?}");
    assert!(fs::read_to_string(&settings).unwrap().contains("agents hook"));
    // The service looks for transcripts there, too, also after an installation in a shell that does not say where.
    assert!(run(home.path(), &["agents", "install", "codex", "--yes"]).status.success());
    let service = fs::read(home.path().join(".local/share/ripplemem/agents/service.json")).unwrap();
    let service: Value = serde_json::from_slice(&service).unwrap();
    assert_eq!(service["variables"], json!({ "CLAUDE_CONFIG_DIR": elsewhere }));
    let removed = run(home.path(), &["agents", "remove", "claude-code", "--yes"]);
    assert!(removed.status.success(), "{removed:?}");
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{}\n");
    install();
    fs::write(&settings, fs::read_to_string(&settings).unwrap() + "\n").unwrap();
    let refused = run(home.path(), &["agents", "remove", "claude-code", "--yes"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("CLAUDE_CONFIG_DIR"), "{refused:?}");
}

/// Runs the loop with the real programs; the two that most people have, or all.
#[test]
fn real_programs_remember_across_sessions() {
    const NAME: &str = "coding_agents::real_programs_remember_across_sessions";
    let all = std::env::var("RIPPLEMEM_AGENTS").is_ok_and(|which| which == "all");
    let programs: &[&str] =
        if all { &["claude-code", "codex", "gemini", "copilot", "opencode", "pi"] } else { &["claude-code", "codex"] };
    if !super::support::has_default_model() {
        return skip(NAME, "the embedding model is not installed");
    }
    let npm = Path::new(env!("CARGO_TARGET_TMPDIR")).join("agents");
    let mut failed = Vec::new();
    for program in programs {
        let mut python = Command::new("python3");
        python.arg(Path::new(super::ROOT).join("tests/agents/loop.py")).arg(super::PROGRAM).arg(&npm).arg(program);
        let output = match python.stdin(Stdio::null()).output() {
            Ok(output) => output,
            Err(error) => return skip(NAME, &format!("python3: {error}")),
        };
        match output.status.code() {
            Some(0) => super::skipped::print(text(&output.stdout).trim()),
            Some(5) => skip(&format!("{NAME} with {program}"), text(&output.stderr).trim()),
            _ => failed.push(text(&output.stderr)),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
