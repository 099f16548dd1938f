//! Vectors of length one.
//!
//! In: sums of vectors. Out: their direction. Sums are kept in 64 bits; the components of a vector have 32.

use types::model::Vector;

/// The direction of a sum of weighted vectors, as if their tokens had been pooled together.
///
/// Vectors that all weigh 0 count equally. `None` if there are no vectors.
#[must_use]
pub fn pool(parts: &[(&Vector, f32)]) -> Option<Vector> {
    let (first, _) = parts.first()?;
    let equal = parts.iter().all(|(_, weight)| *weight <= 0.0);
    let mut sum = vec![0f64; first.len()];
    for (vector, weight) in parts {
        let weight = if equal { 1.0 } else { f64::from(*weight) };
        for (total, x) in sum.iter_mut().zip(vector.floats().iter()) {
            *total += weight * f64::from(*x);
        }
    }
    Some(unit_vector(&sum))
}

/// The sum scaled to length one. A zero sum stays zero.
pub(super) fn unit_vector(sum: &[f64]) -> Vector {
    let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
    let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
    sum.iter().map(|x| (x * scale) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooling_gives_the_direction_of_the_weighted_sum() {
        let (a, b) = (Vector::from([1.0, 0.0]), Vector::from([0.0, 1.0]));
        assert_eq!(pool(&[(&a, 3.0), (&b, 4.0)]), Some(Vector::from([0.6, 0.8])));
        assert_eq!(pool(&[(&a, 0.0), (&b, 2.0)]), Some(b.clone()));
        assert_eq!(pool(&[(&a, 0.0)]), Some(a.clone()));
        assert_eq!(pool(&[]), None);
    }
}
