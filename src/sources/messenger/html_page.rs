//! Reads a page of the HTML export, in any of its layouts.
//!
//! In: the page. Out: its chats with their messages in the order of the page, newest first; a page of the oldest layout
//! holds several chats. Reactions are left out. The CSS classes of a message changed every few years, but its parts
//! stayed the same: who, what, when. Times are written in the account's language and zone. Month names are known in
//! English and the languages of `foreign_months`; a date that consists only of numbers is not read.

use jiff::{
    civil::{Date, DateTime, Time},
    tz::Offset,
};

use crate::{
    chat::{foreign_month, html_to_text, resolve_entities},
    zone::Zone,
};
use types::{model::EventTime, month_names::month_number};

/// A chat of a page.
#[derive(Debug, Default, PartialEq)]
pub(super) struct MessengerPageChat {
    /// Whether the page holds several chats.
    pub(super) is_one_of_several: bool,
    pub(super) title: Option<String>,
    pub(super) participants: Vec<String>,
    pub(super) messages: Vec<MessengerPageMessage>,
}

/// A message as it is on the page.
#[derive(Debug, Default, PartialEq)]
pub(super) struct MessengerPageMessage {
    pub(super) line: u64,
    pub(super) sender: String,
    pub(super) text: String,
    /// Addresses of what was shared.
    pub(super) shared: Vec<String>,
    /// The time as it is written.
    pub(super) stated: String,
}

/// The classes of the sender, one per layout, newest first; the last is used by tools that rewrite pages.
const WHO: [&str; 4] = ["_a6-h", "_2lek", "user", "sender"];
/// The classes of the time.
const WHEN: [&str; 5] = ["_a72d", "_a6-o", "_2lem", "meta", "time"];
/// The beginning of a chat in the oldest layout.
const THREAD: &str = "<div class=\"thread\">";

/// The chats of a page.
pub(super) fn chats(page: &str) -> Vec<MessengerPageChat> {
    let mut before = 0;
    let mut found = Vec::new();
    for (n, part) in page.split(THREAD).enumerate() {
        let lines = newlines(page.get(..before).unwrap_or_default());
        before += part.len() + THREAD.len();
        if n > 0 {
            let mut people = names(&resolve_entities(part.split('<').next().unwrap_or_default()));
            let (participants, messages) = messages(part, lines);
            if people.is_empty() {
                people = participants;
            }
            let title = Some(people.join(", ")).filter(|title| !title.is_empty());
            found.push(MessengerPageChat { is_one_of_several: true, title, participants: people, messages });
        } else if !page.contains(THREAD) {
            let (participants, messages) = messages(part, lines);
            let title = tag_of(part, "title").map(html_to_text).filter(|title| !title.is_empty());
            found.push(MessengerPageChat { is_one_of_several: false, title, participants, messages });
        }
    }
    found
}

/// The participants that a piece of a page names, and its messages.
fn messages(html: &str, lines: u64) -> (Vec<String>, Vec<MessengerPageMessage>) {
    let mut participants = match html.split_once("Participants: ") {
        Some((_, rest)) => names(&resolve_entities(rest.split('<').next().unwrap_or_default())),
        None => Vec::new(),
    };
    let mut found: Vec<MessengerPageMessage> = Vec::new();
    // Where the words of the current message begin; `None` once its time has been read.
    let mut words_at = None;
    let (mut at, mut line) = (0, lines + 1);
    while let Some(found_at) = html.get(at..).and_then(|rest| rest.find("class=\"")) {
        let class_at = at + found_at;
        line += newlines(html.get(at..class_at).unwrap_or_default());
        at = class_at + "class=\"".len();
        let class = html.get(at..).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let is = |of: &[&str]| class.split(' ').any(|name| of.contains(&name));
        let Some(inner) = html.get(at..).and_then(|rest| rest.split_once('>')).map(|(_, inner)| inner) else { break };
        let inner_at = html.len() - inner.len();
        if is(&WHO) {
            let end = element_end(inner);
            let sender = html_to_text(inner.get(..end).unwrap_or_default());
            if let Some(list) = sender.strip_prefix("Participants: ") {
                participants = names(list);
                continue;
            }
            found.push(MessengerPageMessage { line, sender, ..MessengerPageMessage::default() });
            words_at = Some(inner_at + end);
        } else if let (true, Some(message), Some(begin)) = (is(&WHEN), found.last_mut(), words_at) {
            let end = element_end(inner);
            message.stated = html_to_text(inner.get(..end).unwrap_or_default());
            let open = html.get(..class_at).and_then(|before| before.rfind('<')).unwrap_or(class_at);
            let mut words = html.get(begin..open).unwrap_or_default();
            if class == "meta" {
                // In the oldest layout the words come after the time.
                let behind = inner.get(end..).unwrap_or_default().split("class=\"message\"").next().unwrap_or_default();
                words = tag_of(behind, "p").unwrap_or_default();
            }
            (message.text, message.shared) = said(words);
            words_at = None;
        }
    }
    (participants, found)
}

/// The words of a message, and the addresses of what it shares.
fn said(html: &str) -> (String, Vec<String>) {
    let mut html = without(html, "<ul", "</ul>");
    let mut shared: Vec<String> = Vec::new();
    for key in ["src=\"", "href=\""] {
        for (at, _) in html.match_indices(key) {
            let address = html.get(at + key.len()..).and_then(|rest| rest.split('"').next()).unwrap_or_default();
            let address = resolve_entities(address);
            let is_here = !address.contains("://") && !address.is_empty() && !address.starts_with(['#', '?']);
            if is_here && !shared.contains(&address) {
                shared.push(address);
            }
        }
    }
    for (open, close) in [("<video", "</video>"), ("<audio", "</audio>"), ("<img", ">")] {
        html = without(&html, open, close);
    }
    for address in &shared {
        html = without(&html, &format!("<a href=\"{address}\""), "</a>");
    }
    (html_to_text(&html), shared)
}

/// A text without the pieces from `open` to `close`.
fn without(html: &str, open: &str, close: &str) -> String {
    let mut kept = String::new();
    let mut rest = html;
    while let Some((before, from)) = rest.split_once(open) {
        kept.push_str(before);
        rest = from.split_once(close).map_or("", |(_, behind)| behind);
    }
    kept + rest
}

/// The end of the element whose content this text begins with.
fn element_end(inner: &str) -> usize {
    let mut depth = 0u32;
    for (at, _) in inner.match_indices('<') {
        let tag = inner.get(at..).unwrap_or_default();
        if tag.starts_with("</") {
            if depth == 0 {
                return at;
            }
            depth -= 1;
        } else if !["<br", "<img", "<!", "<hr", "<input", "<source"].iter().any(|void| tag.starts_with(void)) {
            depth += 1;
        }
    }
    inner.len()
}

/// The text between the first opening and closing tag with this name.
fn tag_of<'a>(html: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = html.split_once(&format!("<{name}>"))?;
    rest.split(&format!("</{name}>")).next()
}

/// Names with commas between them, and `and` before the last.
fn names(list: &str) -> Vec<String> {
    let names = list.split(", ").flat_map(|names| names.split(" and "));
    names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// A time such as `Sep 13, 2020, 12:26:05 PM`, `19 oct. 2019, 14:37` or `Friday, October 4, 2013 at 10:05pm PDT`, and
/// whether it states its zone.
pub(super) fn time(stated: &str, zone: &Zone) -> Option<(EventTime, bool)> {
    let (mut day, mut month_found, mut year, mut clock, mut afternoon, mut offset) =
        (None, None, None, None, None, None);
    for word in stated.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()) {
        let lower = word.to_lowercase().replace('.', "");
        let half = |text: &str| match text {
            "am" | "a" => Some(false),
            "pm" | "p" => Some(true),
            _ => None,
        };
        if word.contains(':') && word.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = lower.trim_end_matches(char::is_alphabetic);
            afternoon = half(lower.get(digits.len()..).unwrap_or_default());
            let mut parts = digits.split(':').map(str::parse::<i8>);
            clock = Some((parts.next()?.ok()?, parts.next()?.ok()?, parts.next().transpose().ok()?.unwrap_or(0)));
        } else if let (Some(found), true) = (half(&lower), clock.is_some()) {
            afternoon = afternoon.or(Some(found));
        } else if let Some(found) = zone_offset(&lower) {
            offset = Some(found);
        } else if let Ok(number) = lower.trim_end_matches(char::is_alphabetic).parse::<i16>() {
            if number > 31 { year = Some(number) } else { day = day.or(Some(number)) }
        } else {
            month_found = month_number(&lower).or_else(|| foreign_month(&lower)).or(month_found);
        }
    }
    let (hour, minute, second) = clock?;
    let hour = match afternoon {
        Some(false) if hour == 12 => 0,
        Some(true) if hour < 12 => hour + 12,
        _ => hour,
    };
    let date = Date::new(year?, month_found?, i8::try_from(day?).ok()?).ok()?;
    let local = DateTime::from_parts(date, Time::new(hour, minute, second, 0).ok()?);
    let Some(seconds) = offset else { return Some((zone.moment(local)?, false)) };
    let moment = Offset::from_seconds(seconds).ok()?.to_timestamp(local).ok()?;
    Some((EventTime::new(moment.as_millisecond(), seconds).ok()?, true))
}

/// The seconds of `utc+02:00`, `gmt-5` or an American abbreviation.
fn zone_offset(word: &str) -> Option<i32> {
    const NAMED: [(&str, i32); 12] = [
        ("pst", -8),
        ("pdt", -7),
        ("mst", -7),
        ("mdt", -6),
        ("cst", -6),
        ("cdt", -5),
        ("est", -5),
        ("edt", -4),
        ("cet", 1),
        ("cest", 2),
        ("utc", 0),
        ("gmt", 0),
    ];
    if let Some((_, hours)) = NAMED.iter().find(|(name, _)| *name == word) {
        return Some(hours * 3_600);
    }
    let number = word.strip_prefix("utc").or_else(|| word.strip_prefix("gmt"))?;
    let sign = if number.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = number.strip_prefix(['+', '-'])?.split_once(':').unwrap_or((number.get(1..)?, "0"));
    Some(sign * (i32::from(hours.parse::<u8>().ok()?) * 3_600 + i32::from(minutes.parse::<u8>().ok()?) * 60))
}

fn newlines(text: &str) -> u64 {
    text.bytes().map(|b| u64::from(b == b'\n')).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(page: &str) -> Vec<String> {
        let zone = Zone::parse("Z").unwrap();
        let chats = chats(page);
        let line = |chat: &MessengerPageChat, m: &MessengerPageMessage| {
            let time = time(&m.stated, &zone).map(|(time, _)| time.to_string()).unwrap_or_default();
            format!("{} | {time} {}: {} {:?}", chat.participants.join("+"), m.sender, m.text, m.shared)
        };
        chats.iter().flat_map(|chat| chat.messages.iter().map(|m| line(chat, m))).collect()
    }

    #[test]
    fn the_layouts_of_all_years_are_read() {
        let newest = r#"<html><head><title>Bo Day</title></head><body><div class="_3-95 _a6-g"><div class="_2ph_ _a6-h">Participants: Ann and Bo Day</div></div>
            <div class="_3-95 _a6-g"><div class="_2ph_ _a6-h _a6-i">Bo Day</div><div class="_2ph_ _a6-p"><div><div></div><div>caf&#xe9; &amp; cake</div><div></div><div></div></div>
            <ul class="_a6-q"><li><span>&#x2764; Ann</span></li></ul></div><div class="_3-94 _a6-o"><div class="_a72d">Sep 13, 2020 12:26:05 PM</div></div></div>
            <div class="_3-95 _a6-g"><div class="_2ph_ _a6-h _a6-i">Ann</div><div class="_2ph_ _a6-p"><div><div></div><div></div><div><a target="_blank" href="photos/1.jpg"><img src="photos/1.jpg" class="_a6_o _3-96"/></a></div></div></div><div class="_3-94 _a6-o"><div class="_a72d">Sep 13, 2020, 12:25 AM</div></div></div></body></html>"#;
        assert_eq!(
            shown(newest),
            [
                "Ann+Bo Day | 2020-09-13T12:26:05Z Bo Day: café & cake []",
                "Ann+Bo Day | 2020-09-13T00:25:00Z Ann:  [\"photos/1.jpg\"]"
            ]
        );
        let older = r#"<div class="_3b0d">Participants: Ann, Bo</div><div class="pam _3-95 _2pi0 _2lej uiBoxWhite noborder"><div class="_3-96 _2pio _2lek _2lel">Bo</div>
            <div class="_3-96 _2let"><div><div></div><div>see <a href="https://x.example">https://x.example</a></div></div></div><div class="_3-94 _2lem">12 Dez. 2018, 20:37</div></div>"#;
        assert_eq!(shown(older), ["Ann+Bo | 2018-12-12T20:37:00Z Bo: see https://x.example []"]);
        let oldest = r#"<div class="contents"><h1>Ann</h1><div><div class="thread">Ann, Bo<div class="message"><div class="message_header"><span class="user">Bo</span><span class="meta">Friday, October 4, 2013 at 10:05pm PDT</span></div></div><p>last</p>
            <div class="message"><div class="message_header"><span class="user">Ann</span><span class="meta">Friday, October 4, 2013 at 10:04pm UTC+02:00</span></div></div><p>first</p></div>
            <div class="thread">Ann, Cy, Di<div class="message"><div class="message_header"><span class="user">Cy</span><span class="meta">Friday, October 4, 2013 at 9:00am PDT</span></div></div><p>hello</p></div></div></div>"#;
        assert_eq!(
            shown(oldest),
            [
                "Ann+Bo | 2013-10-04T22:05:00-07:00 Bo: last []",
                "Ann+Bo | 2013-10-04T22:04:00+02:00 Ann: first []",
                "Ann+Cy+Di | 2013-10-04T09:00:00-07:00 Cy: hello []"
            ]
        );
    }

    #[test]
    fn times_are_read_in_the_forms_of_languages_and_refused_where_they_are_ambiguous() {
        let zone = Zone::parse("Z").unwrap();
        for (stated, expected) in [
            ("Oct 19, 2019 at 2:37 PM", Some("2019-10-19T14:37:00Z")),
            ("19 Oct 2019, 14:37", Some("2019-10-19T14:37:00Z")),
            ("19 de oct. de 2019 a las 2:37 p.\u{a0}m.", Some("2019-10-19T14:37:00Z")),
            ("19. Okt. 2019 um 12:05", Some("2019-10-19T12:05:00Z")),
            ("Sep 13, 2020, 12:26\u{202f}am", Some("2020-09-13T00:26:00Z")),
            ("13/09/2020, 12:26", None),
            ("yesterday", None),
            ("Oct 99, 2019 2:37 PM", None),
        ] {
            let found = time(stated, &zone).map(|(time, _)| time.to_string());
            assert_eq!(found.as_deref(), expected, "{stated}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_page_makes_it_panic(page in "(<div class=\"(_a6-h|_a72d|_2lek|_2lem|user|meta|thread)\">|</div>|<p>|<ul|[a-zé:0-9, &\"<>/]{0,6}){0,30}", stated in "[0-9:a-zA-Z ,./+\u{a0}é-]{0,30}") {
            chats(&page);
            let _ = time(&stated, &Zone::parse("Z").unwrap());
        }
    }
}
