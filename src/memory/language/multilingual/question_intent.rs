//! How a question asks, by the phrases of its language.
//!
//! In: a question and its language, which is not English. Out: what it asks for, if a phrase of the table shows that,
//! and whether it is in the first person. In a language with spaces, a phrase must match whole words.

use super::{language_table::entry, stem_analyzer::word_ranges, writing_script::is_unspaced};
use types::model::Language;

/// What a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionIntent {
    /// A time.
    When,
    /// A number.
    Count,
    /// Several things.
    List,
    /// Yes or no, or what would happen.
    Whether,
    /// An order.
    Order,
    /// A summary.
    Summary,
}

/// What a question asks for; none if no phrase shows it.
#[must_use]
pub fn question_intent(text: &str, language: Language) -> Option<QuestionIntent> {
    let entry = entry(language)?;
    let plain = space_words(&text.to_lowercase());
    let holds = |phrases: &str| phrases.split('|').any(|phrase| contains(&plain, phrase));
    // A yes-or-no question shows in its first words, or in its last words if the language asks at the end.
    let whether = entry.whether.split('|').any(|phrase| {
        let found =
            if phrase.contains(is_unspaced) { plain.contains(phrase) } else { plain.starts_with(&space_words(phrase)) };
        found && !phrase.is_empty()
    });
    [
        (QuestionIntent::Summary, holds(entry.summary)),
        (QuestionIntent::Order, holds(entry.order)),
        (QuestionIntent::When, holds(entry.when)),
        (QuestionIntent::Count, holds(entry.count)),
        (QuestionIntent::List, holds(entry.list)),
        (QuestionIntent::Whether, whether),
    ]
    .into_iter()
    .find_map(|(asked, holds)| holds.then_some(asked))
}

/// Whether a text says "I" or "my" in its language.
#[must_use]
pub fn is_first_person(text: &str, language: Language) -> bool {
    let Some(entry) = entry(language) else { return false };
    let lower = text.to_lowercase();
    let said = |word: &str| entry.me.split(' ').any(|me| me == word);
    word_ranges(&lower)
        .into_iter()
        .filter_map(|range| lower.get(range))
        .any(|word| said(word) || word.split(['\'', '\u{2019}']).next().is_some_and(said))
}

/// The words of a text with one space around each; text in scripts without spaces stays as it is.
fn space_words(text: &str) -> String {
    let mut out = String::from(" ");
    for word in text.split(|c: char| !c.is_alphanumeric() && !is_unspaced(c) && !is_sign(c)).filter(|w| !w.is_empty()) {
        out.push_str(word);
        out.push(' ');
    }
    out
}

/// A sign that is part of a word, such as a vowel of Hindi, or a hyphen.
fn is_sign(c: char) -> bool {
    matches!(c, '-' | '\u{900}'..='\u{963}' | '\u{300}'..='\u{36f}')
}

fn contains(plain: &str, phrase: &str) -> bool {
    if phrase.contains(is_unspaced) {
        return plain.contains(phrase);
    }
    // A longer phrase may end in the beginning of a word: "chronologi", "resum".
    plain.contains(&format!(" {phrase}")) && (phrase.chars().count() > 5 || plain.contains(&format!(" {phrase} ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row per language: a question for a time, one for a number, and one in the first person. The phrases are the
    /// ones that each language's grammar has for these words.
    #[test]
    fn questions_are_read_in_each_language() {
        use Language::*;
        for (language, when, count, mine) in [
            (De, "Wann ist Anna umgezogen?", "Wie viele Katzen hat Anna?", "Wo ist mein Rad?"),
            (Es, "¿Cuándo se mudó Ana?", "¿Cuántos gatos tiene Ana?", "¿Dónde está mi bici?"),
            (Fr, "Quand Anne a-t-elle déménagé ?", "Combien de chats a Anne ?", "Où est mon vélo ?"),
            (It, "Quando si è trasferita Anna?", "Quanti gatti ha Anna?", "Dov'è la mia bici?"),
            (Pt, "Quando a Ana se mudou?", "Quantos gatos tem a Ana?", "Onde está minha bicicleta?"),
            (Nl, "Wanneer is Anna verhuisd?", "Hoeveel katten heeft Anna?", "Waar is mijn fiets?"),
            (Pl, "Kiedy Anna się przeprowadziła?", "Ile kotów ma Anna?", "Gdzie jest mój rower?"),
            (Ru, "Когда Анна переехала?", "Сколько у Анны кошек?", "Где мой велосипед?"),
            (Uk, "Коли Анна переїхала?", "Скільки котів має Анна?", "Де мій велосипед?"),
            (Tr, "Anna ne zaman taşındı?", "Anna'nın kaç kedisi var?", "Benim bisikletim nerede?"),
            (El, "Πότε μετακόμισε η Άννα;", "Πόσες γάτες έχει η Άννα;", "Πού είναι το ποδήλατό μου;"),
            (Ar, "متى انتقلت آنا؟", "كم قطة لدى آنا؟", "أين أنا الآن؟"),
            (Fa, "آنا چه زمانی نقل مکان کرد؟", "آنا چند گربه دارد؟", "دوچرخه من کجاست؟"),
            (Hi, "अन्ना कब गई?", "अन्ना के पास कितनी बिल्लियाँ हैं?", "मेरी साइकिल कहाँ है?"),
            (Id, "Kapan Anna pindah?", "Berapa kucing Anna?", "Di mana sepeda saya?"),
            (Vi, "Anna chuyển nhà khi nào?", "Anna có bao nhiêu con mèo?", "Xe đạp của tôi ở đâu?"),
            (Th, "แอนนาย้ายบ้านเมื่อไหร่", "แอนนามีแมวกี่ตัว", "จักรยานของฉันอยู่ที่ไหน"),
            (Zh, "安娜什么时候搬家的？", "安娜有多少只猫？", "我的自行车在哪里？"),
            (Ja, "アンナはいつ引っ越しましたか？", "アンナは猫を何匹飼っていますか？", "私の自転車はどこですか？"),
            (Ko, "안나는 언제 이사했어?", "안나는 고양이가 몇 마리야?", "내 자전거 어디 있어?"),
        ] {
            assert_eq!(question_intent(when, language), Some(QuestionIntent::When), "{when}");
            assert_eq!(question_intent(count, language), Some(QuestionIntent::Count), "{count}");
            assert!(is_first_person(mine, language), "{mine}");
            assert!(!is_first_person(when, language), "{when}");
        }
        assert_eq!(question_intent("Fasse zusammen, was ich gesagt habe", De), Some(QuestionIntent::Summary));
        assert_eq!(question_intent("按什么顺序发生的？", Zh), Some(QuestionIntent::Order));
        assert_eq!(question_intent("Ist Anna verheiratet?", De), Some(QuestionIntent::Whether));
        assert_eq!(question_intent("Welche Filme mag Anna?", De), Some(QuestionIntent::List));
        assert_eq!(question_intent("Wo wohnt Anna?", De), None);
        assert_eq!(question_intent("When?", En), None);
    }
}
