//! The parameters of a query.
//!
//! In: the query of an address. Out: names and values in order, or what is wrong. Bytes that are not text are never
//! replaced by other text, which could name another turn.

use percent_encoding::percent_decode_str;

/// The parameters, decoded.
///
/// # Errors
/// What is wrong: a parameter is not UTF-8 once it is decoded.
pub(super) fn parameters(query: &str) -> Result<Vec<(String, String)>, String> {
    let pieces = query.split('&').filter(|piece| !piece.is_empty());
    pieces
        .map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            let text = |encoded: &str| {
                decoded(encoded).ok_or_else(|| format!("{name}: not UTF-8 once it is decoded; encode its UTF-8"))
            };
            Ok((text(name)?, text(value)?))
        })
        .collect()
}

/// A name or a value in percent-encoding, where a plus is a space.
fn decoded(encoded: &str) -> Option<String> {
    let spaced = encoded.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8().ok().map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_what_is_no_text_is_refused() {
        let pairs = |found: &[(&str, &str)]| -> Vec<(String, String)> {
            found.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        for (query, expected) in [
            ("", vec![]),
            ("bank=a%2Fb&turn=%C3%BC+1", vec![("bank", "a/b"), ("turn", "\u{fc} 1")]),
            ("a&&b=&=c", vec![("a", ""), ("b", ""), ("", "c")]),
            ("a=%EF%BF%BD", vec![("a", "\u{fffd}")]),
            ("a=100%&b=%2&c=%zz", vec![("a", "100%"), ("b", "%2"), ("c", "%zz")]),
            ("a=b=c", vec![("a", "b=c")]),
        ] {
            assert_eq!(parameters(query), Ok(pairs(&expected)), "{query}");
            let library: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            assert_eq!(parameters(query), Ok(library), "{query}");
        }
        for wrong in ["turn=%ff", "turn=a%C3", "%ff=a", "a=1&turn=%ED%A0%80", "turn=%C0%AF"] {
            assert!(parameters(wrong).is_err_and(|problem| problem.contains("UTF-8")), "{wrong}");
        }
    }
}
