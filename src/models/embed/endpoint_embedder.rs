//! A model that an endpoint serves over OpenAI's embeddings protocol.
//!
//! In: texts with spans. Out: their vectors, scaled to length one. The whole text and each span are sent as separate
//! texts. Every reply is checked: one vector for each text, all of the width of the first. A request that fails in a
//! way that a text may cause is followed by a probe. If the probe is answered, the request's texts are sent alone, then
//! shorter and shorter; a text that is declined even then is reported by itself. If it is not answered, all texts wait,
//! as for a busy endpoint, which is asked again after its `Retry-After`. All clients of this process share what is
//! known of the endpoint. One that refuses every text, or serves another model, counts as away. The vectors go to the
//! log like any others, so an endpoint that answers differently tomorrow changes no memory.

use crate::log_events;
use std::{collections::HashMap, io::BufRead, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use serde::Deserialize;
use serde_json::Value;

use super::{
    EmbedError, EmbeddedText, Embedder, PROBE,
    endpoint_health::EndpointHealth,
    model_identity::model_ref,
    spans::{embed_separately, question_vector},
    truncated_texts::{TruncationKind, note_shortened, truncated_text},
    unit_vector::unit_vector,
};
use endpoint::{
    Endpoint, EndpointWaitGuard, LoneText, LoneTextFailure, ProbeOutcome, ReplyProblem, RequestFailure, TextHash,
    TextSuspicion, TryLimits, backoff, reply_text,
};
use types::{
    config::{self, EmbedSettings, ModelSettings},
    model::{ModelRef, SpannedText, Vector},
};

/// The longest `Retry-After` that a request waits for; with a longer one, the request fails.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);
/// How often a request with several texts is sent again after a failure that a text may cause, before the probe.
const DOUBTFUL_RETRIES: u32 = 1;

/// A model behind an endpoint.
pub(super) struct EndpointEmbedder {
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
    /// The width of every vector, known once the probe was answered.
    dimensions: Option<usize>,
}

impl EndpointEmbedder {
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
        let threads = settings.threads.max(1);
        let mut client = EmbeddingsClient { endpoint, served, health, batch, threads, dimensions: None };
        if let Some(variable) = client.endpoint.missing_key() {
            return Err(client.failed(format!("the environment variable {variable} is not set; export the key in it")));
        }
        let (probe, _) = client.probe()?;
        let dimensions = probe.len();
        client.dimensions = Some(dimensions);
        let reference =
            model_ref(&settings.model, "endpoint/1", &[&client.served.model, &dimensions.to_string()], model);
        Ok(Self { model: reference, settings: model.clone(), client, dimensions })
    }
}

impl Embedder for EndpointEmbedder {
    fn model(&self) -> &ModelRef {
        &self.model
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed_each(&mut self, texts: &[SpannedText]) -> Result<Vec<EmbeddedText>, EmbedError> {
        let prefix = &self.settings.text_prefix;
        let sent = TextSendRules {
            prefix_bytes: prefix.len(),
            keeps: TruncationKind::Beginning,
            tries: TryLimits::REMEMBERED,
        };
        embed_separately(texts, prefix, |plain| self.client.all(plain, sent))
    }

    fn embed_query(&mut self, text: &str) -> Result<Vector, EmbedError> {
        let prefix = &self.settings.query_prefix;
        let sent = TextSendRules { prefix_bytes: prefix.len(), keeps: TruncationKind::Ends, tries: TryLimits::ASKED };
        question_vector(&self.client.served.model, self.client.all(&[format!("{prefix}{text}")], sent)?)
    }
}

/// How texts are sent.
#[derive(Clone, Copy)]
struct TextSendRules {
    /// The length of the model's prefix, with which each text begins.
    prefix_bytes: usize,
    /// What is kept of a text that is shortened.
    keeps: TruncationKind,
    tries: TryLimits,
}

impl EmbeddingsClient {
    /// Vectors in the order of `texts`, or why a text has none; several requests run at the same time. A text that
    /// fails together with others is sent alone, and then shortened.
    fn all(&self, texts: &[String], sent: TextSendRules) -> Result<Vec<Result<Vector, String>>, EmbedError> {
        let keys: Vec<TextHash> = texts.iter().map(|text| *blake3::hash(text.as_bytes()).as_bytes()).collect();
        let suspects = &self.health.suspects;
        let (mut lone, together): (Vec<usize>, Vec<usize>) = (0..texts.len()).partition(|at| suspects.has(&keys[*at]));
        let mut found: Vec<Option<Result<Vector, String>>> = texts.iter().map(|_| None).collect();
        // How texts failed that were alone in their requests.
        let mut failed_alone: HashMap<usize, LoneTextFailure<EmbedError>> = HashMap::new();
        let requests: Vec<&[usize]> = together.chunks(self.batch).collect();
        for concurrent in requests.chunks(self.threads) {
            let (mut failed, mut away) = (Vec::new(), None);
            for (places, reply) in concurrent.iter().zip(self.at_once(concurrent, texts)) {
                match reply {
                    Ok(vectors) => places.iter().zip(vectors).for_each(|(at, vector)| found[*at] = Some(Ok(vector))),
                    Err(LoneTextFailure::Away(error)) => away = Some(error),
                    Err(failure) => failed.push((*places, failure)),
                }
            }
            let doubtful = |(_, failure): &&(&[usize], LoneTextFailure<EmbedError>)| {
                !matches!(failure, LoneTextFailure::Refused(_))
            };
            if away.is_none() && failed.iter().any(|one| doubtful(&one)) {
                away = self.probe().err();
            }
            if let Some(error) = away {
                // One of them may be why the endpoint fell silent.
                let places = failed.iter().filter(doubtful).flat_map(|(places, _)| *places);
                suspects.add(places.map(|at| keys[*at]));
                return Err(error);
            }
            for (places, failure) in failed {
                lone.extend(places);
                if let [only] = places {
                    failed_alone.insert(*only, failure);
                }
            }
        }
        for at in lone {
            let mut text = LoneTextRequest { client: self, text: &texts[at], sent };
            let made = suspects.alone(&keys[at], sent.tries, &mut text, failed_alone.remove(&at))?;
            found[at] = Some(match made {
                Ok(taken) => {
                    if taken.halvings > 0 {
                        note_shortened(&self.served.model, texts[at].len(), taken.halvings);
                    }
                    Ok(taken.reply)
                }
                Err(problem) => Err(format!("{problem} (also alone and shortened, while other texts are embedded)")),
            });
        }
        let found: Vec<Result<Vector, String>> = found.into_iter().flatten().collect();
        if found.iter().any(Result::is_ok) {
            self.health.note_answer();
        }
        Ok(found)
    }

    /// Sends these requests at the same time.
    fn at_once(
        &self,
        requests: &[&[usize]],
        texts: &[String],
    ) -> Vec<Result<Vec<Vector>, LoneTextFailure<EmbedError>>> {
        std::thread::scope(|scope| {
            let send = |places: &[usize]| {
                let texts: Vec<&str> = places.iter().map(|at| texts[*at].as_str()).collect();
                self.request(&texts, DOUBTFUL_RETRIES).map(|(vectors, _)| vectors)
            };
            let running: Vec<_> = requests.iter().map(|places| scope.spawn(move || send(places))).collect();
            let broken = || {
                let problem = "a request thread panicked; this is a defect, please report it".to_owned();
                Err(LoneTextFailure::Away(self.failed(problem)))
            };
            running.into_iter().map(|one| one.join().unwrap_or_else(|_| broken())).collect()
        })
    }

    /// Requests the vector of the probe, with all retries, to find out whether the endpoint works at all.
    fn probe(&self) -> Result<(Vector, ProbeOutcome), EmbedError> {
        let (mut vectors, attempts) = self.request(&[PROBE], u32::MAX).map_err(|failure| match failure {
            LoneTextFailure::Away(error) => error,
            LoneTextFailure::Failed(problem) | LoneTextFailure::Slow(problem) => self.unavailable(problem),
            // The remedy stands in front of the endpoint's message, which log lines leave out.
            LoneTextFailure::Refused(problem) | LoneTextFailure::Lasting(problem) if problem.contains(OTHER_MODEL) => {
                self.unavailable(problem)
            }
            LoneTextFailure::Refused(problem) | LoneTextFailure::Lasting(problem) => {
                self.unavailable(format!("it refuses every text; check endpoint, model and key: {problem}"))
            }
        })?;
        let vector = vectors.pop().ok_or_else(|| self.failed("no vector for the probe".to_owned()))?;
        self.health.note_answer();
        Ok((vector, if attempts == 1 { ProbeOutcome::AtOnce } else { ProbeOutcome::AfterFailures }))
    }

    /// One request, with retries, of which at most `doubtful_retries` are for failures that a text may cause; the
    /// vectors and the number of attempts.
    fn request(
        &self,
        texts: &[&str],
        doubtful_retries: u32,
    ) -> Result<(Vec<Vector>, u32), LoneTextFailure<EmbedError>> {
        let body = serde_json::json!({"model": self.served.model, "input": texts, "encoding_format": "float"});
        let body = serde_json::to_vec(&body).map_err(|e| LoneTextFailure::Away(self.failed(e.to_string())))?;
        let timeout = Duration::from_secs(self.served.timeout_seconds);
        let _asking = EndpointWaitGuard::begin();
        let mut attempts = 0;
        loop {
            let wait = self.health.not_before.remaining();
            if wait > MAX_RETRY_AFTER {
                let problem = "it asked not to be called for a while (Retry-After)".to_owned();
                return Err(LoneTextFailure::Away(self.unavailable(problem)));
            }
            std::thread::sleep(wait);
            attempts += 1;
            match self.endpoint.post(&body, timeout, |reader| read(reader, texts.len())) {
                Ok(vectors) => {
                    return match vectors.iter().find(|vector| self.dimensions.is_some_and(|of| of != vector.len())) {
                        Some(other) => Err(LoneTextFailure::Lasting(format!(
                            "vectors of {} components after vectors of {}; {OTHER_MODEL}: serve the one of this memory, \
                             or embed it again with ripplemem reembed",
                            other.len(),
                            self.dimensions.unwrap_or_default()
                        ))),
                        None => Ok((vectors, attempts)),
                    };
                }
                Err(RequestFailure::Rejected(problem)) => return Err(LoneTextFailure::Refused(problem)),
                Err(RequestFailure::Permanent(problem)) => return Err(LoneTextFailure::Lasting(problem)),
                Err(RequestFailure::Transient { problem, after, suspicion, .. }) => {
                    if let Some(after) = after {
                        self.health.not_before.postpone(after);
                    }
                    let wait = after.unwrap_or_default().max(backoff(attempts));
                    let tried = |problem: String| format!("{problem} ({attempts} attempts)");
                    match suspicion {
                        TextSuspicion::SlowText if doubtful_retries <= DOUBTFUL_RETRIES => {
                            return Err(LoneTextFailure::Slow(problem));
                        }
                        TextSuspicion::Text | TextSuspicion::SlowText
                            if attempts > doubtful_retries.min(self.served.retries) =>
                        {
                            return Err(LoneTextFailure::Failed(tried(problem)));
                        }
                        _ if attempts > self.served.retries || wait > MAX_RETRY_AFTER => {
                            return Err(LoneTextFailure::Away(self.unavailable(tried(problem))));
                        }
                        _ => {}
                    }
                    if attempts == 1 {
                        // The log line leaves out the endpoint's message, which may quote a text.
                        let (url, seconds) = (self.endpoint.url(), wait.as_secs_f64());
                        log_events::embeddings_endpoint_retried(url, seconds);
                    }
                    std::thread::sleep(wait);
                }
            }
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

/// What vectors of another width mean, unless only one text gets them.
const OTHER_MODEL: &str = "the endpoint now serves another model";

/// One text for an endpoint.
struct LoneTextRequest<'t> {
    client: &'t EmbeddingsClient,
    text: &'t str,
    sent: TextSendRules,
}

impl LoneTextRequest<'_> {
    fn form(&self, halvings: u32) -> Option<String> {
        truncated_text(self.text, self.sent.prefix_bytes, halvings, self.sent.keeps)
    }
}

impl LoneText for LoneTextRequest<'_> {
    type Reply = Vector;
    type Error = EmbedError;

    fn has(&self, halvings: u32) -> bool {
        self.form(halvings).is_some()
    }

    fn send(&mut self, halvings: u32) -> Result<Vector, LoneTextFailure<EmbedError>> {
        let text = self.form(halvings).unwrap_or_default();
        let (mut vectors, _) = self.client.request(&[&text], 0)?;
        vectors.pop().ok_or_else(|| LoneTextFailure::Failed("no vector for a text".to_owned()))
    }

    fn probe(&mut self) -> Result<ProbeOutcome, EmbedError> {
        self.client.probe().map(|(_, probed)| probed)
    }
}

#[derive(Deserialize)]
struct EmbeddingsReply {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    /// Absent if the endpoint answers in the order of the texts.
    index: Option<usize>,
    embedding: EmbeddingNumbers,
}

/// A vector: numbers, or, from endpoints that prefer it, the base64 of little-endian f32.
#[derive(Deserialize)]
#[serde(untagged)]
enum EmbeddingNumbers {
    Written(Vec<f64>),
    Packed(String),
}

impl EmbeddingNumbers {
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
    for (place, EmbeddingItem { index, embedding }) in reply.data.into_iter().enumerate() {
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
