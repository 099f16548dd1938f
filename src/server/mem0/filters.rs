//! The filters of Mem0's client: whose memories, and with which metadata.
//!
//! In: the ids of a request and its `filters`: ids, `metadata`, `AND`, `OR`, `NOT`. Out: alternatives, each with the
//! entities that memories must belong to and the conditions that their metadata must satisfy. What cannot be meant
//! exactly is refused by name.

use serde_json::{Map, Value};

use super::{entity_ids::EntityIds, mem0_failure::Mem0Failure};
use types::model::{MetadataCondition, Selector, ValueTest};

/// The maximum number of alternatives.
const MAX_BRANCHES: usize = 64;

/// One alternative of a filter.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FilterBranch {
    /// The entities.
    pub(super) ids: EntityIds,
    /// The conditions on metadata; all of them hold.
    pub(super) conditions: Vec<MetadataCondition>,
}

impl FilterBranch {
    /// What both alternatives demand.
    fn and(&self, other: &Self) -> Result<Self, Mem0Failure> {
        let mut ids = self.ids.clone();
        for (field, id) in other.ids.fields() {
            if let Some(id) = id {
                ids.set(field, id)?;
            }
        }
        Ok(Self { ids, conditions: [&self.conditions[..], &other.conditions].concat() })
    }
}

/// The selector of memories that satisfy any of some lists of conditions; `None` if one of the lists is empty.
pub(super) fn selector_of<'b>(branches: impl Iterator<Item = &'b FilterBranch>) -> Option<Selector> {
    let all: Vec<MetadataCondition> = branches
        .map(|branch| (!branch.conditions.is_empty()).then(|| MetadataCondition::All(branch.conditions.clone())))
        .collect::<Option<_>>()?;
    Some(Selector { metadata: Some(MetadataCondition::Any(all)), ..Selector::default() })
}

/// The alternatives of a filter, each with the entities that stand beside it.
pub(super) fn branches(ids: &EntityIds, filters: Option<&Value>) -> Result<Vec<FilterBranch>, Mem0Failure> {
    let beside = FilterBranch { ids: ids.clone(), conditions: Vec::new() };
    let Some(filters) = filters else { return Ok(vec![beside]) };
    both(&[beside], &alternatives(filters)?)
}

/// Every way to satisfy one of `some` and one of `others`.
fn both(some: &[FilterBranch], others: &[FilterBranch]) -> Result<Vec<FilterBranch>, Mem0Failure> {
    if some.len() * others.len() > MAX_BRANCHES {
        let problem = format!("filters: more than {MAX_BRANCHES} alternatives; nest OR less");
        return Err(Mem0Failure::invalid(problem));
    }
    some.iter().flat_map(|some| others.iter().map(move |other| some.and(other))).collect()
}

fn alternatives(filters: &Value) -> Result<Vec<FilterBranch>, Mem0Failure> {
    let Some(filters) = filters.as_object() else { return Err(Mem0Failure::invalid("filters: not an object")) };
    let mut found = vec![FilterBranch::default()];
    for (field, value) in filters {
        let of_field = match (field.as_str(), value) {
            (_, Value::Null) => continue,
            ("AND", Value::Array(all)) => {
                let each = all.iter().map(alternatives).collect::<Result<Vec<_>, _>>()?;
                each.iter().try_fold(vec![FilterBranch::default()], |before, next| both(&before, next))?
            }
            ("OR", Value::Array(any)) if !any.is_empty() => {
                any.iter().map(alternatives).collect::<Result<Vec<_>, _>>()?.concat()
            }
            ("NOT", Value::Array(none)) => negated(&none.iter().collect::<Vec<_>>())?,
            ("NOT", none @ Value::Object(_)) => negated(&[none])?,
            ("metadata", Value::Object(fields)) => {
                vec![FilterBranch { conditions: metadata_conditions(fields)?, ..FilterBranch::default() }]
            }
            (_, Value::String(id)) => vec![one_id(field, id)?],
            (_, Value::Object(test)) => match (test.len(), test.get("in").or_else(|| test.get("eq"))) {
                (1, Some(Value::Array(ids))) if !ids.is_empty() => {
                    let id = |id: &Value| one_id(field, id.as_str().unwrap_or_default());
                    ids.iter().map(id).collect::<Result<_, _>>()?
                }
                (1, Some(Value::String(id))) => vec![one_id(field, id)?],
                _ => return Err(Mem0Failure::unsupported(format!("filters: {field}"))),
            },
            _ => return Err(Mem0Failure::unsupported(format!("filters: {field}"))),
        };
        found = both(&found, &of_field)?;
    }
    Ok(found)
}

fn one_id(field: &str, id: &str) -> Result<FilterBranch, Mem0Failure> {
    let mut branch = FilterBranch::default();
    if id == "*" {
        return Err(Mem0Failure::unsupported(format!("filters: {field} of *")));
    }
    if branch.ids.set(field, id)? { Ok(branch) } else { Err(Mem0Failure::unsupported(format!("filters: {field}"))) }
}

/// None of these filters holds. They may only concern metadata: whose memories are meant is said by name.
fn negated(filters: &[&Value]) -> Result<Vec<FilterBranch>, Mem0Failure> {
    let mut conditions = Vec::new();
    for branch in filters.iter().map(|filters| alternatives(filters)).collect::<Result<Vec<_>, _>>()?.concat() {
        if branch.ids != EntityIds::default() || branch.conditions.is_empty() {
            return Err(Mem0Failure::unsupported("filters: NOT of ids"));
        }
        conditions.push(MetadataCondition::Not(Box::new(MetadataCondition::All(branch.conditions))));
    }
    Ok(vec![FilterBranch { conditions, ..FilterBranch::default() }])
}

fn metadata_conditions(fields: &Map<String, Value>) -> Result<Vec<MetadataCondition>, Mem0Failure> {
    let mut conditions = Vec::new();
    for (name, value) in fields {
        let of = |test: ValueTest| MetadataCondition::Field { path: vec![name.clone()], test };
        match value {
            Value::String(any) if any == "*" => conditions.push(of(ValueTest::Exists(true))),
            Value::Object(tests) if !tests.is_empty() => {
                for (operator, value) in tests {
                    let value = value.clone();
                    conditions.push(match (operator.as_str(), value) {
                        ("eq", value) => of(ValueTest::Eq(value)),
                        ("ne", value) => MetadataCondition::Not(Box::new(of(ValueTest::Eq(value)))),
                        ("gt", value) => of(ValueTest::Gt(value)),
                        ("gte", value) => of(ValueTest::Gte(value)),
                        ("lt", value) => of(ValueTest::Lt(value)),
                        ("lte", value) => of(ValueTest::Lte(value)),
                        ("in", Value::Array(values)) => of(ValueTest::In(values)),
                        ("nin", Value::Array(values)) => MetadataCondition::Not(Box::new(of(ValueTest::In(values)))),
                        ("contains", value) => of(ValueTest::Has(value)),
                        _ => return Err(Mem0Failure::unsupported(format!("filters: metadata.{name}: {operator}"))),
                    });
                }
            }
            value => conditions.push(of(ValueTest::Eq(value.clone()))),
        }
    }
    let selector = MetadataCondition::All(conditions.clone());
    if !conditions.is_empty() {
        selector.check().map_err(|problem| Mem0Failure::invalid(format!("filters: {problem}")))?;
    }
    Ok(conditions)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(filters: Value) -> Result<Vec<(String, String)>, Mem0Failure> {
        let branches = branches(&EntityIds::default(), Some(&filters))?;
        let ids = |branch: &FilterBranch| {
            let each: Vec<String> = branch.ids.each().map(|(kind, id)| format!("{kind}={id}")).collect();
            (each.join("&"), serde_json::to_string(&branch.conditions).expect("JSON"))
        };
        Ok(branches.iter().map(ids).collect())
    }

    #[test]
    fn ids_and_metadata_are_joined_as_the_client_says() {
        let none = "[]".to_owned();
        let found = |filters: Value| read(filters).ok();
        let ids =
            |names: &[&str]| Some(names.iter().map(|name| ((*name).to_owned(), none.clone())).collect::<Vec<_>>());
        assert_eq!(found(json!({"user_id": "a", "run_id": null})), ids(&["user=a"]));
        assert_eq!(found(json!({"OR": [{"user_id": "a"}, {"agent_id": "b"}]})), ids(&["user=a", "agent=b"]));
        let both = json!({"AND": [{"user_id": "a"}, {"OR": [{"run_id": "1"}, {"run_id": "2"}]}]});
        assert_eq!(found(both), ids(&["user=a&run=1", "user=a&run=2"]));
        assert_eq!(found(json!({"user_id": {"in": ["a", "b"]}})), ids(&["user=a", "user=b"]));
        let metadata = json!({"user_id": "a", "metadata": {"k": 1, "n": {"gte": 2, "ne": 3}}});
        let conditions = r#"[{"path":["k"],"eq":1},{"path":["n"],"gte":2},{"not":{"path":["n"],"eq":3}}]"#;
        assert_eq!(found(metadata), Some(vec![("user=a".to_owned(), conditions.to_owned())]));
        let not = json!({"user_id": "a", "NOT": [{"metadata": {"k": "*"}}]});
        let conditions = r#"[{"not":{"all":[{"path":["k"],"exists":true}]}}]"#;
        assert_eq!(found(not), Some(vec![("user=a".to_owned(), conditions.to_owned())]));
        for refused in [
            json!({"user_id": "*"}),
            json!({"categories": {"contains": "x"}}),
            json!({"NOT": [{"user_id": "a"}]}),
            json!({"metadata": {"k": {"icontains": "x"}}}),
            json!({"OR": []}),
            json!([]),
        ] {
            assert!(read(refused.clone()).is_err(), "{refused}");
        }
        let wide = |n: usize| json!({"OR": (0..n).map(|id| json!({"user_id": id.to_string()})).collect::<Vec<_>>()});
        assert!(
            read(wide(64)).is_ok()
                && read(json!({"AND": [wide(64), {"OR": [{"run_id": "1"}, {"run_id": "2"}]}]})).is_err()
        );
    }
}
