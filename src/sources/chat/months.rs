//! Names of months in other languages than English.
//!
//! In: a word. Out: the month that it names, from 1, in the languages in which programs that people chat with write
//! dates. The first letters decide.

/// The month of a name in another language, whole or cut.
pub(crate) fn foreign_month(word: &str) -> Option<i8> {
    const STARTS: [(&str, i8); 36] = [
        ("jän", 1),
        ("jan", 1),
        ("ene", 1),
        ("gen", 1),
        ("tammi", 1),
        ("sty", 1),
        ("fév", 2),
        ("fev", 2),
        ("feb", 2),
        ("helmi", 2),
        ("mär", 3),
        ("mrz", 3),
        ("maalis", 3),
        ("marras", 11),
        ("mar", 3),
        ("avr", 4),
        ("abr", 4),
        ("huhti", 4),
        ("mai", 5),
        ("maj", 5),
        ("mei", 5),
        ("may", 5),
        ("mag", 5),
        ("giu", 6),
        ("juin", 6),
        ("juil", 7),
        ("lug", 7),
        ("aoû", 8),
        ("ago", 8),
        ("set", 9),
        ("okt", 10),
        ("out", 10),
        ("ott", 10),
        ("dez", 12),
        ("dic", 12),
        ("des", 12),
    ];
    let word = word.to_lowercase();
    STARTS.iter().find(|(start, _)| word.starts_with(start)).map(|(_, month)| *month)
}
