//! A shard of the memory, and questions to it, as several benches ask them.

use std::time::Instant;

use memory::{
    index::{ChangeListeners, ShardHandle},
    recall::{RecallModels, RulesPlanner, recollect},
};
use types::{
    config::Pipeline,
    model::{Bank, ModelRef, Question, Score, Selector},
};

use super::synthetic::unit;

/// Milliseconds of a question, and how many units it quotes.
pub(crate) fn ask(memory: &ShardHandle, bank: &Bank, size: usize, i: usize, select: Option<Selector>) -> (f64, usize) {
    let pipeline = Pipeline::parse("version = 1").expect("the defaults are valid");
    let asked = unit(bank, size, (i * 7_919) % size);
    let question = Question { select, ..Question::new(bank.clone(), format!("What of {}?", asked.restatement)) };
    let model = ModelRef { name: "bench".to_owned(), hash: "0".to_owned() };
    let mut embed = |texts: &[&str]| Ok(texts.iter().map(|_| asked.vector.clone()).collect());
    let models = RecallModels { embed: &mut embed, model: &model, rerank: None };
    let planner = RulesPlanner::new(&pipeline.model());
    let started = Instant::now();
    let evidence = recollect(memory, models, &question, &planner, &pipeline.recall).expect("an answer");
    (started.elapsed().as_secs_f64() * 1e3, evidence.units.len())
}

pub(crate) fn shard() -> ShardHandle {
    let settings = Pipeline::parse("version = 1").expect("the defaults are valid").memory;
    ShardHandle::start(&settings, Score::from_f64(0.75), ChangeListeners::default()).expect("a shard")
}
