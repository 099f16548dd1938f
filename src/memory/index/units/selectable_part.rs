//! A turn as units hold it, as a selector compares it.
//!
//! In: a unit, and one of its parts or, for a restated memory, one of its sources. Out: what conditions ask for, each
//! read only when it is asked for: metadata lie beside the part, times and kinds in the unit's table, names in its texts.

use std::{borrow::Cow, collections::HashMap};

use super::{
    live_unit::LiveUnit,
    turn_facts::{SaidTurn, TurnFacts, named_session},
    unit_body::PartBody,
};
use types::model::{CompiledSelector, PackedMetadata, SelectableTurn, SpeakerKind};

/// A turn of a unit.
pub(in crate::index) struct SelectablePart<'u> {
    unit: &'u LiveUnit,
    /// The part that was taken from it, if there is one.
    part: Option<usize>,
    facts: Option<&'u TurnFacts>,
    /// The text of each turn whose passages are in several units.
    turn_texts: &'u HashMap<String, String>,
    /// Its id, if there is no part.
    source: &'u str,
}

impl<'u> SelectablePart<'u> {
    /// The turn of a part, which has these facts.
    pub(in crate::index) fn new(
        unit: &'u LiveUnit,
        part: usize,
        facts: Option<&'u TurnFacts>,
        turn_texts: &'u HashMap<String, String>,
    ) -> Self {
        Self { unit, part: Some(part), facts, turn_texts, source: "" }
    }

    /// Whether a selector takes all sources of a restated memory, where `names` says whether it names a speaker.
    pub(in crate::index) fn takes_all_sources(
        select: &CompiledSelector,
        unit: &'u LiveUnit,
        turn_texts: &'u HashMap<String, String>,
        names: &mut impl FnMut(&str) -> bool,
    ) -> bool {
        let own = unit.body.part(0).map(|part| part.turn);
        unit.body.sources().all(|source| {
            let part = (own == Some(source)).then_some(0);
            let facts = unit.facts_of(source).map(|facts| &**facts);
            let turn = Self { unit, part, facts, turn_texts, source };
            // Where nothing is known of a turn, nothing can be said of it.
            (part.is_some() || turn.said().is_some()) && select.takes_turn(&turn, &mut *names)
        })
    }

    fn said(&self) -> Option<&'u SaidTurn> {
        self.facts?.said.as_deref()
    }

    fn body(&self) -> Option<PartBody<'u>> {
        self.unit.body.part(self.part?)
    }
}

impl SelectableTurn for SelectablePart<'_> {
    fn turn(&self) -> &str {
        self.body().map_or(self.source, |part| part.turn)
    }

    fn speaker(&self) -> &str {
        self.said().map(|said| &*said.speaker).or_else(|| Some(self.body()?.speaker)).unwrap_or_default()
    }

    fn kind(&self) -> Option<SpeakerKind> {
        match self.said() {
            Some(said) => said.kind,
            None => self.body()?.kind,
        }
    }

    fn unix_ms(&self) -> i64 {
        let of_part = || self.unit.body.part_said_at(self.part.unwrap_or_default()).unix_ms;
        self.said().map_or_else(of_part, |said| said.unix_ms)
    }

    fn session(&self) -> Option<&str> {
        match self.facts {
            Some(facts) => facts.session.as_deref(),
            None => named_session(self.unit.body.session())[0],
        }
    }

    fn thread(&self) -> Option<&str> {
        match self.facts {
            Some(facts) => facts.thread.as_deref(),
            None => named_session(self.unit.body.session())[1],
        }
    }

    fn metadata(&self) -> Option<&PackedMetadata> {
        self.facts?.metadata.as_ref()
    }

    fn texts(&self) -> Vec<Cow<'_, str>> {
        if let Some(said) = self.said() {
            return said.texts();
        }
        let whole = self.turn_texts.get(self.turn()).map(String::as_str);
        whole.or_else(|| Some(self.body()?.text)).map(Cow::Borrowed).into_iter().collect()
    }
}
