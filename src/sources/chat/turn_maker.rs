//! Converts chat items into turn events.
//!
//! In: what was found on a platform, in an export or live, and the settings. Out: turn events and dead letters. Every
//! turn's id is `CONVERSATION/MESSAGE`, so that every reader of a conversation produces the same ids; an id or a
//! session with a phone number or a mail address is hidden. A text beyond the limit of a turn is cut and counted.
//! Nothing from a conversation that the user did not choose ever leaves this module, as a turn or as a dead letter, and
//! no text leaves it before its redaction.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{
    assigned_names::AssignedNames,
    call_line::call_line,
    chat_item::{Account, ChatItem, ChatMessage, Conversation, SkipReason},
    name_limits::turn_id,
    redaction::Redaction,
    routing::{ConversationRoute, ConversationRouting},
    speaker_names::SpeakerNames,
    transcript_message::TranscriptMessage,
};
use crate::{
    SourceError,
    turn_source::{SourceBatch, SourceCounts},
};
use types::{
    config::SourceSettings,
    model::{
        Attachment, Bank, DeadLetter, EventTime, IdSalt, MAX_ATTACHMENTS, MAX_TEXT_BYTES, MAX_URL_BYTES, Metadata,
        SpeakerKind, Turn, TurnDeletion, TurnEvent,
    },
    recall_tag::session_mark,
};

/// The end of a text that was cut.
const CUT_MARK: &str = " […]";
/// The reason added to a reject whose unknown conversation may be one that is left out.
const WITHHELD: &str = "the record is withheld, because its conversation is not known, and some are left out";
/// The longest text in the metadata of a message.
const MAX_METADATA_TEXT_BYTES: usize = 4_096;
/// A longer reason may have been cut inside a quotation.
const MAX_QUOTING_BYTES: usize = 2_048;

/// Makes turns from chat items.
pub(crate) struct TurnMaker {
    routing: ConversationRouting,
    people: SpeakerNames,
    redaction: Redaction,
    salt: IdSalt,
    /// What was left out or changed so far.
    pub counts: SourceCounts,
    /// The time of each bank's last message.
    pub latest: BTreeMap<Bank, EventTime>,
}

impl TurnMaker {
    /// `format` is the name of the platform's format.
    ///
    /// # Errors
    /// [`SourceError`] when a setting that all platforms share is invalid.
    pub(crate) fn new(settings: &SourceSettings, format: &str) -> Result<Self, SourceError> {
        Ok(Self {
            routing: ConversationRouting::new(settings, format)?,
            people: SpeakerNames::open(settings.aliases.as_deref())?,
            redaction: Redaction::new(&settings.redact)?,
            salt: IdSalt::default(),
            counts: SourceCounts::default(),
            latest: BTreeMap::new(),
        })
    }

    /// Hides ids with this salt.
    pub(crate) fn hide_with(&mut self, salt: IdSalt) {
        self.salt = salt;
    }

    /// Gives accounts and conversations the names that they had in an earlier run.
    pub(crate) fn restore(&mut self, assigned: AssignedNames) {
        let AssignedNames { template, places, people } = assigned;
        self.routing.restore(&template, places);
        self.people.restore(people);
    }

    /// All names so far, if one was added since the last call; else `None`.
    pub(crate) fn assigned(&mut self) -> Option<AssignedNames> {
        let changed = [self.routing.take_changed(), self.people.take_changed()];
        changed.contains(&true).then(|| AssignedNames {
            template: self.routing.template().to_owned(),
            places: self.routing.places(),
            people: self.people.names(),
        })
    }

    /// The names in `only` and in `except` that no conversation has, each with its key.
    pub(crate) fn unknown(&self) -> Vec<(&'static str, String)> {
        self.routing.unknown()
    }

    /// An item of an export without what must stay private. Unless every conversation is read, a reject of an unknown
    /// conversation keeps only its position and its reason. Live sources leave the record out themselves.
    pub(crate) fn withheld(&self, item: ChatItem) -> ChatItem {
        match item {
            ChatItem::Reject { conversation: None, letter }
                if !letter.payload.is_empty() && !self.routing.reads_all() =>
            {
                let reason = format!("{}; {WITHHELD}", without_quotes(&letter.reason));
                ChatItem::Reject { conversation: None, letter: DeadLetter::new(letter.origin, reason, b"") }
            }
            other => other,
        }
    }

    /// Adds an item to a batch as turn events. `origin` says where it was read, for dead letters.
    ///
    /// # Errors
    /// [`SourceError::Settings`] when the template has a placeholder for something that the conversation does not have.
    pub(crate) fn take(&mut self, item: ChatItem, origin: &str, batch: &mut SourceBatch) -> Result<(), SourceError> {
        match item {
            ChatItem::Message(message) => self.message(*message, origin, batch)?,
            ChatItem::Transcript { project, author, message } => {
                self.transcript(&project, &author, *message, origin, batch)?;
            }
            ChatItem::Deletion { conversation, id, version } => {
                if let Some((bank, _)) = self.place(&conversation)? {
                    let turn = self.id(&conversation.id, &id);
                    let version = version.unwrap_or(u64::MAX);
                    batch.events.push(TurnEvent::Deletion(TurnDeletion { bank, turn, version }));
                }
            }
            ChatItem::Skip(skip) => {
                if let SkipReason::UnsupportedKind(kind) = &skip {
                    self.counts.unsupported(kind);
                }
                self.skip(skip.name());
            }
            ChatItem::Reject { conversation, letter } => {
                let bank = match &conversation {
                    Some(conversation) => match self.place(conversation)? {
                        Some((bank, _)) => Some(bank),
                        None => return Ok(()),
                    },
                    None => self.routing.only_bank().cloned(),
                };
                batch.rejects.push(self.redacted(letter.in_bank(bank)));
            }
        }
        Ok(())
    }

    fn message(&mut self, message: ChatMessage, origin: &str, batch: &mut SourceBatch) -> Result<(), SourceError> {
        let Some((bank, session)) = self.place(&message.conversation)? else { return Ok(()) };
        let conversation = &message.conversation.id;
        let speaker = self.people.name(&bank, &message.author).to_owned();
        if message.author.bot {
            self.counts.bots.insert((bank.clone(), speaker.clone()));
        }
        let text = self.rename(&bank, message.text, &message.mentions);
        let mut attachments = message.attachments;
        attachments.truncate(MAX_ATTACHMENTS);
        let mut room = MAX_TEXT_BYTES / 2;
        for attachment in &mut attachments {
            self.attachment(attachment, &mut room);
        }
        let captions = MAX_TEXT_BYTES / 2 - room;
        let text = self.text(&text, MAX_TEXT_BYTES - captions);
        let turn = Turn {
            bank,
            turn: self.id(conversation, &message.id),
            version: message.version,
            speaker,
            kind: message.author.bot.then_some(SpeakerKind::Bot),
            text,
            time: message.time,
            session: session.map(|session| self.salt.hide(&session)),
            thread: message.thread.map(|thread| self.id(conversation, &thread)),
            reply_to: message.reply_to.map(|reply_to| self.id(conversation, &reply_to)),
            attachments,
            metadata: None,
            recall: true,
        };
        self.store(turn, origin, batch);
        Ok(())
    }

    /// Adds a message of a transcript to a batch. Its thread is its session, so that conversations of a project never
    /// mix in a window. Its metadata say where it was said; what the person gave up is kept from recall.
    fn transcript(
        &mut self,
        project: &Arc<Conversation>,
        author: &Account,
        message: TranscriptMessage,
        origin: &str,
        batch: &mut SourceBatch,
    ) -> Result<(), SourceError> {
        let Some((bank, session)) = self.place(project)? else { return Ok(()) };
        let speaker = self.people.name(&bank, author).to_owned();
        let metadata = self.metadata(project, &message);
        let turn = Turn {
            bank,
            turn: self.id(&message.agent, &message.key()),
            version: 0,
            speaker,
            kind: Some(message.role.kind()),
            text: self.text(&message.text, MAX_TEXT_BYTES),
            time: message.time,
            session: session.map(|session| self.salt.hide(&session)),
            thread: Some(self.id(&message.agent, &message.thread)),
            reply_to: None,
            attachments: Vec::new(),
            metadata: Some(metadata),
            recall: message.is_on_kept_branch,
        };
        self.store(turn, origin, batch);
        Ok(())
    }

    /// What is known of a message besides its words. Calls of tools may hold secrets as words do.
    fn metadata(&mut self, project: &Conversation, message: &TranscriptMessage) -> Metadata {
        let calls = call_line(message.calls.iter().map(|call| self.text(call, MAX_METADATA_TEXT_BYTES)));
        let cut = |text: &String| {
            if text.len() > MAX_METADATA_TEXT_BYTES { cut(text, MAX_METADATA_TEXT_BYTES) } else { text.clone() }
        };
        let texts = [
            ("agent", Some(message.agent.clone())),
            ("project", Some(project.name.clone())),
            ("session", Some(session_mark(&message.agent, &message.thread))),
            ("directory", message.directory.as_ref().map(cut)),
            ("branch", message.branch.as_ref().map(cut)),
            ("model", message.model.as_ref().map(cut)),
            ("calls", calls),
        ];
        let texts = texts.into_iter().filter_map(|(name, text)| Some((name, text.filter(|text| !text.is_empty())?)));
        let mut fields: serde_json::Map<String, Value> =
            texts.map(|(name, text)| (name.to_owned(), Value::String(text))).collect();
        if !message.is_on_kept_branch {
            fields.insert("given_up".to_owned(), Value::Bool(true));
        }
        fields.into()
    }

    /// Adds a turn to a batch, if it has words and keeps the limits of a turn.
    fn store(&mut self, turn: Turn, origin: &str, batch: &mut SourceBatch) {
        if turn.text.trim().is_empty() && turn.captions().next().is_none() {
            self.skip(SkipReason::Empty.name());
            return;
        }
        if let Err(reason) = turn.check() {
            let payload = serde_json::to_vec(&turn).unwrap_or_default();
            let origin = format!("{origin}: {}", turn.turn);
            let letter = DeadLetter::new(origin, reason.to_string(), &payload).in_bank(Some(turn.bank));
            batch.rejects.push(self.redacted(letter));
            return;
        }
        let time = turn.time;
        match self.latest.get_mut(&turn.bank) {
            Some(latest) => *latest = time.max(*latest),
            None => {
                self.latest.insert(turn.bank.clone(), time);
            }
        }
        batch.events.push(TurnEvent::Turn(turn));
    }

    /// The bank and session of a conversation. `None` if it is left out, which is counted.
    fn place(&mut self, conversation: &Arc<Conversation>) -> Result<Option<(Bank, Option<String>)>, SourceError> {
        let route = self.routing.route(conversation)?;
        match &*route {
            ConversationRoute::To { bank, session } => Ok(Some((bank.clone(), session.clone()))),
            ConversationRoute::LeftOut(reason) => {
                self.skip(reason);
                Ok(None)
            }
        }
    }

    /// The id of a message as it is stored.
    fn id(&self, conversation: &str, message: &str) -> String {
        self.salt.hide(&turn_id(conversation, message))
    }

    /// A text in which mentioned accounts have the names that they have in this bank.
    fn rename(&mut self, bank: &Bank, mut text: String, mentions: &[Account]) -> String {
        for account in mentions {
            let name = self.people.name(bank, account);
            if name != account.name && !account.name.is_empty() {
                text = replace_name(&text, &account.name, name);
            }
        }
        text
    }

    /// The redacted text, cut to at most `room` bytes.
    fn text(&mut self, text: &str, room: usize) -> String {
        let text = self.redaction.apply(text, &mut self.counts.redacted);
        if text.len() <= room {
            return text.into_owned();
        }
        self.counts.cut += 1;
        cut(&text, room)
    }

    fn attachment(&mut self, attachment: &mut Attachment, room: &mut usize) {
        if let Some(caption) = attachment.caption.take() {
            let caption = self.text(&caption, *room);
            *room = room.saturating_sub(caption.len());
            attachment.caption = Some(caption).filter(|caption| !caption.trim().is_empty());
        }
        if let Some(url) = &mut attachment.url {
            *url = self.redaction.apply(url, &mut self.counts.redacted).into_owned();
        }
        // In some exports the address of a picture is its content (a data URL); the caption still says what it was.
        drop(attachment.url.take_if(|url| url.len() > MAX_URL_BYTES));
    }

    /// A redacted dead letter. The reason is redacted too, because it may quote a value of the record.
    fn redacted(&mut self, mut letter: DeadLetter) -> DeadLetter {
        for text in [&mut letter.payload, &mut letter.reason] {
            *text = self.redaction.apply(text, &mut self.counts.redacted).into_owned();
        }
        letter
    }

    fn skip(&mut self, reason: &'static str) {
        *self.counts.skipped.entry(reason).or_default() += 1;
    }
}

/// A reason without its quotations from the record.
fn without_quotes(reason: &str) -> String {
    let Some((before, quoted)) = reason.split_once('"') else { return reason.to_owned() };
    let whole = quoted.rsplit_once('"').filter(|_| reason.len() <= MAX_QUOTING_BYTES);
    format!("{before}\"…\"{}", whole.map_or("", |(_, behind)| behind))
}

/// The beginning of a text with a mark, in at most `room` bytes; it ends at a space if there is one nearby.
fn cut(text: &str, room: usize) -> String {
    let Some(kept) = room.checked_sub(CUT_MARK.len()) else { return String::new() };
    let start = text.get(..text.floor_char_boundary(kept)).unwrap_or_default();
    let near = start.floor_char_boundary(start.len().saturating_sub(200));
    let end = start.get(near..).and_then(|tail| tail.rfind(char::is_whitespace)).map_or(start.len(), |at| near + at);
    format!("{}{CUT_MARK}", start.get(..end).unwrap_or(start))
}

/// Replaces a name only where it is a whole word: `Ann`, and not the beginning of `Anna`.
fn replace_name(text: &str, old: &str, new: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(old) {
        let (before, from) = rest.split_at(at);
        let behind = from.get(old.len()..).unwrap_or_default();
        let whole = !before.ends_with(char::is_alphanumeric) && !behind.starts_with(char::is_alphanumeric);
        replaced.push_str(before);
        replaced.push_str(if whole { new } else { old });
        rest = behind;
    }
    replaced.push_str(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_replaced_where_it_stands_as_a_whole() {
        assert_eq!(replace_name("Ann, Anna, JoAnn @Ann!", "Ann", "Bo"), "Bo, Anna, JoAnn @Bo!");
    }
}
