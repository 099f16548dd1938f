//! Tests of imessage-exporter's text, each with a file written for it.

use proptest::prelude::*;

use super::reader::{FORMAT, open};
use crate::chat::{
    ChatItem, ConversationPrivacy, FileSample,
    transcript::{file_items, folder, ids, items, transcript},
};
use types::config::SourceSettings;

fn check(content: &str, expected: &[&str]) {
    assert_eq!(transcript(&file_items(&open, "Ann.txt", content)), expected, "{content}");
}

#[test]
fn messages_begin_with_a_date_behind_a_blank_line() {
    check(
        "May 17, 2022  5:29:42 PM (Read by you after 1 hour, 49 seconds)\nAnn\nHello world\n\nwith two paragraphs\n\n\
         May 17, 2022  5:30:00 PM\nMe\nHi\nMay 18, 2022 is a Wednesday\nSent with Confetti\n\n\
         May 17, 2022  5:31:00 PM You named the conversation Club\n\n\
         May 17, 2022  5:32:00 PM\nMe\nSharePlay Message\nEnded\n\n\
         May 17, 2022  5:33:00 PM\nAnn\n\n",
        &[
            "2022-05-17T17:29:42Z Ann: Hello world\n\nwith two paragraphs",
            "2022-05-17T17:30:00Z Me: Hi\nMay 18, 2022 is a Wednesday",
            "skipped: service message",
            "skipped: service message",
            "skipped: empty",
        ],
    );
}

#[test]
fn an_answer_is_read_once_and_knows_what_it_answers() {
    let content = "May 17, 2022  5:29:42 PM\nAnn\nWhere?\nTapbacks:\n    Loved by Me\n    ☕️ by Bo\n\
        \x20   May 17, 2022  5:40:00 PM\n    Me\n    In Rome\n    \n    at six\n    Tapbacks:\n        Liked by Ann\n\
        \x20   May 17, 2022  5:41:00 PM\n    Bo\n    Too far\n\n\
        May 17, 2022  5:35:00 PM\nAnn\nWell?\n\n\
        May 17, 2022  5:40:00 PM\nMe\nIn Rome\n\nat six\nThis message responded to an earlier message.\n\n\
        May 17, 2022  5:41:00 PM\nBo\nToo far\nThis message responded to an earlier message.\n\n";
    check(
        content,
        &[
            "skipped: copy",
            "skipped: copy",
            "2022-05-17T17:29:42Z Ann: Where?",
            "2022-05-17T17:35:00Z Ann: Well?",
            "2022-05-17T17:40:00Z Me: In Rome\n\nat six (answers 2022-05-17T17:29:42/Ann)",
            "2022-05-17T17:41:00Z Bo: Too far (answers 2022-05-17T17:29:42/Ann)",
        ],
    );
    // Older versions print reactions without indentation.
    check(
        "May 17, 2022  5:29:42 PM\nAnn\nWhere?\nReactions:\nLoved by Me\n\nand when?\n\n",
        &["2022-05-17T17:29:42Z Ann: Where?\n\nand when?"],
    );
}

#[test]
fn the_last_version_of_an_edited_message_counts() {
    check(
        "May 17, 2022  5:29:42 PM\nMe\nMay 17, 2022  5:29:42 PM Meet at fife\nEdited 30 seconds later: Meet at five\n\
         Edited 1 minute, 5 seconds later: Meet at six\nin the park\n\n",
        &["2022-05-17T17:29:42Z Me: Meet at six\nin the park (version 1652808677000)"],
    );
}

#[test]
fn what_was_taken_back_is_a_deletion() {
    let content = "May 17, 2022  5:29:42 PM\nAnn\nAnn unsent this message part 1 hour, 49 seconds after sending!\n\n\
        May 17, 2022  5:30:00 PM\nMe\nThe rest\nYou unsent this message part 10 seconds after sending!\n\n\
        May 17, 2022  5:31:00 PM You unsent a message!\n\n\
        May 17, 2022  5:32:00 PM\nMe\nThis message was deleted from the conversation!\nHello\n\n\
        May 17, 2022  5:33:00 PM\nAnn\nThey deleted a message.\n\n";
    check(
        content,
        &[
            "deleted 2022-05-17T17:29:42/Ann at 1652812231000",
            "2022-05-17T17:30:00Z Me: The rest (version 1652808610000)",
            "deleted 2022-05-17T17:31:00/Me",
            "deleted 2022-05-17T17:32:00/Me",
            "deleted 2022-05-17T17:33:00/Ann",
        ],
    );
    // An earlier export of the same messages.
    let before = "May 17, 2022  5:29:42 PM\nAnn\nx\n\nMay 17, 2022  5:30:00 PM\nMe\nThe rest\nand more\n\n\
        May 17, 2022  5:31:00 PM\nMe\nx\n\nMay 17, 2022  5:32:00 PM\nMe\nHello\n\nMay 17, 2022  5:33:00 PM\nAnn\nx\n\n";
    assert_eq!(ids(&file_items(&open, "Ann.txt", before)), ids(&file_items(&open, "Ann.txt", content)));
}

#[test]
fn files_are_known_by_their_paths() {
    check(
        "May 17, 2022  5:29:42 PM\nAnn\nlook\nattachments/12/AB/our boat.heic\n/Users/a/Library/Messages/Attachments/0/IMG 1.MOV\n\
         IMG_0001.JPG\nSticker from Ann: /Users/a/Library/Messages/StickerCache/1.heic (App: Free People) from Ann\n\
         Attachment missing!\nhttps://x.example/Library/Messages/a.jpg\nread chapter 2.5 or a/b.txt\n\n",
        &["2022-05-17T17:29:42Z Ann: look\nhttps://x.example/Library/Messages/a.jpg\nread chapter 2.5 or a/b.txt \
           [image: our boat.heic] [video: IMG 1.MOV] [image: IMG_0001.JPG] [sticker: 1.heic] [file: file]"],
    );
}

#[test]
fn damaged_messages_are_rejected_with_their_line_and_the_rest_goes_on() {
    check(
        "May 17, 2022  5:29:42 PM\n\nMay 17, 2022  5:30:00 PM\nAnn\nHi\n\nFeb 31, 2022  5:30:00 PM\nBo\nno date\n\n\
         May 17, 2022  5:31:00 PM\nAnn\nYes\n",
        &[
            "rejected Ann.txt:1: no sender is named below its date; name the sender there",
            "2022-05-17T17:30:00Z Ann: Hi\n\nFeb 31, 2022  5:30:00 PM\nBo\nno date",
            "2022-05-17T17:31:00Z Ann: Yes",
        ],
    );
}

#[test]
fn a_folder_of_all_conversations_is_private() {
    let message = "May 17, 2022  5:29:42 PM\nAnn\nHi\n\n";
    let folder = folder(&[("Ann.txt", message), ("Club - 12.txt", message), ("attachments/1/notes.txt", "notes\n")]);
    let mut settings = SourceSettings::new("imessage", folder.path());
    settings.zone = "-07:00".to_owned();
    let (found, notice) = items(&open, &settings).unwrap();
    let conversations: Vec<_> = found
        .iter()
        .map(|item| match item {
            ChatItem::Message(m) => (m.conversation.name.as_str(), m.conversation.privacy, m.time.to_string()),
            other => panic!("{other:?}"),
        })
        .collect();
    let time = "2022-05-17T17:29:42-07:00".to_owned();
    assert_eq!(
        conversations,
        [("Ann", ConversationPrivacy::Direct, time.clone()), ("Club - 12", ConversationPrivacy::Direct, time)]
    );
    assert!(notice.unwrap().contains("its times have no zone and are read as -07:00"));
}

#[test]
fn what_is_neither_a_text_nor_a_database_is_an_error_that_says_what_to_name() {
    for (name, content, in_folder, expected) in [
        ("chat.db", "SQLite format 3\0 and more", false, "file is not a database; copy chat.db again"),
        ("chat.db", "SQLite format 3\0 and more", true, "it holds Messages' database"),
        (
            "chat.json",
            "[{\"ROWID\": \"1\"}]",
            false,
            "no text begins with a date such as \"May 17, 2022  5:29:42 PM\"; run",
        ),
        ("chat.json", "[{\"ROWID\": \"1\"}]", true, "no text begins with a date"),
    ] {
        let folder = folder(&[(name, content)]);
        let path = if in_folder { folder.path().to_owned() } else { folder.path().join(name) };
        let error = open(&SourceSettings::new("imessage", path)).err().unwrap().to_string();
        let is_refused = cfg!(not(feature = "imessage")) && error.contains("without the feature `imessage`");
        assert!(error.contains(expected) || is_refused, "{error}");
    }
}

#[test]
fn an_export_is_recognised_and_others_are_not() {
    for (name, content, expected) in [
        ("Ann.txt", "May 17, 2022  5:29:42 PM\nAnn\nHi\n\n", true),
        ("chat.db", "SQLite format 3\0", true),
        ("_chat.txt", "[1/2/24, 10:00:00] Ann: hi\n", false),
        ("notes.txt", "May be\n", false),
    ] {
        let folder = folder(&[(name, content)]);
        let sample = FileSample::of(&folder.path().join(name)).unwrap();
        assert_eq!((FORMAT.looks_like)(&sample), expected, "{name}");
    }
}

proptest! {
    #[test]
    fn no_line_makes_the_reader_panic(
        lines in proptest::collection::vec(
            prop_oneof![
                "( {4}){0,2}[JM]a[ny] [0-9]{1,2}, [0-9]{4} {1,2}[0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M.{0,20}",
                Just(String::new()),
                "( {4}){0,2}(Tapbacks:|Loved by Ann|Ann|This message responded to an earlier message\\.|Edited 1 [a-z]{3,6} later: x|Ann unsent this message part.{0,9}!)",
                "[a-zA-Z/. ]{0,20}\\.(jpg|HEIC|x)",
                ".{0,40}",
            ],
            0..24,
        )
    ) {
        let content = format!("May 17, 2022  5:29:42 PM\nAnn\n{}", lines.join("\n"));
        let found = file_items(&open, "Ann.txt", &content);
        prop_assert_eq!(transcript(&found), transcript(&file_items(&open, "Ann.txt", &content)));
        let mut seen = ids(&found);
        let count = seen.len();
        seen.sort();
        seen.dedup();
        prop_assert_eq!(seen.len(), count, "ids are unique");
    }
}
