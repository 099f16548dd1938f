//! `[[retention]]`: which turns are deleted once they are old or many; `[[hold]]`: the banks in which nothing is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Bank, Selector};

/// The banks of a rule, written `*`: every bank.
const EVERY_BANK: &str = "*";

/// A rule by which a service deletes turns. A turn must fit each key that is set. Each rule is applied by itself, so of
/// several that fit a turn, the one that keeps it for the shortest time decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionSettings {
    /// The banks: this one and those below it (`acme`: also `acme/support`, not `acme2`), or `*` for every bank.
    pub bank: String,
    /// Only what these speakers said, by their whole names, without regard to capitals and spaces. Empty: all speakers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speakers: Vec<String>,
    /// Only turns of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only turns of this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Only turns that this selector takes, such as `{ metadata = { path = ["ttl"], eq = "short" } }`. It has all keys of
    /// the selection, in place of the three above.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub select: Option<Selector>,
    /// What of them stays: `{ days = 90 }`, or `{ turns = 10_000 }`.
    pub keep: RetentionLimitSettings,
    /// Which time counts.
    #[serde(default)]
    pub by: RetentionTimeBasis,
}

/// What a rule keeps: one of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "KeepSettings")]
pub struct RetentionLimitSettings {
    /// Turns that are not this old yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 36_500))]
    pub days: Option<u32>,
    /// The latest of the turns that the rule takes, in each bank by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub turns: Option<u64>,
}

/// Which time of a turn counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "KeptBy")]
pub enum RetentionTimeBasis {
    /// When the log took it, as last edited.
    #[default]
    Stored,
    /// When it was said.
    Said,
}

/// Banks in which no rule deletes anything, and no request may; or some turns of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HoldSettings")]
pub struct LegalHoldSettings {
    /// The banks: this one and those below it, or `*` for every bank.
    pub bank: String,
    /// Only the turns that this selector takes, such as `{ metadata = { path = ["case"], eq = 7 } }`. Dead letters, and
    /// what edits replaced, stay in the whole bank.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub select: Option<Selector>,
    /// Why, for those who are refused; such as the number of a case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RetentionSettings {
    /// Whether it applies to a bank.
    #[must_use]
    pub fn covers(&self, bank: &Bank) -> bool {
        covers(&self.bank, bank)
    }

    /// Which turns of a bank it takes.
    #[must_use]
    pub fn selector(&self) -> Selector {
        let Self { speakers, session, thread, select, .. } = self;
        if let Some(select) = select {
            return select.clone();
        }
        let (speakers, session, thread) = (speakers.clone(), session.clone(), thread.clone());
        let select = Selector { speakers, session, thread, ..Selector::default() };
        if select.is_empty() { Selector { all: true, ..select } } else { select }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        check_bank("retention.bank", &self.bank)?;
        if self.select.is_some() && (!self.speakers.is_empty() || self.session.is_some() || self.thread.is_some()) {
            return Err("retention.where: speakers, session or thread stand beside it; write them into it".to_owned());
        }
        self.selector().check().map_err(|problem| format!("retention: {problem}"))?;
        match self.keep {
            RetentionLimitSettings { days: Some(_), turns: None }
            | RetentionLimitSettings { days: None, turns: Some(_) } => {}
            RetentionLimitSettings { days: None, turns: None } => {
                return Err("retention.keep: empty; write { days = 90 } or { turns = 10_000 }".to_owned());
            }
            RetentionLimitSettings { days: Some(_), turns: Some(_) } => {
                return Err(
                    "retention.keep: both days and turns are set; write a table [[retention]] for each of them"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }
}

impl LegalHoldSettings {
    /// Whether it applies to a bank.
    #[must_use]
    pub fn covers(&self, bank: &Bank) -> bool {
        covers(&self.bank, bank)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        check_bank("hold.bank", &self.bank)?;
        self.select.as_ref().map_or(Ok(()), Selector::check).map_err(|problem| format!("hold.where: {problem}"))
    }
}

fn covers(banks: &str, bank: &Bank) -> bool {
    banks == EVERY_BANK || bank.is_within(banks)
}

fn check_bank(key: &str, banks: &str) -> Result<(), String> {
    match Bank::parse(banks) {
        Err(problem) if banks != EVERY_BANK => Err(format!("{key}: {problem}; or write * for every bank")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::{config::Pipeline, model::Bank};

    fn parse(tables: &str) -> Result<Pipeline, String> {
        Pipeline::parse(&format!("version = 1\n{tables}"))
    }

    #[test]
    fn a_rule_and_a_hold_reach_whole_segments() {
        let rule = "[[retention]]\nbank = \"acme\"\nkeep = { days = 90 }\n";
        let hold = "[[hold]]\nbank = \"acme/legal\"\nreason = \"case 7\"\n";
        let pipeline = parse(&format!("{rule}{hold}")).unwrap();
        let bank = |name: &str| Bank::parse(name).unwrap();
        let covered = ["acme", "acme/support", "acme2", "b"].map(|name| pipeline.retention[0].covers(&bank(name)));
        assert_eq!(covered, [true, true, false, false]);
        let held = ["acme", "acme/legal", "acme/legal/a", "acme/legal2"];
        assert_eq!(held.map(|name| pipeline.forget.hold_of(&bank(name)).is_some()), [false, true, true, false]);
        let rule = "[[retention]]\nbank = \"b\"\nkeep = { days = 9 }\n";
        let metadata = "metadata = { path = [\"ttl\"], gte = 1.5 }";
        let chosen = parse(&format!("{rule}where = {{ kinds = [\"tool\"], {metadata} }}\n")).unwrap();
        let select = chosen.retention[0].selector();
        assert_eq!(
            serde_json::to_string(&select).unwrap(),
            r#"{"kinds":["tool"],"metadata":{"path":["ttl"],"gte":1.5}}"#
        );
        let some = "bank = \"c\"\nwhere = { metadata = { path = [\"case\"], eq = 7 } }\n";
        let narrow = parse(&format!("[[hold]]\n{some}[[hold]]\nbank = \"*\"\nwhere = {{ all = true }}\n")).unwrap();
        let [named, every] = [0, 1].map(|at| narrow.forget.holds[at].select.clone());
        assert_eq!((named.is_some_and(|named| named.metadata.is_some()), every.is_some_and(|it| it.all)), (true, true));
        let every = parse("[[hold]]\nbank = \"*\"\n").unwrap();
        assert!(every.forget.hold_of(&bank("any/bank")).is_some());
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_refused_by_name() {
        let rule = |keys: &str| parse(&format!("[[retention]]\n{keys}\n"));
        for (keys, named) in [
            ("bank = \"b\"\nkeep = { days = 0 }", "retention.keep.days: 0 is not within"),
            ("bank = \"b\"\nkeep = { turns = 0 }", "retention.keep.turns: 0 is not within"),
            ("bank = \"b\"\nkeep = { days = 1, turns = 1 }", "both days and turns"),
            ("bank = \"b\"\nkeep = {}", "retention.keep: empty"),
            ("bank = \"b\"", "keep"),
            ("keep = { days = 1 }", "bank"),
            ("bank = \"a//b\"\nkeep = { days = 1 }", "retention.bank"),
            ("bank = \"b\"\nkeep = { day = 1 }", "did you mean \"days\"?"),
            ("bank = \"b\"\nkeep = { days = 1 }\nspeaker = \"Ann\"", "did you mean \"speakers\"?"),
            ("bank = \"b\"\nkeep = { days = 1 }\nspeakers = [\" \"]", "speakers"),
            ("bank = \"b\"\nkeep = { days = 1 }\nwhere = {}", "nothing is named"),
            ("bank = \"b\"\nkeep = { days = 1 }\nsession = \"s\"\nwhere = { kinds = [\"tool\"] }", "retention.where"),
            (
                "bank = \"b\"\nkeep = { days = 1 }\nwhere = { metadata = { path = [\"a\"], is = 1 } }",
                "\"is\" is not known",
            ),
        ] {
            let problem = rule(keys).unwrap_err();
            assert!(problem.contains(named), "{keys}: {problem}");
        }
        assert!(parse("[[hold]]\nbank = \"\"\n").unwrap_err().contains("hold.bank"));
        assert!(parse("[[hold]]\nbank = \"b\"\nwhere = {}\n").unwrap_err().contains("hold.where"));
        let kafka = "log = { kind = \"kafka\", kafka = { brokers = \"b:9092\" } }\n";
        assert!(parse(&format!("{kafka}[[retention]]\nbank = \"b\"\nkeep = {{ days = 1 }}\n")).is_ok());
        let problem = parse(&format!("{kafka}forget.edits = \"erase\"\n")).unwrap_err();
        assert!(problem.starts_with("forget.edits:"), "{problem}");
    }
}
