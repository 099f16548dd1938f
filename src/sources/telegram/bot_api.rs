//! Converts a message of Telegram's Bot API into the form that Telegram Desktop exports.
//!
//! In: a message of an update. Out: a chat item with the same ids, chat and words as [`TelegramChat`] produces for the
//! same message in an export. Message ids of supergroups and channels are the same for everybody. Those of small groups
//! and private chats differ between accounts, so there a bot's messages become different turns than the messages in a
//! person's export.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    message::{TelegramChat, TelegramChatHead},
    message_text::{integer, text_field},
};
use crate::{
    chat::{ChatItem, Conversation, LIST, NUMBER, OBJECT, RecordForm, TEXT, TRUTH, UnreadCounts},
    zone::Zone,
};

/// In the Bot API, the id of a supergroup or channel is this number minus the id in an export.
const CHANNEL_SHIFT: i64 = -1_000_000_000_000;
/// Replaces a file's path, because the file stays on Telegram's servers. Its form shows that it is not a path.
const NOT_HERE: &str = "(File not included. Change data exporting settings to download.)";
/// The fields of messages with words or shared things; a message with none of them is a notice.
const CONTENT: [&str; 20] = [
    "text",
    "rich_message",
    "caption",
    "photo",
    "document",
    "video",
    "animation",
    "audio",
    "voice",
    "video_note",
    "sticker",
    "contact",
    "location",
    "venue",
    "poll",
    "game",
    "invoice",
    "paid_media",
    "checklist",
    "giveaway",
];

/// The notices of the platform: a message with one of these fields says what happened in the chat.
const NOTICES: [&str; 52] = [
    "new_chat_members",
    "new_chat_member",
    "new_chat_participant",
    "left_chat_member",
    "left_chat_participant",
    "new_chat_title",
    "new_chat_photo",
    "delete_chat_photo",
    "group_chat_created",
    "supergroup_chat_created",
    "channel_chat_created",
    "message_auto_delete_timer_changed",
    "migrate_to_chat_id",
    "migrate_from_chat_id",
    "pinned_message",
    "successful_payment",
    "refunded_payment",
    "users_shared",
    "user_shared",
    "chat_shared",
    "gift",
    "unique_gift",
    "gift_upgrade_sent",
    "connected_website",
    "write_access_allowed",
    "passport_data",
    "proximity_alert_triggered",
    "boost_added",
    "chat_background_set",
    "checklist_tasks_done",
    "checklist_tasks_added",
    "direct_message_price_changed",
    "forum_topic_created",
    "forum_topic_edited",
    "forum_topic_closed",
    "forum_topic_reopened",
    "general_forum_topic_hidden",
    "general_forum_topic_unhidden",
    "giveaway_created",
    "giveaway_winners",
    "giveaway_completed",
    "paid_message_price_changed",
    "suggested_post_approved",
    "suggested_post_approval_failed",
    "suggested_post_declined",
    "suggested_post_paid",
    "suggested_post_refunded",
    "video_chat_scheduled",
    "video_chat_started",
    "video_chat_ended",
    "video_chat_participants_invited",
    "web_app_data",
];
/// The fields of an API may hold any kind of value.
const ANY: u8 = TEXT | NUMBER | TRUTH | OBJECT | LIST;
/// The fields of a message.
const FORM: RecordForm = RecordForm {
    needed: &[],
    other: &[
        ("text", ANY),
        ("caption", ANY),
        ("rich_message", ANY),
        ("document/file_name", ANY),
        ("video/file_name", ANY),
        ("animation/file_name", ANY),
        ("audio/file_name", ANY),
        ("audio/performer", ANY),
        ("audio/title", ANY),
        ("voice/duration", ANY),
        ("video_note/duration", ANY),
        ("sticker/emoji", ANY),
        ("contact", ANY),
        ("venue", ANY),
        ("poll/question", ANY),
        ("poll/options[]/text", ANY),
        ("game/title", ANY),
        ("game/description", ANY),
        ("invoice/title", ANY),
        ("invoice/description", ANY),
        ("checklist/title", ANY),
        ("checklist/tasks", ANY),
        ("giveaway", ANY),
    ],
    known: &[
        "from",
        "sender_chat",
        "sender_business_bot",
        "chat",
        "forward_origin",
        "forward_from",
        "forward_from_chat",
        "forward_signature",
        "forward_sender_name",
        "reply_to_message",
        "external_reply",
        "quote",
        "reply_to_story",
        "story",
        "via_bot",
        "author_signature",
        "link_preview_options",
        "entities",
        "caption_entities",
        "reply_markup",
        "direct_messages_topic",
        "suggested_post_info",
        "dice",
        "photo",
        "location",
        "paid_media",
        "game/photo",
        "game/text",
        "game/text_entities",
        "game/animation",
        "contact/vcard",
        "poll/explanation_entities",
        "poll/question_entities",
        "invoice/start_parameter",
        "invoice/currency",
        "giveaway/chats",
        "giveaway/country_codes",
        "sticker/set_name",
        "sticker/mask_position",
        "sender_tag",
        "**/thumbnail",
        "**/thumb",
        "**/text_entities",
        "**/title_entities",
        "**/completed_by_user",
        "**/cover",
        "**/qualities",
        "**/premium_animation",
        "**/vcard",
        "**/foursquare_type",
        "**/google_place_type",
    ],
    remedy: "report it",
};

/// The item of a message, new or edited.
///
/// # Errors
/// The conversation, if it is known, and why the message cannot be read.
pub(crate) fn bot_item(
    message: &Value,
    zone: &Zone,
    unread: &mut UnreadCounts,
) -> Result<ChatItem, (Option<Arc<Conversation>>, String)> {
    let Some(head) = message.get("chat").and_then(head) else {
        return Err((None, "chat: missing or without an id; every message has a chat".to_owned()));
    };
    let odd = FORM.check(&mut message.clone()).unwrap_or_default();
    let exported = exported(message, odd.without_words().is_some());
    let mut chat = TelegramChat::new(&head, false, &exported, zone.clone());
    let topic = integer(message, "message_thread_id").filter(|_| is_true(message, "is_topic_message"));
    if let Some(topic) = topic {
        chat.in_topic(topic, integer(&exported, "reply_to_message_id"));
    }
    match chat.item(&exported).and_then(|item| odd.judge(item, unread)) {
        Ok(ChatItem::Message(mut said)) => {
            said.author.bot = message.get("from").is_some_and(|from| is_true(from, "is_bot"));
            Ok(ChatItem::Message(said))
        }
        Ok(other) => Ok(other),
        Err(reason) => Err((Some(Arc::clone(chat.conversation())), reason)),
    }
}

/// The chat, as the head of an export describes it.
fn head(chat: &Value) -> Option<TelegramChatHead> {
    let id = integer(chat, "id")?;
    let is_public = text_field(chat, "username").is_some();
    let (kind, id) = match text_field(chat, "type")? {
        "private" => ("personal_chat", id),
        "group" => ("private_group", id.checked_neg()?),
        "supergroup" if is_public => ("public_supergroup", CHANNEL_SHIFT.checked_sub(id)?),
        "supergroup" => ("private_supergroup", CHANNEL_SHIFT.checked_sub(id)?),
        "channel" if is_public => ("public_channel", CHANNEL_SHIFT.checked_sub(id)?),
        _ => ("private_channel", CHANNEL_SHIFT.checked_sub(id)?),
    };
    Some(TelegramChatHead { name: name_of(chat), kind: Some(kind.to_owned()), id: Some(id) })
}

/// The title of a chat, or the name of a person.
fn name_of(who: &Value) -> Option<String> {
    let person: Vec<&str> =
        [text_field(who, "first_name"), text_field(who, "last_name")].into_iter().flatten().collect();
    text_field(who, "title").map(str::to_owned).or_else(|| Some(person.join(" ")).filter(|name| !name.is_empty()))
}

/// The message in the form of an export. If it has only unknown fields with words, it is a message, not a notice.
fn exported(message: &Value, has_others: bool) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            out.insert(key.to_owned(), value);
        }
    };
    let has = |keys: &[&str]| keys.iter().any(|key| message.get(key).is_some());
    let is_said = has(&CONTENT) || has_others && !has(&NOTICES);
    put("type", Some(if is_said { "message" } else { "service" }.into()));
    put("id", message.get("message_id").cloned());
    put("date_unixtime", message.get("date").cloned());
    put("edited_unixtime", message.get("edit_date").cloned());
    // A message sent on behalf of a chat, such as by a channel or an anonymous admin, is attributed to that chat.
    let speaking_chat = message.get("sender_chat");
    put("from", speaking_chat.or_else(|| message.get("from")).and_then(name_of).map(Value::from));
    let chat_id = |chat: &Value| {
        let TelegramChatHead { kind, id, .. } = head(chat)?;
        let kind = if kind.as_deref() == Some("private_group") { "chat" } else { "channel" };
        Some(format!("{kind}{}", id?))
    };
    let user_id = |user: &Value| Some(format!("user{}", integer(user, "id")?));
    let speaker = match (speaking_chat, message.get("from")) {
        (Some(chat), _) => chat_id(chat),
        (None, user) => user.and_then(user_id),
    };
    put("from_id", speaker.map(Value::from));
    let (origin, account) = forwarded_from(message);
    // Only deleted accounts have no name.
    put("forwarded_from_id", account.filter(|_| origin.is_none()).and_then(user_id).map(Value::from));
    put("forwarded_from", origin.map(Value::from));
    put("text", Some(words(message)));
    put("rich_message", message.get("rich_message").cloned());
    let reply = message.get("reply_to_message").and_then(|reply| integer(reply, "message_id"));
    // A message in a topic answers the topic's first message if it answers no other.
    let topic = integer(message, "message_thread_id").filter(|_| is_true(message, "is_topic_message"));
    put("reply_to_message_id", reply.or(topic).map(Value::from));
    share(message, &mut put);
    Value::Object(out)
}

/// The text or caption of a message, split into pieces as in an export.
fn words(message: &Value) -> Value {
    let (text, entities) = match message.get("text").and_then(Value::as_str) {
        Some(text) => (text, message.get("entities")),
        None => (message.get("caption").and_then(Value::as_str).unwrap_or_default(), message.get("caption_entities")),
    };
    // Entity offsets count UTF-16 units.
    let units: Vec<u16> = text.encode_utf16().collect();
    let slice = |from: usize, to: usize| String::from_utf16_lossy(units.get(from..to).unwrap_or_default());
    let mut pieces = Vec::new();
    let mut done = 0;
    for entity in entities.and_then(Value::as_array).into_iter().flatten() {
        let place = |name| integer(entity, name).and_then(|number| usize::try_from(number).ok());
        let (Some(offset), Some(length), Some(url)) = (place("offset"), place("length"), text_field(entity, "url"))
        else {
            continue;
        };
        let end = offset.saturating_add(length);
        if text_field(entity, "type") != Some("text_link") || offset < done || end > units.len() {
            continue;
        }
        pieces.push(Value::from(slice(done, offset)));
        pieces.push(json!({ "type": "text_link", "text": slice(offset, end), "href": url }));
        done = end;
    }
    if pieces.is_empty() {
        return text.into();
    }
    pieces.push(slice(done, units.len()).into());
    Value::Array(pieces)
}

/// The name of the forwarded message's author, and the account or chat, as far as they are stated.
fn forwarded_from(message: &Value) -> (Option<String>, Option<&Value>) {
    let origin = message.get("forward_origin");
    let of = |key: &str| origin.and_then(|origin| origin.get(key)).or_else(|| message.get(key));
    if origin.is_none() && message.get("forward_date").is_none() {
        return (None, None);
    }
    let told = ["sender_user", "sender_chat", "chat"].iter().find_map(|key| origin?.get(key));
    let account = told.or_else(|| ["forward_from", "forward_from_chat"].iter().find_map(|key| of(key)));
    let hidden = ["sender_user_name", "forward_sender_name"].into_iter().find_map(|key| of(key)?.as_str());
    (hidden.map(str::to_owned).or_else(|| account.and_then(name_of)), account)
}

/// Adds what is shared, as in an export without files.
fn share(message: &Value, put: &mut dyn FnMut(&str, Option<Value>)) {
    let of = |object: &str, key: &str| message.get(object).and_then(|object| object.get(key)).cloned();
    let not_here = || Some(Value::from(NOT_HERE));
    if message.get("photo").is_some() {
        put("photo", not_here());
    }
    // An animation is also sent as a document, so it is checked first.
    let files = [
        ("animation", "animation"),
        ("video", "video_file"),
        ("audio", "audio_file"),
        ("voice", "voice_message"),
        ("video_note", "video_message"),
        ("sticker", "sticker"),
        ("document", ""),
    ];
    if let Some((key, kind)) = files.into_iter().find(|(key, _)| message.get(key).is_some()) {
        put("file", not_here());
        put("media_type", Some(kind.into()).filter(|_| !kind.is_empty()));
        for name in ["file_name", "mime_type", "performer", "title"] {
            put(name, of(key, name));
        }
        put("sticker_emoji", of("sticker", "emoji"));
    }
    put("contact_information", message.get("contact").cloned());
    put("place_name", of("venue", "title"));
    put("address", of("venue", "address"));
    put("location_information", message.get("location").cloned());
    if let Some(poll) = message.get("poll") {
        put("poll", Some(json!({ "question": poll.get("question"), "answers": poll.get("options") })));
    }
    put("game_title", of("game", "title"));
    put("game_description", of("game", "description"));
    put("invoice_information", message.get("invoice").cloned());
    put("todo_list", message.get("checklist").cloned());
    put("paid_stars_amount", of("paid_media", "star_count"));
    put("giveaway_information", message.get("giveaway").cloned());
}

fn is_true(object: &Value, key: &str) -> bool {
    object.get(key).and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ChatMessage, ConversationPrivacy};

    fn item(message: Value) -> ChatItem {
        bot_item(&message, &Zone::parse("Z").unwrap(), &mut UnreadCounts::default()).unwrap()
    }

    fn said(message: Value) -> ChatMessage {
        match item(message) {
            ChatItem::Message(message) => *message,
            other => panic!("{other:?}"),
        }
    }

    /// A message of a supergroup, with more fields.
    fn message(more: Value) -> Value {
        let mut message = json!({
            "message_id": 9, "date": 1_714_557_600,
            "from": {"id": 5, "is_bot": false, "first_name": "Ann", "last_name": "Bell", "username": "annb"},
            "chat": {"id": -1_000_000_000_077_i64, "type": "supergroup", "title": "Trip"},
        });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        message
    }

    /// The same message as in an export of the group.
    fn exported_twin(more: Value) -> ChatMessage {
        let mut exported = json!({
            "id": 9, "type": "message", "date_unixtime": "1714557600", "from": "Ann Bell", "from_id": "user5",
        });
        exported.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let head = TelegramChatHead {
            name: Some("Trip".to_owned()),
            kind: Some("private_supergroup".to_owned()),
            id: Some(77),
        };
        let mut chat = TelegramChat::new(&head, false, &exported, Zone::parse("Z").unwrap());
        match chat.item(&exported).unwrap() {
            ChatItem::Message(message) => *message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_live_message_is_the_message_of_the_export() {
        for (live, export) in [
            (json!({"text": "hello"}), json!({"text": "hello"})),
            (json!({"text": "hi", "edit_date": 1_714_557_660}), json!({"text": "hi", "edited_unixtime": "1714557660"})),
            (
                json!({"text": "😮 see this", "entities": [
                    {"type": "bold", "offset": 0, "length": 2},
                    {"type": "text_link", "offset": 7, "length": 4, "url": "https://a.example"}]}),
                json!({"text": ["😮 see ", {"type": "text_link", "text": "this", "href": "https://a.example"}]}),
            ),
            (
                json!({"text": "yes", "reply_to_message": {"message_id": 4}}),
                json!({"text": "yes", "reply_to_message_id": 4}),
            ),
            (
                json!({"photo": [{"file_id": "x"}], "caption": "our cat"}),
                json!({"photo": "(File not included. Change data exporting settings to download.)", "text": "our cat"}),
            ),
            (
                json!({"document": {"file_name": "plan.pdf", "mime_type": "application/pdf"}}),
                json!({"file": "(File not included.)", "file_name": "plan.pdf", "mime_type": "application/pdf", "text": ""}),
            ),
            (
                json!({"sticker": {"emoji": "😮"}}),
                json!({"file": "(x)", "media_type": "sticker", "sticker_emoji": "😮", "text": ""}),
            ),
            (
                json!({"poll": {"question": "Where to?", "options": [{"text": "Paris"}, {"text": "Rome"}]}}),
                json!({"poll": {"question": "Where to?", "answers": [{"text": "Paris"}, {"text": "Rome"}]}, "text": ""}),
            ),
            (
                json!({"venue": {"title": "Dock", "address": "Pier 1"}, "location": {"latitude": 1.5, "longitude": 2.5}}),
                json!({"place_name": "Dock", "address": "Pier 1", "text": ""}),
            ),
            (
                json!({"text": "look", "forward_origin": {"type": "hidden_user", "sender_user_name": "Cy"}}),
                json!({"text": "look", "forwarded_from": "Cy"}),
            ),
            (
                json!({"text": "look", "forward_origin": {"type": "channel", "chat": {"id": -1_000_000_000_008_i64, "type": "channel", "title": "News"}}}),
                json!({"text": "look", "forwarded_from": "News"}),
            ),
            (
                json!({"text": "look", "forward_origin": {"type": "user", "sender_user": {"id": 9, "first_name": ""}}}),
                json!({"text": "look", "forwarded_from": null, "forwarded_from_id": "user9"}),
            ),
        ] {
            assert_eq!(said(message(live.clone())), exported_twin(export), "{live}");
        }
    }

    #[test]
    fn a_topic_is_a_thread() {
        let in_topic = said(message(json!({"text": "a", "is_topic_message": true, "message_thread_id": 3,
            "reply_to_message": {"message_id": 3, "forum_topic_created": {"name": "Food"}}})));
        assert_eq!((in_topic.thread.as_deref(), in_topic.reply_to), (Some("3"), None));
        let answer = said(message(json!({"text": "b", "is_topic_message": true, "message_thread_id": 3,
            "reply_to_message": {"message_id": 7}})));
        assert_eq!((answer.thread.as_deref(), answer.reply_to.as_deref()), (Some("3"), Some("7")));
        let plain = said(message(json!({"text": "c", "message_thread_id": 3, "reply_to_message": {"message_id": 3}})));
        assert_eq!((plain.thread, plain.reply_to.as_deref()), (None, Some("3")));
    }

    #[test]
    fn chats_have_the_ids_and_the_privacy_of_an_account() {
        for (chat, id, name, privacy) in [
            (json!({"id": 8, "type": "private", "first_name": "Bo"}), "user8", "Bo", ConversationPrivacy::Direct),
            (json!({"id": -11, "type": "group", "title": "Family"}), "chat11", "Family", ConversationPrivacy::Private),
            (
                json!({"id": -1_001_234_567_890_i64, "type": "channel", "title": "News", "username": "news"}),
                "channel1234567890",
                "News",
                ConversationPrivacy::Open,
            ),
        ] {
            let found = said(message(json!({"text": "a", "chat": chat}))).conversation;
            assert_eq!((found.id.as_str(), found.name.as_str(), found.privacy), (id, name, privacy));
        }
        let small = said(message(json!({"text": "a", "chat": {"id": -11, "type": "group", "title": "Family"}})));
        assert_eq!(small.id, "group9");
    }

    #[test]
    fn whoever_speaks_for_a_chat_is_the_chat_and_bots_are_marked() {
        let channel = json!({"id": -1_000_000_000_008_i64, "type": "channel", "title": "News"});
        let post = said(message(json!({"text": "a", "sender_chat": channel})));
        assert_eq!((post.author.id.as_str(), post.author.name.as_str(), post.author.bot), ("channel8", "News", false));
        let bot = said(message(json!({"text": "a", "from": {"id": 6, "is_bot": true, "first_name": "Helper"}})));
        assert!(bot.author.bot);
    }

    #[test]
    fn notices_are_skipped_and_what_has_no_chat_is_rejected() {
        assert!(matches!(item(message(json!({"new_chat_members": []}))), ChatItem::Skip(_)));
        let zone = Zone::parse("Z").unwrap();
        for broken in [json!(null), json!({"message_id": 1}), json!({"chat": {"id": "x", "type": "group"}})] {
            assert!(bot_item(&broken, &zone, &mut UnreadCounts::default()).is_err(), "{broken}");
        }
        let (conversation, reason) =
            bot_item(&message(json!({"text": "a", "date": null})), &zone, &mut UnreadCounts::default()).unwrap_err();
        assert_eq!(conversation.map(|c| c.id.clone()).as_deref(), Some("channel77"));
        assert!(reason.contains("date"), "{reason}");
    }
}
