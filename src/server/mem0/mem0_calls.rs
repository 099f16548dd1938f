//! The calls of Mem0's client, implemented with the calls of our memory.
//!
//! In: the fields of each request, and its caller. Out: JSON in the client's forms. A write is answered once lists and
//! answers reflect it. All calls use [`MemoryApi`], which checks the rights.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Map, Value, json, value::to_raw_value};

use super::{
    entity_ids::{EntityIds, FIELDS, ROOT, bank_and_turn, memory_id},
    filters::{FilterBranch, selector_of},
    mem0_failure::Mem0Failure,
    metadata,
    request_fields::{Mem0Message, RequestFields, now},
};
use crate::{
    access::{AccessRight, Caller},
    api::{AskRequest, MemoryApi, PutTurnsRequest, PutTurnsResponse},
};
use pipeline::StoredTurn;
use ripplemem::{TurnPage, TurnPageRequest, TurnSpan};
use types::model::{Bank, Evidence, NoticeCode, Question, Selector, SpeakerKind, Turn, TurnDeletion, TurnEvent};

/// The maximum number of banks that one search asks.
const MAX_BANKS: usize = 32;
/// The maximum number of memories that a search or a page returns.
const MAX_FOUND: usize = 1_000;
const MAX_LISTED: usize = 200;
/// How many memories a search returns if the request does not say; the platform's default.
const FOUND: usize = 10;
const LISTED: usize = 100;
/// The maximum number of turns in one write.
const WRITTEN_AT_ONCE: usize = 5_000;
/// How long a write waits until reads reflect it. The client waits 300 s.
const WAIT: Duration = Duration::from_secs(60);

/// The calls of Mem0's client.
pub(super) struct Mem0Calls {
    pub(super) api: Arc<MemoryApi>,
}

type Mem0Result = Result<Value, Mem0Failure>;

impl Mem0Calls {
    /// Remembers messages, each as a turn.
    pub(super) async fn add(&self, who: &Arc<Caller>, mut fields: RequestFields) -> Mem0Result {
        let ids = fields.ids()?;
        if let Some(kind) = ids.every() {
            let problem = format!("{kind}_id: * means every one, and no call lists or deletes what is stored under it");
            return Err(Mem0Failure::invalid(format!("{problem}; name one entity")));
        }
        let bank = ids.bank()?;
        let metadata = fields.take("metadata").map(metadata::parse_metadata).transpose()?;
        let time = fields.time("timestamp")?.unwrap_or_else(now);
        let messages = fields.messages()?;
        fields.end(&["infer", "async_mode", "version", "output_format"])?;
        let mut turns = Vec::with_capacity(messages.len());
        for message in messages {
            let speaker = speaker(&message, &ids);
            let turn = Turn::new(bank.clone(), &new_id()?, &speaker, &message.text, time);
            let kind = SpeakerKind::of_role(&message.role);
            turns.push(Turn { kind, metadata: metadata.clone(), ..turn });
        }
        let result = |turn: &Turn| json!({"id": memory_id(&bank, &turn.turn), "memory": turn.text, "event": "ADD"});
        let results: Vec<Value> = turns.iter().map(result).collect();
        let reflected = self.write(who, turns.into_iter().map(TurnEvent::Turn).collect()).await?.reflected;
        Ok(json!({"results": results, "status": if reflected { "SUCCEEDED" } else { "PENDING" }}))
    }

    /// Searches the memories of entities.
    pub(super) async fn search(&self, who: &Caller, mut fields: RequestFields) -> Mem0Result {
        let branches = fields.branches()?;
        let text = fields.text("query")?.ok_or_else(|| Mem0Failure::invalid("query: missing"))?;
        let top_k = fields.number("top_k", MAX_FOUND)?.unwrap_or(FOUND);
        let asked_at = fields.time("reference_date")?;
        let (asker, said_before) = (fields.text("asker")?, fields.said_before()?);
        let threshold = fields.take("threshold").map(|least| {
            let least = least.as_f64().filter(|least| (0.0..=1.0).contains(least));
            least.ok_or_else(|| Mem0Failure::invalid("threshold: not a number from 0 to 1"))
        });
        let threshold = threshold.transpose()?.unwrap_or_default();
        fields.end(&["rerank", "keyword_search", "latest_only", "show_expired", "version", "output_format"])?;
        let scopes = self.scopes(who, &branches)?;
        let banks: Vec<Bank> = scopes.keys().cloned().collect();
        if banks.len() > MAX_BANKS {
            let problem = format!(
                "filters: memories in {} scopes carry these ids, but a search asks at most {MAX_BANKS}",
                banks.len()
            );
            return Err(Mem0Failure::invalid(format!("{problem}; name one more id")));
        }
        let question = |bank: &Bank, asker: &Option<String>| {
            let (asker, said_before) = (asker.clone(), said_before.clone());
            let select = scopes.get(bank).cloned().flatten();
            let question = Question::new(bank.clone(), text.clone());
            AskRequest::of(Question { asked_at, asker, said_before, select, ..question })
        };
        let asked = join_all(banks.iter().map(|bank| self.api.ask(who, question(bank, &asker)))).await;
        let mut answers = asked.into_iter().collect::<Result<Vec<_>, _>>()?;
        let is_stranger =
            |answer: &Evidence| answer.notice.as_ref().is_some_and(|notice| notice.code == NoticeCode::UnknownAsker);
        let mut notice = answers.iter().find_map(|answer| Some(answer.notice.as_ref()?.message.clone()));
        // The asker may speak in another scope only.
        if answers.iter().any(|answer| !is_stranger(answer)) {
            for (bank, answer) in banks.iter().zip(&mut answers).filter(|(_, answer)| is_stranger(answer)) {
                *answer = self.api.ask(who, question(bank, &None)).await?;
            }
            notice = None;
        }
        if banks.is_empty() {
            notice = Some("no memory of these ids is stored yet; if there should be one, check them".to_owned());
        }
        let mut found = merge_by_score(&answers);
        found.retain(|(score, ..)| *score >= threshold);
        let mut wanted: BTreeMap<&Bank, Vec<String>> = BTreeMap::new();
        for (_, bank, turn) in found.iter().take(top_k) {
            wanted.entry(bank).or_default().push(turn.clone());
        }
        let mut held = HashMap::new();
        for (bank, ids) in wanted {
            for turn in self.api.turns_by_ids(who, AccessRight::Read, bank, ids).await? {
                held.insert((bank.clone(), turn.turn.turn.clone()), turn);
            }
        }
        let found = found.into_iter().take(top_k);
        let found = found.filter_map(|(score, bank, turn)| Some((score, held.remove(&(bank, turn))?)));
        let (scores, turns): (Vec<f64>, Vec<StoredTurn>) = found.unzip();
        let mut results = self.memories(who, AccessRight::Read, &turns).await?;
        for (memory, score) in results.iter_mut().zip(scores) {
            memory["score"] = json!(score);
        }
        let mut answer = json!({"results": results});
        if let Some(notice) = notice {
            answer["notice"] = json!(notice);
        }
        Ok(answer)
    }

    /// A page of the memories of entities, newest first.
    pub(super) async fn list(&self, who: &Caller, mut query: RequestFields, mut fields: RequestFields) -> Mem0Result {
        let page = query.number("page", usize::MAX)?.unwrap_or(1);
        let size = query.number("page_size", MAX_LISTED)?.unwrap_or(LISTED);
        query.end(&[])?;
        let branches = fields.branches()?;
        fields.end(&["latest_only", "show_expired", "version", "output_format"])?;
        let (scopes, before) = (self.scopes(who, &branches)?, (page - 1).saturating_mul(size));
        let of = TurnPageRequest { until_ms: None, skip: before, limit: size };
        let TurnPage { turns, count } = if scopes.values().all(Option::is_none) {
            self.api.page_of_turns(who, scopes.into_keys().collect(), of).await?
        } else {
            let mut turns = Vec::new();
            for (bank, select) in scopes {
                turns.extend(self.api.selected_turns(who, &bank, select.unwrap_or_default()).await?);
            }
            // The sort is stable: turns of the same moment keep the order of their banks.
            turns.sort_by_key(|held| held.turn.time);
            let count = turns.len();
            TurnPage { turns: turns.into_iter().rev().skip(before).take(size).collect(), count }
        };
        let other = |page| format!("/v3/memories/?page={page}&page_size={size}");
        Ok(json!({
            "count": count,
            "next": (before.saturating_add(size) < count).then(|| other(page + 1)),
            "previous": (page > 1).then(|| other(page - 1)),
            "results": self.memories(who, AccessRight::Read, &turns).await?,
        }))
    }

    /// One memory.
    pub(super) async fn get(&self, who: &Caller, id: &str) -> Mem0Result {
        let held = self.stored_turn(who, AccessRight::Read, id).await?;
        Ok(self.memories(who, AccessRight::Read, &[held]).await?.remove(0))
    }

    /// Changes a memory's text, metadata or time.
    pub(super) async fn update(&self, who: &Arc<Caller>, id: &str, fields: RequestFields) -> Mem0Result {
        let turn = self.edited_turn(who, id, fields).await?;
        let (bank, memory) = (turn.bank.clone(), turn.text.clone());
        self.write_and_wait(who, vec![TurnEvent::Turn(turn)]).await?;
        let mut answer = json!({"id": id, "updated_at": Timestamp::now().to_string()});
        // A token that may only write must not learn what was said.
        if who.may_in(AccessRight::Read, &bank).is_ok() {
            answer["memory"] = json!(memory);
        }
        set_ids(&mut answer, &bank);
        Ok(answer)
    }

    /// Changes several memories; if one of the ids does not exist, none.
    pub(super) async fn batch_update(&self, who: &Arc<Caller>, mut fields: RequestFields) -> Mem0Result {
        let memories = fields.memories()?;
        fields.end(&[])?;
        let mut turns = Vec::with_capacity(memories.len());
        for mut memory in memories {
            let id = memory.text("memory_id")?.ok_or_else(|| Mem0Failure::invalid("memories: no memory_id"))?;
            turns.push(TurnEvent::Turn(self.edited_turn(who, &id, memory).await?));
        }
        let message = format!("Successfully updated {} memories", turns.len());
        self.write_and_wait(who, turns).await?;
        Ok(json!({"message": message}))
    }

    /// Deletes a memory.
    pub(super) async fn delete(&self, who: &Arc<Caller>, id: &str, mut query: RequestFields) -> Mem0Result {
        if query.text("delete_linked")?.is_some_and(|linked| linked != "false") {
            return Err(Mem0Failure::unsupported("delete_linked"));
        }
        query.end(&[])?;
        let deletions = self.deletions(who, &[id.to_owned()]).await?;
        self.write_and_wait(who, deletions).await?;
        Ok(json!({"message": "Memory deleted successfully!"}))
    }

    /// Deletes several memories; if one of the ids does not exist, none.
    pub(super) async fn batch_delete(&self, who: &Arc<Caller>, mut fields: RequestFields) -> Mem0Result {
        let memories = fields.memories()?;
        fields.end(&[])?;
        let mut ids = Vec::with_capacity(memories.len());
        for mut memory in memories {
            ids.push(memory.text("memory_id")?.ok_or_else(|| Mem0Failure::invalid("memories: no memory_id"))?);
            memory.end(&[])?;
        }
        let deletions = self.deletions(who, &ids).await?;
        let message = format!("Successfully deleted {} memories", deletions.len());
        self.write_and_wait(who, deletions).await?;
        Ok(json!({"message": message}))
    }

    /// Deletes all memories of entities.
    pub(super) async fn delete_all(&self, who: &Arc<Caller>, mut query: RequestFields) -> Mem0Result {
        let ids = query.ids()?;
        query.end(&[])?;
        if let Some(kind) = ids.every() {
            return Err(Mem0Failure::invalid(format!("{kind}_id: * would delete every memory; name one entity")));
        }
        self.delete_of(who, &ids).await?;
        Ok(json!({"message": "Memories deleted successfully!"}))
    }

    /// Deletes an entity with all its memories.
    pub(super) async fn delete_entity(&self, who: &Arc<Caller>, kind: &str, id: &str) -> Mem0Result {
        self.delete_of(who, &EntityIds::one(kind, id)?).await?;
        Ok(json!({"message": "Entity deleted successfully!"}))
    }

    /// The versions of a memory, oldest first.
    pub(super) async fn history(&self, who: &Caller, id: &str) -> Mem0Result {
        let (bank, turn) = bank_and_turn(id)?;
        let versions = self.api.versions(who, &bank, &turn).await?;
        let Some(first) = versions.first() else { return Err(not_found_failure()) };
        let created_at = first.turn.time.to_string();
        let mut before = Value::Null;
        let mut history = Vec::with_capacity(versions.len());
        for version in &versions {
            let mut entry = json!({
                "id": format!("{id}@{}", version.turn.version),
                "memory_id": id,
                "input": [],
                "old_memory": before,
                "new_memory": version.turn.text,
                "event": if before.is_null() { "ADD" } else { "UPDATE" },
                "metadata": metadata::turn_metadata(&version.turn),
                "created_at": created_at,
                "updated_at": rfc3339(version.append_ms),
            });
            set_ids(&mut entry, &bank);
            before = json!(version.turn.text);
            history.push(entry);
        }
        Ok(Value::Array(history))
    }

    /// The entities that have memories.
    pub(super) async fn entities(&self, who: &Caller, query: RequestFields) -> Mem0Result {
        query.end(&[])?;
        who.may(AccessRight::Read).map_err(|denied| Mem0Failure::from(crate::api::ApiProblem::from(denied)))?;
        let banks = self.api.banks(who)?.banks;
        let mut entities = BTreeMap::new();
        for (bank, ids) in banks.into_iter().filter_map(|bank| EntityIds::of(&bank).map(|ids| (bank, ids))) {
            let Some(TurnSpan { count, first, last }) = self.api.span_of_turns(who, &bank).await? else { continue };
            for (kind, id) in ids.each() {
                let all = entities.entry((kind, id.to_owned())).or_insert((0, first, last));
                *all = (all.0 + count, all.1.min(first), all.2.max(last));
            }
        }
        let entity = |((kind, id), (memories, first, last)): ((&str, String), (usize, _, _))| {
            let (created_at, updated_at): (types::model::EventTime, types::model::EventTime) = (first, last);
            json!({"id": format!("{kind}-{id}"), "name": id, "type": kind, "total_memories": memories,
                   "created_at": created_at.to_string(), "updated_at": updated_at.to_string()})
        };
        let results: Vec<Value> = entities.into_iter().map(entity).collect();
        Ok(json!({"count": results.len(), "next": null, "previous": null, "results": results}))
    }

    /// The banks of some alternatives, each with what its memories must satisfy.
    fn scopes(&self, who: &Caller, branches: &[FilterBranch]) -> Result<BTreeMap<Bank, Option<Selector>>, Mem0Failure> {
        let mut of_banks: BTreeMap<Bank, Vec<&FilterBranch>> = BTreeMap::new();
        for branch in branches {
            for bank in self.banks(who, AccessRight::Read, &branch.ids)? {
                of_banks.entry(bank).or_default().push(branch);
            }
        }
        Ok(of_banks.into_iter().map(|(bank, of_bank)| (bank, selector_of(of_bank.into_iter()))).collect())
    }

    /// The banks whose memories belong to all of these entities.
    fn banks(&self, who: &Caller, right: AccessRight, ids: &EntityIds) -> Result<Vec<Bank>, Mem0Failure> {
        let exact = ids.bank()?;
        let carries = |bank: &Bank| bank.is_within(ROOT) && EntityIds::of(bank).is_some_and(|of| ids.is_subset_of(&of));
        Ok(self.api.banks_where(who, right, &exact, &carries)?)
    }

    async fn delete_of(&self, who: &Arc<Caller>, ids: &EntityIds) -> Result<(), Mem0Failure> {
        let mut banks = self.banks(who, AccessRight::Forget, ids)?;
        banks.push(ids.bank()?);
        self.api.wait_until_extracted(&banks, WAIT).await?;
        // Turns that were not extracted yet may have created further banks.
        for bank in self.banks(who, AccessRight::Forget, ids)? {
            let turns = self.api.turns(who, AccessRight::Forget, &bank).await?;
            for some in turns.chunks(WRITTEN_AT_ONCE) {
                let deletions = some.iter().map(|turn| deletion_event(bank.clone(), turn.turn.turn.clone())).collect();
                self.write_and_wait(who, deletions).await?;
            }
        }
        Ok(())
    }

    /// The memory of an id.
    async fn stored_turn(&self, who: &Caller, right: AccessRight, id: &str) -> Result<StoredTurn, Mem0Failure> {
        let (bank, turn) = bank_and_turn(id)?;
        self.api.turns_by_ids(who, right, &bank, vec![turn]).await?.into_iter().next().ok_or_else(not_found_failure)
    }

    /// The deletions for memories; an error if one of them does not exist.
    async fn deletions(&self, who: &Caller, ids: &[String]) -> Result<Vec<TurnEvent>, Mem0Failure> {
        let mut by_bank: BTreeMap<Bank, Vec<String>> = BTreeMap::new();
        for id in ids {
            let (bank, turn) = bank_and_turn(id)?;
            by_bank.entry(bank).or_default().push(turn);
        }
        let mut deletions = Vec::with_capacity(ids.len());
        for (bank, turns) in by_bank {
            if !self.holds(who, &bank, &turns).await? {
                // Some may be durable but not extracted yet.
                self.api.wait_until_extracted(std::slice::from_ref(&bank), WAIT).await?;
                if !self.holds(who, &bank, &turns).await? {
                    return Err(not_found_failure());
                }
            }
            deletions.extend(turns.into_iter().map(|turn| deletion_event(bank.clone(), turn)));
        }
        Ok(deletions)
    }

    /// Whether a bank holds all of these turns.
    async fn holds(&self, who: &Caller, bank: &Bank, turns: &[String]) -> Result<bool, Mem0Failure> {
        let held = self.api.turns_by_ids(who, AccessRight::Forget, bank, turns.to_vec()).await?;
        let held: HashSet<&str> = held.iter().map(|held| held.turn.turn.as_str()).collect();
        Ok(turns.iter().all(|turn| held.contains(turn.as_str())))
    }

    /// The next version of a memory.
    async fn edited_turn(&self, who: &Caller, id: &str, mut fields: RequestFields) -> Result<Turn, Mem0Failure> {
        let StoredTurn { turn, .. } = self.stored_turn(who, AccessRight::Write, id).await?;
        let mut turn = Arc::unwrap_or_clone(turn);
        let (text, time) = (fields.text("text")?, fields.time("timestamp")?);
        let data = fields.take("metadata").map(metadata::parse_metadata).transpose()?;
        fields.end(&[])?;
        if text.is_none() && time.is_none() && data.is_none() {
            return Err(Mem0Failure::invalid("text, metadata, timestamp: none of them is given; nothing was changed"));
        }
        turn.text = text.unwrap_or(turn.text);
        turn.time = time.unwrap_or(turn.time);
        if let Some(data) = data {
            turn.attachments.retain(|attachment| !metadata::is_metadata(attachment));
            turn.metadata = Some(data);
        }
        // The version comes from the clock, so that the later of two simultaneous edits wins.
        let now = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default();
        turn.version = now.max(turn.version.saturating_add(1));
        Ok(turn)
    }

    /// Writes, and waits until reads reflect it.
    async fn write(&self, who: &Arc<Caller>, events: Vec<TurnEvent>) -> Result<PutTurnsResponse, Mem0Failure> {
        let raw = |event: &TurnEvent| to_raw_value(event).map_err(|e| Mem0Failure::invalid(e.to_string()));
        let turns = events.iter().map(raw).collect::<Result<Vec<_>, _>>()?;
        let wait_ms = u64::try_from(WAIT.as_millis()).ok();
        Ok(self.api.put(who, PutTurnsRequest { turns, wait_ms, ..PutTurnsRequest::default() }, ()).await?)
    }

    /// Writes; fails if reads do not reflect it in time, or if a memory was deleted in the meantime.
    async fn write_and_wait(&self, who: &Arc<Caller>, events: Vec<TurnEvent>) -> Result<(), Mem0Failure> {
        // What is deleted already may be deleted again.
        let changes = events.iter().any(|event| matches!(event, TurnEvent::Turn(_)));
        let PutTurnsResponse { reflected, not_kept, stale, .. } = self.write(who, events).await?;
        if not_kept > 0 {
            return Err(not_found_failure());
        }
        if changes && !stale.is_empty() {
            let detail =
                "memory: another writer changed it meanwhile, and that change stands; read it, and decide again";
            return Err(Mem0Failure { status: 409, detail: detail.to_owned() });
        }
        if reflected {
            return Ok(());
        }
        let detail = "it is durable and will be done, but reads do not reflect it yet; look again in a moment";
        Err(Mem0Failure { status: 504, detail: detail.to_owned() })
    }

    /// Turns in the form in which the client reads memories.
    async fn memories(
        &self,
        who: &Caller,
        right: AccessRight,
        turns: &[StoredTurn],
    ) -> Result<Vec<Value>, Mem0Failure> {
        let versions = turns.iter().map(|held| (held.turn.bank.clone(), held.offset)).collect();
        let updated = self.api.append_ms(who, right, versions).await?;
        let memory = |(held, updated): (&StoredTurn, Option<i64>)| {
            let turn = &held.turn;
            let created_at = turn.time.to_string();
            let mut memory = json!({
                "id": memory_id(&turn.bank, &turn.turn),
                "memory": turn.text,
                "metadata": metadata::turn_metadata(turn),
                "categories": [],
                "speaker": turn.speaker,
                "created_at": created_at,
                "updated_at": updated.map_or_else(|| created_at.clone(), rfc3339),
            });
            set_ids(&mut memory, &turn.bank);
            memory
        };
        Ok(turns.iter().zip(updated).map(memory).collect())
    }
}

/// The turns that the answers of several banks quote, the best first.
fn merge_by_score(answers: &[Evidence]) -> Vec<(f64, Bank, String)> {
    let mut found: Vec<_> = answers.iter().flat_map(quoted_turns).collect();
    // The sort is stable: the results of one bank keep their order.
    found.sort_by(|(a, ..), (b, ..)| b.total_cmp(a));
    found
}

/// The turns that an answer quotes, each once. A turn's score is its unit's score in the bank, multiplied by the bank's
/// sufficiency, so that the scores of several banks are on one scale.
fn quoted_turns(evidence: &Evidence) -> Vec<(f64, Bank, String)> {
    let mut seen = HashSet::new();
    let excerpts = evidence.units.iter().flat_map(|unit| unit.excerpts.iter().map(|excerpt| (unit.rho, &excerpt.turn)));
    let sure = evidence.sufficiency;
    let once = excerpts.filter(|(_, turn)| seen.insert(*turn));
    once.map(|(rho, turn)| (rho * sure, evidence.question.bank.clone(), turn.clone())).collect()
}

/// The speaker of a message: its name, otherwise the entity that speaks in this role, otherwise the role.
fn speaker(message: &Mem0Message, ids: &EntityIds) -> String {
    let kind = match message.role.as_str() {
        "user" => "user",
        "assistant" => "agent",
        _ => "",
    };
    let entity = ids.each().find(|(of, _)| *of == kind).map(|(_, id)| id.to_owned());
    message.name.clone().or(entity).unwrap_or_else(|| message.role.clone())
}

/// An id that no other memory has.
fn new_id() -> Result<String, Mem0Failure> {
    let mut bits = [0_u8; 16];
    let failed = |e| Mem0Failure { status: 500, detail: format!("the system provides no random numbers: {e}") };
    getrandom::fill(&mut bits).map_err(failed)?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn deletion_event(bank: Bank, turn: String) -> TurnEvent {
    TurnEvent::Deletion(TurnDeletion::permanent(bank, turn))
}

fn not_found_failure() -> Mem0Failure {
    Mem0Failure::not_found("memory: it does not exist; it was deleted, or never added")
}

fn rfc3339(ms: i64) -> String {
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}

/// Sets the ids of a bank's entities.
fn set_ids(memory: &mut Value, bank: &Bank) {
    let (Some(memory), ids) = (memory.as_object_mut(), EntityIds::of(bank).unwrap_or_default()) else { return };
    let fields: Map<String, Value> = ids.fields().map(|(field, id)| (field.to_owned(), json!(id))).collect();
    debug_assert_eq!(fields.len(), FIELDS.len());
    memory.extend(fields);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of a bank with units of one turn each, by their ρ.
    fn answer(bank: &str, sufficiency: f64, units: &[(f64, &str)]) -> Evidence {
        let unit = |(rho, turn): &(f64, &str)| {
            let excerpt = json!({"turn": turn, "speaker": "Ann", "said_at": "2024-05-01T10:00:00Z", "text": turn});
            json!({"id": "0000000000000001", "restatement": turn, "said_at": "2024-05-01T10:00:00Z",
                   "sources": [turn], "excerpts": [excerpt], "rho": rho, "anchor": false, "provenance": []})
        };
        let units: Vec<Value> = units.iter().map(unit).collect();
        let cues = json!({"semantic_query": "Where?", "keywords": []});
        serde_json::from_value(json!({
            "schema": 1, "question": {"bank": bank, "text": "Where?"}, "units": units, "context": "",
            "sufficiency": sufficiency, "supported": true, "stop_reason": "", "reflects": [],
            "trace": {"cues": cues, "vector_hash": "", "first_hop": [], "rounds": []},
        }))
        .unwrap()
    }

    #[test]
    fn turns_of_several_scopes_are_ordered_by_their_score_times_what_their_bank_knows() {
        let unsure = answer("mem0/user-ann", 0.2, &[(1.0, "a"), (0.5, "b")]);
        let sure = answer("mem0/user-ann/run-1", 0.8, &[(0.9, "c"), (0.15, "d"), (0.1, "c")]);
        for answers in [[unsure.clone(), sure.clone()], [sure, unsure]] {
            let found = merge_by_score(&answers);
            let order: Vec<&str> = found.iter().map(|(_, _, turn)| turn.as_str()).collect();
            // 0.9 × 0.8, 1.0 × 0.2, 0.15 × 0.8, 0.5 × 0.2.
            assert_eq!(order, ["c", "a", "d", "b"], "each turn once, whatever its own bank's score");
            for ((score, ..), expected) in found.iter().zip([0.72, 0.2, 0.12, 0.1]) {
                assert!((score - expected).abs() < 1e-12, "{score} is not {expected}");
            }
            assert!(
                found.iter().all(|(_, bank, turn)| bank.as_str().ends_with("run-1") == "cd".contains(turn.as_str()))
            );
        }
    }
}
