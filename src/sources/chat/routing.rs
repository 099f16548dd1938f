//! Which conversations are read, and into which banks.
//!
//! In: the bank template, the lists `only`, `except` and `include`, and conversations as they come. Out: for each
//! conversation its bank and session, or why it is left out. Private channels and direct messages are left out unless
//! `only` names them or `include` switches them on. Two conversations never share a session, and with `{channel}` or
//! `{participants}` they never share a bank: if two have the same name, the second one's id is appended. With
//! `{channel_id}` a conversation's bank is named after its id, whatever its name is.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use super::{
    assigned_names::AssignedRoute,
    chat_item::{Conversation, ConversationPrivacy},
    name_limits::within_limits,
};
use crate::SourceError;
use types::{
    config::{PrivateConversationKind, SourceSettings},
    model::Bank,
};

/// The longest name of a bank.
const MAX_BANK_BYTES: usize = 128;
/// A name that is too long for its place ends in this and 16 digits of its hash.
const CUT: &str = ".-";
const CUT_BYTES: usize = CUT.len() + 16;

/// The placeholder for what a transcript belongs to.
const PROJECT: &str = "project";

/// What becomes of the messages of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ConversationRoute {
    /// They are stored in this bank, as this session. Without a session, the window separates conversations by time.
    To {
        /// The bank.
        bank: Bank,
        /// The conversation's name, if several share the bank.
        session: Option<String>,
    },
    /// They are left out, for this reason.
    LeftOut(&'static str),
}

/// The workspace and the id of a conversation.
type ConversationKey = (Option<String>, String);

/// The routes of all conversations so far.
pub(super) struct ConversationRouting {
    template: BankTemplate,
    /// The template as the user wrote it.
    written: String,
    /// The bank that it names, if it has no placeholder.
    only_bank: Option<Bank>,
    only: Vec<String>,
    except: Vec<String>,
    include: Vec<PrivateConversationKind>,
    routes: HashMap<ConversationKey, Arc<ConversationRoute>>,
    /// The bank and session of each conversation in an earlier run.
    before: HashMap<ConversationKey, (Bank, Option<String>)>,
    /// Whether a conversation was given a bank since the last [`ConversationRouting::take_changed`].
    changed: bool,
    /// The conversation of the previous message, which is usually the current one too.
    last: Option<(Arc<Conversation>, Arc<ConversationRoute>)>,
    /// Banks and sessions that are taken by a conversation.
    taken: BTreeSet<(Bank, Option<String>)>,
    /// The names in `only` and `except` that have matched a conversation.
    named: BTreeSet<String>,
}

impl ConversationRouting {
    /// Checks the settings. With an empty template, each conversation gets a bank under the format's name.
    ///
    /// # Errors
    /// [`SourceError::Settings`] when the template does not form a valid bank name.
    pub(super) fn new(settings: &SourceSettings, format: &str) -> Result<Self, SourceError> {
        let template = match settings.bank.as_str() {
            "" => format!("{format}/{{channel}}"),
            bank => bank.to_owned(),
        };
        Ok(Self {
            template: BankTemplate::parse(&template)?,
            only_bank: Bank::parse(&template).ok(),
            written: template,
            before: HashMap::new(),
            changed: false,
            only: settings.only.clone(),
            except: settings.except.clone(),
            include: settings.include.clone(),
            routes: HashMap::new(),
            last: None,
            taken: BTreeSet::new(),
            named: BTreeSet::new(),
        })
    }

    /// The route of a conversation, the same each time.
    ///
    /// # Errors
    /// [`SourceError::Settings`] when the template has a placeholder for something that the conversation does not have.
    pub(super) fn route(&mut self, conversation: &Arc<Conversation>) -> Result<Arc<ConversationRoute>, SourceError> {
        if let Some((last, route)) = &self.last
            && Arc::ptr_eq(last, conversation)
        {
            return Ok(route.clone());
        }
        let key = (conversation.workspace.clone(), conversation.id.clone());
        let route = match self.routes.get(&key) {
            Some(route) => route.clone(),
            None => {
                let route = Arc::new(self.decide(conversation)?);
                self.routes.insert(key, route.clone());
                route
            }
        };
        self.last = Some((conversation.clone(), route.clone()));
        Ok(route)
    }

    /// Whether every conversation is read, whatever the export holds.
    pub(super) fn reads_all(&self) -> bool {
        let includes = |kind: &PrivateConversationKind| self.include.contains(kind);
        self.only.is_empty()
            && self.except.is_empty()
            && includes(&PrivateConversationKind::Private)
            && includes(&PrivateConversationKind::Direct)
    }

    /// The bank of every conversation, if the template has no placeholder.
    pub(super) fn only_bank(&self) -> Option<&Bank> {
        self.only_bank.as_ref()
    }

    /// The bank template, as the user wrote it.
    pub(super) fn template(&self) -> &str {
        &self.written
    }

    /// Gives conversations the banks and sessions that they had in an earlier run with the same template. Each run
    /// decides again whether they are read.
    pub(super) fn restore(&mut self, template: &str, places: Vec<AssignedRoute>) {
        if template != self.written {
            return;
        }
        for AssignedRoute { workspace, id, bank, session } in places {
            let Ok(bank) = Bank::parse(&bank) else { continue };
            self.taken.insert((bank.clone(), session.clone()));
            self.before.insert((workspace, id), (bank, session));
        }
    }

    /// The bank and session of each conversation, in this run and in earlier ones.
    pub(super) fn places(&self) -> Vec<AssignedRoute> {
        let now = self.routes.iter().filter_map(|(key, route)| match &**route {
            ConversationRoute::To { bank, session } => Some((key, (bank, session))),
            ConversationRoute::LeftOut(_) => None,
        });
        let before = self.before.iter().map(|(key, (bank, session))| (key, (bank, session)));
        let all: BTreeMap<&ConversationKey, (&Bank, &Option<String>)> = before.chain(now).collect();
        let place = |((workspace, id), (bank, session)): (&ConversationKey, (&Bank, &Option<String>))| AssignedRoute {
            workspace: workspace.clone(),
            id: id.clone(),
            bank: bank.to_string(),
            session: session.clone(),
        };
        all.into_iter().map(place).collect()
    }

    /// Whether a conversation was given a bank since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The names in `only` and in `except` that no conversation has, each with its key.
    pub(super) fn unknown(&self) -> Vec<(&'static str, String)> {
        let all = self.only.iter().map(|name| ("only", name)).chain(self.except.iter().map(|name| ("except", name)));
        all.filter(|(_, name)| !self.named.contains(*name)).map(|(key, name)| (key, name.clone())).collect()
    }

    fn decide(&mut self, conversation: &Conversation) -> Result<ConversationRoute, SourceError> {
        let is_meant = |word: &&String| names_conversation(word, &conversation.id, &conversation.name);
        let named = |list: &[String]| list.iter().filter(is_meant).cloned().collect::<Vec<_>>();
        let (only, except) = (named(&self.only), named(&self.except));
        let (is_named, is_excepted) = (!only.is_empty(), !except.is_empty());
        self.named.extend(only.into_iter().chain(except));
        if is_excepted {
            return Ok(ConversationRoute::LeftOut("excepted conversation"));
        }
        if !is_named {
            if !self.only.is_empty() {
                return Ok(ConversationRoute::LeftOut("conversation not chosen"));
            }
            match conversation.privacy {
                ConversationPrivacy::Private if !self.include.contains(&PrivateConversationKind::Private) => {
                    return Ok(ConversationRoute::LeftOut("private channel"));
                }
                ConversationPrivacy::Direct if !self.include.contains(&PrivateConversationKind::Direct) => {
                    return Ok(ConversationRoute::LeftOut("direct message"));
                }
                _ => {}
            }
        }
        let key = (conversation.workspace.clone(), conversation.id.clone());
        if let Some((bank, session)) = self.before.get(&key) {
            return Ok(ConversationRoute::To { bank: bank.clone(), session: session.clone() });
        }
        self.changed = true;
        let name = if conversation.name.trim().is_empty() { &conversation.id } else { &conversation.name };
        let with_id = format!("{name} ({})", conversation.id);
        let mut route = (self.template.bank(conversation, name)?, self.session(name));
        if !self.taken.insert(route.clone()) {
            route = (self.template.bank(conversation, &with_id)?, self.session(&with_id));
            self.taken.insert(route.clone());
        }
        Ok(ConversationRoute::To { bank: route.0, session: route.1 })
    }

    fn session(&self, name: &str) -> Option<String> {
        (!self.template.has_conversation()).then(|| within_limits(name))
    }
}

/// Whether a word in the user's settings names a conversation: by its id, or by its name with or without `#`. Case is
/// ignored.
pub(crate) fn names_conversation(word: &str, id: &str, name: &str) -> bool {
    let (word, name) = (word.to_lowercase(), name.to_lowercase());
    let bare = word.strip_prefix('#').unwrap_or(&word);
    word == id.to_lowercase() || word == name || bare == name
}

/// The bank of a transcript's project, as a source with this template gives it.
///
/// # Errors
/// [`SourceError::Settings`] when the template does not form a valid bank name.
pub(crate) fn project_bank(template: &str, project: &Conversation) -> Result<Bank, SourceError> {
    BankTemplate::parse(template)?.bank(project, &project.name)
}

/// A bank name with placeholders.
struct BankTemplate {
    parts: Vec<TemplatePart>,
    /// How many bytes a placeholder may fill.
    room: usize,
}

enum TemplatePart {
    Literal(String),
    Workspace,
    Conversation,
    ConversationId,
    /// As `Conversation`, for transcripts. A template may begin with it: the names are those of the user's own folders.
    Project,
}

impl BankTemplate {
    fn parse(template: &str) -> Result<Self, SourceError> {
        let invalid = |problem: String| SourceError::Settings { key: "bank", problem };
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some((literal, behind)) = rest.split_once('{') {
            let (name, after) = behind.split_once('}').ok_or_else(|| {
                invalid(format!("{template:?} has a {{ without a }}; write a placeholder such as {{channel}}"))
            })?;
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(literal.to_owned()));
            }
            parts.push(match name {
                "workspace" => TemplatePart::Workspace,
                "channel" | "participants" => TemplatePart::Conversation,
                PROJECT => TemplatePart::Project,
                "channel_id" => TemplatePart::ConversationId,
                _ => {
                    let known = "write {workspace}, {channel}, {channel_id}, {participants} or {project}";
                    return Err(invalid(format!("the placeholder {{{name}}} is not known; {known}")));
                }
            });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(TemplatePart::Literal(rest.to_owned()));
        }
        if !matches!(parts.first(), Some(TemplatePart::Literal(_) | TemplatePart::Project)) {
            return Err(invalid(format!(
                "{template:?} begins with a placeholder; begin with a name, as in acme/{{channel}}"
            )));
        }
        let segments = template.split('/');
        if segments.clone().any(|segment| segment.matches('{').count() > 1) {
            return Err(invalid(format!("{template:?} has two placeholders side by side; write / between them")));
        }
        let literal: usize =
            parts.iter().map(|p| if let TemplatePart::Literal(text) = p { text.len() } else { 0 }).sum();
        let placeholders = parts.iter().filter(|p| !matches!(p, TemplatePart::Literal(_))).count();
        let room = MAX_BANK_BYTES.saturating_sub(literal).checked_div(placeholders).unwrap_or(0);
        if placeholders > 0 && room < CUT_BYTES + 6 {
            return Err(invalid(format!("{template:?} leaves too little room for names; shorten it")));
        }
        let template = Self { parts, room };
        template.fill(|_| Some("x".to_owned()))?;
        Ok(template)
    }

    /// Whether each conversation has a bank of its own.
    fn has_conversation(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, TemplatePart::Literal(_) | TemplatePart::Workspace))
    }

    fn bank(&self, conversation: &Conversation, name: &str) -> Result<Bank, SourceError> {
        self.fill(|part| match part {
            TemplatePart::Conversation | TemplatePart::Project => Some(segment(name, self.room)),
            TemplatePart::ConversationId => Some(segment(&conversation.id, self.room)),
            _ => conversation.workspace.as_deref().map(|workspace| segment(workspace, self.room)),
        })
    }

    fn fill(&self, value: impl Fn(&TemplatePart) -> Option<String>) -> Result<Bank, SourceError> {
        let invalid = |problem: String| SourceError::Settings { key: "bank", problem };
        let mut bank = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Literal(text) => bank.push_str(text),
                part => bank.push_str(
                    &value(part)
                        .ok_or_else(|| invalid("the export names no workspace; leave {workspace} out".to_owned()))?,
                ),
            }
        }
        Bank::parse(&bank).map_err(|e| invalid(e.to_string()))
    }
}

/// A name as part of a bank's segment. Letters, digits, `_` and `-` stay; every other byte becomes a dot and two
/// hexadecimal digits, so that different names stay different. An empty name is `.0`. A name that needs more than
/// `room` bytes ends in its hash.
fn segment(name: &str, room: usize) -> String {
    if name.is_empty() {
        return ".0".to_owned();
    }
    let escaped = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => char::from(byte).to_string(),
        other => format!(".{other:02X}"),
    };
    let whole: String = name.bytes().map(escaped).collect();
    if whole.len() <= room {
        return whole;
    }
    let mut cut = String::new();
    for character in name.chars() {
        let next: String = character.to_string().bytes().map(escaped).collect();
        if cut.len() + next.len() + CUT_BYTES > room {
            break;
        }
        cut.push_str(&next);
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!("{cut}{CUT}{}", hash.get(..16).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(id: &str, name: &str, privacy: ConversationPrivacy) -> Arc<Conversation> {
        let workspace = Some("Acme Inc.".to_owned());
        Arc::new(Conversation { workspace, id: id.to_owned(), name: name.to_owned(), privacy })
    }

    fn settings(bank: &str, change: impl Fn(&mut SourceSettings)) -> SourceSettings {
        let mut settings = SourceSettings { bank: bank.to_owned(), ..SourceSettings::new("slack", "x") };
        change(&mut settings);
        settings
    }

    fn shown(route: &ConversationRoute) -> String {
        match route {
            ConversationRoute::To { bank, session: None } => bank.to_string(),
            ConversationRoute::To { bank, session: Some(session) } => format!("{bank} as {session}"),
            ConversationRoute::LeftOut(reason) => (*reason).to_owned(),
        }
    }

    /// Checks the routes of an open channel, a private one, a direct conversation, and another `general`.
    fn check(bank: &str, change: impl Fn(&mut SourceSettings), expected: [&str; 4]) {
        let mut routing = ConversationRouting::new(&settings(bank, change), "slack").unwrap();
        let conversations = [
            conversation("C1", "general", ConversationPrivacy::Open),
            conversation("G1", "board", ConversationPrivacy::Private),
            conversation("D1", "Ann, Bo", ConversationPrivacy::Direct),
            conversation("C2", "general", ConversationPrivacy::Open),
        ];
        for _ in 0..2 {
            let routes: Vec<String> = conversations.iter().map(|c| shown(&routing.route(c).unwrap())).collect();
            assert_eq!(routes, expected, "{bank}");
        }
    }

    #[test]
    fn private_conversations_are_read_only_where_the_user_says_so() {
        let shut = ["private channel", "direct message"];
        let both = |s: &mut SourceSettings| {
            s.include = vec![PrivateConversationKind::Private, PrivateConversationKind::Direct]
        };
        check("b", |_| (), ["b as general", shut[0], shut[1], "b as general (C2)"]);
        check("b", both, ["b as general", "b as board", "b as Ann, Bo", "b as general (C2)"]);
        let only = |s: &mut SourceSettings| s.only = vec!["board".to_owned(), "D1".to_owned()];
        let not = "conversation not chosen";
        check("b", only, [not, "b as board", "b as Ann, Bo", not]);
        let except = |s: &mut SourceSettings| {
            both(s);
            s.except = vec!["#General".to_owned(), "g1".to_owned()];
        };
        let out = "excepted conversation";
        check("b", except, [out, out, "b as Ann, Bo", out]);
    }

    #[test]
    fn a_template_gives_each_conversation_its_bank() {
        let both = |s: &mut SourceSettings| {
            s.include = vec![PrivateConversationKind::Private, PrivateConversationKind::Direct]
        };
        let general = "acme/general.20.28C2.29";
        check("acme/{channel}", both, ["acme/general", "acme/board", "acme/Ann.2C.20Bo", general]);
        check("acme/{participants}", both, ["acme/general", "acme/board", "acme/Ann.2C.20Bo", general]);
        check("acme/{channel_id}", both, ["acme/C1", "acme/G1", "acme/D1", "acme/C2"]);
        check("", |_| (), ["slack/general", "private channel", "direct message", "slack/general.20.28C2.29"]);
        check(
            "a/{workspace}",
            |_| (),
            ["a/Acme.20Inc.2E as general", "private channel", "direct message", "a/Acme.20Inc.2E as general (C2)"],
        );
        let whole = "x/{workspace}/c-{channel}";
        check(
            whole,
            |_| (),
            ["x/Acme.20Inc.2E/c-general", "private channel", "direct message", "x/Acme.20Inc.2E/c-general.20.28C2.29"],
        );
    }

    #[test]
    fn a_template_that_is_wrong_says_what_to_write() {
        for (bank, word) in [
            ("{channel}", "begins with a placeholder"),
            ("a/{team}", "{team} is not known"),
            ("a/{channel", "without a }"),
            ("a/{workspace}{channel}", "side by side"),
            ("a b/{channel}", "segment"),
            ("a//{channel}", "segment"),
            (&format!("{}/{{channel}}", "x".repeat(120)), "too little room"),
        ] {
            let error = ConversationRouting::new(&settings(bank, |_| ()), "slack").err().unwrap().to_string();
            assert!(error.starts_with("source.bank: ") && error.contains(word), "{error}");
        }
        let mut routing = ConversationRouting::new(&settings("a/{workspace}", |_| ()), "slack").unwrap();
        let homeless =
            Arc::new(Conversation { workspace: None, ..(*conversation("1", "x", ConversationPrivacy::Open)).clone() });
        assert!(routing.route(&homeless).unwrap_err().to_string().contains("leave {workspace} out"));
    }

    #[test]
    fn different_names_have_different_segments() {
        let names = ["", "a", "A", ".", "..", "a.b", "a b", "a/b", "a_b", "ü", "日本", ".0", ".-", "a.20b"];
        let long: Vec<String> = (0..3).map(|n| format!("{}{n}", "日本 ".repeat(60))).collect();
        let segments: BTreeSet<String> =
            names.into_iter().chain(long.iter().map(String::as_str)).map(|name| segment(name, 60)).collect();
        assert_eq!(segments.len(), names.len() + long.len());
        for segment in segments {
            assert!(segment.len() <= 60, "{segment}");
            Bank::parse(&format!("x/{segment}")).unwrap();
        }
    }

    #[test]
    fn names_in_only_and_except_that_nothing_has_are_told() {
        let lists = |s: &mut SourceSettings| {
            s.only = vec!["General".to_owned(), "genral".to_owned()];
            s.except = vec!["BOARD".to_owned(), "bored".to_owned()];
        };
        let mut routing = ConversationRouting::new(&settings("b", lists), "slack").unwrap();
        routing.route(&conversation("C1", "general", ConversationPrivacy::Open)).unwrap();
        routing.route(&conversation("G1", "board", ConversationPrivacy::Private)).unwrap();
        let told = [("only", "genral"), ("except", "bored")].map(|(key, name)| (key, name.to_owned()));
        assert_eq!(routing.unknown(), told);
    }
}
