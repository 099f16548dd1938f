//! Whether a clause says that something was arranged for a date, which is then still to come.
//!
//! In: a clause's words in lower case and the place of a date in it; or a text in another language. Out: whether the
//! date is that of what was arranged: "I've booked the hut, 20 to 22 November". In "I booked the hut on 5 November",
//! the date is that of the booking. Nothing outside the given clause is read.

use types::model::Language;

/// Past forms of verbs that arrange something for later.
const ARRANGED: [&str; 8] =
    ["arranged", "booked", "organised", "organized", "prebooked", "registered", "reserved", "signed"];
/// Forms of verbs whose date is always that of what is to come: "I managed to plan a trip on the 10th".
const PLANS: [&str; 7] = ["plan", "planned", "planning", "postponed", "rescheduled", "schedule", "scheduled"];
/// Past forms of verbs that arrange something if what they get is a ticket.
const ACQUIRED: [&str; 5] = ["bought", "got", "ordered", "paid", "purchased"];
const TICKETS: [&str; 8] = ["ticket", "tickets", "flight", "flights", "pass", "passes", "seat", "seats"];
/// Words before a date that make it the date of the verb itself.
const DATES_THE_VERB: [&str; 7] = ["on", "in", "at", "during", "since", "back", "by"];
/// How many words before the verb its auxiliary may be: "have just now booked".
const AUXILIARY_REACH: usize = 3;

/// Whether a clause says that something was arranged for the date at `at`, an index into its words.
#[must_use]
pub fn is_arranged_date(clause: &[&str], at: usize) -> bool {
    let word = |i: usize| clause.get(i).copied().unwrap_or_default();
    let arranges = |i: usize| {
        ARRANGED.contains(&word(i))
            || PLANS.contains(&word(i))
            || ACQUIRED.contains(&word(i)) && (i + 1..at).any(|object| TICKETS.contains(&word(object)))
    };
    let is_verb = |i: &usize| arranges(*i) || is_other_past(word(*i));
    let Some(verb) = (0..at).rev().find(is_verb).filter(|verb| arranges(*verb)) else { return false };
    // A perfect has no date of its own, and neither has a state: "is booked".
    let auxiliary = (verb.saturating_sub(AUXILIARY_REACH)..verb)
        .any(|i| matches!(word(i), "have" | "has" | "ve" | "is" | "are" | "am" | "been" | "s" | "re" | "m"));
    let before = at.checked_sub(1).map(word).unwrap_or_default();
    auxiliary || PLANS.contains(&word(verb)) || !DATES_THE_VERB.contains(&before)
}

fn is_other_past(word: &str) -> bool {
    (word.len() > 4 && word.ends_with("ed")) || matches!(word, "was" | "were" | "did" | "had" | "met" | "went" | "saw")
}

/// Whether a text in another language than English arranges something. False for languages without words here.
#[must_use]
pub fn arranges_in(lower: &str, language: Language) -> bool {
    let words: &[&str] = match language {
        Language::De => &["gebucht", "reserviert", "geplant", "vereinbart", "verabredet"],
        Language::Fr => &["réservé", "prévu", "planifié", "programmé"],
        Language::Es => &["reservado", "reservé", "planeado", "programado", "previsto"],
        Language::Zh => &["预订", "预定", "预约", "订了", "计划", "安排"],
        _ => &[],
    };
    words.iter().any(|word| lower.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_after_an_arrangement_is_that_of_what_was_arranged() {
        let check = |clause: &str, date: &str, expected: bool| {
            let words: Vec<&str> = clause.split(' ').collect();
            let at = words.iter().position(|word| *word == date).unwrap();
            assert_eq!(is_arranged_date(&words, at), expected, "{clause}");
        };
        check("i ' ve booked the hut for them , 20 to 22 november", "20", true);
        check("we have already booked a table on 5 november", "5", true);
        check("i booked the hut for 20 november", "20", true);
        check("the hut is booked from 20 november", "20", true);
        check("i bought two tickets for 3 may", "3", true);
        check("i managed to plan a trip to athens on the 10th of february", "10th", true);
        check("i booked the hut on 5 november", "5", false);
        check("i bought a coat for 3 may", "3", false);
        check("i booked the hut and we met 3 may", "3", false);
        check("we were there 3 may", "3", false);
    }
}
