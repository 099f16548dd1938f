//! Pages of other origins: refused, unless `http.origins` names theirs.

use std::io::Read as _;

use serde_json::json;

use super::{
    access::{TOKENS, add},
    http_service::{HttpService, pipeline_file},
    support::ripplemem,
};

const APP: &str = "https://app.example";

/// The head of a response, in lower case.
fn head(service: &HttpService, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut text = String::new();
    let _ = service.begin(method, path, headers, body.as_bytes()).read_to_string(&mut text);
    text.split("\r\n\r\n").next().unwrap().to_ascii_lowercase()
}

fn allows(head: &str) -> bool {
    head.contains(&format!("access-control-allow-origin: {APP}\r\n")) && head.contains("\r\nvary: origin")
}

#[test]
fn a_page_of_a_named_origin_may_ask_and_no_other() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), &format!("{TOKENS}[http]\norigins = [\"{APP}\"]\n"));
    let token = add(home.path(), "app", "b", &["read", "write"]);
    let service = HttpService::of(home.path());
    let of_page = |origin: &str, more: &str| format!("Origin: {origin}\r\nSec-Fetch-Site: cross-site\r\n{more}");
    let asks = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization,content-type\r\n";
    let preflight = head(&service, "OPTIONS", "/v1/ask", &of_page(APP, asks), "");
    assert!(preflight.starts_with("http/1.1 204") && allows(&preflight), "{preflight}");
    for line in [
        "access-control-allow-methods: get, post, put, delete",
        "access-control-allow-headers: authorization, content-type, last-event-id",
    ] {
        assert!(preflight.contains(line), "{preflight}");
    }
    assert!(!preflight.contains("credentials"), "no cookie takes part: {preflight}");
    let shown = format!("Authorization: Bearer {token}\r\n");
    let body = json!({ "bank": "b", "text": "What does Ann like?" }).to_string();
    let answer = head(&service, "POST", "/v1/ask", &of_page(APP, &shown), &body);
    assert!(answer.starts_with("http/1.1 200") && allows(&answer), "{answer}");
    assert!(answer.contains("access-control-expose-headers: location, retry-after, server-timing"), "{answer}");
    // The page can read why it is refused.
    let refused = head(&service, "POST", "/v1/ask", &of_page(APP, ""), &body);
    assert!(refused.starts_with("http/1.1 401") && allows(&refused), "{refused}");
    // Every other origin is refused as before, preflights too, and a name of another host as well.
    for other in ["https://app.example.evil.org", "http://app.example", "https://APP.example", "null"] {
        for (method, more) in [("OPTIONS", asks), ("POST", shown.as_str())] {
            let refused = head(&service, method, "/v1/ask", &of_page(other, more), &body);
            assert!(refused.starts_with("http/1.1 403") && !refused.contains("access-control"), "{other}: {refused}");
        }
    }
    let elsewhere = format!("Host: evil.example\r\n{}", of_page(APP, asks));
    assert!(head(&service, "OPTIONS", "/v1/ask", &elsewhere, "").starts_with("http/1.1 403"));
    // A request of no page is answered as before.
    assert!(!head(&service, "POST", "/v1/ask", &shown, &body).contains("access-control"));
}

#[test]
fn without_the_setting_every_page_of_another_origin_is_refused() {
    let home = tempfile::tempdir().unwrap();
    pipeline_file(home.path(), "");
    let service = HttpService::of(home.path());
    let headers = format!("Origin: {APP}\r\nAccess-Control-Request-Method: POST\r\n");
    for method in ["OPTIONS", "GET"] {
        let refused = head(&service, method, "/v1/banks", &headers, "");
        assert!(refused.starts_with("http/1.1 403") && !refused.contains("access-control"), "{refused}");
    }
}

#[test]
fn an_origin_is_written_as_browsers_send_it() {
    let home = tempfile::tempdir().unwrap();
    for (origin, word) in [
        ("*", "scheme and host"),
        ("null", "scheme and host"),
        ("app.example", "scheme and host"),
        ("https://app.example/", "https://app.example"),
        ("https://App.example", "https://app.example"),
        ("https://app.example:443", "https://app.example"),
    ] {
        let file = pipeline_file(home.path(), &format!("[http]\norigins = [{origin:?}]\n"));
        let output = ripplemem(&["validate", file.to_str().unwrap()]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && said.contains("http.origins") && said.contains(word), "{origin}: {said}");
    }
}
