//! What is wrong with a value from outside: which field, and what to write instead.

/// What is wrong with a value, with the field's name and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}; {remedy}")]
pub struct FieldError {
    /// The field of the record, as it is spelled in the JSON form.
    pub field: &'static str,
    /// What was found.
    pub problem: String,
    /// What to write instead.
    pub remedy: &'static str,
}

impl FieldError {
    pub(crate) fn new(field: &'static str, problem: impl Into<String>, remedy: &'static str) -> Self {
        Self { field, problem: problem.into(), remedy }
    }
}
