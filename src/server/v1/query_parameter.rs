//! The parameters of a query.
//!
//! In: the query of a request, and the parameters that its route takes. Out: their values, or a problem that names the
//! one that is wrong. Each may be given once unless its kind says otherwise, and no others.

use std::str::FromStr;

use axum::http::Uri;
use serde_json::{Value, json};

use crate::{api::ApiProblem, query_string};
use types::model::{Bank, Selector};

/// One parameter of a route.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueryParameter {
    pub(super) name: &'static str,
    is_required: bool,
    about: &'static str,
    kind: ParameterKind,
}

/// What the value of a parameter is.
#[derive(Debug, Clone, Copy)]
pub(super) enum ParameterKind {
    Text,
    /// Texts without line breaks: it may be given several times.
    Texts,
    /// One of some words.
    OneOf(&'static [&'static str]),
    Unit,
    Flag,
    /// A whole number, with its least and its greatest value.
    Whole(Option<u64>, Option<u64>),
}

/// A parameter that must be given.
pub(super) const fn required(name: &'static str, about: &'static str, kind: ParameterKind) -> QueryParameter {
    QueryParameter { name, is_required: true, about, kind }
}

/// A parameter that may be left out.
pub(super) const fn optional(name: &'static str, about: &'static str, kind: ParameterKind) -> QueryParameter {
    QueryParameter { name, is_required: false, about, kind }
}

impl QueryParameter {
    /// Its entry in the OpenAPI document.
    pub(super) fn described(&self) -> Value {
        let Self { name, is_required, about, kind } = *self;
        json!({ "name": name, "in": "query", "required": is_required, "description": about, "schema": kind.schema() })
    }
}

impl ParameterKind {
    fn schema(self) -> Value {
        match self {
            Self::Text => json!({ "type": "string" }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::OneOf(words) => json!({ "type": "string", "enum": words }),
            Self::Unit => json!({ "type": "string", "pattern": "^[0-9a-f]{16}$" }),
            Self::Flag => json!({ "type": "string", "enum": ["true", "false", "1", "0"] }),
            Self::Whole(least, greatest) => {
                let mut schema = json!({ "type": "integer" });
                for (bound, value) in [("minimum", least), ("maximum", greatest)] {
                    if let Some(value) = value {
                        schema[bound] = value.into();
                    }
                }
                schema
            }
        }
    }
}

/// The values in a query, in the order of the parameters. Those of a parameter that may be given several times are
/// joined by line breaks.
pub(super) fn values<const N: usize>(
    uri: &Uri,
    parameters: &[QueryParameter; N],
) -> Result<[Option<String>; N], ApiProblem> {
    let mut found = [const { None }; N];
    for (name, value) in query_string::parameters(uri.query().unwrap_or_default()).map_err(ApiProblem::invalid)? {
        let at = parameters.iter().position(|known| known.name == name);
        let is_list = at.and_then(|at| parameters.get(at)).is_some_and(|of| matches!(of.kind, ParameterKind::Texts));
        match at.and_then(|at| found.get_mut(at)) {
            Some(place @ None) => *place = Some(value),
            Some(Some(values)) if is_list => {
                values.push('\n');
                values.push_str(&value);
            }
            Some(Some(_)) => return Err(ApiProblem::invalid(format!("{name}: is given twice"))),
            None => {
                let names: Vec<&str> = parameters.iter().map(|known| known.name).collect();
                let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(ApiProblem::invalid(format!("{name:?}: not a parameter of this path; it takes {known}")));
            }
        }
    }
    Ok(found)
}

/// The values of a parameter that may be given several times.
pub(super) fn several(joined: Option<String>) -> Vec<String> {
    joined.iter().flat_map(|joined| joined.split('\n')).map(str::to_owned).collect()
}

/// A parameter that is a whole number.
pub(super) fn number<N: FromStr>(name: &str, text: Option<String>) -> Result<Option<N>, ApiProblem> {
    let wrong = |text: &str| ApiProblem::invalid(format!("{name}: {text:?} is not a whole number"));
    text.map(|text| text.parse().map_err(|_| wrong(&text))).transpose()
}

/// A parameter that says yes or no.
pub(super) fn flag(name: &str, text: &str) -> Result<bool, ApiProblem> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(ApiProblem::invalid(format!("{name}: {text:?}; write true or false"))),
    }
}

/// The parameter `where`: a selector as JSON.
pub(super) fn selector(json: &str) -> Result<Selector, ApiProblem> {
    serde_json::from_str(json).map_err(|problem| ApiProblem::invalid(format!("where: {problem}")))
}

/// The parameter `wait_ms`.
pub(super) fn milliseconds(wait: Option<String>) -> Result<Option<u64>, ApiProblem> {
    wait.map(|ms| ms.parse().map_err(|_| ApiProblem::invalid("wait_ms: not a whole number of milliseconds")))
        .transpose()
}

/// A bank by its name.
pub(super) fn parse_bank(name: &str) -> Result<Bank, ApiProblem> {
    Bank::parse(name).map_err(|invalid| ApiProblem::invalid(invalid.to_string()))
}

/// The bank of a path that needs one; `query` shows how it is written.
pub(super) fn required_bank(bank: Option<String>, query: &str) -> Result<Bank, ApiProblem> {
    parse_bank(&bank.ok_or_else(|| missing_parameter("bank", query))?)
}

/// The problem that a parameter is missing.
pub(super) fn missing_parameter(name: &str, query: &str) -> ApiProblem {
    ApiProblem::invalid(format!("{name}: missing; write {query}"))
}
