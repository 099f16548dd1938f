//! The topics of a log, their names, and the partition of a bank.

use super::murmur2::murmur2;
use types::model::Bank;

/// How long Kafka keeps a deletion readable in a topic that this project creates, in milliseconds.
pub const REMOVALS_KEPT_MS: u64 = 7 * 24 * 3_600_000;

/// A topic. `DeadLetters` has one partition. On Kafka the turns topic may have more partitions than
/// the memory topic; turns in the additional ones are forwarded ([`super::Transaction::forwards`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Topic {
    /// Turn events, kept by time. Key: the bank's name; value: [`types::model::TurnEvent`] as JSON.
    Turns,
    /// Memory records, the latest of each key. Key: [`types::model::MemoryKey`]; value:
    /// [`types::model::MemoryRecord`] as JSON.
    Memory,
    /// The memory topic's next generation, while it is filled with another model's vectors.
    NextMemory,
    /// Rejected input, kept. Value: [`types::model::DeadLetter`] as JSON.
    DeadLetters,
}

impl std::fmt::Display for Topic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Turns => "turns",
            Self::Memory => "memory",
            Self::NextMemory => "the next memory",
            Self::DeadLetters => "dead_letters",
        })
    }
}

/// The name of a generation of the memory topic, from 1: `memory`, then `memory-2` and so on.
#[must_use]
pub fn memory_name(generation: u32) -> String {
    if generation <= 1 { "memory".to_owned() } else { format!("memory-{generation}") }
}

/// The partition of a bank: murmur2 of its name, made positive, modulo the partition count.
/// Kafka's Java client chooses the same partition for a record whose key is the bank's name.
#[must_use]
pub fn partition_of(bank: &Bank, partitions: u32) -> u32 {
    (murmur2(bank.as_str().as_bytes()) & 0x7fff_ffff) % partitions.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bank_has_the_partition_that_kafkas_java_client_chooses() {
        // murmur2 gives 479470107, and -790332482, which is 1357151166 without its sign bit.
        for (bank, partitions, expected) in [
            ("abc", 1, 0),
            ("abc", 12, 479_470_107 % 12),
            ("foobar", 12, 1_357_151_166 % 12),
            ("foobar", 1_024, 1_357_151_166 % 1_024),
        ] {
            assert_eq!(partition_of(&Bank::parse(bank).unwrap(), partitions), expected, "{bank} of {partitions}");
        }
    }
}
