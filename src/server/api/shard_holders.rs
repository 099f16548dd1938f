//! Which instance holds a bank that this instance does not hold.
//!
//! In: which partitions the other instances say they hold. Out: the URL of the instance that holds a bank's shard, or
//! that the shard moves. Used only if instances divide the memory.

use std::{collections::BTreeMap, sync::RwLock};

use super::problem::{ApiProblem, ProblemCode};
use replica::ShardLocation;
use types::{model::Bank, sync};

/// The other instances' partitions, as far as they are known.
#[derive(Debug, Default)]
pub struct ShardHolders {
    /// By partition of the memory: the URL of the instance that holds it.
    urls: RwLock<BTreeMap<u32, String>>,
}

impl ShardHolders {
    /// Notes which other instance holds a partition; `None` if no other instance has said that it does.
    pub fn note(&self, partition: u32, url: Option<String>) {
        let mut urls = sync::write(&self.urls);
        match url {
            Some(url) => drop(urls.insert(partition, url)),
            None => drop(urls.remove(&partition)),
        }
    }

    /// Fails unless this instance holds the bank: [`ProblemCode::Misdirected`] with the holder's URL, or
    /// [`ProblemCode::Loading`] while the bank's shard moves.
    pub(super) fn check(&self, bank: &Bank, place: ShardLocation) -> Result<(), ApiProblem> {
        let (partition, moves) = match place {
            ShardLocation::Here => return Ok(()),
            ShardLocation::Loading { partition } => (partition, "is being loaded here"),
            ShardLocation::Elsewhere { partition } => match sync::read(&self.urls).get(&partition) {
                Some(url) => return Err(ApiProblem::misdirected(bank, partition, url.clone())),
                None => (partition, "moves to another instance"),
            },
        };
        let detail = format!("bank {bank}: its shard, {partition}, {moves}; ask again in a moment");
        Err(ApiProblem::new(ProblemCode::Loading, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bank_is_here_or_elsewhere_or_moves() {
        let holders = ShardHolders::default();
        let bank = Bank::parse("b").expect("a good name");
        let check = |place| holders.check(&bank, place).map_err(|problem| (problem.status, problem.holder));
        let elsewhere = ShardLocation::Elsewhere { partition: 3 };
        assert_eq!(check(ShardLocation::Here), Ok(()));
        assert_eq!(check(ShardLocation::Loading { partition: 3 }), Err((503, None)));
        assert_eq!(check(elsewhere), Err((503, None)), "no instance has said that it holds it");
        holders.note(3, Some("http://b:1".to_owned()));
        assert_eq!(check(elsewhere), Err((421, Some("http://b:1".to_owned()))));
        // This instance held the partition meanwhile, and no other has announced itself as the holder yet.
        holders.note(3, None);
        assert_eq!(check(elsewhere), Err((503, None)));
    }
}
