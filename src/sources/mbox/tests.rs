//! Tests of mail, on files written by hand.

use std::{collections::BTreeMap, fs, path::Path};

use proptest::prelude::*;
use tempfile::TempDir;

use super::FORMAT;
use crate::{
    SourceError,
    chat::{ChatItem, ChatReader, FileSample, items_of, lines_of},
    format::FormatOpener,
};
use types::config::SourceSettings;

const SEPARATOR: &str = "From ann@a.example Wed May  1 10:00:00 2024\n";

fn open(path: &Path) -> Result<Box<dyn ChatReader>, SourceError> {
    let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat's format") };
    open(&SourceSettings::new("mbox", path))
}

fn file(content: impl AsRef<[u8]>) -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("list.mbox");
    fs::write(&path, content).unwrap();
    (folder, path)
}

fn items(content: impl AsRef<[u8]>) -> Vec<ChatItem> {
    let (_folder, path) = file(content);
    items_of(&mut *open(&path).unwrap())
}

fn check(content: impl AsRef<[u8]>, expected: &[&str]) {
    let (_folder, path) = file(&content);
    assert_eq!(lines_of(&mut *open(&path).unwrap()), expected, "{}", String::from_utf8_lossy(content.as_ref()));
}

/// A mail from Ann, this many minutes after ten, with these headers and this body.
fn mail(minute: u32, headers: &str, body: &str) -> String {
    format!(
        "{SEPARATOR}From: Ann Lee <Ann@a.example>\nDate: Wed, 1 May 2024 10:{minute:02}:00 +0200\nMessage-ID: <{minute}@a.example>\n{headers}\n{body}\n\n"
    )
}

fn texts(content: impl AsRef<[u8]>) -> Vec<String> {
    let of = |item| match item {
        ChatItem::Message(message) => message.text,
        other => panic!("{other:?}"),
    };
    items(content).into_iter().map(of).collect()
}

#[test]
fn mails_come_oldest_first_with_their_zone_and_the_subject_of_what_begins_a_thread() {
    let mbox = mail(5, "Subject: Re: Plan\n", "Good.") + &mail(1, "Subject: Plan\n", "Here it is.");
    check(
        &mbox,
        &[
            "1@a.example 2024-05-01T10:01:00+02:00 Ann Lee: Plan\n\nHere it is.",
            "5@a.example 2024-05-01T10:05:00+02:00 Ann Lee: Good.",
        ],
    );
    check(
        mbox.replace('\n', "\r\n"),
        &[
            "1@a.example 2024-05-01T10:01:00+02:00 Ann Lee: Plan\n\nHere it is.",
            "5@a.example 2024-05-01T10:05:00+02:00 Ann Lee: Good.",
        ],
    );
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let mbox = mail(1, "", "one") + &mail(2, "", "two");
    let single = mbox.strip_prefix(SEPARATOR).unwrap();
    let single = &single[..single.find(SEPARATOR).unwrap()];
    assert_eq!(texts(format!("\u{feff}{mbox}")), ["one", "two"]);
    assert_eq!(texts(format!("\u{feff}{single}")), ["one"]);
}

#[test]
fn a_line_that_begins_with_from_separates_mails_only_where_one_begins() {
    let unescaped = "Hello.\n\nFrom here on it is easy.\nFrom: that is no header\n\nFrom Monday at 10:30 we meet, as in 2023.\nBye.";
    assert_eq!(texts(mail(1, "", unescaped)), [unescaped]);
    assert_eq!(texts(mail(1, "", ">From here on\nit is easy.")), ["From here on\nit is easy."]);
    // Without a blank line before it, and with other forms of the line.
    let one = mail(1, "", "one").trim_end().to_owned();
    for separator in [
        "From bo@b.example Wed May  1 10:00:00 2024",
        "From - Wed May 01 10:00:00 2024",
        "From 1234567890@xxx Wed May 01 10:00:00 +0000 2024",
        "From bo at b.example  Wed May  1 10:00:00 2024",
        "From MAILER-DAEMON Wed May  1 10:00:00 CEST 2024",
    ] {
        let two = mail(2, "", "two").replace(SEPARATOR.trim_end(), separator);
        assert_eq!(texts(format!("{one}\n{two}")), ["one", "two"], "{separator}");
        assert_eq!(texts(format!("\n{two}")), ["two"], "{separator}");
    }
    let undated = mail(2, "", "two").replace(SEPARATOR.trim_end(), "From ???@???");
    assert_eq!(texts(format!("{one}\n\n{undated}")), ["one", "two"]);
}

#[test]
fn mails_that_answer_each_other_are_a_thread_also_when_its_first_mail_is_missing() {
    let mbox = mail(1, "Subject: Plan\n", "root")
        + &mail(2, "In-Reply-To: <1@a.example>\n", "by the one header")
        + &mail(3, "References: <1@a.example>\n <2@a.example>\nIn-Reply-To: <2@a.example>\n", "by both")
        + &mail(4, "In-Reply-To: <3@a.example>\n", "deeper")
        + &mail(5, "References: <0@a.example> <gone@a.example>\n", "of another thread")
        + &mail(6, "Subject: alone\n", "");
    check(
        &mbox,
        &[
            "1@a.example 2024-05-01T10:01:00+02:00 Ann Lee: Plan\n\nroot | thread=1@a.example",
            "2@a.example 2024-05-01T10:02:00+02:00 Ann Lee: by the one header | thread=1@a.example | reply=1@a.example",
            "3@a.example 2024-05-01T10:03:00+02:00 Ann Lee: by both | thread=1@a.example | reply=2@a.example",
            "4@a.example 2024-05-01T10:04:00+02:00 Ann Lee: deeper | thread=1@a.example | reply=3@a.example",
            "5@a.example 2024-05-01T10:05:00+02:00 Ann Lee: of another thread | thread=0@a.example | reply=gone@a.example",
            "6@a.example 2024-05-01T10:06:00+02:00 Ann Lee: alone",
        ],
    );
}

#[test]
fn what_is_missing_is_found_elsewhere_or_the_mail_is_rejected() {
    let bare = |headers: &str| format!("{SEPARATOR}{headers}\nHello.\n\n");
    // The time in the separator, which states no zone.
    check(bare("From: ann@a.example (Ann Lee)\nMessage-ID: <1@x>\n"), &["1@x 2024-05-01T10:00:00Z Ann Lee: Hello."]);
    check(bare("Message-ID: <1@x>\nDate: nonsense\n"), &["1@x 2024-05-01T10:00:00Z ann: Hello."]);
    let received = "Received: from a by b; Wed, 1 May 2024 09:00:00 +0100\nFrom: <bo@b.example>\nMessage-ID: <1@x>\n";
    check(bare(received), &["1@x 2024-05-01T09:00:00+01:00 bo: Hello."]);
    // An id made from the mail's content, the same in every export.
    let nameless = bare("From: Bo <bo@b.example>\nDate: Wed, 1 May 2024 10:00:00 +0000\n");
    let id = |content: &str| match items(content).remove(0) {
        ChatItem::Message(message) => message.id,
        other => panic!("{other:?}"),
    };
    assert!(id(&nameless).starts_with("no-id-"));
    assert_eq!(id(&nameless), id(&(mail(1, "", "x") + &nameless)[mail(1, "", "x").len()..]));
    assert_ne!(id(&nameless), id(&nameless.replace("Hello", "Goodbye")));
    let good = mail(3, "", "good");
    let (_folder, path) = file(format!("From nobody Wed May  1 10:00:00 2024\nSubject: x\n\nbody\n\n{good}"));
    assert_eq!(
        lines_of(&mut *open(&path).unwrap()),
        [
            "reject list.mbox:1: From: missing; write the author's address",
            "3@a.example 2024-05-01T10:03:00+02:00 Ann Lee: good",
        ]
    );
    let (_folder, path) = file(format!("From ann@a.example\nFrom: a@b.example\nSubject: x\n\nbody\n\n{good}"));
    assert_eq!(
        lines_of(&mut *open(&path).unwrap())[0],
        "reject list.mbox:1: Date: missing or not a date; write it as RFC 5322 does"
    );
}

#[test]
fn dates_are_read_in_whatever_form_programs_write_them() {
    let settings =
        |path: &Path, zone: &str| SourceSettings { zone: zone.to_owned(), ..SourceSettings::new("mbox", path) };
    for (date, expected) in [
        ("Wed, 1 May 2024 11:00:00 +0200", "2024-05-01T11:00:00+02:00"),
        ("Wed, 1 May 2024 11:00 +0200", "2024-05-01T11:00:00+02:00"),
        ("1 May 2024 11:00:00 +0200", "2024-05-01T11:00:00+02:00"),
        ("Wed,  1 May 2024\n 11:00:00 -0000", "2024-05-01T11:00:00Z"),
        ("Wed, 1 May 2024 9:05:00 +0530", "2024-05-01T09:05:00+05:30"),
        ("Wed, 1 May 24 11:00:00 PDT", "2024-05-01T11:00:00-07:00"),
        ("Sun, 1 May 94 11:00:00 EST", "1994-05-01T11:00:00-05:00"),
        ("Wed, 01 May 2024 11:00:00 GMT", "2024-05-01T11:00:00Z"),
        ("Wed, 1 May 2024 11:00:00 UT", "2024-05-01T11:00:00Z"),
        ("Wed, 1 May 2024 11:00:00 CEST", "2024-05-01T11:00:00+02:00"),
        ("Wed, 1 May 2024 11:00:00 GMT+02:00", "2024-05-01T11:00:00+02:00"),
        ("Wed, 1 May 2024 11:00:00 +02:00", "2024-05-01T11:00:00+02:00"),
        ("Wed, 1 May 2024 11:00:00 +0200 (Mitteleuropäische Sommerzeit, (a) \\) 7)", "2024-05-01T11:00:00+02:00"),
        ("Wed, 1 May 2024 11:00:60 +0200", "2024-05-01T11:00:59+02:00"),
        ("Wed, 1 May 2024 11.00.00 +0200", "2024-05-01T11:00:00+02:00"),
        ("Wed, 1 May 2024 11:00:00 PM +0200", "2024-05-01T23:00:00+02:00"),
        ("Wed, 1 May 2024 12:00:00AM +0200", "2024-05-01T00:00:00+02:00"),
        ("1-May-2024 11:00:00 +0200", "2024-05-01T11:00:00+02:00"),
        ("Mi, 1. Mai 2024 11:00:00 +0200", "2024-05-01T11:00:00+02:00"),
        ("mar., 30 avr. 2024 11:00:00 +0200", "2024-04-30T11:00:00+02:00"),
        ("Wed May  1 11:00:00 2024 -0500", "2024-05-01T11:00:00-05:00"),
        ("Wed May  1 11:00:00 CEST 2024", "2024-05-01T11:00:00+02:00"),
        ("2024-05-01 11:00:00 +0200", "2024-05-01T11:00:00+02:00"),
        ("2024-05-01T11:00:00.25+02:00", "2024-05-01T11:00:00+02:00"),
        ("2024-05-01T11:00:00Z", "2024-05-01T11:00:00Z"),
        // Left-out zeros, doubled signs, and years counted from 1900.
        ("Wed, 1 May 2024 9:5:7 -0800", "2024-05-01T09:05:07-08:00"),
        ("Wed, 1 May 2024 11:00:00 --0400", "2024-05-01T11:00:00-04:00"),
        ("Wed, 1 May 0024 11:00:00 +0200", "2024-05-01T11:00:00+02:00"),
        ("Wed, 1 May 19124 11:00:00 +0200", "2024-05-01T11:00:00+02:00"),
        ("Wed, 1 May 2024 24:00:00 +0200", "2024-05-02T00:00:00+02:00"),
        // Zones with daylight saving rules, and `DST` after a zone.
        ("Wed, 1 May 2024 11:00:00 EST5EDT", "2024-05-01T11:00:00-04:00"),
        ("Thu, 1 Feb 2024 11:00:00 EST5EDT", "2024-02-01T11:00:00-05:00"),
        ("Wed, 1 May 2024 11:00:00 America/New_York", "2024-05-01T11:00:00-04:00"),
        ("Wed, 1 May 2024 11:00:00 Asia/Kolkata", "2024-05-01T11:00:00+05:30"),
        ("Wed, 1 May 2024 11:00:00 MET DST", "2024-05-01T11:00:00+02:00"),
        // Without a zone, the zone in the settings is used.
        ("Wed, 1 May 2024 11:00:00", "2024-05-01T11:00:00+09:00"),
        ("Wed, 1 May 2024 11:00:00 IST", "2024-05-01T11:00:00+09:00"),
        ("Wed May  1 11:00:00 2024", "2024-05-01T11:00:00+09:00"),
        ("2024-05-01 11:00", "2024-05-01T11:00:00+09:00"),
        // Not a date: the date in the separator is used.
        ("01.05.24 11:00:00 +0200", "2021-01-01T00:00:00+09:00"),
        ("Wed, 31 Apr 2024 11:00:00 +0200", "2021-01-01T00:00:00+09:00"),
        ("yesterday at 11:00", "2021-01-01T00:00:00+09:00"),
    ] {
        let mbox = format!("From x Fri Jan  1 00:00:00 2021\nFrom: A <a@x>\nDate: {date}\nMessage-ID: <1@x>\n\nbody\n");
        let (_folder, path) = file(mbox);
        let FormatOpener::Chat(open) = FORMAT.open else { panic!("a chat's format") };
        let lines = lines_of(&mut *open(&settings(&path, "+09:00")).unwrap());
        assert_eq!(lines, [format!("1@x {expected} A: body")], "{date}");
    }
}

#[test]
fn a_date_of_another_weekday_counts_less_than_what_a_server_wrote() {
    let received = "Received: from a by b; Thu, 2 May 2024 11:00:00 UT\n";
    for (received, date, expected) in [
        (received, "Wed, 1 May 2024 11:00:00 +0200", "2024-05-01T11:00:00+02:00"),
        (received, "Fri, 1 May 2024 11:00:00 +0200", "2024-05-02T11:00:00Z"),
        ("", "Fri, 1 May 2024 11:00:00 +0200", "2024-05-01T11:00:00+02:00"),
    ] {
        let headers = format!("{received}From: A <a@x>\nDate: {date}\nMessage-ID: <1@x>\n");
        check(format!("{SEPARATOR}{headers}\nbody\n"), &[&format!("1@x {expected} A: body")]);
    }
}

#[test]
fn text_is_taken_before_html_and_what_is_attached_by_its_name() {
    let part = |headers: &str, body: &str| format!("--b\n{headers}\n\n{body}\n");
    let mixed = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n";
    let alternative = "MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=b\n";
    let plain = part("Content-Type: text/plain; charset=utf-8", "plain");
    let html = part("Content-Type: text/html", "<p>rich &amp; <b>bold</b></p><blockquote>quoted</blockquote>");
    let file = part("Content-Type: application/pdf\nContent-Disposition: attachment; filename=\"plan.pdf\"", "AAAA");
    let picture = part("Content-Type: image/png; name=cat.png\nContent-Transfer-Encoding: base64", "AAAA");
    let layout = part("Content-Type: image/png\nContent-ID: <logo>\nContent-Disposition: inline", "AAAA");
    let forwarded = part("Content-Type: message/rfc822", "From: bo@b.example\nSubject: Old plan\n\nx");
    let start = "1@a.example 2024-05-01T10:01:00+02:00 Ann Lee: ";
    for (headers, parts, expected) in [
        (alternative, plain.clone() + &html, "plain"),
        (alternative, html.clone(), "rich & bold"),
        (mixed, plain.clone() + &file + &picture, "plain | file: plan.pdf | image: cat.png"),
        (mixed, plain.clone() + &layout, "plain"),
        (mixed, file.clone(), " | file: plan.pdf"),
        (mixed, plain.clone() + &forwarded, "plain | mail: Old plan"),
    ] {
        check(mail(1, headers, &format!("{parts}--b--")), &[&format!("{start}{expected}")]);
    }
}

#[test]
fn charsets_are_decoded_and_unknown_ones_read_as_they_can() {
    for (charset, bytes, expected) in [
        ("utf-8", &b"gr\xc3\xbcn"[..], "grün"),
        ("iso-8859-1", b"gr\xfcn", "grün"),
        ("gb2312", b"\xc4\xe3\xba\xc3", "你好"),
        ("x-unknown-7", b"plain words", "plain words"),
        ("x-unknown-7", b"gr\xfcn", "gr\u{fffd}n"),
    ] {
        let headers = format!(
            "MIME-Version: 1.0\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n"
        );
        let all = mail(1, &headers, "BODY");
        let (before, after) = all.split_once("BODY").unwrap();
        assert_eq!(texts([before.as_bytes(), bytes, after.as_bytes()].concat()), [expected], "{charset}");
    }
    let subject = "Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n";
    assert_eq!(texts(mail(1, subject, "x")), ["Grüße\n\nx"]);
}

#[test]
fn copies_expunged_encrypted_and_internal_mails_are_skipped() {
    let twice = mail(1, "", "one") + &mail(1, "", "one");
    check(&twice, &["1@a.example 2024-05-01T10:01:00+02:00 Ann Lee: one", "skip copy"]);
    check(mail(1, "X-Mozilla-Status: 0009\n", "deleted"), &["skip copy"]);
    check(mail(1, "", "-----BEGIN PGP MESSAGE-----\n\nabc"), &["skip encrypted"]);
    check(
        mail(1, "Subject: DON'T DELETE THIS MESSAGE -- FOLDER INTERNAL DATA\nX-IMAP: 1\n", "This text is part of"),
        &["skip service message"],
    );
    check(mail(1, "In-Reply-To: <0@x>\n", "> only a quote"), &["skip empty"]);
}

#[test]
fn words_of_an_unknown_type_or_behind_a_broken_head_do_not_disappear() {
    let start = "1@a.example 2024-05-01T10:01:00+02:00 Ann Lee: ";
    for kind in ["text/pain; charset=utf-8", "~text/plain", "textplain", "multipart/mixed; boundary=lost"] {
        let mail = mail(1, &format!("Subject: Plan\nContent-Type: {kind}\n"), "Good.");
        let (_folder, path) = file(mail);
        let mut reader = open(&path).unwrap();
        assert_eq!(lines_of(&mut *reader), [format!("{start}Plan\n\nGood.")], "{kind}");
        assert_eq!(reader.unread(), BTreeMap::from([("Content-Type".to_owned(), 1)]), "{kind}");
    }
    let subject = format!("{start}Plan");
    check(mail(1, "Subject: Plan\nContent-Type: application/octet-stream\n", "\0\u{1}"), &[&subject]);
    check(mail(1, "Subject: Plan\n", ""), &[&subject]);
    check(
        mail(1, "Subject: Plan\nX-Folded: a\n b\n", "Good.").replace("b\n\n", "b\n"),
        &["reject list.mbox:1: a line among its headers is none; write a blank line in front of its words"],
    );
}

#[test]
fn an_address_that_several_people_share_is_several_accounts() {
    let from = |minute: u32, from: &str| mail(minute, "", "x").replace("Ann Lee <Ann@a.example>", from);
    let mbox = from(1, "Ann <notifications@hub.example>")
        + &from(2, "Bo <notifications@hub.example>")
        + &from(3, "\"Cy via dev\" <cy@c.example>")
        + &from(4, "no-reply@shop.example");
    let found: Vec<_> = items(&mbox)
        .into_iter()
        .map(|item| match item {
            ChatItem::Message(m) => (m.author.id, m.author.name, m.author.bot),
            other => panic!("{other:?}"),
        })
        .collect();
    let expect = |id: &str, name: &str, bot| (id.to_owned(), name.to_owned(), bot);
    assert_eq!(
        found,
        [
            expect("Ann <notifications@hub.example>", "Ann", false),
            expect("Bo <notifications@hub.example>", "Bo", false),
            expect("cy@c.example", "Cy", false),
            expect("no-reply <no-reply@shop.example>", "no-reply", true),
        ]
    );
}

#[test]
fn folders_hold_a_conversation_a_file_and_single_mails_one_a_folder() {
    let folder = TempDir::new().unwrap();
    let single = |minute| mail(minute, "", "x").strip_prefix(SEPARATOR).unwrap().to_owned();
    for (name, content) in [
        ("Inbox", mail(1, "", "x")),
        ("Inbox.msf", "index".to_owned()),
        ("Old.mbox/mbox", mail(2, "", "x")),
        ("work/plans.mbox", mail(3, "", "x")),
        ("notes.txt", "From what I know, no mail".to_owned()),
        ("letters/a.eml", single(4)),
        ("letters/b.eml", single(5)),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    assert!((FORMAT.looks_like)(&FileSample::of(folder.path()).unwrap()));
    let found: Vec<_> = items_of(&mut *open(folder.path()).unwrap())
        .into_iter()
        .map(|item| match item {
            ChatItem::Message(m) => (m.conversation.id.clone(), m.conversation.name.clone()),
            other => panic!("{other:?}"),
        })
        .collect();
    let expected =
        [("Inbox", "Inbox"), ("Old", "Old"), ("work/plans", "plans"), ("letters", "letters"), ("letters", "letters")];
    assert_eq!(found, expected.map(|(id, name)| (id.to_owned(), name.to_owned())));
}

#[test]
fn a_single_mail_is_read_and_what_is_no_mail_is_an_error() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.eml");
    fs::write(&path, mail(1, "", "x").strip_prefix(SEPARATOR).unwrap()).unwrap();
    assert!((FORMAT.looks_like)(&FileSample::of(&path).unwrap()));
    assert_eq!(lines_of(&mut *open(&path).unwrap()), ["1@a.example 2024-05-01T10:01:00+02:00 Ann Lee: x"]);
    for content in ["{\"from\": 1}", "Just words.\nFrom me."] {
        fs::write(&path, content).unwrap();
        let error = open(&path).err().unwrap().to_string();
        assert!(error.contains(":1:1: no mail: an mbox begins with a line such as"), "{error}");
        assert!(!(FORMAT.looks_like)(&FileSample::of(&path).unwrap()));
    }
}

#[test]
fn a_mail_beyond_the_limit_is_read_up_to_it() {
    let long = "x".repeat(100_000) + "\n";
    let mbox = mail(1, "", &long.repeat(200)) + &mail(2, "", "after");
    let texts = texts(&mbox);
    assert_eq!(texts.len(), 2);
    assert!(texts[0].len() > 15 << 20 && texts[0].len() <= 16 << 20, "{}", texts[0].len());
    assert_eq!(texts[1], "after");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn mutated_mails_are_read_or_rejected(at in 0usize..1_200, with in prop::collection::vec(any::<u8>(), 0..6), cut in 0usize..30,
                                          words in "(\nFrom |--b|: |;|=\\?utf-8\\?q\\?|<|>|\n\n){0,3}") {
        let parts = "--b\nContent-Type: text/plain; charset=utf-8\n\nhi\n> q\n--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\nContent-Type: message/rfc822\n\nFrom: x@y\n\nz\n--c--\n--b\nContent-Disposition: attachment; filename*=utf-8''a%20b\nContent-Transfer-Encoding: base64\n\nQUJD\n--b--";
        let mbox = mail(1, "Content-Type: multipart/mixed; boundary=b\nReferences: <a> <b>\n", parts) + &mail(2, "", "end");
        let mut bytes = mbox.into_bytes();
        let at = at % bytes.len();
        let end = (at + cut).min(bytes.len());
        bytes.splice(at..end, with.into_iter().chain(words.bytes()));
        let (_folder, path) = file(bytes);
        if let Ok(mut reader) = open(&path) {
            items_of(&mut *reader);
        }
    }
}

#[test]
fn what_of_a_date_is_not_read_is_told() {
    let received = "Received: from a by b; Thu, 2 May 2024 11:00:00 UT\n";
    for (headers, told) in [
        ("Date: Wed, 1 May 2024 11:00:00 +0200\n".to_owned(), &[][..]),
        ("Date: Wed, 1 May 2024 11:00:00 EST5EDT\n".to_owned(), &[]),
        ("Date: Wed, 1 May 2024 11:00:00 IST\n".to_owned(), &[("zone of Date", 1)]),
        ("Date: Wed, 1 May 2024 11:00:00 Nowhere/Land\n".to_owned(), &[("zone of Date", 1)]),
        ("Date: Wed, 1 May 2024 11:00:00\n".to_owned(), &[("zone of Date", 1)]),
        ("Date: Wed, 1 May 2024 30:00:45 +0700\n".to_owned(), &[("Date", 1)]),
        (format!("{received}Date: Wed, 1 May 2024 30:00:45 +0700\n"), &[("Date", 1)]),
        (format!("{received}Date: Fri, 1 May 2024 11:00:00 +0200\n"), &[("Date", 1)]),
        (received.to_owned(), &[]),
    ] {
        let (_folder, path) = file(format!("{SEPARATOR}{headers}From: A <a@x>\nMessage-ID: <1@x>\n\nbody\n"));
        let mut reader = open(&path).unwrap();
        assert_eq!(items_of(&mut *reader).len(), 1);
        let told: BTreeMap<String, u64> = told.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        assert_eq!(reader.unread(), told, "{headers}");
    }
}

/// Thunderbird's folders have separators with nothing behind `From `.
#[test]
fn a_bare_separator_separates_where_a_header_follows() {
    let three = (1..4).map(|n| mail(n, "Subject: Re: x\n", &format!("number {n}"))).collect::<String>();
    for separator in
        ["From \n", "From   \n", "From \r\n", "From - Wed May  1 10:00:00 2024\n", "From - 2024-05-01 10:00\n"]
    {
        let mbox = three.replace(SEPARATOR, separator);
        assert_eq!(texts(&mbox), ["number 1", "number 2", "number 3"], "{separator:?}");
        // Thunderbird writes no blank line in front of it.
        if separator.contains(" - 2024") {
            continue;
        }
        assert_eq!(texts(mbox.replace("\n\nFrom ", "\nFrom ")), ["number 1", "number 2", "number 3"], "{separator:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("Inbox"), three.replace(SEPARATOR, "From \n")).unwrap();
    assert_eq!(items_of(&mut *open(folder.path()).unwrap()).len(), 3, "a folder of Thunderbird");
}

#[test]
fn a_sentence_that_begins_with_from_separates_nothing() {
    for body in [
        "From my own side\nSubject: this is a word with a colon",
        "From \nmy side: nothing",
        "From \n\nnothing",
        "From 9:00 on Monday until May 2026\nAgenda: the quay",
        "hi\nFrom 9:00 on 3 May 2026\nTo: be on the safe side",
        "From Wed to Fri\n\nDate: open",
        ">From here",
    ] {
        let expected = body.replace(">From", "From").replace("From \n", "From\n");
        assert_eq!(texts(mail(1, "Subject: Re: x\n", body)), [expected.as_str()], "{body:?}");
    }
}
