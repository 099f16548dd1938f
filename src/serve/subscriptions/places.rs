//! How many may follow questions, in all and by token.
//!
//! In: the name of who wants to follow. Out: a place, which is free again when it is dropped, or a problem
//! that names the setting.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use crate::{
    serve::api::{Code, Problem},
    sync,
};

/// Most subscriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// In all.
    pub all: usize,
    /// Of one token.
    pub of_token: usize,
}

impl Limits {
    /// At most half of so many connections in all, and an eighth of one token: a stream keeps its connection,
    /// so others must be left for every other request.
    #[must_use]
    pub fn within(self, connections: usize) -> Self {
        Self { all: self.all.min(connections / 2), of_token: self.of_token.min(connections / 8) }
    }
}

/// All places.
pub(super) struct Places {
    limits: Limits,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    all: usize,
    by_token: HashMap<String, usize>,
}

/// One place.
pub struct Place {
    places: Arc<Places>,
    token: Option<String>,
}

impl Places {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, taken: Mutex::default() }
    }

    /// The limits.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Takes a place; `token` is the name of a token, where one is asked for.
    pub(super) fn take(self: &Arc<Self>, token: Option<&str>) -> Result<Place, Problem> {
        let Limits { all, of_token } = self.limits;
        let mut taken = sync::lock(&self.taken);
        let full = |whose: &str, most: usize, key: &str| {
            let detail = format!(
                "{most} subscriptions {whose} already; end one, or raise {key} and the system's limit on open files"
            );
            Err(Problem::new(Code::Busy, detail))
        };
        if taken.all >= all {
            return full("are open", all, "http.subscriptions");
        }
        if let Some(token) = token {
            let mine = taken.by_token.entry(token.to_owned()).or_default();
            if *mine >= of_token {
                return full("of this token are open", of_token, "http.subscriptions_of_token");
            }
            *mine += 1;
        }
        taken.all += 1;
        Ok(Place { places: Arc::clone(self), token: token.map(str::to_owned) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = sync::lock(&self.places.taken);
        taken.all -= 1;
        if let Some(token) = &self.token
            && let Some(mine) = taken.by_token.get_mut(token)
        {
            *mine -= 1;
            if *mine == 0 {
                taken.by_token.remove(token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_leave_connections_to_other_requests() {
        let wanted = Limits { all: 4_096, of_token: 1_024 };
        assert_eq!(wanted.within(8_192), wanted);
        assert_eq!(wanted.within(512), Limits { all: 256, of_token: 64 });
    }

    #[test]
    fn places_are_counted_in_all_and_by_token_and_become_free() {
        let places = Arc::new(Places::new(Limits { all: 3, of_token: 2 }));
        let detail = |refused: Result<Place, Problem>| refused.err().expect("refused").detail;
        let (one, two) = (places.take(Some("a")).unwrap(), places.take(Some("a")).unwrap());
        assert!(detail(places.take(Some("a"))).contains("http.subscriptions_of_token"));
        let three = places.take(None).unwrap();
        assert!(detail(places.take(Some("b"))).contains("http.subscriptions"));
        drop(one);
        drop(places.take(Some("a")).unwrap());
        drop((two, three));
        let taken = sync::lock(&places.taken);
        assert_eq!((taken.all, taken.by_token.len()), (0, 0));
    }
}
