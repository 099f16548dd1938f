//! A source of turns, built on a chat platform's reader.
//!
//! In: what the reader finds, and the settings. Out: turn events and dead letters in the reader's order, and for each
//! bank an idle mark after the last. What was read before an error is returned first. A file that does not look like
//! its format and holds nothing of that format is an error, never an empty source.

use std::{collections::VecDeque, path::Path};

use super::{chat_item::ChatItem, chat_reader::ChatReader, turn_maker::TurnMaker};
use crate::{
    SourceError,
    end_mark::end_mark,
    turn_source::{SourceBatch, SourceCounts, SourceProgress, TurnSource},
};
use types::{
    config::SourceSettings,
    model::{IdSalt, TurnEvent},
};

/// A source of turns.
pub(crate) struct ChatSource {
    reader: Box<dyn ChatReader>,
    turns: TurnMaker,
    /// The remaining idle marks, once the end has been reached.
    marks: Option<VecDeque<TurnEvent>>,
    /// An error that is returned once everything read before it has been returned.
    failed: Option<SourceError>,
    /// The error for an export that holds nothing of its format; `None` once the reader has found something.
    nothing: Option<SourceError>,
}

impl ChatSource {
    /// Makes a source from a reader. `format` is the name of its format.
    ///
    /// # Errors
    /// [`SourceError`] when a setting that all platforms share is invalid.
    pub(crate) fn open(
        reader: Box<dyn ChatReader>,
        settings: &SourceSettings,
        format: &str,
    ) -> Result<Self, SourceError> {
        let mut settings = settings.clone();
        if let Some(bank) = reader.default_bank().filter(|_| settings.bank.is_empty()) {
            settings.bank = bank.to_owned();
        }
        if let Some(redact) = reader.default_redaction().filter(|_| settings.redact.is_empty()) {
            settings.redact = vec![redact.to_owned()];
        }
        if reader.chosen().is_some() {
            (settings.only, settings.except) = (Vec::new(), Vec::new());
        }
        Ok(Self { reader, turns: TurnMaker::new(&settings, format)?, marks: None, failed: None, nothing: None })
    }

    /// The source for a file that does not look like its format: it ends with the error `nothing` if the reader finds
    /// no items, or only unsupported ones.
    pub(crate) fn expecting_items(self, nothing: SourceError) -> Self {
        Self { nothing: Some(nothing), ..self }
    }

    /// The same source of an export that contains these archives: they are counted as skipped, and named at the end.
    pub(crate) fn beside_archives(mut self, path: &Path, archives: &[String]) -> Self {
        if !archives.is_empty() {
            *self.turns.counts.skipped.entry("archive").or_default() += archives.len() as u64;
            let (path, names) = (path.display(), first_names(archives));
            let warning = format!("{path}: archives inside it are not opened: {names}; unpack one that holds messages");
            self.turns.counts.warnings.push(warning);
        }
        self
    }

    /// Called at the end: returns the idle marks, and adds warnings that the user should know.
    fn end(&mut self) -> VecDeque<TurnEvent> {
        for (key, name) in self.turns.unknown().into_iter().chain(self.reader.chosen().unwrap_or_default()) {
            let warning = format!("source.{key}: {name:?} names no conversation that has a message");
            self.turns.counts.warnings.push(warning);
        }
        self.turns.latest.iter().map(|(bank, last)| end_mark(bank, *last)).collect()
    }
}

impl TurnSource for ChatSource {
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
                Ok(Some(item)) => {
                    if !matches!(&item, ChatItem::Skip(skip) if skip.is_unsupported()) {
                        self.nothing = None;
                    }
                    let item = self.turns.withheld(item);
                    self.turns.take(item, &self.reader.describe(), &mut batch)
                }
                Ok(None) => {
                    self.marks = Some(self.end());
                    self.nothing.take().map_or(Ok(()), Err)
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

    fn hide_ids(&mut self, salt: IdSalt) {
        self.turns.hide_with(salt);
    }

    fn describe(&self) -> String {
        self.reader.describe()
    }

    fn counts(&self) -> SourceCounts {
        SourceCounts { unread: self.reader.unread(), trimmed: self.reader.trimmed(), ..self.turns.counts.clone() }
    }

    fn progress(&self) -> SourceProgress {
        self.reader.progress()
    }

    fn notice(&self) -> Option<String> {
        self.reader.notice()
    }
}

/// The first names of a list, and how many more there are.
pub(crate) fn first_names(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.get(..SHOWN).unwrap_or(names).join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use super::*;
    use crate::{
        chat::{Account, ChatMessage, Conversation, ConversationPrivacy, SkipReason},
        tests::drain,
    };
    use types::model::{Attachment, Bank, DeadLetter, EventTime, Turn, TurnDeletion};

    /// A reader that returns these items, and then an error if there is one.
    struct ReaderScript(VecDeque<ChatItem>, Option<SourceError>);

    impl ChatReader for ReaderScript {
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

    fn conversation(id: &str, name: &str, privacy: ConversationPrivacy) -> Arc<Conversation> {
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
        let reader = Box::new(ReaderScript(items.into(), None));
        let mut source = ChatSource::open(reader, &settings, "slack").unwrap();
        let batch = drain(&mut source, 2);
        (batch, source.counts())
    }

    fn turns(batch: &SourceBatch) -> Vec<&Turn> {
        batch.events.iter().filter_map(|e| if let TurnEvent::Turn(turn) = e { Some(turn) } else { None }).collect()
    }

    #[test]
    fn a_message_becomes_a_turn_of_its_conversation() {
        let general = conversation("C1", "general", ConversationPrivacy::Open);
        let mut reply = message(&general, "2", account("B2", "Builder"), "done");
        (reply.thread, reply.reply_to, reply.version) = (Some("1".to_owned()), Some("1".to_owned()), 7);
        let items = vec![
            said(&general, "1", "hello"),
            ChatItem::Message(Box::new(reply)),
            ChatItem::Skip(SkipReason::ServiceMessage),
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
        let deletion = TurnDeletion { bank: bank.clone(), turn: "C1/3".to_owned(), version: u64::MAX };
        assert_eq!(batch.events[2], TurnEvent::Deletion(deletion));
        assert_eq!(batch.events[3], end_mark(&bank, first.time));
        assert_eq!(batch.events.len(), 4);
        assert_eq!(counts.skipped, BTreeMap::from([("empty", 1), ("service message", 1)]));
        assert_eq!(counts.bots.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["Builder"]);
    }

    #[test]
    fn ids_with_numbers_are_hidden_and_letters_name_their_bank() {
        let chat = conversation("+49 170 1234567", "+49 170 1234567", ConversationPrivacy::Open);
        let mut reply =
            message(&chat, "2024-05-01T10:00/\u{202a}+49\u{a0}170\u{a0}1234567\u{202c}", account("U1", "Ann"), "hi");
        (reply.thread, reply.reply_to) = (Some("1".to_owned()), Some("2".to_owned()));
        let reject = |conversation| {
            let letter = DeadLetter::new("f:1".to_owned(), "no time".to_owned(), b"{}");
            ChatItem::Reject { conversation, letter }
        };
        let items = || {
            let deletion = ChatItem::Deletion { conversation: chat.clone(), id: "2".to_owned(), version: None };
            vec![ChatItem::Message(Box::new(reply.clone())), deletion, reject(Some(chat.clone())), reject(None)]
        };
        let (batch, _) = read(items(), |s| {
            s.include =
                vec![types::config::PrivateConversationKind::Private, types::config::PrivateConversationKind::Direct]
        });
        let [turn] = turns(&batch)[..] else { panic!("{batch:?}") };
        let names = [Some(&turn.turn), turn.session.as_ref(), turn.thread.as_ref(), turn.reply_to.as_ref()];
        assert!(names.iter().all(|name| name.is_some_and(|name| types::model::is_hidden(name))), "{names:?}");
        let TurnEvent::Deletion(deletion) = &batch.events[1] else { panic!("{batch:?}") };
        assert_eq!(Some(&deletion.turn), turn.reply_to.as_ref(), "the same id each time");
        assert!(!serde_json::to_string(&batch.events).unwrap().contains("1234567"));
        assert!(batch.rejects.iter().all(|letter| letter.bank == Bank::parse("b").ok()), "{:?}", batch.rejects);
        // With the salt of a memory, the ids are that memory's.
        let settings = SourceSettings { bank: "b".to_owned(), ..SourceSettings::new("slack", "x") };
        let mut source = ChatSource::open(Box::new(ReaderScript(items().into(), None)), &settings, "slack").unwrap();
        source.hide_ids(IdSalt::new([1; 32]));
        assert_ne!(turns(&drain(&mut source, 2))[0].turn, turn.turn);
    }

    #[test]
    fn nothing_of_a_private_conversation_gets_out() {
        let board = conversation("G1", "board", ConversationPrivacy::Private);
        let reason = "\"a@b.example\" is no time".to_owned();
        let letter = DeadLetter::new("f:1".to_owned(), reason, b"the plan of a@b.example");
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
        assert_eq!(batch.rejects[0].reason, "\"[address]\" is no time");
        assert_eq!(counts.warnings, ["source.only: \"bored\" names no conversation that has a message"]);
        let (batch, counts) = read(items(), |s| {
            s.include = vec![types::config::PrivateConversationKind::Private];
            s.except = vec!["Bored".to_owned(), "#Board".to_owned()];
        });
        assert_eq!(batch, SourceBatch::default());
        assert_eq!(counts.warnings, ["source.except: \"Bored\" names no conversation that has a message"]);
    }

    #[test]
    fn a_record_of_an_unknown_conversation_is_withheld_where_anything_is_left_out() {
        let reason = r#"invalid type: string "the \"plan\"", expected struct Post; write it again"#;
        let items = || {
            let letter = DeadLetter::new("f:1".to_owned(), reason.to_owned(), b"the plan");
            vec![ChatItem::Reject { conversation: None, letter }]
        };
        let all = [types::config::PrivateConversationKind::Private, types::config::PrivateConversationKind::Direct];
        for (include, only, is_told) in [(&all[..], "", true), (&all[1..], "", false), (&all[..], "general", false)] {
            let (batch, _) = read(items(), |s| {
                s.include = include.to_vec();
                s.only = Some(only.to_owned()).filter(|only| !only.is_empty()).into_iter().collect();
            });
            let [letter] = &batch.rejects[..] else { panic!("{batch:?}") };
            assert_eq!(letter.origin, "f:1");
            assert_eq!((letter.payload == "the plan", letter.payload.is_empty()), (is_told, !is_told));
            if !is_told {
                let start = r#"invalid type: string "…", expected struct Post; write it again; the record is withheld"#;
                assert!(letter.reason.starts_with(start) && !letter.reason.contains("plan"), "{}", letter.reason);
            }
        }
    }

    #[test]
    fn texts_are_redacted_and_cut_with_a_count() {
        let general = conversation("C1", "general", ConversationPrivacy::Open);
        let mut long = message(&general, "2", account("U1", "Ann"), &"wörter ".repeat(200_000));
        let caption = Some(format!("a@b.example {}", "x".repeat(700_000)));
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
        let general = conversation("C1", "general", ConversationPrivacy::Open);
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
    }

    #[test]
    fn what_was_read_before_an_error_is_returned_first() {
        let general = conversation("C1", "general", ConversationPrivacy::Open);
        let failed = SourceError::Settings { key: "path", problem: "gone".to_owned() };
        let reader = Box::new(ReaderScript(vec![said(&general, "1", "hello")].into(), Some(failed)));
        let settings = SourceSettings { bank: "b".to_owned(), ..SourceSettings::new("slack", "x") };
        let mut source = ChatSource::open(reader, &settings, "slack").unwrap();
        assert_eq!(source.next(10).unwrap().unwrap().events.len(), 1);
        assert!(source.next(10).unwrap_err().to_string().contains("gone"));
    }
}
