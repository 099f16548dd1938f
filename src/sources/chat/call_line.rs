//! Calls of tools as one line.
//!
//! In: the calls of an answer, already masked. Out: a line such as `Bash cargo test; Write notes.md`. A long call is cut
//! here, behind the masking, so that no part of a key is left at its end.

/// The most characters of a call.
const CALL_CHARACTERS: usize = 120;
/// The most bytes of a line.
const LINE_BYTES: usize = 1_000;
/// Between calls.
const BETWEEN: &str = "; ";
/// The end of what was cut.
const CUT: &str = "…";

/// The calls as one line; a mark stands for those for which there is no room. `None` if there are none.
pub(super) fn call_line(calls: impl IntoIterator<Item = String>) -> Option<String> {
    let mut line = String::new();
    for call in calls {
        let call = match call.char_indices().nth(CALL_CHARACTERS) {
            Some((at, _)) => format!("{}{CUT}", call.get(..at).unwrap_or_default().trim_end()),
            None => call,
        };
        if !line.is_empty() {
            line.push_str(BETWEEN);
        }
        if line.len() + call.len() > LINE_BYTES {
            line.push_str(CUT);
            break;
        }
        line.push_str(&call);
    }
    Some(line).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_and_each_of_its_calls_have_an_end() {
        assert_eq!(call_line(Vec::new()), None);
        assert_eq!(call_line(["Bash ls", "Read a"].map(str::to_owned)).as_deref(), Some("Bash ls; Read a"));
        let line = call_line(vec!["Read a file".to_owned(); 500]).unwrap();
        assert!(line.len() <= LINE_BYTES + 8 && line.ends_with("; …"), "{line}");
        let long = call_line(["x".repeat(5_000)]).unwrap();
        assert_eq!(long.chars().count(), CALL_CHARACTERS + 1);
    }
}
