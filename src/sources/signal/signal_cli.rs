//! Reads messages that signal-cli received.
//!
//! In: its JSON, record by record. Out: items. An id is the author and the sending time in milliseconds, which Signal
//! itself uses to answer, edit and delete a message. An edit may name the previous version instead of the original, so
//! recent versions are kept to find the original.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use serde_json::Value;

use super::envelope::{
    SignalDataMessage, SignalDeleteTarget, SignalEdit, SignalEnvelope, SignalEnvelopeLine, SignalFile, SignalGroup,
    SignalMention, SignalQuote, SignalSentMessage, placed,
};
use crate::{
    chat::{Account, ChatItem, ChatMessage, Conversation, ConversationPrivacy, SkipReason, media_kind},
    zone::Zone,
};
use types::model::{Attachment, DeadLetter, EventTime};

/// How many edits, accounts and conversations are kept.
const KEPT: usize = 100_000;

/// What is known from the records so far.
#[derive(Default)]
pub(super) struct SignalCliReader {
    conversations: HashMap<String, Arc<Conversation>>,
    accounts: HashMap<String, Account>,
    /// The id of an account by its phone number.
    by_number: HashMap<String, String>,
    originals: SignalOriginalTimes,
}

/// The time of the original, for each version of a message.
#[derive(Default)]
struct SignalOriginalTimes {
    times: HashMap<(String, i64), i64>,
    order: VecDeque<(String, i64)>,
}

/// The author, the conversation and the time of a message.
struct SignalMessageContext {
    author: Account,
    conversation: Arc<Conversation>,
    /// When the envelope was sent, in milliseconds.
    sent_ms: i64,
}

impl SignalCliReader {
    /// The item of a record. `origin` is its place.
    pub(super) fn item(&mut self, line: SignalEnvelopeLine, origin: String, payload: &[u8], zone: &Zone) -> ChatItem {
        let line = line.innermost();
        let reject = |conversation, reason: String| ChatItem::Reject {
            conversation,
            letter: DeadLetter::new(origin.clone(), reason, payload),
        };
        let Some(envelope) = line.envelope else { return ChatItem::Skip(SkipReason::Unsupported) };
        let Some(author) = self.author(&envelope) else {
            // If an envelope with a sealed sender cannot be decrypted, its sender is unknown.
            return if line.exception.is_some() {
                ChatItem::Skip(SkipReason::Encrypted)
            } else {
                reject(None, "the envelope names no source; leave it out".to_owned())
            };
        };
        let sent_ms = envelope.timestamp.unwrap_or(0);
        let place = self.place(&envelope, &author);
        let sent = envelope.sync_message.and_then(|sync| sync.sent_message);
        let Some(conversation) = place else {
            return if sent.is_some() && line.account.is_none() {
                reject(None, "the message names no destination; leave it out".to_owned())
            } else if sent.is_none() && line.exception.is_some() {
                ChatItem::Skip(SkipReason::Encrypted)
            } else if sent.is_none() && envelope.story_message.is_some() {
                ChatItem::Skip(SkipReason::Unsupported)
            } else {
                ChatItem::Skip(SkipReason::ServiceMessage)
            };
        };
        let context = SignalMessageContext { author, conversation: Arc::clone(&conversation), sent_ms };
        let (edit, data) = match (envelope.data_message, envelope.edit_message, sent) {
            (Some(data), ..) => (None, data),
            (None, Some(edit), _) => (Some(edit), SignalDataMessage::default()),
            (None, None, sent) => sent.map(|sent| (sent.edit_message, sent.data)).unwrap_or_default(),
        };
        let item = match edit {
            Some(edit) => self.edited(context, edit, zone),
            None => self.said(context, data, zone),
        };
        item.unwrap_or_else(|reason| reject(Some(conversation), reason))
    }

    /// The conversation of an unreadable record; `None` if that part is unreadable, too.
    pub(super) fn conversation_of_damaged(&mut self, record: Value) -> Option<Arc<Conversation>> {
        let envelope = placed(record)?.envelope?;
        let author = self.author(&envelope)?;
        self.place(&envelope, &author)
    }

    /// Where the message of an envelope was said; `None` if it holds no message, or if the account said it on another
    /// device and it names no destination.
    fn place(&mut self, envelope: &SignalEnvelope, author: &Account) -> Option<Arc<Conversation>> {
        let group_of_edit = |edit: &SignalEdit| edit.data_message.as_ref().and_then(|data| data.group_info.clone());
        if let Some(data) = &envelope.data_message {
            return Some(self.conversation(data.group_info.as_ref(), author));
        }
        if let Some(edit) = &envelope.edit_message {
            return Some(self.conversation(group_of_edit(edit).as_ref(), author));
        }
        // What the account said on another device.
        let sent = envelope.sync_message.as_ref()?.sent_message.as_ref()?;
        let group = sent.data.group_info.clone().or_else(|| sent.edit_message.as_ref().and_then(group_of_edit));
        if group.is_some() {
            return Some(self.conversation(group.as_ref(), author));
        }
        let SignalSentMessage { destination, destination_number, destination_uuid, .. } = sent;
        let to = self.id(destination_uuid.as_deref(), destination_number.as_deref(), destination.as_deref())?;
        let other = self.known(&to, destination_number.clone().or_else(|| destination.clone()));
        Some(self.conversation(None, &other))
    }

    fn said(
        &mut self,
        context: SignalMessageContext,
        data: SignalDataMessage,
        zone: &Zone,
    ) -> Result<ChatItem, String> {
        let sent_ms = data.timestamp.unwrap_or(context.sent_ms);
        if let Some(target) = data.remote_delete.as_ref().or(data.admin_delete.as_ref()) {
            return Ok(self.deleted(&context, target, sent_ms));
        }
        if data.reaction.is_some() || data.poll_vote.is_some() {
            return Ok(ChatItem::Skip(SkipReason::Unsupported));
        }
        self.message(context, data, sent_ms, 0, zone)
    }

    fn edited(&mut self, context: SignalMessageContext, edit: SignalEdit, zone: &Zone) -> Result<ChatItem, String> {
        let (Some(target), Some(data)) = (edit.target_sent_timestamp, edit.data_message) else {
            return Err("the edit names no message or has no words; leave it out".to_owned());
        };
        let version = data.timestamp.unwrap_or(context.sent_ms);
        let original = self.originals.find(&context.author.id, target);
        self.originals.add(&context.author.id, version, original);
        self.message(context, data, original, u64::try_from(version).unwrap_or(1), zone)
    }

    fn deleted(&self, context: &SignalMessageContext, target: &SignalDeleteTarget, version: i64) -> ChatItem {
        let author = self
            .id(
                target.target_author_uuid.as_deref(),
                target.target_author_number.as_deref(),
                target.target_author.as_deref(),
            )
            .unwrap_or_else(|| context.author.id.clone());
        let Some(time) = target.timestamp.or(target.target_sent_timestamp) else {
            return ChatItem::Skip(SkipReason::Unsupported);
        };
        let id = message_id(&author, self.originals.find(&author, time));
        ChatItem::Deletion {
            conversation: Arc::clone(&context.conversation),
            id,
            version: u64::try_from(version).ok().filter(|version| *version > 0),
        }
    }

    fn message(
        &mut self,
        context: SignalMessageContext,
        data: SignalDataMessage,
        sent_ms: i64,
        version: u64,
        zone: &Zone,
    ) -> Result<ChatItem, String> {
        let time = time(sent_ms, zone)?;
        let SignalMessageContext { author, conversation, .. } = context;
        let mentions = data.mentions.unwrap_or_default();
        let mut mentioned = Vec::new();
        let mut text = self.with_mentions(&data.message.unwrap_or_default(), &mentions, &mut mentioned);
        if let Some(poll) = &data.poll_create {
            text = poll.question.clone().unwrap_or(text);
            for option in &poll.options {
                let option = option.as_str().or_else(|| option.get("option").and_then(|o| o.as_str()));
                text.push_str(&option.map(|option| format!("\n- {option}")).unwrap_or_default());
            }
        }
        let mut attachments: Vec<Attachment> = data.attachments.unwrap_or_default().iter().map(file).collect();
        if let Some(sticker) = data.sticker {
            attachments.push(labelled("sticker", sticker.emoji.as_deref()));
        }
        for contact in data.contacts.unwrap_or_default() {
            let name = contact.get("name").unwrap_or(&contact);
            let part = |key: &str| name.get(key).and_then(|part| part.as_str()).filter(|part| !part.is_empty());
            attachments
                .push(labelled("contact", part("display").or_else(|| part("given")).or_else(|| part("givenName"))));
        }
        let text = text.trim();
        if text.is_empty() && attachments.is_empty() {
            return Ok(ChatItem::Skip(SkipReason::Empty));
        }
        let reply_to = data.quote.and_then(|quote| self.quoted(&quote));
        Ok(ChatItem::Message(Box::new(ChatMessage {
            id: message_id(&author.id, sent_ms),
            conversation,
            version,
            author,
            text: text.to_owned(),
            time,
            thread: None,
            reply_to,
            attachments,
            mentions: mentioned,
        })))
    }

    fn quoted(&self, quote: &SignalQuote) -> Option<String> {
        let author = self.id(quote.author_uuid.as_deref(), quote.author_number.as_deref(), quote.author.as_deref())?;
        Some(message_id(&author, self.originals.find(&author, quote.id?)))
    }

    /// A text with names in place of the mention marks, whose positions are in UTF-16 units.
    fn with_mentions(&self, text: &str, mentions: &[SignalMention], mentioned: &mut Vec<Account>) -> String {
        let mut units: Vec<u16> = text.encode_utf16().collect();
        let mut ordered: Vec<&SignalMention> = mentions.iter().collect();
        ordered.sort_by_key(|mention| std::cmp::Reverse(mention.start));
        for mention in ordered {
            let (Some(start), Some(length)) = (mention.start, mention.length) else { continue };
            let Some(id) = self.id(mention.uuid.as_deref(), mention.number.as_deref(), mention.name.as_deref()) else {
                continue;
            };
            let account = self.known(&id, mention.number.clone().or_else(|| mention.name.clone()));
            let end = start.saturating_add(length).min(units.len());
            if start >= end {
                continue;
            }
            units.splice(start..end, format!("@{}", account.name).encode_utf16());
            if !mentioned.contains(&account) {
                mentioned.push(account);
            }
        }
        String::from_utf16_lossy(&units)
    }

    /// Who sent an envelope.
    fn author(&mut self, envelope: &SignalEnvelope) -> Option<Account> {
        let number = envelope.source_number.as_deref().or(envelope.source.as_deref().filter(|s| s.starts_with('+')));
        if let (Some(uuid), Some(number)) = (envelope.source_uuid.as_deref(), number)
            && self.by_number.len() < KEPT
        {
            self.by_number.entry(number.to_owned()).or_insert_with(|| uuid.to_owned());
        }
        let id = self.id(envelope.source_uuid.as_deref(), number, envelope.source.as_deref())?;
        let name = envelope.source_name.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let account = Account {
            name: name.or(number).unwrap_or(&id).to_owned(),
            handle: number.map(str::to_owned),
            id: id.clone(),
            bot: false,
        };
        if self.accounts.len() < KEPT || self.accounts.contains_key(&id) {
            self.accounts.insert(id, account.clone());
        }
        Some(account)
    }

    /// The id of an account: its UUID. A number is replaced by the UUID once both are known.
    fn id(&self, uuid: Option<&str>, number: Option<&str>, legacy: Option<&str>) -> Option<String> {
        let given = |id: Option<&str>| id.filter(|id| !id.is_empty()).map(str::to_owned);
        let number = given(number).or_else(|| given(legacy));
        given(uuid).or_else(|| number.map(|number| self.by_number.get(&number).cloned().unwrap_or(number)))
    }

    fn known(&self, id: &str, number: Option<String>) -> Account {
        self.accounts.get(id).cloned().unwrap_or_else(|| Account {
            id: id.to_owned(),
            name: number.clone().unwrap_or_else(|| id.to_owned()),
            handle: number,
            bot: false,
        })
    }

    /// A group, or the conversation with somebody.
    fn conversation(&mut self, group: Option<&SignalGroup>, other: &Account) -> Arc<Conversation> {
        let (id, name, privacy) = match group.and_then(|group| Some((group.group_id.clone()?, group))) {
            Some((id, group)) => {
                let name = group.group_name.clone().filter(|name| !name.is_empty());
                (id.clone(), name.unwrap_or(id), ConversationPrivacy::Private)
            }
            None => (other.id.clone(), other.name.clone(), ConversationPrivacy::Direct),
        };
        if let Some(known) = self.conversations.get(&id) {
            return Arc::clone(known);
        }
        let conversation = Arc::new(Conversation { workspace: None, id: id.clone(), name, privacy });
        if self.conversations.len() < KEPT {
            self.conversations.insert(id, Arc::clone(&conversation));
        }
        conversation
    }
}

impl SignalOriginalTimes {
    fn add(&mut self, author: &str, version: i64, original: i64) {
        let key = (author.to_owned(), version);
        if self.times.insert(key.clone(), original).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.times.remove(&oldest);
        }
    }

    fn find(&self, author: &str, version: i64) -> i64 {
        self.times.get(&(author.to_owned(), version)).copied().unwrap_or(version)
    }
}

fn message_id(author: &str, sent_ms: i64) -> String {
    format!("{author}/{sent_ms}")
}

fn time(unix_ms: i64, zone: &Zone) -> Result<EventTime, String> {
    let known = (unix_ms > 0).then(|| zone.at_unix_ms(unix_ms)).flatten();
    known.ok_or_else(|| format!("timestamp: {unix_ms} is not a time in milliseconds; correct it"))
}

fn file(file: &SignalFile) -> Attachment {
    let kind = match file.content_type.as_deref().and_then(|t| t.split('/').next()) {
        Some(kind @ ("image" | "video" | "audio")) => kind,
        _ => file.filename.as_deref().map_or("file", media_kind),
    };
    let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    labelled(kind, given(&file.caption).or_else(|| given(&file.filename)).as_deref())
}

fn labelled(kind: &str, caption: Option<&str>) -> Attachment {
    let caption = caption.filter(|caption| !caption.is_empty()).unwrap_or(kind);
    Attachment { kind: Some(kind.to_owned()), caption: Some(caption.to_owned()), url: None }
}
