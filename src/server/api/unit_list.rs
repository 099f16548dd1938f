//! Many units of a bank, as of one moment.
//!
//! In: ids that an answer names. Out: the units without their edges, and the ids that the bank does not have.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    memory_api::MemoryApi,
    problem::ApiProblem,
    read_limiters::ReadScope,
    unit_view::{WholeUnit, unit_id, whole_unit},
};
use crate::access::{AccessRight, Caller};
use memory::index::{DataflowAnswer, UnitBody};
use pipeline::Cancellation;
use types::model::{Bank, LogPosition, UnitId};

/// Most units of one request.
const MAX_UNITS: usize = 200;

/// Units to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShowUnits")]
pub struct UnitListRequest {
    /// Their bank.
    pub bank: Bank,
    /// The units, as answers name them; at most 200.
    #[schemars(with = "Vec<UnitId>", length(min = 1, max = 200))]
    pub ids: Vec<String>,
}

/// Units of a bank, as of one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Units")]
pub struct UnitList {
    /// The bank.
    pub bank: Bank,
    /// Those that the bank has, in the order of the request, each once; without their edges.
    pub units: Vec<WholeUnit>,
    /// Those that it has not, or not any more.
    pub missing: Vec<UnitId>,
    /// The offsets that this reflects.
    pub reflects: Vec<LogPosition>,
}

impl MemoryApi {
    /// Units of a bank, all as of one moment.
    ///
    /// # Errors
    /// [`ApiProblem`]: an unknown bank, or too many units.
    pub async fn units(&self, who: &Caller, show: UnitListRequest) -> Result<UnitList, ApiProblem> {
        let UnitListRequest { bank, ids } = show;
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        if ids.is_empty() || ids.len() > MAX_UNITS {
            let units = ids.len();
            return Err(ApiProblem::invalid(format!(
                "ids: {units} units; allowed are 1 to {MAX_UNITS} in one request"
            )));
        }
        let mut wanted = ids.iter().map(|id| unit_id("ids", id)).collect::<Result<Vec<_>, _>>()?;
        let mut seen = HashSet::new();
        wanted.retain(|id| seen.insert(*id));
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        let units = move |_: &Cancellation| {
            let DataflowAnswer { value, reflects, .. } = memory.replica().units(&of, wanted.clone())?;
            let found: HashMap<UnitId, Arc<UnitBody>> = value.into_iter().map(|unit| (unit.id, unit)).collect();
            let (held, missing): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|id| found.contains_key(id));
            let units = held.iter().filter_map(|id| found.get(id)).map(whole_unit).collect();
            Ok(UnitList { bank: of, units, missing, reflects })
        };
        self.read(who, &bank, ReadScope::Little, units).await
    }
}
