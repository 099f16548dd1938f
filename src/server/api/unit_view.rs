//! The JSON form of a unit and its neighbours.
//!
//! In: a unit of the dataflow with the units that its edges lead to. Out: one JSON form, with the reasons for each
//! edge. A structural edge comes from shared names and times, a semantic edge from similar meaning.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::ApiProblem;
use memory::index::{DataflowAnswer, Neighbour, UnitBody, UnitNeighbourhood};
use types::model::{Bank, Channel, Cues, EventTime, Excerpt, LogPosition, UnitId};

/// A unit of a bank, with the edges that leave it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnitView {
    /// The bank.
    pub bank: Bank,
    /// The unit.
    pub unit: WholeUnit,
    /// Its edges: by channel, the strongest first; at most `memory.fan_out` of each channel.
    pub edges: Vec<EdgeView>,
    /// The offsets that this reflects.
    pub reflects: Vec<LogPosition>,
}

/// A unit with all of its parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WholeUnit {
    /// The unit.
    pub id: UnitId,
    /// What it says.
    pub restatement: String,
    /// Its participants, locations and time.
    pub cues: Cues,
    /// When it was said.
    pub said_at: EventTime,
    /// The session that its turns lie in.
    pub session: String,
    /// The turns that it was made from.
    pub sources: Vec<String>,
    /// Its pieces: turn, speaker, time, words.
    pub parts: Vec<Excerpt>,
}

/// An edge, seen from one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EdgeView {
    /// The kind.
    pub channel: Channel,
    /// How strongly the units are associated: the cosine of their vectors, or the score of the cues that they
    /// share.
    pub weight: f64,
    /// Why there is the edge.
    pub reasons: EdgeReasons,
    /// The unit at the other end.
    pub unit: WholeUnit,
}

/// What both ends of an edge share.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EdgeReasons {
    /// People of both.
    pub participants: Vec<String>,
    /// Places of both.
    pub locations: Vec<String>,
    /// Milliseconds between the times of both events, 0 where they overlap; absent where one has no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart_ms: Option<u64>,
}

/// The unit that a text names, in a field of a request.
pub(super) fn unit_id(field: &str, text: &str) -> Result<UnitId, ApiProblem> {
    text.parse().map_err(|problem| ApiProblem::invalid(format!("{field}: {problem}")))
}

impl UnitView {
    /// The JSON form of a unit, with its edges by channel, the strongest first.
    pub(super) fn of(bank: Bank, found: DataflowAnswer<UnitNeighbourhood>) -> Self {
        let DataflowAnswer { value: UnitNeighbourhood { unit, mut neighbours }, reflects, .. } = found;
        neighbours.sort_by_key(|found| (found.channel, std::cmp::Reverse(found.path_weight), found.unit.id));
        let edges = neighbours.iter().map(|found| edge_view(&unit, found)).collect();
        Self { bank, unit: whole_unit(&unit), edges, reflects }
    }
}

fn edge_view(from: &UnitBody, found: &Neighbour) -> EdgeView {
    let (a, b) = (from.cues(), found.unit.cues());
    let shared = |a: &[String], b: &[String]| a.iter().filter(|name| b.contains(name)).cloned().collect();
    let apart = a.time.zip(b.time).map(|(a, b)| a.gap_ms(&b).unsigned_abs());
    let reasons = EdgeReasons {
        participants: shared(&a.participants, &b.participants),
        locations: shared(&a.locations, &b.locations),
        apart_ms: apart,
    };
    EdgeView { channel: found.channel, weight: found.path_weight.as_f64(), reasons, unit: whole_unit(&found.unit) }
}

pub(super) fn whole_unit(unit: &Arc<UnitBody>) -> WholeUnit {
    WholeUnit {
        id: unit.id,
        restatement: unit.restatement().to_owned(),
        cues: unit.cues(),
        said_at: unit.said_at,
        session: unit.session().to_owned(),
        sources: unit.sources().map(str::to_owned).collect(),
        parts: unit.parts().map(Excerpt::from).collect(),
    }
}
