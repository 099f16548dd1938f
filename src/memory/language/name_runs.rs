//! Where a run of capitalised words ends.
//!
//! In: words, as a reader sees them. Out: one past the last word of the run. The same code serves three readers that
//! differ on purpose: a question joins titles and small words ("Hill of the Crows", "Mrs. Okafor"), a place joins one
//! small word ("Bay of Fundy"), and the capitalised runs by which a bank's parts are scored join none.

/// How one reader sees the words of a text. An index past the last word is never any of these.
pub(super) trait NameRunReader {
    /// The maximum number of small words between two words of a run.
    const MAX_LINKS: usize;

    /// Whether the word may be part of a name.
    fn may_be_name(&self, at: usize) -> bool;

    /// Whether the word may occur inside a name in lower case.
    fn may_link(&self, at: usize) -> bool;

    /// Whether the word follows the one before it without a break.
    fn is_joined(&self, at: usize) -> bool;

    /// Whether a run ends with this word whatever follows, because the word is possessive.
    fn ends_run(&self, at: usize) -> bool;
}

/// One past the last word of the run that begins at `start`, which must be part of a name.
pub(super) fn run_end<W: NameRunReader>(words: &W, start: usize) -> usize {
    let mut end = start + 1;
    while !words.ends_run(end - 1) {
        let links = (end..end + W::MAX_LINKS).take_while(|&at| words.may_link(at)).count();
        let next = end + links;
        if !words.may_be_name(next) || !(end..=next).all(|at| words.is_joined(at)) {
            break;
        }
        end = next + 1;
    }
    end
}
