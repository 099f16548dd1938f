//! Requests that Schemathesis makes from the OpenAPI document, against the real program: no status of 500 or
//! above, and every answer is one that the document describes. `RIPPLEMEM_FUZZ_EXAMPLES` says how many requests
//! of each operation. The test is named as skipped if PyPI cannot be reached.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    http_service::{HttpService, pipeline_file},
    support::{Python, ripplemem},
};

/// All checks but that valid requests are accepted: the document cannot say which banks hold something and which
/// offsets were written.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,negative_data_rejection,unsupported_method,ignored_auth";

/// Operations whose answers are streams or can be, and those with a deadline of the caller's, which may be a
/// millisecond: 504 is right then.
fn endless_or_timed(document: &Value) -> Vec<String> {
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    let left_out = operations.filter(|operation| {
        let answer = &operation["responses"]["200"];
        let form = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
        let form = form.and_then(|form| document.pointer(form.trim_start_matches('#')));
        let is_timed = form.is_some_and(|form| !form["properties"]["timeout_ms"].is_null());
        is_timed || !answer["content"]["text/event-stream"].is_null() || !answer["x-event-stream"].is_null()
    });
    left_out.map(|operation| operation["operationId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn requests_made_from_the_document_get_the_answers_that_it_describes() {
    let name = "requests_made_from_the_document_get_the_answers_that_it_describes";
    let Some(python) = Python::with("schemathesis", name) else { return };
    let home = tempfile::tempdir().unwrap();
    let file = pipeline_file(home.path(), "log.partitions = 2\naccess.token_file = \"tokens.json\"\n");
    let mut arguments = vec!["token", "add", "all", "--bank", "*", "--pipeline", file.to_str().unwrap()];
    ["read", "write", "forget", "admin"].iter().for_each(|right| arguments.extend(["--right", right]));
    let added = ripplemem(&arguments);
    assert!(added.status.success(), "{}", String::from_utf8_lossy(&added.stderr));
    let bearer = format!("Authorization: Bearer {}", String::from_utf8(added.stdout).unwrap().trim());
    let service = HttpService::of(home.path());
    // Schemathesis likes these names.
    for bank in ["0", "00", "A"] {
        let turn = json!({"bank": bank, "turn": "0", "speaker": "Ann", "text": "The ferry leaves at noon",
                          "time": "2024-05-01T10:00:00Z"});
        let body = json!({"turns": [turn], "wait_ms": 10_000}).to_string();
        let (status, _, answer) = service.send("POST", "/v1/turns", &format!("{bearer}\r\n"), body.as_bytes());
        assert_eq!(status, 200, "{answer}");
    }
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/openapi.v1.json");
    let examples = std::env::var("RIPPLEMEM_FUZZ_EXAMPLES").unwrap_or_else(|_| "5".to_owned());
    let mut command = python.command();
    command.current_dir(home.path()).args(["-m", "schemathesis.cli", "run"]).arg(&document);
    command.args(["-u", &format!("http://{}", service.address), "-H", &bearer, "-c", CHECKS]);
    command.args(["-n", &examples, "--phases", "coverage,fuzzing", "--continue-on-failure", "--request-timeout", "30"]);
    command.args(["--generation-database", "none"]);
    let text: Value = serde_json::from_str(&std::fs::read_to_string(&document).unwrap()).unwrap();
    for id in endless_or_timed(&text) {
        command.args(["--exclude-operation-id", &id]);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{}", said.lines().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n"));
    assert!(service.stop());
}
