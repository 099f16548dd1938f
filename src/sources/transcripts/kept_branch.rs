//! Which messages of a tree the person kept.
//!
//! In: each message's id with the one that it follows, and the last message of the kept branch. Out: whether a message
//! was given up: it leaves the kept branch above its last message. What follows the last message is kept, and so is
//! what hangs together with no message of the kept branch, since a chain may be broken for other reasons. Cycles and
//! missing parents end a chain.

use std::collections::{HashMap, HashSet};

/// The messages of a file by id.
#[derive(Default)]
pub(super) struct MessageTree {
    parents: HashMap<String, Option<String>>,
}

impl MessageTree {
    /// Adds a message.
    pub(super) fn add(&mut self, id: &str, parent: Option<&str>) {
        self.parents.insert(id.to_owned(), parent.filter(|parent| *parent != id).map(str::to_owned));
    }

    /// Whether a message is in the tree.
    pub(super) fn has(&self, id: &str) -> bool {
        self.parents.contains_key(id)
    }

    /// The messages that were given up, if `leaf` is the last one that was kept.
    pub(super) fn given_up(&self, leaf: &str) -> HashSet<&str> {
        let kept: HashSet<&str> = self.above(leaf).collect();
        let mut is_given_up: HashMap<&str, bool> = HashMap::new();
        for id in self.parents.keys() {
            let mut walked = Vec::new();
            let mut at = id.as_str();
            let verdict = loop {
                if let Some(known) = is_given_up.get(at) {
                    break *known;
                }
                if at == leaf || walked.len() > self.parents.len() {
                    break false;
                }
                if kept.contains(at) {
                    // The chain leaves the kept branch here: only what was walked before is given up.
                    break true;
                }
                walked.push(at);
                match self.parents.get(at).and_then(Option::as_deref) {
                    Some(parent) if self.has(parent) => at = parent,
                    _ => break false,
                }
            };
            is_given_up.extend(walked.into_iter().map(|id| (id, verdict)));
        }
        is_given_up.into_iter().filter_map(|(id, given_up)| given_up.then_some(id)).collect()
    }

    /// A message and those before it.
    fn above<'a>(&'a self, leaf: &'a str) -> impl Iterator<Item = &'a str> {
        let mut seen = HashSet::new();
        let parent = |id: &&'a str| self.parents.get(*id).and_then(Option::as_deref);
        std::iter::successors(Some(leaf), parent).take_while(move |id| seen.insert(*id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_the_kept_branch_is_given_up() {
        let mut tree = MessageTree::default();
        for (id, parent) in [
            ("a", None),
            ("b", Some("a")),
            ("x", Some("b")),
            ("y", Some("x")),
            ("c", Some("b")),
            ("d", Some("c")),
            ("lone", Some("gone")),
            ("one", Some("two")),
            ("two", Some("one")),
        ] {
            tree.add(id, parent);
        }
        let given_up = |leaf: &str| {
            let mut found: Vec<&str> = tree.given_up(leaf).into_iter().collect();
            found.sort_unstable();
            found
        };
        assert_eq!(given_up("d"), ["x", "y"]);
        assert_eq!(given_up("c"), ["x", "y"], "what follows the last message is kept");
        assert_eq!(given_up("y"), ["c", "d"]);
        assert_eq!(given_up("none"), [""; 0]);
        assert_eq!(given_up("one"), [""; 0]);
    }
}
