//! Selects turns: to ask about them, to list them, to forget them, to keep them.
//!
//! In: what the caller names: ids, people, times, sessions, a thread, conditions on metadata. Out: whether a turn is
//! selected. A selector that
//! names nothing is refused, so that an empty form never means everything; one that names too much is refused, too.
//! Each name is brought into its compared form once, and a turn is compared with all of them at once: what a turn costs
//! does not depend on how many names there are. Looks nothing up.

use std::{borrow::Cow, collections::HashSet};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unicode_normalization::char::is_combining_mark;

use super::{
    EventTime, FieldError, MAX_NAME_BYTES, MetadataCondition, PackedMetadata, SpeakerKind, Turn,
    normal_form::normal_form, unit::canonical_name, unspaced::is_word_by_itself,
};

/// Most ids of turns of one selector.
pub const MAX_SELECTED_IDS: usize = 10_000;
/// Most speakers of one selector, and most names that are mentioned.
pub const MAX_SELECTED_NAMES: usize = 1_000;

/// Turns of a bank. A turn must fit each field that is set; within one, any of its values. A person's turns are those
/// that they said, and those that mention them: `speakers` and `mentions` are one such field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Selector {
    /// Their ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<String>,
    /// Who said them: names as they are written, without regard to capitals and spaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speakers: Vec<String>,
    /// Said at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<EventTime>,
    /// Said before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<EventTime>,
    /// Of this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Of a session whose name begins with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_prefix: Option<String>,
    /// Of this thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Said by a speaker of one of these kinds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<SpeakerKind>,
    /// Those whose words hold one of these names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mentions: Vec<String>,
    /// Whose metadata satisfy this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MetadataCondition>,
    /// Every turn.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
}

impl Selector {
    /// Checks that it names something, not too much, and that a turn can satisfy it.
    ///
    /// # Errors
    /// [`FieldError`] names the field.
    pub fn check(&self) -> Result<(), FieldError> {
        for (field, names, most) in [
            ("turns", &self.turns, MAX_SELECTED_IDS),
            ("speakers", &self.speakers, MAX_SELECTED_NAMES),
            ("mentions", &self.mentions, MAX_SELECTED_NAMES),
        ] {
            if names.len() > most {
                let problem = format!("{} are named, more than {most}", names.len());
                return Err(FieldError::new(field, problem, "divide the request"));
            }
            if let Some(long) = names.iter().map(String::len).find(|bytes| *bytes > MAX_NAME_BYTES) {
                let problem = format!("one of them is {long} bytes long, more than {MAX_NAME_BYTES}");
                return Err(FieldError::new(field, problem, "give a shorter one"));
            }
        }
        if self.is_empty() {
            return Err(FieldError::new(
                "all",
                "nothing is named",
                "name turns, speakers, since, until, a session, a thread, kinds, mentions or metadata, or set all",
            ));
        }
        if self.all && *self != (Self { all: true, ..Self::default() }) {
            return Err(FieldError::new("all", "further fields are set", "set all alone, or leave it out"));
        }
        let empty = |names: &[String]| names.iter().any(|name| name.trim().is_empty());
        for (field, names) in [("turns", &self.turns), ("speakers", &self.speakers), ("mentions", &self.mentions)] {
            if empty(names) {
                return Err(FieldError::new(field, "one of them is empty", "leave it out"));
            }
        }
        if let Some(prefix) = &self.session_prefix {
            let bytes = prefix.len();
            if bytes == 0 || bytes > MAX_NAME_BYTES {
                let problem = format!("{bytes} bytes long");
                return Err(FieldError::new("session_prefix", problem, "give 1 to 256 bytes, or leave it out"));
            }
        }
        self.metadata.as_ref().map_or(Ok(()), MetadataCondition::check)?;
        // Such a name has no words, and would be found in every text.
        if self.mentions.iter().any(|name| words(name).trim().is_empty()) {
            return Err(FieldError::new("mentions", "one of them has no letter and no digit", "give a name"));
        }
        for (field, time) in [("since", self.since), ("until", self.until)] {
            time.map_or(Ok(()), |time| time.check_offset(field))?;
        }
        match (self.since, self.until) {
            (Some(since), Some(until)) if since.unix_ms >= until.unix_ms => {
                Err(FieldError::new("until", "it is not after since", "give a later time"))
            }
            _ => Ok(()),
        }
    }

    /// Whether it lets every turn pass: it names nothing, or everything.
    #[must_use]
    pub fn takes_all(&self) -> bool {
        self.all || self.is_empty()
    }

    /// Whether it names nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same, ready to be compared with turns.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn compile(&self) -> Result<CompiledSelector, FieldError> {
        self.check()?;
        let mentions: Vec<String> = self.mentions.iter().map(|name| words(name)).collect();
        // A table of all transitions would take many times as much memory.
        let finder = || AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(&mentions);
        let finder = (!mentions.is_empty()).then(finder).transpose();
        Ok(CompiledSelector {
            select: self.clone(),
            ids: self.turns.iter().cloned().collect(),
            speakers: self.speakers.iter().map(|name| compared_form(name)).collect(),
            mentions: finder.map_err(|error| FieldError::new("mentions", error.to_string(), "name fewer"))?,
        })
    }
}

/// What a selector compares of a turn. Only what a condition needs is asked for, since each may lie elsewhere in memory.
pub trait SelectableTurn {
    /// Its id.
    fn turn(&self) -> &str;
    /// Who said it.
    fn speaker(&self) -> &str;
    /// What the speaker is ([`Turn::speaker_kind`]).
    fn kind(&self) -> Option<SpeakerKind>;
    /// When it was said, in milliseconds since 1970.
    fn unix_ms(&self) -> i64;
    /// Its session.
    fn session(&self) -> Option<&str>;
    /// Its thread.
    fn thread(&self) -> Option<&str>;
    /// Its metadata.
    fn metadata(&self) -> Option<&PackedMetadata>;
    /// Its words, each caption apart.
    fn texts(&self) -> Vec<Cow<'_, str>>;
}

/// A turn as it was sent, with its metadata packed if they are compared.
struct SentTurn<'t> {
    turn: &'t Turn,
    metadata: Option<PackedMetadata>,
}

impl SelectableTurn for SentTurn<'_> {
    fn turn(&self) -> &str {
        &self.turn.turn
    }

    fn speaker(&self) -> &str {
        &self.turn.speaker
    }

    fn kind(&self) -> Option<SpeakerKind> {
        self.turn.speaker_kind()
    }

    fn unix_ms(&self) -> i64 {
        self.turn.time.unix_ms
    }

    fn session(&self) -> Option<&str> {
        self.turn.session.as_deref()
    }

    fn thread(&self) -> Option<&str> {
        self.turn.thread.as_deref()
    }

    fn metadata(&self) -> Option<&PackedMetadata> {
        self.metadata.as_ref()
    }

    fn texts(&self) -> Vec<Cow<'_, str>> {
        let captions = self.turn.attachments.iter().filter_map(|attachment| attachment.caption.as_deref());
        std::iter::once(self.turn.text.as_str()).chain(captions).map(Cow::Borrowed).collect()
    }
}

/// A selector whose names were brought into the form in which they are compared.
#[derive(Debug, Clone)]
pub struct CompiledSelector {
    select: Selector,
    ids: HashSet<String>,
    speakers: HashSet<String>,
    /// Finds the mentioned names in the words of a text; `None` if the selector has none.
    mentions: Option<AhoCorasick>,
}

impl CompiledSelector {
    /// The selector.
    #[must_use]
    pub fn selector(&self) -> &Selector {
        &self.select
    }

    /// Whether a turn is selected.
    #[must_use]
    pub fn takes(&self, turn: &Turn) -> bool {
        let metadata = self.select.metadata.as_ref().and(turn.metadata.as_ref()).map(PackedMetadata::of);
        self.takes_turn(&SentTurn { turn, metadata }, |speaker| self.names(speaker))
    }

    /// Whether a turn is selected, where `names` says whether the selector [names](Self::names) its speaker. The speaker
    /// and the words are only asked for if they decide.
    #[must_use]
    pub fn takes_turn(&self, turn: &impl SelectableTurn, names: impl FnOnce(&str) -> bool) -> bool {
        if self.select.all {
            return true;
        }
        let names_people = !self.speakers.is_empty() || self.mentions.is_some();
        self.takes_unnamed(turn)
            && (!names_people
                || (!self.speakers.is_empty() && names(turn.speaker()))
                || self.is_mentioned(|| turn.texts()))
    }

    /// Whether a speaker is among its speakers.
    #[must_use]
    pub fn names(&self, speaker: &str) -> bool {
        !self.speakers.is_empty() && self.speakers.contains(&compared_form(speaker))
    }

    /// Whether the names that words mention can decide.
    #[must_use]
    pub fn reads_words(&self) -> bool {
        self.mentions.is_some()
    }

    /// Whether a turn is selected, apart from who said it and whom it mentions.
    fn takes_unnamed(&self, turn: &impl SelectableTurn) -> bool {
        let Selector { since, until, session, session_prefix, thread, kinds, metadata, .. } = &self.select;
        // In the order of what it takes to find them.
        metadata.as_ref().is_none_or(|condition| condition.takes(turn.metadata()))
            && since.is_none_or(|since| turn.unix_ms() >= since.unix_ms)
            && until.is_none_or(|until| turn.unix_ms() < until.unix_ms)
            && (kinds.is_empty() || turn.kind().is_some_and(|kind| kinds.contains(&kind)))
            && session.as_deref().is_none_or(|session| turn.session() == Some(session))
            && session_prefix.as_deref().is_none_or(|start| turn.session().is_some_and(|name| name.starts_with(start)))
            && thread.as_deref().is_none_or(|thread| turn.thread() == Some(thread))
            && (self.ids.is_empty() || self.ids.contains(turn.turn()))
    }

    /// Whether a turn's words, or those of its attachments, contain a name from `mentions`.
    fn is_mentioned<'t>(&self, texts: impl FnOnce() -> Vec<Cow<'t, str>>) -> bool {
        let Some(mentions) = &self.mentions else { return false };
        texts().iter().any(|text| mentions.is_match(&words(text)))
    }
}

/// A name in a form that is the same however it is typed.
fn compared_form(name: &str) -> String {
    #[cfg(test)]
    tests::count();
    canonical_name(&normal_form(name))
}

/// The words of a text in normal form, with a space before and after each. Marks belong to the letter before them; each
/// letter of a script without spaces is a word.
fn words(text: &str) -> String {
    #[cfg(test)]
    tests::count();
    let (mut out, mut before) = (String::from(" "), None::<char>);
    for letter in normal_form(text).chars() {
        if before.is_some() && is_combining_mark(letter) {
            out.push(letter);
            continue;
        }
        let ends = |before| !letter.is_alphanumeric() || is_word_by_itself(before) || is_word_by_itself(letter);
        if before.is_some_and(ends) {
            out.push(' ');
        }
        before = Some(letter).filter(|letter| letter.is_alphanumeric());
        out.extend(before);
    }
    if before.is_some() {
        out.push(' ');
    }
    out
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::model::{Attachment, Bank};

    thread_local! {
        /// How many names and texts were brought into their compared form.
        static COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        COMPARED.set(COMPARED.get() + 1);
    }

    fn turn(id: &str, speaker: &str, text: &str, day: u8) -> Turn {
        let time = EventTime::parse(&format!("2024-05-{day:02}T10:00:00Z")).unwrap();
        Turn::new(Bank::parse("b").unwrap(), id, speaker, text, time)
    }

    fn taken(selector: &Selector) -> Vec<String> {
        let caption = Attachment { caption: Some("Ann on a pier".to_owned()), ..Attachment::default() };
        let turns = [
            Turn { session: Some("s".to_owned()), ..turn("1", "Ann Lee", "I moved.", 1) },
            Turn { thread: Some("t".to_owned()), ..turn("2", "Bo", "ann  lee's kayak", 2) },
            Turn { kind: Some(SpeakerKind::Bot), ..turn("3", "Bo", "Annually.", 3) },
            Turn {
                attachments: vec![caption],
                metadata: crate::model::Metadata::from_json(r#"{"a":1.0}"#),
                ..turn("4", "Cy", "", 4)
            },
        ];
        let selection = selector.compile().unwrap();
        turns.iter().filter(|turn| selection.takes(turn)).map(|turn| turn.turn.clone()).collect()
    }

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_field_narrows_and_mentions_add_to_speakers_alone() {
        let at = |day: u8| EventTime::parse(&format!("2024-05-{day:02}T10:00:00Z")).ok();
        let none = Selector::default;
        assert_eq!(taken(&Selector { all: true, ..none() }), ["1", "2", "3", "4"]);
        assert_eq!(taken(&Selector { turns: names(&["3", "9"]), ..none() }), ["3"]);
        assert_eq!(taken(&Selector { speakers: names(&[" ann  LEE"]), ..none() }), ["1"]);
        assert_eq!(
            taken(&Selector { speakers: names(&["Ann"]), ..none() }),
            [""; 0],
            "another person, for all we know"
        );
        assert_eq!(taken(&Selector { since: at(2), until: at(4), ..none() }), ["2", "3"]);
        assert_eq!(taken(&Selector { speakers: names(&["bo"]), since: at(3), ..none() }), ["3"]);
        assert_eq!(taken(&Selector { session: Some("s".to_owned()), ..none() }), ["1"]);
        assert_eq!(taken(&Selector { thread: Some("t".to_owned()), ..none() }), ["2"]);
        let prefix = |start: &str| Some(start.to_owned());
        assert_eq!(taken(&Selector { session_prefix: prefix("s"), ..none() }), ["1"]);
        assert_eq!(taken(&Selector { session_prefix: prefix("so"), ..none() }), [""; 0]);
        assert_eq!(taken(&Selector { kinds: vec![SpeakerKind::Tool, SpeakerKind::Bot], ..none() }), ["3"]);
        let metadata = |json: &str| Some(serde_json::from_str(json).unwrap());
        let eq = r#"{"path":["a"],"eq":1}"#;
        assert_eq!(taken(&Selector { metadata: metadata(eq), ..none() }), ["4"]);
        let not = format!(r#"{{"not":{eq}}}"#);
        assert_eq!(taken(&Selector { metadata: metadata(&not), since: at(2), ..none() }), ["2", "3"]);
        let mentions = names(&["Ann"]);
        assert_eq!(taken(&Selector { mentions: mentions.clone(), ..none() }), ["2", "4"]);
        assert_eq!(taken(&Selector { mentions: mentions.clone(), since: at(3), ..none() }), ["4"], "times narrow it");
        let thread = Some("t".to_owned());
        assert_eq!(taken(&Selector { mentions: mentions.clone(), thread, ..none() }), ["2"]);
        assert_eq!(taken(&Selector { speakers: names(&["Ann Lee"]), mentions, until: at(4), ..none() }), ["1", "2"]);
    }

    #[test]
    fn names_are_found_in_scripts_without_spaces_and_however_letters_are_composed() {
        let finds =
            |select: Selector, speaker: &str, text: &str| select.compile().unwrap().takes(&turn("1", speaker, text, 1));
        let mentions =
            |name: &str, text: &str| finds(Selector { mentions: names(&[name]), ..Selector::default() }, "Bo", text);
        let found = [
            ("小明", "我昨天见到小明了"),
            ("ann", "我昨天见到Ann了"),
            ("สมชาย", "เมื่อวานฉันเจอสมชายที่ตลาด"),
            ("アン", "ｱﾝです"),
            ("Jos\u{e9}", "It was Jose\u{301}."),
            ("Jose\u{301}", "It was JOS\u{c9}."),
            ("विद्या", "कल विद्या आई"),
            ("Ann", "\u{2764}\u{fe0f}Ann"),
            ("ärzte", "Die ÄRZTE."),
            ("Straße", "DIE STRASSE"),
            ("Ann", "A\u{ad}nn"),
            ("김민수", "\u{1100}\u{1175}\u{11b7}민수 씨"),
        ];
        for (name, text) in found {
            assert!(mentions(name, text), "{name:?} in {text:?}");
        }
        for (name, text) in [("小明", "小王和明明"), ("สม", "ส้ม"), ("Jose", "It was Jose\u{301}."), ("विद", "विद्या")]
        {
            assert!(!mentions(name, text), "{name:?} in {text:?}");
        }
        for (name, speaker) in [("Jos\u{e9} Ruiz", "Jose\u{301}  ruiz"), ("Jose\u{301} Ruiz", "JOS\u{c9} Ruiz")] {
            assert!(finds(Selector { speakers: names(&[name]), ..Selector::default() }, speaker, "Hello."), "{name:?}");
        }
    }

    #[test]
    fn a_name_is_brought_into_its_compared_form_once_however_many_turns_there_are() {
        let many = |of: &str| (0..MAX_SELECTED_NAMES).map(|n| format!("{of} {n}")).collect::<Vec<_>>();
        let select = Selector { speakers: many("Ann"), mentions: many("Bo"), ..Selector::default() };
        let turns: Vec<Turn> = (0..2_000).map(|n| turn("1", "Ann 7", &format!("I met bo  {n}."), 1)).collect();
        COMPARED.set(0);
        // Each name in `mentions` is brought into its form twice: once to check that it has a word.
        let selection = select.compile().unwrap();
        assert_eq!(COMPARED.get(), 3 * MAX_SELECTED_NAMES);
        COMPARED.set(0);
        assert!(turns.iter().all(|turn| selection.takes(turn)));
        assert_eq!(COMPARED.get(), turns.len(), "the speaker of each");
        let mentions = Selector { speakers: Vec::new(), ..select };
        let selection = mentions.compile().unwrap();
        COMPARED.set(0);
        assert_eq!(turns.iter().filter(|turn| selection.takes(turn)).count(), MAX_SELECTED_NAMES, "whole words alone");
        assert_eq!(COMPARED.get(), turns.len(), "the text of each");
    }

    #[test]
    fn too_many_names_and_too_long_ones_are_refused_by_field_limit_and_number() {
        let many = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        let none = Selector::default;
        for (field, most) in
            [("turns", MAX_SELECTED_IDS), ("speakers", MAX_SELECTED_NAMES), ("mentions", MAX_SELECTED_NAMES)]
        {
            let of = |names: Vec<String>| match field {
                "turns" => Selector { turns: names, ..none() },
                "speakers" => Selector { speakers: names, ..none() },
                _ => Selector { mentions: names, ..none() },
            };
            of(many(most)).check().unwrap();
            let refused = of(many(most + 1)).check().unwrap_err();
            assert_eq!(refused.field, field);
            for said in [most.to_string(), (most + 1).to_string(), "divide".to_owned()] {
                assert!(refused.to_string().contains(&said), "{refused}");
            }
            let long = "x".repeat(MAX_NAME_BYTES + 1);
            of(vec![long[1..].to_owned()]).check().unwrap();
            let refused = of(vec![long]).compile().unwrap_err();
            assert!(refused.field == field && refused.to_string().contains("257 bytes"), "{refused}");
        }
    }

    #[test]
    fn what_names_nothing_or_contradicts_itself_is_refused() {
        let at = |text: &str| EventTime::parse(text).ok();
        let wrong = |selector: Selector, field: &str| assert_eq!(selector.check().unwrap_err().field, field);
        wrong(Selector::default(), "all");
        wrong(Selector { all: true, turns: names(&["1"]), ..Selector::default() }, "all");
        wrong(Selector { speakers: names(&[" "]), ..Selector::default() }, "speakers");
        wrong(Selector { mentions: names(&["?!"]), ..Selector::default() }, "mentions");
        wrong(Selector { session_prefix: Some(String::new()), ..Selector::default() }, "session_prefix");
        let metadata = Some(MetadataCondition::All(Vec::new()));
        wrong(Selector { metadata, ..Selector::default() }, "metadata");
        let (since, until) = (at("2024-05-02T00:00:00Z"), at("2024-05-01T00:00:00Z"));
        wrong(Selector { since, until, ..Selector::default() }, "until");
    }
}
