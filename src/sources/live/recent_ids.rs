//! Remembers the most recent ids, to recognise requests that are sent again.
//!
//! In: ids. Out: whether an id is new. Keeps the last 512; platforms send a request again within
//! minutes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

const KEPT: usize = 512;

/// The last ids.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct RecentIds(VecDeque<String>);

impl RecentIds {
    /// Whether an id is new; from now on it counts as known.
    pub(super) fn is_new(&mut self, id: &str) -> bool {
        if self.0.iter().any(|known| known == id) {
            return false;
        }
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back(id.to_owned());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_and_again_after_many_others() {
        let mut recent = RecentIds::default();
        assert!(recent.is_new("a") && !recent.is_new("a"));
        let stored = serde_json::to_string(&recent).unwrap();
        assert_eq!(stored, "[\"a\"]");
        assert!(!serde_json::from_str::<RecentIds>(&stored).unwrap().is_new("a"));
        for other in 0..KEPT {
            assert!(recent.is_new(&other.to_string()));
        }
        assert!(recent.is_new("a"));
    }
}
