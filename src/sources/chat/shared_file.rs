//! Files that were shared.
//!
//! In: a file's name and its address. Out: an attachment whose kind follows from the file's extension and whose caption
//! is the name, so that a message that is only a file is still a turn.

use types::model::Attachment;

/// A shared file as an attachment. `name` may be a path: its last part is the caption.
pub(crate) fn shared_file(name: &str, url: Option<String>) -> Attachment {
    let name = name.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(name).trim();
    let kind = media_kind(name);
    let caption = if name.is_empty() { kind } else { name };
    Attachment { kind: Some(kind.to_owned()), caption: Some(caption.to_owned()), url }
}

/// The kind of a file by its extension: `image`, `video`, `audio` or `file`.
pub(crate) fn media_kind(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "jpg" | "jpeg" | "png" | "gif" | "webp" | "bmp" | "svg" | "heic" | "heif" | "tif" | "tiff" | "avif" => "image",
        "mp4" | "mov" | "avi" | "mkv" | "webm" | "m4v" | "3gp" | "wmv" => "video",
        "mp3" | "m4a" | "ogg" | "oga" | "opus" | "wav" | "flac" | "aac" | "amr" => "audio",
        _ => "file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caption_is_the_files_name_and_the_kind_follows_its_ending() {
        for (name, kind, caption) in [
            ("2024/a/plan.PDF", "file", "plan.PDF"),
            ("C:\\photos\\cat.JPG", "image", "cat.JPG"),
            ("call.m4a", "audio", "call.m4a"),
            ("clip.webm", "video", "clip.webm"),
            ("", "file", "file"),
            ("no ending", "file", "no ending"),
        ] {
            let file = shared_file(name, None);
            assert_eq!((file.kind.as_deref(), file.caption.as_deref()), (Some(kind), Some(caption)), "{name}");
        }
    }
}
