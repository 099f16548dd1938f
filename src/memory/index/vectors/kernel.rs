//! The vector kernel: integer dot products of 16-bit vectors with other 16-bit vectors, with rows of bytes and with
//! codes of vectors, and nothing else.
//!
//! In: vectors made by [`quantise`] and rows of bytes, all of one padded width. Out: exact 32-bit
//! products, and sums of codes, the same on every processor. This is the only file with `unsafe` code:
//! the wide versions are compared with plain ones by tests, and are chosen at run time.
//!
//! No sum overflows: a quantised vector is no longer than 32,767, so every partial sum of
//! a product is at most 32,767² < 2³¹ (Cauchy-Schwarz on the components summed so far). A row of at most
//! [`WIDEST_BYTES`] bytes is no longer than 32,768, so the same holds for its products.
#![allow(unsafe_code)]

use crate::index::FixedVector;

/// The number of components of a quantised vector is a multiple of this; the padding is zero.
pub(in crate::index) const LANES: usize = 32;

/// The maximum number of components of a row of bytes.
pub(in crate::index) const WIDEST_BYTES: usize = 65_536;

/// A vector scaled to length 32,767 and cut toward zero, padded to a multiple of 32 components.
/// The zero vector stays zero.
#[must_use]
pub fn quantise(vector: &[f32]) -> FixedVector {
    quantised(vector.iter().copied()).collect()
}

/// The components of [`quantise`].
pub(in crate::index) fn quantised(vector: impl ExactSizeIterator<Item = f32> + Clone) -> impl Iterator<Item = i16> {
    let norm = vector.clone().map(|x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
    let scale = if norm > 0.0 && norm.is_finite() { 32_767.0 / norm } else { 0.0 };
    let filled = vector.len().next_multiple_of(LANES) - vector.len();
    vector.map(move |x| (f64::from(x) * scale) as i16).chain(std::iter::repeat_n(0, filled))
}

/// The product of two vectors, one component after the other. The fast versions must give the same result.
#[must_use]
pub fn dot_reference(a: &[i16], b: &[i16]) -> i32 {
    a.iter().zip(b).map(|(x, y)| i32::from(*x) * i32::from(*y)).fold(0, i32::wrapping_add)
}

/// The product of two vectors of one width.
#[must_use]
pub(in crate::index) fn dot(a: &[i16], b: &[i16]) -> i32 {
    let mut product = 0;
    scan(a, b, &mut |score| product = score);
    product
}

/// The length that no quantised vector exceeds.
pub(in crate::index) const MAX: f64 = 32_767.0;

/// Rows of a block of codes.
pub(in crate::index) const BLOCK_ROWS: usize = 64;
/// The number of values that four bits have.
const VALUES: usize = 16;
/// The largest sum for four bits in a table: two of them fit into a byte.
const MAX_SUM: usize = 127;

/// The signs of a vector: a bit for each component, set if the component is not negative. They depend on the vector
/// alone.
pub(in crate::index) fn signs(vector: &[i16]) -> impl Iterator<Item = u8> {
    vector.chunks(8).map(|eight| (0..).zip(eight).fold(0, |byte, (bit, x)| byte | (u8::from(*x >= 0) << bit)))
}

/// The sizes of the two levels of a component, and where the greater one begins, for a vector whose components have a
/// mean square of 1: with the signs, the four values that fit a normal distribution best (Lloyd and Max).
const LEVELS: [f64; 2] = [0.4528, 1.510];
const GREATER: f64 = 0.9816;

/// The levels of a vector: two bits for each component, for its sign and for whether it is on the greater level. They
/// depend on the vector alone.
pub(in crate::index) fn levels(vector: &[i16]) -> impl Iterator<Item = u8> {
    let great = (GREATER * MAX / (vector.len() as f64).sqrt()) as u16;
    let bits = move |x: &i16| u8::from(*x >= 0) | u8::from(x.unsigned_abs() > great) << 1;
    vector.chunks(4).map(move |four| (0..).zip(four).fold(0, |byte, (at, x)| byte | bits(x) << (2 * at)))
}

/// The components that the bits of a code stand for.
pub(in crate::index) fn of_levels(code: &[u8]) -> impl Iterator<Item = f64> {
    code.iter().flat_map(|byte| (0..4).map(move |at| level(usize::from(byte >> (2 * at)) & 3)))
}

fn level(bits: usize) -> f64 {
    let size = LEVELS[bits >> 1];
    if bits & 1 == 1 { size } else { -size }
}

/// The place of a row's bytes within each column of its block.
pub(in crate::index) fn place_in_block(row: usize) -> usize {
    let row = row % BLOCK_ROWS;
    if row < BLOCK_ROWS / 2 { 2 * row } else { 2 * row - BLOCK_ROWS + 1 }
}

/// A question's vector as a table: what every four bits of a code add to its product with that code.
#[derive(Debug, Clone)]
pub(in crate::index) struct CodeTable {
    /// Sixteen numbers of steps for every four bits of a code, one for each value of the bits.
    sums: Vec<u8>,
    /// Size of a step.
    step: f64,
    /// The least product.
    least: f64,
}

impl CodeTable {
    /// The table of a quantised vector for [`signs`].
    pub(in crate::index) fn of_signs(query: &[i16]) -> Self {
        Self::of::<4>(query, 1.0, |bits, at| if bits >> at & 1 == 1 { 1.0 } else { -1.0 })
    }

    /// The table of a quantised vector for [`levels`].
    pub(in crate::index) fn of_levels(query: &[i16]) -> Self {
        Self::of::<2>(query, LEVELS[1], |bits, at| level(bits >> (2 * at) & 3))
    }

    /// A table for codes in which four bits stand for `N` components, none greater than `most`.
    fn of<const N: usize>(query: &[i16], most: f64, component: impl Fn(usize, usize) -> f64) -> Self {
        let groups = query.chunks_exact(N);
        let width = |group: &[i16]| most * group.iter().map(|x| f64::from(*x).abs()).sum::<f64>();
        let widest = groups.clone().map(width).fold(1.0, f64::max);
        let steps = MAX_SUM.min(usize::from(u16::MAX) / groups.len().max(1));
        let step = 2.0 * widest / steps as f64;
        let sum =
            |group: &[i16], bits| (0..).zip(group).map(|(at, x)| f64::from(*x) * component(bits, at)).sum::<f64>();
        let sum = |group: &[i16], bits| ((sum(group, bits) + width(group)) / step).round() as u8;
        let sums = groups.clone().flat_map(|group| (0..VALUES).map(move |bits| sum(group, bits))).collect();
        let least = -groups.map(width).sum::<f64>();
        Self { sums, step, least }
    }

    /// The product of the vector and the components that a code stands for, from the code's sum.
    pub(in crate::index) fn product(&self, sum: u16) -> f64 {
        f64::from(sum) * self.step + self.least
    }

    /// What each step of a sum adds to that product, and the most that the product can be if the sum is 0: every entry
    /// was rounded to the nearest step.
    pub(in crate::index) fn most_product(&self) -> (f32, f32) {
        let rounded = (self.sums.len() / VALUES) as f64 * self.step / 2.0;
        (self.step as f32, (self.least + rounded) as f32)
    }

    /// The sums of [`scan_codes`], one row after the other. The fast versions must give the same result.
    fn scan_reference(&self, block: &[u8], sums: &mut [u16; BLOCK_ROWS]) {
        for (row, sum) in sums.iter_mut().enumerate() {
            let at = place_in_block(row);
            let columns = block.chunks_exact(BLOCK_ROWS).zip(self.sums.chunks_exact(2 * VALUES));
            *sum = columns.fold(0, |sum, (column, table)| {
                let (low, high) = (usize::from(column[at] & 15), usize::from(column[at] >> 4));
                sum + u16::from(table[low]) + u16::from(table[VALUES + high])
            });
        }
    }
}

/// Calls `each(table, sums)` for every table: the sums of the rows of a block, row by row. The tables and the block
/// have the same width. The processor is asked to fetch the block `next`.
pub(in crate::index) fn scan_codes(
    tables: &[CodeTable],
    block: &[u8],
    next: &[u8],
    each: &mut impl FnMut(usize, &[u16; BLOCK_ROWS]),
) {
    #[cfg(target_arch = "x86_64")]
    if block.len().is_multiple_of(BLOCK_ROWS)
        && next.len() == block.len()
        && tables.iter().all(|table| block.len() * 2 / BLOCK_ROWS * VALUES == table.sums.len())
    {
        if is_x86_feature_detected!("avx512bw") {
            for (at, table) in tables.iter().enumerate() {
                let mut sums = [0; BLOCK_ROWS];
                // SAFETY: the feature was detected; the block has whole columns of 64 bytes, and the table
                // has 32 bytes for each.
                unsafe { wide::codes_avx512(&table.sums, block, next, &mut sums) };
                each(at, &sums);
            }
            return;
        }
        if is_x86_feature_detected!("avx2") {
            let (fours, rest) = tables.as_chunks::<4>();
            for (at, four) in fours.iter().enumerate() {
                // SAFETY: as above.
                let sums = unsafe { wide::codes_avx2(four.each_ref().map(|table| &table.sums[..]), block) };
                (4 * at..).zip(&sums).for_each(|(at, sums)| each(at, sums));
            }
            for (at, table) in (4 * fours.len()..).zip(rest) {
                // SAFETY: as above.
                let [sums] = unsafe { wide::codes_avx2([&table.sums[..]], block) };
                each(at, &sums);
            }
            return;
        }
    }
    for (at, table) in tables.iter().enumerate() {
        let mut sums = [0; BLOCK_ROWS];
        table.scan_reference(block, &mut sums);
        each(at, &sums);
    }
}

/// How many values ahead of the current one a pass prefetches, if the values are scattered over the memory.
pub(in crate::index) const AHEAD: usize = 8;

/// Has the processor fetch these values, which will be read soon. It has no other effect.
pub(in crate::index) fn fetch_ahead<T>(values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE_BYTES: usize = 64;
        let first = values.as_ptr().cast::<i8>();
        for at in (0..size_of_val(values)).step_by(LINE_BYTES) {
            // SAFETY: the address lies within the values, and fetching has no observable effect.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.add(at)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = values;
}

/// Calls `each(product)` for every row: its product with the query.
///
/// `rows` holds vectors of the query's width one after the other. If its length or the width does not fit, nothing is
/// called.
pub(in crate::index) fn scan(query: &[i16], rows: &[i16], each: &mut impl FnMut(i32)) {
    let width = query.len();
    if width == 0 || !width.is_multiple_of(LANES) || !rows.len().is_multiple_of(width) {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512vnni") && is_x86_feature_detected!("avx512bw") {
            // SAFETY: the features were detected; the query has the width of a row, a multiple of LANES,
            // and `rows` holds whole rows.
            return unsafe { wide::rows_avx512(query, rows, each) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { wide::rows_avx2(query, rows, each) };
        }
    }
    rows.chunks_exact(width).for_each(|row| each(dot_reference(query, row)));
}

/// Calls `each(row, product, square)` for every row of bytes, with its product with the query and its product with
/// itself.
///
/// `rows` holds rows of the query's width one after the other. If its length or the width does not fit, nothing is
/// called.
pub(in crate::index) fn scan_bytes(query: &[i16], rows: &[i8], each: &mut impl FnMut(usize, i32, i32)) {
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

/// As [`scan_bytes`], one component after the other. The fast versions must give the same result.
fn scan_bytes_reference(query: &[i16], rows: &[i8], each: &mut impl FnMut(usize, i32, i32)) {
    for (r, row) in rows.chunks_exact(query.len()).enumerate() {
        let product = query.iter().zip(row).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum();
        each(r, product, row.iter().map(|y| i32::from(*y) * i32::from(*y)).sum());
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::*;

    /// # Safety
    /// The processor has the features; the query is as long as a row, a multiple of 32.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(in crate::index) unsafe fn rows_avx512(query: &[i16], rows: &[i16], each: &mut impl FnMut(i32)) {
        for row in rows.chunks_exact(query.len()) {
            let mut product = _mm512_setzero_si512();
            for k in (0..row.len()).step_by(32) {
                // SAFETY: k + 32 ≤ the length of the row and of the query.
                let (x, y) = unsafe {
                    (_mm512_loadu_si512(query.as_ptr().add(k).cast()), _mm512_loadu_si512(row.as_ptr().add(k).cast()))
                };
                product = _mm512_dpwssd_epi32(product, x, y);
            }
            each(_mm512_reduce_add_epi32(product));
        }
    }

    /// # Safety
    /// The processor has the features; the query is as long as a row, a multiple of 32.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub(in crate::index) unsafe fn signed_avx512(query: &[i16], rows: &[i8], each: &mut impl FnMut(usize, i32, i32)) {
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
    pub(in crate::index) unsafe fn signed_avx2(query: &[i16], rows: &[i8], each: &mut impl FnMut(usize, i32, i32)) {
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
    /// The processor has the feature; `table` has 32 bytes for each 64 bytes of `block`.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(in crate::index) unsafe fn codes_avx512(table: &[u8], block: &[u8], next: &[u8], sums: &mut [u16; 64]) {
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

    /// Reads each code once for all of the tables.
    ///
    /// # Safety
    /// The processor has the feature; each table has 32 bytes for each 64 bytes of `block`.
    #[target_feature(enable = "avx2")]
    pub(in crate::index) unsafe fn codes_avx2<const N: usize>(tables: [&[u8]; N], block: &[u8]) -> [[u16; 64]; N] {
        let four_bits = _mm256_set1_epi8(15);
        let mut sums = [[0; 64]; N];
        for half in 0..2 {
            let (mut even, mut odd) = ([_mm256_setzero_si256(); N], [_mm256_setzero_si256(); N]);
            for column in 0..block.len() / 64 {
                // SAFETY: a half of a column has 32 bytes.
                let codes = unsafe { _mm256_loadu_si256(block.as_ptr().add(64 * column + 32 * half).cast()) };
                let low = _mm256_and_si256(codes, four_bits);
                let high = _mm256_and_si256(_mm256_srli_epi16::<4>(codes), four_bits);
                for ((even, odd), table) in even.iter_mut().zip(&mut odd).zip(tables) {
                    // SAFETY: the table of a column has twice 16 bytes.
                    let (first, second) = unsafe {
                        let of_column = table.as_ptr().add(32 * column);
                        (_mm_loadu_si128(of_column.cast()), _mm_loadu_si128(of_column.add(16).cast()))
                    };
                    let low = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(first), low);
                    let high = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(second), high);
                    let both = _mm256_add_epi8(low, high);
                    *even = _mm256_add_epi16(*even, both);
                    *odd = _mm256_add_epi16(*odd, _mm256_srli_epi16::<8>(both));
                }
            }
            for ((sums, even), odd) in sums.iter_mut().zip(even).zip(odd) {
                let even = _mm256_sub_epi16(even, _mm256_slli_epi16::<8>(odd));
                // SAFETY: 16 sums of 16 bits are 32 bytes; the last begin at 48.
                unsafe {
                    _mm256_storeu_si256(sums.as_mut_ptr().add(16 * half).cast(), even);
                    _mm256_storeu_si256(sums.as_mut_ptr().add(32 + 16 * half).cast(), odd);
                }
            }
        }
        sums
    }

    /// # Safety
    /// The processor has the feature; the query is as long as a row, a multiple of 32.
    #[target_feature(enable = "avx2")]
    pub(in crate::index) unsafe fn rows_avx2(query: &[i16], rows: &[i16], each: &mut impl FnMut(i32)) {
        for row in rows.chunks_exact(query.len()) {
            let mut product = _mm256_setzero_si256();
            for k in (0..row.len()).step_by(16) {
                // SAFETY: k + 16 ≤ the length of the row and of the query.
                let (x, y) = unsafe {
                    (_mm256_loadu_si256(query.as_ptr().add(k).cast()), _mm256_loadu_si256(row.as_ptr().add(k).cast()))
                };
                product = _mm256_add_epi32(product, _mm256_madd_epi16(x, y));
            }
            let mut lanes = [0i32; 8];
            // SAFETY: eight 32-bit lanes fit the array.
            unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), product) };
            each(lanes.into_iter().fold(0, i32::wrapping_add));
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
            let (queries, rows) = vectors(64, 1, 9);
            let mut products = Vec::new();
            // SAFETY: the feature was detected, the widths are equal.
            unsafe { super::rows_avx2(&queries[0], &rows.concat(), &mut |product| products.push(product)) };
            let expected: Vec<i32> = rows.iter().map(|row| dot_reference(&queries[0], row)).collect();
            assert_eq!(products, expected);
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
        fn narrow_registers_equal_the_reference_for_codes() {
            if !is_x86_feature_detected!("avx2") {
                return;
            }
            for width in [32, 384, 3072] {
                for (table, block) in super::super::tests::coded(width) {
                    let mut expected = [0; 64];
                    table.scan_reference(&block, &mut expected);
                    // SAFETY: the feature was detected; the block is of the table's width.
                    let sums = unsafe { super::codes_avx2([&table.sums[..]], &block) };
                    assert_eq!(sums, [expected]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(in crate::index) fn vectors(width: usize, queries: usize, rows: usize) -> (Vec<FixedVector>, Vec<FixedVector>) {
        let make = |seed: usize| -> FixedVector {
            quantise(&(0..width).map(|i| (((i * 31 + seed * 977) % 201) as f32) - 100.0).collect::<Vec<_>>())
        };
        ((0..queries).map(make).collect(), (100..100 + rows).map(make).collect())
    }

    /// A question, and seven rows of bytes: one consists of the greatest value, one of the least.
    pub(in crate::index) fn bytes(width: usize) -> (FixedVector, Vec<i8>) {
        let made = (0..5 * width).map(|i| ((i * i / 3 + i * 29) % 255) as i8);
        let rows = made.chain(std::iter::repeat_n(127, width)).chain(std::iter::repeat_n(-128, width));
        (vectors(width, 1, 0).0.remove(0), rows.collect())
    }

    /// A question's tables, each with a block of codes.
    pub(in crate::index) fn coded(width: usize) -> [(CodeTable, Vec<u8>); 2] {
        let (queries, rows) = vectors(width, 1, BLOCK_ROWS);
        let block = |code: &dyn Fn(&[i16]) -> Vec<u8>| {
            let mut block = vec![0; code(&rows[0]).len() * BLOCK_ROWS];
            for (row, vector) in rows.iter().enumerate() {
                let places = block.iter_mut().skip(place_in_block(row)).step_by(BLOCK_ROWS);
                places.zip(code(vector)).for_each(|(place, byte)| *place = byte);
            }
            block
        };
        [
            (CodeTable::of_signs(&queries[0]), block(&|vector| signs(vector).collect())),
            (CodeTable::of_levels(&queries[0]), block(&|vector| levels(vector).collect())),
        ]
    }

    #[test]
    fn codes_equal_the_reference_and_nearly_the_product() {
        for width in [32, 64, 384, 1024, 3072] {
            let (queries, rows) = vectors(width, 6, BLOCK_ROWS);
            let of_signs = |row: &[i16]| row.iter().map(|y| if *y >= 0 { 1.0 } else { -1.0 }).collect::<Vec<f64>>();
            let of_levels = |row: &[i16]| super::of_levels(&levels(row).collect::<Vec<_>>()).collect::<Vec<f64>>();
            for ((table, block), with_levels) in coded(width).into_iter().zip([false, true]) {
                let table_of = if with_levels { CodeTable::of_levels } else { CodeTable::of_signs };
                let tables: Vec<CodeTable> = queries.iter().map(|query| table_of(query)).collect();
                let mut of_tables = Vec::new();
                scan_codes(&tables, &block, &block, &mut |at, sums| of_tables.push((at, *sums)));
                let expected = tables.iter().map(|table| {
                    let mut sums = [0; BLOCK_ROWS];
                    table.scan_reference(&block, &mut sums);
                    sums
                });
                assert_eq!(of_tables, expected.enumerate().collect::<Vec<_>>(), "{width}");
                let (_, sums) = of_tables[0];
                let (step, most) = table.most_product();
                for (row, sum) in rows.iter().zip(sums) {
                    let components = if with_levels { of_levels(row) } else { of_signs(row) };
                    let product: f64 = queries[0].iter().zip(&components).map(|(x, y)| f64::from(*x) * y).sum();
                    let bound = f64::from(f32::from(sum) * step + most);
                    assert!(product <= bound + 1.0, "{width}: {product} {bound}");
                    assert!(
                        (table.product(sum) - product).abs() <= bound - table.product(sum) + 1.0,
                        "{width}: {product}"
                    );
                }
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
        // The longest row and question: the sums are exact up to the bound.
        let longest = vec![-128; WIDEST_BYTES];
        let question = quantise(&vec![-1.0; WIDEST_BYTES]);
        let exact: i64 = question.iter().map(|x| -128 * i64::from(*x)).sum();
        scan_bytes(&question, &longest, &mut |_, product, square| {
            assert_eq!((i64::from(product), square), (exact, 128 * 128 * 65_536));
        });
        scan_bytes(&question, &longest[1..], &mut |_, _, _| panic!("a row of another width"));
    }

    #[test]
    fn every_width_equals_the_reference() {
        for width in [32, 64, 384, 1024] {
            let (queries, rows) = vectors(width, 9, 7);
            for query in queries {
                let mut products = Vec::new();
                scan(&query, &rows.concat(), &mut |product| products.push(product));
                let expected: Vec<i32> = rows.iter().map(|row| dot_reference(&query, row)).collect();
                assert_eq!(products, expected);
                scan(&query, &rows.concat()[1..], &mut |_| panic!("rows of another width"));
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
        assert!((f64::from(dot(&one, &one)) / f64::from(types::model::Score::ONE.0) - 1.0).abs() < 1e-3);
        assert_eq!(dot(&axis, &axis), types::model::Score::ONE.0);
        assert_eq!(quantise(&[0.0; 40]).len(), 64);
        assert_eq!(dot(&quantise(&[0.0; 384]), &one), 0);
    }
}
