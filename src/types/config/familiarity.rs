//! `[recall.familiarity]`: what makes a part of a bank familiar to a question.
//!
//! The score is a weighted sum (`memory/index/ranking/scoring.rs` computes it); every weight is a key here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a model's cosine counts in the scores of questions, whose weights were fitted with the cosines of another model:
/// as `factor` times the cosine, plus `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CosineScale {
    /// The factor of the cosine.
    pub factor: f64,
    /// The offset that is added to it.
    pub offset: f64,
}

impl Default for CosineScale {
    /// The scale of the cosines with which the weights were fitted.
    fn default() -> Self {
        Self { factor: 1.0, offset: 0.0 }
    }
}

/// `question_floor` and `question_ceiling` of the model with which the default weights were fitted: between these two
/// cosines, a unit says more and more about a question.
const FITTED: [f64; 2] = [0.415, 0.669];

impl CosineScale {
    /// The scale of a model for which these two cosines are `floor` and `ceiling`.
    #[must_use]
    pub fn between(floor: f64, ceiling: f64) -> Self {
        let [fitted_floor, fitted_ceiling] = FITTED;
        if ceiling <= floor {
            return Self::default();
        }
        let factor = (fitted_ceiling - fitted_floor) / (ceiling - floor);
        Self { factor, offset: fitted_floor - factor * floor }
    }

    /// How much a cosine counts.
    #[must_use]
    pub fn of(self, cosine: f64) -> f64 {
        self.factor * cosine + self.offset
    }
}

/// How familiar each part of a bank is to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FamiliaritySettings {
    /// Weights of the terms. A larger weight makes its term count more.
    pub weights: FamiliarityWeights,
    /// The scale of the chosen model, which `[embed.models]` has: no key of its own.
    #[serde(skip)]
    pub cosines: CosineScale,
    /// The zero of the scale on which parts are compared: the part that this share of the compared text
    /// lies above, the thousandth at the latest. A larger value puts the zero lower, so that what a bank
    /// is mostly about does not raise it.
    #[schemars(range(min = 0, max = 1))]
    pub zero: f64,
    /// Only the bank's best parts of this many estimated tokens are compared, so that irrelevant turns do
    /// not lower the cutoff, and chats of short and of long messages have the same scale.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub scale_tokens: usize,
    /// Whether a name by which a speaker is greeted, in sessions of two, counts as the speaker's.
    pub greeted_names: bool,
    /// In a bank of `memory.candidates_from_parts` parts or more, how many parts get the full score, besides
    /// those around the very best. A larger value finds more and takes longer; fewer than 1,000 may raise
    /// the zero of the scale. 0 gives every part of every bank the full score.
    #[schemars(range(max = 1_000_000))]
    pub candidates: usize,
    /// In such a bank, how many of the best units' edges lead to further candidates.
    #[schemars(range(max = 1_000))]
    pub linked_units: usize,
}

/// The weights of the terms of the familiarity score.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FamiliarityWeights {
    /// Weight of the cosine of the question and the part's best sentence.
    #[schemars(range(min = 0, max = 1_000))]
    pub meaning: f64,
    /// Weight of the cosine of the question and the part together with the turn before it.
    #[schemars(range(min = 0, max = 1_000))]
    pub pair: f64,
    /// Weight of the mean of that cosine and the same of the next part.
    #[schemars(range(min = 0, max = 1_000))]
    pub trio: f64,
    /// Weight of BM25 of the question's words in the part and the turns around it, divided by the bank's
    /// best. Around a passage of a long turn nothing counts.
    #[schemars(range(min = 0, max = 1_000))]
    pub words: f64,
    /// Weight when a person whom the question names speaks.
    #[schemars(range(min = 0, max = 1_000))]
    pub speaker: f64,
    /// Weight when the part was said, or happens, in the time that the question names; for a day, also when the
    /// part was said in the same month.
    #[schemars(range(min = 0, max = 1_000))]
    pub month: f64,
    /// Added to `month` when the time is at most eight days long and the part lies in it; less on the two days after
    /// it.
    #[schemars(range(min = 0, max = 1_000))]
    pub day: f64,
    /// Weight of each expression of time in a part that is no passage, two at most.
    #[schemars(range(min = 0, max = 1_000))]
    pub times: f64,
    /// The same for a question about a time, in place of `times`.
    #[schemars(range(min = 0, max = 1_000))]
    pub times_asked: f64,
    /// Subtracted when a part that is no passage ends with a question.
    #[schemars(range(min = 0, max = 1_000))]
    pub asks: f64,
    /// Weight of each name in a part that is no passage (person, place, title, brand), three at most.
    /// Names of the bank's speakers do not count.
    #[schemars(range(min = 0, max = 1_000))]
    pub names: f64,
    /// Share of the score of the better neighbour at a distance of one turn.
    #[schemars(range(min = 0, max = 1_000))]
    pub next_turn: f64,
    /// Share of the score of the better neighbour at a distance of two turns.
    #[schemars(range(min = 0, max = 1_000))]
    pub second_turn: f64,
    /// Share of the mean score of the session's best three parts.
    #[schemars(range(min = 0, max = 1_000))]
    pub session: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Pipeline;

    #[test]
    fn the_default_model_is_the_one_with_which_the_weights_were_fitted() {
        let pipeline = Pipeline::parse("version = 1").expect("the defaults");
        let model = pipeline.model();
        assert_eq!([model.question_floor, model.question_ceiling], FITTED);
        assert_eq!(pipeline.recall.familiarity.cosines, CosineScale::default());
        assert_eq!(CosineScale::between(model.question_floor, model.question_ceiling), CosineScale::default());
    }

    /// A unit at the floor or the ceiling of another model counts like a unit at that of the fitted model.
    #[test]
    fn another_models_cosines_count_as_those_of_the_fitted_model() {
        let text = "version = 1\nembed.model = \"multilingual-e5-small\"";
        let pipeline = Pipeline::parse(text).expect("a model that is known");
        let (model, scale) = (pipeline.model(), pipeline.recall.familiarity.cosines);
        for (cosine, fitted) in [model.question_floor, model.question_ceiling].into_iter().zip(FITTED) {
            assert!((scale.of(cosine) - fitted).abs() < 0.005, "{cosine}: {} and {fitted}", scale.of(cosine));
        }
        assert_eq!(CosineScale::between(0.5, 0.5), CosineScale::default());
    }
}
