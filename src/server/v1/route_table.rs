//! The routes of `/v1`, one row each.
//!
//! In: nothing. Out: the rows. To add a route, write a row here and its handler in `handlers`: the router serves it,
//! the OpenAPI document describes it, and a test asks it with every right. A bank's name may hold slashes, so it is a
//! parameter of the query and never a part of the path.

use super::{
    api_route::{
        ApiRoute, RouteDescription, RouteEntry,
        RouteMethod::{self, Delete, Get, Post, Put},
        RouteRight::{self, Everywhere, InBank, Somewhere, Token},
        body, body_json, json_response_schema, no_input, no_input_json, query, query_json,
    },
    handlers,
    query_parameter::{
        ParameterKind::{self, Flag, OneOf, Text, Texts, Unit, Whole},
        QueryParameter, optional, required,
    },
    response_schemas::{ask_responses, bank_event_responses, profile_responses, subscription_responses},
};
use crate::{
    access::AccessRight::{Admin, Forget, Read, Write},
    api::{MemoryApi, PutTurnsResponse, ServiceOperations},
};

const BANK: QueryParameter = required("bank", "The bank.", Text);
/// Milliseconds that a request may wait.
const WAIT: ParameterKind = Whole(Some(0), Some(600_000));

/// The routes of a service that has a memory.
pub(super) fn memory_routes() -> Vec<ApiRoute<MemoryApi>> {
    vec![
        query_json(
            Get,
            entry(
                "/v1/turns",
                InBank(Read),
                "turns",
                "The turns of a bank, each as last edited.",
                "The turns.",
                &["400", "421"],
            ),
            [
                BANK,
                optional("turn", "Only those that this id, or short id, means; may be given up to 1,000 times.", Texts),
                optional("speaker", "Only those of this speaker.", Text),
                optional(
                    "mentions",
                    "Only those whose words hold this name; with speaker, those that fit either.",
                    Text,
                ),
                optional("since", "Only those said at this time (RFC 3339) or later.", Text),
                optional("until", "Only those said before this time (RFC 3339).", Text),
                optional("session", "Only those of this session.", Text),
                optional("session_prefix", "Only those of sessions whose names begin with this.", Text),
                optional("thread", "Only those of this thread.", Text),
                optional("order", "Their order by time: latest first, or oldest.", OneOf(&["latest", "oldest"])),
                optional("before", "Where the list goes on: the `next` of an earlier one.", Text),
                optional("limit", "Most turns; 20 without it.", Whole(Some(1), Some(1_000))),
            ],
            handlers::turns,
        ),
        body_json(
            Post,
            entry(
                "/v1/turns/list",
                InBank(Read),
                "select_turns",
                "The turns of a bank that a selector takes, each as last edited.",
                "The turns.",
                &["400", "408", "413", "421"],
            ),
            handlers::select_turns,
        ),
        body(
            entry(
                "/v1/turns",
                InBank(Write),
                "put",
                "Write turns, edits, deletions and ends of sessions; answered when they are durable. A turn that is \
                 sent again, with the same id and version, changes nothing. Where a condition does not hold, the \
                 problem `conflict` names the turn and the version that stands.",
                "The turns are durable.",
                &["400", "408", "409", "413", "429", "504"],
            ),
            json_response_schema::<PutTurnsResponse>,
            handlers::put,
        ),
        query_json(
            Delete,
            entry(
                "/v1/turns",
                InBank(Forget),
                "forget",
                "Delete a turn, whether it was sent already or comes later. Answered when the deletion is durable \
                 and, within wait_ms, no answer reflects the turn any more.",
                "The deletion is durable.",
                &["400", "409", "421", "504"],
            ),
            [
                BANK,
                required("turn", "The id of the turn, or its short id.", Text),
                optional(
                    "expected_version",
                    "The version that must stand, or nothing is deleted.",
                    Whole(Some(0), None),
                ),
                optional("wait_ms", "Most milliseconds to wait until no answer reflects it; 10,000 without it.", WAIT),
            ],
            handlers::forget,
        ),
        query_json(
            Get,
            entry(
                "/v1/sessions",
                InBank(Read),
                "sessions",
                "The sessions of a bank by name, each with its title, the number of its turns, and the times of the \
                 first and the last.",
                "The sessions.",
                &["400", "421"],
            ),
            [
                BANK,
                optional("prefix", "Only those whose names begin with this.", Text),
                optional("from", "Where the list goes on: the `next` of an earlier one.", Text),
                optional("limit", "Most sessions; 100 without it.", Whole(Some(1), Some(1_000))),
            ],
            handlers::sessions,
        ),
        body_json(
            Put,
            entry(
                "/v1/sessions",
                InBank(Write),
                "name_session",
                "Set the title of a session, which is kept until another one replaces it or the last turn of the \
                 session is deleted.",
                "The title is durable.",
                &["400", "408", "413"],
            ),
            handlers::name_session,
        ),
        body_json(
            Post,
            entry(
                "/v1/forget",
                InBank(Forget),
                "forget_turns",
                "Delete the turns of a bank that a selector names: by id, by speaker, by time, of a session or a \
                 thread, those that mention somebody, or all. With dry_run they are counted, and some are shown.",
                "The deletions are durable.",
                &["400", "408", "413", "421", "503", "504"],
            ),
            handlers::forget_turns,
        ),
        query_json(
            Get,
            entry(
                "/v1/forgets",
                InBank(Forget),
                "forgets",
                "What became of the operations that forgot turns, in the banks where the token may forget, the latest \
                 first.",
                "The receipts.",
                &["400"],
            ),
            [optional("bank", "Only those of this bank.", Text)],
            handlers::forgets,
        ),
        body(
            entry(
                "/v1/ask",
                InBank(Read),
                "ask",
                "Recollect evidence for a question: units with their source turns, how each was reached, the bank \
                 that was searched and the offsets that the answer reflects.",
                "The evidence; where `answer` is sent, with an answer in words.",
                &["400", "404", "408", "409", "413", "421", "422", "429", "503", "504"],
            ),
            ask_responses,
            handlers::ask,
        ),
        body_json(
            Post,
            entry(
                "/v1/explain",
                InBank(Read),
                "explain",
                "Why a turn, or a unit, is quoted in the answer to a question, or why not: twelve steps from the \
                 stored turn to its line in the context, the first that failed, and what would have changed it.",
                "The explanation.",
                &["400", "404", "408", "409", "413", "421", "429", "503", "504"],
            ),
            handlers::explain,
        ),
        query(
            Get,
            entry(
                "/v1/subscribe",
                InBank(Read),
                "subscribe",
                SUBSCRIBE,
                FOLLOWED,
                &["400", "404", "409", "421", "429", "503", "504"],
            ),
            [
                required("bank", "The bank that is asked.", Text),
                required("text", "The question, at most 8,192 bytes.", Text),
                optional("asked_at", "When it is asked, in RFC 3339.", Text),
                optional("asker", "Who asks: a speaker of the bank, to whom \"I\" and \"my\" refer.", Text),
                optional("most_tokens", "Most tokens (o200k) of the context.", Whole(Some(1), None)),
                optional("where", "The turns that may be quoted: a selector as JSON.", Text),
                optional("metadata", "Whether each excerpt has the metadata of its turn.", Flag),
                optional(
                    "last_event_id",
                    "The id of the last progress that was received; the header Last-Event-ID says the same.",
                    Text,
                ),
                optional(
                    "wait_ms",
                    "One answer in JSON instead of a stream: once something changed, or after this many milliseconds.",
                    WAIT,
                ),
            ],
            subscription_responses,
            handlers::subscribe,
        ),
        body(
            entry(
                "/v1/subscribe",
                InBank(Read),
                "subscribe_with_body",
                SUBSCRIBE,
                FOLLOWED,
                &["400", "404", "408", "409", "413", "421", "429", "503", "504"],
            ),
            subscription_responses,
            handlers::subscribe_with_body,
        ),
        query(
            Get,
            entry(
                "/v1/events",
                InBank(Read),
                "events",
                "Follow a bank: server-sent events with what happens in it. Only a progress has an id; all events \
                 between two of them are what happened between their offsets.",
                "Events.",
                &["400", "409", "421", "429", "503", "504"],
            ),
            [
                BANK,
                optional(
                    "last_event_id",
                    "The id of the last progress that was received: what happened since is sent, where it is still \
                     known. The header Last-Event-ID says the same.",
                    Text,
                ),
                optional("metadata", "Whether each turn has its metadata.", Flag),
            ],
            bank_event_responses,
            handlers::events,
        ),
        query_json(
            Get,
            entry(
                "/v1/units",
                InBank(Read),
                "unit",
                "A unit with its parts and its edges of both kinds, each with its reasons.",
                "The unit.",
                &["400", "404", "409", "421", "503"],
            ),
            [BANK, required("id", "The unit, as an answer names it.", Unit)],
            handlers::unit,
        ),
        body_json(
            Post,
            entry(
                "/v1/units",
                InBank(Read),
                "units",
                "Units with their parts, as of one moment, without their edges; at most 200.",
                "The units.",
                &["400", "404", "408", "409", "413", "421", "503"],
            ),
            handlers::units,
        ),
        query_json(
            Get,
            entry(
                "/v1/graph",
                InBank(Read),
                "graph",
                "A part of a bank's graph: units with labels, and the edges between them.",
                "The units and edges.",
                &["400", "404", "409", "421", "503"],
            ),
            [
                BANK,
                optional(
                    "around",
                    "The unit in the middle, as an answer names it; without it, the units that were said last are \
                     shown.",
                    Unit,
                ),
                optional("limit", "Most units; 2,000 without it.", Whole(Some(1), Some(2_000))),
            ],
            handlers::graph,
        ),
        query(
            Get,
            entry(
                "/v1/profile",
                InBank(Read),
                "profile",
                "What the persons of a bank said that lasts: instructions, preferences, facts and plans, each with its \
                 turns and what superseded it. A request that accepts `text/event-stream` follows it: it gets the \
                 profile now and again whenever it changed.",
                "The lines, and the same as text.",
                &["400", "409", "421", "429", "503", "504"],
            ),
            [
                BANK,
                optional("person", "Only this speaker of the bank.", Text),
                optional("kinds", "Only these, with commas between them: instruction, preference, fact, plan.", Text),
                optional("past", "Whether superseded lines and plans whose time has passed are shown, too.", Flag),
                optional(
                    "begin",
                    "For an agent that begins: open plans, whatever the kinds, and the latest sessions are shown, too.",
                    Flag,
                ),
                optional("where", "Only what these turns say: a selector as JSON.", Text),
                optional("as_of", "The profile as it was: an offset of the memory log or a time (RFC 3339).", Text),
                optional("most_tokens", "Most tokens of the text; 1,000 without it.", Whole(Some(1), Some(200_000))),
                optional(
                    "last_event_id",
                    "The `version` that was received last; the header Last-Event-ID says the same.",
                    Text,
                ),
                optional(
                    "wait_ms",
                    "The answer comes once the profile differs from `last_event_id`, or after this many milliseconds.",
                    WAIT,
                ),
            ],
            profile_responses,
            handlers::profile,
        ),
        query_json(
            Get,
            entry(
                "/v1/banks",
                Somewhere(Read),
                "banks",
                "The banks that hold something, as far as the token reaches, in order.",
                "Their names.",
                &["400"],
            ),
            [
                optional("counts", "Whether they are counted, too.", Flag),
                optional("prefix", "Only those whose names begin with this.", Text),
                optional("from", "Where the list goes on: the `next` of an earlier one.", Text),
                optional(
                    "limit",
                    "Most banks; without it 100 where they are counted, else all. With counts at most 100.",
                    Whole(Some(1), Some(1_000)),
                ),
            ],
            handlers::banks,
        ),
        query_json(
            Get,
            entry(
                "/v1/bank",
                InBank(Read),
                "bank",
                "Counts of a bank, and the offsets up to which its turns are reflected.",
                "The bank.",
                &["400", "404", "409", "421", "503"],
            ),
            [BANK],
            handlers::bank,
        ),
        query_json(
            Get,
            entry(
                "/v1/history",
                InBank(Read),
                "history",
                "The points of a bank's past that `as_of` answers for: the ends of the reads after which the bank \
                 differs. Empty where no snapshots are kept.",
                "The points.",
                &["400", "404", "409", "421", "503"],
            ),
            [
                BANK,
                optional("before", "Only those before this offset.", Whole(Some(0), None)),
                optional("limit", "Most points, the latest; 200 without it.", Whole(Some(1), Some(1_000))),
            ],
            handlers::history,
        ),
        query_json(
            Get,
            entry(
                "/v1/diff",
                InBank(Read),
                "diff",
                "What changed in a bank between two points of its past: the units and edges that came and went, at \
                 most 1,000 of each. A point lies at an offset or a time, as `as_of` of a question; `history` lists \
                 them.",
                "The changes.",
                &["400", "404", "409", "421", "503"],
            ),
            [
                BANK,
                required(
                    "from",
                    "The earlier point: an offset of the bank's partition of the memory log, or a time of appending \
                     in RFC 3339.",
                    Text,
                ),
                optional("to", "The later point, in the same form; without it, now.", Text),
            ],
            handlers::diff,
        ),
        query_json(
            Get,
            entry(
                "/v1/digest",
                InBank(Read),
                "digest",
                "Counts of units and edges, with a hash that depends only on the set.",
                "The counts.",
                &["400", "404", "421", "503", "504"],
            ),
            [
                optional("bank", "One bank; without it, all of them.", Text),
                optional("after", "The `after` of turns that it must reflect.", Text),
                optional("wait_ms", "Most milliseconds to wait for them; 10,000 without it.", WAIT),
            ],
            handlers::digest,
        ),
        query_json(
            Get,
            entry(
                "/v1/stats",
                InBank(Read),
                "stats",
                "How many bytes units take in memory, by part.",
                "The bytes.",
                &["400", "404", "421", "503"],
            ),
            [
                optional("bank", "One bank; without it, all of them.", Text),
                optional(
                    "plain_ids",
                    "Whether to count turns whose ids hold a phone number or a mail address, too, which reads every turn.",
                    Flag,
                ),
            ],
            handlers::stats,
        ),
    ]
}

/// The routes of every service.
pub(super) fn service_routes(document: fn() -> &'static str) -> Vec<ApiRoute<ServiceOperations>> {
    vec![
        no_input_json(
            Get,
            entry(
                "/v1/admin/snapshots",
                Everywhere(Admin),
                "snapshots",
                "The newest snapshot of each shard. Needs the right admin in every bank.",
                "The snapshots.",
                &["400"],
            ),
            handlers::snapshots,
        ),
        no_input_json(
            Post,
            entry(
                "/v1/admin/snapshots",
                Everywhere(Admin),
                "take_snapshot",
                "Write a snapshot now; answered when it is written. Needs the right admin in every bank.",
                "What was written.",
                &["400"],
            ),
            handlers::take_snapshot,
        ),
        no_input_json(
            Post,
            entry(
                "/v1/admin/erase",
                Everywhere(Admin),
                "erase",
                "Erase the words of all turns that were deleted from every stored byte, now; answered when it is \
                 done. Needs the right admin in every bank, and a log in a directory.",
                "What that took.",
                &["400"],
            ),
            handlers::erase,
        ),
        body_json(
            Post,
            entry(
                "/v1/admin/dead-letters",
                Everywhere(Admin),
                "dead_letters",
                "The records that were rejected (dead letters) and hold some words, state a sender, or have a reason, \
                 a source or a bank in common: how many there are and the latest. With remove, in a log in a \
                 directory, they are removed from every stored byte. Needs the right admin in every bank.",
                "The letters.",
                &["400", "408", "413"],
            ),
            handlers::dead_letters,
        ),
        query_json(
            Get,
            entry(
                "/v1/admin/records",
                Everywhere(Admin),
                "records",
                "A page of the records of a topic, byte by byte as the log stores them. Needs the right admin in \
                 every bank, and a log in a directory.",
                "The records.",
                &["400", "404"],
            ),
            [
                required("topic", "turns, memory or dead-letters.", Text),
                optional("partition", "The partition; 0 without it.", Whole(Some(0), None)),
                optional("from", "The first offset; 0 without it.", Whole(Some(0), None)),
                optional(
                    "since_ms",
                    "In place of `from`: the first record that was appended then or later, in milliseconds since 1970.",
                    Whole(None, None),
                ),
                optional(
                    "limit",
                    "Most records; 64 without it. 0 asks for the offsets alone.",
                    Whole(Some(0), Some(1_024)),
                ),
                optional("bank", "Of the topic memory: the bank whose live records are listed, too.", Text),
            ],
            handlers::records,
        ),
        body_json(
            Post,
            entry(
                "/v1/admin/reextract",
                Everywhere(Admin),
                "reextract",
                "Have the language model read a bank's closed windows again, in the background. Needs the right admin \
                 in every bank.",
                "What is read again.",
                &["400", "404", "422", "503"],
            ),
            handlers::reextract,
        ),
        no_input_json(
            Get,
            entry("/v1/status", Somewhere(Read), "status", "How the memory is.", "How it is.", &[]),
            handlers::status,
        ),
        query_json(
            Get,
            entry(
                "/v1/token",
                Token,
                "token",
                "Who asks: what the token gives. Needs no right.",
                "The rights and the banks.",
                &["400"],
            ),
            [],
            handlers::token,
        ),
        no_input(Get, undescribed("/metrics", Everywhere(Read)), json_response_schema::<String>, handlers::metrics),
        no_input(Get, undescribed("/v1/openapi.json", Token), json_response_schema::<String>, move |_, _| {
            handlers::document(document)
        }),
    ]
}

const SUBSCRIBE: &str = "Follow a question: server-sent events with the evidence now and every change of it. At every \
progress, which alone has an id, what was received is what asking afresh gives as of its offsets.";
const FOLLOWED: &str = "Events; one answer in JSON where wait_ms is sent.";

/// What a row says: its path and right, and of the document the operation's name, what it does, what a response is and
/// the statuses of its problems.
fn entry(
    path: &'static str,
    needs: RouteRight,
    id: &'static str,
    about: &'static str,
    answer: &'static str,
    problems: &'static [&'static str],
) -> RouteEntry {
    RouteEntry { path, needs, described: Some(RouteDescription { id, about, answer, problems }) }
}

/// What a row says of a route that is no call of the document.
fn undescribed(path: &'static str, needs: RouteRight) -> RouteEntry {
    RouteEntry { path, needs, described: None }
}

/// A route and the right that it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequiredRight {
    /// The method, in capitals.
    pub method: &'static str,
    /// The path.
    pub path: &'static str,
    /// The right. A record in a body may need another one: a deletion `forget`, a dead letter `admin`.
    pub needs: RouteRight,
}

/// Every route, in the order of the table, with the right that it needs.
#[must_use]
pub fn required_rights() -> Vec<RequiredRight> {
    fn rights<C>(routes: Vec<ApiRoute<C>>) -> impl Iterator<Item = RequiredRight> {
        let right = |ApiRoute { entry: RouteEntry { path, needs, .. }, method, .. }: ApiRoute<C>| RequiredRight {
            method: RouteMethod::name(method),
            path,
            needs,
        };
        routes.into_iter().map(right)
    }
    rights(memory_routes()).chain(rights(service_routes(|| ""))).collect()
}
