//! Kafka's partitioner hash: bytes in, the same 32-bit number out as from the Java client.
//!
//! A Kafka client that partitions by key with `murmur2_random` chooses the same partition as [`super::partition_of`].
//! The hash does not depend on platform or byte order.

const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;

/// MurmurHash2 (32 bits) with the seed of Kafka's Java client.
pub(super) fn murmur2(bytes: &[u8]) -> u32 {
    // Java uses the length as an `int`: the low 32 bits.
    let mut hash = SEED ^ bytes.len() as u32;
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        let mut k = word.iter().rev().fold(0u32, |k, b| (k << 8) | u32::from(*b));
        k = k.wrapping_mul(MULTIPLIER);
        k ^= k >> 24;
        k = k.wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER) ^ k;
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        hash ^= rest.iter().rev().fold(0u32, |k, b| (k << 8) | u32::from(*b));
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_vectors_of_kafkas_own_tests() {
        for (text, expected) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(text.as_bytes()) as i32, expected, "{text}");
        }
    }
}
