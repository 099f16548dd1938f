//! Our lines in settings in YAML, with everything else as it is.
//!
//! In: the text, the name of a mapping at its first level, and lines below it. Out: the text with them right behind that
//! name, between two comments that mark them, or without them. A mapping that is written in braces is left alone, since
//! no line can be put into it.

use crate::settings_error::SettingsError;

const BEGIN: &str = "# ripplemem: begin";
const END: &str = "# ripplemem: end";

/// Lines of ours, which begin with the indentation of their mapping's members.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct YamlLines {
    pub(crate) mapping: &'static str,
    pub(crate) lines: String,
}

/// The text with the lines; the same text if it has them.
pub(crate) fn with_lines(text: &str, own: &YamlLines) -> Result<String, SettingsError> {
    let text = without_lines(text);
    let block = format!("  {BEGIN}\n{}\n  {END}\n", own.lines.trim_end());
    let head = format!("{}:", own.mapping);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let Some(rest) = line.strip_prefix(&head) else { continue };
        let rest = rest.split('#').next().unwrap_or_default().trim();
        if !rest.is_empty() {
            return Err(SettingsError::Form("its extensions stand in one line; write them on lines of their own"));
        }
        let (before, behind) = text.split_at(at);
        let end = if before.ends_with('\n') { "" } else { "\n" };
        return Ok(format!("{before}{end}{block}{behind}"));
    }
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{text}{end}{head} # {BEGIN}\n{block}"))
}

/// The text without the lines.
pub(crate) fn without_lines(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_own = false;
    for line in text.split_inclusive('\n') {
        match line.trim() {
            BEGIN => is_own = true,
            END => is_own = false,
            _ if is_own || line.trim_end().ends_with(&format!("# {BEGIN}")) => {}
            _ => kept.push_str(line),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_and_go_and_the_rest_stays() {
        let own = YamlLines { mapping: "extensions", lines: "  ripplemem:\n    enabled: true".to_owned() };
        for text in ["", "a: 1\n", "# mine\nextensions: # all\n  x:\n    enabled: true\n", "extensions:\n"] {
            let with = with_lines(text, &own).unwrap();
            assert!(with.contains("\n  ripplemem:\n    enabled: true\n"), "{with}");
            assert_eq!(with.matches("extensions:").count(), 1, "{with}");
            assert_eq!(with_lines(&with, &own).unwrap(), with, "twice is once");
            assert_eq!(without_lines(&with), text);
        }
        assert!(with_lines("extensions: {x: {}}\n", &own).is_err());
    }
}
