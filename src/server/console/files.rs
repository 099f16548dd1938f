//! The files of the console, as they are sent.
//!
//! In: `dist`, when the program is compiled. Out: each file with its type, its tag, and its packed form, which is
//! made once.

use std::{
    io::{self, Write},
    sync::LazyLock,
};

use axum::http::HeaderValue;
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

/// A file of the page.
pub(super) struct ConsoleFile {
    /// Its name; none for the page itself.
    pub(super) name: &'static str,
    pub(super) kind: HeaderValue,
    pub(super) plain: Bytes,
    /// None where packing failed; then it is sent plain.
    pub(super) packed: Option<Bytes>,
    /// Of the plain bytes, in quotes.
    pub(super) tag: String,
}

/// All of them.
pub(super) static FILES: LazyLock<[ConsoleFile; 4]> = LazyLock::new(|| {
    [
        file("", "text/html; charset=utf-8", include_bytes!("dist/index.html")),
        file("console.js", "text/javascript; charset=utf-8", include_bytes!("dist/console.js")),
        file("console.css", "text/css; charset=utf-8", include_bytes!("dist/console.css")),
        file("NOTICE.txt", "text/plain; charset=utf-8", include_bytes!("dist/NOTICE.txt")),
    ]
});

fn file(name: &'static str, kind: &'static str, plain: &'static [u8]) -> ConsoleFile {
    ConsoleFile {
        name,
        kind: HeaderValue::from_static(kind),
        plain: Bytes::from_static(plain),
        packed: packed(plain).ok().map(Bytes::from),
        tag: format!("\"{}\"", blake3::hash(plain).to_hex()),
    }
}

fn packed(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut packing = GzEncoder::new(Vec::new(), Compression::best());
    packing.write_all(plain)?;
    packing.finish()
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    /// Most bytes of the whole page, packed.
    const MAX_BYTES: usize = 120 << 10;

    #[test]
    fn the_page_is_light() {
        let bytes: usize = FILES.iter().map(|file| file.packed.as_ref().unwrap().len()).sum();
        assert!(bytes <= MAX_BYTES, "{bytes} bytes packed, more than {MAX_BYTES}");
    }

    #[test]
    fn the_page_was_made_for_this_document() {
        let hash = Sha256::digest(include_bytes!("../../../schemas/openapi.v1.json"));
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let made_for = include_str!("dist/openapi.sha256").trim();
        assert_eq!(made_for, hash, "schemas/openapi.v1.json changed: run `make console`");
    }
}
