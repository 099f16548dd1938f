//! Keeps what the author of a mail wrote.
//!
//! In: a mail's text. Out: the text without quoted replies and the lines that introduce them, without signatures,
//! footers of mailing lists and the frame of signed mails. Answers between quotes stay, and so do forwarded mails. Only
//! parts that mail programs mark are removed; a paragraph is never removed for what it says.

use std::sync::LazyLock;

use regex::Regex;

/// The line that introduces a quote may be broken into at most this many lines.
const MAX_INTRODUCTION_LINES: usize = 3;
/// The maximum number of lines of a signature after `--` without its space.
const MAX_SIGNATURE_LINES: usize = 10;

static WROTE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(wrote|writes|said|schrieb|schreibt|a écrit|écrit|escribió|ha scritto|schreef|skrev|kirjoitti|escreveu|napsal|napisał|pisze|написал|написала|пишет)\b[^\n]{0,80}:\s*$",
    )
    .ok()
});
static BEGINS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\W*(on|am|le|el|il|op|den|em|at|dne|dnia|w dniu|в|\d|mon|tue|wed|thu|fri|sat|sun)\b").ok()
});
static ORIGINAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\s*-{2,}\s*(original message|original-nachricht|ursprüngliche nachricht|message d'origine|mensaje original|mensagem original|messaggio originale|oorspronkelijk bericht|исходное сообщение)\s*-{2,}\s*$",
    )
    .ok()
});
static HEADER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^\*?(from|von|de|da|van|sent|gesendet|envoyé|enviado|inviato|verzonden|date|datum|to|an|à|para|a|aan|cc|subject|betreff|objet|asunto|assunto|oggetto|onderwerp)\s?:\*?\s").ok()
});
static DEVICE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)^(sent from my .{1,40}|sent from (outlook|mail|yahoo).{0,60}|get outlook for .{1,40}|von meinem .{1,30} gesendet|envoyé de mon .{1,40}|enviado desde mi .{1,40}|inviato da .{1,40})$").ok()
});

fn is(pattern: &LazyLock<Option<Regex>>, line: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(line))
}

/// A text in two parts.
#[derive(Debug, Default)]
pub(super) struct MailOwnWords {
    /// What its author wrote.
    pub(super) text: String,
    /// What was cut off, by kind: `quotation`, `signature` or `notice`.
    pub(super) trimmed: Vec<(&'static str, String)>,
}

/// Separates what the author of a text wrote from the rest.
pub(super) fn own_words(text: &str) -> MailOwnWords {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches('\u{a0}')).collect();
    let (lines, frame) = unframed(&lines);
    let ends = [("quotation", original(lines)), ("signature", signature(lines)), ("notice", footer(lines))];
    let (kind, end) = ends.into_iter().min_by_key(|(_, end)| *end).unwrap_or(("quotation", lines.len()));
    let below = lines.get(end..).unwrap_or_default().join("\n");
    let lines = lines.get(..end).unwrap_or(lines);
    let (mut kept, mut quoted, mut notices): (Vec<String>, Vec<String>, Vec<String>) = Default::default();
    for (at, line) in lines.iter().enumerate() {
        if is_quoted(lines, at) {
            quoted.extend(drop_introduction(&mut kept));
            quoted.push((*line).to_owned());
        } else if is(&DEVICE, line.trim()) {
            notices.push((*line).to_owned());
        } else {
            // A line that began with `From ` was escaped.
            let line = if is_escaped(line) { line.strip_prefix('>').unwrap_or(line) } else { line };
            if !(line.trim().is_empty() && kept.last().is_none_or(|last| last.is_empty())) {
                kept.push(line.trim_end().to_owned());
            }
        }
    }
    // Each kind once, since messages are counted by it.
    let mut trimmed =
        vec![("quotation", quoted.join("\n")), ("notice", notices.join("\n")), ("signature", String::new())];
    for (kind, words) in [(kind, below), ("signature", frame)] {
        for (_, of_kind) in trimmed.iter_mut().filter(|(of, _)| *of == kind) {
            *of_kind = [of_kind.as_str(), &words].join("\n").trim().to_owned();
        }
    }
    MailOwnWords { text: kept.join("\n").trim().to_owned(), trimmed }
}

/// A signed mail without its frame, and the frame with what is below it.
fn unframed<'a, 'b>(lines: &'b [&'a str]) -> (&'b [&'a str], String) {
    let first = lines.iter().position(|line| !line.trim().is_empty()).unwrap_or(0);
    if lines.get(first).is_none_or(|line| line.trim_end() != "-----BEGIN PGP SIGNED MESSAGE-----") {
        return (lines, String::new());
    }
    let from = lines.iter().skip(first).position(|line| line.trim().is_empty()).map_or(lines.len(), |at| first + at);
    let to = lines.iter().position(|line| line.trim_end() == "-----BEGIN PGP SIGNATURE-----").unwrap_or(lines.len());
    let frame = [lines.get(..from).unwrap_or_default(), lines.get(to.max(from)..).unwrap_or_default()].concat();
    (lines.get(from..to).unwrap_or_default(), frame.join("\n"))
}

/// Where the answered mail begins, which Outlook puts below the answer.
fn original(lines: &[&str]) -> usize {
    let begins = |at: usize| {
        let is_header = |line: Option<&&str>| line.is_some_and(|line| is(&HEADER, line));
        is(&ORIGINAL, lines.get(at).copied().unwrap_or_default())
            // Four headers in a row. A forwarded mail is not cut: the line above it says that it was forwarded.
            || (at > 0 && (at..at + 4).all(|at| is_header(lines.get(at))) && !is_forward_above(lines, at))
    };
    (0..lines.len()).find(|at| begins(*at)).map_or(lines.len(), |at| {
        // The horizontal rule that Outlook draws above.
        let above = at.checked_sub(1).and_then(|above| lines.get(above)).map_or("", |line| line.trim());
        if above.len() >= 20 && above.bytes().all(|b| b == b'_') { at - 1 } else { at }
    })
}

fn is_forward_above(lines: &[&str], at: usize) -> bool {
    let above = lines.get(..at).unwrap_or_default().iter().rev().find(|line| !line.trim().is_empty());
    above.is_some_and(|line| {
        let line = line.to_lowercase();
        line.contains("forwarded") || line.contains("weitergeleitet") || line.contains("transféré")
    }) || above.is_none()
}

fn signature(lines: &[&str]) -> usize {
    lines
        .iter()
        .enumerate()
        .position(|(at, line)| *line == "-- " || (*line == "--" && lines.len() - at <= MAX_SIGNATURE_LINES))
        .unwrap_or(lines.len())
}

/// Where a mailing list's footer begins: at a horizontal rule with a line about the list below it.
fn footer(lines: &[&str]) -> usize {
    let is_rule = |line: &str| line.len() >= 30 && line.bytes().all(|b| b == b'_' || b == b'-' || b == b'=');
    let about = |line: &str| {
        let line = line.to_lowercase();
        line.contains("mailing list") || line.contains("unsubscribe") || line.contains("/listinfo/")
    };
    (0..lines.len())
        .find(|at| {
            let below = || lines.iter().skip(at + 1).take(3);
            lines.get(*at).is_some_and(|line| is_rule(line.trim())) && below().any(|line| about(line))
        })
        .unwrap_or(lines.len())
}

/// Whether a line is quoted. `>From ` counts as quoted next to other quoted lines, and as escaped elsewhere.
fn is_quoted(lines: &[&str], at: usize) -> bool {
    let quoted = |line: &str| line.trim_start_matches(' ').starts_with('>') && !is_escaped(line);
    let Some(line) = lines.get(at) else { return false };
    if !is_escaped(line) {
        return quoted(line);
    }
    let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|at| lines.get(at));
    beside.into_iter().any(|line| quoted(line))
}

fn is_escaped(line: &str) -> bool {
    line.trim_start_matches('>').starts_with("From ") && line.starts_with('>')
}

/// Drops the lines that introduce a quote, and returns them: `On Monday, Ann wrote:`.
fn drop_introduction(kept: &mut Vec<String>) -> Vec<String> {
    let end = kept.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
    let mut from = None;
    for first in (end.saturating_sub(MAX_INTRODUCTION_LINES)..end).rev() {
        let lines = kept.get(first..end).unwrap_or_default();
        if lines.iter().any(String::is_empty) || !is(&WROTE, &lines.join(" ")) {
            break;
        }
        // The line above may be the beginning of the introduction, or the end of what the author wrote.
        if lines.first().is_some_and(|line| is(&BEGINS, line)) {
            from = Some(first);
            break;
        }
        if from.is_none() && lines.concat().contains('@') {
            from = Some(first);
        }
    }
    from.map_or_else(Vec::new, |from| kept.split_off(from))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_what_the_author_wrote_is_left() {
        let long_rule = "_".repeat(47);
        for (text, expected) in [
            ("Hello,\nall well?\n", "Hello,\nall well?"),
            ("Yes.\n\nOn Mon, 1 Jan 2024, Ann Lee <ann@a.example> wrote:\n> Coming?\n> Ann\n", "Yes."),
            ("Yes.\n\nOn Mon, 1 Jan 2024 at 10:00, Ann Lee\n<ann@a.example> wrote:\n\n> Coming?\n", "Yes."),
            ("Ja.\r\n\r\nAm 01.01.24 um 10:00 schrieb Ann Lee:\r\n> Kommst du?\r\n", "Ja."),
            ("> Coming?\nYes.\n> When?\nAt ten.\n", "Yes.\nAt ten."),
            ("He wrote:\nI come.", "He wrote:\nI come."),
            ("Ann wrote the plan:\n> step one\nGood.", "Ann wrote the plan:\nGood."),
            ("Fine.\n\n-- \nAnn Lee\nExample Ltd.\n", "Fine."),
            ("Fine.\n--\nAnn\n", "Fine."),
            ("a\n-- b\nc", "a\n-- b\nc"),
            ("Fine.\n\n-----Original Message-----\nFrom: Bo\nHello\n", "Fine."),
            ("Fine.\n\nFrom: Bo <b@b.example>\nSent: Monday\nTo: Ann\nSubject: Hello\n\nHello Ann\n", "Fine."),
            (
                "See below.\n\n---------- Forwarded message ---------\nFrom: Bo <b@b.example>\nDate: Mon\nSubject: Hi\nTo: Ann\n\nText\n",
                "See below.\n\n---------- Forwarded message ---------\nFrom: Bo <b@b.example>\nDate: Mon\nSubject: Hi\nTo: Ann\n\nText",
            ),
            (&format!("Fine.\n{long_rule}\ndev mailing list\ndev@lists.example\n"), "Fine."),
            ("It reads:\n\n>From Herp Derp with love.\n\nBye.", "It reads:\n\nFrom Herp Derp with love.\n\nBye."),
            (">>From the start", ">From the start"),
            ("Yes.\n> I came.\n>From Rome.\n> By train.", "Yes."),
            ("Ok\n\nSent from my iPhone\n", "Ok"),
            (
                "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA1\n\nI sign.\n-----BEGIN PGP SIGNATURE-----\n\nabc\n-----END PGP SIGNATURE-----",
                "I sign.",
            ),
            ("> only a quote\n> of another", ""),
            ("", ""),
        ] {
            assert_eq!(own_words(text).text, expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_cut_off_is_told_by_kind() {
        let text =
            "Yes.\n\nOn Mon, 1 Jan 2024, Ann <a@a.example> wrote:\n> Coming?\nSent from my iPhone\n-- \nBo\nLtd.\n";
        let trimmed: Vec<_> =
            own_words(text).trimmed.into_iter().map(|(kind, text)| format!("{kind}: {text}")).collect();
        let quotation = "quotation: On Mon, 1 Jan 2024, Ann <a@a.example> wrote:\n> Coming?";
        assert_eq!(trimmed, [quotation, "notice: Sent from my iPhone", "signature: -- \nBo\nLtd."]);
        assert!(own_words("Yes.").trimmed.iter().all(|(_, text)| text.is_empty()));
        let signed = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nI sign.\n-- \nBo\n-----BEGIN PGP SIGNATURE-----\n\n\
                      iQEz\n-----END PGP SIGNATURE-----\nThe list's own words.";
        let [_, _, (kind, frame)] = &own_words(signed).trimmed[..] else { panic!("three kinds") };
        assert_eq!(*kind, "signature");
        for words in ["Bo", "Hash: SHA256", "iQEz", "The list's own words."] {
            assert!(frame.contains(words), "{frame}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(>|From |-- |--|On |wrote:|From: x\n|To: y\n|_{30}|mailing list|é|\\PC|\n|\r){0,40}") {
            own_words(&text);
        }
    }
}
