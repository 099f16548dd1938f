//! The rules of structure that no compiler keeps: which room of a crate may import which, what the memory is
//! built on, a contract at the top of every file, files short enough to read, pure rooms that stay pure, one module
//! style, module roots without bodies, log lines in one file per crate, no circles of imports, and no type name twice
//! (decision 47).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::imports::{circles, without_tests};

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.into_iter().map(|f| (f.strip_prefix(&root).unwrap().to_owned(), fs::read_to_string(&f).unwrap())).collect()
}

/// The crate of a file: the folder below `src`, or the program itself.
fn crate_of(file: &Path) -> String {
    let first = file.iter().next().unwrap().to_str().unwrap();
    if file.components().count() == 1 { "cli".to_owned() } else { first.to_owned() }
}

/// The room of a file within its crate: its first folder or its name.
fn room(file: &Path) -> String {
    let first = file.iter().nth(1).unwrap_or_default().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The text without its tests, which may use what they like.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or(text)
}

fn is_test(file: &Path) -> bool {
    let name = file.file_stem().unwrap().to_str().unwrap();
    name.contains("tests") || matches!(name, "properties" | "suite")
}

/// Every `crate::X` and `super::` that leaves its room.
fn imports(text: &str, rooms: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + 7..];
        if let Some(group) = rest.strip_prefix('{') {
            let (mut depth, mut start) = (0usize, true);
            for (i, c) in group.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => start = true,
                    c if start && c.is_alphanumeric() => {
                        let name: String =
                            group[i..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                        found.push(name);
                        start = false;
                    }
                    _ => {}
                }
            }
        } else {
            found.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    found.retain(|name| rooms.contains(name));
    found
}

/// Between crates the compiler keeps the direction; this keeps it between the rooms of one crate.
#[test]
fn rooms_import_in_the_datas_direction() {
    let allowed: BTreeMap<&str, BTreeMap<&str, &[&str]>> = BTreeMap::from([
        (
            "types",
            BTreeMap::from([
                ("model", &["lone_surrogates", "null_fields"][..]),
                ("config", &["model"]),
                ("schema", &["model", "config"]),
                ("backoff", &[]),
                ("chunked_map", &[]),
                ("logged_bank", &["model"]),
                ("lone_surrogates", &[]),
                ("month_names", &[]),
                ("null_fields", &[]),
                ("recall_tag", &[]),
                ("record_value", &["model"]),
                ("shrinkable_collection", &[]),
                ("sync", &[]),
                ("trace_parent", &[]),
                ("wake_signal", &["sync"]),
            ]),
        ),
        (
            "memory",
            BTreeMap::from([
                ("language", &[][..]),
                ("window", &[]),
                ("extract", &["language"]),
                ("statements", &["language"]),
                ("index", &["language", "statements"]),
                ("recall", &["language", "statements", "index"]),
            ]),
        ),
        (
            "models",
            BTreeMap::from([
                ("log_events", &[][..]),
                ("embed", &["log_events"]),
                ("rerank", &["embed", "log_events"]),
                ("llm", &["log_events"]),
                ("unread_language_reporter", &["embed"]),
            ]),
        ),
    ]);
    let mut seen = 0;
    for (file, text) in sources() {
        let Some(rooms) = allowed.get(crate_of(&file).as_str()) else { continue };
        let here = room(&file);
        if here == "lib" || is_test(&file) {
            continue;
        }
        let may = rooms.get(here.as_str()).unwrap_or_else(|| panic!("{} is in no known room", file.display()));
        let names: Vec<String> = rooms.keys().map(|r| (*r).to_owned()).collect();
        for import in imports(code(&text), &names) {
            seen += 1;
            assert!(import == here || may.contains(&import.as_str()), "{} imports {import}", file.display());
        }
    }
    assert!(seen > 60, "the imports were found: {seen}");
}

/// What the memory may be built on: nothing that reads a clock or a file, opens a socket or waits.
#[test]
fn the_memory_depends_on_nothing_with_effects() {
    let may = [
        "blake3",
        "bpe-openai",
        "crossbeam-channel",
        "differential-dataflow",
        "hashbrown",
        // Words of texts without spaces; its dictionaries are compiled in.
        "icu_segmenter",
        "jiff",
        "memchr",
        "postcard",
        "regex",
        "ripplemem-types",
        "schemars",
        "serde",
        "serde_json",
        "tantivy",
        "thiserror",
        "timely",
        "unicode-segmentation",
    ];
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/memory/Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let dependencies = manifest["dependencies"].as_table().unwrap();
    for name in dependencies.keys() {
        assert!(
            may.contains(&name.as_str()),
            "src/memory/Cargo.toml names {name}; what has effects stands in front of it"
        );
    }
    assert!(dependencies.contains_key("differential-dataflow"));
}

#[test]
fn pure_rooms_touch_no_clock_file_socket_or_async() {
    let effects = [
        "std::fs",
        "std::net",
        "std::env",
        "Instant::now",
        "SystemTime::now",
        "Timestamp::now",
        "Zoned::now",
        "async fn",
        "File::open",
        "tokio::",
    ];
    let mut seen = 0;
    for (file, text) in sources() {
        let pure = file.starts_with("memory") || file.starts_with("types/model");
        if pure && !is_test(&file) {
            seen += 1;
            for effect in effects {
                assert!(!code(&text).contains(effect), "{} uses {effect}", file.display());
            }
        }
    }
    assert!(seen > 100, "the pure files were found: {seen}");
}

#[test]
fn files_open_with_a_contract_and_can_be_read() {
    for (file, text) in sources() {
        let name = file.file_stem().unwrap().to_str().unwrap();
        assert!(text.starts_with("//!"), "{} does not say what it is for", file.display());
        let lines = text.lines().count();
        assert!(lines <= 800, "{} has {lines} lines", file.display());
        assert!(!["utils", "util", "common", "helpers", "misc"].contains(&name), "{}", file.display());
        let unsafe_here = code(&text).contains("unsafe ");
        assert!(!unsafe_here || file.ends_with("index/vectors/kernel.rs"), "{} holds unsafe code", file.display());
    }
}

#[test]
fn a_folder_is_rooted_in_its_mod_rs() {
    let files: Vec<PathBuf> = sources().into_iter().map(|(file, _)| file).collect();
    for file in &files {
        let folder = file.with_extension("");
        let beside = files.iter().any(|f| f.starts_with(&folder));
        assert!(!beside, "{} stands beside a folder of its name; make it {}/mod.rs", file.display(), folder.display());
    }
}

#[test]
fn a_mod_rs_holds_no_bodies() {
    let is_root = |file: &Path| file.ends_with("mod.rs") || file.ends_with("lib.rs") && !file.starts_with("testing");
    for (file, text) in sources().into_iter().filter(|(file, _)| is_root(file)) {
        let bodies = bodies(&text);
        assert!(bodies.is_empty(), "{} holds bodies; move them to files named for them: {bodies:#?}", file.display());
    }
}

/// An operator finds every line, its level and its fields there.
#[test]
fn log_lines_stand_in_the_log_events_of_their_crate() {
    // The logs themselves begin there, and the program has one line of its own.
    const ELSEWHERE: [&str; 2] = ["terminal/logs.rs", "cli/serve.rs"];
    let macros = ["debug!(", "info!(", "warn!(", "error!("];
    let is_line = |line: &&str| {
        let line = line.trim_start();
        !line.starts_with("//") && macros.iter().any(|name| line.contains(name))
    };
    let mut seen = 0;
    for (file, text) in sources().into_iter().filter(|(file, _)| !is_test(file)) {
        if file.ends_with("log_events.rs") {
            seen += text.lines().filter(is_line).count();
        } else if !ELSEWHERE.iter().any(|path| file == Path::new(path)) {
            let line = code(&text).lines().find(is_line);
            assert_eq!(line, None, "{}: write it in the crate's log_events.rs", file.display());
        }
    }
    assert!(seen > 50, "the log lines were found: {seen}");
}

/// The first line of every item with a body, tests left out.
fn bodies(text: &str) -> Vec<String> {
    let has_body = |line: &&str| {
        let words: Vec<&str> = line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '!')).collect();
        let item = words.iter().find(|w| !["", "pub", "crate", "super", "in", "async", "const", "unsafe"].contains(w));
        !line.starts_with([' ', '}', '#'])
            && item.is_some_and(|w| ["fn", "impl", "struct", "enum", "trait", "macro_rules!"].contains(w))
    };
    without_tests(text).lines().filter(has_body).map(str::to_owned).collect()
}

#[test]
fn bodies_of_a_module_root_are_found() {
    let root = "//! fn\nmod a;\npub use a::{\n    A,\n};\npub const MAX: u32 = 1;\n#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n";
    assert!(bodies(root).is_empty(), "{:?}", bodies(root));
    for body in ["pub(super) fn f() {", "impl<T> A for T {", "pub struct S;", "pub async fn f() {", "macro_rules! m {"]
    {
        assert_eq!(bodies(&format!("{root}{body}\n}}\n")), [body]);
    }
}

#[test]
fn files_of_a_crate_import_in_no_circle() {
    let mut crates: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
    for (file, text) in sources().into_iter().filter(|(file, _)| !is_test(file)) {
        let of = crate_of(&file);
        let inside = if of == "cli" { file } else { file.strip_prefix(&of).unwrap().to_owned() };
        crates.entry(of).or_default().push((inside, text));
    }
    for (of, files) in crates {
        let circles = circles(&files);
        assert!(circles.is_empty(), "files of {of} import each other: {circles:#?}");
    }
}

/// A name that stands for two things misleads a reader who searches for it.
#[test]
fn no_type_name_stands_twice() {
    let mut defined: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (file, text) in sources().into_iter().filter(|(file, _)| !is_test(file)) {
        for line in code(&text).lines() {
            let item = line.strip_prefix("pub").map_or(line, |rest| rest.split_once(' ').map_or("", |(_, item)| item));
            let item = item.trim_start_matches("super) ").trim_start_matches("crate) ");
            if let Some((kind, rest)) = item.split_once(' ')
                && ["struct", "enum", "trait", "type"].contains(&kind)
            {
                let name = rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap();
                defined.entry(name.to_owned()).or_default().push(file.clone());
            }
        }
    }
    assert!(defined.len() > 1_500, "the types were found: {}", defined.len());
    let twice: Vec<_> = defined.iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(twice.is_empty(), "name each for what it is of: {twice:#?}");
}

/// What continuous integration installs is there, so the tests that need it run: none of them may be skipped.
#[test]
fn tests_for_which_ci_installs_something_may_not_be_skipped() {
    const INSTALLS: &str = "scripts/setup --browser";
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    assert!(read(&root.join(".ci/run")).contains(INSTALLS));
    let may_skip = read(&root.join("tests/may_skip"));
    let mut need_it = Vec::new();
    for entry in fs::read_dir(root.join("tests")).unwrap() {
        let path = entry.unwrap().path();
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        if is_rust && read(&path).contains(concat!("scripts/setup --browser", " installs")) {
            need_it.push(format!("{}::", path.file_stem().unwrap().to_str().unwrap()));
        }
    }
    // The tests of `console` and of `report_page` ask `browser` for one.
    need_it.retain(|module| module != "browser::");
    need_it.extend(["console::", "report_page::"].map(str::to_owned));
    need_it.sort();
    assert_eq!(need_it, ["console::", "mcp_conformance::", "report_page::"]);
    for module in need_it {
        assert!(!may_skip.contains(&module), "{module} stands in tests/may_skip");
    }
}
