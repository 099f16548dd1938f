//! Metadata in the form that conditions read: small, and compared without being parsed.
//!
//! In: [`Metadata`]. Out: bytes in which a value is found by its path, and compared with values of a condition. Long
//! texts are cut: a condition compares with texts of at most [`MAX_COMPARED_BYTES`], so what comes after that many bytes
//! and one more changes no comparison. This is what stays in memory; the metadata themselves are in the log.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::Metadata;

/// Longest text that a condition compares with, in bytes of UTF-8.
pub const MAX_COMPARED_BYTES: usize = 1_024;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const SIGNED: u8 = 3;
const UNSIGNED: u8 = 4;
const DOUBLE: u8 = 5;
const TEXT: u8 = 6;
const ARRAY: u8 = 7;
const OBJECT: u8 = 8;

/// The metadata of a turn as conditions read them. Ordered by bytes, which means nothing but is the same everywhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PackedMetadata(Box<[u8]>);

impl PackedMetadata {
    /// The packed form.
    #[must_use]
    pub fn of(metadata: &Metadata) -> Self {
        let mut bytes = Vec::new();
        pack_fields(metadata.fields(), &mut bytes);
        Self(bytes.into_boxed_slice())
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The packed form itself.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The value at a path of field names; `None` if there is no such field.
    #[must_use]
    pub fn at(&self, path: &[String]) -> Option<PackedValue<'_>> {
        path.iter().try_fold(PackedValue(&self.0), |value, name| {
            value.fields().find_map(|(field, value)| (field == name.as_bytes()).then_some(value))
        })
    }
}

fn pack_fields(fields: &serde_json::Map<String, Value>, out: &mut Vec<u8>) {
    out.push(OBJECT);
    for (name, value) in fields {
        put_length(name.len(), out);
        out.extend(name.as_bytes());
        put(value, out);
    }
}

/// Appends a value behind its length.
fn put(value: &Value, out: &mut Vec<u8>) {
    let mut inner = Vec::new();
    match value {
        Value::Null => inner.push(NULL),
        Value::Bool(false) => inner.push(FALSE),
        Value::Bool(true) => inner.push(TRUE),
        Value::Number(number) => {
            // A number takes no more bytes than it needs, so that an array of them is not larger than its JSON.
            match (number.as_i64(), number.as_u64()) {
                (Some(signed), _) => {
                    inner.push(SIGNED);
                    inner.extend(&signed.to_le_bytes()[..significant_bytes(signed)]);
                }
                (None, Some(unsigned)) => {
                    inner.push(UNSIGNED);
                    inner.extend(unsigned.to_le_bytes());
                }
                (None, None) => {
                    let double = number.as_f64().unwrap_or_default();
                    inner.push(DOUBLE);
                    match double as f32 {
                        single if f64::from(single) == double => inner.extend(single.to_le_bytes()),
                        _ => inner.extend(double.to_le_bytes()),
                    }
                }
            }
        }
        Value::String(text) => {
            inner.push(TEXT);
            inner.extend(&text.as_bytes()[..text.len().min(MAX_COMPARED_BYTES + 1)]);
        }
        Value::Array(items) => {
            inner.push(ARRAY);
            items.iter().for_each(|item| put(item, &mut inner));
        }
        Value::Object(fields) => pack_fields(fields, &mut inner),
    }
    put_length(inner.len(), out);
    out.extend(inner);
}

/// How many of its lowest bytes say what an integer is, its sign included.
fn significant_bytes(signed: i64) -> usize {
    let same_as_sign = (signed ^ (signed >> 63)).leading_zeros() as usize;
    size_of::<i64>() - (same_as_sign - 1) / 8
}

/// Appends a number, seven bits a byte.
fn put_length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Takes what stands behind a length.
fn take<'p>(rest: &mut &'p [u8]) -> Option<&'p [u8]> {
    let mut length = 0usize;
    for (at, byte) in rest.iter().enumerate().take(5) {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let (taken, after) = rest.get(at + 1..)?.split_at_checked(length)?;
            *rest = after;
            return Some(taken);
        }
    }
    None
}

/// A value of packed metadata.
#[derive(Debug, Clone, Copy)]
pub struct PackedValue<'p>(&'p [u8]);

impl<'p> PackedValue<'p> {
    /// Its fields, if it is an object.
    fn fields(self) -> impl Iterator<Item = (&'p [u8], PackedValue<'p>)> {
        let mut rest = self.behind(OBJECT);
        std::iter::from_fn(move || Some((take(&mut rest)?, PackedValue(take(&mut rest)?))))
    }

    /// Its items, if it is an array.
    pub fn items(self) -> impl Iterator<Item = PackedValue<'p>> {
        let mut rest = self.behind(ARRAY);
        std::iter::from_fn(move || Some(PackedValue(take(&mut rest)?)))
    }

    /// What stands behind its tag; nothing if it has another one.
    fn behind(self, tag: u8) -> &'p [u8] {
        self.0.strip_prefix(&[tag]).unwrap_or_default()
    }

    fn is(self, tag: u8) -> bool {
        self.0.first() == Some(&tag)
    }

    /// Whether it equals a value. Numbers are equal by what they are: 1 is 1.0.
    #[must_use]
    pub fn equals(self, other: &Value) -> bool {
        match other {
            Value::Null => self.is(NULL),
            Value::Bool(other) => self.is(if *other { TRUE } else { FALSE }),
            Value::Number(_) | Value::String(_) => self.compare(other) == Some(Ordering::Equal),
            Value::Array(items) => {
                let mut own = self.items();
                self.is(ARRAY)
                    && items.iter().all(|item| own.next().is_some_and(|own| own.equals(item)))
                    && own.next().is_none()
            }
            // Both are in the order of names.
            Value::Object(fields) => {
                let mut own = self.fields();
                let same = |(name, value): (&String, &Value)| {
                    own.next().is_some_and(|(own_name, own)| own_name == name.as_bytes() && own.equals(value))
                };
                self.is(OBJECT) && fields.iter().all(same) && own.next().is_none()
            }
        }
    }

    /// The order of two numbers or two texts; `None` for anything else. Texts are compared by code point.
    #[must_use]
    pub fn compare(self, other: &Value) -> Option<Ordering> {
        match other {
            Value::String(other) if self.is(TEXT) => Some(self.behind(TEXT).cmp(other.as_bytes())),
            Value::Number(other) => Some(self.number()?.compare(ExactNumber::of(other)?)),
            _ => None,
        }
    }

    fn number(self) -> Option<ExactNumber> {
        let (tag, bytes) = self.0.split_first()?;
        match *tag {
            SIGNED => {
                let sign = if bytes.last()? & 0x80 == 0 { 0 } else { 0xff };
                let mut whole = [sign; size_of::<i64>()];
                whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
                Some(ExactNumber::Integer(i64::from_le_bytes(whole).into()))
            }
            UNSIGNED => Some(ExactNumber::Integer(u64::from_le_bytes(bytes.try_into().ok()?).into())),
            DOUBLE => Some(ExactNumber::Double(match <[u8; 4]>::try_from(bytes) {
                Ok(single) => f32::from_le_bytes(single).into(),
                Err(_) => f64::from_le_bytes(bytes.try_into().ok()?),
            })),
            _ => None,
        }
    }
}

/// A number that is compared as what it is, not as its nearest double.
#[derive(Debug, Clone, Copy)]
enum ExactNumber {
    Integer(i128),
    /// Finite: JSON knows no other.
    Double(f64),
}

impl ExactNumber {
    fn of(number: &Number) -> Option<Self> {
        let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        integer.map(Self::Integer).or_else(|| number.as_f64().map(Self::Double))
    }

    fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (Self::Integer(a), Self::Double(b)) => integer_with_double(a, b),
            (Self::Double(a), Self::Integer(b)) => integer_with_double(b, a).reverse(),
        }
    }
}

/// Compares an integer of 64 bits with a double.
fn integer_with_double(integer: i128, double: f64) -> Ordering {
    // Beyond that, the conversion takes the nearest integer of 128 bits, which compares the same.
    let whole = double.trunc();
    integer.cmp(&(whole as i128)).then_with(|| 0.0_f64.partial_cmp(&(double - whole)).unwrap_or(Ordering::Equal))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn packed(value: Value) -> PackedMetadata {
        let Value::Object(fields) = json!({ "v": value }) else { panic!("no object") };
        PackedMetadata::of(&Metadata::from(fields))
    }

    fn with<R>(value: Value, then: impl FnOnce(PackedValue<'_>) -> R) -> R {
        then(packed(value).at(&["v".to_owned()]).expect("it is there"))
    }

    #[test]
    fn numbers_take_few_bytes_and_stay_what_they_are() {
        let around = |power: u32| [(1i128 << power) - 1, 1 << power, -(1 << power), -(1i128 << power) - 1];
        let integers = (0..64).flat_map(around).filter_map(|number| i64::try_from(number).ok()).map(Value::from);
        let doubles = [0.1, 1.5, -2.25, 1e300, 5e-324, f64::from(f32::MAX)].map(Value::from);
        for number in integers.chain(doubles) {
            assert!(with(number.clone(), |value| value.equals(&number)), "{number}");
        }
        for (numbers, least) in
            [(vec![json!(12_345); 1_000], 4), (vec![json!(-7); 1_000], 3), (vec![json!(1.5); 1_000], 6)]
        {
            assert!(packed(numbers.into()).bytes() <= 1_000 * least + 16);
        }
    }

    #[test]
    fn values_are_equal_by_what_they_are() {
        for (a, b) in [
            (json!(1), json!(1.0)),
            (json!(0), json!(-0.0)),
            (json!(9_007_199_254_740_992_u64), json!(9_007_199_254_740_992.0)),
            (json!([1, {"b": [true, null], "a": "x"}]), json!([1.0, {"a": "x", "b": [true, null]}])),
        ] {
            assert!(with(a.clone(), |value| value.equals(&b)), "{a} {b}");
            assert!(with(b.clone(), |value| value.equals(&a)), "{b} {a}");
        }
        for (a, b) in [
            (json!(1), json!(true)),
            (json!(0), json!(false)),
            (json!(0), json!(null)),
            (json!("1"), json!(1)),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992.0)),
            (json!([1, 2]), json!([2, 1])),
            (json!([1]), json!([1, 2])),
            (json!([]), json!({})),
            (json!({"a": 1}), json!({"a": 1, "b": 1})),
            (json!(""), json!(null)),
        ] {
            assert!(!with(a.clone(), |value| value.equals(&b)), "{a} {b}");
            assert!(!with(b.clone(), |value| value.equals(&a)), "{b} {a}");
        }
    }

    #[test]
    fn order_is_within_numbers_or_within_texts_and_exact() {
        let less = [
            (json!(-1), json!(0.5)),
            (json!(i64::MIN), json!(u64::MAX)),
            (json!(u64::MAX), json!(18_446_744_073_709_551_616.0)),
            (json!(9_007_199_254_740_992.0), json!(9_007_199_254_740_993_u64)),
            (json!(-1.5), json!(-1)),
            (json!(7), json!(1e300)),
            (json!("a"), json!("b")),
            (json!("2026-01-02T00:00:00Z"), json!("2026-01-10T00:00:00Z")),
            (json!("z"), json!("é")),
            (json!(""), json!("a")),
        ];
        for (a, b) in less {
            assert_eq!(with(a.clone(), |value| value.compare(&b)), Some(Ordering::Less), "{a} {b}");
            assert_eq!(with(b.clone(), |value| value.compare(&a)), Some(Ordering::Greater), "{b} {a}");
        }
        for (a, b) in [(json!(1), json!("1")), (json!("a"), json!(0)), (json!(true), json!(0)), (json!([1]), json!(1))]
        {
            assert_eq!(with(a, |value| value.compare(&b)), None);
        }
    }

    #[test]
    fn a_text_is_cut_where_no_comparison_reads_it() {
        let long = "é".repeat(MAX_COMPARED_BYTES);
        let cut = packed(json!(long));
        assert!(cut.bytes() < MAX_COMPARED_BYTES + 16, "{}", cut.bytes());
        for compared in [&long[..MAX_COMPARED_BYTES], "é", "z", "", "ê"] {
            let expected = long.as_bytes().cmp(compared.as_bytes());
            assert_eq!(with(json!(long), |value| value.compare(&json!(compared))), Some(expected), "{compared}");
        }
        let whole = "x".repeat(MAX_COMPARED_BYTES);
        assert!(with(json!(whole), |value| value.equals(&json!(whole))));
        assert!(!with(json!(format!("{whole}x")), |value| value.equals(&json!(whole))));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3i64..3).prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-3i32..3).prop_map(|n| Value::from(f64::from(n) / 2.0)),
            "[a-c]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]{0,2}", inner, 0..3)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_value_is_found_at_its_path_and_equals_itself_alone(a in any_json(), b in any_json()) {
            prop_assert!(with(a.clone(), |value| value.equals(&a)));
            prop_assert_eq!(with(a.clone(), |value| value.equals(&b)), with(b.clone(), |value| value.equals(&a)));
            let nested = packed(json!({ "": a, "b": { "c": b } }));
            let path = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
            prop_assert!(nested.at(&path(&["v", ""])).is_some_and(|value| value.equals(&a)));
            prop_assert!(nested.at(&path(&["v", "b", "c"])).is_some_and(|value| value.equals(&b)));
            prop_assert!(nested.at(&path(&["v", "c"])).is_none());
        }
    }
}
