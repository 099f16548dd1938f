//! Finds which account speaks under a nick, as far as the log shows it.
//!
//! In: nicks that speak, change and leave, in the order of the log. Out: accounts, each with the nick under which it
//! first spoke. A person who changes nick stays the same account until the file ends or the nick leaves. A person who
//! changes to a nick that has spoken before becomes that account, because people return to their names. For a nick that
//! never spoke, nothing is kept. Never merges two accounts afterwards, and never guesses who is a bot. Memory grows
//! with the nicks, not with the lines.

use std::collections::HashMap;

use crate::chat::Account;

/// The nicks of a channel so far; case is ignored.
#[derive(Debug, Default)]
pub(super) struct IrcNicks {
    /// The accounts that spoke, with their first nicks as written.
    spoken: HashMap<String, String>,
    /// The accounts behind nicks that somebody has changed to.
    changed: HashMap<String, String>,
}

impl IrcNicks {
    /// The account of a nick that speaks.
    pub(super) fn speaks(&mut self, nick: &str) -> Account {
        let folded = nick.to_lowercase();
        let id = self.changed.get(&folded).cloned().unwrap_or(folded);
        let name = self.spoken.entry(id.clone()).or_insert_with(|| nick.to_owned()).clone();
        Account { id, name, handle: None, bot: false }
    }

    /// The account of a nick that has spoken before. Its name is `nick` as it is written here, not as it was first
    /// written.
    pub(super) fn named(&self, nick: &str) -> Option<Account> {
        let folded = nick.to_lowercase();
        let id = self.changed.get(&folded).cloned().unwrap_or(folded);
        self.spoken.contains_key(&id).then(|| Account { id, name: nick.to_owned(), handle: None, bot: false })
    }

    /// Somebody changes nick.
    pub(super) fn changes(&mut self, from: &str, to: &str) {
        let (from, to) = (from.to_lowercase(), to.to_lowercase());
        let account = self.changed.remove(&from).unwrap_or(from);
        if account != to && self.spoken.contains_key(&account) && !self.spoken.contains_key(&to) {
            self.changed.insert(to, account);
        }
    }

    /// Somebody leaves. A later user of the nick may be somebody else.
    pub(super) fn leaves(&mut self, nick: &str) {
        self.changed.remove(&nick.to_lowercase());
    }

    /// Another file begins. Nicks may have changed unseen before it.
    pub(super) fn next_file(&mut self) {
        self.changed.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each step is a nick that speaks with its expected account, or a change `a>b`, or a leave `-a`.
    fn check(steps: &[(&str, &str)]) {
        let mut nicks = IrcNicks::default();
        for (step, expected) in steps {
            if let Some((from, to)) = step.split_once('>') {
                nicks.changes(from, to);
            } else if let Some(nick) = step.strip_prefix('-') {
                nicks.leaves(nick);
            } else {
                let account = nicks.speaks(step);
                assert_eq!((account.id, account.name.as_str()), (expected.to_lowercase(), *expected), "{steps:?}");
            }
        }
    }

    #[test]
    fn a_changed_nick_keeps_its_account() {
        check(&[
            ("Ziggi", "Ziggi"),
            ("ziggi>ziggi_away", ""),
            ("Ziggi_away", "Ziggi"),
            ("ziggi_away>zed", ""),
            ("zed", "Ziggi"),
        ]);
        check(&[("zed", "zed"), ("zed>guest", ""), ("-guest", ""), ("guest", "guest"), ("zed", "zed")]);
        check(&[("zed", "zed"), ("zed>guest", ""), ("guest>zed", ""), ("zed", "zed"), ("guest", "guest")]);
    }

    #[test]
    fn a_nick_that_spoke_before_stays_itself() {
        check(&[("kit", "kit"), ("kit_", "kit_"), ("kit_>kit", ""), ("kit", "kit")]);
        check(&[("guest7>kit", ""), ("kit", "kit")]);
    }

    #[test]
    fn only_nicks_that_spoke_are_named() {
        let mut nicks = IrcNicks::default();
        nicks.speaks("Zed");
        nicks.changes("zed", "zed|away");
        assert_eq!(nicks.named("zed|away").map(|a| (a.id, a.name)), Some(("zed".to_owned(), "zed|away".to_owned())));
        assert_eq!(nicks.named("note"), None);
        nicks.next_file();
        assert_eq!(nicks.named("zed|away"), None);
    }
}
