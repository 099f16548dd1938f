//! Which vectors of a large bank may be near another one, by codes of two bits per component.
//!
//! In: vectors by row, and the least product that counts. Out: for other vectors, the rows whose product with them may
//! be that great. No such row is ever left out, and few others are let through if the least product is far above the
//! usual ones. 96 bytes are read for a vector of 384 components.
//!
//! The bound: let y be the vector that the code of x stands for. Split x into its component along y and a rest
//! orthogonal to y, and split q in the same way. By Cauchy-Schwarz, q·x is at most the product of the two components
//! along y plus the product of the lengths of the two rests. This bound grows with q·y, which a scan of the codes
//! finds. So each row has a value of q·y below which no q reaches the least product. No q is longer than [`MAX`].

use super::{
    kernel::{BLOCK_ROWS, CodeTable, MAX, levels, of_levels},
    vector_codes::VectorCodes,
};
use crate::index::memory_footprint::vec_bytes;
use types::shrinkable_collection::push_sparingly;

/// Slack in a bound: more than single precision loses.
const SLACK: f64 = 256.0;

/// Codes by row, and for each row the least product with the vector of its code at which the row may be near.
#[derive(Debug)]
pub(in crate::index) struct NearRows {
    threshold: i32,
    codes: VectorCodes,
    least: Vec<f32>,
}

impl NearRows {
    /// No rows; products of at least `threshold` count.
    pub(in crate::index) fn new(threshold: i32) -> Self {
        Self { threshold, codes: VectorCodes::default(), least: Vec::new() }
    }

    /// How many rows there are.
    #[cfg(test)]
    pub(in crate::index) fn len(&self) -> usize {
        self.least.len()
    }

    /// Bytes in memory.
    pub(in crate::index) fn bytes(&self) -> usize {
        self.codes.bytes() + vec_bytes(&self.least)
    }

    /// Adds a row.
    pub(in crate::index) fn push(&mut self, vector: &[i16]) {
        let code: Vec<u8> = levels(vector).collect();
        self.codes.set(self.least.len(), &code);
        push_sparingly(&mut self.least, least(vector, &code, self.threshold));
    }

    /// Removes a row; the last one takes its place.
    pub(in crate::index) fn swap_remove(&mut self, row: usize) {
        self.least.swap_remove(row);
        let end = self.least.len();
        self.codes.set(row, &self.codes.code(end));
        self.codes.clear(end);
    }

    /// Calls `near` with the pairs of each block of rows whose product may be at least the threshold.
    pub(in crate::index) fn scan(&self, queries: &[impl AsRef<[i16]>], mut near: impl FnMut(NearPairs<'_>)) {
        let tables: Vec<CodeTable> = queries.iter().map(|query| CodeTable::of_levels(query.as_ref())).collect();
        let most_products: Vec<(f32, f32)> = tables.iter().map(CodeTable::most_product).collect();
        let mut may_be_near = vec![0u64; tables.len()];
        for (block, least) in self.least.chunks(BLOCK_ROWS).enumerate() {
            self.codes.scan(&tables, block, &mut |query, sums| {
                let (step, most) = most_products[query];
                let reaches = |(sum, least): (&u16, &f32)| f32::from(*sum) * step + most >= *least;
                let pairs = || sums.iter().zip(least);
                // Most blocks have no such row, and one check shows that for many rows at once.
                may_be_near[query] = match pairs().fold(0, |any, pair| any | u32::from(reaches(pair))) {
                    0 => 0,
                    _ => pairs().zip(0..).fold(0, |rows, (pair, bit)| rows | u64::from(reaches(pair)) << bit),
                };
            });
            let rows = may_be_near.iter().fold(0, |any, rows| any | rows);
            if rows != 0 {
                near(NearPairs { first_row: block * BLOCK_ROWS, rows, of_queries: &may_be_near });
            }
        }
    }
}

/// The pairs of queries and the rows of a block that may be near each other.
#[derive(Debug, Clone, Copy)]
pub(in crate::index) struct NearPairs<'s> {
    first_row: usize,
    /// A bit for each row of the block that is near a query.
    rows: u64,
    /// For each query, a bit for each row of the block.
    of_queries: &'s [u64],
}

impl<'s> NearPairs<'s> {
    /// The rows of the block that are near a query, in order.
    pub(in crate::index) fn rows(self) -> impl Iterator<Item = usize> + use<'s> {
        let mut left = self.rows;
        std::iter::from_fn(move || {
            let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(self.first_row + bit)
        })
    }

    /// The queries that a row of the block is near to, in order.
    pub(in crate::index) fn queries_of(self, row: usize) -> impl Iterator<Item = usize> + use<'s> {
        let bit = row - self.first_row;
        self.of_queries.iter().enumerate().filter(move |(_, rows)| *rows >> bit & 1 == 1).map(|(query, _)| query)
    }
}

/// The least product of a query with the vector that a code stands for at which the query's product with the coded
/// vector itself may reach the threshold.
fn least(vector: &[i16], code: &[u8], threshold: i32) -> f32 {
    let (mut square, mut product, mut square_of_code) = (0.0, 0.0, 0.0);
    for (x, y) in vector.iter().map(|x| f64::from(*x)).zip(of_levels(code)) {
        square += x * x;
        product += x * y;
        square_of_code += y * y;
    }
    let (length, of_code, threshold) = (square.sqrt(), f64::sqrt(square_of_code), f64::from(threshold));
    if threshold <= 0.0 {
        return f32::NEG_INFINITY;
    }
    if length * MAX < threshold {
        return f32::INFINITY;
    }
    let along = product / of_code / length;
    let rest = (1.0 - along * along).max(0.0).sqrt();
    let wanted = threshold / length;
    let least = wanted * along - rest * (MAX * MAX - wanted * wanted).max(0.0).sqrt();
    (least * of_code - SLACK) as f32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::index::{dot_reference, quantise};

    /// Vectors, some of which are near each other.
    fn vectors(width: usize, count: usize) -> Vec<std::sync::Arc<[i16]>> {
        let mut dice = 11u64;
        let mut draw = move || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 40) as f32 / 16_777_216.0 - 0.5
        };
        let mut random = || (0..width).map(|_| draw() + draw() + draw()).collect::<Vec<f32>>();
        let centers: Vec<Vec<f32>> = (0..4).map(|_| random()).collect();
        (0..count)
            .map(|n| {
                let near = (n % 10) as f32 / 10.0;
                quantise(
                    &random().iter().zip(&centers[n % 4]).map(|(x, c)| x * (1.0 - near) + c * near).collect::<Vec<_>>(),
                )
            })
            .collect()
    }

    /// The scan lets through every pair at or above the threshold, but not all of the others.
    #[test]
    fn no_row_that_reaches_the_threshold_is_left_out() {
        for width in [32, 64, 96, 384, 1_024] {
            let mut all = vectors(width, 330);
            // The zero vector, one with a single nonzero component, and one whose components are all equal.
            all.extend(
                [vec![0.0; width], [vec![1.0], vec![0.0; width - 1]].concat(), vec![-1.0; width]].map(|v| quantise(&v)),
            );
            let (queries, rows) = all.split_at(30);
            let queries: Vec<&[i16]> = queries.iter().chain(&rows[rows.len() - 3..]).map(|q| &q[..]).collect();
            for cosine in [0.1, 0.6, 0.8, 0.95, 1.0] {
                let threshold = types::model::Score::from_f64(cosine).0;
                let mut index = NearRows::new(threshold);
                rows.iter().for_each(|row| index.push(row));
                let mut near = BTreeSet::new();
                index.scan(&queries, |pairs| {
                    for row in pairs.rows() {
                        pairs.queries_of(row).for_each(|query| assert!(near.insert((query, row)), "each pair once"));
                    }
                });
                for (q, query) in queries.iter().enumerate() {
                    let of_query = near.iter().filter(|(of, _)| *of == q).map(|(_, row)| *row);
                    let mut alone = Vec::new();
                    index.scan(&[query], |pairs| alone.extend(pairs.rows()));
                    assert!(of_query.eq(alone), "{width}, {cosine}: {q} finds the same rows alone");
                }
                let mut reached = 0;
                for (q, query) in queries.iter().enumerate() {
                    for (r, row) in rows.iter().enumerate() {
                        let product = dot_reference(query, row);
                        assert!(product < threshold || near.contains(&(q, r)), "{width}, {cosine}: {q} {r} {product}");
                        reached += usize::from(product >= threshold);
                    }
                }
                assert!(cosine > 0.8 || reached > 100, "{width}, {cosine}: {reached}");
                let most = if cosine >= 0.8 && width >= 384 { queries.len() * rows.len() / 5 } else { usize::MAX };
                assert!(near.len() <= most, "{width}, {cosine}: it let {} through", near.len());
            }
        }
    }

    #[test]
    fn what_is_removed_gives_its_place_to_the_last() {
        let all = vectors(64, 200);
        let mut rows: Vec<&[i16]> = all.iter().map(|row| &row[..]).collect();
        let threshold = types::model::Score::from_f64(0.5).0;
        let mut index = NearRows::new(threshold);
        rows.iter().for_each(|row| index.push(row));
        for at in [3, 198, 0, 64, 120] {
            index.swap_remove(at);
            rows.swap_remove(at);
        }
        let mut rebuilt = NearRows::new(threshold);
        rows.iter().for_each(|row| rebuilt.push(row));
        let found = |index: &NearRows| {
            let mut found = Vec::new();
            index.scan(&[&all[7]], |pairs| found.extend(pairs.rows()));
            found
        };
        assert_eq!((index.len(), found(&index)), (195, found(&rebuilt)));
    }
}
