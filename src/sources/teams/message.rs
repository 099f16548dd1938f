//! Reads a message of Microsoft Graph, in either way of writing names.
//!
//! In: a JSON object with names in camelCase or in PascalCase. Out: its fields by their names in Graph's documentation.
//! Times may be in ISO 8601 or in the form that PowerShell 5 writes.

use jiff::civil::DateTime;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    chat::{Account, LIST, NUMBER, OBJECT, RecordForm, TEXT},
    zone::Zone,
};
use types::model::EventTime;

/// The fields of a message. Below its depth limit, PowerShell writes values as text.
pub(super) const FORM: RecordForm = RecordForm {
    needed: &[
        ("id", TEXT | NUMBER),
        ("replyToId", TEXT | NUMBER),
        ("messageType", TEXT | NUMBER),
        ("from", OBJECT | TEXT),
        ("from/user", OBJECT),
        ("from/user/displayName", TEXT),
        ("from/user/id", TEXT),
        ("from/application", OBJECT),
        ("from/application/displayName", TEXT),
        ("from/device", OBJECT),
        ("body", OBJECT),
        ("body/content", TEXT),
        ("chatId", TEXT),
        ("channelIdentity", OBJECT),
        ("channelIdentity/channelId", TEXT),
        ("subject", TEXT),
        ("deletedDateTime", TEXT | OBJECT),
        ("lastEditedDateTime", TEXT | OBJECT),
    ],
    other: &[
        ("body/contentType", TEXT | NUMBER),
        ("attachments", LIST | OBJECT),
        ("attachments[]", OBJECT),
        ("attachments[]/name", TEXT),
        ("attachments[]/contentType", TEXT),
        ("attachments[]/content", TEXT | OBJECT),
        ("attachments[]/contentUrl", TEXT),
        ("mentions", LIST | OBJECT),
        ("mentions[]", OBJECT),
        ("mentions[]/mentionText", TEXT),
        ("mentions[]/mentioned", OBJECT),
        ("mentions[]/mentioned/user", OBJECT),
        ("eventDetail", OBJECT),
        ("replies", OBJECT | LIST),
    ],
    known: &[
        "eventDetail",
        "replies",
        "importance",
        "webUrl",
        "etag",
        "chatId",
        "policyViolation",
        "reactions",
        "messageHistory",
        "from/application",
        "from/device",
        "from/conversation",
        "from/user/userIdentityType",
        "from/user/tenantId",
        "channelIdentity",
        "locale",
        "mentions[]/mentioned",
        "mentions[]/mentionText",
        "attachments[]/thumbnailUrl",
        "attachments[]/teamsAppId",
        "attachments[]/content",
        "attachments[]/contentType",
        "onBehalfOf",
        "summary",
        "hostedContents",
        "from/user/additionalData",
        "from/additionalData",
        "additionalData",
        "backingStore",
        "**/backingStore",
        "**/additionalData",
        "**/odataType",
        "**/@odata.type",
        "**/@odata.context",
        "**/replies@odata.context",
        "**/hostedContents@odata.context",
    ],
    remedy: "export it again; in PowerShell, give ConvertTo-Json a -Depth of 10 or more",
};

/// The replies inside a post: a list, an object with the list under `value`, or a single reply.
pub(super) const REPLIES: RecordForm = RecordForm {
    needed: &[
        ("replies", OBJECT | LIST),
        ("replies[]", OBJECT),
        ("replies/value", OBJECT | LIST),
        ("replies/value[]", OBJECT),
    ],
    other: &[],
    known: FORM.known,
    remedy: FORM.remedy,
};

/// What .NET writes for no date, as text and in PowerShell's form.
const NO_DATE: [&str; 2] = ["0001-01-01", "/Date(-62135"];

/// An object whose keys begin in lower or in upper case.
#[derive(Clone, Copy)]
pub(super) struct TeamsObject<'a>(pub(super) &'a Value);

impl<'a> TeamsObject<'a> {
    /// A value by its name in camelCase; `None` if it is null.
    pub(super) fn get(self, key: &str) -> Option<&'a Value> {
        let object = self.0.as_object()?;
        let value = object.get(key).or_else(|| {
            let mut letters = key.chars();
            let first = letters.next()?.to_ascii_uppercase();
            object.get(&format!("{first}{}", letters.as_str()))
        })?;
        (!value.is_null()).then_some(value)
    }

    /// A text that is not blank.
    pub(super) fn text(self, key: &str) -> Option<&'a str> {
        self.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    pub(super) fn object(self, key: &str) -> Option<TeamsObject<'a>> {
        self.get(key).filter(|value| value.is_object()).map(TeamsObject)
    }

    /// The objects of a list; PowerShell writes a list of one as the object itself.
    pub(super) fn list(self, key: &str) -> impl Iterator<Item = TeamsObject<'a>> {
        let value = self.get(key);
        let many = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter();
        let one = value.filter(|value| value.is_object());
        many.chain(one).filter(|value| value.is_object()).map(TeamsObject)
    }

    /// Its id: a text, or a number.
    pub(super) fn id(self, key: &str) -> Option<String> {
        match self.get(key)? {
            Value::String(id) if !id.trim().is_empty() => Some(id.trim().to_owned()),
            Value::Number(id) => Some(id.to_string()),
            _ => None,
        }
    }

    /// A time; one without a zone is read in `zone`.
    pub(super) fn time(self, key: &str, zone: &Zone) -> Option<EventTime> {
        let value = self.get(key)?;
        // PowerShell 5 writes `/Date(1666799217259)/`, alone or as `value` of an object.
        let text = value.as_str().or_else(|| TeamsObject(value).text("value"))?.trim();
        if let Some(ms) = text.strip_prefix("/Date(").and_then(|rest| rest.split([')', '+', '-']).next()) {
            return zone.at_unix_ms(ms.parse().ok()?);
        }
        EventTime::read(text).ok().or_else(|| zone.moment(text.parse::<DateTime>().ok()?))
    }

    /// A time in milliseconds since 1970.
    pub(super) fn unix_ms(self, key: &str, zone: &Zone) -> Option<i64> {
        self.time(key, zone).map(|time| time.unix_ms)
    }
}

/// The place in which a message was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum TeamsPlace {
    /// A channel of a team.
    Channel {
        /// The team's id, if it is stated.
        team: Option<String>,
        /// The channel's id.
        channel: String,
    },
    /// A chat of two or more people.
    Chat(String),
    /// A file's conversation, if its messages do not state their place.
    File(u32),
}

impl TeamsPlace {
    /// The place of a message in a file.
    pub(super) fn of(message: TeamsObject<'_>, file: u32) -> Self {
        let channel = message.object("channelIdentity");
        if let Some(id) = channel.and_then(|c| c.id("channelId")) {
            return Self::Channel { team: channel.and_then(|c| c.id("teamId")), channel: id };
        }
        message.id("chatId").map_or(Self::File(file), Self::Chat)
    }

    /// The place of an unreadable message; `None` if that part is unreadable, too.
    pub(super) fn of_damaged(message: TeamsObject<'_>, file: u32) -> Option<Self> {
        let place = Self::of(message, file);
        let is_known = !matches!(place, Self::File(_)) || !states_place(message);
        (message.0.is_object() && is_known).then_some(place)
    }
}

/// Whether a message states a chat or a channel, in whatever form.
fn states_place(message: TeamsObject<'_>) -> bool {
    let is_filled = |value: &Value| value.as_str().is_none_or(|text| !text.trim().is_empty());
    ["chatId", "channelIdentity"].into_iter().any(|key| message.get(key).is_some_and(is_filled))
}

/// Takes the replies that are objects out of a post. They belong to its thread, and to its place unless they state one.
pub(super) fn take_replies(post: &mut Value) -> Vec<Value> {
    let Some(replies) = ["replies", "Replies"].into_iter().find_map(|key| post.as_object_mut()?.remove(key)) else {
        return Vec::new();
    };
    let mut replies = match replies {
        Value::Object(mut one) => match ["value", "Value"].into_iter().find_map(|key| one.remove(key)) {
            Some(list) => listed(list),
            None if one.is_empty() => Vec::new(),
            None => vec![Value::Object(one)],
        },
        list => listed(list),
    };
    replies.retain(Value::is_object);
    let post = TeamsObject(post);
    let root = post.id("replyToId").or_else(|| post.id("id"));
    for reply in &mut replies {
        let (has_root, has_place) = (TeamsObject(reply).get("replyToId").is_some(), states_place(TeamsObject(reply)));
        let Some(reply) = reply.as_object_mut() else { continue };
        if let Some(root) = root.as_ref().filter(|_| !has_root) {
            reply.insert("replyToId".to_owned(), root.as_str().into());
        }
        for key in ["chatId", "channelIdentity"].into_iter().filter(|_| !has_place) {
            reply.extend(post.get(key).map(|place| (key.to_owned(), place.clone())));
        }
    }
    replies
}

/// The elements of a list; PowerShell writes a list of one as the element itself.
fn listed(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        one => vec![one],
    }
}

/// When a message was deleted, in milliseconds since 1970; `None` if it was not.
///
/// # Errors
/// Names the field, if its value is not a time.
pub(super) fn deleted_ms(message: TeamsObject<'_>, zone: &Zone) -> Result<Option<i64>, String> {
    let Some(value) = message.get("deletedDateTime") else { return Ok(None) };
    let text = value.as_str().or_else(|| TeamsObject(value).text("value")).map(str::trim);
    if text.is_some_and(|text| text.is_empty() || NO_DATE.iter().any(|none| text.starts_with(none))) {
        return Ok(None);
    }
    let deleted = message.unix_ms("deletedDateTime", zone);
    deleted.map(Some).ok_or_else(|| "deletedDateTime: not a time; write it as Microsoft Graph does".to_owned())
}

/// Whether it is a notice from Teams itself.
pub(super) fn is_notice(message: TeamsObject<'_>) -> bool {
    let kind = message.text("messageType").unwrap_or("message");
    let body = message.object("body").and_then(|b| b.text("content")).unwrap_or_default();
    !kind.eq_ignore_ascii_case("message") && (!kind.eq_ignore_ascii_case("unknownFutureValue") || body.is_empty())
        || message.object("eventDetail").is_some()
        || body.eq_ignore_ascii_case("<systemEventMessage/>")
}

/// The author; Graph leaves out guests and deleted accounts.
pub(super) fn author(message: TeamsObject<'_>) -> Account {
    let unknown = || Account { id: "unknown".to_owned(), name: "Unknown".to_owned(), handle: None, bot: false };
    let Some(from) = message.get("from") else { return unknown() };
    if let Some(name) = from.as_str().map(str::trim).filter(|n| !n.is_empty()) {
        return Account { id: name.to_owned(), name: name.to_owned(), handle: None, bot: false };
    }
    let kinds = [("user", false), ("application", true), ("device", false)];
    let found = kinds.into_iter().find_map(|(kind, bot)| identity(TeamsObject(from).object(kind)?, bot));
    found.or_else(|| identity(TeamsObject(from), false)).unwrap_or_else(unknown)
}

/// The account for an identity, whose id or name may be missing.
pub(super) fn identity(identity: TeamsObject<'_>, bot: bool) -> Option<Account> {
    let name = identity.text("displayName").map(str::to_owned);
    let id = identity.id("id").or_else(|| name.clone())?;
    Some(Account { name: name.unwrap_or_else(|| id.clone()), id, handle: None, bot })
}
