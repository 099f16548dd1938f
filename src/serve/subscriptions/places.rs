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
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// In all.
    pub all: usize,
    /// Of one token.
    pub of_token: usize,
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
            let detail = format!("{most} subscriptions {whose} already; end one, or raise {key}");
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
