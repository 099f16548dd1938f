//! The vector kernel: integer dot products of 16-bit vectors with such vectors, with rows of bytes and
//! with codes of their signs, and nothing else.
//!
//! In: vectors made by [`quantise`] and rows of bytes, all of one padded width. Out: exact 32-bit
//! products, and sums of signs, the same on every processor. This is the only file with `unsafe` code:
//! the wide versions are compared with plain ones by tests, and are chosen at run time.
//!
//! No sum overflows: a quantised vector is no longer than 32,767, so every partial sum of
//! a product is at most 32,767² < 2³¹ (Cauchy-Schwarz on the components summed so far). A row of at most
//! [`WIDEST_BYTES`] bytes is no longer than 32,768, so the same holds for its products.
#![allow(unsafe_code)]

use crate::memory::FixedVector;

/// Components of a quantised vector are a multiple of this; the rest is zero.
pub(super) const LANES: usize = 32;

/// Components that a row of bytes has at most.
pub(super) const WIDEST_BYTES: usize = 65_536;

/// A vector scaled to length 32,767 and cut toward zero, padded to a multiple of 32 components.
/// The zero vector stays zero.
#[must_use]
pub fn quantise(vector: &[f32]) -> FixedVector {
    quantised(vector.iter().copied()).collect()
}

/// The components of [`quantise`].
pub(super) fn quantised(vector: impl ExactSizeIterator<Item = f32> + Clone) -> impl Iterator<Item = i16> {
    let norm = vector.clone().map(|x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    let scale = if norm > 0.0 && norm.is_finite() { 32_767.0 / norm } else { 0.0 };
    let filled = vector.len().next_multiple_of(LANES) - vector.len();
    vector.map(move |x| (f64::from(x) * scale) as i16).chain(std::iter::repeat_n(0, filled))
}

/// The product of two vectors, one component after the other: what the fast versions must equal.
#[must_use]
pub fn dot_reference(a: &[i16], b: &[i16]) -> i32 {
    a.iter().zip(b).map(|(x, y)| i32::from(*x) * i32::from(*y)).fold(0, i32::wrapping_add)
}

/// The product of two vectors of one width.
#[must_use]
pub(super) fn dot(a: &[i16], b: &[i16]) -> i32 {
    let mut product = 0;
    scan(&[a], b, i32::MIN, &mut |_, _, score| product = score);
    product
}

/// A vector in 8 bits with a bound on the error: half the bytes to read when most rows are far
/// below a threshold.
#[derive(Debug, Clone)]
pub(super) struct Coarse {
    /// Components in steps of the scale, padded to whole cache lines of 64.
    pub(super) bytes: Vec<i8>,
    /// How the bytes relate to the vector.
    pub(super) grain: Grain,
}

/// How coarse bytes relate to the vector that they approximate.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Grain {
    /// Sum of the bytes.
    sum: i32,
    /// Size of a step.
    scale: f32,
    /// Length of the difference between the vector and its steps, rounded up.
    error: f32,
}

/// Components of a coarse vector are a multiple of this; the rest is zero.
const COARSE_LANES: usize = 64;
/// No quantised vector is longer.
const LONGEST: f32 = 32_767.0;
/// More than single precision loses in a bound: products are below 2³¹, a step of theirs is 128.
const SLACK: f32 = 4_096.0;

impl Coarse {
    /// The coarse form of a quantised vector.
    pub(super) fn of(vector: &[i16]) -> Self {
        let most = vector.iter().map(|x| x.unsigned_abs()).max().unwrap_or(0).max(1);
        let scale = f32::from(most) / 127.0;
        let mut bytes: Vec<i8> = vector.iter().map(|x| (f32::from(*x) / scale).round() as i8).collect();
        let lost: f64 =
            vector.iter().zip(&bytes).map(|(x, b)| (f64::from(*x) - f64::from(*b) * f64::from(scale)).powi(2)).sum();
        let sum = bytes.iter().map(|b| i32::from(*b)).sum();
        bytes.resize(vector.len().next_multiple_of(COARSE_LANES), 0);
        Self { bytes, grain: Grain { sum, scale, error: (lost.sqrt() * 1.000_1) as f32 } }
    }
}

/// Whether this processor makes [`scan_coarse`] faster.
pub(super) fn has_coarse() -> bool {
    #[cfg(target_arch = "x86_64")]
    let has = is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512bw");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    has
}

/// Calls `near(query, row)` for every pair whose product may be at least `threshold`:
/// never leaves one out, and lets through few that are below. `rows` holds the bytes of
/// the grains' vectors, one after the other. Does nothing where [`has_coarse`] is false.
pub(super) fn scan_coarse(
    queries: &[Coarse],
    rows: &[i8],
    grains: &[Grain],
    threshold: i32,
    near: &mut impl FnMut(usize, usize),
) {
    let Some(width) = queries.first().map(|q| q.bytes.len()).filter(|w| *w > 0) else { return };
    let fits = queries.iter().all(|q| q.bytes.len() == width) && rows.len() == width * grains.len();
    if !fits || !has_coarse() {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    for (group, four) in queries.chunks(4).enumerate() {
        // The instruction multiplies unsigned by signed bytes: the query is shifted by 128.
        let shifted: Vec<Vec<u8>> =
            four.iter().map(|q| q.bytes.iter().map(|b| (*b as u8).wrapping_add(128)).collect()).collect();
        let mut products = vec![0; four.len() * grains.len()];
        // SAFETY: the features were detected; every query has the width of a row, a multiple
        // of 64, `rows` holds whole rows, and there is a place for every product.
        unsafe {
            match &shifted[..] {
                [a, b, c, d] => wide::bytes_avx512([a, b, c, d], rows, &mut products),
                few => {
                    for (query, products) in few.iter().zip(products.chunks_exact_mut(grains.len())) {
                        wide::bytes_avx512([query], rows, products);
                    }
                }
            }
        }
        for (q, (query, products)) in four.iter().zip(products.chunks_exact(grains.len())).enumerate() {
            let Grain { scale, error, .. } = query.grain;
            let least = threshold as f32 - SLACK - error * LONGEST;
            for (r, (product, row)) in products.iter().zip(grains).enumerate() {
                let steps = (product - 128 * row.sum) as f32;
                if steps * (scale * row.scale) + row.error * (LONGEST + error) >= least {
                    near(group * 4 + q, r);
                }
            }
        }
    }
}

/// Rows of a block of sign codes.
pub(super) const BLOCK_ROWS: usize = 64;
/// Values of four signs.
const SIGNS: usize = 16;
/// Largest sum of four signs in a table: two of them fit a byte.
const MOST_SUM: usize = 127;

/// The code of a vector: a bit for each component, set where the component is not negative. Depends on
/// the vector alone.
pub(super) fn signs(vector: &[i16]) -> impl Iterator<Item = u8> {
    vector.chunks(8).map(|eight| (0..).zip(eight).fold(0, |byte, (bit, x)| byte | (u8::from(*x >= 0) << bit)))
}

/// The place of a row's bytes within each column of its block.
pub(super) fn place_in_block(row: usize) -> usize {
    let row = row % BLOCK_ROWS;
    if row < BLOCK_ROWS / 2 { 2 * row } else { 2 * row - BLOCK_ROWS + 1 }
}

/// A question's vector as what each four signs of a code add to its product with that code.
#[derive(Debug, Clone)]
pub(super) struct SignTable {
    /// Sixteen steps for each four components, by the value of their signs.
    sums: Vec<u8>,
    /// Size of a step.
    step: f64,
    /// The least product.
    least: f64,
}

impl SignTable {
    /// The table of a quantised vector.
    pub(super) fn of(query: &[i16]) -> Self {
        let fours = query.chunks_exact(4);
        let width = |four: &[i16]| four.iter().map(|x| i32::from(*x).abs()).sum::<i32>();
        let widest = fours.clone().map(width).max().unwrap_or(0).max(1);
        let most = MOST_SUM.min(usize::from(u16::MAX) / fours.len().max(1));
        let step = 2.0 * f64::from(widest) / most as f64;
        let sum = |four: &[i16], signs: usize| -> i32 {
            (0..).zip(four).map(|(bit, x)| if signs >> bit & 1 == 1 { i32::from(*x) } else { -i32::from(*x) }).sum()
        };
        let steps = |four: &[i16], signs| (f64::from(sum(four, signs) + width(four)) / step).round() as u8;
        let sums = fours.clone().flat_map(|four| (0..SIGNS).map(move |signs| steps(four, signs))).collect();
        let least = -f64::from(fours.map(width).sum::<i32>());
        Self { sums, step, least }
    }

    /// The product of the vector and a code's signs, from the code's sum.
    pub(super) fn product(&self, sum: u16) -> f64 {
        f64::from(sum) * self.step + self.least
    }

    /// The sums of the rows of a block, row by row. The processor is told to fetch the block that is `next`.
    pub(super) fn scan(&self, block: &[u8], next: &[u8], sums: &mut [u16; BLOCK_ROWS]) {
        #[cfg(target_arch = "x86_64")]
        if block.len() * 2 / BLOCK_ROWS * SIGNS == self.sums.len()
            && block.len().is_multiple_of(BLOCK_ROWS)
            && next.len() == block.len()
        {
            if is_x86_feature_detected!("avx512bw") {
                // SAFETY: the feature was detected; the block has whole columns of 64 bytes, and the table
                // has 32 bytes for each.
                return unsafe { wide::signs_avx512(&self.sums, block, next, sums) };
            }
            if is_x86_feature_detected!("avx2") {
                // SAFETY: as above.
                return unsafe { wide::signs_avx2(&self.sums, block, sums) };
            }
        }
        self.scan_reference(block, sums);
    }

    /// The same, one row after the other: what the fast versions must equal.
    fn scan_reference(&self, block: &[u8], sums: &mut [u16; BLOCK_ROWS]) {
        for (row, sum) in sums.iter_mut().enumerate() {
            let at = place_in_block(row);
            let columns = block.chunks_exact(BLOCK_ROWS).zip(self.sums.chunks_exact(2 * SIGNS));
            *sum = columns.fold(0, |sum, (column, table)| {
                let (low, high) = (usize::from(column[at] & 15), usize::from(column[at] >> 4));
                sum + u16::from(table[low]) + u16::from(table[SIGNS + high])
            });
        }
    }
}

/// Calls `hit(query, row, product)` for every product of at least `threshold`.
///
/// `rows` holds vectors of the queries' width one after the other. Queries or rows of
/// another width are left out. Order: rows ascending for each group of four queries.
pub(super) fn scan(queries: &[&[i16]], rows: &[i16], threshold: i32, hit: &mut impl FnMut(usize, usize, i32)) {
    let Some(width) = queries.first().map(|q| q.len()).filter(|w| *w > 0 && w.is_multiple_of(LANES)) else { return };
    if !rows.len().is_multiple_of(width) || queries.iter().any(|q| q.len() != width) {
        return;
    }
    for (group, four) in queries.chunks(4).enumerate() {
        let mut found = |q: usize, r: usize, s: i32| {
            if s >= threshold {
                hit(group * 4 + q, r, s);
            }
        };
        match four {
            &[a, b, c, d] => rows_of([a, b, c, d], rows, &mut found),
            few => few.iter().enumerate().for_each(|(i, q)| rows_of([q], rows, &mut |_, r, s| found(i, r, s))),
        }
    }
}

/// Calls `each(row, product, square)` for every row of bytes: its product with the query, and with itself.
///
/// `rows` holds rows of the query's width one after the other. Rows of another width are left out.
pub(super) fn scan_bytes(query: &[i16], rows: &[i8], each: &mut impl FnMut(usize, i32, i32)) {
    let width = query.len();
    if width == 0 || width > WIDEST_BYTES || !width.is_multiple_of(LANES) || !rows.len().is_multiple_of(width) {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512bw") {
            // SAFETY: the features were detected; the query has the width of a row, a multiple of LANES,
            // and `rows` holds whole rows.
            return unsafe { wide::signed_avx512(query, rows, each) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { wide::signed_avx2(query, rows, each) };
        }
    }
    scan_bytes_reference(query, rows, each);
}

/// The same, one component after the other: what the fast versions must equal.
fn scan_bytes_reference(query: &[i16], rows: &[i8], each: &mut impl FnMut(usize, i32, i32)) {
    for (r, row) in rows.chunks_exact(query.len()).enumerate() {
        let product = query.iter().zip(row).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum();
        each(r, product, row.iter().map(|y| i32::from(*y) * i32::from(*y)).sum());
    }
}

fn rows_of<const Q: usize>(queries: [&[i16]; Q], rows: &[i16], found: &mut impl FnMut(usize, usize, i32)) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512bw") {
            // SAFETY: the features were detected; `scan` checked that every query has the
            // width of a row, a multiple of LANES, and that `rows` holds whole rows.
            return unsafe { wide::rows_avx512(queries, rows, found) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { wide::rows_avx2(queries, rows, found) };
        }
    }
    for (r, row) in rows.chunks_exact(queries[0].len()).enumerate() {
        for (q, query) in queries.iter().enumerate() {
            found(q, r, dot_reference(query, row));
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    /// # Safety
    /// The processor has the features; every query is as long as a row, a multiple of 32.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) unsafe fn rows_avx512<const Q: usize>(
        queries: [&[i16]; Q],
        rows: &[i16],
        found: &mut impl FnMut(usize, usize, i32),
    ) {
        let width = queries[0].len();
        for (r, row) in rows.chunks_exact(width).enumerate() {
            let mut sums = [_mm512_setzero_si512(); Q];
            for k in (0..width).step_by(32) {
                // SAFETY: k + 32 ≤ width, the length of the row and of every query.
                let x = unsafe { _mm512_loadu_si512(row.as_ptr().add(k).cast()) };
                for q in 0..Q {
                    // SAFETY: as above.
                    let y = unsafe { _mm512_loadu_si512(queries[q].as_ptr().add(k).cast()) };
                    sums[q] = _mm512_dpwssd_epi32(sums[q], x, y);
                }
            }
            for (q, sum) in sums.into_iter().enumerate() {
                found(q, r, _mm512_reduce_add_epi32(sum));
            }
        }
    }

    /// # Safety
    /// The processor has the features; the query is as long as a row, a multiple of 32.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) unsafe fn signed_avx512(query: &[i16], rows: &[i8], each: &mut impl FnMut(usize, i32, i32)) {
        for (r, row) in rows.chunks_exact(query.len()).enumerate() {
            let (mut product, mut square) = (_mm512_setzero_si512(), _mm512_setzero_si512());
            for k in (0..row.len()).step_by(32) {
                // SAFETY: k + 32 ≤ the length of the row and of the query.
                let (x, y) = unsafe {
                    (
                        _mm512_loadu_si512(query.as_ptr().add(k).cast()),
                        _mm512_cvtepi8_epi16(_mm256_loadu_si256(row.as_ptr().add(k).cast())),
                    )
                };
                product = _mm512_dpwssd_epi32(product, x, y);
                square = _mm512_dpwssd_epi32(square, y, y);
            }
            each(r, _mm512_reduce_add_epi32(product), _mm512_reduce_add_epi32(square));
        }
    }

    /// # Safety
    /// The processor has the feature; the query is as long as a row, a multiple of 32.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn signed_avx2(query: &[i16], rows: &[i8], each: &mut impl FnMut(usize, i32, i32)) {
        for (r, row) in rows.chunks_exact(query.len()).enumerate() {
            let (mut product, mut square) = (_mm256_setzero_si256(), _mm256_setzero_si256());
            for k in (0..row.len()).step_by(16) {
                // SAFETY: k + 16 ≤ the length of the row and of the query.
                let (x, y) = unsafe {
                    (
                        _mm256_loadu_si256(query.as_ptr().add(k).cast()),
                        _mm256_cvtepi8_epi16(_mm_loadu_si128(row.as_ptr().add(k).cast())),
                    )
                };
                product = _mm256_add_epi32(product, _mm256_madd_epi16(x, y));
                square = _mm256_add_epi32(square, _mm256_madd_epi16(y, y));
            }
            let sum = |lanes: __m256i| {
                let mut each = [0i32; 8];
                // SAFETY: eight 32-bit lanes fit the array.
                unsafe { _mm256_storeu_si256(each.as_mut_ptr().cast(), lanes) };
                each.into_iter().fold(0, i32::wrapping_add)
            };
            each(r, sum(product), sum(square));
        }
    }

    /// # Safety
    /// The processor has the features; every query is as long as a row, a multiple of 64.
    /// `products` has a place for every product, query by query.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(super) unsafe fn bytes_avx512<const Q: usize>(queries: [&[u8]; Q], rows: &[i8], products: &mut [i32]) {
        let width = queries[0].len();
        let count = rows.len() / width;
        for (r, row) in rows.chunks_exact(width).enumerate() {
            let mut sums = [_mm512_setzero_si512(); Q];
            for k in (0..width).step_by(64) {
                // SAFETY: k + 64 ≤ width, the length of the row and of every query.
                let x = unsafe { _mm512_loadu_si512(row.as_ptr().add(k).cast()) };
                for q in 0..Q {
                    // SAFETY: as above.
                    let y = unsafe { _mm512_loadu_si512(queries[q].as_ptr().add(k).cast()) };
                    sums[q] = _mm512_dpbusd_epi32(sums[q], y, x);
                }
            }
            for (q, sum) in sums.into_iter().enumerate() {
                products[q * count + r] = _mm512_reduce_add_epi32(sum);
            }
        }
    }

    /// # Safety
    /// The processor has the feature; `table` has 32 bytes for each 64 bytes of `block`.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn signs_avx512(table: &[u8], block: &[u8], next: &[u8], sums: &mut [u16; 64]) {
        let four_bits = _mm512_set1_epi8(15);
        let (mut even, mut odd) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        let columns = block.chunks_exact(64).zip(table.chunks_exact(32));
        for ((column, table), next) in columns.zip(next.chunks_exact(64)) {
            // SAFETY: a column has 64 bytes, its table twice 16; a prefetch reads nothing.
            let (codes, first, second) = unsafe {
                _mm_prefetch::<_MM_HINT_T0>(next.as_ptr().cast());
                (
                    _mm512_loadu_si512(column.as_ptr().cast()),
                    _mm_loadu_si128(table.as_ptr().cast()),
                    _mm_loadu_si128(table.as_ptr().add(16).cast()),
                )
            };
            let low = _mm512_and_si512(codes, four_bits);
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(codes), four_bits);
            let low = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(first), low);
            let high = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(second), high);
            let both = _mm512_add_epi8(low, high);
            even = _mm512_add_epi16(even, both);
            odd = _mm512_add_epi16(odd, _mm512_srli_epi16::<8>(both));
        }
        even = _mm512_sub_epi16(even, _mm512_slli_epi16::<8>(odd));
        // SAFETY: 64 sums of 16 bits are twice 64 bytes.
        unsafe {
            _mm512_storeu_si512(sums.as_mut_ptr().cast(), even);
            _mm512_storeu_si512(sums.as_mut_ptr().add(32).cast(), odd);
        }
    }

    /// # Safety
    /// The processor has the feature; `table` has 32 bytes for each 64 bytes of `block`.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn signs_avx2(table: &[u8], block: &[u8], sums: &mut [u16; 64]) {
        let four_bits = _mm256_set1_epi8(15);
        for half in 0..2 {
            let (mut even, mut odd) = (_mm256_setzero_si256(), _mm256_setzero_si256());
            for (column, table) in block.chunks_exact(64).zip(table.chunks_exact(32)) {
                // SAFETY: a half of a column has 32 bytes, its table twice 16.
                let (codes, first, second) = unsafe {
                    (
                        _mm256_loadu_si256(column.as_ptr().add(32 * half).cast()),
                        _mm_loadu_si128(table.as_ptr().cast()),
                        _mm_loadu_si128(table.as_ptr().add(16).cast()),
                    )
                };
                let low = _mm256_and_si256(codes, four_bits);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(codes), four_bits);
                let low = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(first), low);
                let high = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(second), high);
                let both = _mm256_add_epi8(low, high);
                even = _mm256_add_epi16(even, both);
                odd = _mm256_add_epi16(odd, _mm256_srli_epi16::<8>(both));
            }
            even = _mm256_sub_epi16(even, _mm256_slli_epi16::<8>(odd));
            // SAFETY: 16 sums of 16 bits are 32 bytes; the last begin at 48.
            unsafe {
                _mm256_storeu_si256(sums.as_mut_ptr().add(16 * half).cast(), even);
                _mm256_storeu_si256(sums.as_mut_ptr().add(32 + 16 * half).cast(), odd);
            }
        }
    }

    /// # Safety
    /// The processor has the feature; every query is as long as a row, a multiple of 32.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn rows_avx2<const Q: usize>(
        queries: [&[i16]; Q],
        rows: &[i16],
        found: &mut impl FnMut(usize, usize, i32),
    ) {
        let width = queries[0].len();
        for (r, row) in rows.chunks_exact(width).enumerate() {
            let mut sums = [_mm256_setzero_si256(); Q];
            for k in (0..width).step_by(16) {
                // SAFETY: k + 16 ≤ width, the length of the row and of every query.
                let x = unsafe { _mm256_loadu_si256(row.as_ptr().add(k).cast()) };
                for q in 0..Q {
                    // SAFETY: as above.
                    let y = unsafe { _mm256_loadu_si256(queries[q].as_ptr().add(k).cast()) };
                    sums[q] = _mm256_add_epi32(sums[q], _mm256_madd_epi16(x, y));
                }
            }
            for (q, sum) in sums.into_iter().enumerate() {
                let mut lanes = [0i32; 8];
                // SAFETY: eight 32-bit lanes fit the array.
                unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
                found(q, r, lanes.into_iter().fold(0, i32::wrapping_add));
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::super::{dot_reference, tests::vectors};

        #[test]
        fn narrow_registers_equal_the_reference() {
            if !is_x86_feature_detected!("avx2") {
                return;
            }
            let (queries, rows) = vectors(64, 4, 9);
            let four: [&[i16]; 4] = std::array::from_fn(|i| &queries[i][..]);
            let mut seen = 0;
            // SAFETY: the feature was detected, the widths are equal.
            unsafe {
                super::rows_avx2(four, &rows.concat(), &mut |q, r, s| {
                    assert_eq!(s, dot_reference(&queries[q], &rows[r]));
                    seen += 1;
                });
            }
            assert_eq!(seen, 36);
        }

        #[test]
        fn narrow_registers_equal_the_reference_for_bytes() {
            if !is_x86_feature_detected!("avx2") {
                return;
            }
            for width in [32, 64, 384, 3072] {
                let (query, rows) = super::super::tests::bytes(width);
                let (mut got, mut expected) = (Vec::new(), Vec::new());
                // SAFETY: the feature was detected, the widths are equal.
                unsafe { super::signed_avx2(&query, &rows, &mut |r, p, s| got.push((r, p, s))) };
                super::super::scan_bytes_reference(&query, &rows, &mut |r, p, s| expected.push((r, p, s)));
                assert_eq!(got, expected);
            }
        }

        #[test]
        fn narrow_registers_equal_the_reference_for_signs() {
            if !is_x86_feature_detected!("avx2") {
                return;
            }
            for width in [32, 384, 3072] {
                let (table, block) = super::super::tests::coded(width);
                let (mut sums, mut expected) = ([0; 64], [0; 64]);
                // SAFETY: the feature was detected; the block is of the table's width.
                unsafe { super::signs_avx2(&table.sums, &block, &mut sums) };
                table.scan_reference(&block, &mut expected);
                assert_eq!(sums, expected);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn vectors(width: usize, queries: usize, rows: usize) -> (Vec<FixedVector>, Vec<FixedVector>) {
        let make = |seed: usize| -> FixedVector {
            quantise(&(0..width).map(|i| (((i * 31 + seed * 977) % 201) as f32) - 100.0).collect::<Vec<_>>())
        };
        ((0..queries).map(make).collect(), (100..100 + rows).map(make).collect())
    }

    /// A question, and seven rows of bytes: two have the greatest and the least everywhere.
    pub(super) fn bytes(width: usize) -> (FixedVector, Vec<i8>) {
        let made = (0..5 * width).map(|i| ((i * i / 3 + i * 29) % 255) as i8);
        let rows = made.chain(std::iter::repeat_n(127, width)).chain(std::iter::repeat_n(-128, width));
        (vectors(width, 1, 0).0.remove(0), rows.collect())
    }

    /// A question's table, and a block of codes.
    pub(super) fn coded(width: usize) -> (SignTable, Vec<u8>) {
        let (queries, rows) = vectors(width, 1, BLOCK_ROWS);
        let mut block = vec![0; width / 8 * BLOCK_ROWS];
        for (row, vector) in rows.iter().enumerate() {
            let places = block.iter_mut().skip(place_in_block(row)).step_by(BLOCK_ROWS);
            places.zip(signs(vector)).for_each(|(place, byte)| *place = byte);
        }
        (SignTable::of(&queries[0]), block)
    }

    #[test]
    fn signs_equal_the_reference_and_nearly_the_product() {
        for width in [32, 64, 384, 1024, 3072] {
            let (table, block) = coded(width);
            let (mut sums, mut expected) = ([0; BLOCK_ROWS], [0; BLOCK_ROWS]);
            table.scan(&block, &block, &mut sums);
            table.scan_reference(&block, &mut expected);
            assert_eq!(sums, expected, "{width}");
            let (queries, rows) = vectors(width, 1, BLOCK_ROWS);
            for (row, sum) in rows.iter().zip(sums) {
                let signed = |(x, y): (&i16, &i16)| if *y >= 0 { f64::from(*x) } else { -f64::from(*x) };
                let product: f64 = queries[0].iter().zip(row.iter()).map(signed).sum();
                let most = table.step * (width / 4) as f64 / 2.0;
                assert!((table.product(sum) - product).abs() <= most, "{width}: {product}");
            }
        }
    }

    #[test]
    fn rows_of_bytes_equal_the_reference() {
        for width in [32, 64, 384, 1024, WIDEST_BYTES] {
            let (query, rows) = bytes(width);
            let (mut got, mut expected) = (Vec::new(), Vec::new());
            scan_bytes(&query, &rows, &mut |r, p, s| got.push((r, p, s)));
            scan_bytes_reference(&query, &rows, &mut |r, p, s| expected.push((r, p, s)));
            assert_eq!(got, expected);
            assert_eq!(got.len(), 7);
        }
        // The longest row and question: the sums are exact to the bound.
        let longest = vec![-128; WIDEST_BYTES];
        let question = quantise(&vec![-1.0; WIDEST_BYTES]);
        let exact: i64 = question.iter().map(|x| -128 * i64::from(*x)).sum();
        scan_bytes(&question, &longest, &mut |_, product, square| {
            assert_eq!((i64::from(product), square), (exact, 128 * 128 * 65_536));
        });
        scan_bytes(&question, &longest[1..], &mut |_, _, _| panic!("a row of another width"));
    }

    #[test]
    fn every_width_and_group_equals_the_reference() {
        for width in [32, 64, 384, 1024] {
            for queries in 1..=9 {
                let (queries, rows) = vectors(width, queries, 7);
                let slices: Vec<&[i16]> = queries.iter().map(|q| &q[..]).collect();
                let mut seen = 0;
                scan(&slices, &rows.concat(), i32::MIN, &mut |q, r, s| {
                    assert_eq!(s, dot_reference(&queries[q], &rows[r]));
                    seen += 1;
                });
                assert_eq!(seen, queries.len() * rows.len());
            }
        }
    }

    #[test]
    fn the_longest_product_does_not_overflow() {
        let one = quantise(&[1.0; 384]);
        let axis = quantise(&{
            let mut v = [0.0; 384];
            v[5] = -3.0;
            v
        });
        assert!((f64::from(dot(&one, &one)) / f64::from(crate::model::Score::ONE.0) - 1.0).abs() < 1e-3);
        assert_eq!(dot(&axis, &axis), crate::model::Score::ONE.0);
        assert_eq!(quantise(&[0.0; 40]).len(), 64);
        assert_eq!(dot(&quantise(&[0.0; 384]), &one), 0);
    }

    /// The coarse scan lets through every pair at or above the threshold, and not all others.
    #[test]
    fn the_coarse_scan_leaves_nothing_out() {
        if !has_coarse() {
            return;
        }
        for width in [32, 64, 96, 384, 1024] {
            let (queries, rows) = vectors(width, 6, 300);
            let coarse: Vec<Coarse> = queries.iter().map(|q| Coarse::of(q)).collect();
            let coarse_rows: Vec<Coarse> = rows.iter().map(|r| Coarse::of(r)).collect();
            let bytes: Vec<i8> = coarse_rows.iter().flat_map(|r| r.bytes.clone()).collect();
            let grains: Vec<Grain> = coarse_rows.iter().map(|r| r.grain).collect();
            let mut products: Vec<i32> =
                queries.iter().flat_map(|q| rows.iter().map(|r| dot_reference(q, r))).collect();
            products.sort_unstable();
            for threshold in
                [products[products.len() / 2], products[products.len() * 9 / 10], products[products.len() - 1]]
            {
                let mut near = std::collections::BTreeSet::new();
                scan_coarse(&coarse, &bytes, &grains, threshold, &mut |q, r| {
                    near.insert((q, r));
                });
                for (q, query) in queries.iter().enumerate() {
                    for (r, row) in rows.iter().enumerate() {
                        let product = dot_reference(query, row);
                        assert!(product < threshold || near.contains(&(q, r)), "{width}: {q} {r} {product}");
                    }
                }
                assert!(near.len() < products.len(), "{width}: it let everything through");
            }
        }
    }

    #[test]
    fn a_threshold_leaves_out_what_is_below() {
        let (queries, rows) = vectors(64, 1, 20);
        let all: Vec<i32> = rows.iter().map(|r| dot_reference(&queries[0], r)).collect();
        let threshold = all[3];
        let mut found = Vec::new();
        scan(&[&queries[0]], &rows.concat(), threshold, &mut |_, r, _| found.push(r));
        let expected: Vec<usize> = (0..20).filter(|r| all[*r] >= threshold).collect();
        assert_eq!(found, expected);
    }
}
