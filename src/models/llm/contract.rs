//! The six contracts: what a language model is asked for, and the form of its reply.
//!
//! Out: for each, its instructions and the JSON Schema of its reply, both files in `prompts`. Dialogue is never part of
//! the instructions. A hash covers both files. It is recorded with what the model produced, and a changed prompt misses
//! the cache.
//!
//! The schemas limit every string and list, so that a runaway reply ends. They use the keywords that llama.cpp's server
//! enforces and that vLLM and OpenAI document for structured outputs. Only `maxLength` is not in OpenAI's list, and it
//! is left out if the settings say so.

use std::sync::OnceLock;

use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::schema_check::SchemaCheck;
use types::config::LlmSettings;

/// One kind of request: its instructions and its reply's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contract {
    /// Turns a window's turns into memory units.
    Extract,
    /// Turns a question into its retrieval cues.
    Cues,
    /// Turns a question and its evidence into a plan for the next hop.
    Plan,
    /// Turns a question and its evidence into an answer in words.
    Answer,
    /// Judges a generated answer by the question and its reference answer.
    Judge,
    /// Chooses a unit's edges among candidate neighbours; the evaluation compares them with the thresholds.
    Edges,
}

struct PromptFiles {
    name: &'static str,
    prompt: &'static str,
    schema: &'static str,
}

struct CompiledContract {
    hash: String,
    schema: Value,
    /// The schema as it is sent, its properties in the file's order; without and with bounds on strings.
    sent: [Option<Box<RawValue>>; 2],
    check: SchemaCheck,
}

macro_rules! files {
    ($name:literal) => {
        PromptFiles {
            name: $name,
            prompt: include_str!(concat!("prompts/", $name, ".md")),
            schema: include_str!(concat!("prompts/", $name, ".schema.json")),
        }
    };
}

static FILES: [PromptFiles; 6] =
    [files!("extract"), files!("cues"), files!("plan"), files!("answer"), files!("judge"), files!("edges")];

impl Contract {
    /// All contracts, in the order in which data passes through them.
    pub const ALL: [Self; 6] = [Self::Extract, Self::Cues, Self::Plan, Self::Answer, Self::Judge, Self::Edges];

    pub(super) fn byte(self) -> u8 {
        self as u8
    }

    pub(super) fn of_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }

    /// The name in file names, metrics and costs.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.files().name
    }

    /// The instructions.
    #[must_use]
    pub fn prompt(self) -> &'static str {
        self.files().prompt
    }

    /// The reply's schema.
    #[must_use]
    pub fn schema(self) -> &'static Value {
        &self.compiled().schema
    }

    /// The schema that is sent, its properties in the file's order, in which a model fills them. `None` only if the
    /// schema is malformed, which a test rules out.
    pub(super) fn sent_schema(self, settings: &LlmSettings) -> Option<&'static RawValue> {
        self.compiled().sent[usize::from(settings.bounded_strings)].as_deref()
    }

    /// The text of the schema that is sent, in its longest form.
    pub(super) fn schema_text(self) -> &'static str {
        self.compiled().sent[1].as_ref().map_or("", |schema| schema.get())
    }

    /// The maximum number of tokens in a completion.
    pub(super) fn completion_tokens(self, settings: &LlmSettings) -> u32 {
        let limits = &settings.completion_tokens;
        match self {
            Self::Extract => limits.extract,
            Self::Cues => limits.cues,
            Self::Plan => limits.plan,
            Self::Answer => limits.answer,
            Self::Judge => limits.judge,
            Self::Edges => limits.edges,
        }
    }

    /// Twelve hexadecimal digits over instructions and schema.
    #[must_use]
    pub fn hash(self) -> &'static str {
        &self.compiled().hash
    }

    /// The places where a value breaks the schema, each with its JSON pointer; at most 8.
    pub(super) fn problems(self, value: &Value) -> Vec<String> {
        self.compiled().check.problems(value)
    }

    fn files(self) -> &'static PromptFiles {
        &FILES[self as usize]
    }

    fn compiled(self) -> &'static CompiledContract {
        static COMPILED: [OnceLock<CompiledContract>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];
        COMPILED[self as usize].get_or_init(|| {
            let PromptFiles { prompt, schema: text, .. } = self.files();
            let mut hash = blake3::Hasher::new();
            for field in [prompt, text] {
                hash.update(&(field.len() as u64).to_le_bytes()).update(field.as_bytes());
            }
            let schema: Value = serde_json::from_str(text).unwrap_or_default();
            let check = SchemaCheck::new(&schema);
            let bounded = compact(text);
            let sent = [without_string_bounds(&bounded), bounded].map(|schema| RawValue::from_string(schema).ok());
            CompiledContract { sent, hash: hash.finalize().to_hex()[..12].to_owned(), schema, check }
        })
    }
}

/// A schema's text without white space; its strings contain none.
fn compact(text: &str) -> String {
    text.split_whitespace().collect()
}

/// A compact schema without `maxLength`, which always follows another keyword in the files.
fn without_string_bounds(text: &str) -> String {
    let mut pieces = text.split(",\"maxLength\":");
    let mut out = pieces.next().unwrap_or_default().to_owned();
    pieces.for_each(|piece| out.push_str(piece.trim_start_matches(|c: char| c.is_ascii_digit())));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What strict endpoints require of a schema: every property required, no other allowed.
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

    /// Every list, and every string that the model words itself, has a bound. The bounds use keywords that llama.cpp's
    /// server enforces; `maxLength` is the only one that OpenAI does not document.
    fn bounded(schema: &Value, place: &str) {
        for keyword in schema.as_object().expect("an object").keys() {
            let known = [
                "type",
                "additionalProperties",
                "required",
                "properties",
                "items",
                "anyOf",
                "enum",
                "format",
                "maxItems",
                "maxLength",
            ];
            assert!(known.contains(&keyword.as_str()), "{place}: {keyword}");
        }
        match schema["type"].as_str() {
            Some("string") => {
                let bounded = ["enum", "format", "maxLength"].iter().any(|bound| schema.get(bound).is_some());
                assert!(bounded, "{place}: a string without a bound");
            }
            Some("array") => {
                assert!(schema["maxItems"].as_u64().is_some_and(|n| n <= 64), "{place}: a list without a bound")
            }
            _ => {}
        }
        let inner = schema["properties"].as_object().into_iter().flatten().map(|(name, inner)| (name.as_str(), inner));
        let items = schema.get("items").map(|items| ("items", items));
        let choices = schema["anyOf"].as_array().into_iter().flatten().map(|choice| ("anyOf", choice));
        inner.chain(items).chain(choices).for_each(|(name, inner)| bounded(inner, &format!("{place}.{name}")));
    }

    #[test]
    fn every_string_and_list_is_bounded() {
        for contract in Contract::ALL {
            bounded(contract.schema(), contract.name());
            let [unbounded, sent] = &contract.compiled().sent;
            let read = |text: &Option<Box<RawValue>>| -> Value {
                serde_json::from_str(text.as_ref().expect("JSON").get()).expect("JSON")
            };
            assert_eq!(read(sent), *contract.schema());
            assert!(!read(unbounded).to_string().contains("maxLength"), "{contract:?}");
        }
    }

    #[test]
    fn every_schema_is_valid_and_strict() {
        for contract in Contract::ALL {
            let problems = contract.problems(&Value::Null);
            assert!(problems.iter().all(|problem| !problem.contains("malformed")), "{contract:?}: {problems:?}");
            strict(contract.schema(), contract.name());
            assert_eq!(contract.schema()["type"], "object");
            assert!(contract.prompt().len() > 200 && contract.hash().len() == 12);
            assert_eq!(Contract::of_byte(contract.byte()), Some(contract));
        }
        let hashes: std::collections::BTreeSet<_> = Contract::ALL.iter().map(|c| c.hash()).collect();
        assert_eq!((hashes.len(), Contract::of_byte(6)), (6, None));
    }

    #[test]
    fn each_problem_names_its_json_pointer() {
        let value = serde_json::json!({"label": "maybe", "more": 1});
        let problems = Contract::Judge.problems(&value);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems.iter().any(|p| p.starts_with("/label: ")), "{problems:?}");
        assert_eq!(Contract::Judge.problems(&serde_json::json!({"label": "correct"})), Vec::<String>::new());
    }
}
