//! Vectors in little room, and how they are compared.
//!
//! In: vectors of parts. Out: dot products, codes of one byte or one bit a dimension, the nearest rows.
//!
//! `kernel` multiplies, the only file with `unsafe`; `rows` holds the vectors of units, `codes` and `near_rows` smaller
//! forms of them.

pub(super) mod codes;
pub(super) mod kernel;
pub(super) mod near_rows;
pub(super) mod rows;
