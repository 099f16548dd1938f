//! One name for each account in a bank.
//!
//! In: accounts as their messages come, and an aliases file. Out: the speaker name of each account. Names depend on the
//! export's order: an account keeps the name under which it first speaks in a bank, even if it is renamed later. The
//! first account with a name gets that name unchanged, and another account with the same name becomes `Name (handle)`,
//! or `Name (id)` if it has no handle. Readers of platforms with a list of users take names from that list, so renames
//! never show there. Memory grows with the accounts, never with the messages.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use super::{chat_item::Account, name_limits::within_limits};
use crate::SourceError;
use types::model::{Bank, MAX_NAME_BYTES};

/// The names of all accounts so far.
pub(super) struct SpeakerNames {
    aliases: BTreeMap<String, String>,
    banks: HashMap<Bank, BankSpeakers>,
    /// Whether a name was given since the last [`SpeakerNames::take_changed`].
    changed: bool,
}

#[derive(Default)]
struct BankSpeakers {
    by_account: HashMap<String, String>,
    /// The owner of each name. An alias belongs to no single account, because several accounts may share it.
    owners: HashMap<String, NameOwner>,
}

#[derive(PartialEq)]
enum NameOwner {
    Account(String),
    Alias,
}

impl SpeakerNames {
    /// Reads an aliases file: TOML lines of `"id, handle or name" = "Name"`. An id takes precedence over a handle, and
    /// a handle over a name. Accounts with the same alias become one speaker.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read, is not such a list, or holds a name that is not valid for a
    /// speaker.
    pub(super) fn open(aliases: Option<&Path>) -> Result<Self, SourceError> {
        let Some(path) = aliases else { return Ok(Self::with(BTreeMap::new())) };
        let invalid = |problem| SourceError::Settings { key: "aliases", problem };
        let text = std::fs::read_to_string(path)
            .map_err(|e| invalid(format!("{} cannot be read: {e}; check the path", path.display())))?;
        let aliases: BTreeMap<String, String> = toml::from_str(&text).map_err(|e| {
            let (place, message) = (path.display(), e.message());
            invalid(format!("{place}: {message}; write lines of \"id, handle or name\" = \"Name\""))
        })?;
        for (account, name) in &aliases {
            let usable = !name.trim().is_empty() && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control);
            if !usable {
                return Err(invalid(format!(
                    "{}: the name of {account:?} is empty, longer than {MAX_NAME_BYTES} bytes or holds a control \
                     character; write another",
                    path.display()
                )));
            }
        }
        Ok(Self::with(aliases))
    }

    fn with(aliases: BTreeMap<String, String>) -> Self {
        Self { aliases, banks: HashMap::new(), changed: false }
    }

    /// Gives accounts the names that they had in an earlier run, by bank. An alias takes precedence.
    pub(super) fn restore(&mut self, people: BTreeMap<String, BTreeMap<String, String>>) {
        for (bank, accounts) in people {
            let Ok(bank) = Bank::parse(&bank) else { continue };
            let names = self.banks.entry(bank).or_default();
            for (account, name) in accounts {
                let is_alias = self.aliases.values().any(|alias| *alias == name) || self.aliases.contains_key(&account);
                if !is_alias {
                    names.owners.insert(name.clone(), NameOwner::Account(account.clone()));
                    names.by_account.insert(account, name);
                }
            }
        }
    }

    /// The names of all accounts by bank.
    pub(super) fn names(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let of = |names: &BankSpeakers| names.by_account.iter().map(|(id, name)| (id.clone(), name.clone())).collect();
        self.banks.iter().map(|(bank, names)| (bank.to_string(), of(names))).collect()
    }

    /// Whether a name was given since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The name of an account in a bank, the same each time.
    pub(super) fn name(&mut self, bank: &Bank, account: &Account) -> &str {
        if !self.banks.contains_key(bank) {
            self.banks.insert(bank.clone(), BankSpeakers::default());
        }
        let names = self.banks.entry(bank.clone()).or_default();
        if !names.by_account.contains_key(&account.id) {
            let name = match alias(&self.aliases, account) {
                Some(alias) => {
                    names.owners.insert(alias.to_owned(), NameOwner::Alias);
                    alias.to_owned()
                }
                None => names.free(account, &self.aliases),
            };
            names.by_account.insert(account.id.clone(), name);
            self.changed = true;
        }
        names.by_account.get(&account.id).map_or("", String::as_str)
    }
}

impl BankSpeakers {
    /// A name that no other account has: the account's own name, or that name with its handle or id.
    fn free(&mut self, account: &Account, aliases: &BTreeMap<String, String>) -> String {
        let own = printable(&account.name);
        let handle = account.handle.as_deref().map(printable).filter(|h| !h.is_empty());
        let base = [own, handle.clone().unwrap_or_default(), printable(&account.id)]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or_else(|| "unknown".to_owned());
        let with = |detail: &str| within_limits(&format!("{base} ({detail})"));
        let candidates = [
            Some(within_limits(&base)),
            handle.filter(|handle| *handle != base).map(|handle| with(&handle)),
            Some(with(&printable(&account.id))),
        ];
        let numbered = (2u64..).map(|number| with(&format!("{} {number}", printable(&account.id))));
        let is_free = |name: &String| !self.owners.contains_key(name) && !aliases.values().any(|alias| alias == name);
        let name = candidates.into_iter().flatten().chain(numbered).find(is_free).unwrap_or(base);
        self.owners.insert(name.clone(), NameOwner::Account(account.id.clone()));
        name
    }
}

fn alias<'a>(aliases: &'a BTreeMap<String, String>, account: &Account) -> Option<&'a str> {
    let handle = account.handle.as_deref().unwrap_or_default();
    let with_at = format!("@{handle}");
    let keys = [account.id.as_str(), handle, with_at.as_str(), account.name.as_str()];
    keys.into_iter().filter(|key| !key.is_empty()).find_map(|key| aliases.get(key)).map(String::as_str)
}

/// A name on one line, without control characters.
fn printable(name: &str) -> String {
    let spaced: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(id: &str, handle: &str, name: &str) -> Account {
        let handle = (!handle.is_empty()).then(|| handle.to_owned());
        Account { id: id.to_owned(), name: name.to_owned(), handle, bot: false }
    }

    /// Checks the names that accounts get, one after another.
    fn check(aliases: &str, accounts: &[(&str, &str, &str)], expected: &[&str]) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), aliases).unwrap();
        let mut people = SpeakerNames::open(Some(file.path())).unwrap();
        let bank = Bank::parse("b").unwrap();
        let names: Vec<String> = accounts
            .iter()
            .map(|(id, handle, name)| people.name(&bank, &account(id, handle, name)).to_owned())
            .collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn accounts_of_one_name_are_told_apart() {
        let accounts = [
            ("U1", "ann", "Ann"),
            ("U2", "ann.b", "Ann"),
            ("U3", "", "Ann"),
            ("U1", "ann", "Ann Renamed"),
            ("U4", "ann", "Ann"),
            ("U5", "", ""),
            ("U6", "bo", "\u{1}\t"),
        ];
        check("", &accounts, &["Ann", "Ann (ann.b)", "Ann (U3)", "Ann", "Ann (ann)", "U5", "bo"]);
    }

    #[test]
    fn an_alias_is_found_by_id_handle_or_name_and_joins_accounts() {
        let accounts =
            [("U1", "ann", "x"), ("U2", "second", "y"), ("U3", "", "Bobby"), ("U4", "", "Ann"), ("U1", "", "z")];
        let aliases = "U1 = \"Ann\"\n\"@second\" = \"Ann\"\nBobby = \"Bo\"\n";
        check(aliases, &accounts, &["Ann", "Ann", "Bo", "Ann (U4)", "Ann"]);
    }

    #[test]
    fn names_of_one_bank_say_nothing_in_another() {
        let mut people = SpeakerNames::open(None).unwrap();
        let [a, b] = ["a", "b"].map(|bank| Bank::parse(bank).unwrap());
        assert_eq!(people.name(&a, &account("U1", "", "Ann")), "Ann");
        assert_eq!(people.name(&b, &account("U2", "", "Ann")), "Ann");
    }

    #[test]
    fn an_aliases_file_that_is_wrong_says_what_to_write() {
        for (text, word) in [("Ann", "write lines of"), ("U1 = \"\"", "is empty"), ("U1 = 3", "write lines of")] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            let error = SpeakerNames::open(Some(file.path())).err().unwrap().to_string();
            assert!(error.starts_with("source.aliases: ") && error.contains(word), "{error}");
        }
        let error = SpeakerNames::open(Some(Path::new("none.toml"))).err().unwrap().to_string();
        assert!(error.contains("none.toml cannot be read"), "{error}");
    }
}
