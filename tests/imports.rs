//! Which file imports which, read from the sources.
//!
//! In: paths below `src/` with their texts. Out: for each file the files whose items it names, and
//! circles among them. A name that a `mod.rs` re-exports counts as the file that defines it, so a
//! circle cannot hide behind a re-export. Tests and comments are left out; nothing is compiled.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// A path in the code: its segments, and the name under which `use` brings it in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    segments: Vec<String>,
    name: String,
    public: bool,
}

/// The text without comments and without modules that are compiled for tests only.
pub(crate) fn without_tests(text: &str) -> String {
    let mut kept = Vec::new();
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//")).peekable();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push(line);
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let closing = format!("{indent}}}");
        let whole = lines.next().is_none_or(|item| item.ends_with(';') || item.ends_with('}'));
        if !whole {
            lines.by_ref().find(|line| *line == closing);
        }
    }
    kept.join("\n")
}

/// The module that a file is: `eval/report/mod.rs` and `eval/report.rs` are both `eval::report`.
fn module(file: &Path) -> Vec<String> {
    let path = file.with_extension("");
    let mut segments: Vec<String> = path.iter().map(|s| s.to_str().unwrap().to_owned()).collect();
    if segments.last().is_some_and(|s| s == "mod" || s == "lib") {
        segments.pop();
    }
    segments
}

/// Whether a file is a module root.
fn is_door(file: &Path) -> bool {
    file.ends_with("mod.rs") || file.ends_with("lib.rs")
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The tree after `use`, and whether it is a re-export.
fn use_tree(line: &str) -> Option<(bool, &str)> {
    let line = line.trim_start();
    let Some(after) = line.strip_prefix("pub") else { return Some((false, line.strip_prefix("use ")?)) };
    let after = if after.starts_with('(') { after.split_once(')')?.1 } else { after };
    Some((true, after.trim_start().strip_prefix("use ")?))
}

/// Every path of the `use` statements, and every `crate::…` and `super::…` elsewhere.
fn named(code: &str) -> Vec<Named> {
    let mut found = Vec::new();
    let mut rest = String::new();
    let mut lines = code.lines();
    while let Some(line) = lines.next() {
        let Some((public, tree)) = use_tree(line) else {
            rest.push_str(line);
            rest.push('\n');
            continue;
        };
        let mut tree = tree.to_owned();
        while !tree.contains(';') {
            let Some(line) = lines.next() else { break };
            tree.push(' ');
            tree.push_str(line.trim());
        }
        branches(tree.split(';').next().unwrap_or_default(), &[], public, &mut found);
    }
    for start in ["crate::", "super::"] {
        for (at, _) in rest.match_indices(start) {
            let inside = rest[..at].ends_with("::") || rest[..at].chars().next_back().is_some_and(is_name);
            if !inside {
                let path: String = rest[at..].chars().take_while(|c| is_name(*c) || *c == ':').collect();
                branches(path.trim_end_matches(':'), &[], false, &mut found);
            }
        }
    }
    found
}

/// Takes a tree of `use` apart.
fn branches(tree: &str, before: &[String], public: bool, found: &mut Vec<Named>) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let mut before = before.to_vec();
        before.extend(head.split("::").map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned));
        let group = group.strip_suffix('}').unwrap_or(group);
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    branches(&group[start..at], &before, public, found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    if tree.is_empty() {
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let mut segments = before.to_vec();
    segments.extend(path.split("::").map(|s| s.trim().to_owned()));
    if segments.last().is_some_and(|s| s == "self") && segments.len() > 1 {
        segments.pop();
    }
    let name = alias.map_or_else(|| segments.last().cloned().unwrap_or_default(), str::to_owned);
    found.push(Named { segments, name, public });
}

/// The files of a tree by module, with what each names.
struct Tree {
    files: BTreeMap<Vec<String>, PathBuf>,
    named: BTreeMap<PathBuf, Vec<Named>>,
}

impl Tree {
    fn new(sources: &[(PathBuf, String)]) -> Self {
        let files = sources.iter().map(|(file, _)| (module(file), file.clone())).collect();
        let named = sources.iter().map(|(file, text)| (file.clone(), named(&without_tests(text)))).collect();
        Self { files, named }
    }

    /// The path from the root of the crate; `None` if it leads into another crate.
    fn absolute(&self, file: &Path, segments: &[String]) -> Option<Vec<String>> {
        let mut at = module(file);
        match segments.first()?.as_str() {
            "crate" => return Some(segments[1..].to_vec()),
            "self" => at.extend_from_slice(&segments[1..]),
            "super" => {
                let ups = segments.iter().take_while(|s| *s == "super").count();
                at.truncate(at.len().checked_sub(ups)?);
                at.extend_from_slice(&segments[ups..]);
            }
            _ => {
                at.extend_from_slice(segments);
                let child = &at[..=module(file).len()];
                self.files.contains_key(child).then_some(())?;
            }
        }
        Some(at)
    }

    /// The file that defines what an absolute path names, behind every re-export.
    fn definition(&self, path: &[String], seen: &mut BTreeSet<Vec<String>>) -> Option<&PathBuf> {
        if !seen.insert(path.to_vec()) {
            return None;
        }
        let length = (1..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let file = &self.files[&path[..length]];
        let Some(item) = path.get(length) else { return Some(file) };
        let door = is_door(file).then(|| &self.named[file]);
        for named in door.into_iter().flatten().filter(|n| n.name == *item) {
            let mut target = self.absolute(file, &named.segments)?;
            target.extend_from_slice(&path[length + 1..]);
            if let Some(found) = self.definition(&target, seen) {
                return Some(found);
            }
        }
        Some(file)
    }

    /// What a file names of others. What a module root re-exports is not counted.
    fn imports(&self, file: &Path) -> BTreeSet<&PathBuf> {
        let door = is_door(file);
        let named = self.named[file].iter().filter(|n| !(door && n.public));
        let paths = named.filter_map(|n| self.absolute(file, &n.segments));
        let files = paths.filter_map(|path| self.definition(&path, &mut BTreeSet::new()));
        files.filter(|other| *other != file).collect()
    }
}

/// One circle of imports for each group of files that import each other.
pub(crate) fn circles(sources: &[(PathBuf, String)]) -> Vec<String> {
    let tree = Tree::new(sources);
    let imports: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> =
        tree.files.values().map(|file| (file, tree.imports(file))).collect();
    let mut done: BTreeSet<&PathBuf> = BTreeSet::new();
    let mut circles = Vec::new();
    for start in imports.keys() {
        if done.contains(*start) {
            continue;
        }
        // The shortest way back to the start, if there is one.
        let mut from: BTreeMap<&PathBuf, &PathBuf> = BTreeMap::new();
        let mut next = std::collections::VecDeque::from([*start]);
        while let Some(file) = next.pop_front() {
            for to in &imports[file] {
                if !from.contains_key(*to) {
                    from.insert(to, file);
                    next.push_back(to);
                }
            }
        }
        if from.contains_key(*start) {
            let mut way = vec![*start];
            let mut at = from[*start];
            while at != *start {
                way.push(at);
                at = from[at];
            }
            way.push(start);
            done.extend(&way);
            way.reverse();
            circles.push(way.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(" → "));
        }
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sources: &[(&str, &str)], expected: &[&str]) {
        let sources: Vec<_> = sources.iter().map(|(file, text)| (file.into(), (*text).to_owned())).collect();
        assert_eq!(circles(&sources), expected);
    }

    #[test]
    fn a_circle_is_found_behind_a_door_in_a_group_and_inline() {
        let door = ("room/mod.rs", "mod a;\nmod b;\npub use a::{A, other as Renamed};\npub(crate) use b::B;\n");
        let a = ("room/a.rs", "use super::{\n    x::{Y},\n    b::{self, B},\n};\npub struct A;\n");
        check(&[door, a, ("room/b.rs", "use std::fmt;\npub struct B;\n")], &[]);
        let circle = &["room/a.rs → room/b.rs → room/a.rs"];
        for b in
            ["use super::A;", "use crate::room::Renamed;", "fn f() {\n    super::a::f();\n}", "use crate::{room::{a}};"]
        {
            check(&[door, a, ("room/b.rs", b)], circle);
        }
        for b in ["// use super::A;", "use other::room::A;", "#[cfg(test)]\nmod tests {\n    use super::super::A;\n}\n"]
        {
            check(&[door, a, ("room/b.rs", b)], &[]);
        }
    }

    #[test]
    fn a_body_in_a_door_takes_part_and_a_longer_circle_is_found() {
        let a = ("room/a.rs", "use super::Body;");
        check(
            &[("room/mod.rs", "mod a;\nuse a::A;\npub struct Body(A);"), a],
            &["room/a.rs → room/mod.rs → room/a.rs"],
        );
        check(&[("room/mod.rs", "mod a;\npub use a::A;\npub struct Body;"), a], &[]);
        let sources =
            [("r/a.rs", "use super::b;"), ("r/b.rs", "use super::c::d::E;"), ("r/c/d.rs", "use crate::r::a::F;")];
        check(&sources, &["r/a.rs → r/b.rs → r/c/d.rs → r/a.rs"]);
    }
}
