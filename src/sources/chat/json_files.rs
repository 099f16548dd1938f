//! The JSON files of an export, value by value.
//!
//! In: an export, the names of some of its files in the order in which they are read, and the paths of the values that
//! are wanted, as `json_elements` takes them. Out: each value with the number of its file, the end of each file, and
//! how many bytes were read. Holds one file open and one value. A file that cannot be read is an error with its name
//! and line.

use super::{ExportTree, JsonElement, JsonElements};
use crate::SourceError;

/// Files that are read one after another.
pub(crate) struct JsonFiles {
    tree: ExportTree,
    names: Vec<String>,
    paths: &'static [&'static str],
    /// Whether a file of this name has a problem if it holds no list of values.
    expects_list: fn(&str) -> bool,
    /// The number of the file that is read, or comes next.
    file: usize,
    elements: Option<JsonElements>,
    done_bytes: u64,
    total_bytes: u64,
}

/// What comes next in a file.
pub(crate) enum JsonFileItem {
    /// A value under one of the paths.
    Element(JsonElement),
    /// Its end.
    End,
}

impl JsonFiles {
    /// The values under these paths in these files of an export.
    pub(crate) fn new(tree: ExportTree, names: Vec<String>, paths: &'static [&'static str]) -> Self {
        let total_bytes = names.iter().map(|name| tree.bytes_of(name)).sum();
        Self { tree, names, paths, expects_list: |_| false, file: 0, elements: None, done_bytes: 0, total_bytes }
    }

    /// The same files. [`JsonElements::expect_list`] applies to those whose names `expects_list` accepts.
    pub(crate) fn expect_lists(self, expects_list: fn(&str) -> bool) -> Self {
        Self { expects_list, ..self }
    }

    /// The next step, with the number of its file; `None` after the last file.
    ///
    /// # Errors
    /// [`SourceError`] when a file cannot be read.
    pub(crate) fn step(&mut self) -> Result<Option<(usize, JsonFileItem)>, SourceError> {
        let Some(name) = self.names.get(self.file) else { return Ok(None) };
        let elements = match &mut self.elements {
            Some(elements) => elements,
            None => {
                let scan = JsonElements::new(self.tree.read(name)?, self.paths).expect_list((self.expects_list)(name));
                self.elements.insert(scan)
            }
        };
        let file = self.file;
        match elements.next() {
            Ok(Some(element)) => Ok(Some((file, JsonFileItem::Element(element)))),
            Ok(None) => {
                self.done_bytes += elements.read_bytes();
                self.elements = None;
                self.file += 1;
                Ok(Some((file, JsonFileItem::End)))
            }
            Err(e) => Err(self.tree.unreadable(name, elements.line(), e)),
        }
    }

    /// The next value of any file, with the number of that file; `None` after the last one.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub(crate) fn next(&mut self) -> Result<Option<(usize, JsonElement)>, SourceError> {
        loop {
            match self.step()? {
                Some((file, JsonFileItem::Element(element))) => return Ok(Some((file, element))),
                Some((_, JsonFileItem::End)) => {}
                None => return Ok(None),
            }
        }
    }

    /// The export.
    pub(crate) fn tree(&self) -> &ExportTree {
        &self.tree
    }

    /// The name of a file in the export; empty if there is none with this number.
    pub(crate) fn name(&self, file: usize) -> &str {
        self.names.get(file).map_or("", String::as_str)
    }

    /// The name of a file in messages to the user.
    pub(crate) fn origin(&self, file: usize) -> String {
        self.tree.origin(self.name(file))
    }

    /// How many bytes were read, and how many there are.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.done_bytes + self.elements.as_ref().map_or(0, JsonElements::read_bytes), self.total_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps: a value as `FILE:LINE VALUE`, a file's end as `FILE end`.
    fn steps(files: &mut JsonFiles) -> Vec<String> {
        let mut steps = Vec::new();
        while let Some((file, step)) = files.step().unwrap() {
            steps.push(match step {
                JsonFileItem::Element(JsonElement { line, bytes, problem, .. }) => {
                    format!("{file}:{line} {}{}", String::from_utf8(bytes).unwrap(), problem.unwrap_or_default())
                }
                JsonFileItem::End => format!("{file} end"),
            });
        }
        steps
    }

    fn open(texts: &[(&str, &str)]) -> (tempfile::TempDir, JsonFiles) {
        let folder = tempfile::TempDir::new().unwrap();
        for (name, text) in texts {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let tree = ExportTree::open(folder.path()).unwrap();
        let names = texts.iter().map(|(name, _)| (*name).to_owned()).collect();
        (folder, JsonFiles::new(tree, names, &["*"]))
    }

    #[test]
    fn files_are_read_in_their_order_and_every_byte_is_counted_once() {
        let (folder, mut files) = open(&[("b.json", "[1,\n2]"), ("a.json", "[]"), ("c.json", "[3]\n")]);
        assert_eq!(files.bytes(), (0, 12));
        assert_eq!(files.next().unwrap().map(|(file, element)| (file, element.line)), Some((0, 1)));
        assert_eq!(files.bytes(), (2, 12));
        assert_eq!(steps(&mut files), ["0:2 2", "0 end", "1 end", "2:1 3", "2 end"]);
        assert_eq!(files.bytes(), (12, 12));
        assert_eq!((files.name(1), files.name(3)), ("a.json", ""));
        assert_eq!(files.origin(2), format!("{}/c.json", folder.path().display()));
    }

    #[test]
    fn the_next_value_may_be_in_a_later_file() {
        let (_folder, mut files) = open(&[("a.json", "[]"), ("b.json", "[7]")]);
        assert_eq!(files.next().unwrap().map(|(file, element)| (file, element.bytes)), Some((1, b"7".to_vec())));
        assert_eq!(files.next().unwrap(), None);
        assert_eq!(files.next().unwrap(), None);
    }

    #[test]
    fn a_list_is_missed_only_where_it_is_expected() {
        let (_folder, files) = open(&[("a.json", "{}"), ("b.json", "{}")]);
        let steps = steps(&mut files.expect_lists(|name| name == "b.json"));
        assert_eq!(steps, ["0 end", "1:1 holds no list of messages; export it again", "1 end"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_with_its_name() {
        let (folder, mut files) = open(&[("a.json", "[1]")]);
        std::fs::remove_file(folder.path().join("a.json")).unwrap();
        assert!(files.step().err().unwrap().to_string().contains("a.json"));
    }
}
