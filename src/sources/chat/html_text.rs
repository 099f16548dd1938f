//! HTML as a person reads it.
//!
//! In: the HTML of one message. Out: its text: line breaks where blocks and `<br>` break, `label (address)` for links,
//! `- ` before items, `> ` before quotes, the `alt` text of images, entities resolved. Never fails: anything that is
//! not a tag stays text.

/// The text of a piece of HTML, without blank space at either end.
pub(crate) fn html_to_text(html: &str) -> String {
    let mut text = HtmlText::default();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        text.words(before);
        match tag(from) {
            Some((tag, behind)) => {
                rest = behind;
                if let Some(hidden) = ["script", "style", "head"].into_iter().find(|n| tag.is(n) && !tag.closing) {
                    rest = after_end_of(hidden, rest);
                }
                text.tag(&tag);
            }
            None => {
                text.words("<");
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    text.words(rest);
    text.end()
}

/// A text with its entities resolved (`&amp;`, `&#39;`, `&#x27;`, `&nbsp;`); unknown ones stay.
pub(crate) fn resolve_entities(text: &str) -> String {
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (before, from) = rest.split_at(at);
        resolved.push_str(before);
        let end = from.bytes().take(12).position(|b| b == b';');
        let found = end.and_then(|end| Some((entity(from.get(1..end)?)?, end)));
        match found {
            Some((character, end)) => {
                resolved.push(character);
                rest = from.get(end + 1..).unwrap_or_default();
            }
            None => {
                resolved.push('&');
                rest = from.get(1..).unwrap_or_default();
            }
        }
    }
    resolved.push_str(rest);
    resolved
}

fn entity(name: &str) -> Option<char> {
    let number = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        },
        None => {
            return Some(match name {
                "amp" => '&',
                "lt" => '<',
                "gt" => '>',
                "quot" => '"',
                "apos" => '\'',
                "nbsp" => ' ',
                "hellip" => '…',
                "mdash" => '—',
                "ndash" => '–',
                "lsquo" => '‘',
                "rsquo" => '’',
                "ldquo" => '“',
                "rdquo" => '”',
                "laquo" => '«',
                "raquo" => '»',
                "bull" => '•',
                "middot" => '·',
                "copy" => '©',
                "reg" => '®',
                "trade" => '™',
                "euro" => '€',
                "times" => '×',
                "auml" => 'ä',
                "ouml" => 'ö',
                "uuml" => 'ü',
                "Auml" => 'Ä',
                "Ouml" => 'Ö',
                "Uuml" => 'Ü',
                "szlig" => 'ß',
                "eacute" => 'é',
                "egrave" => 'è',
                "agrave" => 'à',
                "ccedil" => 'ç',
                "ntilde" => 'ñ',
                _ => return None,
            });
        }
    };
    char::from_u32(number.ok()?).filter(|c| *c != '\0')
}

/// A tag: its name in lower case, and its attributes as written.
struct HtmlTag<'a> {
    name: String,
    closing: bool,
    attributes: &'a str,
}

impl HtmlTag<'_> {
    fn is(&self, name: &str) -> bool {
        self.name == name
    }

    fn attribute(&self, name: &str) -> Option<String> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
            let end = rest.find(|c: char| c.is_whitespace() || c == '=' || c == '/').unwrap_or(rest.len());
            let (key, behind) = rest.split_at(end);
            if key.is_empty() && behind.is_empty() {
                return None;
            }
            let Some(value) = behind.trim_start().strip_prefix('=') else {
                rest = behind;
                continue;
            };
            let value = value.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
            let (value, behind) = match quote {
                Some(quote) => {
                    let inside = value.get(1..).unwrap_or_default();
                    inside.split_once(quote).unwrap_or((inside, ""))
                }
                None => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
            };
            if key.eq_ignore_ascii_case(name) {
                return Some(resolve_entities(value));
            }
            rest = behind;
        }
    }
}

/// The tag at the start of a text, and the text after it. Comments and declarations are tags without a name.
fn tag(text: &str) -> Option<(HtmlTag<'_>, &str)> {
    if let Some(comment) = text.strip_prefix("<!--") {
        let behind = comment.split_once("-->").map_or("", |(_, behind)| behind);
        return Some((HtmlTag { name: String::new(), closing: false, attributes: "" }, behind));
    }
    let inside = text.strip_prefix('<')?;
    let closing = inside.starts_with('/');
    let inside = inside.strip_prefix('/').unwrap_or(inside);
    if !inside.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?') {
        return None;
    }
    let mut quote = None;
    let mut equals = false;
    let end = inside.char_indices().find_map(|(at, c)| {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') if equals => quote = Some(c),
            (None, '>') => return Some(at),
            _ => {}
        }
        equals = c == '=' || (equals && c.is_whitespace());
        None
    })?;
    let (all, behind) = inside.split_at(end);
    let name_end = all.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(all.len());
    let (name, attributes) = all.split_at(name_end);
    Some((HtmlTag { name: name.to_ascii_lowercase(), closing, attributes }, behind.get(1..).unwrap_or_default()))
}

fn after_end_of<'a>(name: &str, text: &'a str) -> &'a str {
    let end = text
        .match_indices("</")
        .find(|(at, _)| text.get(at + 2..at + 2 + name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)));
    end.and_then(|(at, _)| text.get(at..)).unwrap_or_default()
}

/// The text so far.
#[derive(Default)]
struct HtmlText {
    written: String,
    /// Whether blank space must be written before the next word.
    space: bool,
    /// The nesting depth inside `pre` and inside quotes; then, for each open link, its address and where its label
    /// begins.
    pre: u32,
    quotes: u32,
    links: Vec<(String, usize)>,
}

impl HtmlText {
    fn words(&mut self, text: &str) {
        let text = resolve_entities(text);
        if self.pre > 0 {
            self.gap();
            self.written.push_str(&text);
            return;
        }
        self.space |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            self.gap();
            self.written.push_str(word);
            self.space = true;
        }
        self.space = text.ends_with(char::is_whitespace) || (self.space && text.trim().is_empty());
    }

    /// Writes the pending blank space, or the quote marks at the start of a line.
    fn gap(&mut self) {
        let line_start = self.written.is_empty() || self.written.ends_with('\n');
        if line_start {
            self.written.push_str(&"> ".repeat(self.quotes as usize));
        } else if self.space && !self.written.ends_with(' ') {
            self.written.push(' ');
        }
        self.space = false;
    }

    fn line_break(&mut self) {
        while self.written.ends_with(' ') {
            self.written.pop();
        }
        self.written.push('\n');
        self.space = false;
    }

    /// A line break, unless the text is at the start of a line.
    fn block(&mut self) {
        if !self.written.is_empty() && !self.written.ends_with('\n') {
            self.line_break();
        }
        self.space = false;
    }

    fn tag(&mut self, tag: &HtmlTag<'_>) {
        match (tag.name.as_str(), tag.closing) {
            ("br", _) => self.line_break(),
            // Teams writes code as `codeblock`.
            ("pre" | "codeblock", closing) => {
                self.block();
                self.pre = if closing { self.pre.saturating_sub(1) } else { self.pre + 1 };
            }
            ("blockquote", closing) => {
                self.block();
                self.quotes = if closing { self.quotes.saturating_sub(1) } else { (self.quotes + 1).min(8) };
            }
            ("li", false) => {
                self.block();
                self.gap();
                self.written.push_str("- ");
            }
            ("a", false) => {
                self.gap();
                self.links.push((tag.attribute("href").unwrap_or_default(), self.written.len()));
            }
            ("a", true) => {
                let Some((address, start)) = self.links.pop() else { return };
                let label = self.written.get(start..).unwrap_or_default().trim();
                let plain = address.strip_prefix("mailto:").unwrap_or(&address);
                if plain.is_empty() || label == plain || !address.contains(':') {
                    return;
                }
                let shown = if label.is_empty() { plain.to_owned() } else { format!(" ({plain})") };
                self.written.push_str(&shown);
            }
            ("img", _) => {
                if let Some(alt) = tag.attribute("alt").filter(|alt| !alt.trim().is_empty()) {
                    self.gap();
                    self.written.push_str(alt.trim());
                    self.space = false;
                }
            }
            ("td" | "th", true) => self.space = true,
            (
                "p" | "div" | "ul" | "ol" | "li" | "tr" | "table" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "hr"
                | "section" | "article" | "header" | "footer",
                _,
            ) => self.block(),
            _ => {}
        }
    }

    fn end(self) -> String {
        self.written.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_reads_as_a_person_reads_it() {
        for (html, expected) in [
            ("Hello <b>big</b> world", "Hello big world"),
            ("<p>One</p><p>Two &amp; three<br/>four</p>", "One\nTwo & three\nfour"),
            (
                "<p>See <a href=\"https://a.example/x?y=1&amp;z=2\">the page</a>.</p>",
                "See the page (https://a.example/x?y=1&z=2).",
            ),
            ("<a href='https://a.example'>https://a.example</a>", "https://a.example"),
            ("<a href=\"mailto:a@b.example\">a@b.example</a>", "a@b.example"),
            ("<a href=\"#x\">here</a>", "here"),
            ("<ul>\n<li>one</li>\n<li>two</li>\n</ul>", "- one\n- two"),
            ("<blockquote><p>said</p></blockquote><p>answer</p>", "> said\nanswer"),
            ("<pre>a  b\n  c</pre>after", "a  b\n  c\nafter"),
            (
                "<codeblock class=\"Python\"><code>if x:<br>&nbsp; &nbsp; y()</code></codeblock>after",
                "if x:\n    y()\nafter",
            ),
            ("1 < 2 and 3 > 2 <3", "1 < 2 and 3 > 2 <3"),
            ("a<!-- hidden -->b<style>x{}</style>c", "abc"),
            ("<img alt=':smile:' src=x> hi", ":smile: hi"),
            ("<p title=\"a>b\">x</p>", "x"),
            ("&#39;&#x27;&nbsp;&unknown; &", "'' &unknown; &"),
            ("<b", "<b"),
            ("", ""),
        ] {
            assert_eq!(html_to_text(html), expected, "{html}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(html in "[<>/a&;#x\"'= \\n!-é]{0,60}") {
            html_to_text(&html);
        }
    }
}
