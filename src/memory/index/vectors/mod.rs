//! Vectors in little memory, and how they are compared.
//!
//! In: vectors of parts. Out: dot products, codes of one or two bits per component, the nearest rows.
//!
//! `kernel` multiplies and is the only file with `unsafe`; `unit_vector_rows` holds the vectors of units;
//! `vector_codes` and `near_rows` hold smaller forms of them.

pub(super) mod kernel;
pub(super) mod near_rows;
pub(super) mod unit_vector_rows;
pub(super) mod vector_codes;
