//! The worked trace through the paper's five contracts, after the paper's case study with other
//! text: extraction, cues, plan, answer, judge.
//!
//! The model's replies are a script (`tests/data/readers_replies.json`). The golden file holds
//! every request, the trace and the answer; `REWRITE=1` rewrites it, then read the diff.

use std::{fmt::Write, fs};

use eval::BenchmarkFormat;
use memory::recall;

use super::{model_process::ScriptedModel, support::data};

#[test]
fn five_contracts_from_the_dialogue_to_the_verdict() {
    let replies = data("readers_replies.json");
    let server = ScriptedModel::start(&["--replies", replies.to_str().unwrap()]);
    let home = tempfile::tempdir().unwrap();
    // The first hop is as narrow for seven units as the paper's is for a whole dialogue. The
    // deterministic embedder finds no meaning, so no floor on similarity may apply.
    let extra = "profile = \"paper\"\nwindow.sessions = true\nextract.extractor = \"llm\"\nrecall.planner = \"llm\"\n\
                 recall.cues_by = \"llm\"\nrecall.semantic = 2\nrecall.lexical = 2\nrecall.cue = 1\nrecall.support_floor = -1.0";
    let request = eval::EvalRequest {
        format: BenchmarkFormat::parse("locomo").unwrap(),
        path: data("readers.json"),
        only: Vec::new(),
        limit: None,
        seed: None,
        zone: "+00:00".to_owned(),
        pipeline: server.pipeline(home.path(), "scripted", extra),
        baselines: false,
        ablations: Vec::new(),
        vectors: false,
        sizes: Vec::new(),
        filler: None,
        answers: true,
        compare_answers: false,
        judge: Some(server.pipeline(home.path(), "scripted+judge", "").llm),
    };
    let run = eval::evaluate(&request, &mut |_| {}).unwrap();
    let requests = server.requests();
    assert_eq!(requests.len(), 7, "three windows, cues, plan, answer, judge");

    let mut page = String::new();
    let mut sent: Vec<(String, String)> = requests
        .iter()
        .map(|request| {
            let text = |pointer: &str| request.pointer(pointer).and_then(|v| v.as_str()).unwrap().to_owned();
            (text("/response_format/json_schema/name"), text("/messages/1/content"))
        })
        .collect();
    // Windows are read in parallel, so their order varies.
    sent[..3].sort();
    for (contract, input) in sent {
        writeln!(page, "==== {contract}\n{}", input.trim_end()).unwrap();
    }
    let question = &run.questions[0];
    let generated = question.generated.as_ref().unwrap();
    writeln!(page, "==== trace\n{}", recall::render_trace(&question.answer)).unwrap();
    writeln!(page, "==== context\n{}", question.answer.context).unwrap();
    writeln!(page, "==== answer\n{}", generated.answer).unwrap();
    let figures = &run.result.overall;
    let marks = [figures.f1, figures.bleu1, figures.judge_accuracy].map(|f| format!("{:.3}", f.unwrap()));
    writeln!(page, "F1 {}, BLEU-1 {}, judge {}", marks[0], marks[1], marks[2]).unwrap();
    let golden = data("golden/worked_model.txt");
    if std::env::var_os("REWRITE").is_some() {
        fs::write(&golden, &page).unwrap();
    }
    assert_eq!(page, fs::read_to_string(&golden).unwrap_or_default(), "{} differs", golden.display());

    for title in ["The Glass Orchard", "Salt Road", "The Ninth Lantern", "Harbour of Crows"] {
        assert!(question.answer.context.contains(title), "{title} was not found");
    }
    assert!(!page.contains("zoe") && !page.contains("atlantis"), "a name that nobody mentioned is no cue");
    assert_eq!((run.result.build.llm_calls, run.result.reading.llm_calls), (3, 1));
    assert!(run.result.build.llm_tokens > 1_000);
    assert_eq!(question.llm.llm_calls, 4, "cues, plan, answer, judge");
    let same = eval::EvalRequest { judge: Some(request.pipeline.llm.clone()), ..request.clone() };
    let error = eval::evaluate(&same, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("cannot also judge") && error.contains("--judge"), "{error}");
    // A second evaluation uses the cache only, and reports the same cost.
    let again = eval::evaluate(&request, &mut |_| {}).unwrap();
    assert_eq!(again.result.build.llm_tokens, run.result.build.llm_tokens);
    assert_eq!((again.questions[0].generated.as_ref(), server.requests().len()), (Some(generated), 7));
}
