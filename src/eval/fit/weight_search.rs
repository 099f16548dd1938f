//! Weights to try.
//!
//! In: a starting point, a seed. Out: choices, which are the seven terms and weights drawn around them, the same for
//! the same seed. A draw gives some terms the weight 0, so that terms which do not help can drop out.

use super::outcomes::WeightChoice;
use crate::calibration::draw;
use types::config::{FamiliarityWeights, TokenShareSettings};

/// A way to choose weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WeightSearch {
    /// The settings as they are, including the cutoff.
    AsItIs,
    /// The weights as they are; only the cutoff is chosen.
    Cutoff,
    /// Seven terms with fixed weights; the cutoff is chosen.
    SevenTerms,
    /// The weights as they are; the shares of the tokens for persons and assistants are drawn.
    Shares,
    /// Both weights and shares are drawn.
    Drawn,
}

impl WeightSearch {
    pub(super) const ALL: [Self; 5] = [Self::AsItIs, Self::Cutoff, Self::SevenTerms, Self::Shares, Self::Drawn];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::AsItIs => "as it is",
            Self::Cutoff => "as it is, cutoff chosen",
            Self::SevenTerms => "seven terms, cutoff chosen",
            Self::Shares => "as it is, shares chosen",
            Self::Drawn => "weights and cutoff chosen",
        }
    }

    /// The choices that the search compares.
    pub(super) fn choices(self, as_it_is: &WeightChoice, draws: usize, seed: u64) -> Vec<WeightChoice> {
        // The shares have a random sequence of their own, so that sets with only people get the same weights with and
        // without them.
        let (mut random, mut of_shares) = (DrawSequence(seed), DrawSequence(!seed));
        let mut shares = || drawn_shares(&as_it_is.shares, &mut of_shares);
        match self {
            Self::AsItIs | Self::Cutoff => vec![as_it_is.clone()],
            Self::SevenTerms => vec![seven_terms(&as_it_is.shares)],
            Self::Shares => {
                let mut choices = vec![as_it_is.clone()];
                choices.extend((0..draws).map(|_| WeightChoice { shares: shares(), ..as_it_is.clone() }));
                choices
            }
            Self::Drawn => {
                let mut choices = vec![seven_terms(&as_it_is.shares)];
                choices.extend((0..draws).map(|_| WeightChoice {
                    weights: drawn(&mut random),
                    time_offset: random.hundredths(0, 20),
                    gathered_offset: random.hundredths(-15, 0),
                    shares: shares(),
                }));
                choices
            }
        }
    }
}

/// A score of seven terms and their smoothing, with the same weights for every question.
fn seven_terms(shares: &TokenShareSettings) -> WeightChoice {
    WeightChoice { weights: SEVEN, time_offset: 0.0, gathered_offset: 0.0, shares: shares.clone() }
}

const SEVEN: FamiliarityWeights = FamiliarityWeights {
    meaning: 1.4,
    pair: 1.0,
    trio: 0.0,
    words: 0.9,
    speaker: 0.4,
    month: 0.4,
    day: 0.0,
    times: 0.0,
    times_asked: 0.1,
    asks: 0.1,
    names: 0.0,
    next_turn: 0.2,
    second_turn: 0.1,
    session: 0.3,
};

/// Weights around those of the seven terms; each of the other terms is used with a probability of one half.
fn drawn(random: &mut DrawSequence) -> FamiliarityWeights {
    let mut w = SEVEN;
    for weight in [
        &mut w.meaning,
        &mut w.pair,
        &mut w.words,
        &mut w.speaker,
        &mut w.month,
        &mut w.times_asked,
        &mut w.asks,
        &mut w.next_turn,
        &mut w.second_turn,
        &mut w.session,
    ] {
        *weight *= random.factor();
    }
    for (weight, usual) in [(&mut w.trio, 0.5), (&mut w.day, 0.6), (&mut w.times, 0.1), (&mut w.names, 0.1)] {
        let factor = random.factor();
        *weight = if random.unit() < 0.5 { usual * factor } else { 0.0 };
    }
    w
}

/// Shares that leave persons the larger part for questions about them; the bonuses for a task are drawn around their
/// present values.
fn drawn_shares(around: &TokenShareSettings, random: &mut DrawSequence) -> TokenShareSettings {
    TokenShareSettings {
        about_me: random.hundredths(40, 100),
        order: random.hundredths(40, 100),
        summary: random.hundredths(10, 90),
        told: random.hundredths(0, 60),
        task: random.hundredths(10, 90),
        recent: around.recent * random.factor(),
        half_sessions: around.half_sessions * random.factor(),
        standing: around.standing * random.factor(),
        ..around.clone()
    }
}

/// A fixed sequence of numbers.
struct DrawSequence(u64);

impl DrawSequence {
    /// From 0 up to 1.
    fn unit(&mut self) -> f64 {
        (draw(&mut self.0) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From one half to two; above one and below one are equally likely.
    fn factor(&mut self) -> f64 {
        (2.0 * self.unit() - 1.0).exp2()
    }

    fn hundredths(&mut self, least: i32, most: i32) -> f64 {
        let steps = f64::from(most - least + 1);
        f64::from(least + (self.unit() * steps) as i32) / 100.0
    }
}

/// The mean of several choices.
pub(super) fn mean(choices: &[&WeightChoice]) -> Option<WeightChoice> {
    let first = choices.first()?;
    let number = choices.len() as f64;
    let of = |read: fn(&WeightChoice) -> f64| choices.iter().map(|c| read(c)).sum::<f64>() / number;
    Some(WeightChoice {
        weights: mean_weights(choices.iter().map(|c| &c.weights)).unwrap_or_else(|| first.weights.clone()),
        time_offset: of(|c| c.time_offset),
        gathered_offset: of(|c| c.gathered_offset),
        shares: TokenShareSettings {
            about_me: of(|c| c.shares.about_me),
            order: of(|c| c.shares.order),
            summary: of(|c| c.shares.summary),
            told: of(|c| c.shares.told),
            task: of(|c| c.shares.task),
            recent: of(|c| c.shares.recent),
            half_sessions: of(|c| c.shares.half_sessions),
            standing: of(|c| c.shares.standing),
            ..first.shares.clone()
        },
    })
}

fn mean_weights<'w>(all: impl Iterator<Item = &'w FamiliarityWeights>) -> Option<FamiliarityWeights> {
    let all: Vec<&FamiliarityWeights> = all.collect();
    let number = all.len() as f64;
    let mut sum = (*all.first()?).clone();
    let fields = |w: &mut FamiliarityWeights, change: &mut dyn FnMut(&mut f64)| {
        for field in [
            &mut w.meaning,
            &mut w.pair,
            &mut w.trio,
            &mut w.words,
            &mut w.speaker,
            &mut w.month,
            &mut w.day,
            &mut w.times,
            &mut w.times_asked,
            &mut w.asks,
            &mut w.names,
            &mut w.next_turn,
            &mut w.second_turn,
            &mut w.session,
        ] {
            change(field);
        }
    };
    for other in all.iter().skip(1) {
        let mut values = Vec::new();
        fields(&mut (*other).clone(), &mut |value| values.push(*value));
        let mut values = values.into_iter();
        fields(&mut sum, &mut |value| *value += values.next().unwrap_or_default());
    }
    fields(&mut sum, &mut |value| *value /= number);
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares() -> TokenShareSettings {
        types::config::Pipeline::parse("version = 1").unwrap().recall.shares
    }

    #[test]
    fn the_same_seed_draws_the_same_weights_and_another_seed_others() {
        let drawn = |seed| WeightSearch::Drawn.choices(&seven_terms(&shares()), 5, seed);
        assert_eq!(drawn(1).len(), 6);
        assert_eq!(format!("{:?}", drawn(1)), format!("{:?}", drawn(1)));
        assert_ne!(format!("{:?}", drawn(1)), format!("{:?}", drawn(2)));
    }

    #[test]
    fn a_mean_is_taken_of_every_weight() {
        let with = |x: f64| WeightChoice {
            weights: FamiliarityWeights { meaning: x, session: 2.0 * x, ..SEVEN },
            time_offset: x,
            gathered_offset: -x,
            shares: TokenShareSettings { told: x, ..shares() },
        };
        let mean = mean(&[&with(1.0), &with(3.0)]).unwrap();
        assert_eq!((mean.weights.meaning, mean.weights.session, mean.weights.pair), (2.0, 4.0, 1.0));
        assert_eq!((mean.time_offset, mean.gathered_offset, mean.shares.told), (2.0, -2.0, 2.0));
    }
}
