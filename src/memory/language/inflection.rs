//! Forms of English verbs.
//!
//! In: the base form of a verb, as it follows "did" or "does"; or any word. Out: the verb's past form or third-person
//! form; the base form of a word that is an irregular form. Unknown verbs follow the regular rules; nothing fails.

use std::{collections::HashMap, sync::LazyLock};

/// Base forms, past forms and participles of common irregular verbs. A form that is rather a noun ("rose", "wound") is
/// left out.
const IRREGULAR: &[(&str, &str, &str)] = &[
    ("be", "was", "been"),
    ("become", "became", "become"),
    ("begin", "began", "begun"),
    ("bite", "bit", "bitten"),
    ("blow", "blew", "blown"),
    ("break", "broke", "broken"),
    ("bring", "brought", "brought"),
    ("build", "built", "built"),
    ("burn", "burnt", "burnt"),
    ("buy", "bought", "bought"),
    ("catch", "caught", "caught"),
    ("choose", "chose", "chosen"),
    ("come", "came", "come"),
    ("cut", "cut", "cut"),
    ("deal", "dealt", "dealt"),
    ("dig", "dug", "dug"),
    ("do", "did", "done"),
    ("draw", "drew", "drawn"),
    ("dream", "dreamt", "dreamt"),
    ("drink", "drank", "drunk"),
    ("drive", "drove", "driven"),
    ("eat", "ate", "eaten"),
    ("fall", "fell", "fallen"),
    ("feed", "fed", "fed"),
    ("feel", "felt", "felt"),
    ("fight", "fought", "fought"),
    ("find", "found", "found"),
    ("flee", "fled", "fled"),
    ("fly", "flew", "flown"),
    ("forget", "forgot", "forgotten"),
    ("forgive", "forgave", "forgiven"),
    ("freeze", "froze", "frozen"),
    ("get", "got", "gotten"),
    ("give", "gave", "given"),
    ("go", "went", "gone"),
    ("grow", "grew", "grown"),
    ("hang", "hung", "hung"),
    ("have", "had", "had"),
    ("hear", "heard", "heard"),
    ("hide", "hid", "hidden"),
    ("hit", "hit", "hit"),
    ("hold", "held", "held"),
    ("hurt", "hurt", "hurt"),
    ("keep", "kept", "kept"),
    ("kneel", "knelt", "knelt"),
    ("know", "knew", "known"),
    ("lead", "led", "led"),
    ("lean", "leant", "leant"),
    ("learn", "learnt", "learnt"),
    ("leave", "left", "left"),
    ("lend", "lent", "lent"),
    ("let", "let", "let"),
    ("light", "lit", "lit"),
    ("lose", "lost", "lost"),
    ("make", "made", "made"),
    ("mean", "meant", "meant"),
    ("meet", "met", "met"),
    ("overcome", "overcame", "overcome"),
    ("pay", "paid", "paid"),
    ("put", "put", "put"),
    ("read", "read", "read"),
    ("rebuild", "rebuilt", "rebuilt"),
    ("ride", "rode", "ridden"),
    ("ring", "rang", "rung"),
    ("run", "ran", "run"),
    ("say", "said", "said"),
    ("see", "saw", "seen"),
    ("seek", "sought", "sought"),
    ("sell", "sold", "sold"),
    ("send", "sent", "sent"),
    ("set", "set", "set"),
    ("shake", "shook", "shaken"),
    ("shine", "shone", "shone"),
    ("show", "showed", "shown"),
    ("shrink", "shrank", "shrunk"),
    ("sing", "sang", "sung"),
    ("sink", "sank", "sunk"),
    ("sit", "sat", "sat"),
    ("sleep", "slept", "slept"),
    ("slide", "slid", "slid"),
    ("smell", "smelt", "smelt"),
    ("speak", "spoke", "spoken"),
    ("spell", "spelt", "spelt"),
    ("spend", "spent", "spent"),
    ("spill", "spilt", "spilt"),
    ("spin", "spun", "spun"),
    ("stand", "stood", "stood"),
    ("steal", "stole", "stolen"),
    ("stick", "stuck", "stuck"),
    ("sting", "stung", "stung"),
    ("strike", "struck", "struck"),
    ("swear", "swore", "sworn"),
    ("sweep", "swept", "swept"),
    ("swim", "swam", "swum"),
    ("swing", "swung", "swung"),
    ("take", "took", "taken"),
    ("teach", "taught", "taught"),
    ("tear", "tore", "torn"),
    ("tell", "told", "told"),
    ("think", "thought", "thought"),
    ("throw", "threw", "thrown"),
    ("understand", "understood", "understood"),
    ("wake", "woke", "woken"),
    ("wear", "wore", "worn"),
    ("weep", "wept", "wept"),
    ("win", "won", "won"),
    ("withdraw", "withdrew", "withdrawn"),
    ("write", "wrote", "written"),
];

/// The past form of a verb.
pub(in crate::language) fn past(base: &str) -> String {
    if let Some((_, past, _)) = IRREGULAR.iter().find(|(known, ..)| *known == base) {
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
pub(in crate::language) fn third_person(base: &str) -> String {
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

/// The base form of a word in lower case that is an irregular form of a verb: "buy" of "bought".
#[must_use]
pub fn base_form(word: &str) -> Option<&'static str> {
    static BASES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
        let forms = IRREGULAR.iter().flat_map(|(base, past, participle)| [(*past, *base), (*participle, *base)]);
        forms.filter(|(form, base)| form != base).collect()
    });
    BASES.get(word).copied()
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
    fn irregular_forms_have_a_base_form() {
        let cases = [("bought", Some("buy")), ("broken", Some("break")), ("cut", None), ("walked", None), ("", None)];
        for (form, base) in cases {
            assert_eq!(base_form(form), base, "{form}");
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
