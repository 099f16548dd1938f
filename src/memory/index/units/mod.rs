//! Units as the memory holds them, and how two of them are compared.
//!
//! In: memory records. Out: live units, and scores of pairs. `live_unit` holds units, `unit_body` their texts,
//! `turn_facts` what selectors compare of their turns, `selectable_part` how; `association_score` compares them.

pub(super) mod association_score;
pub(super) mod live_unit;
pub(super) mod selectable_part;
pub(super) mod turn_facts;
pub(super) mod unit_body;
