//! Tests of WhatsApp's export, each with a file written for it.

use proptest::prelude::*;

use super::{
    body::{WhatsappBody, body},
    header::header,
    reader::WhatsappReader,
};
use crate::{
    SourceError,
    chat::{
        ChatItem, ChatReader, FileSample,
        transcript::{file_items, folder, ids, items, transcript},
    },
};
use types::config::{DateOrder, SourceSettings};

fn open(settings: &SourceSettings) -> Result<Box<dyn ChatReader>, SourceError> {
    Ok(Box::new(WhatsappReader::open(settings, 2025)?))
}

/// Reads a file `_chat.txt` and compares its items.
fn check(content: &str, expected: &[&str]) {
    assert_eq!(transcript(&file_items(&open, "_chat.txt", content)), expected, "{content}");
}

/// The times of all messages, without seconds and zone.
fn times(content: &str, order: Option<DateOrder>) -> (Vec<String>, String) {
    let folder = folder(&[("_chat.txt", content)]);
    let mut settings = SourceSettings::new("whatsapp", folder.path());
    settings.date_order = order;
    let (items, notice) = items(&open, &settings).unwrap();
    let time = |item: &ChatItem| match item {
        ChatItem::Message(m) => Some(m.time.to_string().get(..16).unwrap().to_owned()),
        other => panic!("{other:?}"),
    };
    (items.iter().filter_map(time).collect(), notice.unwrap())
}

#[test]
fn every_form_of_a_header_is_read() {
    for line in [
        "3/6/18, 1:55 p.m. - a: m",
        "03-06-2018, 01.55 PM - a: m",
        "03.06.18 13.55.00: a: m",
        "[03.06.18 13:55:00] a: m",
        "3.6.2018 klo 13.55.00 - a: m",
        "[3.6.2018 klo 13.55.00] a: m",
        "3. 6. 2018. 13:55:00 a: m",
        "[3/6/18 1:55:00 p. m.] a: m",
        "\u{200e}[3/6/18 1:55:00 p. m.] a: m",
        "[2018/06/03, 13:55:00] a: m",
        "3/6/2018 1:55\u{a0}p.\u{a0}m. - a: m",
        "3/6/18, 1:55\u{202f}PM - a: m",
        "3/6/18, 1:55_PM - a: m",
        "2018-06-03 13:55 - a: m",
        "03-06-2018 13:55 - a: m",
        "[03-06-18 13:55:00] a: m",
        "[2018/6/3 下午1:55:00] a: m",
        "2018/6/3 下午1:55 - a: m",
        "2018. 6. 3. 오후 1:55 - a: m",
        "2018년 6월 3일 오후 1:55 - a: m",
        "2018年6月3日 13:55 - a: m",
        "\u{200f}[٣\u{200f}/٦\u{200f}/٢٠١٨، ١:٥٥:٠٠ م] a: m",
        "٣/٦/٢٠١٨، ١:٥٥ م - a: m",
        "3/6/2018, 1:55 μ.μ. - a: m",
        "3.06.18 г., 13:55 ч. - a: m",
        "[3/6/2561 BE, 13:55:00] a: m",
        "13:55, 3/6/2018 - a: m",
        "2018-06-03 13 h 55 - a: m",
        "[2018-06-03 13 h 55 min 00 s] a: m",
        "[03/06/2018 à 13:55:00] a: m",
        "3/6/2018, 1:55 CH - a: m",
    ] {
        let (read, _) = times(line, Some(DateOrder::Dmy));
        assert_eq!(read, ["2018-06-03T13:55"], "{line}");
        assert_eq!(header(line).unwrap().rest, "a: m", "{line}");
    }
}

#[test]
fn noon_and_midnight_are_read_by_their_half_of_the_day() {
    for (time, expected) in [
        ("12:05 AM", "00:05"),
        ("12:05 PM", "12:05"),
        ("0:05 a. m.", "00:05"),
        ("11:05 PM", "23:05"),
        ("20:05 PM", "20:05"),
        ("中午12:05", "12:05"),
        ("中午1:05", "13:05"),
        ("凌晨12:05", "00:05"),
        ("24:05", "00:05"),
    ] {
        let (read, _) = times(&format!("13/6/18, {time} - a: m"), None);
        assert_eq!(read, [format!("2018-06-13T{expected}")], "{time}");
    }
}

#[test]
fn what_only_looks_like_a_header_continues_a_message() {
    for line in
        ["2016-04-29 10:30:00", "1.2.3.4 12:30 x", "10/3 is not 3.33", "[1] 12:30", "5/6/18 lunch", "[5/6/18, 10] x"]
    {
        assert_eq!(header(line), None, "{line}");
        check(&format!("13/6/18, 10:00 - a: b\n{line}"), &[&format!("2018-06-13T10:00:00Z a: b\n{line}")]);
    }
}

#[test]
fn the_order_of_day_and_month_is_settled_from_the_whole_file() {
    let messages = |dates: &[&str]| dates.iter().map(|date| format!("{date}, 10:00 - a: m\n")).collect::<String>();
    for (dates, order, first, why) in [
        (&["1/2/18", "13/2/18"][..], None, "2018-02-01", "day, month, year (some of them allow no other order"),
        (&["1/2/18", "2/13/18"], Some(DateOrder::Dmy), "2018-01-02", "month, day, year (some of them allow"),
        (&["1/5/18", "2/3/18"], None, "2018-01-05", "month, day, year (known from their sequence"),
        (&["3/6/18", "1/7/18"], None, "2018-06-03", "day, month, year (known from their sequence"),
        (&["3/4/18", "3/5/18", "3/6/18", "3/7/18"], None, "2018-03-04", "month, day, year (known from their sequence"),
        (&["3/6/18"], Some(DateOrder::Mdy), "2018-03-06", "month, day, year (as source.date_order says"),
        (&["3/6/18"], Some(DateOrder::Dmy), "2018-06-03", "day, month, year (as source.date_order says"),
        (
            &["3/6/18"],
            None,
            "2018-06-03",
            "day, month, year (assumed, since the file does not show it; set source.date_order",
        ),
        (&["18/6/3", "32/6/4"], None, "2018-06-03", "year, month, day (assumed"),
        (&["18/6/3"], Some(DateOrder::Ymd), "2018-06-03", "year, month, day (as source.date_order"),
        (&["11/3/5"], None, "2011-03-05", "year, month, day (assumed"),
        (&["2018/13/6", "2018/1/7"], None, "2018-06-13", "several orders"),
        (&["06/2018/13"], None, "2018-06-13", "month, year, day (some of them"),
        (&["2018-06-03"], Some(DateOrder::Dmy), "2018-06-03", "year, month, day (assumed"),
    ] {
        let (read, notice) = times(&messages(dates), order);
        let known = if why == "several orders" { notice.contains("day") } else { notice.contains(why) };
        assert_eq!(read[0].get(..10).unwrap(), first, "{dates:?}");
        assert!(known, "{dates:?}: {notice}");
        assert!(notice.contains("times have no zone and are read as +00:00"), "{notice}");
    }
    // American phones: no padding, two-digit years, 12 hours.
    assert_eq!(times("3/6/18, 1:55 PM - a: m", None).0, ["2018-03-06T13:55"]);
    assert_eq!(times("03/06/2018, 1:55 pm - a: m", None).0, ["2018-06-03T13:55"]);
    for other in ["3/6/18, 1:55 pm - a: m", "3/6/18, 1:55 p. m. - a: m", "3/06/18, 1:55 PM - a: m"] {
        assert_eq!(times(other, None).0, ["2018-06-03T13:55"], "{other}");
    }
}

#[test]
fn names_of_attached_files_settle_the_order_of_a_date() {
    for (line, expected) in [
        ("[3/6/18, 1:55:00 PM] a: \u{200e}<attached: 00000002-PHOTO-2018-06-03-13-55-00.jpg>", "day, month, year"),
        ("3/6/18, 13:55 - a: IMG-20180306-WA0000.jpg (file attached)", "month, day, year"),
        ("3/6/18, 13:55 - a: \u{200e}2018-03-06-VIDEO-00004762.mp4 <\u{200e}attached>", "month, day, year"),
    ] {
        let (_, notice) = times(line, None);
        assert!(notice.contains(&format!("{expected} (known from the names of attached files")), "{line}: {notice}");
    }
    // A file with another day, and names that hold no date.
    for name in ["IMG-20170101-WA0000.jpg", "IMG-20189999-WA0000.jpg", "é-PHOTO-2018", "ééééééPHOTO-2018-06-0x"]
    {
        let (_, notice) = times(&format!("3/6/18, 13:55 - a: {name}"), None);
        assert!(notice.contains("day, month, year (assumed"), "{name}: {notice}");
    }
}

#[test]
fn no_year_lies_ahead() {
    assert_eq!(times("23/12/31 23:58 - Ann: one", None).0, ["2023-12-31T23:58"]);
    // Thai phones write the years of their era, sometimes with two digits.
    assert_eq!(times("31/12/66 23:58 - Ann: one", None).0, ["2023-12-31T23:58"]);
    assert_eq!(times("31/12/23 23:58 - Ann: one", None).0, ["2023-12-31T23:58"]);
}

#[test]
fn a_file_of_several_phones_is_read_date_by_date() {
    let content = "[05.05.23, 15:48:11] James: one\n[11/8/21, 9:41:32 AM] Ann: two\n1/23/23, 3:19 AM - Bo: three\n\
        [1/24/21, 12:41:03 PM] ~ Cy: four\n[2023/5/4, 16:13:23] ~\u{202f}Di: five\n7/19/22, 11:32\u{202f}PM - Bo: six\n";
    check(
        content,
        &[
            "2023-05-05T15:48:11Z James: one",
            "2021-11-08T09:41:32Z Ann: two",
            "2023-01-23T03:19:00Z Bo: three",
            "2021-01-24T12:41:03Z Cy: four",
            "2023-05-04T16:13:23Z Di: five",
            "2022-07-19T23:32:00Z Bo: six",
        ],
    );
}

#[test]
fn a_header_in_another_form_is_part_of_the_message_that_quotes_it() {
    let content = "[13.02.19, 14:20:01] Ann: look\n[13.02.19, 14:20:03] Bo: what?\n\
        2/11/19, 14:48 Ann: from another chat\n[1.2.2019, 00:00:00] Ann: not on its own\n\
        12/02/2019, 10:15 - Cy: neither\n[13.02.19, 14:21:00] Ann: yes\n[13.02.19, 14:22:00] Ann: no\n\
        [13.02.19, 14:23:00] Bo: a\n[13.02.19, 14:24:00] Bo: b\n[13.02.19, 14:25:00] Bo: c\n";
    let items = file_items(&open, "_chat.txt", content);
    let lines = transcript(&items);
    assert_eq!(lines.len(), 7);
    assert_eq!(
        lines[1],
        "2019-02-13T14:20:03Z Bo: what?\n2/11/19, 14:48 Ann: from another chat\n\
         [1.2.2019, 00:00:00] Ann: not on its own\n12/02/2019, 10:15 - Cy: neither"
    );
}

#[test]
fn notices_are_no_messages_and_do_not_stick_to_the_one_before() {
    check(
        "13/06/20, 10:00 - Messages and calls are end-to-end encrypted. Tap to learn more.\n\
         13/06/20, 10:01 - Ann created group \"Trip: Rome\"\n13/06/20, 10:02 - Ann: hello\nthere\n\
         13/06/20, 10:03 - You were added\n13/06/20, 10:04 - Ann changed the subject from “A” to “Rome: June”\n\
         13/06/20, 10:05 - Bo: hi: you\n13/06/20, 10:06 - Bo: Missed voice call\n13/06/20, 10:07 - Bo: \n",
        &[
            "skipped: service message",
            "skipped: service message",
            "2020-06-13T10:02:00Z Ann: hello\nthere",
            "skipped: service message",
            "skipped: service message",
            "2020-06-13T10:05:00Z Bo: hi: you",
            "skipped: service message",
            "skipped: empty",
        ],
    );
    // Newer phones attribute notices to the group, or mark them.
    let group = "[13/06/20, 10:00:00] Family: \u{200e}Messages and calls are end-to-end encrypted.\n\
        [13/06/20, 10:01:00] Family: \u{200e}Bo wurde zur Gruppe hinzugefügt\n[13/06/20, 10:02:00] Ann: hello\n\
        \u{200e}[13/06/20, 10:03:00] Bo: \u{200e}Bo changed the group description\n\
        [13/06/20, 10:04:00] Family: Ann left\n[13/06/20, 10:05:00] Bo: bye\n";
    let skipped = "skipped: service message";
    check(
        group,
        &[skipped, skipped, "2020-06-13T10:02:00Z Ann: hello", skipped, skipped, "2020-06-13T10:05:00Z Bo: bye"],
    );
    // In a chat of two people, the other person's name is not taken for a group's.
    check(
        "[13/06/20, 10:00:00] Ann: \u{200e}Messages and calls are end-to-end encrypted.\n\
         [13/06/20, 10:01:00] Ann: hello\n[13/06/20, 10:02:00] Me: hi\n",
        &[skipped, "2020-06-13T10:01:00Z Ann: hello", "2020-06-13T10:02:00Z Me: hi"],
    );
}

#[test]
fn a_notice_of_several_lines_is_left_out_and_words_behind_it_are_not() {
    let (skipped, told) =
        ("skipped: service message", "it follows a notice; if somebody said it, write the date and the name in front");
    check(
        "13/06/20, 10:00 - Ann changed the subject from “A” to “Rome\nin June”\n\
         13/06/20, 10:01 - Ann changed the description to \"One\n\nTwo: three\"\n13/06/20, 10:02 - You were added\n\
         13/06/xx, 10:02 - Bo: lost words\nand more\n13/06/20, 10:03 - Ann: hello\n",
        &[skipped, skipped, skipped, &format!("rejected _chat.txt:7: {told}"), "2020-06-13T10:03:00Z Ann: hello"],
    );
    check(
        "[13/06/20, 10:00:00] Bo: \u{200e}Bo changed the group\n\u{200e}and more of it\nBo: lost\n\
         [13/06/20, 10:01:00] Ann: hello\n[13/06/20, 10:02:00] Bo was „added\nby Ann“ twice\n",
        &[skipped, &format!("rejected _chat.txt:3: {told}"), "2020-06-13T10:01:00Z Ann: hello", skipped],
    );
}

#[test]
fn the_group_is_known_by_the_name_of_the_file() {
    let content = "13/06/20, 10:00 - Club: Ann added Bo\n13/06/20, 10:01 - Ann: hi\n13/06/20, 10:02 - Bo: hi\n";
    for (name, chat) in [("WhatsApp Chat with Club.txt", "Club"), ("WhatsApp-Chat mit Club (1).txt", "Club")] {
        let items = file_items(&open, name, content);
        assert_eq!(transcript(&items)[0], "skipped: service message", "{name}");
        let ChatItem::Message(message) = &items[1] else { panic!("{items:?}") };
        assert_eq!((message.conversation.name.as_str(), message.conversation.id.as_str()), (chat, chat));
    }
    assert_eq!(transcript(&file_items(&open, "renamed.txt", content))[0], "2020-06-13T10:00:00Z Club: Ann added Bo");
}

#[test]
fn a_chat_has_one_name_whether_its_folder_or_its_file_is_named() {
    let folder = folder(&[("WhatsApp Chat - Club/_chat.txt", "[13/06/20, 10:00:00] Ann: one\n")]);
    for path in ["WhatsApp Chat - Club/_chat.txt", "WhatsApp Chat - Club", "", "WhatsApp Chat - Club/."] {
        let (found, _) = items(&open, &SourceSettings::new("whatsapp", folder.path().join(path))).unwrap();
        let ChatItem::Message(message) = &found[0] else { panic!("{found:?}") };
        assert_eq!(message.conversation.id, "Club", "{path}");
    }
}

#[test]
fn names_may_hold_a_colon() {
    let content = "13/06/20, 10:00 - Team: Support: one\n13/06/20, 10:01 - Team: Support: two: three\n\
        13/06/20, 10:02 - Ann: PS: four\n13/06/20, 10:03 - Team: Support: five\n13/06/20, 10:04 - Ann: six\n\
        13/06/20, 10:05 - Team: Support left\n";
    check(
        content,
        &[
            "2020-06-13T10:00:00Z Team: Support: one",
            "2020-06-13T10:01:00Z Team: Support: two: three",
            "2020-06-13T10:02:00Z Ann: PS: four",
            "2020-06-13T10:03:00Z Team: Support: five",
            "2020-06-13T10:04:00Z Ann: six",
            "skipped: service message",
        ],
    );
    let items = file_items(&open, "_chat.txt", content);
    let ChatItem::Message(message) = &items[0] else { panic!("{items:?}") };
    assert_eq!((message.author.name.as_str(), message.text.as_str()), ("Team: Support", "one"));
    // One message is enough if the file is named after the person.
    let items = file_items(&open, "WhatsApp Chat with Dr_ Who.txt", "13/06/20, 10:00 - Dr: Who: hello");
    let ChatItem::Message(message) = &items[0] else { panic!("{items:?}") };
    assert_eq!(message.author.name, "Dr: Who");
}

#[test]
fn a_name_is_known_without_a_space_behind_its_colon() {
    check(
        "13/06/20, 10:00 - Ann: hi\n13/06/20, 10:01 - Ann:.\n13/06/20, 10:02 - Bo joined using a link:.\n",
        &["2020-06-13T10:00:00Z Ann: hi", "2020-06-13T10:01:00Z Ann: .", "skipped: service message"],
    );
}

#[test]
fn an_edited_or_deleted_message_keeps_its_id() {
    let before = "13/06/20, 10:00 - Ann: one\n13/06/20, 10:00 - Ann: two\n13/06/20, 10:00 - Bo: three\n\
        13/06/20, 10:00 - Ann: four\n";
    let after = "13/06/20, 10:00 - Ann: one <This message was edited>\n13/06/20, 10:00 - Ann: This message was deleted\n\
        13/06/20, 10:00 - Bo: Du hast diese Nachricht gelöscht.\n13/06/20, 10:00 - Ann: four\n";
    let before = file_items(&open, "_chat.txt", before);
    let after = file_items(&open, "_chat.txt", after);
    assert_eq!(ids(&before), ids(&after));
    assert_eq!(
        transcript(&after),
        [
            "2020-06-13T10:00:00Z Ann: one (version 1)",
            "deleted 2020-06-13T10:00/Ann/2",
            "deleted 2020-06-13T10:00/Bo",
            "2020-06-13T10:00:00Z Ann: four",
        ]
    );
}

#[test]
fn edits_are_known_in_other_languages() {
    for mark in [
        "<This message was edited>",
        "\u{200e}<This message was edited>",
        "<Diese Nachricht wurde bearbeitet.>",
        "<Se editó este mensaje.>",
        "<Mensagem editada>",
        "<Questo messaggio è stato modificato>",
        "<Ce message a été modifié>",
        "<Dit bericht is bewerkt>",
        "\u{200e}<Llengua que ningú no coneix.>",
    ] {
        let WhatsappBody::Said(said) = body(&format!("see you\nat nine {mark}")) else { panic!("{mark}") };
        assert_eq!((said.text.as_str(), said.edited), ("see you\nat nine", true), "{mark}");
    }
    for text in ["I <3 you>", "a <b>", "see <This message was edited> above", "Llengua <que ningú no coneix>"] {
        let WhatsappBody::Said(said) = body(text) else { panic!("{text}") };
        assert_eq!((said.text.as_str(), said.edited), (text, false), "{text}");
    }
}

#[test]
fn deletions_are_known_in_other_languages() {
    for text in [
        "This message was deleted",
        "\u{200e}You deleted this message.",
        "Diese Nachricht wurde gelöscht.",
        "Se eliminó este mensaje.",
        "Eliminaste este mensaje.",
        "Ce message a été supprimé",
        "Mensagem apagada",
        "Essa mensagem foi apagada",
        "Questo messaggio è stato eliminato",
        "Dit bericht is verwijderd",
        "Данное сообщение удалено",
        "Bu mesaj silindi.",
        "このメッセージは削除されました",
        "此訊息已刪除。",
        "삭제된 메시지입니다.",
        "تم حذف هذه الرسالة",
        "This message was deleted by admin Ann",
    ] {
        assert_eq!(body(text), WhatsappBody::Deleted, "{text}");
    }
    let text = "I think this message was deleted by mistake";
    assert!(matches!(body(text), WhatsappBody::Said(said) if said.text == text));
}

#[test]
fn what_was_shared_is_an_attachment_with_a_caption() {
    for (raw, text, kind, caption) in [
        ("<Media omitted>", "", "media", "media"),
        ("<Medien ausgeschlossen>", "", "media", "media"),
        ("<Multimedia omitido>", "", "media", "media"),
        ("<Media omitted>\nlook at this\nand that", "look at this\nand that", "media", "media"),
        ("\u{200e}image omitted\nour boat", "our boat", "image", "image"),
        ("<image omitted>", "", "image", "image"),
        ("\u{200e}image omitted", "", "image", "image"),
        ("\u{200e}Bild weggelassen", "", "image", "image"),
        ("imagen omitida", "", "image", "image"),
        ("\u{200e}vidéo absente", "", "video", "video"),
        ("Report.pdf • \u{200e}3 pages \u{200e}document omitted", "", "file", "Report.pdf • 3 pages"),
        ("IMG-20210428-WA0001.jpg (file attached)", "", "image", "IMG-20210428-WA0001.jpg"),
        ("IMG-20210428-WA0001.jpg (file attached)\nour boat", "our boat", "image", "IMG-20210428-WA0001.jpg"),
        ("\u{200e}4f26.jpg (Datei angehängt)\nDir auch.", "Dir auch.", "image", "4f26.jpg"),
        ("PTT-20210428-WA0002.opus (Sprache, die keiner kennt)", "", "audio", "PTT-20210428-WA0002.opus"),
        ("DOC-20250622-WA0000. (Datei angehängt)", "", "file", "DOC-20250622-WA0000."),
        ("Ann.vcf (archivo adjunto)", "", "contact", "Ann.vcf"),
        ("< attached: 00000042-PHOTO-2020-06-07-15-13-20.jpg >", "", "image", "00000042-PHOTO-2020-06-07-15-13-20.jpg"),
        ("\u{200e}<attached: 00000043-STICKER-2020.webp>", "", "sticker", "00000043-STICKER-2020.webp"),
        ("\u{200e}<Anhang: 00000044-AUDIO-2020.opus>", "", "audio", "00000044-AUDIO-2020.opus"),
        ("2015-08-04-PHOTO-00004762.jpg <\u{200e}attached>", "", "image", "2015-08-04-PHOTO-00004762.jpg"),
        ("look! \u{200e}<pièce jointe : 00000045-GIF-2020.mp4>", "look!", "gif", "00000045-GIF-2020.mp4"),
        ("Plan.pdf • \u{200e}2 pages \u{200e}<attached: 00000046-Plan.pdf>", "", "file", "Plan.pdf • 2 pages"),
    ] {
        let WhatsappBody::Said(said) = body(raw) else { panic!("{raw}: {:?}", body(raw)) };
        assert_eq!(said.text, text, "{raw}");
        let [attachment] = &said.attachments[..] else { panic!("{raw}: {said:?}") };
        assert_eq!((attachment.kind.as_deref(), attachment.caption.as_deref()), (Some(kind), Some(caption)), "{raw}");
    }
    for text in [
        "I read the file (file attached)",
        "look:\n<Media omitted>",
        "<html>",
        "ask <https://x.example/a.html>",
        "(file attached)",
        "a.b (c)",
    ] {
        assert!(
            matches!(body(text), WhatsappBody::Said(said) if said.text == text && said.attachments.is_empty()),
            "{text}"
        );
    }
}

#[test]
fn calls_are_notices_and_talk_about_them_is_not() {
    for text in [
        "Missed voice call",
        "Voice call - 5 minutes",
        "Video call - 1 hour 30 minutes",
        "Voice call ended",
        "\u{200e}Missed video call, \u{200e}Tap to call back",
        "\u{200e}Voice call, \u{200e}12 min",
        "Llamada perdida",
    ] {
        assert_eq!(body(text), WhatsappBody::Notice, "{text}");
    }
    for text in ["Video call tomorrow?", "Voice call at 5 minutes past", "voice call, please"] {
        assert!(matches!(body(text), WhatsappBody::Said(_)), "{text}");
    }
}

#[test]
fn polls_places_and_mentions_are_words() {
    let poll =
        "\u{200e}POLL:\nWhere?\n\u{200e}OPTION: Rome (\u{200e}2 votes)\n\u{200e}OPTION: Oslo (old) (\u{200e}0 votes)\n";
    let WhatsappBody::Said(said) = body(poll) else { panic!() };
    assert_eq!(said.text, "POLL:\nWhere?\nOPTION: Rome\nOPTION: Oslo (old)");
    let WhatsappBody::Said(said) = body("\u{200e}Location: https://maps.google.com/?q=1,2") else { panic!() };
    assert_eq!(said.text, "Location: https://maps.google.com/?q=1,2");
    let WhatsappBody::Said(said) = body("hi @\u{2068}~\u{202f}Ann\u{2069} and @\u{2068}Bo\u{2069}!") else { panic!() };
    assert_eq!(
        (said.text.as_str(), &said.mentions[..]),
        ("hi @Ann and @Bo!", &["Ann".to_owned(), "Bo".to_owned()][..])
    );
}

#[test]
fn what_has_no_text_form_is_skipped_with_its_reason() {
    check(
        "13/06/20, 10:00 - Ann: ...\n13/06/20, 10:00 - Ann: !\n",
        &["2020-06-13T10:00:00Z Ann: ...", "2020-06-13T10:00:00Z Ann: !"],
    );
    check(
        "13/06/20, 10:00 - Ann: null\n13/06/20, 10:01 - Ann: Waiting for this message. This may take a while.\n",
        &["skipped: unsupported", "skipped: encrypted"],
    );
}

#[test]
fn damaged_records_are_rejected_with_their_line_and_the_rest_goes_on() {
    check(
        "\u{feff}lost words\nand more\n13/06/20, 10:00 - Ann: one\n31/02/20, 10:00 - Ann: never\nmore\n14/06/20, 10:00 - Ann: two\n",
        &[
            "rejected _chat.txt:1: it comes before the first message; remove it",
            "2020-06-13T10:00:00Z Ann: one",
            "rejected _chat.txt:4: 31 2 20 is not a date; correct it",
            "2020-06-14T10:00:00Z Ann: two",
        ],
    );
    let folder = folder(&[("notes.txt", "just\nsome notes\n")]);
    let error = open(&SourceSettings::new("whatsapp", folder.path().join("notes.txt"))).err().unwrap();
    assert!(error.to_string().contains("notes.txt:1:1: no line begins with a date and a time"), "{error}");
}

#[test]
fn folders_hold_chats_beside_media() {
    let folder = folder(&[
        ("WhatsApp Chat - Club/_chat.txt", "[13/06/20, 10:00:00] Ann: one\r\n"),
        ("WhatsApp Chat - Club/00000002-notes.txt", "13/06/20, 10:00 - Ann: an attached text\n"),
        ("more/WhatsApp Chat with Bo.txt", "13/06/20, 10:00 - Bo: two\n"),
    ]);
    let mut settings = SourceSettings::new("whatsapp", folder.path());
    settings.zone = "Europe/Berlin".to_owned();
    let (found, notice) = items(&open, &settings).unwrap();
    assert_eq!(transcript(&found), ["2020-06-13T10:00:00+02:00 Ann: one", "2020-06-13T10:00:00+02:00 Bo: two"]);
    assert!(notice.unwrap().contains("_chat.txt and 1 more: its dates are read as day, month, year"));
    let names: Vec<_> = found
        .iter()
        .map(|item| match item {
            ChatItem::Message(m) => m.conversation.name.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["Club", "Bo"]);
}

#[test]
fn an_export_is_recognised_and_others_are_not() {
    for (name, content, expected) in [
        ("_chat.txt", "[2024-03-05 14:05:01] Ann: hi\n", true),
        ("renamed.txt", "13/06/20, 10:00 - Ann: hi\n", true),
        ("renamed.txt", "[13.06.20, 10:00:00] Ann: hi\n", true),
        ("chat.txt", "[2019-12-24, 12:23] Ann: hi\n", false),
        // An iPhone in Sweden or Canada; one of Signal's exporters ends each line with two spaces.
        ("renamed.txt", "[2019-04-16 02:09] Ann: hi\n", true),
        ("renamed.txt", "[2019-04-16 02:09:11] Ann: hi\n", true),
        ("chat.txt", "[2019-04-16 02:09:11] Ann: hi  \n", false),
        ("chat.md", "[13.06.20, 10:00:00] Ann: hi\n", false),
        ("irc.txt", "2024-03-05 14:05:01\tann\thi\n[10:15] <ann> hi\n", false),
        ("notes.txt", "hello\n", false),
    ] {
        let folder = folder(&[(name, content)]);
        let sample = FileSample::of(&folder.path().join(name)).unwrap();
        assert_eq!((super::FORMAT.looks_like)(&sample), expected, "{name}: {content}");
    }
}

proptest! {
    #[test]
    fn no_line_makes_the_reader_panic(
        lines in proptest::collection::vec(
            prop_oneof![
                "[0-9/.,: \\-\\[\\]apmAPM\u{200e}\u{202f}]{0,40}",
                "[0-9]{1,4}[/.-][0-9]{1,4}[/.-][0-9]{1,4},? [0-9]{1,2}[:.][0-9]{2} ?(AM|p\\. m\\.|下午)? ?[-\\]:] ?[A-Z:~ ]{0,9}: ?.{0,30}",
                "\\[[0-9]{1,2}/[0-9]{1,2}/18, 10:00:00\\] (Ann|Bo|A: B): \u{200e}?(<[a-z :.]{0,20}>|[A-Z]+:|image omitted|This message was deleted).{0,9}",
                ".{0,60}",
            ],
            0..12,
        )
    ) {
        let content = lines.join("\n");
        let folder = folder(&[("_chat.txt", &content)]);
        if let Ok((found, _)) = items(&open, &SourceSettings::new("whatsapp", folder.path())) {
            let (again, _) = items(&open, &SourceSettings::new("whatsapp", folder.path())).unwrap();
            prop_assert_eq!(transcript(&found), transcript(&again));
            let mut seen = ids(&found);
            let count = seen.len();
            seen.sort();
            seen.dedup();
            prop_assert_eq!(seen.len(), count, "ids are unique");
        }
    }
}

#[test]
fn months_in_words_are_read_before_and_behind_the_time() {
    for line in [
        "19:23, 6 Mar 2018 - a: m",
        "19:23, 6 March 2018 - a: m",
        "7:23PM, Mar 6, 2018 - a: m",
        "6 Mar 2018, 19:23 - a: m",
        "6 de mar. de 2018 19:23 - a: m",
        "6. März 2018 19:23 - a: m",
        "Mar 6, 2018, 7:23 PM - a: m",
        "6 мар. 2018, 19:23 - a: m",
        "[6 mars 2018 19:23:00] a: m",
    ] {
        let (found, notice) = times(line, None);
        assert_eq!(found, ["2018-03-06T19:23"], "{line}");
        assert!(notice.contains("their months are words"), "{notice}");
    }
    check(
        "6 Mar 2018, 19:23 - a: see you\nMay 5, 10:30 is fine",
        &["2018-03-06T19:23:00Z a: see you\nMay 5, 10:30 is fine"],
    );
}

#[test]
fn years_of_eras_are_those_of_our_calendar() {
    for (line, expected) in [
        ("[3/27/R4, 21:41:35] a: m", "2022-03-27T21:41"),
        ("[R4/3/27 21:41:35] a: m", "2022-03-27T21:41"),
        ("H30/12/31 21:41 - a: m", "2018-12-31T21:41"),
        ("[令和4年3月27日 21:41:35] a: m", "2022-03-27T21:41"),
        ("[令和元年12月27日 21:41:35] a: m", "2019-12-27T21:41"),
        ("[民國111/3/27 21:41:35] a: m", "2022-03-27T21:41"),
    ] {
        assert_eq!(times(line, None).0, [expected], "{line}");
    }
}

#[test]
fn halves_of_the_day_are_known_in_other_languages() {
    for (morning, afternoon) in [
        ("e paradites", "e pasdites"),
        ("ጥዋት", "ከሰዓት"),
        ("နံနက်", "ညနေ"),
        ("ព្រឹក", "ល្ងាច"),
        ("ກ່ອນທ່ຽງ", "ຫຼັງທ່ຽງ"),
        ("පෙ.ව.", "ප.ව."),
        ("ү.ө.", "ү.х."),
        ("yb", "yh"),
        ("r.n.", "i.n."),
        ("f.h.", "e.h."),
        ("ԿԱ", "ԿՀ"),
        ("TO", "TK"),
        ("ТО", "ТК"),
        ("GH", "GD"),
        ("ਪੂ.ਦੁ.", "ਬਾ.ਦੁ."),
        ("غ.م.", "غ.و."),
        ("قبل\u{200c}ازظهر", "بعدازظهر"),
        ("pre podne", "po podne"),
        ("пре подне", "по подне"),
        ("претпл.", "попл."),
        ("prijepodne", "popodne"),
        ("priekšp.", "pēcp."),
        ("asubuhi", "mchana"),
        ("түске дейін", "түстен кейін"),
        ("таңкы", "түштөн кийинки"),
        ("ପୂର୍ବାହ୍ନ", "ଅପରାହ୍ନ"),
        ("পূৰ্বাহ্ন", "অপৰাহ্ন"),
        ("dop.", "pop."),
        ("пр.об.", "сл.об."),
    ] {
        for form in [
            "[DAY/1/24, 3:04:05\u{202f}HALF] Ann: hi",
            "DAY/1/24, 3:04 HALF - Ann: hi",
            "DAY/1/24, HALF 3:04 - Ann: hi",
        ] {
            let line = |day: &str, half: &str| form.replace("DAY", day).replace("HALF", half);
            let content = [line("13", morning), line("14", afternoon)].join("\n");
            assert_eq!(times(&content, None).0, ["2024-01-13T03:04", "2024-01-14T15:04"], "{content}");
        }
    }
}

#[test]
fn an_unknown_half_of_the_day_is_named_and_its_line_is_no_part_of_another_message() {
    let reason = "behind its time is not known as a half of the day; write AM or PM instead";
    check(
        "[13/1/24, 3:04:05 AM] Ann: one\n[13/1/24, 9:00:00 AM] Bo: two\n[13/1/24, 3:04:05 blorp] Ann: three\nmore\n\
         [13/1/24, 4:00:00 PM] Bo: four\n",
        &[
            "2024-01-13T03:04:05Z Ann: one",
            "2024-01-13T09:00:00Z Bo: two",
            &format!("rejected _chat.txt:3: `blorp` {reason}"),
            "2024-01-13T16:00:00Z Bo: four",
        ],
    );
    check(
        "13/1/24, 3:04 AM - Ann: one\n13/1/24, 9:00 AM - Bo: two\n13/1/24, 3:04 e blorp - Ann: three\n\
         13/1/24, 4:00 e blorp - Bo left\n13/1/24, 5:00 PM - Bo: four\n",
        &[
            "2024-01-13T03:04:00Z Ann: one",
            "2024-01-13T09:00:00Z Bo: two",
            &format!("rejected _chat.txt:3: `e blorp` {reason}"),
            &format!("rejected _chat.txt:4: `e blorp` {reason}"),
            "2024-01-13T17:00:00Z Bo: four",
        ],
    );
    for content in [
        "13/1/24, 3:04 e blorp - Ann: one\n14/1/24, 9:00 blorp - Bo: two\n",
        "[13/1/24, 3:04:05 e blorp] Ann: one\n[13/1/24, 3:05:05 PM] Ann: two\n[14/1/24, 9:00:00 blorp] Bo: three\n",
    ] {
        let folder = folder(&[("_chat.txt", content)]);
        let error = items(&open, &SourceSettings::new("whatsapp", folder.path())).unwrap_err().to_string();
        let expected = "_chat.txt:1:1: `e blorp` behind its times is not known as a half of the day; write AM or PM";
        assert!(error.contains(expected), "{error}");
    }
    // Where a space alone ends the time, a dash may be part of a name, and a name may begin like a marker.
    check(
        "13.1.24 10:00 Ann - work: one\n13.1.24 10:01 Chris: two\n13.1.24 10:02 Amanda: three\n",
        &[
            "2024-01-13T10:00:00Z Ann - work: one",
            "2024-01-13T10:01:00Z Chris: two",
            "2024-01-13T10:02:00Z Amanda: three",
        ],
    );
}

#[test]
fn dates_of_the_persian_calendar_are_those_of_ours() {
    for line in ["۱۴۰۲/۱۰/۲۳،\u{200f} ۱۵:۰۴ - سارا: سلام", "[1402/10/23, 15:04:05] Sara: hi"] {
        assert_eq!(times(line, None).0, ["2024-01-13T15:04"], "{line}");
    }
    // Of two digits, the numbers of all dates show the calendar, or the name of a file does, or the setting.
    let either = "۰۲/۱۰/۲۵، ۱۵:۰۴ - سارا: خوبی\n";
    let (found, notice) = times(&format!("{either}۰۲/۱۰/۰۵، ۱۵:۰۴ - سارا: سلام\n"), None);
    assert_eq!(found, ["2024-01-15T15:04", "2023-12-26T15:04"]);
    assert!(notice.contains("year, month, day of the Persian calendar (some of them allow no other order"), "{notice}");
    let attached = "۰۲/۱۰/۲۵، ۱۵:۰۴ - سارا: IMG-20240115-WA0000.jpg (file attached)";
    assert_eq!(times(attached, None).0, ["2024-01-15T15:04"]);
    assert_eq!(times(either, Some(DateOrder::Ymd)).0, ["2024-01-15T15:04"]);
    assert_eq!(times(either, Some(DateOrder::Dmy)).0, ["2025-10-02T15:04"]);
    let folder = folder(&[("_chat.txt", either)]);
    let error = items(&open, &SourceSettings::new("whatsapp", folder.path())).unwrap_err().to_string();
    assert!(
        error.contains("its dates fit the Persian and the Gregorian calendar") && error.contains("ymd or dmy"),
        "{error}"
    );
}

#[test]
fn a_year_that_is_missing_is_that_of_the_lines_beside_it() {
    let of = |lines: &[&str]| times(&lines.join("\n"), None).0;
    assert_eq!(
        of(&[
            "19:23, 28 Dec 2012 - a: m",
            "19:24, 31 Dec 2012 - a: m",
            "07:05, 2 Jan - a: m",
            "07:04, 31 Dec - a: late",
            "07:05, 3 Jan - a: m",
            "07:05, 29 Nov - a: m",
            "07:05, 1 Feb - a: m"
        ]),
        [
            "2012-12-28T19:23",
            "2012-12-31T19:24",
            "2013-01-02T07:05",
            "2012-12-31T07:04",
            "2013-01-03T07:05",
            "2013-11-29T07:05",
            "2014-02-01T07:05"
        ]
    );
    // The first lines get the year of the first line that states one, minus the number of year changes in between.
    assert_eq!(
        of(&["10:00, 30 Nov - a: m", "10:00, 3 Jan - a: m", "10:00, 5 Feb 2014 - a: m"]),
        ["2013-11-30T10:00", "2014-01-03T10:00", "2014-02-05T10:00"]
    );
    assert_eq!(
        of(&["28/4/2013, 10:00 - a: m", "29/4/2013, 10:00 - a: m", "30/4/2013, 10:00 - a: m"])[0],
        "2013-04-28T10:00"
    );
}

#[test]
fn a_chat_without_any_year_asks_for_it() {
    let content = "19:23, 28 Dec - a: m\n07:05, 2 Jan - b: n\n";
    let open_as = |name: &str| {
        let folder = folder(&[(name, content)]);
        items(&open, &SourceSettings::new("whatsapp", folder.path().join(name)))
    };
    let error = open_as("WhatsApp Chat with Ann.txt").unwrap_err().to_string();
    assert!(error.contains("its dates have no year; put the year of the first message at the end"), "{error}");
    let (found, _) = open_as("WhatsApp Chat with Ann 2012.txt").unwrap();
    assert_eq!(transcript(&found), ["2012-12-28T19:23:00Z a: m", "2013-01-02T07:05:00Z b: n"]);
    let ChatItem::Message(first) = &found[0] else { panic!("{found:?}") };
    assert_eq!(first.conversation.name, "Ann");
    // Two numbers alone are a date if every line has them.
    let content = "28/12, 19:23 - a: m\n2/1, 07:05 - b: n\n";
    let folder = folder(&[("Ann 2012.txt", content)]);
    let (found, _) = items(&open, &SourceSettings::new("whatsapp", folder.path().join("Ann 2012.txt"))).unwrap();
    assert_eq!(transcript(&found), ["2012-12-28T19:23:00Z a: m", "2013-01-02T07:05:00Z b: n"]);
}
