//! The records of a question and of its answer on Kafka.
//!
//! In: a record of the questions topic with its headers. Out: the question, the reply topic, the
//! deadline, and the turn that the answer must reflect; or the refusal that is sent instead. Header names are those of
//! Spring and CloudEvents, if these have one:
//!
//! | header | meaning |
//! |---|---|
//! | `kafka_correlationId` | echoed byte for byte |
//! | `kafka_replyTopic` | the topic of the answer; must begin with `serve.reply_prefix` |
//! | `kafka_replyPartition` | its partition, 4 bytes, big-endian |
//! | `ripplemem_deadline` | milliseconds since 1970, in digits; after it the answer is a refusal |
//! | `ripplemem_after` | `PARTITION:OFFSET`: the answer must reflect this turn |
//! | `ripplemem_as_of` | as-of: an offset of the bank's partition of the memory topic, or an append time in RFC 3339 |
//! | `ripplemem_where` | the turns that may be quoted: a selector as JSON, in place of the question's `where` |
//! | `traceparent` | passed on |
//! | `ripplemem_forwarded` | another instance forwarded it here, once; `ce_id` is then the question's id |
//!
//! A question that is in another partition than its bank's is forwarded with all its headers.

use std::time::{Duration, Instant};

use rdkafka::message::{Header, OwnedHeaders};

use logs::partition_of;
use replica::{parse_after, parse_as_of};
use snapshots::AsOf;
use types::{
    model::{Evidence, Question, QuestionRefusal, RefusalCode},
    trace_parent::TraceParent,
};

/// What to change in a producer of turns that uses another partitioner.
const PARTITIONER: &str = "set the `partitioner` of the turns' producer to `murmur2_random`, which librdkafka's \
    clients, such as Python's, do not use by themselves";

/// What a request is checked against.
#[derive(Debug, Clone)]
pub(super) struct RequestRules {
    /// Prefix that a reply topic must have.
    pub reply_prefix: String,
    /// The reply topic for a question that does not name one.
    pub reply_topic: String,
    /// The timeout of a question that names no deadline.
    pub default_timeout: Duration,
    /// `ce_source` of an answer.
    pub source: String,
    /// Partitions of the memory topic.
    pub partitions: u32,
    /// Whether this process follows every partition of the memory, and so knows when a turn was forwarded.
    pub follows_all: bool,
}

/// A question with its deadline, and where its answer is sent.
#[derive(Debug, Clone)]
pub(super) struct KafkaQuestion {
    /// The question, or why it is refused.
    pub question: Result<Question, QuestionRefusal>,
    /// The turns partition and the first offset that need not be reflected. If the partition is not the bank's, the
    /// answer must reflect what was forwarded from there.
    pub after: Option<(u32, u64)>,
    /// The time or offset of an as-of question.
    pub as_of: Option<AsOf>,
    /// When the question is refused if it has no answer yet.
    pub deadline: Instant,
    /// Where its answer is sent.
    pub address: ReplyAddress,
    /// Whether another instance forwarded it.
    pub is_forwarded: bool,
}

/// Where the answer to a question is sent, and what it repeats of the question.
#[derive(Debug, Clone)]
pub(super) struct ReplyAddress {
    /// The id of the question, which its answer repeats: the partition and the offset where it was asked.
    pub id: String,
    /// The record's partition of the questions topic.
    pub partition: u32,
    /// Its offset.
    pub offset: u64,
    /// When it arrived.
    pub arrived: Instant,
    /// The topic of the answer.
    pub reply_topic: String,
    /// The partition of the answer, if the question names one.
    pub reply_partition: Option<u32>,
    /// The question's key, which the answer gets, too.
    pub key: Vec<u8>,
    /// The trace that the question belongs to.
    pub trace: Option<TraceParent>,
    /// Headers that the answer repeats.
    echoed: Vec<(String, Option<Vec<u8>>)>,
}

/// A record that asks for an answer, of the questions topic or of the one of requests to forget: its position, key,
/// value and headers.
pub(super) struct IncomingRequest<'a> {
    pub partition: u32,
    pub offset: u64,
    /// The record's key, which the answer gets, too.
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub headers: &'a [(String, Option<Vec<u8>>)],
}

impl KafkaQuestion {
    /// Reads a record that arrived at `arrived`, which is `unix_ms` in milliseconds since 1970.
    pub(super) fn read(asked: &IncomingRequest<'_>, rules: &RequestRules, arrived: Instant, unix_ms: i64) -> Self {
        let header = |name: &str| header(asked.headers, name);
        let mut request = Self {
            question: read_question(asked.value),
            after: None,
            as_of: None,
            deadline: arrived + rules.default_timeout,
            address: ReplyAddress::of(asked, rules, arrived),
            is_forwarded: header(FORWARDED).is_some(),
        };
        let mut problems: Vec<QuestionRefusal> = Vec::new();
        if let Some(topic) = header("kafka_replyTopic") {
            match std::str::from_utf8(topic) {
                Ok(topic) if topic.starts_with(&rules.reply_prefix) => {
                    topic.clone_into(&mut request.address.reply_topic)
                }
                _ => problems.push(QuestionRefusal::new(
                    RefusalCode::ReplyTopic,
                    format!(
                        "kafka_replyTopic: {:?} does not begin with {:?}; name a topic that does",
                        String::from_utf8_lossy(topic),
                        rules.reply_prefix
                    ),
                )),
            }
        }
        if let Some(partition) = header("kafka_replyPartition") {
            match <[u8; 4]>::try_from(partition.as_slice()).map(i32::from_be_bytes) {
                Ok(partition) if partition >= 0 => request.address.reply_partition = Some(partition.unsigned_abs()),
                _ => problems.push(invalid("kafka_replyPartition: not a partition in 4 bytes, big-endian")),
            }
        }
        if let Some(deadline) = header(DEADLINE) {
            match std::str::from_utf8(deadline).ok().and_then(|d| d.trim().parse::<i64>().ok()) {
                Some(deadline_ms) => {
                    let left_ms = deadline_ms.saturating_sub(unix_ms).clamp(0, 3_600_000).unsigned_abs();
                    request.deadline = arrived + Duration::from_millis(left_ms);
                }
                None => problems.push(invalid("ripplemem_deadline: not milliseconds since 1970 in digits")),
            }
        }
        if let Some(after) = header("ripplemem_after") {
            match std::str::from_utf8(after).ok().and_then(parse_after) {
                Some((partition, offset)) => {
                    let home = request.question.as_ref().ok().map(|q| partition_of(&q.bank, rules.partitions));
                    if let Some(home) = home.filter(|home| *home != partition && !rules.follows_all) {
                        problems.push(other_partition_refusal(home, partition));
                    }
                    request.after = Some((partition, offset.saturating_add(1)));
                }
                None => problems.push(invalid("ripplemem_after: not PARTITION:OFFSET")),
            }
        }
        if let Some(as_of) = header("ripplemem_as_of") {
            request.as_of = std::str::from_utf8(as_of).ok().and_then(parse_as_of);
            if request.as_of.is_none() {
                problems.push(invalid("ripplemem_as_of: neither an offset nor a time in RFC 3339"));
            }
        }
        if let Some(select) = header("ripplemem_where") {
            match serde_json::from_slice(select) {
                Ok(select) => {
                    if let Ok(question) = &mut request.question {
                        question.select = Some(select);
                    }
                }
                Err(problem) => problems.push(invalid(&format!("ripplemem_where: {problem}"))),
            }
        }
        if let Some(problem) = problems.into_iter().next() {
            request.question = request.question.and(Err(problem));
        }
        request
    }
}

impl ReplyAddress {
    /// Where the answer to a record is sent, if it names no other topic.
    pub(super) fn of(asked: &IncomingRequest<'_>, rules: &RequestRules, arrived: Instant) -> Self {
        let header = |name: &str| header(asked.headers, name);
        let asked_as = header(ID).filter(|_| header(FORWARDED).is_some());
        let asked_as = asked_as.and_then(|id| String::from_utf8(id.clone()).ok());
        // A forwarding instance writes where the question was asked; any other text is not an id from our instances.
        let asked_as = asked_as.filter(|id| is_position(id));
        let echoed = ["kafka_correlationId", "traceparent", "tracestate"].into_iter();
        Self {
            id: asked_as.unwrap_or_else(|| format!("{}/{}", asked.partition, asked.offset)),
            partition: asked.partition,
            offset: asked.offset,
            arrived,
            reply_topic: rules.reply_topic.clone(),
            reply_partition: None,
            key: asked.key.to_vec(),
            trace: header("traceparent").and_then(|v| TraceParent::parse(std::str::from_utf8(v).ok()?)),
            echoed: echoed.filter_map(|name| Some((name.to_owned(), Some(header(name)?.clone())))).collect(),
        }
    }

    /// The same address, with the default reply topic.
    pub(super) fn in_default_topic(self, rules: &RequestRules) -> Self {
        Self { reply_topic: rules.reply_topic.clone(), reply_partition: None, ..self }
    }

    /// The headers of the answer.
    pub(super) fn answer_headers(&self, kind: &str, rules: &RequestRules) -> OwnedHeaders {
        let mut headers = OwnedHeaders::new();
        for (key, value) in &self.echoed {
            headers = headers.insert(Header { key, value: value.as_deref() });
        }
        let ours = [
            ("ce_specversion", "1.0"),
            (ID, self.id.as_str()),
            ("ce_source", rules.source.as_str()),
            ("ce_type", kind),
            ("content-type", "application/json"),
        ];
        ours.iter().fold(headers, |headers, (key, value)| headers.insert(Header { key, value: Some(*value) }))
    }
}

/// The refusal of a question about a turn that is in a partition whose turns are not followed here.
pub(super) fn other_partition_refusal(home: u32, partition: u32) -> QuestionRefusal {
    invalid(&format!(
        "ripplemem_after: turns of this bank are remembered from partition {home}, and when a turn of partition \
         {partition} was forwarded there is not known here; {PARTITIONER}, or name the offset that the turn got in \
         partition {home}"
    ))
}

/// The headers of a question that is forwarded: those that it has, its id, its deadline, and that it
/// was forwarded. `unix_ms` is the current time, in milliseconds since 1970.
pub(super) fn forwarded_headers(
    headers: &[(String, Option<Vec<u8>>)],
    request: &KafkaQuestion,
    unix_ms: i64,
) -> OwnedHeaders {
    let left = request.deadline.saturating_duration_since(Instant::now());
    let deadline = unix_ms.saturating_add(i64::try_from(left.as_millis()).unwrap_or(i64::MAX)).to_string();
    let kept = headers.iter().filter(|(key, _)| ![ID, DEADLINE, FORWARDED].contains(&key.as_str()));
    let all = kept.fold(OwnedHeaders::new(), |all, (key, value)| all.insert(Header { key, value: value.as_deref() }));
    let ours = [(ID, request.address.id.as_str()), (DEADLINE, &deadline), (FORWARDED, "1")];
    ours.iter().fold(all, |all, (key, value)| all.insert(Header { key, value: Some(*value) }))
}

/// The id of a question and of its answer.
const ID: &str = "ce_id";
/// When a question is refused.
const DEADLINE: &str = "ripplemem_deadline";
/// Marks a question that another instance forwarded.
const FORWARDED: &str = "ripplemem_forwarded";
/// The type of an answer (`schemas/topics/answers.v1.json`).
pub(super) const ANSWER: &str = "ripplemem.answer.v1";
/// The type of a refusal (`schemas/topics/refusals.v1.json`).
pub(super) const REFUSAL: &str = "ripplemem.refusal.v1";

/// The type and the value of an answer or refusal.
pub(super) fn reply(result: &Result<Evidence, QuestionRefusal>) -> (&'static str, Vec<u8>) {
    // Serialising cannot fail: both types have a JSON form.
    match result {
        Ok(evidence) => (ANSWER, serde_json::to_vec(evidence).unwrap_or_default()),
        Err(refusal) => (REFUSAL, serde_json::to_vec(refusal).unwrap_or_default()),
    }
}

/// The last header of a name.
fn header<'h>(headers: &'h [(String, Option<Vec<u8>>)], name: &str) -> Option<&'h Vec<u8>> {
    headers.iter().rev().find(|(key, _)| key == name).and_then(|(_, value)| value.as_ref())
}

/// Whether an id is `PARTITION/OFFSET`.
fn is_position(id: &str) -> bool {
    let is_number = |text: &str, most: u64| text.parse::<u64>().is_ok_and(|n| n <= most && n.to_string() == text);
    id.split_once('/').is_some_and(|(partition, offset)| {
        is_number(partition, i32::MAX.unsigned_abs().into()) && is_number(offset, i64::MAX.unsigned_abs())
    })
}

fn read_question(value: &[u8]) -> Result<Question, QuestionRefusal> {
    serde_json::from_slice(value)
        .map_err(|e| invalid(&format!("not a question: {e}; see schemas/topics/questions.v1.json")))
}

fn invalid(problem: &str) -> QuestionRefusal {
    QuestionRefusal::new(RefusalCode::Invalid, problem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> RequestRules {
        RequestRules {
            reply_prefix: "app.answers".to_owned(),
            reply_topic: "app.answers".to_owned(),
            default_timeout: Duration::from_secs(10),
            source: "/ripplemem/app".to_owned(),
            partitions: 1,
            follows_all: false,
        }
    }

    fn read(value: &str, headers: &[(&str, &[u8])]) -> KafkaQuestion {
        let headers: Vec<_> = headers.iter().map(|(k, v)| ((*k).to_owned(), Some(v.to_vec()))).collect();
        let asked = IncomingRequest { partition: 2, offset: 9, key: b"k", value: value.as_bytes(), headers: &headers };
        KafkaQuestion::read(&asked, &rules(), Instant::now(), 1_000_000)
    }

    const QUESTION: &str = r#"{"bank": "acme", "text": "Where?"}"#;

    #[test]
    fn headers_are_understood() {
        let correlation = [0xff, 0x00, 0xfe];
        let request = read(
            QUESTION,
            &[
                ("kafka_correlationId", &correlation),
                ("kafka_replyTopic", b"app.answers.me"),
                ("kafka_replyPartition", &[0, 0, 0, 3]),
                ("ripplemem_deadline", b"1000500"),
                ("ripplemem_after", b"0:41"),
                ("ripplemem_as_of", b"2024-05-06T09:00:00Z"),
                ("traceparent", b"00-x-y-01"),
            ],
        );
        assert!(request.question.is_ok());
        let address = &request.address;
        assert_eq!((address.reply_topic.as_str(), address.reply_partition), ("app.answers.me", Some(3)));
        assert_eq!(request.after, Some((0, 42)));
        assert_eq!(request.as_of, Some(AsOf::Time(1_714_986_000_000)));
        assert_eq!(request.deadline - address.arrived, Duration::from_millis(500));
        use rdkafka::message::Headers;
        let headers = address.answer_headers(ANSWER, &rules());
        let value = |name: &str| headers.iter().find(|h| h.key == name).and_then(|h| h.value.map(<[u8]>::to_vec));
        assert_eq!(value("kafka_correlationId").unwrap(), correlation);
        assert_eq!(value("traceparent").unwrap(), b"00-x-y-01");
        assert_eq!(value("ce_id").unwrap(), b"2/9");
    }

    #[test]
    fn what_comes_with_a_question_stands_in_its_record() {
        let value = r#"{"bank": "acme", "text": "Where?", "asked_at": "2024-05-06T09:00:00Z", "asker": "Bo",
            "said_before": [{"speaker": "Ann", "text": "the kayak?"}], "most_tokens": 200}"#;
        let question = read(value, &[]).question.unwrap();
        assert_eq!((question.asker.as_deref(), question.most_tokens), (Some("Bo"), Some(200)));
        assert_eq!(question.asked_at.map(|time| time.unix_ms), Some(1_714_986_000_000));
        let said: Vec<(&str, &str)> =
            question.said_before.iter().map(|said| (said.speaker.as_str(), said.text.as_str())).collect();
        assert_eq!(said, [("Ann", "the kayak?")]);
    }

    #[test]
    fn a_forwarded_question_keeps_its_headers_its_id_and_its_deadline() {
        use rdkafka::message::Headers;
        let headers: Vec<(String, Option<Vec<u8>>)> = [("kafka_correlationId", &[0xff][..]), ("ce_id", b"theirs")]
            .map(|(key, value)| (key.to_owned(), Some(value.to_vec())))
            .into();
        let asked =
            IncomingRequest { partition: 2, offset: 9, key: b"k", value: QUESTION.as_bytes(), headers: &headers };
        let first = KafkaQuestion::read(&asked, &rules(), Instant::now(), 1_000_000);
        assert!(!first.is_forwarded && first.address.id == "2/9", "an id counts only where it was forwarded");
        let sent = forwarded_headers(&headers, &first, 1_000_000);
        let sent: Vec<_> = sent.iter().map(|h| (h.key.to_owned(), h.value.map(<[u8]>::to_vec))).collect();
        let asked = IncomingRequest { partition: 0, offset: 4, headers: &sent, ..asked };
        // Three of the ten seconds have passed at the forwarding instance.
        let second = KafkaQuestion::read(&asked, &rules(), Instant::now(), 1_003_000);
        assert!(second.is_forwarded);
        assert_eq!((second.address.id.as_str(), second.address.partition, second.address.offset), ("2/9", 0, 4));
        assert_eq!(second.address.echoed, first.address.echoed);
        let left = second.deadline - second.address.arrived;
        assert!(left <= Duration::from_secs(7) && left > Duration::from_millis(6_500), "{left:?}");
    }

    #[test]
    fn an_id_that_no_instance_wrote_is_not_repeated() {
        let id_of = |id: &str| read(QUESTION, &[(FORWARDED, b"1"), (ID, id.as_bytes())]).address.id;
        let own = id_of("");
        for forged in ["forged", "1/", "/2", "1/2/3", "01/2", "+1/2", "-1/2", "1/99999999999999999999", "1 /2"] {
            assert_eq!(id_of(forged), own, "{forged}");
        }
        assert_eq!(id_of("7/4711"), "7/4711");
    }

    #[test]
    fn a_wrong_question_or_header_is_refused_by_name() {
        for (value, headers, code, word) in [
            ("{", &[][..], RefusalCode::Invalid, "not a question"),
            (r#"{"bank": "a//b", "text": "x"}"#, &[], RefusalCode::Invalid, "bank"),
            (QUESTION, &[("kafka_replyTopic", &b"other"[..])], RefusalCode::ReplyTopic, "app.answers"),
            (QUESTION, &[("kafka_replyPartition", b"1")], RefusalCode::Invalid, "big-endian"),
            (QUESTION, &[("ripplemem_deadline", b"soon")], RefusalCode::Invalid, "milliseconds"),
            (QUESTION, &[("ripplemem_after", b"7:1")], RefusalCode::Invalid, "murmur2_random"),
            (QUESTION, &[("ripplemem_as_of", b"yesterday")], RefusalCode::Invalid, "RFC 3339"),
            (QUESTION, &[("ripplemem_after", b"x")], RefusalCode::Invalid, "PARTITION:OFFSET"),
        ] {
            let request = read(value, headers);
            let refusal = request.question.unwrap_err();
            assert_eq!(refusal.code, code, "{value}");
            assert!(refusal.message.contains(word), "{word} is not in {}", refusal.message);
            assert_eq!(request.address.reply_topic, "app.answers", "a refusal goes to an allowed topic");
        }
    }
}
