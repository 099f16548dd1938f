//! Codes of many vectors in blocks that the kernel scans, and the cosines that follow from the signs of vectors.
//!
//! In: codes by row, and the lengths of the vectors whose signs they are. Out: for a question's vector, the sum of each
//! row of a block, and the cosine that it stands for. A code depends on its vector alone. The scale is the mean of all
//! vectors' sums of components, kept as an exact integer. So the result of a scan is a function of the set of vectors.

use super::kernel::{BLOCK_ROWS, CodeTable, place_in_block, scan_codes};
use crate::index::memory_footprint::vec_bytes;

/// Codes by row. A row that was cleared stays until it is set again.
#[derive(Debug, Default)]
pub(in crate::index) struct VectorCodes {
    blocks: Vec<Box<[u8]>>,
}

/// How long the vectors are that some codes were made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::index) struct CodeScale {
    /// Sum of the absolute values of the components of all vectors.
    sum: u64,
    /// How many vectors there are.
    vectors: u64,
}

/// What the sums of some codes mean.
#[derive(Debug, Clone, Copy)]
pub(in crate::index) struct CodeCosines {
    /// The cosine that a sum of 0 stands for.
    least: f32,
    /// What each step of the sum adds.
    step: f32,
}

impl VectorCodes {
    /// Sets a row. All codes have the same width.
    pub(in crate::index) fn set(&mut self, row: usize, code: &[u8]) {
        let bytes = code.len() * BLOCK_ROWS;
        while self.blocks.len() <= row / BLOCK_ROWS {
            self.blocks.push(vec![0; bytes].into());
        }
        let places = self.blocks[row / BLOCK_ROWS].iter_mut().skip(place_in_block(row)).step_by(BLOCK_ROWS);
        places.zip(code).for_each(|(place, byte)| *place = *byte);
    }

    /// Clears a row.
    pub(in crate::index) fn clear(&mut self, row: usize) {
        let places = self.blocks[row / BLOCK_ROWS].iter_mut().skip(place_in_block(row)).step_by(BLOCK_ROWS);
        places.for_each(|place| *place = 0);
    }

    /// Bytes in memory.
    pub(in crate::index) fn bytes(&self) -> usize {
        vec_bytes(&self.blocks) + self.blocks.iter().map(|block| block.len()).sum::<usize>()
    }

    /// How many blocks there are.
    pub(in crate::index) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The sums of the rows of a block.
    pub(in crate::index) fn sums(&self, table: &CodeTable, block: usize) -> [u16; BLOCK_ROWS] {
        let mut of_table = [0; BLOCK_ROWS];
        self.scan(std::slice::from_ref(table), block, &mut |_, sums| of_table = *sums);
        of_table
    }

    /// Calls `each(table, sums)` for every table: the sums of the rows of a block.
    pub(in crate::index) fn scan(
        &self,
        tables: &[CodeTable],
        block: usize,
        each: &mut impl FnMut(usize, &[u16; BLOCK_ROWS]),
    ) {
        if let Some(of_block) = self.blocks.get(block) {
            scan_codes(tables, of_block, self.blocks.get(block + 1).map_or(of_block, |next| next), each);
        }
    }

    /// The code of a row.
    pub(in crate::index) fn code(&self, row: usize) -> Vec<u8> {
        self.blocks[row / BLOCK_ROWS].iter().skip(place_in_block(row)).step_by(BLOCK_ROWS).copied().collect()
    }
}

impl CodeScale {
    /// One more vector.
    pub(in crate::index) fn add(&mut self, vector: &[i16]) {
        self.sum += length(vector);
        self.vectors += 1;
    }

    /// One vector less.
    pub(in crate::index) fn remove(&mut self, vector: &[i16]) {
        self.sum -= length(vector);
        self.vectors -= 1;
    }

    /// What sums mean: `product` holds the products with the signs for the sums 0 and 1. The product with the signs,
    /// divided by the sum of the components' absolute values, is an unbiased estimate of the cosine.
    pub(in crate::index) fn cosines(self, product: [f64; 2]) -> CodeCosines {
        let scale = self.vectors.max(1) as f64 / self.sum.max(1) as f64;
        let [least, next] = product.map(|product| product * scale);
        CodeCosines { least: least as f32, step: (next - least) as f32 }
    }
}

impl CodeCosines {
    /// The cosine that a sum stands for.
    pub(in crate::index) fn of(self, sum: u16) -> f32 {
        self.least + self.step * f32::from(sum)
    }
}

fn length(vector: &[i16]) -> u64 {
    vector.iter().map(|x| u64::from(x.unsigned_abs())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{quantise, vectors::kernel::signs};

    #[test]
    fn a_code_estimates_the_cosine_without_a_bias() {
        let mut dice = 7u64;
        // Sums of draws, so that components are distributed like those of a model.
        let mut draw = || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((dice ^ (dice >> 29)) >> 40) as f32 - 8_388_608.0
        };
        let mut vector = || (0..384).map(|_| (0..6).map(|_| draw()).sum()).collect::<Vec<f32>>();
        let query = vector();
        let mut codes = VectorCodes::default();
        let rows: Vec<_> = (0..200)
            .map(|row| {
                let near = row as f32 / 200.0;
                let mixed: Vec<f32> = vector().iter().zip(&query).map(|(x, q)| x * (1.0 - near) + q * near).collect();
                quantise(&mixed)
            })
            .collect();
        let mut scale = CodeScale::default();
        for (row, vector) in rows.iter().enumerate() {
            codes.set(row, &signs(vector).collect::<Vec<_>>());
            scale.add(vector);
        }
        let fixed = quantise(&query);
        let table = CodeTable::of_signs(&fixed);
        let cosines = scale.cosines([0, 1].map(|sum| table.product(sum)));
        let mut errors = Vec::new();
        for block in 0..codes.blocks() {
            for (row, sum) in rows.iter().skip(block * BLOCK_ROWS).zip(codes.sums(&table, block)) {
                let cosine = types::model::Score(crate::index::dot_reference(&fixed, row)).as_f64();
                errors.push(f64::from(cosines.of(sum)) - cosine);
            }
        }
        assert!(
            errors.iter().all(|error| error.abs() < 0.15),
            "{:?}",
            errors.iter().copied().map(f64::abs).reduce(f64::max)
        );
        let bias = errors.iter().sum::<f64>() / errors.len() as f64;
        assert!(bias.abs() < 0.02, "{bias}");
    }
}
