//! The Python client against the real program: `tests/python/client_check.py` has the checks, `agent_check.py`
//! those of `examples/agent.py`. A test without httpx is named as skipped.

use std::path::Path;

use super::{
    http_service::{HttpService, pipeline_file},
    model_process::ScriptedModel,
    skipped::skip,
    support::{Python, data, ripplemem},
};

/// Runs a check on a service of its own; `more` are further arguments.
fn check(python: &Python, service: &HttpService, name: &str, more: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/client_check.py");
    let url = format!("http://{}", service.address);
    python.run(&[&[script.to_str().unwrap(), &url, name][..], more].concat());
}

#[test]
fn a_program_remembers_asks_and_forgets_through_the_python_client() {
    let Some(python) = Python::with("httpx", "a_program_remembers_asks_and_forgets_through_the_python_client") else {
        return;
    };
    let names = ["each_call", "many_turns", "asynchronous", "following", "problems", "retries", "follows"];
    let more = ["records", "names", "past", "events", "circumstances", "line_breaks", "half_characters", "histories"];
    for name in names.into_iter().chain(more).chain(["matches_the_document"]) {
        let home = tempfile::tempdir().unwrap();
        let settings = match name {
            "circumstances" | "records" => "extract.unit_turns = 1\n",
            "past" => "extract.unit_turns = 1\nsnapshot.directory = \"snapshots\"\n",
            _ => "",
        };
        pipeline_file(home.path(), settings);
        check(&python, &HttpService::of(home.path()), name, &[]);
    }
}

/// Frameworks bring the successor of httpx alone.
#[test]
fn the_python_client_works_with_httpx2() {
    let Some(python) = Python::with("httpx2", "the_python_client_works_with_httpx2") else { return };
    for name in ["asynchronous", "following", "problems", "retries", "follows", "events"] {
        let home = tempfile::tempdir().unwrap();
        pipeline_file(home.path(), "");
        check(&python, &HttpService::of(home.path()), name, &[]);
    }
}

/// The adapters of LangGraph and OpenAI Agents at their newest versions, with the tests of these frameworks' own stores;
/// `make test-frameworks` runs all of them.
#[test]
fn adapters_of_frameworks_keep_their_contracts() {
    for framework in ["langgraph", "openai-agents"] {
        let script = Path::new(super::ROOT).join("scripts/frameworks");
        let output = std::process::Command::new(script)
            .args(["--versions", "newest", "--binary", env!("CARGO_BIN_EXE_ripplemem"), framework])
            .output()
            .unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.code() == Some(5) {
            skip("adapters_of_frameworks_keep_their_contracts", stderr.trim().lines().last().unwrap_or(framework));
            continue;
        }
        assert!(output.status.success(), "{framework}:\n{stdout}\n{stderr}");
        println!("{stdout}");
    }
}

#[test]
fn the_python_client_gets_answers_in_words_whole_and_piece_by_piece() {
    let name = "the_python_client_gets_answers_in_words_whole_and_piece_by_piece";
    let Some(python) = Python::with("httpx", name) else { return };
    let model = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let llm = format!("[llm]\nendpoint = {:?}\nmodel = \"scripted\"\n", model.endpoint);
    let file = pipeline_file(home.path(), &llm);
    let sample = data("sample.jsonl");
    let ingested = ripplemem(&["ingest", "jsonl", sample.to_str().unwrap(), "--pipeline", file.to_str().unwrap()]);
    assert!(ingested.status.success(), "{}", String::from_utf8_lossy(&ingested.stderr));
    check(&python, &HttpService::of(home.path()), "in_words", &[]);
}

#[test]
fn the_python_client_shows_its_token() {
    let Some(python) = Python::with("httpx", "the_python_client_shows_its_token") else { return };
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "access.token_file = \"tokens.json\"");
    let file = home.path().join("p.toml");
    let added = ripplemem(&[
        "token",
        "add",
        "agent",
        "--bank",
        "acme",
        "--right",
        "read",
        "--right",
        "write",
        "--right",
        "forget",
        "--pipeline",
        file.to_str().unwrap(),
    ]);
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let token = String::from_utf8(added.stdout).unwrap();
    check(&python, &HttpService::of(home.path()), "denied", &[token.trim()]);
}

#[test]
fn the_example_agent_remembers_and_recalls_without_a_key() {
    let Some(python) = Python::with("httpx", "the_example_agent_remembers_and_recalls_without_a_key") else { return };
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python");
    let mut command = python.command();
    let packages = command.get_envs().find_map(|(name, value)| (name == "PYTHONPATH").then_some(value)).flatten();
    let path = format!("{}:{}", client.join("src").display(), packages.unwrap().to_str().unwrap());
    let output = command
        .env("PYTHONPATH", path)
        .arg(client.join("examples/agent_loop.py"))
        .arg(format!("http://{}", service.address))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let recalled = said.split("> Who visits me in August?").nth(1).unwrap();
    assert!(recalled.contains("Clara"), "{said}");
}

#[test]
fn the_agent_in_twenty_lines_remembers_across_conversations() {
    let name = "the_agent_in_twenty_lines_remembers_across_conversations";
    let Some(python) = Python::with("httpx", name) else { return };
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/agent_check.py");
    python.run(&[script.to_str().unwrap(), &format!("http://{}", service.address)]);
}
