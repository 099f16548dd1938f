//! Short ids of turns, which a model can repeat.
//!
//! In: the id of a turn, up to 256 bytes. Out: the id itself if it is short and plain, otherwise `~` and six characters
//! of its hash. A short id depends only on the id, so it is the same in every process. It may mean several turns of a
//! bank, which are looked up. If the id of a turn has that form itself, the text means that turn and also the turns
//! with this short id. Each of them has a name that means no other: its whole id, or for an id of that form, its own
//! short id.

use std::{borrow::Cow, time::Instant};

use super::problem::ApiProblem;
use pipeline::{Cancellation, PipelineError, StoredTurn};
use ripplemem::Memory;
use types::model::Bank;

/// Ids with more bytes are shortened.
const MAX: usize = 8;
/// What a shortened id begins with.
const MARK: char = '~';
/// Letters and digits that are not easily confused (Crockford's base 32).
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Digits of a shortened id: 30 bits.
const LENGTH: usize = 6;
/// Digits of the name that a list of turns gets: 60 bits.
const NAME_LENGTH: usize = 12;

/// The short id of a turn.
#[must_use]
pub fn short_id(turn: &str) -> Cow<'_, str> {
    if turn.len() <= MAX && turn.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte)) {
        return Cow::Borrowed(turn);
    }
    Cow::Owned(std::iter::once(MARK).chain(digits(&blake3::hash(turn.as_bytes()), LENGTH)).collect())
}

/// A name for exactly these turns, in this order: a hash of their ids.
pub(super) fn selection_hash(turns: &[StoredTurn]) -> String {
    let mut hash = blake3::Hasher::new();
    for held in turns {
        hash.update(&(held.turn.turn.len() as u64).to_le_bytes()).update(held.turn.turn.as_bytes());
    }
    digits(&hash.finalize(), NAME_LENGTH).collect()
}

/// The first digits of a hash.
fn digits(hash: &blake3::Hash, length: usize) -> impl Iterator<Item = char> {
    let digit = |byte: u8| DIGITS.get(usize::from(byte % 32)).copied().map_or('0', char::from);
    let bytes = *hash.as_bytes();
    bytes.into_iter().take(length).map(digit)
}

/// Whether an id has the form of a shortened id.
#[must_use]
pub fn is_shortened(id: &str) -> bool {
    id.strip_prefix(MARK).is_some_and(|digits| digits.len() == LENGTH && digits.bytes().all(|d| DIGITS.contains(&d)))
}

/// Whether an id or a short id means the turn with this id.
#[must_use]
pub fn matches_id(asked: &str, id: &str) -> bool {
    id == asked || is_shortened(asked) && short_id(id) == asked
}

/// The problem with an id or short id that means several turns, with a name for each of them.
#[must_use]
pub fn ambiguous_id_problem<'i>(asked: &str, ids: impl IntoIterator<Item = &'i str>) -> String {
    let named = ids.into_iter().map(|id| match id {
        id if is_shortened(id) => format!("{id:?} as {:?}", short_id(id)),
        id => format!("{id:?}"),
    });
    let several = named.collect::<Vec<_>>().join(", ");
    format!("turn: {asked:?} means several turns: {several}; send the name of one")
}

/// The turns of a bank that an id or a short id means: all of them, if several have that id or short id.
pub(super) fn turns_by_id(
    memory: &Memory,
    bank: &Bank,
    asked: &str,
    cancellation: &Cancellation,
) -> Result<Vec<StoredTurn>, PipelineError> {
    if !is_shortened(asked) {
        return Ok(memory.turn(bank, asked)?.into_iter().collect());
    }
    memory.turns(bank, &|id| matches_id(asked, id), cancellation)
}

/// The turns of a bank that any of some ids or short ids mean, in time order.
pub(super) fn turns_by_any_ids(
    memory: &Memory,
    bank: &Bank,
    asked: &[String],
    cancellation: &Cancellation,
) -> Result<Vec<StoredTurn>, PipelineError> {
    if let [one] = asked {
        return turns_by_id(memory, bank, one, cancellation);
    }
    if !asked.iter().any(|asked| is_shortened(asked)) {
        return memory.turns_by_ids(bank, asked);
    }
    memory.turns(bank, &|id| asked.iter().any(|asked| matches_id(asked, id)), cancellation)
}

/// The whole id of the turn that an id or a short id means, and whether the memory holds it. `None` if that is unknown,
/// because some turns are not extracted yet, or because the log is on Kafka, where a whole id is not looked up: the
/// first list of a partition reads all of it.
pub(super) fn resolve_turn_id(
    memory: &Memory,
    bank: &Bank,
    turn: &str,
    cancellation: &Cancellation,
) -> Result<(String, Option<bool>), ApiProblem> {
    if memory.log().erasable().is_none() && !is_shortened(turn) {
        return Ok((turn.to_owned(), None));
    }
    // Checked before the list, which contains what is extracted meanwhile.
    let is_behind = is_behind(memory, bank)?;
    let held = turns_by_id(memory, bank, turn, cancellation)?;
    let ids: Vec<&str> = held.iter().map(|held| held.turn.turn.as_str()).collect();
    match ids.as_slice() {
        [] if is_shortened(turn) => {
            let detail = format!("turn: {turn:?} is a short id, and bank {bank} holds no turn that it means");
            let later = if is_behind { "; some turns are not read in yet" } else { "" };
            Err(ApiProblem::invalid(format!("{detail}{later}; list its turns, or send the whole id")))
        }
        [] => Ok((turn.to_owned(), Some(false).filter(|_| !is_behind))),
        [one] => Ok(((*one).to_owned(), Some(true))),
        several => Err(ApiProblem::invalid(ambiguous_id_problem(turn, several.iter().copied()))),
    }
}

/// Whether durable turns of a bank are not extracted yet.
fn is_behind(memory: &Memory, bank: &Bank) -> Result<bool, PipelineError> {
    let end = memory.end_of(std::slice::from_ref(bank))?;
    Ok(!memory.wait_for(&end, Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_odd_ids_are_shortened_and_short_ones_stay() {
        for id in ["1", "t-17", "D1:3", "a.b_c"] {
            assert_eq!(short_id(id), id);
        }
        let long = ["mcp-0123456789abcdef0123", "a b", "~", "[a]", "李"];
        let short: std::collections::BTreeSet<String> = long.iter().map(|id| short_id(id).into_owned()).collect();
        assert_eq!(short.len(), long.len());
        assert!(short.iter().all(|id| is_shortened(id)), "{short:?}");
        assert!(!["~0123", "~01234u", "0123456", "~0123456"].into_iter().any(is_shortened));
    }

    #[test]
    fn an_id_like_the_short_id_of_another_turn_means_both_and_each_has_a_name() {
        let long = "mcp-0123456789abcdef0123";
        let odd = short_id(long).into_owned();
        assert!(matches_id(&odd, long) && matches_id(&odd, &odd) && !matches_id(&odd, "1"));
        let name = short_id(&odd).into_owned();
        assert!(matches_id(&name, &odd) && !matches_id(&name, long) && !matches_id(long, &odd));
        let problem = ambiguous_id_problem(&odd, [long, odd.as_str()]);
        assert!(problem.contains(long) && problem.contains(&name), "{problem}");
    }
}
