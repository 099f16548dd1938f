//! Turns the drafts of one window into the texts that are embedded, and their vectors back into units.
//!
//! In: drafts, then one result per text. Out: a vector for each unit, and the vectors by which questions find each
//! part. Neighbouring parts share a pass of the model, so that each is read in the context of the other. Sentences that
//! are long enough are also embedded alone. The vector of a part together with the turn before it is the sum of their
//! vectors, which needs no pass. A passage of a long turn is embedded alone, without its speaker; code is not embedded.
//! The vector of the passages' unit is the mean of their vectors, each weighted by its bytes. If the model declines a
//! text, the vectors around it take its place; a unit whose texts are all declined has no vectors. The texts depend
//! only on the drafts of the window. Pure arithmetic.

use std::{collections::HashMap, ops::Range};

use memory::{
    extract::{DraftPart, DraftUnit, passages::is_code},
    language::{
        attachment_text::{caption, split_attachments},
        multilingual::{ends_sentence, word_count},
    },
};
use models::embed::{DeclinedPieces, SpanVectors, pool, render_parts};
use types::{
    config::EmbedSettings,
    model::{SpannedText, Vector},
};

/// The maximum number of sentence vectors of one part. In a longer text, neighbouring sentences share a vector, so that
/// a document pasted into a chat neither blocks ingestion nor exceeds a record's size.
const MAX_SENTENCE_VECTORS: usize = 256;

/// The template of a restatement and of a passage: the text alone.
const ALONE: &str = "{text}";

/// Which span of which text becomes which vector.
pub(super) struct EmbeddingLayout {
    /// The texts to embed; one may occur twice.
    pub texts: Vec<SpannedText>,
    units: Vec<UnitLayout>,
}

enum UnitLayout {
    /// The layout of turns.
    Turns { blocks: Range<usize>, parts: Vec<PartLayout>, before: Option<PartPosition> },
    /// The layout of the passages of a turn: the text of each, and its bytes.
    Passages { texts: Vec<Option<(usize, usize)>> },
}

struct PartLayout {
    position: PartPosition,
    sentences: Range<usize>,
}

/// The position of a part: a text, and a span of it.
#[derive(Clone, Copy)]
struct PartPosition {
    text: usize,
    span: usize,
}

/// The vectors of one unit.
pub(super) struct UnitVectors {
    /// The vector that semantic edges compare.
    pub whole: Vector,
    /// The vectors of its parts, in order.
    pub parts: Vec<DraftPartVectors>,
}

/// The vectors of one part.
pub(super) struct DraftPartVectors {
    /// The vectors of its sentences, or else of the whole part; empty if the unit's vector is the same.
    pub own: Vec<Vector>,
    /// The vector of this part together with the turn before it.
    pub pair: Option<Vector>,
}

impl EmbeddingLayout {
    /// The texts to embed for the drafts of one window.
    pub(super) fn of(settings: &EmbedSettings, template: &str, drafts: &[DraftUnit]) -> Self {
        let mut layout = Self { texts: Vec::new(), units: Vec::with_capacity(drafts.len()) };
        let mut known: HashMap<(&str, &str), PartPosition> = HashMap::new();
        for draft in drafts {
            if draft.parts.iter().any(|part| part.range.is_some()) {
                layout.units.push(passages(&draft.parts, &mut layout.texts));
                continue;
            }
            let template = if draft.restated { ALONE } else { template };
            let parts: Vec<(&str, &str)> = draft.parts.iter().map(words).collect();
            let first = layout.texts.len();
            let per_block = block_parts(settings, parts.len());
            layout.texts.extend(parts.chunks(per_block).map(|block| render_parts(template, block)));
            let blocks = first..layout.texts.len();
            // This is done before the draft's parts are added, since the turn before is not one of them.
            let before = draft.before.as_ref().filter(|_| settings.pairs).map(|part| {
                known.get(&(part.turn.as_str(), part.text.as_str())).copied().unwrap_or_else(|| {
                    layout.texts.push(render_parts(template, &[words(part)]));
                    PartPosition { text: layout.texts.len() - 1, span: 0 }
                })
            });
            let mut laid = Vec::with_capacity(parts.len());
            for (i, part) in draft.parts.iter().enumerate() {
                let position = PartPosition { text: first + i / per_block, span: i % per_block };
                known.insert((part.turn.as_str(), part.text.as_str()), position);
                let start = layout.texts.len();
                layout.texts.extend(separate_sentences(settings, template, &part.speaker, &part.text));
                laid.push(PartLayout { position, sentences: start..layout.texts.len() });
            }
            layout.units.push(UnitLayout::Turns { blocks, parts: laid, before });
        }
        layout
    }

    /// Assembles the units' vectors from the model's results, one per text in the same order; a declined text has none.
    /// `None` for a unit whose texts are all declined.
    pub(super) fn assemble(&self, made: &[Option<SpanVectors>], pairs: bool) -> Vec<Option<UnitVectors>> {
        let of_unit = |unit: &UnitLayout| match unit {
            UnitLayout::Turns { blocks, parts, before } => assemble(blocks, parts, *before, made, pairs),
            UnitLayout::Passages { texts } => assemble_passages(texts, made),
        };
        self.units.iter().map(of_unit).collect()
    }

    /// The parts of a unit that lack a vector, with the reason of the first; `pieces` returns which pieces of a text
    /// were declined.
    pub(super) fn declined<'d>(
        &self,
        unit: usize,
        pieces: impl Fn(usize) -> Option<&'d DeclinedPieces>,
    ) -> Option<(Vec<usize>, &'d str)> {
        let mut problem = None;
        let mut note = |text: usize, span: Option<usize>| {
            let found = pieces(text).filter(|of| of.spans.is_empty() || span.is_some_and(|at| of.spans.contains(&at)));
            problem = problem.or(found.map(|pieces| pieces.problem.as_str()));
            found.is_some()
        };
        let parts: Vec<usize> = match self.units.get(unit)? {
            UnitLayout::Turns { parts, .. } => {
                let lacks = |part: &PartLayout| {
                    let own = note(part.position.text, Some(part.position.span));
                    part.sentences.clone().fold(own, |lacks, sentence| note(sentence, None) || lacks)
                };
                parts.iter().map(lacks).enumerate().filter_map(|(at, lacks)| lacks.then_some(at)).collect()
            }
            UnitLayout::Passages { texts } => {
                let lacks = |text: &Option<(usize, usize)>| text.is_some_and(|(text, _)| note(text, None));
                texts.iter().map(lacks).enumerate().filter_map(|(at, lacks)| lacks.then_some(at)).collect()
            }
        };
        Some((parts, problem?))
    }
}

/// The texts to embed for one unit, from the (speaker, text) of its parts.
#[must_use]
pub fn unit_texts(settings: &EmbedSettings, template: &str, parts: &[(&str, &str)]) -> Vec<SpannedText> {
    let blocks = parts.chunks(block_parts(settings, parts.len())).map(|block| render_parts(template, block));
    let alone = parts.iter().flat_map(|(speaker, text)| separate_sentences(settings, template, speaker, text));
    blocks.chain(alone).collect()
}

fn words(part: &DraftPart) -> (&str, &str) {
    (&part.speaker, &part.text)
}

fn block_parts(settings: &EmbedSettings, parts: usize) -> usize {
    if settings.block_turns == 0 { parts.max(1) } else { settings.block_turns }
}

/// The sentences that get a separate vector, rendered; none in a part of one sentence.
fn separate_sentences(settings: &EmbedSettings, template: &str, speaker: &str, text: &str) -> Vec<SpannedText> {
    if settings.sentence_words == 0 {
        return Vec::new();
    }
    let pieces = pieces(text);
    if pieces.len() < 2 {
        return Vec::new();
    }
    let long = |piece: &&str| word_count(caption(piece).unwrap_or(piece)) >= settings.sentence_words;
    // Without spans, the model pools the whole text, special tokens included, as it does for a question.
    let plain = |several: &[&str]| SpannedText {
        spans: Vec::new(),
        ..render_parts(template, &[(speaker, &several.join(" "))])
    };
    let sentences: Vec<&str> = pieces.into_iter().filter(long).collect();
    sentences.chunks(sentences.len().div_ceil(MAX_SENTENCE_VECTORS).max(1)).map(plain).collect()
}

/// The sentences of a part; each shared photo or file counts as one. A sentence ends at its mark
/// whatever follows, since chat often lacks capitals.
fn pieces(text: &str) -> Vec<&str> {
    let (said, things) = split_attachments(text);
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, c) in said.char_indices() {
        let rest = said.get(at + c.len_utf8()..).unwrap_or_default();
        let ends =
            c == '\n' || ends_sentence(c) || (matches!(c, '.' | '!' | '?') && rest.starts_with(char::is_whitespace));
        if ends || rest.is_empty() {
            let piece = said.get(start..at + c.len_utf8()).unwrap_or_default().trim();
            start = at + c.len_utf8();
            if !piece.is_empty() {
                pieces.push(piece);
            }
        }
    }
    pieces.extend(things);
    pieces
}

/// The texts to embed for passages; if all of them are code, the first one.
fn passages(parts: &[DraftPart], texts: &mut Vec<SpannedText>) -> UnitLayout {
    let code_alone = parts.iter().all(|part| is_code(&part.text));
    let of_passage = |(at, part): (usize, &DraftPart)| {
        if if code_alone { at > 0 } else { is_code(&part.text) } {
            return None;
        }
        let plain = render_parts(ALONE, &[("", part.text.trim())]);
        texts.push(SpannedText { spans: Vec::new(), ..plain });
        Some((texts.len() - 1, part.text.len()))
    };
    UnitLayout::Passages { texts: parts.iter().enumerate().map(of_passage).collect() }
}

fn assemble_passages(texts: &[Option<(usize, usize)>], made: &[Option<SpanVectors>]) -> Option<UnitVectors> {
    let vector = |of: &Option<(usize, usize)>| {
        let (text, bytes) = (*of)?;
        Some((&made.get(text)?.as_ref()?.whole, bytes as f32))
    };
    let vectors: Vec<Option<(&Vector, f32)>> = texts.iter().map(vector).collect();
    let embedded: Vec<(&Vector, f32)> = vectors.iter().flatten().copied().collect();
    let (whole, is_one) = match embedded.as_slice() {
        [(only, _)] => ((*only).clone(), true),
        several => (pool(several)?, false),
    };
    let of_part = |vector: &Option<(&Vector, f32)>| DraftPartVectors {
        // If it is the same as the unit's own vector, that one is used.
        own: vector.filter(|_| !is_one).map(|(vector, _)| vector.clone()).into_iter().collect(),
        pair: None,
    };
    Some(UnitVectors { whole, parts: vectors.iter().map(of_part).collect() })
}

fn assemble(
    blocks: &Range<usize>,
    parts: &[PartLayout],
    before: Option<PartPosition>,
    made: &[Option<SpanVectors>],
    pairs: bool,
) -> Option<UnitVectors> {
    let of_text = |text: usize| made.get(text)?.as_ref();
    let at = |position: PartPosition| {
        let made = of_text(position.text)?;
        Some((made.spans.get(position.span)?, *made.weights.get(position.span)?))
    };
    let taken: Vec<Option<(&Vector, f32)>> = parts.iter().map(|part| at(part.position)).collect();
    let whole = match (blocks.len(), of_text(blocks.start)) {
        (1, Some(block)) => block.whole.clone(),
        // The model may have taken sentences of a text that it declined.
        _ => {
            let sentences = |part: &PartLayout| part.sentences.clone().filter_map(of_text).collect::<Vec<_>>();
            let known: Vec<(&Vector, f32)> = taken.iter().copied().flatten().collect();
            let alone: Vec<&SpanVectors> = parts.iter().flat_map(sentences).collect();
            pool(&known).or_else(|| pool(&alone.iter().map(|made| (&made.whole, 1.0)).collect::<Vec<_>>()))?
        }
    };
    let spans: Vec<(&Vector, f32)> = taken.iter().map(|span| span.unwrap_or((&whole, 0.0))).collect();
    let mut before = before.and_then(at);
    let mut made_parts = Vec::with_capacity(spans.len());
    for (part, span) in parts.iter().zip(&spans) {
        let alone: Vec<&SpanVectors> = part.sentences.clone().filter_map(of_text).collect();
        let pair = match before.filter(|_| pairs) {
            Some(before) => pool(&[before, *span]),
            // Without a turn before it, a part with sentence vectors is its own pair.
            None => (pairs && !alone.is_empty()).then(|| span.0.clone()),
        };
        before = Some(*span);
        let own = match (alone.is_empty(), spans.len() == 1 && pair.is_none()) {
            (true, true) => Vec::new(),
            (true, false) => vec![span.0.clone()],
            (false, _) => alone.iter().map(|vectors| vectors.whole.clone()).collect(),
        };
        made_parts.push(DraftPartVectors { own, pair });
    }
    Some(UnitVectors { whole, parts: made_parts })
}

#[cfg(test)]
mod tests {
    use super::*;
    use models::embed::{self, Embedder};
    use types::{
        config::Pipeline,
        model::{Cues, EventTime, TextFeatures},
    };

    const TEMPLATE: &str = "{speaker}: {text}";

    fn settings(block_turns: usize, sentence_words: usize, pairs: bool) -> EmbedSettings {
        let mut settings = Pipeline::parse("version = 1\nembed.model = \"fixed\"").expect("the defaults").embed;
        (settings.block_turns, settings.sentence_words, settings.pairs) = (block_turns, sentence_words, pairs);
        settings
    }

    fn part(turn: &str, text: &str) -> DraftPart {
        DraftPart {
            turn: turn.to_owned(),
            ordinal: 0,
            speaker: "A".to_owned(),
            kind: None,
            said_at: EventTime::parse("2024-01-01T00:00:00Z").expect("a time"),
            text: text.to_owned(),
            range: None,
            marks: TextFeatures::default(),
        }
    }

    fn draft(before: Option<DraftPart>, parts: &[(&str, &str)]) -> DraftUnit {
        let parts: Vec<DraftPart> = parts.iter().map(|(turn, text)| part(turn, text)).collect();
        DraftUnit {
            restatement: String::new(),
            cues: Cues::default(),
            said_at: parts[0].said_at,
            sources: parts.iter().map(|p| p.turn.clone()).collect(),
            ordinal: 0,
            before,
            parts,
            restated: false,
        }
    }

    fn texts(layout: &EmbeddingLayout) -> Vec<&str> {
        layout.texts.iter().map(|t| t.text.as_str()).collect()
    }

    fn fixed() -> Box<dyn Embedder> {
        let pipeline = Pipeline::parse("version = 1\nembed.model = \"fixed\"").expect("the defaults");
        embed::open(&pipeline.embed, &pipeline.model()).expect("no file is needed")
    }

    fn vectors(layout: &EmbeddingLayout, pairs: bool) -> Vec<UnitVectors> {
        let made: Vec<_> = made(layout).into_iter().map(Some).collect();
        layout.assemble(&made, pairs).into_iter().map(|unit| unit.expect("all are taken")).collect()
    }

    fn made(layout: &EmbeddingLayout) -> Vec<SpanVectors> {
        fixed().embed(&layout.texts).expect("the texts have their spans")
    }

    fn near(a: &Vector, text: &str) -> bool {
        let b = fixed().embed_query(text).expect("no model to fail");
        a.floats().iter().zip(b.floats().iter()).all(|(x, y)| (x - y).abs() < 1e-6)
    }

    #[test]
    fn parts_share_a_pass_and_long_sentences_get_separate_texts() {
        let drafts = [draft(None, &[("1", "One two. Three four five! Six"), ("2", "seven eight nine"), ("3", "ten")])];
        let check = |blocks, words, expected: &[&str]| {
            let layout = EmbeddingLayout::of(&settings(blocks, words, true), TEMPLATE, &drafts);
            assert_eq!(texts(&layout), expected);
            let parts = drafts[0].parts.iter().map(super::words).collect::<Vec<_>>();
            assert_eq!(unit_texts(&settings(blocks, words, true), TEMPLATE, &parts), layout.texts);
        };
        let (first, rest) = ("A: One two. Three four five! Six A: seven eight nine", "A: ten");
        check(2, 3, &[first, rest, "A: Three four five!"]);
        check(2, 2, &[first, rest, "A: One two.", "A: Three four five!"]);
        check(2, 9, &[first, rest]);
        check(0, 0, &[&format!("{first} {rest}")]);
    }

    /// All words of a document are embedded, in at most as many texts as a part may have.
    #[test]
    fn sentences_of_a_document_share_vectors() {
        let document: String = (0..1_000).map(|n| format!("Boat {n} lies there. ")).collect();
        let drafts = [draft(None, &[("1", &document)])];
        let layout = EmbeddingLayout::of(&settings(2, 3, true), TEMPLATE, &drafts);
        let alone = &texts(&layout)[1..];
        assert_eq!(alone.len(), 250, "four sentences each");
        let words: Vec<&str> = alone.iter().flat_map(|text| text.trim_start_matches("A: ").split(' ')).collect();
        assert_eq!(words, document.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn a_shared_photo_or_file_is_a_sentence() {
        assert_eq!(pieces("Look! it is mine [photo: a red kite]"), ["Look!", "it is mine", "[photo: a red kite]"]);
        assert_eq!(pieces("[photo: x. y] [shared: z]"), ["[photo: x. y]", "[shared: z]"]);
        assert_eq!(pieces("They [photo: it all"), ["They [photo: it all"]);
        assert_eq!(pieces("One. two\nthree 3.5!"), ["One.", "two", "three 3.5!"]);
        assert_eq!(pieces("我去了。你呢？好！"), ["我去了。", "你呢？", "好！"]);
        assert_eq!(pieces("मैं गया। तुम?"), ["मैं गया।", "तुम?"]);
        assert!(pieces("").is_empty());
    }

    #[test]
    fn a_part_has_vectors_of_its_sentences_and_of_the_pair_with_the_turn_before() {
        let drafts = [
            draft(Some(part("0", "zero")), &[("1", "One two. Three four"), ("2", "five"), ("3", "six")]),
            draft(Some(part("3", "six")), &[("4", "seven")]),
            draft(None, &[("5", "eight")]),
        ];
        let layout = EmbeddingLayout::of(&settings(2, 2, true), TEMPLATE, &drafts);
        // The turn before the second unit is a part of the first: it is not embedded again.
        let expected = [
            "A: One two. Three four A: five",
            "A: six",
            "A: zero",
            "A: One two.",
            "A: Three four",
            "A: seven",
            "A: eight",
        ];
        assert_eq!(texts(&layout), expected);
        let found = vectors(&layout, true);
        let of = |unit: usize, part: usize| &found[unit].parts[part];
        assert!(near(&found[0].whole, "A one two three four A five A six"));
        assert_eq!(of(0, 0).own.len(), 2);
        assert!(near(&of(0, 0).own[1], "A Three four"));
        assert!(near(&of(0, 1).own[0], "A five"));
        assert!(near(of(0, 0).pair.as_ref().expect("a turn before"), "A zero A one two three four"));
        assert!(near(of(0, 2).pair.as_ref().expect("a turn before"), "A five A six"));
        assert!(near(of(1, 0).pair.as_ref().expect("a turn before"), "A six A seven"));
        assert!(near(&of(1, 0).own[0], "A seven"));
        // A single part without a turn before it has only the unit's vector.
        assert!(of(2, 0).own.is_empty() && of(2, 0).pair.is_none());
    }

    #[test]
    fn the_paper_profile_has_one_vector_a_unit_and_no_pairs() {
        let drafts = [draft(Some(part("0", "zero")), &[("1", "One two. Three four")])];
        let layout = EmbeddingLayout::of(&settings(0, 0, false), TEMPLATE, &drafts);
        assert_eq!(texts(&layout), ["A: One two. Three four"]);
        let found = vectors(&layout, false);
        assert!(found[0].parts[0].own.is_empty() && found[0].parts[0].pair.is_none());
    }

    #[test]
    fn a_unit_has_vectors_as_long_as_one_of_its_texts_is_taken() {
        let layout =
            EmbeddingLayout::of(&settings(1, 1, true), TEMPLATE, &[draft(None, &[("1", "One. Two"), ("2", "three")])]);
        assert_eq!(texts(&layout), ["A: One. Two", "A: three", "A: One.", "A: Two"]);
        let taken = |which: &[usize]| {
            let made = made(&layout).into_iter().enumerate();
            let made: Vec<_> = made.map(|(at, vectors)| which.contains(&at).then_some(vectors)).collect();
            layout.assemble(&made, true).remove(0)
        };
        assert!(taken(&[]).is_none() && (0..4).all(|only| taken(&[only]).is_some()));
        let of_second = taken(&[1]).expect("one is taken");
        assert!(near(&of_second.whole, "A: three"));
        // A declined sentence is found through the vectors of the text around it.
        assert!(near(&of_second.parts[0].own[0], "A: three") && of_second.parts.len() == 2);
        assert!(near(&taken(&[2]).expect("one is taken").whole, "A: One."));
    }

    #[test]
    fn the_parts_that_lack_a_vector_are_named() {
        let pieces = |spans: &[usize]| DeclinedPieces { problem: "no".to_owned(), spans: spans.to_vec() };
        let check = |blocks, declined: (usize, &[usize]), expected: Option<&[usize]>| {
            let drafts = [draft(None, &[("1", "One. Two"), ("2", "three"), ("3", "four")])];
            let layout = EmbeddingLayout::of(&settings(blocks, 1, true), TEMPLATE, &drafts);
            let pieces = pieces(declined.1);
            let found = layout.declined(0, |text| (text == declined.0).then_some(&pieces));
            assert_eq!(found.map(|(parts, _)| parts), expected.map(<[usize]>::to_vec), "{blocks} {declined:?}");
        };
        check(0, (0, &[1]), Some(&[1]));
        check(0, (0, &[0, 2]), Some(&[0, 2]));
        check(0, (2, &[]), Some(&[0]));
        check(1, (1, &[0]), Some(&[1]));
        check(0, (9, &[]), None);
    }
}
