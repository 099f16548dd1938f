//! Where ONNX Runtime and the models are.
//!
//! In: the pipeline's settings, the environment, the executable's path. Out: a path that exists,
//! or an error that lists every path that was tried. Writes nothing, downloads nothing.
//!
//! Order: the pipeline file; `ORT_DYLIB_PATH` (library only); `RIPPLEMEM_HOME`; `../share/ripplemem` and
//! `../lib/ripplemem` beside the executable's directory, where a wheel, a Debian package and an unpacked archive keep
//! them; `$XDG_DATA_HOME/ripplemem`, or `~/.local/share/ripplemem`; `ripplemem` in each of `XDG_DATA_DIRS`, or in
//! `/usr/local/share` and `/usr/share`. If a setting or variable names a place, only that place is tried.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::EmbedError;
use types::config::EmbedSettings;

/// ONNX Runtime's shared library below a home.
pub(super) const LIBRARY: &str = "lib/libonnxruntime.so";
/// The directory of the models below a home.
pub(super) const MODELS: &str = "models";
/// The name of RippleMem's directory beside those of other programs.
const NAME: &str = "ripplemem";
/// The tokenizer in a model's directory.
pub(crate) const TOKENIZER_FILE: &str = "tokenizer.json";

/// ONNX Runtime's shared library.
///
/// # Errors
/// [`EmbedError::Missing`] with every path that was tried.
pub fn library(settings: &EmbedSettings) -> Result<PathBuf, EmbedError> {
    AssetEnvironment::of_process().library(settings)
}

/// The directory of the model `name`, which holds its files.
///
/// # Errors
/// [`EmbedError::Missing`] with every path that was tried.
pub fn model_directory(settings: &EmbedSettings, name: &str) -> Result<PathBuf, EmbedError> {
    AssetEnvironment::of_process().model_directory(settings, &[name])
}

/// The directory of the first of `names` that has one, for models with several names.
pub(super) fn first_model_directory(settings: &EmbedSettings, names: &[&str]) -> Result<PathBuf, EmbedError> {
    AssetEnvironment::of_process().model_directory(settings, names)
}

/// RippleMem's data directories, in the order in which they are tried.
#[must_use]
pub fn homes() -> Vec<PathBuf> {
    AssetEnvironment::of_process().homes()
}

/// The directory that files are installed to: `RIPPLEMEM_HOME`, or else the user's directory. `None` if the environment
/// names neither.
#[must_use]
pub fn install_directory() -> Option<PathBuf> {
    let environment = AssetEnvironment::of_process();
    environment.home.clone().or_else(|| environment.of_user())
}

/// The user's own directory for RippleMem's data. `None` if the environment names no home directory.
#[must_use]
pub fn of_user() -> Option<PathBuf> {
    AssetEnvironment::of_process().of_user()
}

/// The process's environment, as a value that tests can set.
#[derive(Default)]
struct AssetEnvironment {
    library: Option<PathBuf>,
    home: Option<PathBuf>,
    executable: Option<PathBuf>,
    data: Option<PathBuf>,
    user: Option<PathBuf>,
    shared: Vec<PathBuf>,
}

/// Where data shared by all users is, if `XDG_DATA_DIRS` is not set.
const SHARED: &str = "/usr/local/share:/usr/share";

impl AssetEnvironment {
    fn of_process() -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        Self {
            library: variable("ORT_DYLIB_PATH"),
            home: variable("RIPPLEMEM_HOME"),
            executable: std::env::current_exe().ok().map(|exe| exe.canonicalize().unwrap_or(exe)),
            // The XDG rule: a relative path counts as unset.
            data: variable("XDG_DATA_HOME").filter(|p| p.is_absolute()),
            user: variable("HOME"),
            shared: std::env::split_paths(&variable("XDG_DATA_DIRS").unwrap_or_else(|| SHARED.into()))
                .filter(|p| p.is_absolute())
                .collect(),
        }
    }

    fn homes(&self) -> Vec<PathBuf> {
        if let Some(home) = &self.home {
            return vec![home.clone()];
        }
        let prefix = self.executable.as_deref().and_then(Path::parent).and_then(Path::parent);
        let beside = prefix.into_iter().flat_map(|prefix| ["share", "lib"].map(|part| prefix.join(part).join(NAME)));
        let shared = self.shared.iter().map(|base| base.join(NAME));
        let mut homes = Vec::new();
        for home in beside.chain(self.of_user()).chain(shared) {
            if !homes.contains(&home) {
                homes.push(home);
            }
        }
        homes
    }

    fn of_user(&self) -> Option<PathBuf> {
        let data = self.data.clone().or_else(|| self.user.as_ref().map(|home| home.join(".local/share")));
        data.map(|base| base.join(NAME))
    }

    fn library(&self, settings: &EmbedSettings) -> Result<PathBuf, EmbedError> {
        let named = settings.onnxruntime.as_ref().or(self.library.as_ref());
        let searched = match named {
            Some(path) => vec![path.clone()],
            None => self.homes().iter().map(|home| home.join(LIBRARY)).collect(),
        };
        first(searched, "ONNX Runtime's shared library", Path::is_file)
    }

    fn model_directory(&self, settings: &EmbedSettings, names: &[&str]) -> Result<PathBuf, EmbedError> {
        let roots = match &settings.models_directory {
            Some(root) => vec![root.clone()],
            None => self.homes().iter().map(|home| home.join(MODELS)).collect(),
        };
        let mut searched: Vec<PathBuf> = Vec::new();
        for path in roots.iter().flat_map(|root| names.iter().map(|name| root.join(OsString::from(name)))) {
            if !searched.contains(&path) {
                searched.push(path);
            }
        }
        let what = format!("the directory of the model {:?}", names.first().copied().unwrap_or_default());
        first(searched, &what, Path::is_dir)
    }
}

fn first(searched: Vec<PathBuf>, what: &str, fits: fn(&Path) -> bool) -> Result<PathBuf, EmbedError> {
    match searched.iter().find(|path| fits(path)) {
        Some(path) => Ok(path.clone()),
        None => Err(EmbedError::Missing { what: what.to_owned(), searched }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embed::tests::settings;

    /// A tree with a library and a model under each of `homes`.
    fn tree(homes: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for home in homes {
            let home = directory.path().join(home);
            std::fs::create_dir_all(home.join("lib")).expect("made");
            std::fs::create_dir_all(home.join("models/m")).expect("made");
            std::fs::write(home.join(LIBRARY), b"").expect("written");
        }
        directory
    }

    #[test]
    fn the_first_place_in_order_wins() {
        let tree = tree(&[
            "home",
            "opt/share/ripplemem",
            "deb/lib/ripplemem",
            "xdg/ripplemem",
            "user/.local/share/ripplemem",
            "usr/ripplemem",
        ]);
        let at = |path: &str| Some(tree.path().join(path));
        let (settings, _) = settings("m");
        let mut places = AssetEnvironment {
            home: at("home"),
            executable: at("opt/bin/ripplemem"),
            data: at("xdg"),
            user: at("user"),
            shared: vec![tree.path().join("none"), tree.path().join("usr")],
            library: None,
        };
        let check = |places: &AssetEnvironment, expected: &str| {
            assert_eq!(places.library(&settings).ok(), at(&format!("{expected}/lib/libonnxruntime.so")));
            assert_eq!(places.model_directory(&settings, &["m"]).ok(), at(&format!("{expected}/models/m")));
        };
        check(&places, "home");
        places.home = None;
        check(&places, "opt/share/ripplemem");
        places.executable = at("deb/bin/ripplemem");
        check(&places, "deb/lib/ripplemem");
        places.executable = at("elsewhere/bin/ripplemem");
        check(&places, "xdg/ripplemem");
        places.data = None;
        check(&places, "user/.local/share/ripplemem");
        places.user = None;
        check(&places, "usr/ripplemem");
    }

    #[test]
    fn a_named_place_is_the_only_one_tried() {
        let tree = tree(&["home"]);
        let (mut settings, _) = settings("m");
        settings.onnxruntime = Some(tree.path().join("gone.so"));
        settings.models_directory = Some(tree.path().join("gone"));
        let places = AssetEnvironment { home: Some(tree.path().join("home")), ..AssetEnvironment::default() };
        let error = places.library(&settings).expect_err("the named library is not there").to_string();
        assert!(error.contains("gone.so. Run `ripplemem setup`") && !error.contains("home"), "{error}");
        assert!(places.model_directory(&settings, &["m"]).is_err());

        settings.onnxruntime = None;
        let explicit =
            AssetEnvironment { library: Some(tree.path().join("home").join(LIBRARY)), ..AssetEnvironment::default() };
        assert_eq!(explicit.library(&settings).ok(), explicit.library);
    }

    #[test]
    fn an_error_lists_every_path_tried() {
        let places = AssetEnvironment {
            executable: Some("/opt/x/bin/ripplemem".into()),
            user: Some("/home/u".into()),
            ..AssetEnvironment::default()
        };
        let (settings, _) = settings("m");
        let error = places.model_directory(&settings, &["a/m", "m"]).expect_err("nothing is there").to_string();
        let expected = "/opt/x/share/ripplemem/models/a/m, /opt/x/share/ripplemem/models/m, \
                        /opt/x/lib/ripplemem/models/a/m, /opt/x/lib/ripplemem/models/m, \
                        /home/u/.local/share/ripplemem/models/a/m, /home/u/.local/share/ripplemem/models/m";
        assert!(error.contains(expected) && error.contains("ripplemem setup"), "{error}");
    }
}
