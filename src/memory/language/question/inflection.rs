//! Turns verbs of a question into verbs of a statement.
//!
//! In: the base form of an English verb, as it follows "did" or "does". Out: its past form, or its third-person form.
//! Unknown verbs follow the regular rules; nothing fails.

/// Base forms and past forms of common irregular verbs.
const IRREGULAR: &[(&str, &str)] = &[
    ("be", "was"),
    ("become", "became"),
    ("begin", "began"),
    ("bite", "bit"),
    ("break", "broke"),
    ("bring", "brought"),
    ("build", "built"),
    ("buy", "bought"),
    ("catch", "caught"),
    ("choose", "chose"),
    ("come", "came"),
    ("cut", "cut"),
    ("do", "did"),
    ("draw", "drew"),
    ("drink", "drank"),
    ("drive", "drove"),
    ("eat", "ate"),
    ("fall", "fell"),
    ("feed", "fed"),
    ("feel", "felt"),
    ("fight", "fought"),
    ("find", "found"),
    ("fly", "flew"),
    ("forget", "forgot"),
    ("get", "got"),
    ("give", "gave"),
    ("go", "went"),
    ("grow", "grew"),
    ("have", "had"),
    ("hear", "heard"),
    ("hide", "hid"),
    ("hit", "hit"),
    ("hold", "held"),
    ("hurt", "hurt"),
    ("keep", "kept"),
    ("know", "knew"),
    ("lead", "led"),
    ("leave", "left"),
    ("lend", "lent"),
    ("let", "let"),
    ("lose", "lost"),
    ("make", "made"),
    ("mean", "meant"),
    ("meet", "met"),
    ("overcome", "overcame"),
    ("pay", "paid"),
    ("put", "put"),
    ("read", "read"),
    ("ride", "rode"),
    ("ring", "rang"),
    ("run", "ran"),
    ("say", "said"),
    ("see", "saw"),
    ("sell", "sold"),
    ("send", "sent"),
    ("set", "set"),
    ("show", "showed"),
    ("sing", "sang"),
    ("sit", "sat"),
    ("sleep", "slept"),
    ("speak", "spoke"),
    ("spend", "spent"),
    ("stand", "stood"),
    ("steal", "stole"),
    ("swim", "swam"),
    ("take", "took"),
    ("teach", "taught"),
    ("tell", "told"),
    ("think", "thought"),
    ("throw", "threw"),
    ("understand", "understood"),
    ("wear", "wore"),
    ("win", "won"),
    ("write", "wrote"),
];

/// The past form of a verb.
pub(super) fn past(base: &str) -> String {
    if let Some((_, past)) = IRREGULAR.iter().find(|(b, _)| *b == base) {
        return (*past).to_owned();
    }
    if base.ends_with('e') {
        return format!("{base}d");
    }
    match (base.strip_suffix('y'), doubled_letter(base)) {
        (Some(stem), _) if !ends_in_vowel(stem) => format!("{stem}ied"),
        (_, Some(last)) => format!("{base}{last}ed"),
        _ => format!("{base}ed"),
    }
}

/// The third-person present form of a verb.
pub(super) fn third_person(base: &str) -> String {
    match base {
        "have" => return "has".to_owned(),
        "be" => return "is".to_owned(),
        _ => {}
    }
    match base.strip_suffix('y') {
        Some(stem) if !ends_in_vowel(stem) => format!("{stem}ies"),
        _ if ["s", "x", "z", "ch", "sh", "o"].iter().any(|e| base.ends_with(e)) => format!("{base}es"),
        _ => format!("{base}s"),
    }
}

fn ends_in_vowel(text: &str) -> bool {
    text.ends_with(['a', 'e', 'i', 'o', 'u'])
}

/// The last letter of a short verb, if the past form doubles it: plan, stop, but not visit or play.
fn doubled_letter(base: &str) -> Option<char> {
    let vowels = base.chars().filter(|c| "aeiou".contains(*c)).count();
    let mut back = base.chars().rev();
    let (last, before) = (back.next()?, back.next()?);
    (vowels == 1 && "aeiou".contains(before) && !"aeiouwxy".contains(last) && base.len() > 2).then_some(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_of_regular_and_irregular_verbs() {
        let cases = [
            ("go", "went"),
            ("bake", "baked"),
            ("plan", "planned"),
            ("visit", "visited"),
            ("study", "studied"),
            ("play", "played"),
            ("paint", "painted"),
            ("recommend", "recommended"),
            ("show", "showed"),
            ("fix", "fixed"),
            ("", "ed"),
        ];
        for (base, expected) in cases {
            assert_eq!(past(base), expected);
        }
    }

    #[test]
    fn the_third_person_of_verbs() {
        for (base, expected) in
            [("like", "likes"), ("teach", "teaches"), ("study", "studies"), ("go", "goes"), ("have", "has")]
        {
            assert_eq!(third_person(base), expected);
        }
    }
}
