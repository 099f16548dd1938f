//! When words of deleted turns leave the topics of a pipeline, as the topics' own properties say.
//!
//! In: the properties of the topics that hold words. Out: the longest time until such a topic has dropped what is
//! deleted, and the topics that never drop it, each with the property to change.

use super::{client::KafkaCluster, topic_setup};
use crate::{LogError, TopicRetention, memory_name};

/// By default, brokers check every five minutes for what they may delete, and delete its files a minute later.
const BROKER_MS: u64 = 600_000;
/// The compaction lag that the advice proposes.
const DAY_MS: u64 = 86_400_000;

/// Reads when words leave the existing topics.
pub(super) fn read_topic_retention(cluster: &KafkaCluster, generation: u32) -> Result<TopicRetention, LogError> {
    let forgets = cluster.settings.forgets_topic.as_str();
    let names = ["turns", "dead-letters", "questions", "answers", "edges", forgets].into_iter().map(str::to_owned);
    let names = names.chain((1..=generation).map(memory_name)).map(|name| cluster.topic(&name)).collect();
    let former: Vec<String> = (1..generation).map(|former| cluster.topic(&memory_name(former))).collect();
    let mut leaving = TopicRetention::default();
    for (name, properties) in topic_setup::properties(cluster, names)? {
        if former.contains(&name) {
            leaving.never.push(format!(
                "topic {name}: it holds the memory before a re-embedding, and nothing is deleted there; \
                 ripplemem reembed --drop-old"
            ));
            continue;
        }
        match of_topic(&name, &|key| properties.get(key).and_then(|entry| entry.value.clone())) {
            Ok(within_ms) => leaving.within_ms = leaving.within_ms.max(within_ms),
            Err(never) => leaving.never.push(never),
        }
    }
    Ok(leaving)
}

/// The milliseconds after which a topic has dropped a record that is deleted or replaced; or why it never does.
fn of_topic(name: &str, property: &dyn Fn(&str) -> Option<String>) -> Result<u64, String> {
    let number = |key: &str| property(key).and_then(|value| value.parse::<i64>().ok());
    // A limit of -1, or of the largest number, means no limit.
    let limit = |key: &str| number(key).filter(|ms| (0..i64::MAX).contains(ms)).map(i64::unsigned_abs);
    let policy = property("cleanup.policy").unwrap_or_default();
    let has = |kind: &str| policy.split(',').any(|part| part.trim() == kind);
    let deleted = limit("retention.ms").filter(|_| has("delete"));
    // A segment is deleted once its last record is old enough.
    let deleted = deleted.and_then(|retention| Some(retention.saturating_add(limit("segment.ms")?)));
    let compacted = limit("max.compaction.lag.ms").filter(|_| has("compact"));
    let within = deleted.into_iter().chain(compacted).min();
    within.map(|within| within.saturating_add(BROKER_MS)).ok_or_else(|| {
        let (key, value) = if has("compact") {
            ("max.compaction.lag.ms", DAY_MS.to_string())
        } else {
            ("retention.ms", "MS".to_owned())
        };
        let found = property(key).unwrap_or_else(|| "unknown".to_owned());
        format!(
            "topic {name}: {key} is {found}, so what is deleted never leaves it; kafka-configs.sh --alter \
             --entity-type topics --entity-name {name} --add-config {key}={value}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retention_and_compaction_say_when_words_leave_a_topic() {
        let of = |properties: &[(&str, &str)]| {
            let find = |key: &str| properties.iter().find(|(name, _)| *name == key).map(|(_, v)| (*v).to_owned());
            of_topic("p.turns", &find)
        };
        let delete = ("cleanup.policy", "delete");
        assert_eq!(of(&[delete, ("retention.ms", "1000"), ("segment.ms", "100")]), Ok(1_100 + BROKER_MS));
        assert_eq!(of(&[("cleanup.policy", "compact"), ("max.compaction.lag.ms", "7")]), Ok(7 + BROKER_MS));
        let both = ("cleanup.policy", "compact,delete");
        let either = [both, ("retention.ms", "50"), ("segment.ms", "1"), ("max.compaction.lag.ms", "70")];
        assert_eq!(of(&either), Ok(51 + BROKER_MS), "whichever comes first");
        let kept = of(&[delete, ("retention.ms", "-1"), ("segment.ms", "100")]).unwrap_err();
        assert!(kept.contains("retention.ms is -1") && kept.contains("--entity-name p.turns"), "{kept}");
        let most = i64::MAX.to_string();
        let kept = of(&[("cleanup.policy", "compact"), ("max.compaction.lag.ms", &most)]).unwrap_err();
        assert!(kept.contains("--add-config max.compaction.lag.ms=86400000"), "{kept}");
    }
}
