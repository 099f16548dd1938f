//! A model that an endpoint serves over OpenAI's embeddings protocol.
//!
//! In: texts with spans. Out: their vectors, scaled to length one. The whole text and each span are sent as separate
//! texts. Every reply is checked: one vector for each text, all of the same width. Transient failures are retried,
//! after the endpoint's `Retry-After`, which holds for every client in this process. A text that the endpoint declines
//! is sent again alone, then shorter and shorter; a text that is declined even then is named in the error. An endpoint
//! that refuses every text, or serves another model, counts as away. The vectors go to the log like any others, so an
//! endpoint that answers differently tomorrow changes no memory.

use std::{io::BufRead, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use serde::Deserialize;
use serde_json::Value;

use tracing::warn;

use super::{
    EmbedError, Embedder, SpanVectors, endpoint_health::EndpointHealth, identity::model_ref, spans::embed_separately,
    unit_vector::unit_vector,
};
use endpoint::{Endpoint, EndpointWait, ReplyProblem, RequestFailure, backoff, reply_text};
use nouns::{
    config::{self, EmbedSettings, ModelSettings},
    model::{ModelRef, SpannedText, Vector},
};

/// The longest `Retry-After` that a request waits for; with a longer one, the request fails.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The text that shows whether an endpoint works at all.
const PROBE: &str = "ready";
/// A text that is declined is not shortened below this length.
const SHORTEST_BYTES: usize = 64;

/// A model behind an endpoint.
pub(super) struct ServedEmbedder {
    model: ModelRef,
    settings: ModelSettings,
    client: EmbeddingsClient,
    dimensions: usize,
}

/// Sends texts and reads vectors.
struct EmbeddingsClient {
    endpoint: Endpoint,
    served: config::ServedModelSettings,
    health: Arc<EndpointHealth>,
    /// Texts in one request.
    batch: usize,
    /// Requests at the same time.
    threads: usize,
}

impl ServedEmbedder {
    /// Requests the vector of one word, which shows the width.
    pub(super) fn open(settings: &EmbedSettings, model: &ModelSettings) -> Result<Self, EmbedError> {
        let served = model.served.clone().ok_or_else(|| EmbedError::Model {
            model: settings.model.clone(),
            problem: "no endpoint is set; write embed.models.NAME.served into the pipeline file".to_owned(),
        })?;
        let endpoint = Endpoint::new(&served.endpoint, "embeddings", &served.key_env);
        // The vectors of a model that is `alone` would depend on the other texts of the request.
        let batch = if model.alone { 1 } else { settings.batch.max(1) };
        let health = EndpointHealth::of(&served);
        let client = EmbeddingsClient { endpoint, served, health, batch, threads: settings.threads.max(1) };
        if let Some(variable) = client.endpoint.missing_key() {
            return Err(client.failed(format!("the environment variable {variable} is not set; export the key in it")));
        }
        let probe = client.request(&[PROBE.to_owned()]).map_err(|failure| client.refuses_all(failure))?;
        client.health.answered();
        let dimensions = probe.first().map_or(0, |vector| vector.len());
        let reference =
            model_ref(&settings.model, "endpoint/1", &[&client.served.model, &dimensions.to_string()], model);
        Ok(Self { model: reference, settings: model.clone(), client, dimensions })
    }
}

impl Embedder for ServedEmbedder {
    fn model(&self) -> &ModelRef {
        &self.model
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&mut self, texts: &[SpannedText]) -> Result<Vec<SpanVectors>, EmbedError> {
        embed_separately(texts, &self.settings.text_prefix, |plain| self.client.all(plain, self.dimensions))
    }

    fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError> {
        let found = self.client.all(&[format!("{}{text}", self.settings.query_prefix)], self.dimensions)?.pop();
        found.ok_or_else(|| self.client.failed("no vector for the question".to_owned()))
    }
}

impl EmbeddingsClient {
    /// Vectors in the order of `texts`; several requests run at the same time. A text that is declined together with
    /// others is sent alone, and then shortened.
    fn all(&self, texts: &[String], dimensions: usize) -> Result<Vec<Vector>, EmbedError> {
        let (mut found, mut declined) = (Vec::with_capacity(texts.len()), Vec::new());
        let requests: Vec<&[String]> = texts.chunks(self.batch).collect();
        for concurrent in requests.chunks(self.threads) {
            let replies: Vec<Result<Vec<Vector>, EmbedFailure>> = std::thread::scope(|scope| {
                let running: Vec<_> = concurrent.iter().map(|texts| scope.spawn(move || self.request(texts))).collect();
                let broken = || {
                    Err(self.failed("a request thread panicked; this is a defect, please report it".to_owned()).into())
                };
                running.into_iter().map(|one| one.join().unwrap_or_else(|_| broken())).collect()
            });
            for (sent, reply) in concurrent.iter().zip(replies) {
                match reply {
                    Ok(vectors) => found.extend(vectors),
                    Err(EmbedFailure::Declined(problem)) => {
                        for text in *sent {
                            let vector = match self.alone(text, sent.len() == 1, &problem)? {
                                Ok(vector) => vector,
                                Err(problem) => {
                                    declined.push((found.len(), problem));
                                    // This keeps the order; no vectors are returned once a text is declined.
                                    Vector::from(vec![0.0; dimensions])
                                }
                            };
                            found.push(vector);
                        }
                    }
                    Err(failure) => return Err(self.refuses_all(failure)),
                }
            }
        }
        if let Some(other) = found.iter().find(|vector| vector.len() != dimensions) {
            return Err(self.unavailable(format!(
                "vectors of {} components after vectors of {dimensions}; the endpoint now serves another model: serve \
                 the one of this memory, or embed it again with ripplemem reembed",
                other.len()
            )));
        }
        if declined.is_empty() {
            if !found.is_empty() {
                self.health.answered();
            }
            return Ok(found);
        }
        // An endpoint that declines everything is misconfigured, or still loading its model; the texts are not the
        // cause.
        match self.request(&[PROBE.to_owned()]) {
            Ok(_) => Err(EmbedError::Declined { model: self.served.model.clone(), texts: declined }),
            Err(failure) => Err(self.refuses_all(failure)),
        }
    }

    /// The vector of one text that was declined. The whole text is sent unless it was already `tried` alone; then its
    /// first half, quarter and so on, until one is accepted. The inner error says why none was accepted.
    fn alone(&self, text: &str, tried: bool, problem: &str) -> Result<Result<Vector, String>, EmbedError> {
        let mut problem = problem.to_owned();
        let mut bytes = if tried { text.len() / 2 } else { text.len() };
        let mut first = true;
        while first || bytes >= SHORTEST_BYTES {
            first = false;
            let beginning = text.get(..text.floor_char_boundary(bytes)).unwrap_or_default();
            if beginning.trim().is_empty() {
                break;
            }
            match self.request(&[beginning.to_owned()]) {
                Ok(vectors) => return Ok(vectors.into_iter().next().ok_or(problem)),
                Err(EmbedFailure::Declined(said)) => problem = said,
                Err(failure) => return Err(self.refuses_all(failure)),
            }
            bytes /= 2;
        }
        Ok(Err(problem))
    }

    /// One request, with retries.
    fn request(&self, texts: &[String]) -> Result<Vec<Vector>, EmbedFailure> {
        let body = serde_json::json!({"model": self.served.model, "input": texts, "encoding_format": "float"});
        let body = serde_json::to_vec(&body).map_err(|e| self.failed(e.to_string()))?;
        let timeout = Duration::from_secs(self.served.timeout_seconds);
        let _asking = EndpointWait::begin();
        let mut attempts = 0;
        loop {
            let wait = self.health.not_before.remaining();
            if wait > MAX_RETRY_AFTER {
                return Err(self.unavailable("it asked not to be called for a while (Retry-After)".to_owned()).into());
            }
            std::thread::sleep(wait);
            attempts += 1;
            match self.endpoint.post(&body, timeout, |reader| read(reader, texts.len())) {
                Ok(vectors) => return Ok(vectors),
                Err(RequestFailure::Rejected(problem)) => return Err(EmbedFailure::Declined(problem)),
                Err(RequestFailure::Permanent(problem)) => return Err(EmbedFailure::Misconfigured(problem)),
                Err(RequestFailure::Transient { problem, after, .. }) => {
                    if let Some(after) = after {
                        self.health.not_before.postpone(after);
                    }
                    let wait = after.unwrap_or_default().max(backoff(attempts));
                    if attempts > self.served.retries || wait > MAX_RETRY_AFTER {
                        return Err(self.unavailable(format!("{problem} ({attempts} attempts)")).into());
                    }
                    if attempts == 1 {
                        // The log line leaves out the endpoint's message, which may quote a text.
                        let (url, seconds) = (self.endpoint.url(), wait.as_secs_f64());
                        warn!(url, seconds, "the embeddings endpoint does not answer; the request is sent again");
                    }
                    std::thread::sleep(wait);
                }
            }
        }
    }

    /// The error of a failure that concerns no single text. The remedy stands in front of the endpoint's message, which
    /// log lines leave out.
    fn refuses_all(&self, failure: EmbedFailure) -> EmbedError {
        match failure {
            EmbedFailure::Declined(problem) | EmbedFailure::Misconfigured(problem) => {
                self.unavailable(format!("it refuses every text; check endpoint, model and key: {problem}"))
            }
            EmbedFailure::Failed(error) => error,
        }
    }

    fn unavailable(&self, problem: String) -> EmbedError {
        let problem = format!("{}: {problem}", self.endpoint.url());
        EmbedError::Unavailable { model: self.served.model.clone(), problem }
    }

    fn failed(&self, problem: String) -> EmbedError {
        EmbedError::Model { model: self.served.model.clone(), problem: format!("{}: {problem}", self.endpoint.url()) }
    }
}

/// Why a request has no vectors.
enum EmbedFailure {
    /// The endpoint declines these texts; it may accept others.
    Declined(String),
    /// The endpoint accepts nothing until its configuration or the account changes.
    Misconfigured(String),
    /// Anything else.
    Failed(EmbedError),
}

impl From<EmbedError> for EmbedFailure {
    fn from(error: EmbedError) -> Self {
        Self::Failed(error)
    }
}

#[derive(Deserialize)]
struct EmbeddingsReply {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    /// Absent if the endpoint answers in the order of the texts.
    index: Option<usize>,
    embedding: Numbers,
}

/// A vector: numbers, or, from endpoints that prefer it, the base64 of little-endian f32.
#[derive(Deserialize)]
#[serde(untagged)]
enum Numbers {
    Written(Vec<f64>),
    Packed(String),
}

impl Numbers {
    fn read(self) -> Option<Vec<f64>> {
        match self {
            Self::Written(numbers) => Some(numbers),
            Self::Packed(text) => {
                let bytes = BASE64.decode(text).ok()?;
                let (numbers, rest) = bytes.as_chunks::<4>();
                rest.is_empty().then(|| numbers.iter().map(|n| f64::from(f32::from_le_bytes(*n))).collect())
            }
        }
    }
}

/// The vectors of a reply to `texts` texts, in their order, scaled to length one.
fn read(reader: &mut dyn BufRead, texts: usize) -> Result<Vec<Vector>, ReplyProblem> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|e| format!("the connection broke: {e}"))?;
    let not_one = |e: serde_json::Error| format!("not a list of embeddings: {e}");
    let reply: Value = serde_json::from_str(&reply_text(&bytes)).map_err(not_one)?;
    if let Some(failed) = ReplyProblem::reported(&reply) {
        return Err(failed);
    }
    let reply: EmbeddingsReply = serde_json::from_value(reply).map_err(not_one)?;
    let mut found: Vec<(usize, Vec<f64>)> = Vec::with_capacity(reply.data.len());
    for (place, Embedding { index, embedding }) in reply.data.into_iter().enumerate() {
        found.push((index.unwrap_or(place), embedding.read().unwrap_or_default()));
    }
    found.sort_by_key(|(index, _)| *index);
    if !found.iter().map(|(index, _)| *index).eq(0..texts) {
        return Err(format!("{} vectors for {texts} texts, or not one for each text", found.len()).into());
    }
    let width = found.first().map_or(0, |(_, vector)| vector.len());
    let valid = |v: &[f64]| v.len() == width && v.iter().all(|x| x.is_finite()) && v.iter().any(|x| *x != 0.0);
    if let Some((index, _)) = found.iter().find(|(_, vector)| !valid(vector)) {
        return Err(
            format!("the vector of text {index} is empty, has another width, or does not consist of numbers").into()
        );
    }
    Ok(found.iter().map(|(_, vector)| unit_vector(vector)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_in_the_order_of_its_texts_or_is_an_error() {
        let check = |text: &str, texts: usize, expected: Result<&[&[f32]], &str>| match (
            read(&mut text.as_bytes(), texts),
            expected,
        ) {
            (Ok(found), Ok(wanted)) => {
                assert_eq!(found.iter().map(|v| v.floats()).collect::<Vec<_>>(), wanted, "{text}");
            }
            (Err(problem), Err(word)) => assert!(format!("{problem:?}").contains(word), "{problem:?}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        let two =
            r#"{"object": "list", "data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 4]}]}"#;
        check(two, 2, Ok(&[&[0.6, 0.8], &[0.0, 1.0]]));
        check(two, 3, Err("2 vectors for 3 texts"));
        check(
            r#"{"data": [{"embedding": [3, 4]}, {"embedding": "AAAAAAAAAEA="}]}"#,
            2,
            Ok(&[&[0.6, 0.8], &[0.0, 1.0]]),
        );
        check(r#"{"data": [{"embedding": "AAAAAAAA"}]}"#, 1, Err("text 0"));
        check(r#"{"error": {"message": "out of memory", "code": 503}}"#, 1, Err("out of memory"));
        check("\u{feff}{\"error\": false, \"data\": [{\"embedding\": [0, 2]}]}", 1, Ok(&[&[0.0, 1.0]]));
        check(
            r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}"#,
            2,
            Err("or not one for each"),
        );
        check(r#"{"data": [{"index": 0, "embedding": [0, 0]}]}"#, 1, Err("text 0"));
        check(r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 0]}]}"#, 2, Err("text 1"));
        check("<html>", 1, Err("not a list of embeddings"));
    }
}
