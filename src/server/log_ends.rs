//! How far the turns of a log reach, and how far they are extracted.
//!
//! In: a log. Out: for each partition its end, and how many turns before it are not extracted. After the first request
//! that the cluster does not answer, no other is sent: each would wait as long.

use logs::{Log, LogError, Topic, WritePosition, partition_of};
use types::model::Bank;

/// How far the turns reach, by partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LogEnds(Vec<PartitionEnd>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PartitionEnd {
    end: u64,
    /// The first offset that is not extracted, if it is known.
    position: Option<u64>,
    /// How many offsets there are from the position on; 0 if none of them holds a turn.
    lag: Option<u64>,
}

impl LogEnds {
    /// The ends of a log's partitions. `followed` gives the read positions that are known without asking the log.
    ///
    /// # Errors
    /// The first [`LogError::Cluster`], and any error about an end.
    pub(crate) fn of(log: &dyn Log, followed: &dyn Fn(u32) -> Option<u64>) -> Result<Self, LogError> {
        let ends = (0..log.partitions()).map(|partition| PartitionEnd::of(log, partition, followed(partition)));
        Ok(Self(ends.collect::<Result<_, _>>()?))
    }

    /// The end of each partition.
    pub(crate) fn ends(&self) -> WritePosition {
        self.written(|of| of.end)
    }

    /// The offset after the last turn of each partition. On Kafka, the last offsets of a partition may hold transaction
    /// markers, which no read position passes.
    pub(crate) fn after(&self) -> WritePosition {
        self.written(|of| of.position.filter(|_| of.lag == Some(0)).unwrap_or(of.end))
    }

    fn written(&self, end: impl Fn(&PartitionEnd) -> u64) -> WritePosition {
        let mut written = WritePosition::nothing(self.0.len() as u32);
        for (partition, end) in (0..).zip(self.0.iter().map(end)).filter(|(_, end)| *end > 0) {
            written.extend(partition, end);
        }
        written
    }

    /// Turns that are not extracted, of the partitions for which that is known.
    pub(crate) fn behind(&self) -> u64 {
        self.0.iter().filter_map(|of| of.lag).sum()
    }

    /// Whether turns of a bank's partition are not extracted.
    #[cfg_attr(not(feature = "kafka"), allow(dead_code, reason = "a log in a directory is asked itself"))]
    pub(crate) fn is_behind(&self, bank: &Bank) -> bool {
        let partition = partition_of(bank, self.0.len() as u32);
        self.0.get(partition as usize).is_some_and(|of| of.lag.is_some_and(|lag| lag > 0))
    }
}

impl PartitionEnd {
    fn of(log: &dyn Log, partition: u32, followed: Option<u64>) -> Result<Self, LogError> {
        let end = log.end(Topic::Turns, partition)?;
        let position = match followed {
            Some(position) => Some(position),
            None => none_if_unknown(log.read_position(partition))?,
        };
        let lag = match position {
            Some(at) => none_if_unknown(log.lag(partition, at))?,
            None => None,
        };
        Ok(Self { end, position, lag })
    }
}

/// `None` if only this is unknown, for example because a read position cannot be read.
fn none_if_unknown(found: Result<u64, LogError>) -> Result<Option<u64>, LogError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error @ LogError::Cluster { .. }) => Err(error),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_is_away_ends_the_look_and_a_position_that_cannot_be_read_does_not() {
        let unreadable = LogError::Unreadable {
            topic: "t.memory".to_owned(),
            partition: 1,
            offset: 2,
            what: "a position".to_owned(),
            problem: "junk".to_owned(),
        };
        assert!(matches!(none_if_unknown(Err(unreadable)), Ok(None)));
        let away = LogError::Cluster {
            brokers: "a:1".to_owned(),
            doing: "asking".to_owned(),
            problem: "no reply".to_owned(),
            remedy: "check it",
            retriable: true,
        };
        assert!(matches!(none_if_unknown(Err(away)), Err(LogError::Cluster { .. })));
    }

    #[test]
    fn a_lag_that_is_not_known_counts_as_none_and_markers_are_not_turns() {
        let of = |end, position, lag| PartitionEnd { end, position, lag };
        let ends = LogEnds(vec![of(7, Some(5), Some(0)), of(4, Some(1), Some(3)), of(9, None, None)]);
        assert_eq!(ends.after().to_string(), "0:4,1:3,2:8");
        assert_eq!(ends.ends().to_string(), "0:6,1:3,2:8");
        assert_eq!(ends.behind(), 3);
        for bank in (0..30).map(|n| Bank::parse(&format!("b{n}")).unwrap()) {
            assert_eq!(ends.is_behind(&bank), partition_of(&bank, 3) == 1, "{bank}");
        }
    }
}
