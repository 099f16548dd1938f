//! Replaces mentions, emojis and times in Discord's raw text with what a person reads.
//!
//! In: text that may hold `<@123>`, `<@!123>`, `<@&123>`, `<#123>`, `<:name:123>`, `<a:name:123>`, `</command:123>` and
//! `<t:1700000000:R>`, and the names that are known. Out: the same text with names. Texts that DiscordChatExporter has
//! already flattened hold none of these and stay as they are. An id whose name is not known stays readable as `@123`.

use jiff::Timestamp;

/// The longest mark; commands have up to three words of 32 characters.
const MAX_MARK_CHARS: usize = 140;

/// The name of an account, a role or a channel by its id.
pub(super) trait DiscordNames {
    /// The name of an account.
    fn account(&self, id: &str) -> Option<String>;
    /// The name of a role.
    fn role(&self, id: &str) -> Option<String>;
    /// The name of a channel.
    fn channel(&self, id: &str) -> Option<String>;
}

/// The text with every such mark replaced.
pub(super) fn with_names(text: &str, names: &dyn DiscordNames) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = from.char_indices().take(MAX_MARK_CHARS).find(|(_, c)| *c == '>').map_or(0, |(end, _)| end);
        let mark = from.get(1..end).and_then(|inner| Some((inner, replaced(inner, names)?)));
        match mark {
            Some((inner, replacement)) => {
                out.push_str(&replacement);
                rest = from.get(inner.len() + 2..).unwrap_or_default();
            }
            None => {
                out.push('<');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

fn replaced(inner: &str, names: &dyn DiscordNames) -> Option<String> {
    let number = |text: &str| (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.to_owned());
    if let Some(id) = inner.strip_prefix("@&").and_then(number) {
        return Some(format!("@{}", names.role(&id).unwrap_or(id)));
    }
    if let Some(id) = inner.strip_prefix("@!").or_else(|| inner.strip_prefix('@')).and_then(number) {
        return Some(format!("@{}", names.account(&id).unwrap_or(id)));
    }
    if let Some(id) = inner.strip_prefix('#').and_then(number) {
        return Some(format!("#{}", names.channel(&id).unwrap_or(id)));
    }
    if let Some((seconds, style)) = inner.strip_prefix("t:").map(|time| time.split_once(':').unwrap_or((time, "f"))) {
        let moment = Timestamp::from_second(seconds.parse().ok()?).ok()?;
        let format = match style {
            "t" => "%H:%M UTC",
            "T" => "%H:%M:%S UTC",
            "d" | "D" => "%Y-%m-%d",
            _ => "%Y-%m-%d %H:%M UTC",
        };
        return Some(moment.strftime(format).to_string());
    }
    if let Some((command, _)) = inner.strip_prefix('/').and_then(|command| command.rsplit_once(':')) {
        return Some(format!("/{command}"));
    }
    let emoji = inner.strip_prefix("a:").or_else(|| inner.strip_prefix(':'))?;
    let (name, id) = emoji.split_once(':')?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    (is_name && number(id).is_some()).then(|| format!(":{name}:"))
}
