//! The commands of `ripplemem-eval` that the pages show: every option is one of the program.

use std::{collections::BTreeSet, fs, path::Path};

use regex::Regex;

use super::support::ripplemem;

/// The help of the program and of each of its commands.
fn help() -> String {
    let of = |arguments: &[&str]| String::from_utf8(ripplemem(arguments).stdout).unwrap();
    let all = of(&["--help"]);
    let commands = all.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names =
        commands.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next()).filter(|name| *name != "help");
    let below: String = names.map(|name| of(&[name, "--help"])).collect();
    all.clone() + &below
}

#[test]
fn options_of_the_pages_exist() {
    let (help, root) = (help(), Path::new(super::ROOT));
    let command = Regex::new(r"\bripplemem-eval [^`#\n]*").unwrap();
    // An option alone stands for this program's on its own page, and for any command's elsewhere.
    let alone = Regex::new(r"`--[a-z-]+[^`\n]*`").unwrap();
    let option = Regex::new(r"--[a-z][a-z-]*").unwrap();
    let entries = fs::read_dir(root.join("docs/lab")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> = entries.collect();
    pages.extend(["README.md", "docs/evaluation.md"].map(|page| root.join(page)));
    let (mut seen, mut unknown) = (0, BTreeSet::new());
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let mut spans: Vec<_> = command.find_iter(&text).collect();
        if page.ends_with("evaluation.md") {
            spans.extend(alone.find_iter(&text));
        }
        for written in spans.iter().flat_map(|span| option.find_iter(span.as_str())) {
            seen += 1;
            if !help.contains(written.as_str()) {
                unknown.insert(format!("{}: {}", page.display(), written.as_str()));
            }
        }
    }
    assert!(unknown.is_empty(), "options that the program does not have: {unknown:#?}");
    assert!(seen > 20, "the options were found: {seen}");
}
