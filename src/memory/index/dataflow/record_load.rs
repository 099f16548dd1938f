//! Changes of the memory on their way into a shard, and changes of its graph on their way out.
//!
//! In: the record changes of one read of the log, in log order. Out: the same changes by bank and window, so that a
//! bank's part can be applied in pieces of whole windows. The last change of a key wins.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use crossbeam_channel::Sender;

use super::census::GraphEdge;
use crate::index::units::{
    association_score::GraphChoice,
    live_unit::{RecordKey, RecordUnits, WindowKey},
};
use types::{
    model::{BankKey, LogPosition, UnitId},
    wake_signal::WakeSignal,
};

/// A record that was added, changed or removed (`None`).
pub(in crate::index) type RecordUpdate = (RecordKey, Option<Arc<RecordUnits>>);

/// Changes from one read of the log. An answer about a bank reflects all of the bank's changes or none.
#[derive(Debug, Clone, Default)]
pub struct RecordLoad {
    /// Records that were added, changed or removed (`None`); the last one of a key wins.
    pub changes: Vec<(RecordKey, Option<Arc<RecordUnits>>)>,
    /// How far the memory reflects the logs once these changes are applied.
    pub reflects: Vec<LogPosition>,
    /// All choices of banks that are restored as a whole with this load, as they were found earlier for the same units
    /// under the same settings. They are used instead of a new search.
    pub known: Vec<(BankKey, Arc<Vec<GraphChoice>>)>,
    /// Whether these banks only enter memory or leave it: what they hold does not change, so no listener gets anything.
    pub moves: bool,
}

/// Choices that one load added (+1) and removed (−1); each at most once.
pub type ChoiceChanges = Vec<((BankKey, GraphChoice), isize)>;

/// Receivers of changes.
#[derive(Debug, Clone, Default)]
pub struct ChangeListeners {
    /// Every change of the graph's edges, epoch by epoch.
    pub edges: Option<Sender<EdgeChanges>>,
    /// The changes of the choices: one message for each load, in the order of the loads; the message for a load with
    /// [`RecordLoad::known`] is empty, and there is none for one that [`RecordLoad::moves`] banks.
    pub choices: Option<Sender<ChoiceChanges>>,
    /// Raised when the shard takes a load again after it had no room for one.
    pub room: Option<Arc<WakeSignal>>,
}

/// Edges that one epoch added and removed. An edge whose weight changed is removed with the old
/// weight and added with the new one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EdgeChanges {
    /// New edges.
    pub added: Vec<GraphEdge>,
    /// Removed edges.
    pub removed: Vec<GraphEdge>,
}

/// A load by bank.
#[derive(Debug)]
pub(in crate::index) struct PreparedLoad {
    /// The part of each bank.
    pub banks: Vec<BankLoad>,
    /// As [`RecordLoad::reflects`].
    pub reflects: Vec<LogPosition>,
    /// Whether the load came with known choices.
    pub restores: bool,
    /// As [`RecordLoad::moves`].
    pub moves: bool,
}

/// The part of a load that belongs to one bank.
#[derive(Debug)]
pub(in crate::index) struct BankLoad {
    /// The bank.
    pub bank: BankKey,
    /// The changes of each window.
    pub windows: VecDeque<Vec<RecordUpdate>>,
    /// All choices of the bank, grouped by unit.
    pub known: Option<VecDeque<GraphChoice>>,
    /// Whether a piece of it was applied.
    pub started: bool,
}

impl RecordLoad {
    /// Divides the load by bank and window.
    pub(in crate::index) fn prepare(self) -> PreparedLoad {
        let changes: BTreeMap<RecordKey, Option<Arc<RecordUnits>>> = self.changes.into_iter().collect();
        let mut banks: Vec<BankLoad> = Vec::new();
        let mut last = None;
        for (key, extraction) in changes {
            if last.map(|window: WindowKey| window.bank) != Some(key.window.bank) {
                banks.push(BankLoad { bank: key.window.bank, windows: VecDeque::new(), known: None, started: false });
            }
            let Some(of_bank) = banks.last_mut() else { continue };
            if last != Some(key.window) {
                of_bank.windows.push_back(Vec::new());
            }
            last = Some(key.window);
            if let Some(window) = of_bank.windows.back_mut() {
                window.push((key, extraction));
            }
        }
        let restores = !self.known.is_empty();
        let mut known: HashMap<BankKey, Arc<Vec<GraphChoice>>> = self.known.into_iter().collect();
        for of_bank in &mut banks {
            let choices = known.remove(&of_bank.bank);
            of_bank.known = choices.and_then(|choices| usable_choices(choices, &of_bank.windows));
        }
        PreparedLoad { banks, reflects: self.reflects, restores, moves: self.moves }
    }
}

/// The choices, grouped by the unit that chose; none if a choice names a missing unit.
fn usable_choices(
    choices: Arc<Vec<GraphChoice>>,
    windows: &VecDeque<Vec<RecordUpdate>>,
) -> Option<VecDeque<GraphChoice>> {
    let mut units: HashSet<UnitId> = HashSet::new();
    for window in windows {
        let records = || window.iter().filter_map(|(_, extraction)| extraction.as_ref());
        let closed = records().any(|extraction| extraction.closes);
        let visible = records().filter(|extraction| extraction.closes == closed);
        units.extend(visible.flat_map(|extraction| &extraction.units).map(|unit| unit.id));
    }
    if choices.iter().any(|choice| !units.contains(&choice.from) || !units.contains(&choice.to)) {
        return None;
    }
    let mut choices = Arc::unwrap_or_clone(choices);
    choices.sort_unstable_by_key(|choice| (choice.from, choice.channel, choice.to));
    Some(choices.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::units::turn_facts::TurnFactTable;

    #[test]
    fn the_last_change_of_a_key_wins_and_windows_stay_whole() {
        let key = |bank: u128, window: u128, piece: u128| RecordKey {
            window: WindowKey { bank: BankKey(bank), window },
            piece,
        };
        let record =
            |closes: bool| Some(Arc::new(RecordUnits::of(closes, Vec::new(), Vec::new(), TurnFactTable::default())));
        let changes = vec![
            (key(2, 1, 0), record(false)),
            (key(1, 9, 0), None),
            (key(2, 1, 1), None),
            (key(2, 1, 0), record(true)),
        ];
        let prepared = RecordLoad { changes, ..RecordLoad::default() }.prepare();
        let found: Vec<(u128, Vec<usize>)> = prepared
            .banks
            .iter()
            .map(|of_bank| (of_bank.bank.0, of_bank.windows.iter().map(Vec::len).collect()))
            .collect();
        assert_eq!(found, [(1, vec![1]), (2, vec![2])]);
        assert_eq!(prepared.banks[1].windows[0][0].1.as_ref().map(|extraction| extraction.closes), Some(true));
    }
}
