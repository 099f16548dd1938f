//! Units as the memory holds them, and how two of them are compared.
//!
//! In: memory records. Out: live units, and scores of pairs. `live` holds units, `unit_body` their texts,
//! `score` compares them.

pub(super) mod live;
pub(super) mod score;
pub(super) mod unit_body;
