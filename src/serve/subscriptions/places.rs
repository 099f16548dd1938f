//! How many may do what takes long, in all and by token: follow a question, or await an answer in words.
//!
//! In: the name of who wants to. Out: a place, which is free again when it is dropped, or a problem that says
//! what to do.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use crate::{
    serve::api::{Code, Problem},
    sync,
};

/// Most places.
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

/// What is said, behind the limit, where no place is free.
pub struct Refusals {
    /// In all.
    pub all: &'static str,
    /// For one token.
    pub of_token: &'static str,
}

/// What is said of subscriptions.
pub(super) const SUBSCRIPTIONS: Refusals = Refusals {
    all: "subscriptions are open already; end one, or raise http.subscriptions and the system's limit on open files",
    of_token: "subscriptions of this token are open already; end one, or raise http.subscriptions_of_token and the \
               system's limit on open files",
};

/// All places.
pub struct Places {
    limits: Limits,
    refusals: Refusals,
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
    /// Places within limits; `refusals` is what is said where none is free.
    #[must_use]
    pub fn new(limits: Limits, refusals: Refusals) -> Self {
        Self { limits, refusals, taken: Mutex::default() }
    }

    /// The limits.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Takes a place; `token` is the name of a token, where one is asked for.
    ///
    /// # Errors
    /// [`Code::Busy`] where none is free.
    pub fn take(self: &Arc<Self>, token: Option<&str>) -> Result<Place, Problem> {
        let Limits { all, of_token } = self.limits;
        let mut taken = sync::lock(&self.taken);
        let full = |most: usize, why: &str| Err(Problem::new(Code::Busy, format!("{most} {why}")));
        if taken.all >= all {
            return full(all, self.refusals.all);
        }
        if let Some(token) = token {
            let mine = taken.by_token.entry(token.to_owned()).or_default();
            if *mine >= of_token {
                return full(of_token, self.refusals.of_token);
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
        let places = Arc::new(Places::new(Limits { all: 3, of_token: 2 }, SUBSCRIPTIONS));
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
