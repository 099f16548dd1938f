//! Maps by numbers that are hashes already, so that they are not hashed again.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use types::model::UnitId;

/// A map by unit. A unit's id is a hash already, so it is not hashed again.
pub(in crate::index) type UnitIdMap<V> = HashMap<UnitId, V, BuildHasherDefault<IdHasher>>;

/// Takes the last 64-bit value it is given as the hash.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::index) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }
}
