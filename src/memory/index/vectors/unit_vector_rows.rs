//! The vectors of a unit and of its parts: in bytes if they are stored in bytes, otherwise in 16 bits.
//!
//! In: vectors of one width. Out: their cosines with a question's vector, the same on every processor, and their 16-bit
//! forms. A cosine with a row of bytes is the exact product divided by the exact length of the row, so no precision of
//! the row is lost.

use std::{borrow::Cow, ops::Range};

use serde::{Deserialize, Serialize};

use super::kernel::{self, LANES, MAX, WIDEST_BYTES, quantise, quantised};
use types::model::{Score, Vector};

/// The vector of a unit, and those of its parts one after the other, all of one width. They are in two pieces of
/// memory: the allocator has size classes for one and for eight vectors, but none for nine, and nine is what most units
/// of chat have. In both forms `components` counts the components of a vector without the padding to whole lanes. It is
/// in the variants because it takes no extra space beside the tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::index) enum UnitVectorRows {
    /// In steps, from which [`Vector::components_of_steps`] makes the vector.
    Bytes { components: u32, own: Box<[i8]>, of_parts: Box<[i8]> },
    /// As [`quantise`] makes them.
    Fixed { components: u32, own: Box<[i16]>, of_parts: Box<[i16]> },
}

/// Some of the vectors of a unit, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct VectorRows<'u> {
    components: usize,
    stored: StoredSlice<'u>,
}

#[derive(Debug, Clone, Copy)]
enum StoredSlice<'u> {
    Bytes(&'u [i8]),
    Fixed(&'u [i16]),
}

impl UnitVectorRows {
    /// Rows for a unit's vector and for those of its parts, each with `components` components.
    pub(in crate::index) fn of<'v>(
        components: usize,
        own: &'v Vector,
        of_parts: impl Iterator<Item = &'v Vector> + Clone,
    ) -> Self {
        let width = components.next_multiple_of(LANES);
        let in_steps = rows_in_bytes(width, std::iter::once(own)).zip(rows_in_bytes(width, of_parts.clone()));
        // A vector has at most a few thousand components.
        let components = components as u32;
        match in_steps {
            Some((own, of_parts)) => Self::Bytes { components, own, of_parts },
            None => {
                let fixed = |vector: &Vector| quantise(&vector.floats());
                let of_parts = of_parts.flat_map(|vector| fixed(vector).to_vec()).collect();
                Self::Fixed { components, own: fixed(own).as_ref().into(), of_parts }
            }
        }
    }

    /// The unit's vector, and those of its parts.
    pub(in crate::index) fn all(&self) -> [VectorRows<'_>; 2] {
        let (components, stored) = match self {
            Self::Bytes { components, own, of_parts } => {
                (components, [StoredSlice::Bytes(own), StoredSlice::Bytes(of_parts)])
            }
            Self::Fixed { components, own, of_parts } => {
                (components, [StoredSlice::Fixed(own), StoredSlice::Fixed(of_parts)])
            }
        };
        stored.map(|stored| VectorRows { components: *components as usize, stored })
    }

    /// The unit's vector.
    pub(in crate::index) fn own(&self) -> VectorRows<'_> {
        let [own, _] = self.all();
        own
    }

    /// The vectors of its parts.
    pub(in crate::index) fn of_parts(&self) -> VectorRows<'_> {
        let [_, of_parts] = self.all();
        of_parts
    }
}

impl<'u> VectorRows<'u> {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        let components = match self.stored {
            StoredSlice::Bytes(rows) => rows.len(),
            StoredSlice::Fixed(rows) => rows.len(),
        };
        components / self.width().max(1)
    }

    /// Their bytes in memory.
    pub(in crate::index) fn bytes(&self) -> usize {
        match self.stored {
            StoredSlice::Bytes(rows) => size_of_val(rows),
            StoredSlice::Fixed(rows) => size_of_val(rows),
        }
    }

    /// Has the processor fetch them ([`kernel::fetch_ahead`]).
    pub(in crate::index) fn fetch_ahead(&self) {
        match self.stored {
            StoredSlice::Bytes(rows) => kernel::fetch_ahead(rows),
            StoredSlice::Fixed(rows) => kernel::fetch_ahead(rows),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The best cosine with a question's vector; none if there is no row, or if the rows have another width.
    #[must_use]
    pub fn best_cosine(&self, question: &[i16]) -> Option<Score> {
        let mut best = None;
        if question.len() != self.width() {
            return None;
        }
        match self.stored {
            StoredSlice::Bytes(rows) => kernel::scan_bytes(question, rows, &mut |_, product, square| {
                best = best.max(Some(cosine(product, square)));
            }),
            StoredSlice::Fixed(rows) => kernel::scan(question, rows, &mut |product| {
                best = best.max(Some(Score(product)));
            }),
        }
        best
    }

    /// The vectors in bytes, if they are held in bytes.
    #[must_use]
    pub fn in_bytes(&self) -> Option<impl Iterator<Item = &'u [i8]> + use<'u>> {
        match self.stored {
            StoredSlice::Bytes(rows) => Some(rows.chunks_exact(self.width().max(1))),
            StoredSlice::Fixed(_) => None,
        }
    }

    /// The vectors as [`quantise`] makes them.
    pub fn in_16_bits(&self) -> impl DoubleEndedIterator<Item = Cow<'u, [i16]>> + use<'u> {
        let Self { components, stored } = *self;
        let width = self.width();
        (0..self.len()).map(move |row| match stored {
            StoredSlice::Bytes(rows) => {
                let row = &rows[row * width..][..components];
                Cow::Owned(quantised(Vector::components_of_steps(row)).collect())
            }
            StoredSlice::Fixed(rows) => Cow::Borrowed(&rows[row * width..][..width]),
        })
    }

    /// Whether the product of one of the vectors in 16 bits with a vector of their width may be at least `least`. This
    /// takes much less time than making their 16-bit forms.
    pub(in crate::index) fn may_reach(&self, query: &[i16], least: i32) -> bool {
        match self.stored {
            StoredSlice::Bytes(_) => {
                // Rounding toward zero changes each 16-bit component by less than one. So it changes the product by
                // less than the sum of the query's absolute components, which is at most the query's length times the
                // square root of their number. The 129 allows for the rounding of components to 24 bits.
                let cut = (MAX * (query.len() as f64).sqrt()) as i32 + 129;
                self.best_cosine(query).is_some_and(|best| best.0.saturating_add(cut) >= least)
            }
            StoredSlice::Fixed(_) => true,
        }
    }

    /// A range of them; none if the range goes beyond the end.
    pub(in crate::index) fn range(self, rows: Range<u32>) -> Self {
        let width = self.width();
        let components = rows.start as usize * width..rows.end as usize * width;
        let stored = match self.stored {
            StoredSlice::Bytes(rows) => StoredSlice::Bytes(rows.get(components).unwrap_or_default()),
            StoredSlice::Fixed(rows) => StoredSlice::Fixed(rows.get(components).unwrap_or_default()),
        };
        Self { stored, ..self }
    }

    /// The number of components of a vector, including the padding to whole lanes.
    pub(in crate::index) fn width(&self) -> usize {
        self.components.next_multiple_of(LANES)
    }
}

/// The rows in bytes, if all vectors are stored in bytes.
fn rows_in_bytes<'v>(width: usize, vectors: impl Iterator<Item = &'v Vector> + Clone) -> Option<Box<[i8]>> {
    let mut rows = Vec::with_capacity(vectors.clone().count() * width);
    for vector in vectors {
        rows.extend(vector.as_steps().filter(|_| width <= WIDEST_BYTES)?);
        rows.resize(rows.len().next_multiple_of(width), 0);
    }
    Some(rows.into_boxed_slice())
}

/// The cosine from a quantised vector's product with a row and the row's product with itself; rounded toward zero. The
/// sums are exact, and one root and one division follow, so it is the same on every processor.
fn cosine(product: i32, square: i32) -> Score {
    if square == 0 {
        return Score::ZERO;
    }
    Score((f64::from(product) * 32_767.0 / f64::from(square).sqrt()) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(components: usize, seed: usize) -> Vector {
        let raw: Vec<f32> = (0..components).map(|i| ((i * i * 7 + i * seed) % 97) as f32 - 48.0).collect();
        let length = raw.iter().map(|x| x * x).sum::<f32>().sqrt();
        raw.iter().map(|x| x / length).collect()
    }

    #[test]
    fn steps_are_held_in_bytes_and_read_back_as_the_same_16_bits() {
        for components in [8, 32, 40, 384] {
            let vectors: Vec<Vector> = (1..6).map(|seed| vector(components, seed).in_steps()).collect();
            let rows = UnitVectorRows::of(components, &vectors[0], vectors[1..].iter());
            assert_eq!([rows.own(), rows.of_parts()].map(|rows| rows.in_bytes().expect("bytes").count()), [1, 4]);
            let fixed: Vec<Vec<i16>> = vectors.iter().map(|v| quantise(&v.floats()).to_vec()).collect();
            let read = |rows: VectorRows<'_>| rows.in_16_bits().map(Cow::into_owned).collect::<Vec<_>>();
            assert_eq!(read(rows.own()), fixed[..1]);
            assert_eq!(read(rows.of_parts()), fixed[1..]);
            assert_eq!(read(rows.of_parts().range(1..3)), fixed[2..4]);
            assert!(rows.of_parts().range(3..5).is_empty());
        }
    }

    #[test]
    fn a_vector_of_full_precision_keeps_all_rows_in_16_bits() {
        let [in_steps, precise] = [vector(384, 1).in_steps(), vector(384, 2)];
        let question = quantise(&vector(384, 9).floats());
        for (own, of_part) in [(&in_steps, &precise), (&precise, &in_steps)] {
            let rows = UnitVectorRows::of(384, own, std::iter::once(of_part));
            for (rows, vector) in [(rows.own(), own), (rows.of_parts(), of_part)] {
                assert!(rows.in_bytes().is_none());
                let expected = kernel::dot_reference(&question, &quantise(&vector.floats()));
                assert_eq!(rows.best_cosine(&question), Some(Score(expected)));
            }
        }
    }

    #[test]
    fn the_cosine_of_bytes_is_that_of_the_stored_vector() {
        let question = vector(384, 3);
        for seed in 1..40 {
            let stored = vector(384, seed).in_steps();
            let rows = UnitVectorRows::of(384, &stored, std::iter::empty());
            let fixed = quantise(&question.floats());
            let got = rows.own().best_cosine(&fixed).expect("a row").as_f64();
            let product: f64 =
                fixed.iter().zip(stored.floats().iter()).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
            let length = stored.floats().iter().map(|y| f64::from(*y) * f64::from(*y)).sum::<f64>().sqrt();
            assert!((got - product / length / 32_767.0).abs() < 1e-8, "{seed}: {got}");
            let cut = f64::from(kernel::dot_reference(&fixed, &quantise(&stored.floats()))) / f64::from(Score::ONE.0);
            assert!((got - cut).abs() < 1e-3, "{seed}: {got} {cut}");
        }
    }

    #[test]
    fn bytes_tell_which_products_in_16_bits_are_too_small_and_leave_out_no_other() {
        let queries: Vec<_> = (1..40).map(|seed| quantise(&vector(384, seed).in_steps().floats())).collect();
        let mut left_out = 0;
        for seed in 1..40 {
            let stored = vector(384, seed).in_steps();
            let rows = UnitVectorRows::of(384, &stored, std::iter::empty());
            for query in &queries {
                let product = kernel::dot_reference(query, &quantise(&stored.floats()));
                assert!([i32::MIN, product - 1, product].iter().all(|least| rows.own().may_reach(query, *least)));
                left_out += usize::from(!rows.own().may_reach(query, product.saturating_add(2_000_000)));
            }
        }
        assert!(left_out > 1_000, "{left_out}");
    }

    #[test]
    fn rows_of_another_width_have_no_cosine_and_zeros_have_the_cosine_zero() {
        let rows = UnitVectorRows::of(384, &vector(384, 1).in_steps(), std::iter::empty());
        assert_eq!(rows.own().best_cosine(&quantise(&vector(32, 1).floats())), None);
        assert_eq!(rows.own().best_cosine(&[]), None);
        assert_eq!(rows.of_parts().best_cosine(&[100; 384]), None);
        let nothing = Vector::from([0.0; 384]);
        assert_eq!(
            UnitVectorRows::of(384, &nothing, std::iter::empty()).own().best_cosine(&[100; 384]),
            Some(Score::ZERO)
        );
    }
}
