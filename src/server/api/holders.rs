//! Which instance holds a bank that this one does not hold.
//!
//! In: what the other instances say of the partitions that they have. Out: where a bank's shard is asked, or
//! that it moves. Without instances that divide the memory there is none of this.

use std::{collections::BTreeMap, sync::RwLock};

use super::problem::{Code, Problem};
use nouns::{model::Bank, sync};
use ripplemem::pipeline::ShardPlace;

/// What is known of the other holders.
#[derive(Debug, Default)]
pub struct Holders {
    /// By partition of the memory: the URL of the instance that has it.
    urls: RwLock<BTreeMap<u32, String>>,
}

impl Holders {
    /// Notes which other instance has a partition; None where no other has said so.
    pub fn note(&self, partition: u32, url: Option<String>) {
        let mut urls = sync::write(&self.urls);
        match url {
            Some(url) => drop(urls.insert(partition, url)),
            None => drop(urls.remove(&partition)),
        }
    }

    /// Fails unless the bank answers here: [`Code::Misdirected`] with the URL of who holds it, or
    /// [`Code::Loading`] while its shard moves.
    pub(super) fn check(&self, bank: &Bank, place: ShardPlace) -> Result<(), Problem> {
        let (partition, moves) = match place {
            ShardPlace::Here => return Ok(()),
            ShardPlace::Loading { partition } => (partition, "is being loaded here"),
            ShardPlace::Elsewhere { partition } => match sync::read(&self.urls).get(&partition) {
                Some(url) => return Err(Problem::misdirected(bank, partition, url.clone())),
                None => (partition, "moves to another instance"),
            },
        };
        let detail = format!("bank {bank}: its shard, {partition}, {moves}; ask again in a moment");
        Err(Problem::new(Code::Loading, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bank_is_here_or_elsewhere_or_moves() {
        let holders = Holders::default();
        let bank = Bank::parse("b").expect("a good name");
        let check = |place| holders.check(&bank, place).map_err(|problem| (problem.status, problem.holder));
        let elsewhere = ShardPlace::Elsewhere { partition: 3 };
        assert_eq!(check(ShardPlace::Here), Ok(()));
        assert_eq!(check(ShardPlace::Loading { partition: 3 }), Err((503, None)));
        assert_eq!(check(elsewhere), Err((503, None)), "nobody has said that he has it");
        holders.note(3, Some("http://b:1".to_owned()));
        assert_eq!(check(elsewhere), Err((421, Some("http://b:1".to_owned()))));
        // This instance held it in between, and no other has announced itself as the holder yet.
        holders.note(3, None);
        assert_eq!(check(elsewhere), Err((503, None)));
    }
}
