//! A search for the units of a turn, in slices.
//!
//! In: a turn, the parts of a bank in order. Out: the units that were made from the turn, each once, in the order of
//! their first part of it. It may pause after any part; the result does not depend on where.

use std::sync::Arc;

use crate::index::{
    candidates::indexed_part::PartKey,
    probes::TurnProbe,
    ranking::bank_parts::BankParts,
    units::unit_body::UnitBody,
    work_budget::{PASSED_PART, WorkBudget},
};

/// A turn that is being looked for.
#[derive(Default)]
pub(super) struct TurnScan {
    /// The part that was read last.
    last: Option<PartKey>,
    found: Vec<Arc<UnitBody>>,
}

impl TurnScan {
    /// Works until the allowance is spent; returns the units once every part was read.
    pub(super) fn resume(
        &mut self,
        probe: &TurnProbe,
        bank: &BankParts,
        allowance: &mut WorkBudget,
    ) -> Option<Vec<Arc<UnitBody>>> {
        for (key, part) in bank.after(self.last) {
            if allowance.is_spent() {
                return None;
            }
            allowance.spend(PASSED_PART);
            self.last = Some(*key);
            let body = &part.unit.body;
            if body.is_of_turn(key.part as usize, &probe.turn) && self.found.iter().all(|found| found.id != body.id) {
                self.found.push(Arc::clone(body));
            }
        }
        Some(std::mem::take(&mut self.found))
    }
}
