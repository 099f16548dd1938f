//! Vectors from an endpoint that speaks OpenAI's embeddings protocol, here a scripted one.

use ripplemem::{config::Pipeline, embed, model::SpannedText, pipeline::Service};

use super::{
    model_process::ScriptedModel,
    support::{ask, census, data, ingest},
};

/// A pipeline whose embedding model, named by its script, is served by `server`.
fn settings(server: &ScriptedModel, home: &std::path::Path, model: &str, extra: &str) -> Pipeline {
    let endpoint = &server.endpoint;
    let entry = "[embed.models.served]\nrunner = \"endpoint\"\nsemantic_threshold = 0.6\nquestion_floor = 0.1\nquestion_ceiling = 0.6";
    let served = format!("[embed.models.served.served]\nendpoint = \"{endpoint}\"\nmodel = \"{model}\"\n{extra}");
    let log = home.join("log");
    Pipeline::parse(&format!("version = 1\nembed.model = \"served\"\nlog.directory = {log:?}\n{entry}\n{served}"))
        .unwrap()
}

fn open(settings: &Pipeline) -> Result<Service, ripplemem::pipeline::PipelineError> {
    Service::open(settings, &mut |_| {})
}

#[test]
fn a_memory_with_served_vectors_embeds_each_text_once() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let settings = settings(&server, home.path(), "scripted", "");
    let mut service = open(&settings).unwrap();
    ingest(&mut service, &data("sample.jsonl"));
    let question = "Which books has Marta recommended to Elias?";
    let (made, evidence) = (census(&service), ask(&service, "sample/harbour", question));
    assert!(made.units > 5 && evidence.units.iter().any(|u| u.restatement.contains("book")), "{}", evidence.context);
    drop(service);
    let before = server.requests().len();
    let again = open(&settings).unwrap();
    assert_eq!((census(&again), ask(&again, "sample/harbour", question)), (made, evidence));
    // After a restart only the question, its first-person wording and targets are embedded, one a request.
    let later = &server.requests()[before..];
    assert!(
        (2..6).contains(&later.len()) && later.iter().all(|r| r["input"].as_array().unwrap().len() == 1),
        "{later:?}"
    );
    let sent = server.requests().remove(1);
    assert_eq!((&sent["model"], sent["input"].as_array().unwrap().len()), (&"scripted".into(), 16));
}

#[test]
fn an_endpoints_faults_are_retried_or_named() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let texts = [SpannedText { text: "a boat".to_owned(), spans: Vec::new() }];
    let check = |model: &str, extra: &str, word: Option<&str>| {
        let settings = settings(&server, home.path(), model, extra);
        let made = embed::open(&settings.embed, &settings.model()).and_then(|mut embedder| embedder.embed(&texts));
        match (made, word) {
            (Ok(vectors), None) => assert_eq!(vectors.len(), 1, "{model}"),
            (Err(error), Some(word)) => assert!(error.to_string().contains(word), "{model}: {error}"),
            (made, _) => panic!("{model}: {made:?}"),
        }
    };
    check("scripted+error=2", "", None);
    check("scripted+limited=1", "", None);
    check("scripted+error", "retries = 1", Some("/v1/embeddings: status 500: The server had an error (2 attempts)"));
    check("gpt-17", "", Some("status 404: The model `gpt-17` does not exist"));
    check("scripted+fewer", "retries = 0", Some("0 vectors for 1 texts"));
    check("scripted", "key_env = \"NO_SUCH_KEY_HERE\"", Some("NO_SUCH_KEY_HERE is not set"));
    let refused = |text: &str| Pipeline::parse(&format!("version = 1\nembed.model = \"m\"\n{text}")).unwrap_err();
    let entry = "[embed.models.m]\nsemantic_threshold = 0.6\nquestion_floor = 0.1\nquestion_ceiling = 0.6\nrunner = ";
    assert!(refused(&format!("{entry}\"endpoint\"")).contains("embed.models.m.served: missing"));
    let served = "served = { endpoint = \"ftp://x\", model = \"m\" }";
    assert!(refused(&format!("{entry}\"endpoint\"\n{served}")).contains("served.endpoint: \"ftp://x\" is not a URL"));
    assert!(refused(&format!("{entry}\"onnx\"\n{served}")).contains("only runner = \"endpoint\""));
}
