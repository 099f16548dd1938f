//! Names of places in English text.
//!
//! In: a text and the people known from the dialogue. Out: canonical names of places for which the text has evidence: a
//! capitalised phrase after a preposition of place or motion, or a country or state named anywhere. A time, a known
//! person or a person's house is never a place.

use super::{
    name_runs::{NameRunReader, run_end},
    name_text::{NameText, NameWord, is_name_word},
    place_rules::{TURN, is_holiday, turn_leads_to_place},
    sentences::is_common_opening,
};
use types::model::canonical_name;

/// Places that a text names, canonical, sorted, without repetition.
#[must_use]
pub fn locations(text: &str, people: &[String]) -> Vec<String> {
    NameText::of(text).locations(people)
}

impl NameText<'_> {
    /// See [`locations`].
    #[must_use]
    pub fn locations(&self, people: &[String]) -> Vec<String> {
        places(self.text, &self.words, people)
    }
}

fn places(text: &str, words: &[NameWord<'_>], people: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut i = 0;
    while let Some(word) = words.get(i) {
        let Some(next) = phrase_end(words, i) else {
            i += 1;
            continue;
        };
        let known = REGIONS.binary_search(&words_of(words, i, next).as_str()).is_ok();
        let grounded = follows_place_preposition(words, i) && !word.opens;
        let last = words.get(next - 1).unwrap_or(word);
        if (known || (grounded && may_be_place(words, i, next)))
            && !is_person(words, i, people)
            && (!last.possessive || known)
        {
            let name = canonical_name(text.get(word.range.start..last.range.end).unwrap_or_default());
            let name = name.strip_prefix("the ").map_or_else(|| name.clone(), str::to_owned);
            if !out.contains(&name) {
                out.push(name);
            }
        }
        i = next;
    }
    out.sort_unstable();
    out
}

/// The end of a capitalised phrase that starts at `i`: "Bay of Fundy", "New York City".
fn phrase_end(words: &[NameWord<'_>], i: usize) -> Option<usize> {
    PlaceNameRun(words).may_be_name(i).then(|| run_end(&PlaceNameRun(words), i))
}

/// Runs with at most one small word between two capitalised words of two letters or more.
struct PlaceNameRun<'w, 't>(&'w [NameWord<'t>]);

impl NameRunReader for PlaceNameRun<'_, '_> {
    const MAX_LINKS: usize = 1;

    fn may_be_name(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|w| is_name_word(w) && w.range.len() > 1)
    }

    fn may_link(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|w| !w.capital && matches!(&*w.lower, "of" | "de" | "del" | "la"))
    }

    fn is_joined(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|w| w.follows && !w.opens)
    }

    fn ends_run(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|w| w.possessive)
    }
}

/// Whether the words before `i` say that a place follows.
fn follows_place_preposition(words: &[NameWord<'_>], i: usize) -> bool {
    let back = |n: usize| i.checked_sub(n).and_then(|j| words.get(j)).map_or("", |w| &*w.lower);
    let article = back(1) == "the";
    let spaced = words.get(i).is_some_and(|w| w.follows);
    spaced && turn_leads_to_place(article, |n| back(n + usize::from(article)), || ends_in_place_noun(words, i))
}

/// Whether a phrase after a preposition may be a place. A single common word, an abbreviation of a subject, a language
/// and a series may not.
fn may_be_place(words: &[NameWord<'_>], i: usize, next: usize) -> bool {
    let Some(word) = words.get(i) else { return false };
    let single = next == i + 1;
    if (single && is_common_opening(&word.lower))
        || is_holiday(&word.lower, TURN)
        || NOT_PLACES.binary_search(&&*word.lower).is_ok()
    {
        return false;
    }
    let digits = word.lower.chars().any(|c| c.is_ascii_digit());
    // "in Python code", "in Disney movies": a single name before such a noun says what kind it is; it is not a place.
    let following = words.get(next).filter(|w| w.follows).map_or("", |w| &*w.lower);
    let kind = single
        && (following.ends_with("ies")
            || matches!(
                following,
                "class"
                    | "classes"
                    | "style"
                    | "code"
                    | "movie"
                    | "movies"
                    | "books"
                    | "game"
                    | "games"
                    | "food"
                    | "music"
                    | "series"
                    | "clothes"
                    | "language"
                    | "lessons"
                    | "tournament"
                    | "competition"
                    | "team"
                    | "player"
            ));
    !digits && !kind
}

fn ends_in_place_noun(words: &[NameWord<'_>], i: usize) -> bool {
    let Some(next) = phrase_end(words, i) else { return false };
    words.get(next - 1).is_some_and(|w| PLACE_NOUNS.binary_search(&&*w.lower).is_ok()) && next > i + 1
}

fn is_person(words: &[NameWord<'_>], i: usize, people: &[String]) -> bool {
    let said = words.get(i).map_or("", |w| &*w.lower);
    people.iter().any(|p| {
        let first = p.split_whitespace().next().unwrap_or_default().to_lowercase();
        first == said || (said.chars().count() >= 3 && first.starts_with(said))
    })
}

fn words_of(words: &[NameWord<'_>], i: usize, next: usize) -> String {
    words.get(i..next).unwrap_or_default().iter().map(|w| &*w.lower).collect::<Vec<_>>().join(" ")
}

/// Last words of the names of places, sorted.
const PLACE_NOUNS: &[&str] = &[
    "airport",
    "arena",
    "avenue",
    "bay",
    "beach",
    "cafe",
    "café",
    "canyon",
    "center",
    "centre",
    "church",
    "city",
    "college",
    "falls",
    "gallery",
    "garden",
    "gardens",
    "gym",
    "hall",
    "harbor",
    "harbour",
    "hospital",
    "hotel",
    "island",
    "lake",
    "library",
    "mall",
    "market",
    "mountain",
    "museum",
    "park",
    "plaza",
    "restaurant",
    "river",
    "school",
    "square",
    "stadium",
    "station",
    "street",
    "theater",
    "theatre",
    "tower",
    "university",
    "valley",
    "zoo",
];

/// Capitalised words after "in" or "at" that are neither places nor holidays, sorted.
const NOT_PLACES: &[&str] = &[
    "arabic",
    "bible",
    "chinese",
    "covid",
    "english",
    "french",
    "german",
    "god",
    "greek",
    "instagram",
    "italian",
    "japanese",
    "java",
    "javascript",
    "jesus",
    "korean",
    "latin",
    "lgbt",
    "lgbtq",
    "nba",
    "nfl",
    "portuguese",
    "pride",
    "python",
    "russian",
    "rust",
    "santa",
    "spanish",
    "tv",
    "twitter",
    "youtube",
    "zoom",
];

/// Countries and states whose name alone is enough evidence for a place, sorted. Those that are also names of people or
/// things ("Georgia", "Jordan", "Turkey", "Chad", "Virginia") are left out.
const REGIONS: &[&str] = &[
    "alabama",
    "alaska",
    "argentina",
    "arizona",
    "arkansas",
    "australia",
    "austria",
    "bangladesh",
    "belgium",
    "bolivia",
    "brazil",
    "bulgaria",
    "california",
    "cambodia",
    "cameroon",
    "canada",
    "chile",
    "china",
    "colombia",
    "colorado",
    "connecticut",
    "costa rica",
    "croatia",
    "cuba",
    "czech republic",
    "delaware",
    "denmark",
    "ecuador",
    "egypt",
    "england",
    "estonia",
    "ethiopia",
    "finland",
    "florida",
    "france",
    "germany",
    "ghana",
    "greece",
    "hawaii",
    "hungary",
    "iceland",
    "idaho",
    "illinois",
    "india",
    "indiana",
    "indonesia",
    "iowa",
    "iran",
    "iraq",
    "ireland",
    "israel",
    "italy",
    "jamaica",
    "japan",
    "kansas",
    "kentucky",
    "kenya",
    "latvia",
    "lithuania",
    "louisiana",
    "maine",
    "malaysia",
    "maryland",
    "massachusetts",
    "mexico",
    "michigan",
    "minnesota",
    "mississippi",
    "missouri",
    "montana",
    "morocco",
    "nebraska",
    "nepal",
    "netherlands",
    "nevada",
    "new hampshire",
    "new jersey",
    "new mexico",
    "new zealand",
    "nigeria",
    "north carolina",
    "north dakota",
    "norway",
    "ohio",
    "oklahoma",
    "oregon",
    "pakistan",
    "pennsylvania",
    "peru",
    "philippines",
    "poland",
    "portugal",
    "puerto rico",
    "rhode island",
    "romania",
    "russia",
    "saudi arabia",
    "scotland",
    "senegal",
    "serbia",
    "singapore",
    "slovakia",
    "slovenia",
    "south africa",
    "south carolina",
    "south dakota",
    "south korea",
    "spain",
    "sri lanka",
    "sweden",
    "switzerland",
    "taiwan",
    "tanzania",
    "tennessee",
    "texas",
    "thailand",
    "tunisia",
    "uganda",
    "ukraine",
    "united kingdom",
    "united states",
    "uruguay",
    "utah",
    "venezuela",
    "vermont",
    "vietnam",
    "wales",
    "west virginia",
    "wisconsin",
    "wyoming",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let people = ["Caroline".to_owned(), "Melanie".to_owned()];
        assert_eq!(locations(text, &people), expected, "{text}");
    }

    #[test]
    fn a_place_follows_a_preposition_of_place() {
        check("I live in New York City now", &["new york city"]);
        check("We camped near Lake Tahoe.", &["lake tahoe"]);
        check("They hiked in the Grand Canyon!", &["grand canyon"]);
        check("She moved to Boston from Sweden", &["boston", "sweden"]);
        check("We went back to Rome", &["rome"]);
        check("a trip to the Bay of Fundy", &["bay of fundy"]);
        check("We met at Central Park", &["central park"]);
        check("I visited Paris and Japan", &["japan", "paris"]);
        check("Canada is cold", &["canada"]);
    }

    #[test]
    fn without_a_rule_there_is_no_place() {
        for text in [
            "I gave it to Caroline",
            "It is in June",
            "in May",
            "at Google",
            "I talked to Sarah",
            "in Python code",
            "in English",
            "I believe in God",
            "in The end",
            "at Melanie's",
            "",
            "in",
            "to Mel",
            "Paris Hilton sang",
            "on Friday to be",
            "from Melanie",
            "I am in. Then we left",
            "in 2019 Then",
            "in I think",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn the_word_lists_are_sorted_for_searching() {
        for list in [PLACE_NOUNS, NOT_PLACES, REGIONS] {
            assert!(list.is_sorted(), "{:?}", list.windows(2).find(|w| w[0] >= w[1]));
        }
    }
}
