//! The documentation, held to what is there: links, anchors, paths and commands.
//!
//! In: every Markdown file of the repository, golden files left out. Fails when a relative link, an
//! anchor, a path in backticks or an option leads nowhere, when the code cites a decision that is not
//! written down, when the README is longer than a front page, or when what the README or the lab prints, or a
//! command of docs/getting-started.md, is not what happens.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
};

use regex::Regex;

use super::{
    skipped::skip,
    support::{data, ripplemem, write},
};

/// Lines of a README that still is a front page.
const MAX_README_LINES: usize = 150;
/// Directories that hold nothing that a person wrote for the repository.
const NOT_OURS: [&str; 5] = ["target", "golden", "ripplemem-data", "dist", "node_modules"];
/// How a path of the repository begins, if a page names one in backticks.
const FOLDERS: [&str; 11] = [
    "src/",
    "tests/",
    "docs/",
    "scripts/",
    "schemas/",
    "pipelines/",
    "packaging/",
    "docker/",
    "benches/",
    ".ci/",
    ".github/",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The pages; `src/types/config/page.md` is the beginning of `docs/configuration.md` and is checked there.
fn pages() -> Vec<PathBuf> {
    files(root(), "md").into_iter().filter(|page| !page.ends_with("src/types/config/page.md")).collect()
}

/// Every file below a directory with this extension, in order.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && !NOT_OURS.contains(&name.as_str()) {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A page without its fenced blocks, and the blocks with the word behind their fence.
fn split(text: &str) -> (String, Vec<(String, String)>) {
    let (mut prose, mut blocks, mut open) = (String::new(), Vec::new(), None);
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(word), None) => open = Some((word.trim().to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, block))) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {
                prose.push_str(line);
                prose.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a fenced block is not closed: {open:?}");
    (prose, blocks)
}

static LINK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)""#).unwrap());
static CODE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"`([^`\n]+)`").unwrap());
static LINKED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap());
/// A command line of the binary, from its subcommand on.
static COMMAND: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bripplemem ([a-z-]+)\b").unwrap());
static OPTION: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"--[a-z][a-z-]*").unwrap());
static ANCHOR: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"<[a-z]+ (?:id|name)="([^"]+)""#).unwrap());
static DECISION: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?i)\bdecisions? (\d+)(?: (and|to) (\d+))?").unwrap());

/// The anchor that GitHub gives a heading: lower case, spaces to hyphens, other marks left out.
fn anchor(heading: &str) -> String {
    let text = LINKED.replace_all(heading, "$1").trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The anchors of a page; a second heading of one name gets `-1`, a third `-2`.
fn anchors(text: &str) -> BTreeSet<String> {
    let (prose, _) = split(text);
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut found: BTreeSet<String> = ANCHOR.captures_iter(&prose).map(|c| c[1].to_owned()).collect();
    for line in prose.lines() {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let name = anchor(heading);
        let count = counts.entry(name.clone()).or_default();
        found.insert(if *count == 0 { name } else { format!("{name}-{count}") });
        *count += 1;
    }
    found
}

#[test]
fn anchors_are_those_of_github() {
    let page =
        "# On Kafka\n\n## Where do I change …?\n## `[llm]`, and [a link](x.md)\n## Costs\n## Costs\n\n```\n# no\n```\n";
    let expected = ["costs", "costs-1", "llm-and-a-link", "on-kafka", "where-do-i-change-"];
    assert_eq!(anchors(page).into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn every_relative_link_and_anchor_leads_somewhere() {
    let mut seen = 0;
    let mut broken = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let (prose, _) = split(&text);
        // A link inside backticks is shown, not followed.
        let prose = CODE.replace_all(&prose, "");
        for link in LINK.captures_iter(&prose) {
            let link = link.get(1).or(link.get(2)).unwrap().as_str();
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            seen += 1;
            let (path, to) = link.split_once('#').map_or((link, None), |(path, to)| (path, Some(to)));
            let target = if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let leads = target.exists()
                && to.is_none_or(|to| fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(to)));
            if !leads {
                broken.push(format!("{}: {link}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
    assert!(seen > 80, "the links were found: {seen}");
}

#[test]
fn every_path_that_a_page_names_is_there() {
    let mut seen = 0;
    let mut missing = Vec::new();
    for page in pages() {
        let (prose, _) = split(&fs::read_to_string(&page).unwrap());
        for code in CODE.captures_iter(&prose) {
            // Patterns and commands are no paths.
            let path = code[1].split(' ').next().unwrap();
            if !FOLDERS.iter().any(|folder| path.starts_with(folder)) || path.contains(['*', '…', '<']) {
                continue;
            }
            seen += 1;
            if !root().join(path).exists() {
                missing.push(format!("{}: {path}", page.strip_prefix(root()).unwrap().display()));
            }
        }
    }
    assert!(missing.is_empty(), "paths that are not there:\n{}", missing.join("\n"));
    assert!(seen > 80, "the paths were found: {seen}");
}

#[test]
fn the_architecture_page_names_every_room() {
    let page = read("ARCHITECTURE.md");
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&format!("`src/{name}")), "ARCHITECTURE.md does not name src/{name}");
    }
}

/// The compiler refuses circles; the page gives the order.
#[test]
fn each_crate_uses_only_those_above_it_in_the_architecture_page() {
    let page = read("ARCHITECTURE.md");
    let table = page.split("| crate | the question it answers |").nth(1).unwrap().split("\n\n").next().unwrap();
    let crates: Vec<&str> = table.lines().filter_map(|row| row.strip_prefix("| `src/")?.split('/').next()).collect();
    let mut seen = 0;
    for (at, name) in crates.iter().enumerate() {
        let manifest = if *name == "cli" { "Cargo.toml".to_owned() } else { format!("src/{name}/Cargo.toml") };
        let manifest: toml::Table = read(&manifest).parse().unwrap();
        let Some(dependencies) = manifest.get("dependencies").and_then(toml::Value::as_table) else { continue };
        let used = dependencies.keys().filter_map(|key| key.strip_prefix("ripplemem-"));
        for used in used.map(|used| if used == "api" { "ripplemem" } else { used }) {
            seen += 1;
            assert!(crates[..at].contains(&used), "src/{name} uses src/{used}, which does not stand above it");
        }
    }
    assert!(crates.len() == fs::read_dir(root().join("src")).unwrap().count() - 1, "but src/main.rs: {crates:?}");
    assert!(seen > 60, "the uses were found: {seen}");
}

#[test]
fn every_decision_that_the_code_cites_is_written_down_and_the_others_are_dropped() {
    let written = anchors(&read("docs/decisions.md"));
    let mut cited_headings = BTreeSet::new();
    for file in ["src", "tests", "benches"].iter().flat_map(|folder| files(&root().join(folder), "rs")) {
        if file.ends_with("tests/docs.rs") {
            continue;
        }
        for cited in DECISION.captures_iter(&fs::read_to_string(&file).unwrap()) {
            for number in [cited.get(1), cited.get(3)].into_iter().flatten() {
                let heading = format!("decision-{}", number.as_str());
                assert!(written.contains(&heading), "{} cites {}", file.display(), &cited[0]);
                cited_headings.insert(heading);
            }
        }
    }
    let uncited = written.iter().filter(|anchor| anchor.starts_with("decision-") && !cited_headings.contains(*anchor));
    assert_eq!(uncited.collect::<Vec<_>>(), Vec::<&String>::new(), "no code and no test stands on these");
    assert!(cited_headings.len() > 50, "the citations were found: {}", cited_headings.len());
}

#[test]
fn the_readme_is_a_front_page() {
    let readme = read("README.md");
    let lines = readme.lines().count();
    assert!(lines <= MAX_README_LINES, "README.md has {lines} lines, more than {MAX_README_LINES}");
    for command in ["make demo", "make test"] {
        assert!(readme.contains(command), "README.md does not show `{command}`");
    }
}

/// The subcommands of the binary, each with its help.
fn helps() -> HashMap<String, String> {
    let help_of = |names: &[&str]| String::from_utf8(ripplemem(&[names, &["--help"]].concat()).stdout).unwrap();
    let commands = |help: &str| -> Vec<String> {
        let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let names = lines.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
        names
            .filter(|name| *name != "help" && name.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
            .map(str::to_owned)
            .collect()
    };
    let with_commands_below = |name: String| {
        let help = help_of(&[&name]);
        let below: Vec<String> = commands(&help).iter().map(|below| help_of(&[&name, below])).collect();
        (name, help + &below.concat())
    };
    commands(&help_of(&[])).into_iter().map(with_commands_below).collect()
}

#[test]
fn every_option_that_a_page_names_exists() {
    let helps = helps();
    assert!(helps.len() > 15, "the commands were found: {:?}", helps.keys());
    let mut seen = 0;
    let mut unknown = Vec::new();
    for page in pages() {
        let (prose, blocks) = split(&fs::read_to_string(&page).unwrap());
        let lines = blocks.iter().flat_map(|(_, block)| block.lines());
        for code in CODE.captures_iter(&prose).map(|c| c.extract::<1>().1[0]).chain(lines) {
            let captured = COMMAND.captures(code);
            let command = captured.as_ref().and_then(|c| helps.get_key_value(&c[1]));
            // Options of the evaluation's program are checked by `tests/evaluation/pages.rs`.
            let of_evaluation = ["README.md", "docs/evaluation.md"].map(|page| root().join(page)).contains(&page)
                || page.starts_with(root().join("docs/lab"));
            if command.is_none() && (!code.starts_with("--") || of_evaluation) {
                continue;
            }
            // Options before the command belong to the program that starts it.
            let code = captured.and_then(|c| code.get(c.get(0)?.start()..)).unwrap_or(code);
            for option in OPTION.find_iter(code) {
                seen += 1;
                let known = |help: &String| help.split([' ', ',', '\n']).any(|word| word == option.as_str());
                let exists = command.map_or_else(|| helps.values().any(known), |(_, help)| known(help));
                if !exists {
                    unknown.push(format!("{}: {code}", page.strip_prefix(root()).unwrap().display()));
                }
            }
        }
    }
    assert!(unknown.is_empty(), "options that do not exist:\n{}", unknown.join("\n"));
    assert!(seen > 60, "the options were found: {seen}");
}

/// Whether the default model can be loaded; if not, the test is named as skipped.
fn has_model(test: &str) -> bool {
    let output = ripplemem(&["validate", root().join("pipelines/embedded.toml").to_str().unwrap()]);
    if !output.status.success() {
        skip(test, String::from_utf8_lossy(&output.stderr).trim());
    }
    output.status.success()
}

/// Asserts that the `text` block of a page is what `ask` prints over a sample with these settings. Lines that
/// begin with `$` show the command.
fn is_printed(page: &str, sample: &str, settings: &str, asked: &[&str]) {
    let (_, blocks) = split(&read(page));
    let shown = &blocks.iter().find(|(word, _)| word == "text").unwrap().1;
    assert!(shown.contains(asked[0]), "{page} shows another question than {}", asked[0]);
    let home = tempfile::tempdir().unwrap();
    let text = format!("version = 1\n{settings}\n[log]\ndirectory = {:?}\n", home.path().join("log"));
    let pipeline = write(&home.path().join("p.toml"), text);
    let pipeline = pipeline.to_str().unwrap();
    let turns = data(sample);
    let ingested = ripplemem(&["ingest", "jsonl", turns.to_str().unwrap(), "--pipeline", pipeline]);
    assert!(ingested.status.success(), "{}", String::from_utf8_lossy(&ingested.stderr));
    let arguments: Vec<&str> = ["ask", "--pipeline", pipeline].into_iter().chain(asked.iter().copied()).collect();
    let printed = String::from_utf8(ripplemem(&arguments).stdout).unwrap();
    // Line by line; only `…` stands for lines that are left out.
    let (mut lines, mut skips) = (printed.lines(), true);
    for line in shown.lines().filter(|line| !line.starts_with("$ ")) {
        if line == "…" {
            skips = true;
            continue;
        }
        let there = if skips { lines.any(|other| other == line) } else { lines.next() == Some(line) };
        assert!(there, "{page} shows what is not printed there:\n{line}\n\n{printed}");
        skips = false;
    }
}

#[test]
fn the_answer_on_the_front_page_is_what_is_printed() {
    if has_model("docs::the_answer_on_the_front_page_is_what_is_printed") {
        let question = "At which level does the quay flood, and what limit do I use now?";
        is_printed("README.md", "assistant.jsonl", "", &[question, "--bank", "sample/workshop"]);
    }
}

#[test]
fn the_ripple_in_the_lab_is_what_is_printed() {
    if has_model("docs::the_ripple_in_the_lab_is_what_is_printed") {
        let question = "Could Henrik have worked on the boat when she was built?";
        let asked = [question, "--bank", "sample/harbour", "--trace"];
        is_printed("docs/lab/one-question.md", "sample.jsonl", "profile = \"paper\"", &asked);
    }
}

#[test]
fn the_commands_of_getting_started_run() {
    if !has_model("docs::the_commands_of_getting_started_run") {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    for folder in ["pipelines", "tests/data"] {
        fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    for file in files(&root().join("pipelines"), "toml").into_iter().chain([data("sample.jsonl")]) {
        fs::copy(&file, home.path().join(file.strip_prefix(root()).unwrap())).unwrap();
    }
    let (_, blocks) = split(&read("docs/getting-started.md"));
    let blocks: Vec<&str> = blocks.iter().filter(|(word, _)| word == "sh").map(|(_, block)| block.as_str()).collect();
    assert!(blocks.len() > 5, "the blocks were found: {}", blocks.len());
    for block in blocks {
        // The rule: what `make` does is tested elsewhere; everything else runs as it stands.
        let script: String =
            block.lines().filter(|line| !line.starts_with("make ")).map(|l| format!("{l}\n")).collect();
        let script = script.replace("target/debug/ripplemem", env!("CARGO_BIN_EXE_ripplemem"));
        let mut shell = Command::new("sh");
        let output = shell.args(["-eu", "-c", &script]).current_dir(home.path()).stdin(Stdio::null()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{block}\n{told}");
        assert!(!told.contains("panicked"), "{block}\n{told}");
    }
}
