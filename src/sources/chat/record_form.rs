//! The list of the fields that the records of a format have.
//!
//! In: what a reader knows of its platform. Out: paths of fields, and the kinds of values that they may hold. Reads
//! nothing.

/// Kinds of values, as bits, which are added if a field may hold several kinds.
pub(crate) const TEXT: u8 = 1;
pub(crate) const NUMBER: u8 = 2;
pub(crate) const TRUTH: u8 = 4;
pub(crate) const OBJECT: u8 = 8;
pub(crate) const LIST: u8 = 16;

/// The fields of a format's records.
pub(crate) struct RecordForm {
    /// Fields that carry words, a speaker, a time or an id.
    pub(crate) needed: &'static [FieldKinds],
    /// Fields without which a message still shows what was said.
    pub(crate) other: &'static [FieldKinds],
    /// Fields that are known and hold no words of the message: settings, reactions, and copies of what is read. A name
    /// after `**/` stands for the field at any depth.
    pub(crate) known: &'static [&'static str],
    /// What the user should do if a needed field holds another kind of value.
    pub(crate) remedy: &'static str,
}

/// A field and the kinds of values that it may hold. Its path has `/` between names; `[]` stands for every element of a
/// list, or for a single element that a program writes without the list. A name may begin with a capital letter.
pub(crate) type FieldKinds = (&'static str, u8);

/// The first name of a path, and what follows it.
pub(super) fn split(path: &str) -> (&str, &str) {
    if let Some(rest) = path.strip_prefix("[]") {
        return ("[]", rest.strip_prefix('/').unwrap_or(rest));
    }
    let end = path.find(['/', '[']).unwrap_or(path.len());
    let (name, rest) = path.split_at(end);
    (name, rest.strip_prefix('/').unwrap_or(rest))
}
