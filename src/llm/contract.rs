//! The six things that a language model is asked for.
//!
//! Out: for each its instructions, and the JSON Schema of what may come back, both files in
//! `prompts`. What a dialogue says is never part of the instructions. The hash covers both
//! files: it is stored with what was made by them, and a changed prompt asks anew.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde::Serialize;
use serde_json::Value;

/// What a model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contract {
    /// A window's turns to units.
    Extract,
    /// A question to what it is looked up by.
    Cues,
    /// A question and its evidence to a plan.
    Plan,
    /// A question and its evidence to an answer in words.
    Answer,
    /// A question, its reference and an answer to a verdict.
    Judge,
    /// A unit and its candidates to edges, for comparison with the thresholds.
    Edges,
}

struct Files {
    name: &'static str,
    prompt: &'static str,
    schema: &'static str,
}

struct Made {
    hash: String,
    schema: Value,
    /// Absent only if the schema were malformed, which the tests rule out.
    validator: Option<Validator>,
}

macro_rules! files {
    ($name:literal) => {
        Files {
            name: $name,
            prompt: include_str!(concat!("prompts/", $name, ".md")),
            schema: include_str!(concat!("prompts/", $name, ".schema.json")),
        }
    };
}

static FILES: [Files; 6] =
    [files!("extract"), files!("cues"), files!("plan"), files!("answer"), files!("judge"), files!("edges")];

impl Contract {
    /// All of them, in the order of the data.
    pub const ALL: [Self; 6] = [Self::Extract, Self::Cues, Self::Plan, Self::Answer, Self::Judge, Self::Edges];

    pub(super) fn byte(self) -> u8 {
        self as u8
    }

    pub(super) fn of_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// As in file names, metrics and costs.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.files().name
    }

    /// The instructions.
    #[must_use]
    pub fn prompt(self) -> &'static str {
        self.files().prompt
    }

    /// The schema of what may come back.
    #[must_use]
    pub fn schema(self) -> &'static Value {
        &self.made().schema
    }

    /// The same, as it stands in its file.
    #[must_use]
    pub fn schema_text(self) -> &'static str {
        self.files().schema
    }

    /// Twelve hexadecimal digits over instructions and schema.
    #[must_use]
    pub fn hash(self) -> &'static str {
        &self.made().hash
    }

    /// Everything in which a value is not as the schema says, with its place.
    pub(super) fn problems(self, value: &Value) -> Vec<String> {
        let told = |error: jsonschema::ValidationError<'_>| {
            let place = error.instance_path().to_string();
            format!("{}: {error}", if place.is_empty() { "the whole" } else { &place })
        };
        match &self.made().validator {
            Some(validator) => validator.iter_errors(value).take(8).map(told).collect(),
            None => vec![format!("the schema of {} is malformed; this is a defect, please report it", self.name())],
        }
    }

    fn files(self) -> &'static Files {
        &FILES[self as usize]
    }

    fn made(self) -> &'static Made {
        static MADE: [OnceLock<Made>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];
        MADE[self as usize].get_or_init(|| {
            let Files { prompt, schema: text, .. } = self.files();
            let mut hash = blake3::Hasher::new();
            for field in [prompt, text] {
                hash.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
            }
            let schema: Value = serde_json::from_str(text).unwrap_or_default();
            let validator = schema.is_object().then(|| jsonschema::validator_for(&schema).ok()).flatten();
            Made { hash: hash.finalize().to_hex()[..12].to_owned(), schema, validator }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What strict endpoints ask of a schema: every property required, no other allowed.
    fn strict(schema: &Value, place: &str) {
        if let Some(properties) = schema["properties"].as_object() {
            assert_eq!(schema["additionalProperties"], false, "{place}");
            let required: Vec<&str> =
                schema["required"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
            assert_eq!(required, properties.keys().map(String::as_str).collect::<Vec<_>>(), "{place}");
            properties.iter().for_each(|(name, inner)| strict(inner, &format!("{place}.{name}")));
        }
        for keyword in ["items", "anyOf"] {
            match &schema[keyword] {
                Value::Array(many) => many.iter().for_each(|s| strict(s, place)),
                Value::Null => {}
                one => strict(one, place),
            }
        }
    }

    #[test]
    fn every_schema_is_sound_and_strict() {
        for contract in Contract::ALL {
            assert!(contract.made().validator.is_some(), "{contract:?}");
            strict(contract.schema(), contract.name());
            assert_eq!(contract.schema()["type"], "object");
            assert!(contract.prompt().len() > 200 && contract.hash().len() == 12);
            assert_eq!(Contract::of_byte(contract.byte()), Some(contract));
        }
        let hashes: std::collections::BTreeSet<_> = Contract::ALL.iter().map(|c| c.hash()).collect();
        assert_eq!((hashes.len(), Contract::of_byte(6)), (6, None));
    }

    #[test]
    fn problems_name_their_place() {
        let value = serde_json::json!({"label": "maybe", "more": 1});
        let problems = Contract::Judge.problems(&value);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems.iter().any(|p| p.starts_with("/label: ")), "{problems:?}");
        assert_eq!(Contract::Judge.problems(&serde_json::json!({"label": "correct"})), Vec::<String>::new());
    }
}
