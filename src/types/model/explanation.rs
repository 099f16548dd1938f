//! Why a turn is quoted in the answer to a question, or why not.
//!
//! In: what recollection and the log know of a turn. Out: values with one JSON form: twelve steps from the stored turn
//! to the line in the context, each with its state, its numbers and a sentence; and for the whole which step kept the
//! turn out. A turn is quoted exactly where no step has failed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{EventTime, LogPosition, SCHEMA_VERSION, UnitId};

/// What an explanation is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplanationQuery {
    /// The turn, or the unit.
    pub id: SubjectId,
    /// Only the part with this index among the parts of its unit.
    pub part: Option<u32>,
    /// Whether a part that the first hop did not score gets its rank among every part of the bank.
    pub every_part: bool,
}

/// How a subject is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubjectId {
    /// By the id of a turn.
    Turn(String),
    /// By a unit.
    Unit(UnitId),
}

/// The steps from a turn to its line in the context, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "StepName")]
pub enum ExplanationStepName {
    /// The turn lies in the log.
    Stored,
    /// The memory that is asked has read it.
    Reflected,
    /// The window that it lies in has units.
    Window,
    /// A unit holds its words.
    Unit,
    /// The unit's vectors are of the model that embeds the question.
    Vectors,
    /// Edges lead to the unit.
    Edges,
    /// The first hop scores the part.
    Candidate,
    /// How familiar the part is to the question.
    Score,
    /// The first hop quotes it.
    Cutoff,
    /// A walk from an anchor adds it.
    Walk,
    /// It is among the units of the answer, and within its tokens.
    Assembly,
    /// Its line stands in the context.
    Context,
}

impl ExplanationStepName {
    /// Every step, in order.
    pub const ALL: [Self; 12] = [
        Self::Stored,
        Self::Reflected,
        Self::Window,
        Self::Unit,
        Self::Vectors,
        Self::Edges,
        Self::Candidate,
        Self::Score,
        Self::Cutoff,
        Self::Walk,
        Self::Assembly,
        Self::Context,
    ];

    /// The name in its JSON form.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Reflected => "reflected",
            Self::Window => "window",
            Self::Unit => "unit",
            Self::Vectors => "vectors",
            Self::Edges => "edges",
            Self::Candidate => "candidate",
            Self::Score => "score",
            Self::Cutoff => "cutoff",
            Self::Walk => "walk",
            Self::Assembly => "assembly",
            Self::Context => "context",
        }
    }
}

/// What a step did with the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "StepState")]
pub enum ExplanationStepState {
    /// The step let the turn pass.
    Passed,
    /// The step excluded the turn.
    Failed,
    /// The step did not decide: an earlier step had failed, or another way led on.
    NotReached,
    /// What the step did is not known here.
    Unknown,
}

/// What a step has counted, by name.
pub type ExplanationStepNumbers = Map<String, Value>;

/// One step of an explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ExplainStep")]
pub struct ExplanationStep {
    /// Which step.
    pub step: ExplanationStepName,
    /// What it did.
    pub state: ExplanationStepState,
    /// The same in words.
    pub sentence: String,
    /// What would have changed it; absent unless it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// What it counted, by name; which names depends on the step.
    pub numbers: ExplanationStepNumbers,
}

impl ExplanationStep {
    /// A step without numbers.
    #[must_use]
    pub fn new(step: ExplanationStepName, state: ExplanationStepState, sentence: impl Into<String>) -> Self {
        Self { step, state, sentence: sentence.into(), change: None, numbers: ExplanationStepNumbers::new() }
    }

    /// A step that an earlier one kept from being reached.
    #[must_use]
    pub fn not_reached(step: ExplanationStepName) -> Self {
        Self::new(step, ExplanationStepState::NotReached, "An earlier step had failed.")
    }

    /// With what would have changed it.
    #[must_use]
    pub fn change(self, change: impl Into<String>) -> Self {
        Self { change: Some(change.into()), ..self }
    }

    /// With a number.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.numbers.insert(name.to_owned(), value.into());
        self
    }
}

/// What was explained.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedSubject {
    /// The turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The unit that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitId>,
    /// Its index among the unit's parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// Who said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// When it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_at: Option<EventTime>,
    /// The words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Another part of the same turn, or of the same unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "OtherPart")]
pub struct SiblingPart {
    /// Its unit.
    pub unit: UnitId,
    /// Its index among the unit's parts.
    pub part: u32,
    /// Its share on the scale of the question.
    pub share: f64,
    /// Whether it is quoted.
    pub quoted: bool,
}

/// Why a turn is quoted in the answer to a question, or why not: a function of the memory's log, the question's vector,
/// its cues, the plan and the settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Version of this schema: 1.
    pub schema: u32,
    /// The bank that was asked.
    pub bank: String,
    /// What was explained: of several parts the one that is quoted, or the most familiar one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<ExplainedSubject>,
    /// Whether the context quotes it.
    pub quoted: bool,
    /// The first step that failed; absent where it is quoted, and where what kept it out cannot be told here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<ExplanationStepName>,
    /// The whole in words.
    pub sentence: String,
    /// What would have changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// The twelve steps, in order.
    pub steps: Vec<ExplanationStep>,
    /// The other parts of the turn, or of the unit, that were scored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SiblingPart>,
    /// The offset of the memory log as of which it holds: the question's `as_of` for the same explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// Hash of the question's vector and of its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vector_hash: Option<String>,
    /// Hash of the settings of recall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_hash: Option<String>,
    /// The offsets that it reflects.
    pub reflects: Vec<LogPosition>,
}

impl Explanation {
    /// The explanation of a bank's answer, from its twelve steps.
    #[must_use]
    pub fn of(bank: String, sentence: String, steps: Vec<ExplanationStep>) -> Self {
        let failed = steps.iter().find(|step| step.state == ExplanationStepState::Failed);
        let (failed, change) = (failed.map(|step| step.step), failed.and_then(|step| step.change.clone()));
        let quoted = steps
            .iter()
            .any(|step| step.step == ExplanationStepName::Context && step.state == ExplanationStepState::Passed);
        Self {
            schema: SCHEMA_VERSION,
            bank,
            subject: None,
            quoted,
            failed,
            sentence,
            change,
            steps,
            others: Vec::new(),
            as_of: None,
            vector_hash: None,
            settings_hash: None,
            reflects: Vec::new(),
        }
    }

    /// A step.
    #[must_use]
    pub fn step(&self, name: ExplanationStepName) -> Option<&ExplanationStep> {
        self.steps.iter().find(|step| step.step == name)
    }
}
