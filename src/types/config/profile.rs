//! Profiles: the sets of defaults that a pipeline file starts from.
//!
//! In: the table of a file. Out: the table laid over its profile's. The constants of the paper are in the `.toml` files
//! here and nowhere else.

use toml::{Table, Value};

const DEFAULTS: &str = include_str!("default.toml");
const PAPER: &str = include_str!("paper.toml");
/// What each profile lays over the defaults, in order.
const PROFILES: [(&str, &[&str]); 4] = [
    ("default", &[]),
    ("paper", &[PAPER]),
    ("paper-longmemeval", &[PAPER, include_str!("paper-longmemeval.toml")]),
    ("paper-evermembench", &[PAPER, include_str!("paper-evermembench.toml")]),
];

/// The names of the profiles; the first one applies to a file that names none.
pub(super) fn names() -> [&'static str; 4] {
    PROFILES.map(|(name, _)| name)
}

/// Lays a file over the profile that it names.
///
/// # Errors
/// A profile that is not known.
pub(super) fn over_profile(file: Table) -> Result<Table, String> {
    let name = match file.get("profile") {
        None => names()[0],
        Some(Value::String(name)) => name.as_str(),
        Some(other) => return Err(format!("profile: {other} is not a string; write {}", choices())),
    };
    let mut table = settings(name)?;
    overlay(&mut table, file);
    Ok(table)
}

/// Every setting of a profile.
///
/// # Errors
/// A profile that is not known.
pub(super) fn settings(profile: &str) -> Result<Table, String> {
    let Some((_, changes)) = PROFILES.iter().find(|(name, _)| *name == profile) else {
        return Err(format!("profile: {profile:?} is not known; write {}", choices()));
    };
    let mut table = read(DEFAULTS)?;
    for text in *changes {
        overlay(&mut table, read(text)?);
    }
    Ok(table)
}

fn choices() -> String {
    names().map(|name| format!("{name:?}")).join(" or ")
}

fn read(text: &str) -> Result<Table, String> {
    text.parse().map_err(|e: toml::de::Error| format!("built-in profile: {e}"))
}

/// Lays `over` on `base`, table by table; a value that is not a table replaces the old one.
fn overlay(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => overlay(below, above),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}
