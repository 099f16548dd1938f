//! The points of a bank's past that a question can be asked about.
//!
//! In: a bank that the caller may read. Out: the points at which `as_of` answers, a page of them. Nothing is said of
//! other banks, not even when they changed.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{memory_api::MemoryApi, problem::ApiProblem, read_limiters::ReadScope};
use crate::access::{AccessRight, Caller};
use snapshots::HistoryPoint;
use types::model::Bank;

/// Points of a page, if the request does not say.
const LISTED: usize = 200;
/// Most points of a page.
const MAX_LISTED: usize = 1_000;

/// Which points of a bank's past are listed.
#[derive(Debug, Clone)]
pub struct HistoryRequest {
    /// The bank.
    pub bank: Bank,
    /// Those before this offset.
    pub before: Option<u64>,
    /// Most of them, the latest; 200 without it.
    pub limit: Option<usize>,
}

/// The points of a bank's past that `as_of` answers for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "History")]
pub struct HistoryPage {
    /// The bank.
    pub bank: Bank,
    /// The latest points, oldest first. An offset between two of them answers as the earlier one; before the first of
    /// all there is no answer.
    pub points: Vec<HistoryPointView>,
    /// The first of all points; absent where no history is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<HistoryPointView>,
    /// The last of all points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<HistoryPointView>,
    /// How many points before those in `points` are not listed.
    pub more: u64,
}

/// A point of a bank's past: the end of a read of the memory log after which the bank differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Point")]
pub struct HistoryPointView {
    /// The offset in the bank's partition of the memory log, as `as_of` takes it.
    pub offset: String,
    /// When its record was appended, in milliseconds since 1970.
    pub append_ms: i64,
}

impl From<&HistoryPoint> for HistoryPointView {
    fn from(point: &HistoryPoint) -> Self {
        Self { offset: point.offset.to_string(), append_ms: point.append_ms }
    }
}

impl HistoryPage {
    fn page(bank: Bank, points: &[HistoryPoint], before: Option<u64>, limit: usize) -> Self {
        let end = points.partition_point(|point| before.is_none_or(|before| point.offset < before));
        let (earlier, listed) = points[..end].split_at(end.saturating_sub(limit));
        Self {
            bank,
            points: listed.iter().map(HistoryPointView::from).collect(),
            oldest: points.first().map(HistoryPointView::from),
            newest: points.last().map(HistoryPointView::from),
            more: earlier.len() as u64,
        }
    }
}

impl MemoryApi {
    /// The points of a bank's past that a question can be asked about; none if no snapshots are kept.
    ///
    /// # Errors
    /// [`ApiProblem`]: an unknown bank, a wrong limit, or a place of snapshots that cannot be read.
    pub async fn history(&self, who: &Caller, list: HistoryRequest) -> Result<HistoryPage, ApiProblem> {
        let HistoryRequest { bank, before, limit } = list;
        who.may_in(AccessRight::Read, &bank)?;
        self.check_here(&bank)?;
        let limit = limit.unwrap_or(LISTED);
        if limit == 0 || limit > MAX_LISTED {
            return Err(ApiProblem::invalid(format!("limit: {limit} is out of range; allowed is 1 to {MAX_LISTED}")));
        }
        let (memory, of) = (Arc::clone(&self.memory), bank.clone());
        let points = self.read(who, &bank, ReadScope::AllOfIt, move |_| Ok(memory.replica().history(&of)?)).await?;
        Ok(HistoryPage::page(bank, &points, before, limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_latest_points_and_says_how_many_come_before() {
        let points: Vec<HistoryPoint> = (1..=5).map(|n| HistoryPoint { offset: 10 * n, append_ms: 0 }).collect();
        let page = |before, limit| {
            let HistoryPage { points, oldest, newest, more, .. } =
                HistoryPage::page(Bank::parse("b").expect("a name"), &points, before, limit);
            assert_eq!(
                (oldest.map(|at| at.offset), newest.map(|at| at.offset)),
                (Some("10".into()), Some("50".into()))
            );
            (points.into_iter().map(|point| point.offset).collect::<Vec<_>>().join(" "), more)
        };
        assert_eq!(page(None, 2), ("40 50".to_owned(), 3));
        assert_eq!(page(Some(40), 2), ("20 30".to_owned(), 1));
        assert_eq!(page(Some(20), 2), ("10".to_owned(), 0));
        assert_eq!(page(Some(10), 2), (String::new(), 0));
        assert_eq!(page(None, 100), ("10 20 30 40 50".to_owned(), 0));
    }
}
