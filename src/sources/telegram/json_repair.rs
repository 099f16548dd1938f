//! Corrects invalid JSON that Telegram Desktop writes.
//!
//! In: the bytes of one value. Out: the same value as JSON, or nothing if no known fault is found. Two faults are
//! known: control characters written as `\x0B`, and the path after `"document_id":` without quotes (version 4.1).
//! Everything else stays as it is.

const DOCUMENT_ID: &[u8] = b"\"document_id\":";

/// The value with its faults corrected; `None` if it has none.
pub(super) fn repaired_json(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() + 64);
    let mut rest = bytes;
    let mut mended = false;
    let mut in_string = false;
    while let Some((&byte, after)) = rest.split_first() {
        if in_string && byte == b'\\' {
            match after {
                [b'x', high, low, behind @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    out.extend_from_slice(b"\\u00");
                    out.extend_from_slice(&[*high, *low]);
                    rest = behind;
                    mended = true;
                }
                [next, behind @ ..] => {
                    out.extend_from_slice(&[byte, *next]);
                    rest = behind;
                }
                [] => {
                    out.push(byte);
                    rest = after;
                }
            }
            continue;
        }
        if !in_string && let Some(behind) = rest.strip_prefix(DOCUMENT_ID) {
            let line = behind.get(..behind.iter().position(|b| *b == b'\n').unwrap_or(behind.len())).unwrap_or(behind);
            out.extend_from_slice(DOCUMENT_ID);
            rest = behind;
            if let Some(path) = unquoted(line) {
                out.extend_from_slice(&serde_json::to_vec(&path).unwrap_or_default());
                rest = behind.get(line.len()..).unwrap_or_default();
                mended = true;
            }
            continue;
        }
        in_string ^= byte == b'"';
        out.push(byte);
        rest = after;
    }
    mended.then_some(out)
}

/// The path that makes up a line, unless the line begins like JSON.
fn unquoted(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    let is_json =
        text.is_empty() || text.starts_with('"') || serde_json::from_str::<f64>(text.trim_end_matches(',')).is_ok();
    (!is_json && text != "null" && text != "null,").then(|| text.to_owned())
}
