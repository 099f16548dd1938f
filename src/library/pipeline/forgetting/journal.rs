//! The form of the embedded stores' journals: batches of items, and what begins and ends them.
//!
//! In: bytes from the beginning of a batch or an item on. Out: the keys and the values of the items, unpacked.

use std::borrow::Cow;

/// What an entry begins with.
mod tag {
    pub(super) const START: u8 = 1;
    pub(super) const ITEM: u8 = 2;
    pub(super) const END: u8 = 3;
    pub(super) const CLEAR: u8 = 4;
}

/// A key and a value of a journal.
pub(super) type Item<'b> = (&'b [u8], Cow<'b, [u8]>);

/// The next item of a journal; none at its end, or where it cannot be read.
pub(super) fn next_item<'b>(rest: &mut &'b [u8]) -> Option<Item<'b>> {
    loop {
        let mut at = *rest;
        let found = match take::<1>(&mut at)? {
            [tag::START] => take::<12>(&mut at).map(|_| None),
            [tag::END] => take::<12>(&mut at).map(|_| None),
            [tag::CLEAR] => take::<8>(&mut at).map(|_| None),
            [tag::ITEM] => item(&mut at).map(Some),
            _ => None,
        }?;
        *rest = at;
        if found.is_some() {
            return found;
        }
    }
}

/// The kind of the value, that of its compression, the keyspace, three lengths, the key and the value.
fn item<'b>(at: &mut &'b [u8]) -> Option<Item<'b>> {
    let [_, compression] = take::<2>(at)?;
    take::<8>(at)?;
    let key = usize::from(u16::from_le_bytes(take(at)?));
    let (length, stored) = (u32::from_le_bytes(take(at)?), u32::from_le_bytes(take(at)?));
    let (key, after) = at.split_at_checked(key)?;
    let (value, after) = after.split_at_checked(stored as usize)?;
    let value = match compression {
        0 => Cow::Borrowed(value),
        1 => Cow::Owned(lz4_flex::decompress(value, length as usize).ok()?),
        _ => return None,
    };
    *at = after;
    Some((key, value))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
}
