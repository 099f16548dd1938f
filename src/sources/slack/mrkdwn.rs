//! Renders Slack's markup as a person reads it.
//!
//! In: the text of a message, and names for accounts and channels. Out: plain text: mentions and channels as names,
//! links as `label (address)`, entities resolved, and the marks for bold, italic, struck and code text left out. Code
//! stays as it is.

use std::borrow::Cow;

use crate::chat::{Account, resolve_entities};

/// Names for the ids in a text.
pub(super) trait SlackNames {
    /// The account with an id; `label` is the name in the text.
    fn account(&self, id: &str, label: Option<&str>) -> Account;
    /// The name of a channel, if it is known.
    fn channel(&self, id: &str) -> Option<String>;
}

/// A text, and the accounts that it mentions.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SlackRenderedText {
    pub(super) text: String,
    pub(super) mentions: Vec<Account>,
}

/// The longest mark between angle brackets; longer ones are text.
const MAX_MARK_BYTES: usize = 8_192;

/// The text of a message.
pub(super) fn render(mrkdwn: &str, names: &dyn SlackNames) -> SlackRenderedText {
    let mut characters: Vec<(char, bool)> = Vec::with_capacity(mrkdwn.len());
    let mut mentions: Vec<Account> = Vec::new();
    let mut rest = mrkdwn;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        write(before, true, &mut characters);
        let inside = from.get(1..).unwrap_or_default();
        let end =
            inside.find(['>', '<']).filter(|end| inside.as_bytes().get(*end) == Some(&b'>') && *end <= MAX_MARK_BYTES);
        match end {
            Some(end) => {
                let mark = inside.get(..end).unwrap_or_default();
                let shown = mark_text(mark, names, &mut mentions);
                characters.extend(shown.chars().map(|c| (c, false)));
                rest = inside.get(end + 1..).unwrap_or_default();
            }
            None => {
                characters.push(('<', false));
                rest = inside;
            }
        }
    }
    write(rest, true, &mut characters);
    SlackRenderedText { text: without_styles(&characters).trim().to_owned(), mentions }
}

fn write(text: &str, styled: bool, characters: &mut Vec<(char, bool)>) {
    let text = if text.contains('&') { Cow::Owned(resolve_entities(text)) } else { Cow::Borrowed(text) };
    characters.extend(text.chars().map(|c| (c, styled)));
}

/// Renders the mark between angle brackets as text.
fn mark_text(mark: &str, names: &dyn SlackNames, mentions: &mut Vec<Account>) -> String {
    let (target, label) = match mark.split_once('|') {
        Some((target, label)) => (target, Some(resolve_entities(label)).filter(|label| !label.trim().is_empty())),
        None => (mark, None),
    };
    let label = label.as_deref();
    if let Some(id) = target.strip_prefix('@') {
        let account = names.account(id, label.map(|label| label.trim_start_matches('@')));
        let shown = format!("@{}", account.name);
        if !mentions.contains(&account) {
            mentions.push(account);
        }
        return shown;
    }
    if let Some(id) = target.strip_prefix('#') {
        let name = label.map(|label| label.trim_start_matches('#').to_owned()).or_else(|| names.channel(id));
        return format!("#{}", name.as_deref().unwrap_or(id));
    }
    if let Some(command) = target.strip_prefix('!') {
        let name = command.split('^').next().unwrap_or_default();
        return match (label, name) {
            (Some(label), _) => label.to_owned(),
            (None, "subteam") => format!("@{}", command.split('^').nth(1).unwrap_or("group")),
            (None, _) => format!("@{name}"),
        };
    }
    let address = resolve_entities(target);
    let bare = address.strip_prefix("mailto:").or_else(|| address.strip_prefix("tel:"));
    match (label, bare) {
        (Some(label), Some(bare)) if label != bare => format!("{label} ({bare})"),
        (_, Some(bare)) => bare.to_owned(),
        (Some(label), None) if is_address(label, &address) => address,
        (Some(label), None) => format!("{label} ({address})"),
        (None, None) => address,
    }
}

/// Whether a label is the address that it stands for, with or without its scheme.
fn is_address(label: &str, address: &str) -> bool {
    let bare = |text: &str| {
        let text = text.split_once("://").map_or(text, |(_, behind)| behind);
        text.trim_end_matches('/').to_owned()
    };
    bare(label) == bare(address)
}

/// The characters without style marks. A pair of marks is at the edges of words and on one line; text between code
/// marks is kept.
fn without_styles(characters: &[(char, bool)]) -> String {
    let mut text = String::with_capacity(characters.len());
    let mut dropped = vec![false; characters.len()];
    let mark_at = |at: usize, mark: char| characters.get(at).is_some_and(|(c, styled)| *styled && *c == mark);
    let character = |at: usize| characters.get(at).map(|(c, _)| *c);
    let mut at = 0;
    // Code comes first, so that nothing in it counts as a mark.
    let mut is_code = vec![false; characters.len()];
    while at < characters.len() {
        let ticks = if (0..3).all(|n| mark_at(at + n, '`')) { 3 } else { usize::from(mark_at(at, '`')) };
        let end = (ticks > 0).then(|| {
            (at + ticks + 1..characters.len())
                .take_while(|end| ticks == 3 || character(*end - 1) != Some('\n'))
                .find(|end| (0..ticks).all(|n| mark_at(end + n, '`')))
        });
        match end.flatten() {
            Some(end) => {
                let ticked = (at..at + ticks).chain(end..end + ticks);
                ticked.for_each(|n| {
                    if let Some(drop) = dropped.get_mut(n) {
                        *drop = true
                    }
                });
                (at..end + ticks).for_each(|n| {
                    if let Some(code) = is_code.get_mut(n) {
                        *code = true
                    }
                });
                at = end + ticks;
            }
            None => at += ticks.max(1),
        }
    }
    // Then one pass for each style; `open` is the position of the open mark, if there is one.
    for mark in ['*', '_', '~'] {
        let mut open: Option<usize> = None;
        for at in 0..characters.len() {
            if character(at) == Some('\n') {
                open = None;
            }
            if !mark_at(at, mark) || is_code.get(at) == Some(&true) {
                continue;
            }
            let edge =
                |place: Option<usize>| place.and_then(character).is_none_or(|c| !c.is_alphanumeric() && c != mark);
            let touches =
                |place: Option<usize>| place.and_then(character).is_some_and(|c| !c.is_whitespace() && c != mark);
            let (before, behind) = (at.checked_sub(1), Some(at + 1));
            match open {
                Some(start) if touches(before) && edge(behind) && at > start + 1 => {
                    for place in [start, at] {
                        if let Some(drop) = dropped.get_mut(place) {
                            *drop = true;
                        }
                    }
                    open = None;
                }
                _ if edge(before) && touches(behind) => open = Some(at),
                _ => {}
            }
        }
    }
    text.extend(characters.iter().zip(dropped).filter(|(_, dropped)| !dropped).map(|((c, _), _)| *c));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    struct KnownSlackNames;

    impl SlackNames for KnownSlackNames {
        fn account(&self, id: &str, label: Option<&str>) -> Account {
            let name = if id == "U1" { "Ann Bell" } else { label.unwrap_or(id) };
            Account { id: id.to_owned(), name: name.to_owned(), handle: None, bot: false }
        }
        fn channel(&self, id: &str) -> Option<String> {
            (id == "C1").then(|| "general".to_owned())
        }
    }

    #[test]
    fn markup_reads_as_a_person_reads_it() {
        for (mrkdwn, expected) in [
            ("<@U1> and <@U2> and <@U3|bo>", "@Ann Bell and @U2 and @bo"),
            ("<#C1> <#C2|random> <#C3> <#C1|>", "#general #random #C3 #general"),
            ("<!here> <!channel> <!subteam^S1|@ops> <!subteam^S2>", "@here @channel @ops @S2"),
            ("<!date^1392734382^{date}|Feb 18, 2014>", "Feb 18, 2014"),
            ("<https://a.example/x_y_z?a=1&amp;b=2>", "https://a.example/x_y_z?a=1&b=2"),
            (
                "<https://a.example|the page>, <http://a.example|a.example>",
                "the page (https://a.example), http://a.example",
            ),
            ("<mailto:a@b.example|a@b.example> <tel:+49123|call>", "a@b.example call (+49123)"),
            ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
            ("*bold* _it_ ~no~ `x_y_z *a*`", "bold it no x_y_z *a*"),
            ("```\nlet a = b * c;\n```", "let a = b * c;"),
            ("2*3*4 and snake_case_name, *", "2*3*4 and snake_case_name, *"),
            ("*_both_*, (*x*)!", "both, (x)!"),
            ("*not\nclosed*", "*not\nclosed*"),
            ("***word***", "***word***"),
            ("a < b <unclosed", "a < b <unclosed"),
            (":wave: *", ":wave: *"),
            ("", ""),
        ] {
            assert_eq!(render(mrkdwn, &KnownSlackNames).text, expected, "{mrkdwn}");
        }
        let mentions = render("<@U1> <@U1> <@U2>", &KnownSlackNames).mentions;
        assert_eq!(mentions.iter().map(|a| a.id.as_str()).collect::<Vec<_>>(), ["U1", "U2"]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[<>@#!|*_~`&;a \\nü]{0,60}") {
            render(&text, &KnownSlackNames);
        }
    }
}
