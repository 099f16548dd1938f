//! How the embedded log encodes record keys, records and index entries.
//!
//! In: values. Out: bytes. Decoding gives the values again, or `None` for other bytes. Numbers are big-endian, so
//! that the store's key order is the order of offsets. Long values are compressed here: most of a memory record is
//! vectors in base64, which the store's own compression does not make smaller.

use crate::{LogError, LogRecord, Topic};

/// A value of at least this many bytes is compressed, if that makes it shorter.
const COMPRESSED_FROM: usize = 512;
/// A level that compresses faster than a disk writes.
const LEVEL: i32 = 1;

/// How a record's value is stored: none, as it is, or compressed.
mod value {
    pub(super) const NONE: u8 = 0;
    pub(super) const PLAIN: u8 = 1;
    pub(super) const COMPRESSED: u8 = 2;
}

/// The store key of a record: partition, then offset.
pub(super) fn record_key(partition: u32, offset: u64) -> [u8; 12] {
    let mut key = [0u8; 12];
    let (head, tail) = key.split_at_mut(4);
    head.copy_from_slice(&partition.to_be_bytes());
    tail.copy_from_slice(&offset.to_be_bytes());
    key
}

/// The offset in a [`record_key`].
pub(super) fn offset_of(record_key: &[u8]) -> Option<u64> {
    let (_, offset) = record_key.split_first_chunk::<4>()?;
    Some(u64::from_be_bytes(offset.try_into().ok()?))
}

/// Encodes a record: append time, form of the value, length of the key, key, value.
pub(super) fn encode(append_ms: i64, key: &[u8], value: Option<&[u8]>) -> Vec<u8> {
    let long = value.filter(|value| value.len() >= COMPRESSED_FROM);
    let compressed = long.and_then(|long| Some((long.len(), zstd::bulk::compress(long, LEVEL).ok()?)));
    let compressed = compressed.filter(|(plain, compressed)| compressed.len() < *plain).map(|(_, bytes)| bytes);
    let (form, value) = match (&compressed, value) {
        (Some(compressed), _) => (value::COMPRESSED, &compressed[..]),
        (None, Some(value)) => (value::PLAIN, value),
        (None, None) => (value::NONE, &[][..]),
    };
    let mut bytes = Vec::with_capacity(11 + key.len() + value.len());
    bytes.extend_from_slice(&append_ms.to_be_bytes());
    bytes.push(form);
    // Callers limit keys to 32 KiB.
    bytes.extend_from_slice(&(key.len() as u16).to_be_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value);
    bytes
}

/// The JSON of a value. `index` is the record's index in its call, for the error.
pub(super) fn json_of<T: serde::Serialize>(
    topic: Topic,
    partition: u32,
    index: usize,
    value: &T,
) -> Result<Vec<u8>, LogError> {
    serde_json::to_vec(value).map_err(|e| LogError::Record {
        topic,
        partition,
        index,
        problem: format!("it cannot be written as JSON ({e}); please report this"),
    })
}

/// The inverse of [`encode`].
pub(super) fn decode(offset: u64, bytes: &[u8]) -> Option<LogRecord> {
    let (append_ms, rest) = bytes.split_first_chunk::<8>()?;
    let (form, rest) = rest.split_first()?;
    let (key_length, rest) = rest.split_first_chunk::<2>()?;
    let (key, value) = rest.split_at_checked(usize::from(u16::from_be_bytes(*key_length)))?;
    let value = match *form {
        value::NONE if value.is_empty() => None,
        value::PLAIN => Some(value.to_vec()),
        value::COMPRESSED => Some(zstd::decode_all(value).ok()?),
        _ => return None,
    };
    Some(LogRecord { offset, append_ms: i64::from_be_bytes(*append_ms), key: key.to_vec(), value })
}

/// The store key of a memory key's index entry: partition, then key.
pub(super) fn index_key(partition: u32, key: &[u8]) -> Vec<u8> {
    [&partition.to_be_bytes()[..], key].concat()
}

/// An index entry: the offset of the key's last record, and whether that record has a value.
pub(super) fn encode_index(offset: u64, live: bool) -> [u8; 9] {
    let mut bytes = [0u8; 9];
    let (head, tail) = bytes.split_at_mut(8);
    head.copy_from_slice(&offset.to_be_bytes());
    tail.copy_from_slice(&[u8::from(live)]);
    bytes
}

/// The inverse of [`encode_index`].
pub(super) fn decode_index(bytes: &[u8]) -> Option<(u64, bool)> {
    match bytes.split_first_chunk::<8>()? {
        (offset, &[live @ (0 | 1)]) => Some((u64::from_be_bytes(*offset), live == 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_keys_sort_by_partition_and_offset() {
        let mut keys: Vec<_> =
            [(1, 0), (0, 256), (0, 1), (0, u64::MAX), (256, 0)].map(|(p, o)| record_key(p, o)).into();
        keys.sort_unstable();
        let offsets: Vec<_> = keys.iter().map(|key| offset_of(key).unwrap()).collect();
        assert_eq!(offsets, [1, 256, u64::MAX, 0, 0]);
        assert_eq!(offset_of(b"short"), None);
    }

    #[test]
    fn records_are_read_back_and_truncated_ones_are_not() {
        for value in [None, Some(&b""[..]), Some(&b"value"[..])] {
            let bytes = encode(-5, b"key", value);
            let expected =
                LogRecord { offset: 9, append_ms: -5, key: b"key".to_vec(), value: value.map(<[u8]>::to_vec) };
            assert_eq!(decode(9, &bytes), Some(expected));
            assert_eq!(decode(9, &bytes[..13]), None);
        }
        let (long, noise) = (
            "value ".repeat(200),
            (0..600u32).map(|n| (n.wrapping_mul(n).wrapping_mul(2_654_435) >> 7) as u8).collect::<Vec<_>>(),
        );
        for value in [long.as_bytes(), &noise] {
            let bytes = encode(-5, b"key", Some(value));
            assert_eq!(decode(9, &bytes).and_then(|record| record.value).as_deref(), Some(value));
            assert!(bytes.len() < 14 + value.len() + 1, "compression never lengthens a value");
        }
        let compressed = encode(-5, b"key", Some(long.as_bytes()));
        assert!(compressed.len() < 100, "{}", compressed.len());
        assert_eq!(decode(9, &compressed[..compressed.len() - 3]), None);
        assert_eq!(decode_index(&encode_index(7, false)), Some((7, false)));
        assert_eq!(decode_index(&[0; 8]), None);
        assert_eq!(decode_index(&[2; 9]), None);
    }
}
