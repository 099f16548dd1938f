//! Reads what the path of a log file says.
//!
//! In: the path of a file inside the export. Out: its channel, its network and its day, as far as the path contains
//! them: `libera/#rust/2013-01-26.log` (ZNC), `libera/#rust.log` (irssi), `irc.libera.#rust.weechatlog` (WeeChat),
//! `user_libera_#rust_20130126.log` (older ZNC), `2013/01/26/#ubuntu.txt`, `rust.log.26Jan2013` (Eggdrop).

use std::sync::LazyLock;

use jiff::civil::Date;
use regex::Regex;

/// What a path says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct IrcLogPath {
    /// The channel with its `#`; `None` if no part of the path looks like one.
    pub(super) channel: Option<String>,
    /// The name of the log if the path has no channel: the other person in a private chat, or a channel without its
    /// `#`.
    pub(super) other: Option<String>,
    /// The network.
    pub(super) network: Option<String>,
    /// The day.
    pub(super) date: Option<Date>,
}

/// Year, month and day in digits.
static DATE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^0-9])((?:19|20)[0-9]{2})([-_./]?)([0-9]{2})([-_./]?)([0-9]{2})(?:[^0-9]|$)").ok()
});
/// Eggdrop's day.
static EGGDROP_DATE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"([0-9]{2})(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)([0-9]{4})").ok());

/// Reads the name of a file, with `/` between folders.
pub(super) fn log_path(name: &str) -> IrcLogPath {
    let path = without_endings(name);
    let (start, end, date) = date_in(path).map_or((path.len(), path.len(), None), |(s, e, d)| (s, e, Some(d)));
    // The part of a name before its date. After a date at the start of a file's name, only a part number follows.
    let before = path.get(..start).unwrap_or(path).trim_end_matches(['-', '_', '.']);
    let after = path.get(end..).unwrap_or_default();
    let kept = if after.contains(['#', '&']) { after.trim_start_matches(['-', '_', '.', '/']) } else { before };
    let kept = kept.trim_end_matches('/');
    let folders: Vec<&str> = before.split('/').filter(|p| !p.is_empty()).collect();
    let parts: Vec<&str> = kept.split('/').filter(|p| !p.is_empty()).collect();
    let Some((last, above)) = parts.split_last() else {
        return IrcLogPath { date, ..IrcLogPath::default() };
    };
    let above = if after.contains(['#', '&']) { folders.as_slice() } else { above };
    let folder = above.last().copied().filter(|f| names_a_network(f)).map(str::to_owned);
    let mut place = IrcLogPath { date, network: folder, ..IrcLogPath::default() };
    if let Some(at) = last.find('#').or_else(|| last.starts_with('&').then_some(0)) {
        let (prefix, channel) = last.split_at(at);
        place.channel = Some(without_endings(channel).trim_end_matches(['-', '_', '.']).to_owned());
        if let Some(network) = network_before(prefix) {
            place.network = Some(network.to_owned());
        }
    } else if let Some((network, nick)) = last.strip_prefix("irc.").and_then(|r| r.split_once('.')) {
        (place.network, place.other) = (Some(network.to_owned()), Some(nick.to_owned()));
    } else if last.chars().any(char::is_alphabetic) {
        place.other = Some(without_endings(last).to_owned());
    }
    place
}

/// Whether the name of a file looks like a log's.
pub(super) fn is_log(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let file = file.strip_suffix(".gz").unwrap_or(&file);
    let ending = file.rsplit_once('.').map(|(_, ending)| ending);
    let log = ["log", "txt", "weechatlog", "irclog", "irc", "logs"];
    ending.is_none_or(|e| {
        log.contains(&e) || file.contains('#') || EGGDROP_DATE.as_ref().is_some_and(|r| r.is_match(name))
    })
}

/// The network in the text before a channel: `irc.libera.`, `user_libera_`, `libera-`.
fn network_before(prefix: &str) -> Option<&str> {
    let prefix = prefix.trim_end_matches(['-', '_', '.', ' ']);
    let prefix = prefix.strip_prefix("irc.").unwrap_or(prefix);
    let last = prefix.rsplit('_').next().unwrap_or(prefix);
    (!last.is_empty() && last != "irc").then_some(last)
}

fn names_a_network(folder: &str) -> bool {
    const KEEPERS: [&str; 9] = ["log", "logs", "irclog", "irclogs", "irc", "chatlogs", "moddata", "networks", "users"];
    folder.chars().any(char::is_alphabetic) && !folder.starts_with(['#', '&']) && !KEEPERS.contains(&folder)
}

fn without_endings(name: &str) -> &str {
    const ENDINGS: [&str; 8] = [".gz", ".log", ".txt", ".weechatlog", ".irclog", ".irc", ".raw", ".ascii"];
    let mut name = name;
    while let Some(shorter) = ENDINGS.iter().find_map(|e| name.strip_suffix(e)).filter(|s| !s.is_empty()) {
        name = shorter;
    }
    name
}

/// The last date in a path: its start, its end and the date.
fn date_in(path: &str) -> Option<(usize, usize, Date)> {
    let mut found = None;
    let mut from = 0;
    while let Some(c) = DATE.as_ref().and_then(|r| r.captures_at(path, from)) {
        let group = |n| c.get(n).map(|m: regex::Match<'_>| m.as_str()).unwrap_or_default();
        let (Some(year), Some(day)) = (c.get(1), c.get(5)) else { break };
        from = day.start();
        let date = Date::new(group(1).parse().ok()?, group(3).parse().ok()?, group(5).parse().ok()?);
        if let Ok(date) =
            date.map_err(|_| ()).and_then(|d| (group(2) == group(4) || path.contains('/')).then_some(d).ok_or(()))
        {
            found = Some((year.start(), day.end(), date));
        }
    }
    if found.is_some() {
        return found;
    }
    let c = EGGDROP_DATE.as_ref()?.captures(path)?;
    let date = super::timestamp::written_date(&format!(
        "{} {} {}",
        c.get(1)?.as_str(),
        c.get(2)?.as_str(),
        c.get(3)?.as_str()
    ))?;
    Some((c.get(0)?.start(), c.get(0)?.end(), date))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, channel: Option<&str>, other: Option<&str>, network: Option<&str>, date: Option<&str>) {
        let found = log_path(name);
        let date = date.map(|d| d.parse().unwrap());
        let owned = |text: Option<&str>| text.map(str::to_owned);
        assert_eq!(
            found,
            IrcLogPath { channel: owned(channel), other: owned(other), network: owned(network), date },
            "{name}"
        );
    }

    #[test]
    fn channel_network_and_day_are_read_from_the_layouts_of_all_clients() {
        let day = Some("2013-01-26");
        check("libera/#rust/2013-01-26.log", Some("#rust"), None, Some("libera"), day);
        check("#rust/2013-01-26.log", Some("#rust"), None, None, day);
        check("libera/bob/2013-01-26.log", None, Some("bob"), Some("libera"), day);
        check("libera/#rust.log", Some("#rust"), None, Some("libera"), None);
        check("irclogs/##c++.log", Some("##c++"), None, None, None);
        check("irc.libera.#rust.weechatlog", Some("#rust"), None, Some("libera"), None);
        check("irc.libera.#rust.2013-01-26.weechatlog", Some("#rust"), None, Some("libera"), day);
        check("irc.libera.bob.weechatlog", None, Some("bob"), Some("libera"), None);
        check("user_libera_#rust_20130126.log", Some("#rust"), None, Some("libera"), day);
        check("libera_#node.js_20130126.log.gz", Some("#node.js"), None, Some("libera"), day);
        check("2013/01/26/#ubuntu.txt", Some("#ubuntu"), None, None, day);
        check("2013/01/26.log", None, None, None, day);
        check("#rust.2013-01-26.log", Some("#rust"), None, None, day);
        check("rust.log.26Jan2013", None, Some("rust"), None, day);
        check("2013-01-26_03.raw.txt", None, None, None, day);
        check("2013-01-26.train-c.raw.txt", None, None, None, day);
        check("rust.0.ascii.txt", None, Some("rust.0"), None, None);
        check("chat.txt", None, Some("chat"), None, None);
        check("99999999/20131399.log", None, None, None, None);
    }

    #[test]
    fn files_that_are_no_logs_are_told_by_their_endings() {
        for (name, expected) in [
            ("a/#b.log", true),
            ("2013-01-26", true),
            ("a.weechatlog", true),
            ("x.log.26Jan2013", true),
            ("#x.26", true),
        ] {
            assert_eq!(is_log(name), expected, "{name}");
        }
        for name in ["photo.png", "index.html", "weechat.conf", "a.zip"] {
            assert!(!is_log(name), "{name}");
        }
    }
}
