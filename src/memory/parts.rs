//! The parts of one bank, in the order of sessions and ordinals.
//!
//! In: added and deleted units. Out: their parts with what the familiarity score compares: words,
//! speaker, names. A part is shared with the scans that read it, so that a scan can pause.

use std::{
    collections::BTreeMap,
    ops::{
        Bound::{Excluded, Unbounded},
        Range,
    },
    rc::Rc,
    sync::Arc,
};

use super::{
    live::LiveUnit,
    score::{NameKey, hash64},
    words::{Bag, Words},
};
use crate::{
    language::names::capitalised,
    model::{UnitId, canonical_name},
};

/// Session, ordinal of the turn, unit, index in the unit.
pub(super) type PartKey = (u64, u32, UnitId, usize);

/// The parts of one bank in the order of sessions and ordinals.
#[derive(Debug, Default)]
pub(super) struct Parts {
    parts: BTreeMap<PartKey, Rc<IndexedPart>>,
}

/// A part with what is compared.
#[derive(Debug)]
pub(super) struct IndexedPart {
    /// The unit that holds it.
    pub unit: Arc<LiveUnit>,
    /// Its words.
    pub words: Bag,
    /// Keys of the speaker's whole name and of its first word.
    pub speaker: [NameKey; 2],
    /// Keys of the first word of every name in it: people, places, titles, brands.
    pub names: Box<[NameKey]>,
}

impl Parts {
    /// Adds the parts of a unit.
    pub(super) fn insert(&mut self, unit: &Arc<LiveUnit>, words: &mut Words) {
        for (at, part) in unit.body.parts.iter().enumerate() {
            let name = canonical_name(&part.speaker);
            let first = name.split(' ').next().unwrap_or_default();
            let speaker = [hash64(name.as_bytes()), hash64(first.as_bytes())];
            let indexed =
                IndexedPart { unit: unit.clone(), words: words.count(&part.text), speaker, names: names(&part.text) };
            self.parts.insert((unit.position.session, part.ordinal, unit.id, at), Rc::new(indexed));
        }
    }

    /// Removes the parts of a unit.
    pub(super) fn delete(&mut self, unit: &LiveUnit) {
        for (at, part) in unit.body.parts.iter().enumerate() {
            self.parts.remove(&(unit.position.session, part.ordinal, unit.id, at));
        }
    }

    /// The parts after one, in order; all of them after None.
    pub(super) fn after(&self, key: Option<PartKey>) -> impl Iterator<Item = (&PartKey, &Rc<IndexedPart>)> {
        self.parts.range((key.map_or(Unbounded, Excluded), Unbounded))
    }
}

/// The first word of every name in a text.
fn names(text: &str) -> Box<[NameKey]> {
    let first = |run: Range<usize>| text.get(run)?.split_whitespace().next();
    capitalised(text).into_iter().filter_map(first).map(|word| hash64(canonical_name(word).as_bytes())).collect()
}
