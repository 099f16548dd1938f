//! The TypeScript client against the real program: `tests/node/typescript_check.mjs` has the checks,
//! `typescript_page.mjs` runs what `docs/typescript.md` says with the package that npm installs. On Node, and with
//! `RIPPLEMEM_RUNTIMES=all` on Deno and Bun, too; what npm cannot install is named as skipped.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use serde_json::json;

use super::{
    access::{TOKENS, add},
    browser::browser,
    http_service::{HttpService, pipeline_file},
    model_process::ScriptedModel,
    skipped::skip,
    support::{Python, data, ripplemem},
};

const DENO: &str = "deno@2.9.6";
pub(crate) const BUN: &str = "bun@1.4.5";

/// The package of the client, once it is built; else the test is named as skipped.
pub(crate) fn package(test: &str) -> Option<&'static Path> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let mut pack = Command::new(Path::new(super::ROOT).join("scripts/typescript"));
        let output = pack.arg("--pack").arg(home).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => Ok(home.join(String::from_utf8_lossy(&output.stdout).trim())),
            Some(5) => Err(said.lines().last().unwrap_or_default().to_owned()),
            _ => panic!("{said}"),
        }
    });
    built.as_ref().inspect_err(|why| skip(test, why)).ok().map(PathBuf::as_path)
}

/// A program of npm, installed once below the target directory.
pub(crate) fn of_npm(package: &str) -> Result<PathBuf, String> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(package);
    let program = home.join("node_modules/.bin").join(package.split('@').next().unwrap());
    if !program.exists() {
        std::fs::create_dir_all(&home).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--silent", "--fetch-retries=0", "--fetch-timeout=60000"]);
        let output = npm.arg("--prefix").arg(&home).arg(package).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("npm: {error}"))?;
        if !output.status.success() {
            return Err(format!("{package} cannot be installed: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
    }
    let runs = Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success());
    if runs { Ok(program) } else { Err(format!("{package} does not run here")) }
}

/// The commands that run a script: that of Node, and those of the other runtimes if they are requested.
pub(crate) fn runtimes(test: &str) -> &'static [Vec<String>] {
    static RUNTIMES: OnceLock<Vec<Vec<String>>> = OnceLock::new();
    if package(test).is_none() {
        return &[];
    }
    RUNTIMES.get_or_init(|| {
        let mut runtimes = vec![vec!["node".to_owned()]];
        if std::env::var("RIPPLEMEM_RUNTIMES").is_ok_and(|which| which == "all") {
            let others: [(&str, &[&str]); 2] = [(DENO, &["run", "--allow-all", "--no-check"]), (BUN, &[])];
            for (package, arguments) in others {
                match of_npm(package) {
                    Ok(program) => {
                        let program = [program.to_str().unwrap()].into_iter();
                        runtimes.push(program.chain(arguments.iter().copied()).map(str::to_owned).collect());
                    }
                    Err(why) => skip(&format!("{test} on {package}"), &why),
                }
            }
        }
        runtimes
    })
}

/// Runs a script of `tests/node` to its end.
fn run(runtime: &[String], script: &str, arguments: &[&str]) {
    let script = Path::new(super::ROOT).join("tests/node").join(script);
    let mut command = Command::new(&runtime[0]);
    command.args(&runtime[1..]).arg(script).args(arguments);
    output_of(&mut command, &format!("{runtime:?} {arguments:?}"));
}

/// What a command printed, which ends well.
pub(crate) fn output_of(command: &mut Command, about: &str) -> String {
    let output = command.env_remove("RIPPLEMEM_TOKEN").stdin(Stdio::null()).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{about}: {said}");
    said
}

fn check(runtime: &[String], service: &HttpService, name: &str, more: &[&str]) {
    let url = format!("http://{}", service.address);
    run(runtime, "typescript_check.mjs", &[&[url.as_str(), name], more].concat());
}

#[test]
fn a_program_remembers_asks_and_forgets_through_the_typescript_client() {
    let checks = ["each_call", "circumstances", "writes", "selectors", "names", "texts", "many_turns", "following"];
    for runtime in runtimes("a_program_remembers_asks_and_forgets_through_the_typescript_client") {
        for name in checks.into_iter().chain(["events", "profiles", "past", "problems", "tools", "retries", "follows"])
        {
            let home = tempfile::tempdir().unwrap();
            let settings = match name {
                "circumstances" => "extract.unit_turns = 1\n",
                "past" => "extract.unit_turns = 1\nsnapshot.directory = \"snapshots\"\n",
                _ => "",
            };
            pipeline_file(home.path(), settings);
            check(runtime, &HttpService::of(home.path()), name, &[]);
        }
    }
}

#[test]
fn streams_of_the_typescript_client_go_on_after_the_service_was_killed() {
    for runtime in runtimes("streams_of_the_typescript_client_go_on_after_the_service_was_killed") {
        let home = tempfile::tempdir().unwrap();
        let file = pipeline_file(home.path(), "");
        let service = json!([env!("CARGO_BIN_EXE_ripplemem"), "serve", "--pipeline", file]);
        run(runtime, "typescript_check.mjs", &["-", "resumes", &service.to_string()]);
    }
}

#[test]
fn the_typescript_client_gets_answers_in_words_whole_and_piece_by_piece() {
    for runtime in runtimes("the_typescript_client_gets_answers_in_words_whole_and_piece_by_piece") {
        let model = ScriptedModel::start(&[]);
        let home = tempfile::tempdir().unwrap();
        let llm = format!("[llm]\nendpoint = {:?}\nmodel = \"scripted\"\n", model.endpoint);
        let file = pipeline_file(home.path(), &llm);
        let sample = data("sample.jsonl");
        let ingested = ripplemem(&["ingest", "jsonl", sample.to_str().unwrap(), "--pipeline", file.to_str().unwrap()]);
        assert!(ingested.status.success(), "{}", String::from_utf8_lossy(&ingested.stderr));
        check(runtime, &HttpService::of(home.path()), "in_words", &[]);
    }
}

#[test]
fn the_typescript_client_shows_its_token() {
    for runtime in runtimes("the_typescript_client_shows_its_token") {
        let home = tempfile::tempdir().unwrap();
        pipeline_file(home.path(), TOKENS);
        let token = add(home.path(), "agent", "acme", &["read", "write", "forget"]);
        check(runtime, &HttpService::of(home.path()), "denied", &[&token]);
    }
}

/// On Node alone: it is npm that installs the package.
#[test]
fn the_page_of_the_typescript_client_says_what_its_package_does() {
    let test = "the_page_of_the_typescript_client_says_what_its_package_does";
    let Some(package) = package(test) else { return };
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let url = format!("http://{}", service.address);
    run(&["node".to_owned()], "typescript_page.mjs", &[&url, package.to_str().unwrap()]);
}

/// The two programs of the page that stand beside each other.
#[test]
fn the_same_program_in_python_and_typescript_prints_the_same() {
    let test = "typescript_client::the_same_program_in_python_and_typescript_prints_the_same";
    let (Some(package), Some(python)) = (package(test), Python::with("httpx", test)) else { return };
    let page = std::fs::read_to_string(Path::new(super::ROOT).join("docs/typescript.md")).unwrap();
    let (_, program) = page.split_once("```python\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let client = Path::new(super::ROOT).join("clients/python/src");
    let program = format!("import sys\nsys.path.insert(0, {client:?})\n{program}");
    let on_service = |run: &dyn Fn(&str) -> String| {
        let home = tempfile::tempdir().unwrap();
        pipeline_file(home.path(), "");
        let service = HttpService::of(home.path());
        run(&format!("http://{}", service.address))
    };
    let in_python = on_service(&|url| python.run(&["-c", &program.replace("http://127.0.0.1:8321", url)]));
    let in_typescript = on_service(&|url| {
        let script = Path::new(super::ROOT).join("tests/node/typescript_page.mjs");
        output_of(Command::new("node").arg(script).args([url, package.to_str().unwrap(), "beside"]), test)
    });
    assert!(in_python.contains("I live in Porto"), "{in_python}");
    assert_eq!(in_python, in_typescript);
}

/// A page of another origin, which the pipeline file names.
#[test]
fn a_page_of_another_origin_asks_and_follows_through_the_typescript_client() {
    let test = "typescript_client::a_page_of_another_origin_asks_and_follows_through_the_typescript_client";
    let (Some(browser), Some(_)) = (browser(test), package(test)) else { return };
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "");
    let program = env!("CARGO_BIN_EXE_ripplemem");
    run(&["node".to_owned()], "typescript_browser.mjs", &[&browser, program, file.to_str().unwrap()]);
}

/// The types are those of the document, the code has the form of the console's, and the whole is small.
#[test]
fn the_typescript_client_is_what_its_document_says() {
    if package("the_typescript_client_is_what_its_document_says").is_none() {
        return;
    }
    let output = Command::new(Path::new(super::ROOT).join("scripts/typescript")).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
