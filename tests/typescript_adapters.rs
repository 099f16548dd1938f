//! The adapters of agent frameworks in the TypeScript client, with the real program and the frameworks' own releases:
//! `tests/node/adapters` has the checks, which run in projects where npm installed both. `make test` runs one of them;
//! with `RIPPLEMEM_RUNTIMES=all` there are all, also with the oldest releases that are supported, on Deno, Bun and a
//! newer Node, and with the frameworks' own tests where `RIPPLEMEM_SUITES` names a directory of their repositories.
//! What npm cannot install is named as skipped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::json;

use super::{
    ROOT,
    http_service::{HttpService, pipeline_file},
    skipped::skip,
    typescript_client::{of_npm, output_of, package, runtimes},
};

/// A framework, and what npm installs for its checks.
struct Framework {
    /// The script of its checks, and the package's subpath with `-` for `_`.
    name: &'static str,
    newest: &'static [&'static str],
    oldest: &'static [&'static str],
    /// Checks that the oldest release does not pass, by a fault of its own.
    without: &'static str,
    /// Whether its optional packages are left out: the Claude SDK's are programs of 200 MB.
    plain: bool,
}

const AI: Framework = Framework {
    name: "ai",
    newest: &["ai@7.0.173", "zod@4.6.7"],
    oldest: &["ai@6.0.0", "zod@4.6.7"],
    without: "",
    plain: false,
};
const LANGGRAPH: Framework = Framework {
    name: "langgraph",
    newest: &[
        "@langchain/langgraph-checkpoint@1.2.2",
        "@langchain/langgraph@1.7.3",
        "@langchain/core@1.4.0",
        "zod@4.6.7",
    ],
    oldest: &[
        "@langchain/langgraph-checkpoint@1.0.0",
        "@langchain/langgraph@1.0.0",
        "@langchain/core@1.1.0",
        "zod@4.6.7",
    ],
    // Its in-memory store takes namespace ["users", "anna"] for one below ["users", "ann"].
    without: "beside_the_reference",
    plain: false,
};
const OPENAI_AGENTS: Framework = Framework {
    name: "openai_agents",
    newest: &["@openai/agents@0.20.0", "zod@4.6.7"],
    oldest: &["@openai/agents@0.17.0", "zod@4.6.7"],
    without: "",
    plain: false,
};
const CLAUDE_AGENT_SDK: Framework = Framework {
    name: "claude_agent_sdk",
    newest: &["@anthropic-ai/claude-agent-sdk@0.3.332", "zod@4.6.7"],
    oldest: &["@anthropic-ai/claude-agent-sdk@0.3.209", "zod@4.6.7"],
    without: "",
    plain: true,
};
const ALL: [Framework; 4] = [AI, LANGGRAPH, OPENAI_AGENTS, CLAUDE_AGENT_SDK];

/// The same with its program, of 200 MB, and a scripted endpoint of a model.
const CLAUDE_AGENT_PROGRAM: Framework = Framework { name: "claude_agent_program", plain: false, ..CLAUDE_AGENT_SDK };

/// Beside Node 20: what the newest AI SDK asks for.
const NEWER_NODE: &str = "node@22.23.3";
/// What runs the tests of the frameworks' repositories.
const VITEST: &str = "vitest@3.2.7";

/// A directory in which npm installed these packages, with the client's package and the checks beside them.
fn project(test: &str, name: &str, packages: &[&str], plain: bool) -> Option<PathBuf> {
    let client = package(test)?;
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("adapters-{name}"));
    let installed = home.join("installed");
    if fs::read_to_string(&installed).ok().as_deref() != Some(packages.join(" ").as_str()) {
        drop(fs::remove_dir_all(&home));
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("package.json"), r#"{ "private": true, "type": "module" }"#).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts", "--fetch-retries=1"]);
        npm.args(plain.then_some("--omit=optional")).args(packages).current_dir(&home).stdin(Stdio::null());
        let output = npm.output().unwrap();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            skip(test, &format!("npm cannot install {}: {}", packages.join(" "), said.trim()));
            return None;
        }
        fs::write(&installed, packages.join(" ")).unwrap();
    }
    let ours = home.join("node_modules/ripplemem");
    drop(fs::remove_dir_all(&ours));
    fs::create_dir_all(&ours).unwrap();
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(client).args(["--strip-components=1", "-C"]).arg(&ours);
    assert!(unpack.status().unwrap().success());
    for file in fs::read_dir(Path::new(ROOT).join("tests/node/adapters")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), home.join(file.file_name())).unwrap();
    }
    Some(home)
}

/// Runs a framework's checks in a project.
fn check(runtime: &[String], project: &Path, framework: &Framework, without: &str) {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let other = tempfile::tempdir().unwrap();
    let restarted = json!([env!("CARGO_BIN_EXE_ripplemem"), "serve", "--pipeline", pipeline_file(other.path(), "")]);
    let mut command = Command::new(&runtime[0]);
    command.args(&runtime[1..]).arg(format!("{}.mjs", framework.name)).arg(format!("http://{}", service.address));
    command.env("SERVICE", restarted.to_string()).env("RUNTIME", json!(runtime).to_string()).env("WITHOUT", without);
    let said = output_of(command.current_dir(project), &format!("{runtime:?} {}", framework.name));
    super::skipped::print(&format!("{} on {}:\n{said}", framework.name, runtime[0]));
}

/// Whether all frameworks and runtimes are requested.
fn all() -> bool {
    std::env::var("RIPPLEMEM_RUNTIMES").is_ok_and(|which| which == "all")
}

#[test]
fn an_adapter_of_the_typescript_client_keeps_what_its_framework_says() {
    let test = "an_adapter_of_the_typescript_client_keeps_what_its_framework_says";
    let frameworks = if all() { &ALL[..] } else { &ALL[..1] };
    for framework in frameworks {
        let Some(home) = project(test, framework.name, framework.newest, framework.plain) else { continue };
        for runtime in runtimes(test) {
            check(runtime, &home, framework, "");
        }
        page(&home, framework);
    }
}

#[test]
fn adapters_of_the_typescript_client_run_with_older_frameworks_and_a_newer_node() {
    let test = "adapters_of_the_typescript_client_run_with_older_frameworks_and_a_newer_node";
    if !all() {
        return;
    }
    for framework in &ALL {
        let name = format!("{}-oldest", framework.name);
        let Some(home) = project(test, &name, framework.oldest, framework.plain) else { continue };
        check(&["node".to_owned()], &home, framework, framework.without);
    }
    let Some(home) = project(test, AI.name, AI.newest, AI.plain) else { return };
    match of_npm(NEWER_NODE) {
        Ok(node) => check(&[node.to_str().unwrap().to_owned()], &home, &AI, ""),
        Err(why) => skip(test, &why),
    }
}

#[test]
fn the_program_of_the_claude_agent_sdk_goes_on_in_another_process_with_its_memory() {
    let test = "the_program_of_the_claude_agent_sdk_goes_on_in_another_process_with_its_memory";
    if !all() {
        return;
    }
    let framework = CLAUDE_AGENT_PROGRAM;
    let Some(home) = project(test, framework.name, framework.newest, framework.plain) else { return };
    check(&["node".to_owned()], &home, &framework, "");
}

/// The frameworks' own tests, from checkouts of their repositories; what is ours alone of them is in `suites.mjs`.
#[test]
fn adapters_of_the_typescript_client_pass_the_tests_of_their_frameworks() {
    let test = "adapters_of_the_typescript_client_pass_the_tests_of_their_frameworks";
    let Ok(suites) = std::env::var("RIPPLEMEM_SUITES") else { return };
    for framework in &ALL[1..] {
        let packages = [framework.newest, &[VITEST]].concat();
        let name = format!("{}-suites", framework.name);
        let Some(home) = project(test, &name, &packages, framework.plain) else { continue };
        let (folder, bun) = (tempfile::tempdir().unwrap(), of_npm(super::typescript_client::BUN));
        pipeline_file(folder.path(), "");
        let service = HttpService::of(folder.path());
        let mut command = Command::new("node");
        command.args(["suites.mjs", &format!("http://{}", service.address), framework.name, &suites]);
        command.arg(bun.unwrap_or_default()).current_dir(&home);
        super::skipped::print(&output_of(&mut command, framework.name));
    }
}

/// The snippets of the page that are about the framework.
fn page(project: &Path, framework: &Framework) {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let mut command = Command::new("node");
    command.arg(Path::new(ROOT).join("tests/node/typescript_page.mjs")).arg(format!("http://{}", service.address));
    command.arg(project).arg(framework.name);
    output_of(&mut command, &format!("the page's snippets of {}", framework.name));
}
