//! The worked page docs/lab/one-question.md, held to what happens (real model, sample dialogue).

use std::path::Path;

use pipeline::PipelineError;
use ripplemem::PipelineDriver;
use types::{
    config::Pipeline,
    model::{Channel, Evidence, Provenance},
};

use super::{
    skipped::skip,
    support::{ask, data, ingest},
};

const QUESTION: &str = "Which books has Marta recommended to Elias?";
/// The turns in which the books were recommended.
const BOOKS: [&str; 4] = ["h1-14", "h4-18", "h7-24", "h10-14"];
/// The last of them, which the round of the paper's profile finds and its first hop does not.
const LAST: &str = "h10-14";
/// Vectors differ a little between kinds of processors, and so may what lies at the cutoff: without
/// instructions for products of bytes the default quotes 26 units instead of 23.
const MAX_DIFFERENT: usize = 4;

fn service(home: &Path, settings: &str) -> Option<PipelineDriver> {
    let mut pipeline = Pipeline::parse(&format!("version = 1\n{settings}")).unwrap();
    pipeline.log.directory = home.join(&pipeline.profile);
    match PipelineDriver::open(&pipeline, &mut |_| {}).and_then(|mut service| service.catch_up().map(|_| service)) {
        Ok(mut service) => match service.log().end(logs::Topic::Turns, 0).unwrap() {
            0 => {
                ingest(&mut service, &data("sample.jsonl"));
                Some(service)
            }
            _ => Some(service),
        },
        Err(PipelineError::Embed(error)) => {
            skip("worked_page::a_question_flat_and_recollected", &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn quotes(evidence: &Evidence, turn: &str) -> bool {
    evidence.units.iter().any(|unit| unit.excerpts.iter().any(|part| part.turn == turn))
}

#[test]
fn a_question_flat_and_recollected() {
    let (home, page) = (tempfile::tempdir().unwrap(), include_str!("../docs/lab/one-question.md"));
    let paper = |recall: &str| format!("profile = \"paper\"\n{recall}");
    let flat = |s: u32, l: u32, c: u32| {
        format!("recall.rounds = 0\nrecall.semantic = {s}\nrecall.lexical = {l}\nrecall.cue = {c}")
    };
    for (line, settings) in [
        ("30 turns by cosine alone", paper(&flat(30, 0, 0))),
        ("(20/10/10)", paper(&flat(20, 10, 10))),
        ("(10/5/5 and one round)", paper("")),
        ("recollection: the default", String::new()),
    ] {
        let Some(service) = service(home.path(), &settings) else { return };
        let evidence = ask(&service, "sample/harbour", QUESTION);
        let found = BOOKS.iter().filter(|turn| quotes(&evidence, turn)).count();
        let units = evidence.units.len();
        let row = page.lines().find(|l| l.contains(line)).unwrap();
        let (said, books) = row.trim_end_matches(" |").rsplit_once(" | ").unwrap();
        let said: usize = said.rsplit_once("| ").unwrap().1.parse().unwrap();
        assert_eq!(books, format!("{found} of 4"), "{row}");
        assert!(said.abs_diff(units) <= MAX_DIFFERENT, "{row}: {units}");
        if settings == paper("") {
            let last = evidence.units.iter().find(|unit| unit.sources.iter().any(|turn| turn == LAST)).unwrap();
            assert!(page.contains(&last.restatement), "{}", last.restatement);
            let [Provenance::Expansion { path, .. }] = last.provenance.as_slice() else {
                panic!("{:?}", last.provenance)
            };
            let [first, second] = path.as_slice() else { panic!("{path:?}") };
            assert_eq!((first.channel, second.channel), (Channel::Structural, Channel::Structural));
            let anchor = evidence.units.iter().find(|unit| unit.id == first.from).unwrap();
            assert!(anchor.anchor && page.contains(&anchor.restatement), "{}", anchor.restatement);
        }
    }
}
