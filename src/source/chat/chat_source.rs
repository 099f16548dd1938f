//! A source of turns, made of a chat platform's reader.
//!
//! In: what the reader finds, and the settings. Out: turn events and dead letters in the reader's
//! order, and for each bank an idle mark after the last. Every turn's id is
//! `CONVERSATION/MESSAGE`, so that a later export of the same conversation gives the same ids. A text
//! beyond the limit of a turn is cut and counted. Nothing of a conversation that the user did not
//! choose leaves here, neither as a turn nor as a dead letter, and no text before its redaction.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{
    message::{Account, ChatItem, ChatMessage, Conversation, Skip},
    names::turn_id,
    people::People,
    reader::ChatReader,
    redaction::Redaction,
    routing::{Route, Routing},
};
use crate::{
    config::SourceSettings,
    model::{
        Attachment, Bank, DeadLetter, Deletion, EventTime, MAX_ATTACHMENTS, MAX_TEXT_BYTES, MAX_URL_BYTES, Turn,
        TurnEvent,
    },
    source::{
        SourceError,
        end_mark::end_mark,
        turn_source::{Source, SourceBatch, SourceCounts, SourceProgress},
    },
};

/// What stands at the end of a text that was cut.
const CUT_MARK: &str = " […]";

/// A source of turns.
pub(crate) struct ChatSource {
    reader: Box<dyn ChatReader>,
    routing: Routing,
    people: People,
    redaction: Redaction,
    counts: SourceCounts,
    /// The time of each bank's last message.
    latest: BTreeMap<Bank, EventTime>,
    /// Remaining idle marks, once the end was reached.
    marks: Option<VecDeque<TurnEvent>>,
    /// An error that is returned after what was read before it.
    failed: Option<SourceError>,
}

impl ChatSource {
    /// Makes a source of a reader. `format` is the name of its format.
    ///
    /// # Errors
    /// [`SourceError`] when a setting that all platforms share is invalid.
    pub(crate) fn open(
        reader: Box<dyn ChatReader>,
        settings: &SourceSettings,
        format: &str,
    ) -> Result<Self, SourceError> {
        Ok(Self {
            reader,
            routing: Routing::new(settings, format)?,
            people: People::open(settings.aliases.as_deref())?,
            redaction: Redaction::new(&settings.redact)?,
            counts: SourceCounts::default(),
            latest: BTreeMap::new(),
            marks: None,
            failed: None,
        })
    }

    fn take(&mut self, item: ChatItem, batch: &mut SourceBatch) -> Result<(), SourceError> {
        match item {
            ChatItem::Message(message) => self.message(*message, batch)?,
            ChatItem::Deletion { conversation, id, version } => {
                if let Some((bank, _)) = self.place(&conversation)? {
                    let turn = turn_id(&conversation.id, &id);
                    let version = version.unwrap_or(u64::MAX);
                    batch.events.push(TurnEvent::Deletion(Deletion { bank, turn, version }));
                }
            }
            ChatItem::Skip(skip) => self.skip(skip.name()),
            ChatItem::Reject { conversation, letter } => {
                let is_chosen = match &conversation {
                    Some(conversation) => self.place(conversation)?.is_some(),
                    None => true,
                };
                if is_chosen {
                    batch.rejects.push(self.redacted(letter));
                }
            }
        }
        Ok(())
    }

    fn message(&mut self, message: ChatMessage, batch: &mut SourceBatch) -> Result<(), SourceError> {
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
            turn: turn_id(conversation, &message.id),
            version: message.version,
            speaker,
            text,
            time: message.time,
            session,
            thread: message.thread.map(|thread| turn_id(conversation, &thread)),
            reply_to: message.reply_to.map(|reply_to| turn_id(conversation, &reply_to)),
            attachments,
        };
        if turn.text.trim().is_empty() && turn.captions().next().is_none() {
            self.skip(Skip::Empty.name());
            return Ok(());
        }
        if let Err(reason) = turn.check() {
            let payload = serde_json::to_vec(&turn).unwrap_or_default();
            let origin = format!("{}: {}", self.reader.describe(), turn.turn);
            batch.rejects.push(DeadLetter::new(origin, reason.to_string(), &payload));
            return Ok(());
        }
        let time = turn.time;
        match self.latest.get_mut(&turn.bank) {
            Some(latest) => *latest = time.max(*latest),
            None => {
                self.latest.insert(turn.bank.clone(), time);
            }
        }
        batch.events.push(TurnEvent::Turn(turn));
        Ok(())
    }

    /// The bank and session of a conversation; none where it is left out, which is counted.
    fn place(&mut self, conversation: &Arc<Conversation>) -> Result<Option<(Bank, Option<String>)>, SourceError> {
        let route = self.routing.route(conversation)?;
        match &*route {
            Route::To { bank, session } => Ok(Some((bank.clone(), session.clone()))),
            Route::LeftOut(reason) => {
                self.skip(reason);
                Ok(None)
            }
        }
    }

    /// A text in which the mentioned accounts have their names in this bank.
    fn rename(&mut self, bank: &Bank, mut text: String, mentions: &[Account]) -> String {
        for account in mentions {
            let name = self.people.name(bank, account);
            if name != account.name && !account.name.is_empty() {
                text = replace_name(&text, &account.name, name);
            }
        }
        text
    }

    /// A text without what must not be stored, and within `room` bytes.
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
        // A picture inside an export may stand in its own address; the caption still says what it was.
        drop(attachment.url.take_if(|url| url.len() > MAX_URL_BYTES));
    }

    fn redacted(&mut self, mut letter: DeadLetter) -> DeadLetter {
        letter.payload = self.redaction.apply(&letter.payload, &mut self.counts.redacted).into_owned();
        letter
    }

    fn skip(&mut self, reason: &'static str) {
        *self.counts.skipped.entry(reason).or_default() += 1;
    }

    /// At the end: the idle marks, and what the user should know.
    fn end(&mut self) -> VecDeque<TurnEvent> {
        for name in self.routing.unknown() {
            self.counts.warnings.push(format!("source.only: {name:?} names no conversation that has a message"));
        }
        self.latest.iter().map(|(bank, last)| end_mark(bank, *last)).collect()
    }
}

impl Source for ChatSource {
    fn next(&mut self, limit: usize) -> Result<Option<SourceBatch>, SourceError> {
        let mut batch = SourceBatch::default();
        while batch.events.len() + batch.rejects.len() < limit.max(1) {
            if let Some(marks) = &mut self.marks {
                match marks.pop_front() {
                    Some(mark) => batch.events.push(mark),
                    None => break,
                }
                continue;
            }
            if self.failed.is_some() {
                break;
            }
            let read = match self.reader.next() {
                Ok(Some(item)) => self.take(item, &mut batch),
                Ok(None) => {
                    self.marks = Some(self.end());
                    Ok(())
                }
                Err(error) => Err(error),
            };
            self.failed = read.err();
        }
        if !(batch.events.is_empty() && batch.rejects.is_empty()) {
            return Ok(Some(batch));
        }
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    fn describe(&self) -> String {
        self.reader.describe()
    }

    fn counts(&self) -> SourceCounts {
        self.counts.clone()
    }

    fn progress(&self) -> SourceProgress {
        self.reader.progress()
    }

    fn notice(&self) -> Option<String> {
        self.reader.notice()
    }
}

/// A text's beginning in at most `room` bytes, up to a space where one is near, with a mark.
fn cut(text: &str, room: usize) -> String {
    let Some(kept) = room.checked_sub(CUT_MARK.len()) else { return String::new() };
    let start = text.get(..text.floor_char_boundary(kept)).unwrap_or_default();
    let near = start.floor_char_boundary(start.len().saturating_sub(200));
    let end = start.get(near..).and_then(|tail| tail.rfind(char::is_whitespace)).map_or(start.len(), |at| near + at);
    format!("{}{CUT_MARK}", start.get(..end).unwrap_or(start))
}

/// Replaces a name where it stands as a whole: `Ann`, and not the beginning of `Anna`.
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
    use crate::{model::Bank, source::chat::Privacy, source::tests::drain};

    /// A reader that returns these items, and then an error if there is one.
    struct Script(VecDeque<ChatItem>, Option<SourceError>);

    impl ChatReader for Script {
        fn next(&mut self) -> Result<Option<ChatItem>, SourceError> {
            match self.0.pop_front() {
                Some(item) => Ok(Some(item)),
                None => self.1.take().map_or(Ok(None), Err),
            }
        }
        fn describe(&self) -> String {
            "a script".to_owned()
        }
        fn progress(&self) -> SourceProgress {
            SourceProgress { done: 0, total: None, unit: "bytes" }
        }
    }

    fn conversation(id: &str, name: &str, privacy: Privacy) -> Arc<Conversation> {
        Arc::new(Conversation { workspace: None, id: id.to_owned(), name: name.to_owned(), privacy })
    }

    fn account(id: &str, name: &str) -> Account {
        Account { id: id.to_owned(), name: name.to_owned(), handle: None, bot: id.starts_with('B') }
    }

    fn message(conversation: &Arc<Conversation>, id: &str, author: Account, text: &str) -> ChatMessage {
        ChatMessage {
            conversation: conversation.clone(),
            id: id.to_owned(),
            version: 0,
            author,
            text: text.to_owned(),
            time: EventTime::parse("2024-05-01T10:00:00Z").unwrap(),
            thread: None,
            reply_to: None,
            attachments: Vec::new(),
            mentions: Vec::new(),
        }
    }

    fn said(conversation: &Arc<Conversation>, id: &str, text: &str) -> ChatItem {
        ChatItem::Message(Box::new(message(conversation, id, account("U1", "Ann"), text)))
    }

    fn read(items: Vec<ChatItem>, change: impl Fn(&mut SourceSettings)) -> (SourceBatch, SourceCounts) {
        let mut settings = SourceSettings { bank: "b".to_owned(), ..SourceSettings::new("slack", "x") };
        change(&mut settings);
        let reader = Box::new(Script(items.into(), None));
        let mut source = ChatSource::open(reader, &settings, "slack").unwrap();
        let batch = drain(&mut source, 2);
        (batch, source.counts())
    }

    fn turns(batch: &SourceBatch) -> Vec<&Turn> {
        batch.events.iter().filter_map(|e| if let TurnEvent::Turn(turn) = e { Some(turn) } else { None }).collect()
    }

    #[test]
    fn a_message_becomes_a_turn_of_its_conversation() {
        let general = conversation("C1", "general", Privacy::Open);
        let mut reply = message(&general, "2", account("B2", "Builder"), "done");
        (reply.thread, reply.reply_to, reply.version) = (Some("1".to_owned()), Some("1".to_owned()), 7);
        let items = vec![
            said(&general, "1", "hello"),
            ChatItem::Message(Box::new(reply)),
            ChatItem::Skip(Skip::ServiceMessage),
            ChatItem::Deletion { conversation: general.clone(), id: "3".to_owned(), version: None },
            said(&general, "4", " "),
        ];
        let (batch, counts) = read(items, |_| ());
        let [first, second] = turns(&batch)[..] else { panic!("{batch:?}") };
        assert_eq!((first.turn.as_str(), first.speaker.as_str(), first.text.as_str()), ("C1/1", "Ann", "hello"));
        assert_eq!(first.session.as_deref(), Some("general"));
        assert_eq!(
            (second.thread.as_deref(), second.reply_to.as_deref(), second.version),
            (Some("C1/1"), Some("C1/1"), 7)
        );
        let bank = Bank::parse("b").unwrap();
        let deletion = Deletion { bank: bank.clone(), turn: "C1/3".to_owned(), version: u64::MAX };
        assert_eq!(batch.events[2], TurnEvent::Deletion(deletion));
        assert_eq!(batch.events[3], end_mark(&bank, first.time));
        assert_eq!(batch.events.len(), 4);
        assert_eq!(counts.skipped, BTreeMap::from([("empty", 1), ("service message", 1)]));
        assert_eq!(counts.bots.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["Builder"]);
    }

    #[test]
    fn nothing_of_a_private_conversation_gets_out() {
        let board = conversation("G1", "board", Privacy::Private);
        let letter = DeadLetter::new("f:1".to_owned(), "bad".to_owned(), b"the plan of a@b.example");
        let items = || {
            vec![
                said(&board, "1", "the plan"),
                ChatItem::Deletion { conversation: board.clone(), id: "2".to_owned(), version: Some(5) },
                ChatItem::Reject { conversation: Some(board.clone()), letter: letter.clone() },
            ]
        };
        let (batch, counts) = read(items(), |_| ());
        assert_eq!(batch, SourceBatch::default());
        assert_eq!(counts.skipped, BTreeMap::from([("private channel", 3)]));
        let (batch, _) = read(items(), |s| s.only = vec!["board".to_owned()]);
        assert_eq!((batch.events.len(), batch.rejects.len()), (3, 1));
        let (batch, counts) = read(items(), |s| {
            s.only = vec!["board".to_owned(), "bored".to_owned()];
            s.redact = vec!["secrets".to_owned()];
        });
        assert_eq!(batch.rejects[0].payload, "the plan of [address]");
        assert_eq!(counts.warnings, ["source.only: \"bored\" names no conversation that has a message"]);
    }

    #[test]
    fn texts_are_redacted_and_cut_with_a_count() {
        let general = conversation("C1", "general", Privacy::Open);
        let mut long = message(&general, "2", account("U1", "Ann"), &"wörter ".repeat(20_000));
        let caption = Some(format!("a@b.example {}", "x".repeat(70_000)));
        let url = Some("https://x.example/?to=a@b.example".to_owned());
        long.attachments = vec![Attachment { kind: None, caption: caption.clone(), url }; 2];
        let items = vec![said(&general, "1", "write to a@b.example"), ChatItem::Message(Box::new(long))];
        let (batch, counts) = read(items, |s| s.redact = vec!["secrets".to_owned()]);
        let [first, second] = turns(&batch)[..] else { panic!("{:?}", batch.rejects) };
        assert_eq!(first.text, "write to [address]");
        assert!(second.text.ends_with("wörter […]"), "{}", &second.text[second.text.len() - 20..]);
        assert_eq!(second.attachments[0].url.as_deref(), Some("https://x.example/?to=[address]"));
        second.check().unwrap();
        assert_eq!((counts.cut, counts.redacted), (3, BTreeMap::from([("[address]", 5)])));
    }

    #[test]
    fn mentions_have_the_names_of_the_bank() {
        let general = conversation("C1", "general", Privacy::Open);
        let mut first = message(&general, "1", account("U1", "Ann"), "@Ann asks @Ann and Anna, @Bo");
        first.mentions = vec![account("U9", "Bo")];
        let mut second = message(&general, "2", account("U2", "Ann"), "I am @Ann");
        second.mentions = vec![account("U2", "Ann")];
        let aliases = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(aliases.path(), "U9 = \"Robert\"").unwrap();
        let items = [first, second].into_iter().map(|m| ChatItem::Message(Box::new(m))).collect();
        let (batch, _) = read(items, |s| s.aliases = Some(aliases.path().to_owned()));
        let texts: Vec<&str> = turns(&batch).iter().map(|t| t.text.as_str()).collect();
        assert_eq!(texts, ["@Ann asks @Ann and Anna, @Robert", "I am @Ann (U2)"]);
        assert_eq!(replace_name("Ann, Anna, JoAnn @Ann!", "Ann", "Bo"), "Bo, Anna, JoAnn @Bo!");
    }

    #[test]
    fn what_was_read_before_an_error_is_returned_first() {
        let general = conversation("C1", "general", Privacy::Open);
        let failed = SourceError::Settings { key: "path", problem: "gone".to_owned() };
        let reader = Box::new(Script(vec![said(&general, "1", "hello")].into(), Some(failed)));
        let settings = SourceSettings { bank: "b".to_owned(), ..SourceSettings::new("slack", "x") };
        let mut source = ChatSource::open(reader, &settings, "slack").unwrap();
        assert_eq!(source.next(10).unwrap().unwrap().events.len(), 1);
        assert!(source.next(10).unwrap_err().to_string().contains("gone"));
    }
}
