//! Which project a directory belongs to.
//!
//! In: the directory in which a session began, or a name. Out: the project's name, which `{project}` stands for, the
//! same for every program and on every reading. A directory's project is the repository of git around it; linked
//! worktrees of a repository are one project. Where the directory no longer exists, it is a project itself. The name is
//! that of the directory and six digits of its path's hash, so that equal names in two places are two projects. Reads
//! the small files by which git names a worktree, and nothing else.

use std::{
    collections::HashMap,
    fs,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::file_names::file_name;
use crate::chat::{Conversation, ConversationPrivacy};

/// How long a file may be by which git names a worktree.
const MAX_GIT_FILE_BYTES: u64 = 8 << 10;
/// How many digits of the hash of a path are in a name.
const DIGITS: usize = 6;

/// The projects so far.
#[derive(Default)]
pub(super) struct Projects {
    by_place: HashMap<String, Arc<Conversation>>,
}

impl Projects {
    /// The project of a directory or of a name, the same for every program; without one, the program is the project.
    pub(super) fn project(&mut self, agent: &str, place: Option<&str>) -> Arc<Conversation> {
        let place = place.filter(|place| !place.is_empty()).unwrap_or(agent);
        if let Some(known) = self.by_place.get(place) {
            return Arc::clone(known);
        }
        let (id, name) = if is_absolute(place) {
            let root = root(place);
            let name = name(&root);
            (root, name)
        } else {
            (place.to_owned(), place.to_owned())
        };
        let project = Conversation { workspace: Some(id.clone()), id, name, privacy: ConversationPrivacy::Open };
        let project = Arc::new(project);
        self.by_place.insert(place.to_owned(), Arc::clone(&project));
        project
    }
}

/// The name of a project's directory, without the digits that distinguish it.
pub(super) fn directory_name(project: &Conversation) -> Option<&str> {
    if !is_absolute(&project.id) {
        return None;
    }
    project.name.rsplit_once('-').map(|(name, _)| name)
}

/// Whether a text is a whole path, of this system or of another.
pub(super) fn is_absolute(text: &str) -> bool {
    let mut letters = text.chars();
    let has_drive = letters.next().is_some_and(|c| c.is_ascii_alphabetic()) && letters.next() == Some(':');
    text.starts_with(['/', '\\']) || has_drive
}

/// A project's name: that of its directory, and a hash of the whole path.
fn name(root: &str) -> String {
    let hash = blake3::hash(root.as_bytes()).to_hex();
    let digits: String = hash.chars().take(DIGITS).collect();
    match file_name(root.trim_end_matches(['/', '\\'])) {
        "" => format!("root-{digits}"),
        name => format!("{name}-{digits}"),
    }
}

/// The main directory of the repository around a directory; the directory itself if there is none.
fn root(directory: &str) -> String {
    let trimmed = directory.trim_end_matches(['/', '\\']);
    let itself = if trimmed.is_empty() { directory } else { trimmed };
    let path = Path::new(itself);
    // A path of another machine is not looked up, and neither is one of the network.
    if !path.is_absolute() || itself.starts_with("\\\\") || itself.starts_with("//") {
        return itself.to_owned();
    }
    let found = path.ancestors().find_map(|above| {
        let git = above.join(".git");
        let kind = fs::symlink_metadata(&git).ok()?;
        if kind.is_dir() { Some(above.to_owned()) } else { Some(main_of(above, &git)) }
    });
    found.map_or_else(|| itself.to_owned(), |root| root.to_string_lossy().into_owned())
}

/// The main directory of a worktree whose `.git` is a file; the worktree itself if that file does not lead to one, as
/// that of a submodule does not.
fn main_of(worktree: &Path, git: &Path) -> PathBuf {
    let main = || {
        let named = small_file(git)?;
        let private = worktree.join(named.strip_prefix("gitdir:")?.trim());
        let shared = plain(&private.join(small_file(&private.join("commondir"))?.trim()));
        let is_git = shared.file_name().is_some_and(|name| name == ".git");
        if is_git { shared.parent().map(Path::to_owned) } else { Some(shared) }
    };
    main().unwrap_or_else(|| worktree.to_owned())
}

fn small_file(path: &Path) -> Option<String> {
    let kind = fs::metadata(path).ok()?;
    if kind.is_file() && kind.len() <= MAX_GIT_FILE_BYTES { fs::read_to_string(path).ok() } else { None }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worktrees_and_subfolders_are_of_one_project() {
        let home = tempfile::TempDir::new().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::create_dir_all(at("kite/.git/worktrees/tail")).unwrap();
        fs::create_dir_all(at("kite/frame/spars")).unwrap();
        fs::create_dir_all(at("tail/knots")).unwrap();
        fs::create_dir_all(at("other/kite")).unwrap();
        fs::write(at("kite/.git/worktrees/tail/commondir"), "../..\n").unwrap();
        let named = format!("gitdir: {}\n", at("kite/.git/worktrees/tail").display());
        fs::write(at("tail/.git"), named).unwrap();
        // A submodule has a file, too, but no shared directory.
        fs::create_dir_all(at("kite/reel")).unwrap();
        fs::create_dir_all(at("kite/.git/modules/reel")).unwrap();
        fs::write(at("kite/reel/.git"), "gitdir: ../.git/modules/reel\n").unwrap();
        let root_of = |name: &str| root(&at(name).display().to_string());
        let kite = at("kite").display().to_string();
        for name in ["kite", "kite/", "kite/frame/spars", "tail", "tail/knots"] {
            assert_eq!(root_of(name), kite, "{name}");
        }
        assert_eq!(root_of("kite/reel"), at("kite/reel").display().to_string());
        let gone = at("gone/kite").display().to_string();
        assert_eq!(root(&gone), gone);
        let names = [kite, gone, at("other/kite").display().to_string()].map(|root| name(&root));
        assert!(names.iter().all(|name| name.starts_with("kite-") && name.len() == 11), "{names:?}");
        assert!(names[0] != names[1] && names[1] != names[2], "{names:?}");
    }

    #[test]
    fn paths_of_other_systems_have_names_too() {
        assert!(is_absolute(r"C:\Users\mirela\kite") && is_absolute("/x") && !is_absolute("Aster"));
        assert!(name(&root(r"C:\Users\mirela\kite\")).starts_with("kite-"));
        assert!(name(&root("/")).starts_with("root-"));
    }
}
