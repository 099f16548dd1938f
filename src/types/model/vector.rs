//! Dense vectors, stored in one byte per component if every component is a whole number of steps (decision 22).
//!
//! In: components. Out: the same components, and one JSON form.

use std::{borrow::Cow, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, de};

/// A dense vector of 32-bit floats. In JSON a string: `i8/400:` and the base64 of a signed byte for each component,
/// which is that byte over 400; or, if a component is not such a fraction, only the base64 of its little-endian bytes.
/// Either reads back bit for bit.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector(VectorStorage);

/// A vector is stored in steps if each component is exactly a whole number of them.
#[derive(Debug, Clone, PartialEq)]
enum VectorStorage {
    Steps(Arc<[i8]>),
    Floats(Arc<[f32]>),
}

/// Prefix of a vector that is stored as bytes.
const BYTES: &str = "i8/";
/// The maximum number of steps in a component.
const MAX_STEPS: f32 = 127.0;
/// How many components are enough to recognise most vectors that are not in steps.
const FIRST_COMPONENTS: usize = 8;

impl Vector {
    /// The nearest vector whose components are each at most 127 steps of one size, 1/400 for
    /// 384 components: a quarter of the memory, and the same arithmetic everywhere.
    #[must_use]
    pub fn in_steps(&self) -> Self {
        self.in_steps_times(1.0)
    }

    /// As [`Self::in_steps`], of this vector times `factor`: below 1, greater components fit, and small ones are
    /// rounded more. A vector in steps stays as it is.
    #[must_use]
    pub fn in_steps_times(&self, factor: f64) -> Self {
        match &self.0 {
            VectorStorage::Floats(floats) => {
                let steps = f64::from(steps(floats.len())) * factor;
                let most = f64::from(MAX_STEPS);
                Self::of_steps(
                    floats.iter().map(|x| (f64::from(*x) * steps).round().clamp(-most, most) as i8).collect(),
                )
            }
            VectorStorage::Steps(_) => self.clone(),
        }
    }

    /// The vector whose components are these numbers of steps.
    #[must_use]
    pub fn of_steps(steps: Arc<[i8]>) -> Self {
        Self(VectorStorage::Steps(steps))
    }

    /// Its components as whole numbers of steps, if each is exactly that and there is at least one.
    #[must_use]
    pub fn as_steps(&self) -> Option<&[i8]> {
        match &self.0 {
            VectorStorage::Steps(steps) if !steps.is_empty() => Some(steps),
            _ => None,
        }
    }

    /// The components of the vector for which [`Self::as_steps`] returns these numbers of steps.
    pub fn components_of_steps(bytes: &[i8]) -> impl ExactSizeIterator<Item = f32> + Clone {
        let steps = f32::from(steps(bytes.len()));
        bytes.iter().map(move |step| f32::from(*step) / steps)
    }

    /// Its components.
    #[must_use]
    pub fn floats(&self) -> Cow<'_, [f32]> {
        match &self.0 {
            VectorStorage::Steps(steps) => Self::components_of_steps(steps).collect::<Vec<f32>>().into(),
            VectorStorage::Floats(floats) => Cow::Borrowed(floats),
        }
    }

    /// How many components it has.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.0 {
            VectorStorage::Steps(steps) => steps.len(),
            VectorStorage::Floats(floats) => floats.len(),
        }
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that its components take in memory.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match &self.0 {
            VectorStorage::Steps(steps) => size_of_val(&**steps),
            VectorStorage::Floats(floats) => size_of_val(&**floats),
        }
    }
}

impl From<&[f32]> for Vector {
    fn from(floats: &[f32]) -> Self {
        Self(exact_steps(floats).map_or_else(|| VectorStorage::Floats(floats.into()), VectorStorage::Steps))
    }
}

impl From<Vec<f32>> for Vector {
    fn from(floats: Vec<f32>) -> Self {
        Self::from(&*floats)
    }
}

impl<const N: usize> From<[f32; N]> for Vector {
    fn from(floats: [f32; N]) -> Self {
        Self::from(&floats[..])
    }
}

impl FromIterator<f32> for Vector {
    fn from_iter<I: IntoIterator<Item = f32>>(floats: I) -> Self {
        Self::from(floats.into_iter().collect::<Vec<f32>>())
    }
}

/// The components as whole numbers of steps, if each is exactly that.
fn exact_steps(floats: &[f32]) -> Option<Arc<[i8]>> {
    let steps = f32::from(steps(floats.len()));
    // Rounds to the nearest number. A fraction of a half may go either way, because it is not a whole number anyway. It
    // avoids a function call for each component, because every vector of a snapshot passes through here.
    let near = |x: f32| (x * steps + 0.5_f32.copysign(x)).clamp(-MAX_STEPS, MAX_STEPS) as i8;
    let same = |x: &f32| (f32::from(near(*x)) / steps).to_bits() == x.to_bits();
    let is_exact = floats.iter().take(FIRST_COMPONENTS).all(same) && floats.iter().all(same);
    is_exact.then(|| floats.iter().map(|x| near(*x)).collect())
}

/// The number of steps in a length of one, by the number of components: 400 for 384 components, so that 127 steps are
/// six times the usual size of a unit vector's component.
fn steps(components: usize) -> u16 {
    // This is never near the bounds of the type: a vector has at most a few thousand components.
    (20.412 * (components as f64).sqrt()).round().clamp(1.0, f64::from(u16::MAX)) as u16
}

impl Serialize for Vector {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.as_steps() {
            Some(bytes) => {
                let bytes: Vec<u8> = bytes.iter().map(|step| step.to_le_bytes()[0]).collect();
                s.serialize_str(&format!("{BYTES}{}:{}", steps(self.len()), BASE64.encode(bytes)))
            }
            None => {
                let bytes: Vec<u8> = self.floats().iter().flat_map(|x| x.to_le_bytes()).collect();
                s.serialize_str(&BASE64.encode(bytes))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Vector {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(d)?;
        if let Some((of_one, bytes)) = text.strip_prefix(BYTES).and_then(|rest| rest.split_once(':')) {
            let of_one = of_one.parse::<u16>().ok().filter(|steps| *steps > 0);
            let of_one =
                of_one.ok_or_else(|| de::Error::custom("vector: i8/ is not followed by a whole number of steps"))?;
            let bytes = BASE64.decode(bytes.as_bytes()).map_err(de::Error::custom)?;
            let bytes = bytes.iter().map(|byte| i8::from_le_bytes([*byte]));
            if of_one == steps(bytes.len()) && bytes.clone().all(|step| step != i8::MIN) {
                return Ok(Self::of_steps(bytes.collect()));
            }
            return Ok(bytes.map(|step| f32::from(step) / f32::from(of_one)).collect());
        }
        let bytes = BASE64.decode(text.as_bytes()).map_err(de::Error::custom)?;
        let (floats, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(de::Error::custom("vector: not a whole number of 32-bit floats"));
        }
        let floats: Vec<f32> = floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if floats.iter().any(|x| !x.is_finite()) {
            return Err(de::Error::custom("vector: holds a value that is not finite"));
        }
        Ok(Self::from(floats))
    }
}

impl JsonSchema for Vector {
    fn schema_name() -> Cow<'static, str> {
        "Vector".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(i8/[1-9][0-9]*:)?[A-Za-z0-9+/]*=*$",
            "description": "`i8/N:` and the base64 of signed bytes, each component a byte over N; \
                or the base64 of little-endian 32-bit floats." })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_vector_reads_back_bit_for_bit() {
        let vector = Vector::from([1.0, -0.25, f32::MIN_POSITIVE, 1e-20]);
        let json = serde_json::to_string(&vector).expect("a string");
        assert_eq!(serde_json::from_str::<Vector>(&json).expect("a vector"), vector);
        for bad in ["\"AAA=\"", "\"!!\"", "\"AACAfw==\"", "\"i8/0:AA==\"", "\"i8/x:AA==\"", "\"i8/400:!\"", "\"i8/4\""]
        {
            assert!(serde_json::from_str::<Vector>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_vector_in_steps_takes_a_byte_a_component() {
        let vector: Vector = (0..384).map(|i| (i as f32 - 190.0) / 600.0).collect();
        let stepped = vector.in_steps();
        assert_eq!(stepped.in_steps(), stepped);
        assert_eq!((vector.held_bytes(), stepped.held_bytes()), (4 * 384, 384));
        assert_eq!(Vector::from(&*stepped.floats()), stepped, "and is told from its components");
        let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 0.5 / 400.0 + 1e-6 || a.abs() >= 127.0 / 400.0;
        assert!(vector.floats().iter().zip(stepped.floats().iter()).all(near));
        assert_eq!((stepped.floats()[190], stepped.floats()[383]), (0.0, 127.0 / 400.0));
        let json = serde_json::to_string(&stepped).expect("a string");
        assert!(json.starts_with("\"i8/400:") && json.len() == 8 + 512 + 1, "{json}");
        assert_eq!(serde_json::from_str::<Vector>(&json).expect("a vector"), stepped);
        let other: Vector = stepped.floats().iter().map(|x| x + 1e-4).collect();
        assert!(!serde_json::to_string(&other).expect("a string").contains(':'));
        // A different number of steps, and a byte that no vector in steps has.
        for (json, component) in [("\"i8/400:AQ==\"", 1.0 / 400.0), ("\"i8/20:gA==\"", -128.0 / 20.0)] {
            assert_eq!(*serde_json::from_str::<Vector>(json).expect("a vector").floats(), [component]);
        }
    }

    #[test]
    fn a_great_component_fits_where_all_are_made_smaller() {
        let vector: Vector = [0.8].into_iter().chain((0..383).map(|i| ((i % 7) as f32 - 3.0) / 65.0)).collect();
        let great = |factor: f64| vector.in_steps_times(factor).as_steps().expect("steps")[0];
        assert_eq!((great(1.0), great(0.25)), (127, 80));
        assert_eq!(vector.in_steps_times(1.0), vector.in_steps());
        let stepped = vector.in_steps();
        assert_eq!(stepped.in_steps_times(0.25), stepped);
    }

    proptest! {
        #[test]
        fn every_vector_reads_back_bit_for_bit(bits in proptest::collection::vec(any::<u32>(), 0..9), stepped: bool) {
            let floats = bits.iter().map(|b| if stepped { *b as f32 / 2e10 } else { f32::from_bits(*b) });
            let vector: Vector = floats.map(|x| if x.is_finite() { x } else { -0.0 }).collect();
            let vector = if stepped { vector.in_steps() } else { vector };
            let json = serde_json::to_string(&vector).expect("a string");
            let read: Vector = serde_json::from_str(&json).expect("a vector");
            let bits = |v: &Vector| v.floats().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&read), bits(&vector));
            prop_assert_eq!(read.as_steps(), vector.as_steps());
        }
    }
}
