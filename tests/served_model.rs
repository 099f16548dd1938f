//! Vectors from an endpoint that speaks OpenAI's embeddings protocol, here a scripted one.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use logs::Topic;
use models::embed;
use pipeline::PipelineError;
use ripplemem::PipelineDriver;
use types::{
    config::Pipeline,
    model::{Bank, DeadLetter, Question, SpannedText, TurnEvent},
};

use serde_json::json;

use super::{
    http_service::HttpService,
    model_process::ScriptedModel,
    support::{ask, census, data, ingest, lines, ripplemem, with_warnings, write},
};

/// A pipeline whose embedding model, named by its script, is served by `server`.
pub(crate) fn settings(server: &ScriptedModel, home: &std::path::Path, model: &str, extra: &str) -> Pipeline {
    let endpoint = &server.endpoint;
    let entry = "[embed.models.served]\nrunner = \"endpoint\"\nsemantic_threshold = 0.6\nquestion_floor = 0.1\nquestion_ceiling = 0.6";
    let served = format!("[embed.models.served.served]\nendpoint = \"{endpoint}\"\nmodel = \"{model}\"\n{extra}");
    let log = home.join("log");
    Pipeline::parse(&format!("version = 1\nembed.model = \"served\"\nlog.directory = {log:?}\n{entry}\n{served}"))
        .unwrap()
}

fn open(settings: &Pipeline) -> Result<PipelineDriver, pipeline::PipelineError> {
    PipelineDriver::open(settings, &mut |_| {})
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
    // After a restart only the question, its first-person wording and targets are embedded, one per request.
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
    assert!(refused(&format!("{entry}\"onnx\"\n{served}")).contains("only a model with runner = \"endpoint\""));
}

/// One turn with a long text, one that the endpoint refuses whatever its length, and others.
#[test]
fn a_declined_text_is_shortened_or_a_dead_letter_of_its_window_and_the_others_are_embedded() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let mut settings = settings(&server, home.path(), "scripted+picky+short=400", "retries = 0");
    (settings.extract.unit_turns, settings.window.turns, settings.window.overlap) = (1, 4, 0);
    let long = format!("The red kayak is stored in the boathouse. {}", "Blue boats lie in the harbour. ".repeat(60));
    let turns = [
        ("1", "Ann", long.as_str()),
        ("2", "Bo", "The forbidden island has a lighthouse"),
        ("3", "Ann", "My sister plays the bassoon"),
        ("4", "Bo", "I sold my bicycle to the baker"),
        ("5", "Ann", "The ferry leaves at noon"),
    ];
    let mut service = open(&settings).unwrap();
    let events: Vec<_> =
        lines("b", "s", &turns).lines().map(|line| TurnEvent::from_json(line.as_bytes()).unwrap()).collect();
    service.log().append_turns(&events).unwrap();
    let (_, warnings) = with_warnings(|| service.catch_up().unwrap());
    let letters = service.log().read(Topic::DeadLetters, 0, 0, 100).unwrap().records;
    let letters: Vec<DeadLetter> =
        letters.iter().map(|r| serde_json::from_slice(r.value.as_deref().unwrap()).unwrap()).collect();
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert!(letters[0].origin.contains("bank b, session \"caller:s\", window 0"), "{letters:?}");
    assert!(letters[0].reason.contains("filtered") && letters[0].payload.contains("forbidden"), "{letters:?}");
    assert!(warnings.contains("a dead letter") && !warnings.contains("forbidden"), "{warnings}");
    assert_eq!(census(&service).units, 4, "all but the forbidden one");
    assert!(ask(&service, "b", "Where is the red kayak stored?").units.iter().any(|unit| unit.sources == ["1"]));
    assert!(ask(&service, "b", "Who plays the bassoon?").context.contains("bassoon"));
}

fn letters(service: &PipelineDriver) -> Vec<DeadLetter> {
    let letters = service.log().read(Topic::DeadLetters, 0, 0, 100).unwrap().records;
    letters.iter().map(|r| serde_json::from_slice(r.value.as_deref().unwrap()).unwrap()).collect()
}

fn append(service: &PipelineDriver, turns: &[(&str, &str, &str)]) {
    let events: Vec<_> =
        lines("b", "s", turns).lines().map(|line| TurnEvent::from_json(line.as_bytes()).unwrap()).collect();
    service.log().append_turns(&events).unwrap();
}

const AROUND_A_BAD_ONE: [(&str, &str, &str); 5] = [
    ("1", "Ann", "The red kayak is stored in the boathouse"),
    ("2", "Bo", "The forbidden island has a lighthouse"),
    ("3", "Ann", "My sister plays the bassoon"),
    ("4", "Bo", "I sold my bicycle to the baker"),
    ("5", "Ann", "The ferry leaves at noon"),
];

/// However the endpoint fails on one text, it stops no other: the probe is answered meanwhile.
#[test]
fn a_text_on_which_the_endpoint_fails_every_time_is_a_dead_letter_and_stops_no_other() {
    for (fault, word) in [
        ("500", "status 500"),
        ("403", "status 403"),
        ("closed", ""),
        ("slow", "no reply in time"),
        ("fewer", "vectors for"),
        ("zero", "is empty"),
    ] {
        let server = ScriptedModel::start(&[]);
        let home = tempfile::tempdir().unwrap();
        let extra = "retries = 1\ntimeout_seconds = 1";
        let mut settings = settings(&server, home.path(), &format!("scripted+bad={fault}"), extra);
        (settings.extract.unit_turns, settings.window.turns, settings.window.overlap) = (1, 4, 0);
        let mut service = open(&settings).unwrap();
        append(&service, &AROUND_A_BAD_ONE);
        service.catch_up().unwrap();
        let letters = letters(&service);
        assert_eq!(letters.len(), 1, "{fault}: {letters:?}");
        assert!(letters[0].origin.contains("turns [\"2\"]"), "{fault}: {letters:?}");
        assert!(letters[0].reason.contains(word), "{fault}: {letters:?}");
        assert!(letters[0].reason.contains("while other texts are embedded"), "{fault}: {letters:?}");
        assert_eq!((census(&service).units, letters[0].payload.contains("forbidden")), (4, true), "{fault}");
        assert!(ask(&service, "b", "Who plays the bassoon?").context.contains("bassoon"), "{fault}");
    }
}

/// In a unit of several turns, the bad one keeps its place, and is found by its words.
#[test]
fn the_neighbours_of_a_bad_text_keep_their_vectors_and_its_words_are_found() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let mut settings = settings(&server, home.path(), "scripted+bad=500", "retries = 0");
    (settings.window.turns, settings.window.overlap) = (4, 0);
    let mut service = open(&settings).unwrap();
    append(&service, &AROUND_A_BAD_ONE);
    service.catch_up().unwrap();
    let letters = letters(&service);
    assert_eq!(letters.len(), 1, "{letters:?}");
    assert!(letters[0].origin.contains("turns [\"2\"]"), "{letters:?}");
    assert!(letters[0].reason.contains("has no vector of its own"), "{letters:?}");
    assert!(ask(&service, "b", "Who plays the bassoon?").context.contains("bassoon"));
    assert!(ask(&service, "b", "What does the island have, a lighthouse?").context.contains("lighthouse"));
    // The log alone makes the same memory.
    let made = census(&service);
    drop(service);
    assert_eq!(census(&open(&settings).unwrap()), made);
}

/// A server that answers 500, and gives no reason, to a text that is too long for it.
#[test]
fn a_text_or_a_question_that_is_too_long_for_its_endpoint_is_shortened() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let mut settings = settings(&server, home.path(), "scripted+burst=400", "retries = 1");
    (settings.extract.unit_turns, settings.window.turns, settings.window.overlap) = (1, 4, 0);
    let mut service = open(&settings).unwrap();
    let foxes = format!("The fox parade of Quimper: {}", "\u{1f98a}".repeat(230));
    append(&service, &[("1", "Ann", &foxes), ("2", "Bo", "The mast is of larch"), ("3", "Ann", "The sail is ochre")]);
    let before = embed::shortened_texts();
    service.catch_up().unwrap();
    assert_eq!((letters(&service), census(&service).units), (Vec::new(), 3));
    assert!(embed::shortened_texts() > before, "it is counted");
    assert!(ask(&service, "b", "Where was the fox parade?").context.contains("Quimper"));
    let question = format!("{} What colour is the sail?", "The keeper wrote that the gate was shut. ".repeat(130));
    let (question, before) = (&question[question.len() - 5_000..], embed::shortened_texts());
    // It is answered, whatever it finds.
    ask(&service, "b", question);
    assert!(embed::shortened_texts() > before, "its vector is that of its ends");
}

/// A question that the endpoint does not take is refused as one, and the endpoint is not said to be away.
#[test]
fn a_question_on_which_the_endpoint_fails_is_refused_by_name_and_stops_no_other() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let entry = "[embed.models.served]\nrunner = \"endpoint\"\nsemantic_threshold = 0.6\nquestion_floor = 0.1\nquestion_ceiling = 0.6";
    let served = format!("served = {{ endpoint = \"{}\", model = \"scripted+bad=500\" }}", server.endpoint);
    let file = format!("version = 1\nembed.model = \"served\"\nlog.directory = \"log\"\n{entry}\n{served}\n");
    write(&home.path().join("p.toml"), file);
    let service = HttpService::of(home.path());
    let turn = json!({"bank": "b", "turn": "1", "speaker": "Ann", "text": "The ferry leaves at noon", "time": "2024-05-06T09:00:00Z"});
    assert_eq!(service.post("/v1/turns", &json!({"turns": [turn], "wait_ms": 60_000}))["reflected"], true);
    let asked = |text: &str| {
        let question = json!({"bank": "b", "text": text});
        let (status, _, reply) = service.send("POST", "/v1/ask", "", question.to_string().as_bytes());
        (status, reply)
    };
    let (status, refusal) = asked("What is forbidden?");
    assert_eq!((status, refusal["code"].as_str()), (400, Some("invalid")), "{refusal}");
    assert!(refusal["detail"].as_str().unwrap().contains("status 500"), "{refusal}");
    assert_eq!(service.get("/v1/status")["problem"].as_str(), None);
    assert_eq!(asked("When does the ferry leave?").0, 200);
    assert!(service.stop());
}

/// A busy endpoint says nothing about a text, and neither does one that fails at random.
#[test]
fn a_busy_or_an_unsteady_endpoint_condemns_no_text() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&settings(&server, home.path(), "scripted+bad=503", "retries = 1")).unwrap();
    append(&service, &AROUND_A_BAD_ONE);
    let error = service.catch_up().unwrap_err();
    assert!(matches!(error, PipelineError::Embed(embed::EmbedError::Unavailable { .. })), "{error}");
    assert!(letters(&service).is_empty());
    drop(service);

    let home = tempfile::tempdir().unwrap();
    let settings = settings(&server, home.path(), "scripted+flaky", "retries = 3");
    let mut failures = 0;
    loop {
        let opened = open(&settings).and_then(|mut service| {
            if census(&service).units == 0 {
                append(&service, &AROUND_A_BAD_ONE);
            }
            service.catch_up().map(|_| service)
        });
        match opened {
            Ok(service) => {
                assert!(letters(&service).is_empty() && census(&service).units > 0);
                break;
            }
            Err(PipelineError::Embed(embed::EmbedError::Unavailable { .. })) if failures < 20 => failures += 1,
            Err(error) => panic!("{error}"),
        }
    }
}

/// An endpoint that declines every text says nothing about a text.
#[test]
fn an_endpoint_that_declines_everything_or_is_away_is_waited_for() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let mut service = open(&settings(&server, home.path(), "scripted", "retries = 0")).unwrap();
    ingest(&mut service, &data("sample.jsonl"));
    let units = census(&service).units;
    let event = TurnEvent::from_json(lines("b", "s", &[("1", "Ann", "The ferry leaves at noon")]).trim().as_bytes());
    service.log().append_turns(&[event.unwrap()]).unwrap();
    let address = server.endpoint.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    drop(server);
    let error = service.catch_up().unwrap_err();
    assert!(matches!(error, PipelineError::Embed(embed::EmbedError::Unavailable { .. })), "{error}");
    let question = Question::new(Bank::parse("sample/harbour").unwrap(), "Who?");
    assert!(service.ask(&question).is_err(), "a question is refused");
    assert_eq!(census(&service).units, units, "the memory is still there");
    drop(service);
    let again = ScriptedModel::start(&["--listen", &address]);
    let mut service = open(&settings(&again, home.path(), "scripted", "retries = 0")).unwrap();
    service.catch_up().unwrap();
    assert!(census(&service).units > units);
}

/// A wrong model, an endpoint that declines each text, a used-up quota: somebody acts while the service runs.
#[test]
fn an_endpoint_that_refuses_every_text_at_the_start_is_waited_for() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    for (model, word) in [("gpt-17", "status 404"), ("scripted+short=1", "status 413"), ("scripted+broke", "quota")] {
        let settings = settings(&server, home.path(), model, "");
        let pool = embed::EmbedderPool::open(&settings.embed, &settings.model()).unwrap();
        let problem = pool.problem().unwrap();
        assert!(problem.contains("check endpoint, model and key: ") && problem.contains(word), "{problem}");
    }
}

#[test]
fn an_endpoint_that_serves_another_model_is_away() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let settings = settings(&server, home.path(), "scripted+narrow=1", "");
    let mut embedder = embed::open(&settings.embed, &settings.model()).unwrap();
    let error = embedder.embed_query("a boat").unwrap_err();
    assert!(matches!(error, embed::EmbedError::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("64 components after vectors of 32; the endpoint now serves another model"));
}

/// What questions learn is discarded once extraction has vectors, and a `Retry-After` holds for both.
#[test]
fn questions_and_extraction_share_what_they_know_of_an_endpoint() {
    let server = ScriptedModel::start(&[]);
    let home = tempfile::tempdir().unwrap();
    let address = server.endpoint.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let mut away = settings(&server, home.path(), "scripted", "retries = 0");
    away.embed.threads = 1;
    drop(server);
    let questions = embed::EmbedderPool::open(&away.embed, &away.model()).unwrap();
    assert!(questions.problem().is_some_and(|problem| problem.contains(&address)), "{:?}", questions.problem());
    let server = ScriptedModel::start(&["--listen", &address]);
    let mut extraction = embed::open(&away.embed, &away.model()).unwrap();
    assert_eq!(questions.problem(), None, "it is open");
    drop(server);
    assert!(questions.embed_queries(&["Who?"]).is_err() && questions.problem().is_some());
    let server = ScriptedModel::start(&["--listen", &address]);
    extraction.embed(&[]).unwrap();
    assert!(questions.problem().is_some(), "the endpoint was not asked");
    extraction.embed(&[SpannedText { text: "a boat".to_owned(), spans: Vec::new() }]).unwrap();
    assert_eq!(questions.problem(), None, "it embeds");

    let busy = settings(&server, home.path(), "scripted+hour=1", "retries = 0");
    let asked = server.requests().len();
    let refused = || embed::open(&busy.embed, &busy.model()).err().unwrap().to_string();
    assert!(refused().contains("status 429"));
    let again = refused();
    assert!(again.contains("Retry-After"), "{again}");
    let questions = embed::EmbedderPool::open(&busy.embed, &busy.model()).unwrap();
    assert!(questions.problem().is_some_and(|problem| problem.contains("Retry-After")), "{:?}", questions.problem());
    assert_eq!(server.requests().len(), asked + 1, "it is left alone");
}

/// A start, a question and an end while nothing listens at the endpoint.
#[test]
fn a_service_listens_while_the_endpoint_is_away_and_names_it() {
    let server = ScriptedModel::start(&[]);
    let address = server.endpoint.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    drop(server);
    let home = tempfile::tempdir().unwrap();
    let entry = "[embed.models.served]\nrunner = \"endpoint\"\nsemantic_threshold = 0.6\nquestion_floor = 0.1\nquestion_ceiling = 0.6";
    let served = format!("served = {{ endpoint = \"http://{address}/v1\", model = \"scripted\" }}");
    let file = format!("version = 1\nembed.model = \"served\"\nlog.directory = \"log\"\n{entry}\n{served}\n");
    write(&home.path().join("p.toml"), file);
    let service = HttpService::of(home.path());
    let problem = |service: &HttpService| service.get("/v1/status")["problem"].as_str().map(str::to_owned);
    assert!(problem(&service).is_some_and(|problem| problem.contains(&address)), "{:?}", problem(&service));
    let turn = json!({"bank": "b", "turn": "1", "speaker": "Ann", "text": "The ferry leaves at noon", "time": "2024-05-06T09:00:00Z"});
    service.post("/v1/turns", &json!({"turns": [turn]}));
    let question = json!({"bank": "b", "text": "When does the ferry leave?"});
    let asked = |service: &HttpService| service.send("POST", "/v1/ask", "", question.to_string().as_bytes());
    let (status, _, refusal) = asked(&service);
    // The bank holds nothing yet, because its turn waits.
    assert_eq!((status, refusal["code"].as_str()), (503, Some("endpoint_away")), "{refusal}");
    assert!(refusal["detail"].as_str().unwrap().contains(&address), "{refusal}");
    assert!(service.stop(), "it ends well");

    let again = ScriptedModel::start(&["--listen", &address]);
    let service = HttpService::of(home.path());
    let put = json!({"turns": [turn], "wait_ms": 60_000});
    assert_eq!(service.post("/v1/turns", &put)["reflected"], true);
    assert_eq!((asked(&service).0, problem(&service)), (200, None));
    // Away again: the memory is still asked, and the refusal names the endpoint.
    drop(again);
    let (status, _, refusal) = asked(&service);
    assert_eq!((status, refusal["code"].as_str()), (503, Some("endpoint_away")), "{refusal}");
    assert!(refusal["detail"].as_str().unwrap().contains(&address), "{refusal}");
    assert!(problem(&service).is_some_and(|problem| problem.contains(&address)));
    assert!(service.stop(), "it ends well");
}

/// An endpoint that takes connections and never answers: turns are stored, questions are refused in time, and the end
/// does not wait for it.
#[test]
fn a_service_listens_while_the_endpoint_hangs_and_names_it() {
    // Nobody takes its connections, but the system does.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let home = tempfile::tempdir().unwrap();
    let entry = "[embed.models.served]\nrunner = \"endpoint\"\nsemantic_threshold = 0.6\nquestion_floor = 0.1\nquestion_ceiling = 0.6";
    let served = format!(
        "served = {{ endpoint = \"http://{address}/v1\", model = \"scripted\", timeout_seconds = 1, retries = 0 }}"
    );
    let file = format!("version = 1\nembed.model = \"served\"\nlog.directory = \"log\"\n{entry}\n{served}\n");
    write(&home.path().join("p.toml"), file);
    let service = HttpService::of(home.path());
    let problem = |service: &HttpService| service.get("/v1/status")["problem"].as_str().map(str::to_owned);
    let turn = json!({"bank": "b", "turn": "1", "speaker": "Ann", "text": "The ferry leaves at noon", "time": "2024-05-06T09:00:00Z"});
    assert_eq!(service.post("/v1/turns", &json!({"turns": [turn]}))["turns"], 1, "it is stored");
    assert!(problem(&service).is_some_and(|problem| problem.contains(&address)), "{:?}", problem(&service));
    drop(silent);
    let again = ScriptedModel::start(&["--listen", &address]);
    assert_eq!(service.post("/v1/turns", &json!({"turns": [turn], "wait_ms": 60_000}))["reflected"], true);
    drop(again);
    let _silent = TcpListener::bind(&address).unwrap();
    let started = Instant::now();
    let question = json!({"bank": "b", "text": "When does the ferry leave?"}).to_string();
    // The first may find that its connection has ended.
    for _ in 0..2 {
        let (status, _, refusal) = service.send("POST", "/v1/ask", "", question.as_bytes());
        assert_eq!((status, refusal["code"].as_str()), (503, Some("endpoint_away")), "{refusal}");
        assert!(refusal["detail"].as_str().unwrap().contains(&address), "{refusal}");
    }
    assert!(service.stop(), "it ends well");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

/// What `ingest` and `snapshot` say of turns that wait in a service for an endpoint; `ingest` goes on once it is back.
#[test]
fn commands_beside_a_service_say_which_turns_wait_for_the_endpoint() {
    let server = ScriptedModel::start(&[]);
    let address = server.endpoint.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    drop(server);
    let home = tempfile::tempdir().unwrap();
    let entry = "[embed.models.served]\nrunner = \"endpoint\"\nsemantic_threshold = 0.6\nquestion_floor = 0.1\nquestion_ceiling = 0.6";
    let served = format!("served = {{ endpoint = \"http://{address}/v1\", model = \"scripted\" }}");
    let top = "version = 1\nembed.model = \"served\"\nlog.directory = \"log\"\nsnapshot.directory = \"snapshots\"";
    let file = write(&home.path().join("p.toml"), format!("{top}\n{entry}\n{served}\n"));
    let file = file.to_str().unwrap();
    let service = HttpService::of(home.path());
    let turns = lines("b", "s", &[("1", "Ann", "The ferry leaves at noon"), ("2", "Bo", "I sold my bicycle")]);
    let turns = write(&home.path().join("in.jsonl"), turns);
    let mut ingest = Command::new(env!("CARGO_BIN_EXE_ripplemem"))
        .args(["ingest", "jsonl", turns.to_str().unwrap(), "--pipeline", file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(ingest.stderr.take().unwrap()).lines().map(Result::unwrap);
    let waits = said.by_ref().find(|line| line.contains("tries again")).unwrap();
    // Two turns, and the mark of the file's end.
    assert!(waits.contains("3 turns wait in the service, which tries again: ") && waits.contains(&address), "{waits}");
    let snapshot = || {
        let output = ripplemem(&["snapshot", "--pipeline", file]);
        assert!(output.status.success(), "{output:?}");
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [written, missing] = snapshot();
    assert!(missing.contains("3 turns are not extracted yet, so they are not in the snapshot"), "{missing}");
    assert!(written.contains(" 0 units"), "{written}");

    let _again = ScriptedModel::start(&["--listen", &address]);
    let rest: Vec<String> = said.collect();
    assert!(!rest.contains(&waits), "it is said once: {rest:?}");
    let output = ingest.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && printed.contains("3 events"), "{printed} {rest:?}");
    assert!(!rest.iter().any(|line| line.contains(&address)), "what is over is not said: {rest:?}");
    let [written, missing] = snapshot();
    assert!(!missing.contains("not extracted yet") && !written.contains(" 0 units"), "{written} {missing}");
    assert!(service.stop());
}
