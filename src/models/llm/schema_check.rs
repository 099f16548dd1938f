//! Checks a reply against the JSON Schema of its contract.
//!
//! In: a schema, then values. Out: the places where a value breaks the schema. A build without the feature `llm` has no
//! such check, and opens no language model.

use serde_json::Value;

/// The maximum number of problems that are reported for one value.
#[cfg(feature = "llm")]
const MAX_PROBLEMS: usize = 8;

/// A compiled schema.
pub(super) struct SchemaCheck {
    /// `None` only if the schema is malformed, which a test of the contracts rules out.
    #[cfg(feature = "llm")]
    validator: Option<jsonschema::Validator>,
}

#[cfg(feature = "llm")]
impl SchemaCheck {
    pub(super) fn new(schema: &Value) -> Self {
        Self { validator: schema.is_object().then(|| jsonschema::validator_for(schema).ok()).flatten() }
    }

    /// The places where a value breaks the schema, each with its JSON pointer; at most 8.
    pub(super) fn problems(&self, value: &Value) -> Vec<String> {
        let describe = |error: jsonschema::ValidationError<'_>| {
            let place = error.instance_path().to_string();
            format!("{}: {error}", if place.is_empty() { "the whole" } else { &place })
        };
        match &self.validator {
            Some(validator) => validator.iter_errors(value).take(MAX_PROBLEMS).map(describe).collect(),
            None => vec!["the contract's schema is malformed; this is a defect, please report it".to_owned()],
        }
    }
}

#[cfg(not(feature = "llm"))]
impl SchemaCheck {
    pub(super) fn new(_: &Value) -> Self {
        Self {}
    }

    pub(super) fn problems(&self, _: &Value) -> Vec<String> {
        vec!["this build checks no replies".to_owned()]
    }
}
