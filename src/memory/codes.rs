//! Codes of the signs of many vectors, in blocks that the kernel scans.
//!
//! In: vectors by row. Out: for a question's vector, the sum of each row of a block, and what a sum
//! means as a cosine. A code depends on its vector alone. The scale is the mean of all vectors' sums of
//! components, kept as an exact integer. So what a scan gives is a function of the set of vectors.

use super::{
    footprint::vec_bytes,
    kernel::{BLOCK_ROWS, SignTable, place_in_block, signs},
};

/// Codes by row. A row that was cleared stays until it is set again.
#[derive(Debug, Default)]
pub(super) struct Codes {
    blocks: Vec<Box<[u8]>>,
    /// Sum of the absolute values of the components of all rows that are set.
    sum: u64,
    /// How many rows are set.
    rows: u64,
}

/// A question's vector, ready for a scan of codes.
#[derive(Debug)]
pub(super) struct CodeQuery {
    table: SignTable,
    /// The cosine that a sum of 0 stands for.
    least: f32,
    /// What each step of the sum adds.
    step: f32,
}

impl Codes {
    /// Sets a row that is not set.
    pub(super) fn set(&mut self, row: usize, vector: &[i16]) {
        let bytes = vector.len() / 8 * BLOCK_ROWS;
        while self.blocks.len() <= row / BLOCK_ROWS {
            self.blocks.push(vec![0; bytes].into());
        }
        let places = self.blocks[row / BLOCK_ROWS].iter_mut().skip(place_in_block(row)).step_by(BLOCK_ROWS);
        places.zip(signs(vector)).for_each(|(place, byte)| *place = byte);
        self.sum += length(vector);
        self.rows += 1;
    }

    /// Clears a row that was set with this vector.
    pub(super) fn clear(&mut self, row: usize, vector: &[i16]) {
        let places = self.blocks[row / BLOCK_ROWS].iter_mut().skip(place_in_block(row)).step_by(BLOCK_ROWS);
        places.for_each(|place| *place = 0);
        self.sum -= length(vector);
        self.rows -= 1;
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        vec_bytes(&self.blocks) + self.blocks.iter().map(|block| block.len()).sum::<usize>()
    }

    /// How many blocks there are.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The sums of the rows of a block.
    pub(super) fn scan(&self, query: &CodeQuery, block: usize, sums: &mut [u16; BLOCK_ROWS]) {
        match self.blocks.get(block) {
            Some(of_block) => {
                query.table.scan(of_block, self.blocks.get(block + 1).map_or(of_block, |next| next), sums)
            }
            None => sums.fill(0),
        }
    }

    /// Prepares a question's vector. The sum of the signs' products over the sum of the components'
    /// sizes is an estimate of the cosine that has no bias.
    pub(super) fn query(&self, vector: &[i16]) -> CodeQuery {
        let table = SignTable::of(vector);
        let scale = self.rows.max(1) as f64 / self.sum.max(1) as f64;
        let least = (table.product(0) * scale) as f32;
        let step = ((table.product(1) - table.product(0)) * scale) as f32;
        CodeQuery { table, least, step }
    }

    /// The code of a row.
    #[cfg(test)]
    pub(super) fn code(&self, row: usize) -> Vec<u8> {
        self.blocks[row / BLOCK_ROWS].iter().skip(place_in_block(row)).step_by(BLOCK_ROWS).copied().collect()
    }

    /// What the scale is made of.
    #[cfg(test)]
    pub(super) fn scale(&self) -> (u64, u64) {
        (self.sum, self.rows)
    }
}

impl CodeQuery {
    /// The cosine that a sum stands for.
    pub(super) fn cosine(&self, sum: u16) -> f32 {
        self.least + self.step * f32::from(sum)
    }
}

fn length(vector: &[i16]) -> u64 {
    vector.iter().map(|x| u64::from(x.unsigned_abs())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::quantise;

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
        let mut codes = Codes::default();
        let rows: Vec<_> = (0..200)
            .map(|row| {
                let near = row as f32 / 200.0;
                let mixed: Vec<f32> = vector().iter().zip(&query).map(|(x, q)| x * (1.0 - near) + q * near).collect();
                quantise(&mixed)
            })
            .collect();
        rows.iter().enumerate().for_each(|(row, vector)| codes.set(row, vector));
        let fixed = quantise(&query);
        let asked = codes.query(&fixed);
        let mut errors = Vec::new();
        for block in 0..codes.blocks() {
            let mut sums = [0; BLOCK_ROWS];
            codes.scan(&asked, block, &mut sums);
            for (row, sum) in rows.iter().skip(block * BLOCK_ROWS).zip(sums) {
                let cosine = crate::model::Score(crate::memory::dot_reference(&fixed, row)).as_f64();
                errors.push(f64::from(asked.cosine(sum)) - cosine);
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
