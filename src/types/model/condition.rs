//! Conditions on the metadata of turns.
//!
//! In: JSON: `{"path": ["a", "b"], "eq": 1}`, or `all`, `any` and `not` of such. Out: whether metadata satisfy it. It is
//! never an error that a field is missing or of another type: the condition is false, and its `not` true.

use std::{borrow::Cow, cmp::Ordering};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use super::{FieldError, MAX_METADATA_DEPTH, PackedMetadata, packed_metadata::MAX_COMPARED_BYTES};

/// Most comparisons in one condition.
pub const MAX_COMPARISONS: usize = 1_000;
/// Most values of one `in`.
pub const MAX_COMPARED_VALUES: usize = 1_000;
/// Most levels of `all`, `any` and `not`.
const MAX_LEVELS: usize = 16;
const OPERATORS: &str = "eq, in, gt, gte, lt, lte, has or exists";

/// A condition on the metadata of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataCondition {
    /// All of them hold.
    All(Vec<Self>),
    /// At least one of them holds.
    Any(Vec<Self>),
    /// It does not hold.
    Not(Box<Self>),
    /// The value at a path satisfies a test.
    Field {
        /// The names of fields, from the outermost.
        path: Vec<String>,
        /// What is tested.
        test: ValueTest,
    },
}

/// A test of one value of metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueTest {
    /// It equals this value.
    Eq(Value),
    /// It equals one of these.
    In(Vec<Value>),
    /// It is greater than this number or text.
    Gt(Value),
    /// It is greater or equal.
    Gte(Value),
    /// It is less.
    Lt(Value),
    /// It is less or equal.
    Lte(Value),
    /// It is an array that holds this value.
    Has(Value),
    /// Whether there is such a field.
    Exists(bool),
}

impl ValueTest {
    /// The test that an operator names; an error for another name or a value of another type.
    fn of(operator: &str, value: Value) -> Result<Self, String> {
        let ordered = |value: Value| match value {
            Value::Number(_) | Value::String(_) => Ok(value),
            _ => Err(format!("metadata: {operator} compares numbers or texts; give one of them")),
        };
        match (operator, value) {
            ("eq", value) => Ok(Self::Eq(value)),
            ("has", value) => Ok(Self::Has(value)),
            ("gt", value) => ordered(value).map(Self::Gt),
            ("gte", value) => ordered(value).map(Self::Gte),
            ("lt", value) => ordered(value).map(Self::Lt),
            ("lte", value) => ordered(value).map(Self::Lte),
            ("in", Value::Array(values)) => Ok(Self::In(values)),
            ("in", _) => Err("metadata: in takes an array of values".to_owned()),
            ("exists", Value::Bool(exists)) => Ok(Self::Exists(exists)),
            ("exists", _) => Err("metadata: exists is true or false".to_owned()),
            _ => Err(format!("metadata: the operator {operator:?} is not known; use {OPERATORS}")),
        }
    }

    fn named(&self) -> (&'static str, Value) {
        match self {
            Self::Eq(value) => ("eq", value.clone()),
            Self::In(values) => ("in", values.clone().into()),
            Self::Gt(value) => ("gt", value.clone()),
            Self::Gte(value) => ("gte", value.clone()),
            Self::Lt(value) => ("lt", value.clone()),
            Self::Lte(value) => ("lte", value.clone()),
            Self::Has(value) => ("has", value.clone()),
            Self::Exists(exists) => ("exists", (*exists).into()),
        }
    }

    /// The values that it compares with.
    fn values(&self) -> &[Value] {
        match self {
            Self::In(values) => values,
            Self::Eq(value)
            | Self::Gt(value)
            | Self::Gte(value)
            | Self::Lt(value)
            | Self::Lte(value)
            | Self::Has(value) => std::slice::from_ref(value),
            Self::Exists(_) => &[],
        }
    }
}

impl MetadataCondition {
    /// Whether metadata satisfy it; none are as an empty object.
    #[must_use]
    pub fn takes(&self, metadata: Option<&PackedMetadata>) -> bool {
        match self {
            Self::All(conditions) => conditions.iter().all(|condition| condition.takes(metadata)),
            Self::Any(conditions) => conditions.iter().any(|condition| condition.takes(metadata)),
            Self::Not(condition) => !condition.takes(metadata),
            Self::Field { path, test } => {
                let found = metadata.and_then(|metadata| metadata.at(path));
                let order = |bound: &Value| found.and_then(|value| value.compare(bound));
                match test {
                    ValueTest::Eq(value) => found.is_some_and(|found| found.equals(value)),
                    ValueTest::In(values) => found.is_some_and(|found| values.iter().any(|value| found.equals(value))),
                    ValueTest::Gt(bound) => order(bound) == Some(Ordering::Greater),
                    ValueTest::Gte(bound) => order(bound).is_some_and(Ordering::is_ge),
                    ValueTest::Lt(bound) => order(bound) == Some(Ordering::Less),
                    ValueTest::Lte(bound) => order(bound).is_some_and(Ordering::is_le),
                    ValueTest::Has(value) => found.is_some_and(|found| found.items().any(|item| item.equals(value))),
                    ValueTest::Exists(exists) => found.is_some() == *exists,
                }
            }
        }
    }

    /// Checks how much it compares.
    ///
    /// # Errors
    /// [`FieldError`] names `metadata`.
    pub fn check(&self) -> Result<(), FieldError> {
        let comparisons = self.check_levels(MAX_LEVELS)?;
        if comparisons > MAX_COMPARISONS {
            let problem = format!("{comparisons} comparisons, more than {MAX_COMPARISONS}");
            return Err(FieldError::new("metadata", problem, "divide the request"));
        }
        Ok(())
    }

    /// How many comparisons it has.
    fn check_levels(&self, levels: usize) -> Result<usize, FieldError> {
        if levels == 0 {
            let problem = format!("more than {MAX_LEVELS} levels of all, any and not");
            return Err(FieldError::new("metadata", problem, "nest it less"));
        }
        match self {
            Self::All(conditions) | Self::Any(conditions) if conditions.is_empty() => {
                Err(FieldError::new("metadata", "all or any of nothing", "give a condition, or leave it out"))
            }
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().try_fold(0, |sum, condition| Ok(sum + condition.check_levels(levels - 1)?))
            }
            Self::Not(condition) => condition.check_levels(levels - 1),
            Self::Field { path, test } => {
                if path.is_empty() || path.len() > MAX_METADATA_DEPTH {
                    let problem = format!("a path of {} names", path.len());
                    return Err(FieldError::new("metadata", problem, "give 1 to 32 names of fields"));
                }
                let values = test.values();
                if values.len() > MAX_COMPARED_VALUES {
                    let problem = format!("in has {} values, more than {MAX_COMPARED_VALUES}", values.len());
                    return Err(FieldError::new("metadata", problem, "divide the request"));
                }
                if values.iter().any(has_long_text) {
                    let problem = format!("a compared text has more than {MAX_COMPARED_BYTES} bytes");
                    return Err(FieldError::new("metadata", problem, "compare a shorter field, such as a hash of it"));
                }
                Ok(values.len().max(1))
            }
        }
    }
}

/// Whether any text in it is longer than what is compared.
fn has_long_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() > MAX_COMPARED_BYTES,
        Value::Array(items) => items.iter().any(has_long_text),
        Value::Object(fields) => fields.values().any(has_long_text),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

impl Serialize for MetadataCondition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All(conditions) => serializer.collect_map([("all", conditions)]),
            Self::Any(conditions) => serializer.collect_map([("any", conditions)]),
            Self::Not(condition) => serializer.collect_map([("not", condition)]),
            Self::Field { path, test } => {
                let (operator, value) = test.named();
                serializer.collect_map([("path", path.clone().into()), (operator, value)])
            }
        }
    }
}

impl<'de> Deserialize<'de> for MetadataCondition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Map::<String, Value>::deserialize(deserializer)?;
        Self::of(fields, MAX_LEVELS).map_err(de::Error::custom)
    }
}

impl MetadataCondition {
    fn of(mut fields: Map<String, Value>, levels: usize) -> Result<Self, String> {
        let conditions = |name: &str, value: Value| {
            let Value::Array(values) = value else { return Err(format!("metadata: {name} takes an array")) };
            values.into_iter().map(|value| Self::of_value(value, levels)).collect::<Result<Vec<_>, _>>()
        };
        let path = fields.remove("path");
        let mut rest = fields.into_iter();
        let (Some((name, value)), None) = (rest.next(), rest.next()) else {
            return Err(format!(
                "metadata: a condition has a path and one of {OPERATORS}, or is one of all, any and not; join several \
                 with all"
            ));
        };
        match (name.as_str(), path) {
            ("all", None) => conditions("all", value).map(Self::All),
            ("any", None) => conditions("any", value).map(Self::Any),
            ("not", None) => Self::of_value(value, levels).map(|condition| Self::Not(Box::new(condition))),
            (_, None) => Err(format!("metadata: {name:?} without a path; add path, a list of names of fields")),
            ("all" | "any" | "not", Some(_)) => Err(format!("metadata: {name} has no path; give one to what is in it")),
            (operator, Some(path)) => {
                let path = serde_json::from_value(path).map_err(|_| "metadata: path is a list of names of fields")?;
                Ok(Self::Field { path, test: ValueTest::of(operator, value)? })
            }
        }
    }

    fn of_value(value: Value, levels: usize) -> Result<Self, String> {
        match value {
            Value::Object(fields) if levels > 1 => Self::of(fields, levels - 1),
            Value::Object(_) => Err(format!("metadata: more than {MAX_LEVELS} levels of all, any and not")),
            _ => Err("metadata: a condition is an object".to_owned()),
        }
    }
}

impl JsonSchema for MetadataCondition {
    fn schema_name() -> Cow<'static, str> {
        "MetadataCondition".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<Self>();
        json_schema!({
            "description": "A condition on the metadata of a turn: a path of names of fields and one operator, or all, any \
                or not of conditions. A field that is missing, or of another type, makes it false.",
            "type": "object",
            "properties": {
                "path": { "description": "The names of fields, from the outermost.", "type": "array",
                    "items": { "type": "string" }, "minItems": 1, "maxItems": 32 },
                "eq": { "description": "It equals this value; 1 equals 1.0." },
                "in": { "description": "It equals one of these.", "type": "array", "maxItems": 1000 },
                "gt": { "description": "It is greater than this number or text.", "type": ["number", "string"] },
                "gte": { "description": "It is greater or equal.", "type": ["number", "string"] },
                "lt": { "description": "It is less.", "type": ["number", "string"] },
                "lte": { "description": "It is less or equal.", "type": ["number", "string"] },
                "has": { "description": "It is an array that holds this value." },
                "exists": { "description": "Whether there is such a field.", "type": "boolean" },
                "all": { "description": "All of these hold.", "type": "array", "items": own, "minItems": 1 },
                "any": { "description": "One of these holds.", "type": "array", "items": own, "minItems": 1 },
                "not": own,
            },
            "additionalProperties": false,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Metadata;

    fn takes(condition: &Value, metadata: Value) -> bool {
        let condition: MetadataCondition = serde_json::from_value(condition.clone()).expect("a condition");
        condition.check().expect("a good one");
        let metadata: Option<Metadata> = serde_json::from_value(metadata).expect("metadata");
        condition.takes(metadata.as_ref().map(PackedMetadata::of).as_ref())
    }

    #[test]
    fn each_operator_compares_what_is_at_the_path() {
        let on = |operator: &str, value: Value| {
            let mut condition = json!({ "path": ["a"] });
            condition[operator] = value;
            condition
        };
        for (condition, metadata, expected) in [
            (on("eq", json!(1)), json!({"a": 1.0}), true),
            (on("eq", json!(1)), json!({"a": true}), false),
            (on("eq", json!(null)), json!({"a": null}), true),
            (on("eq", json!(null)), json!({}), false),
            (on("eq", json!([1, "x"])), json!({"a": [1, "x"]}), true),
            (on("in", json!([1, "x"])), json!({"a": "x"}), true),
            (on("in", json!([])), json!({"a": "x"}), false),
            (on("gt", json!(10)), json!({"a": 9}), false),
            (on("gt", json!(10)), json!({"a": "99"}), false),
            (on("gt", json!(9)), json!({"a": 10}), true),
            (on("gte", json!(9)), json!({"a": 9.0}), true),
            (on("lt", json!("b")), json!({"a": "abc"}), true),
            (on("lte", json!(0)), json!({"a": null}), false),
            (on("lte", json!(0)), json!(null), false),
            (on("has", json!("x")), json!({"a": ["y", "x"]}), true),
            (on("has", json!("x")), json!({"a": "x"}), false),
            (on("exists", json!(true)), json!({"a": null}), true),
            (on("exists", json!(true)), json!({"b": 1}), false),
            (on("exists", json!(false)), json!(null), true),
            (json!({"path": ["a", "b.c"], "eq": 1}), json!({"a": {"b.c": 1}}), true),
            (json!({"path": ["a", "b"], "exists": false}), json!({"a": [{"b": 1}]}), true),
            (json!({"not": on("eq", json!(1))}), json!({}), true),
            (json!({"all": [on("gt", json!(1)), on("lt", json!(3))]}), json!({"a": 2}), true),
            (json!({"any": [on("eq", json!(1)), on("eq", json!(3))]}), json!({"a": 2}), false),
        ] {
            assert_eq!(takes(&condition, metadata.clone()), expected, "{condition} on {metadata}");
            let negated = json!({ "not": condition });
            assert_eq!(takes(&negated, metadata), !expected, "{negated}");
            let read: MetadataCondition = serde_json::from_value(negated.clone()).expect("a condition");
            assert_eq!(serde_json::to_value(&read).expect("JSON"), negated, "it is written as it is read");
        }
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let refused = |condition: Value| {
            let read = serde_json::from_value::<MetadataCondition>(condition.clone()).map_err(|e| e.to_string());
            read.and_then(|read| read.check().map_err(|e| e.to_string())).expect_err(&condition.to_string())
        };
        let deep = (0..20).fold(json!({"path": ["a"], "eq": 1}), |inner, _| json!({ "not": inner }));
        let many: Vec<Value> = (0..=MAX_COMPARED_VALUES).map(Value::from).collect();
        for (condition, named) in [
            (json!({"path": ["a"], "contains": 1}), "\"contains\" is not known"),
            (json!({"path": ["a"], "$eq": 1}), "\"$eq\""),
            (json!({"eq": 1}), "without a path"),
            (json!({"path": ["a"]}), "one of eq, in"),
            (json!({"path": ["a"], "gt": 1, "lt": 2}), "join several"),
            (json!({"path": "a", "eq": 1}), "path is a list"),
            (json!({"path": [], "eq": 1}), "a path of 0 names"),
            (json!({"path": ["a"], "in": 1}), "in takes an array"),
            (json!({"path": ["a"], "gt": true}), "gt compares numbers or texts"),
            (json!({"path": ["a"], "exists": 1}), "exists is true or false"),
            (json!({"all": []}), "all or any of nothing"),
            (json!({"all": {}}), "all takes an array"),
            (json!({"not": 1}), "a condition is an object"),
            (json!({"path": ["a"], "not": {}}), "not has no path"),
            (json!({"path": ["a"], "eq": "x".repeat(MAX_COMPARED_BYTES + 1)}), "a compared text"),
            (json!({"path": ["a"], "in": many}), "1001 values"),
            (deep, "levels of all, any and not"),
        ] {
            let problem = refused(condition);
            assert!(problem.starts_with("metadata: ") && problem.contains(named), "{problem}");
        }
    }
}
