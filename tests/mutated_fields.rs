//! Fields that no reader knows, put into the records of every format: no word in them disappears silently.
//!
//! In: exports written by hand, whose records get a field of a later version at every level, beside the words of the
//! message and in place of them; and JSON Lines, whose form is ours. Out: the words are in a turn, or the field is
//! reported by its name.

use std::fs;

use serde_json::{Value, json};
use types::config::{PrivateConversationKind, SourceSettings};

use super::mutated::{Form, forms};

/// A field that no reader and no route knows.
pub(crate) const FIELD: &str = "later_field";

/// The fields with the words of a record, and what is shared in it: without them it has none.
const WORDS: [(&str, &[&str]); 16] = [
    ("slack", &["/text", "/files", "/attachments", "/blocks"]),
    ("discord", &["/content", "/attachments", "/embeds", "/stickers"]),
    ("telegram", &["/text", "/file", "/media_type", "/poll", "/contact_information"]),
    ("matrix", &["/content/body"]),
    ("mattermost", &["/post/message", "/post/props", "/post/attachments", "/post/replies"]),
    ("zulip", &["/content", "/rendered_content"]),
    ("teams", &["/body/content", "/subject", "/attachments"]),
    ("messenger", &["/content", "/photos", "/share"]),
    ("gitter", &["/text"]),
    ("claude-code", &["/message/content"]),
    ("codex", &["/payload/item/content"]),
    ("gemini-cli", &["/content"]),
    ("copilot-cli", &["/data/content"]),
    ("qwen-code", &["/message/parts"]),
    ("pi", &["/message/content"]),
    ("sillytavern", &["/mes", "/swipes"]),
];
/// Objects of a record that hold no words of the message, and the wrapper of a line.
const WITHOUT_WORDS: [(&str, &[&str]); 6] = [
    ("discord", &["/reference"]),
    ("matrix", &["/content/m.relates_to", "/unsigned"]),
    ("mattermost", &[""]),
    ("messenger", &["/reactions"]),
    ("sillytavern", &["/extra"]),
    ("signal", &["/envelope/dataMessage/quote", "/envelope/dataMessage/mentions", "/envelope/dataMessage/groupInfo"]),
];

/// The paths of all objects in a value.
pub(crate) fn objects(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(at.to_owned());
            fields.iter().for_each(|(name, inner)| objects(inner, &format!("{at}/{name}"), found));
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(n, inner)| objects(inner, &format!("{at}/{n}"), found));
        }
        _ => {}
    }
}

/// What became of the second of two records: the turns and dead letters, and the fields that were not read.
fn read_second(form: &Form, second: &Value) -> (String, Vec<String>, Vec<String>) {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in form.beside {
        fs::write(home.path().join(name), text).unwrap();
    }
    let path = home.path().join(form.file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let records = format!("{}{}{second}", (form.record)(0), form.between);
    fs::write(&path, format!("{}{records}{}", form.before, form.after)).unwrap();
    let mut settings = SourceSettings::new(form.format, if form.beside.is_empty() { &path } else { home.path() });
    (settings.bank, settings.include) =
        ("b".to_owned(), vec![PrivateConversationKind::Private, PrivateConversationKind::Direct]);
    let mut source = sources::open(&settings).unwrap();
    let (mut turns, mut letters) = (String::new(), Vec::new());
    while let Some(batch) = source.next(64).unwrap() {
        batch.events.iter().for_each(|event| turns.push_str(&serde_json::to_string(event).unwrap()));
        letters.extend(batch.rejects.into_iter().map(|letter| format!("{} {}", letter.reason, letter.payload)));
    }
    (turns, letters, source.counts().unread.into_keys().collect())
}

/// A later version of a platform writes words into a field that no reader knows: at any level, beside the words of a
/// message or in place of them. They are in a turn, or the field is reported by its name.
#[test]
fn words_of_an_unknown_field_are_stored_or_told_by_its_name() {
    let of = |list: &[(&str, &'static [&'static str])], format: &str| {
        list.iter().find(|(name, _)| *name == format).map_or(&[][..], |(_, paths)| paths).to_vec()
    };
    let mut lost = Vec::new();
    for form in forms().iter().filter(|form| form.is_json) {
        let whole: Value = serde_json::from_str(&(form.record)(1)).unwrap();
        let mut places = Vec::new();
        objects(&whole, "", &mut places);
        let without_words = of(&WITHOUT_WORDS, form.format);
        let is_left_out =
            |at: &String| without_words.iter().any(|path| at == path || !path.is_empty() && at.starts_with(path));
        places.retain(|at| !is_left_out(at));
        assert!(places.len() > 1 || ["zulip", "sillytavern"].contains(&form.format), "{}: {places:?}", form.format);
        for words in
            [json!("the lighthouse"), json!(["the", "lighthouse"]), json!({"blocks": [{"text": "the lighthouse"}]})]
        {
            for at in &places {
                let mut record = whole.clone();
                record.pointer_mut(at).unwrap()[FIELD] = words.clone();
                let (turns, letters, unread) = read_second(form, &record);
                if !(turns.contains("lighthouse") || unread.iter().any(|name| name.contains(FIELD))) {
                    lost.push(format!("{} at {at:?}: {letters:?}, {unread:?}", form.format));
                }
            }
            let gone = of(&WORDS, form.format);
            if gone.is_empty() {
                continue;
            }
            let mut record = whole.clone();
            for path in gone {
                let (above, name) = path.rsplit_once('/').unwrap();
                record.pointer_mut(above).unwrap().as_object_mut().unwrap().remove(name);
            }
            let inner = if form.format == "mattermost" { "/post" } else { "" };
            record.pointer_mut(inner).unwrap()[FIELD] = words.clone();
            let (turns, letters, _) = read_second(form, &record);
            let is_told =
                |letter: &String| letter.starts_with(&format!("unsupported: {FIELD}")) && letter.contains("lighthouse");
            if !(turns.contains("lighthouse") || letters.iter().any(is_told)) {
                lost.push(format!("{} in place of the text: {letters:?}", form.format));
            }
        }
    }
    assert!(lost.is_empty(), "{} are lost:\n{}", lost.len(), lost.join("\n"));
}

/// A record of JSON Lines has our form, so an unknown field is a mistake: the record is not read in part.
#[test]
fn a_line_with_an_unknown_field_is_rejected_by_its_name() {
    let (home, time) = (tempfile::tempdir().unwrap(), "2024-05-06T09:00:00Z");
    let path = home.path().join("turns.jsonl");
    for record in [
        json!({"bank": "b", "turn": "1", "speaker": "Ann", "text": "Six.", "time": time,
               "attachments": [{"kind": "image", "caption": "a pier"}]}),
        json!({"type": "deletion", "bank": "b", "turn": "1"}),
        json!({"type": "session_end", "bank": "b", "session": "s"}),
        json!({"type": "idle", "bank": "b", "time": time}),
    ] {
        let mut places = Vec::new();
        objects(&record, "", &mut places);
        for (at, words) in places.iter().flat_map(|at| [(at, json!("the lighthouse")), (at, json!(["lighthouse"]))]) {
            let mut later = record.clone();
            later.pointer_mut(at).unwrap()[FIELD] = words;
            fs::write(&path, format!("{later}\n{record}\n")).unwrap();
            let batch = sources::open(&SourceSettings::new("jsonl", &path)).unwrap().next(64).unwrap().unwrap();
            let [letter] = &batch.rejects[..] else { panic!("{later}: {batch:?}") };
            let is_named = letter.reason.contains(&format!("unknown field `{FIELD}`"));
            assert!(is_named && letter.payload.contains("lighthouse"), "{later}: {}", letter.reason);
        }
    }
}
