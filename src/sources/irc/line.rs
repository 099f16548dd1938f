//! Reads one line of a log, whichever client wrote it.
//!
//! In: the text of a line. Out: the day that a marker names, or the line's time and what it reports: words, an action,
//! a notice, a new nick, who came and went, or another notice of the server. Never uses earlier lines.
//!
//! Lines are read as irssi, WeeChat, ZNC, EnergyMech, HexChat, mIRC, Eggdrop and Supybot write them,
//! and as the logs of Ubuntu's channels have them.

use jiff::civil::Date;

use super::timestamp::{IrcDay, IrcTimestamp, stamp, written_date};

/// A line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IrcLine<'a> {
    /// Nothing but blank space, or a header without a day.
    Blank,
    /// A marker that states the day of the lines that follow.
    Day(Date),
    /// A header that names the channel.
    Channel(&'a str),
    /// What happened.
    Event {
        /// When it happened; `None` if the line has no time.
        stamp: Option<IrcTimestamp>,
        /// The channel that is written before the time.
        channel: Option<&'a str>,
        /// What happened.
        event: IrcEvent<'a>,
    },
    /// Not a line of a log.
    Unknown,
}

/// What a line reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IrcEvent<'a> {
    /// Words in the channel, or a notice.
    Said { nick: &'a str, text: &'a str },
    /// An action: `/me waves`.
    Did { nick: &'a str, text: &'a str },
    /// A nick change; `from` is empty if the log's owner changed it.
    Renamed { from: &'a str, to: &'a str },
    /// Somebody left the channel or the network.
    Left { nick: &'a str },
    /// Another notice: a join, a topic, a mode; with the channel if it names one.
    Service { channel: Option<&'a str> },
}

/// Reads a line.
pub(super) fn line(text: &str) -> IrcLine<'_> {
    if text.trim().is_empty() {
        return IrcLine::Blank;
    }
    if let Some((found, rest)) = stamp(text) {
        return stamped(Some(found), None, rest);
    }
    if let Some(found) = header(text) {
        return found;
    }
    // `rust 2018-05-29 [21:20:37] <nick> …`: the channel and the day before the time, if there is one.
    if let Some((channel, after)) = text.split_once(' ').filter(|(word, _)| !word.is_empty())
        && let Some((date, rest)) = after.split_once(' ')
        && let Some(date) = written_date(date)
    {
        let (found, rest) = stamp(rest).unwrap_or((IrcTimestamp::default(), rest));
        if found.time.is_some() || is_untimed(rest) {
            return stamped(Some(IrcTimestamp { day: Some(IrcDay::Date(date)), ..found }), Some(channel), rest);
        }
    }
    // A line without a time gets the time of the previous line.
    if is_untimed(text) { stamped(None, None, text) } else { IrcLine::Unknown }
}

/// Whether a line without a time has a form that occurs in logs.
fn is_untimed(text: &str) -> bool {
    ["<", "=== ", "*** ", "-!- "].iter().any(|start| text.starts_with(start))
}

/// Whether the text after a line's time has one of the marks that clients put before a nick.
pub(super) fn is_marked(text: &str) -> bool {
    let rest = stamp(text).map(|(_, rest)| rest).or_else(|| text.split_once(']').map(|(_, rest)| rest));
    rest.is_some_and(|rest| {
        rest.strip_prefix('\t').is_some_and(|r| r.contains('\t')) || rest.trim_start().starts_with(['<', '*', '-'])
    })
}

fn header(text: &str) -> Option<IrcLine<'_>> {
    const DAYS: [&str; 8] = [
        "--- Log opened ",
        "--- Log closed ",
        "--- Day changed ",
        "**** BEGIN LOGGING AT ",
        "**** ENDING LOGGING AT ",
        "Session Start: ",
        "Session Close: ",
        "Session Time: ",
    ];
    if let Some(rest) = text.strip_prefix("Session Ident: ") {
        return Some(IrcLine::Channel(rest.trim()));
    }
    let date = DAYS.iter().find_map(|start| text.strip_prefix(start)).map(written_date);
    let date = date.or_else(|| text.strip_prefix("--- ").map(written_date));
    date.map(|date| date.map_or(IrcLine::Blank, IrcLine::Day))
}

fn stamped<'a>(stamp: Option<IrcTimestamp>, channel: Option<&'a str>, rest: &'a str) -> IrcLine<'a> {
    let found = |event| IrcLine::Event { stamp, channel, event };
    if let Some((prefix, text)) = rest.strip_prefix('\t').and_then(|r| r.split_once('\t')) {
        return found(columns(prefix, text));
    }
    let body = rest.trim_start();
    // Eggdrop's marker at midnight.
    if let Some(date) = body.strip_prefix("--- ").and_then(written_date) {
        return IrcLine::Day(date);
    }
    event(body).map_or(IrcLine::Unknown, found)
}

/// WeeChat's columns: prefix and text.
fn columns<'a>(prefix: &'a str, text: &'a str) -> IrcEvent<'a> {
    match prefix.trim() {
        "*" => {
            first_word(text).map_or(IrcEvent::Service { channel: None }, |(nick, text)| IrcEvent::Did { nick, text })
        }
        "--" => weechat_notice(text).unwrap_or_else(|| service(text)),
        "" | "-->" | "<--" | "=!=" => service(text),
        nick => IrcEvent::Said { nick: without_mode(nick), text },
    }
}

/// `Notice(nick): text` and `Notice(nick) -> #channel: text`.
fn weechat_notice(text: &str) -> Option<IrcEvent<'_>> {
    let (nick, rest) = text.strip_prefix("Notice(")?.split_once(')')?;
    let text = match rest.strip_prefix(" -> ") {
        Some(rest) => rest.split_once(": ")?.1,
        None => rest.strip_prefix(": ")?,
    };
    Some(IrcEvent::Said { nick, text })
}

/// The text after a line's time, in the forms without columns.
fn event(body: &str) -> Option<IrcEvent<'_>> {
    for start in ["-!-", "***", "-->", "<--", "--"] {
        if let Some(rest) = body.strip_prefix(start).filter(|r| r.is_empty() || r.starts_with([' ', '\t'])) {
            return Some(service(rest.trim_start()));
        }
    }
    if let Some(rest) = body.strip_prefix('<') {
        let (nick, text) = rest.split_once('>')?;
        let nick = without_mode(nick);
        return (!nick.is_empty()).then(|| IrcEvent::Said { nick, text: text.trim_start() });
    }
    if let Some(rest) =
        body.strip_prefix("=== ").or_else(|| body.strip_prefix("* ")).or_else(|| body.strip_prefix("*\t"))
    {
        return action(rest.trim());
    }
    if let Some(rest) = body.strip_prefix("Action: ") {
        return first_word(rest).map(|(nick, text)| IrcEvent::Did { nick, text });
    }
    if let Some(rest) = body.strip_prefix('-') {
        return notice(rest);
    }
    if let Some(rest) = body.strip_prefix('*').filter(|r| r.starts_with(is_nick_start)) {
        return action(rest);
    }
    if let Some((from, to)) = body.strip_prefix("Nick change: ").and_then(|r| r.split_once(" -> ")) {
        return Some(IrcEvent::Renamed { from, to: to.trim() });
    }
    if let Some(event) = known_service(body).or_else(|| bare_service(body)) {
        return Some(event);
    }
    let (nick, text) = body.split_once(": ")?;
    let one_word = nick.len() <= 32 && nick.starts_with(is_nick_start) && !nick.contains([' ', '\t', '/', '#']);
    one_word.then_some(IrcEvent::Said { nick, text })
}

/// `nick- text`, `nick:#channel- text`, `nick(user@host)- text`, after the first `-`.
fn notice(rest: &str) -> Option<IrcEvent<'_>> {
    let (head, text) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    let head = head.strip_suffix('-')?;
    let nick = head.split([':', '(', '/']).next().unwrap_or(head);
    if nick.is_empty() {
        return None;
    }
    // Only servers have dots in their names.
    Some(if nick.contains('.') {
        IrcEvent::Service { channel: None }
    } else {
        IrcEvent::Said { nick, text: text.trim_start() }
    })
}

/// The text after `*` or `===`: a notice from the server if it reads like one, else an action.
fn action(text: &str) -> Option<IrcEvent<'_>> {
    if let Some(event) = known_service(text) {
        return Some(event);
    }
    let (nick, text) = first_word(text)?;
    Some(IrcEvent::Did { nick: without_mode(nick), text })
}

/// A notice from the server, whatever it says.
fn service(text: &str) -> IrcEvent<'_> {
    known_service(text).unwrap_or(IrcEvent::Service { channel: channel_in(text) })
}

/// A text that reads like a notice from the server.
fn known_service(text: &str) -> Option<IrcEvent<'_>> {
    for known in [" is now known as ", "You're now known as ", "You are now known as "] {
        if let Some((before, to)) = text.split_once(known) {
            // If a nick has brackets, Ubuntu's logs put a space after them.
            let to = to.trim().trim_end_matches('.');
            let to = to.split_once("] ").filter(|_| to.starts_with('[')).map_or(to, |(_, nick)| nick);
            if !to.is_empty() && !to.contains(' ') {
                return Some(IrcEvent::Renamed { from: before.split_whitespace().last().unwrap_or_default(), to });
            }
        }
    }
    for start in ["Quits: ", "Parts: "] {
        if let Some((nick, _)) = text.strip_prefix(start).and_then(first_word) {
            return Some(IrcEvent::Left { nick });
        }
    }
    let channel = channel_in(text);
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    // `nick [user@host] has left #channel`: the address is in brackets, or is left out.
    let after = match rest.trim_start() {
        r if r.starts_with(['(', '[', '<']) => {
            r.split_once([')', ']', '>']).map_or("", |(_, after)| after.trim_start())
        }
        r => r,
    };
    // If a nick has brackets, Ubuntu's logs put a space after them; then the address shows where the nick ends.
    let address = ["has joined", "has left", "has quit"].iter().find_map(|verb| {
        let (before, after) = text.split_at(text.find(verb)?);
        let (nick, address) = before.trim_end().strip_suffix([']', ')'])?.rsplit_once([' '])?;
        let is_address = address.starts_with(['[', '(']) && address.contains('@');
        is_address.then_some((nick.split_whitespace().last()?, after))
    });
    let (first, after) = address.unwrap_or((first, after));
    let says = |start: &str| {
        after.strip_prefix(start).is_some_and(|r| r.is_empty() || r.starts_with([' ', '(', '[', '.', ':']))
    };
    let in_channel = |start: &str| {
        after
            .strip_prefix(start)
            .is_some_and(|r| r.trim_start().starts_with(['#', '&', '(', '[']) || r.trim().is_empty())
    };
    let quits = after.strip_prefix("has quit").is_some_and(|r| {
        let r = r.trim_start();
        r.is_empty() || r.starts_with(['(', '[', ':']) || r.starts_with("IRC")
    });
    // mIRC's form, which differs from an action by the address in brackets.
    let quits = quits || (after.starts_with("Quit (") && after.len() < rest.len());
    if quits || in_channel("has left") || in_channel("left") || says("left irc") {
        return Some(IrcEvent::Left { nick: first });
    }
    if let Some(kicked) = after.strip_prefix("was kicked ") {
        let by = ["by ", "from ", "off ", "("].iter().any(|w| kicked.starts_with(w));
        return by.then_some(IrcEvent::Left { nick: first });
    }
    const STARTS: [&str; 32] = [
        "Joins: ",
        "mode/",
        "ServerMode/",
        "Mode #",
        "Mode &",
        "Topic for ",
        "Topic is ",
        "Topic set by ",
        "Topic (#",
        "Topic: ",
        "topic is ",
        "..[topic",
        "Netsplit ",
        "netsplit:",
        "netjoined:",
        "Netjoin ",
        "Irssi: ",
        "Now talking ",
        "Rejoined channel ",
        "Attempting to rejoin ",
        "Disconnected",
        "Connected to IRC",
        "Retrieving #",
        "Set by ",
        "You're not channel operator",
        "You have ",
        "Channel #",
        "Nicks #",
        "Home page for #",
        "Keepalive",
        "Loaded log from ",
        "Broadcast: ",
    ];
    let verb = in_channel("has joined")
        || in_channel("joined")
        || says("has kicked")
        || says("sets mode")
        || says("sets modes")
        || says("set mode")
        || says("sets channel")
        || says("changes topic to")
        || says("changed the topic")
        || says("has changed the topic")
        || says("has changed topic")
        || says("has set the topic")
        || says("gives channel operator status")
        || says("removes channel operator status")
        || says("gives voice to")
        || says("removes voice from");
    (verb || STARTS.iter().any(|start| text.starts_with(start))).then_some(IrcEvent::Service { channel })
}

/// Eggdrop's notices, which have no mark before them.
fn bare_service(text: &str) -> Option<IrcEvent<'_>> {
    let (first, rest) = text.split_once(' ')?;
    let of_channel = first.starts_with(['#', '&']);
    let said = ["kicked from #", "got netsplit", "got lost in the net-split", "returned to #"];
    let by_start = ["Topic changed on #", "Last message repeated ", "Disconnected from IRC", "Connected to IRC"];
    let known = of_channel
        || by_start.iter().any(|start| text.starts_with(start))
        || said.iter().any(|verb| rest.contains(verb));
    known.then(|| IrcEvent::Service { channel: channel_in(text) })
}

/// The first channel that a notice names.
fn channel_in(text: &str) -> Option<&str> {
    let words = text.split([' ', '\t', '/', '(', ')', ',', ':']);
    words
        .map(|w| w.trim_end_matches(['.', ']', '\'']))
        .find(|w| w.len() > 1 && w.starts_with('#') && !w.starts_with("#<"))
}

/// The first word and the rest; `None` if there is no word.
fn first_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (!word.is_empty()).then(|| (word, rest.trim_start()))
}

/// A nick without the symbol of its channel rank.
fn without_mode(nick: &str) -> &str {
    let nick = nick.trim();
    nick.strip_prefix(['@', '+', '%', '&', '~', '!']).filter(|n| !n.is_empty()).unwrap_or(nick)
}

fn is_nick_start(c: char) -> bool {
    c.is_alphabetic() || "[]\\`_^{|}".contains(c)
}
