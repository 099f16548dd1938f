"""Each call as a request and a reader of its response, for both clients.

Sends nothing, waits for nothing. A client sends ``Call.request`` and gives the response's JSON to
``Call.read``. Every call may be sent again: a turn that is put twice with the same version and content is
the same turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Callable, Generic, Optional, TypeVar, Union

from .errors import InvalidError
from .forms import (
    Answer,
    CountedBanks,
    Deletion,
    Diff,
    Digest,
    Evidence,
    Explanation,
    Forgotten,
    ForgottenTurns,
    Graph,
    HeldTurns,
    History,
    Json,
    Profile,
    Receipt,
    Selector,
    Sessions,
    Status,
    TokenView,
    Turn,
    Units,
    UnitView,
    Written,
    answer,
    counted_banks,
    diff,
    digest,
    graph,
    held_turn,
    history,
    profile,
    receipt,
    sessions,
    time_text,
    token_view,
    unit_view,
    units,
)

T = TypeVar("T")

#: Most turns of one request.
MOST_TURNS = 1_000
#: Most bytes of the turns of one request, where it has more than one turn: half of what a service takes.
MOST_BYTES = 4 << 20
#: Seconds that a request may take beyond the time that the service was given.
MARGIN = 5.0
#: Seconds that a request for an answer in words may take.
ANSWER_TIMEOUT = 600.0
#: Seconds for requests that name no time of their own.
TIMEOUT = 30.0


@dataclass
class Call(Generic[T]):
    """A request, and what becomes of its response."""

    method: str
    path: str
    read: Callable[[Any], T]
    body: Optional[Json] = None
    query: dict[str, str] = field(default_factory=dict)
    timeout: float = TIMEOUT
    #: Whether a request that may have been carried out must not be sent again.
    once: bool = False


@dataclass
class Circumstances:
    """What may come with a question."""

    asked_at: Optional[Union[datetime, str]] = None
    asker: Optional[str] = None
    said_before: Sequence[tuple[str, str]] = ()
    most_tokens: Optional[int] = None
    profile: Optional[str] = None
    compare: bool = False
    where: Optional[Selector] = None
    metadata: bool = False
    near: Optional[int] = None

    def fields(self) -> Json:
        """Those that are given, as the service takes them."""
        given: Json = {}
        if self.asked_at is not None:
            given["asked_at"] = time_text(self.asked_at)
        if self.asker is not None:
            given["asker"] = self.asker
        if self.said_before:
            given["said_before"] = [{"speaker": speaker, "text": text} for speaker, text in self.said_before]
        if self.most_tokens is not None:
            given["most_tokens"] = self.most_tokens
        if self.profile is not None:
            given["profile"] = self.profile
        if self.compare:
            given["compare"] = True
        if self.where is not None:
            given["where"] = self.where.fields()
        if self.metadata:
            given["metadata"] = True
        if self.near is not None:
            given["near"] = self.near
        return given


class Calls:
    """Makes calls, and remembers where the last turns of each bank were written.

    A question then asks for an answer that reflects them, so that a program reads its own writes.
    """

    def __init__(self, bank: Optional[str]) -> None:
        self._bank = bank
        self._after: dict[str, str] = {}

    def bank(self, bank: Optional[str]) -> str:
        """The bank of a call."""
        name = bank or self._bank
        if not name:
            raise ValueError("no bank; name one in the call or when the client is made")
        return name

    def remember(
        self, turns: Iterable[Union[Turn, Deletion]], bank: Optional[str], together: bool, wait: float
    ) -> list[Call[Written]]:
        """Calls that write turns, each as many as one request takes; one call where they belong together.

        The service takes a condition alone, or with what is written together.
        """
        name, wanted = self.bank(bank), list(turns)
        conditional = any(turn.expected_version is not None for turn in wanted)
        together = together or (conditional and len(wanted) > 1)
        parts = list(_parts(turn.to_json(name) for turn in wanted))
        if together and len(parts) > 1:
            raise InvalidError(
                f"remember: {len(wanted)} records are more than one request holds ({MOST_TURNS:,} turns, "
                f"{MOST_BYTES >> 20} MiB), so they cannot be written together; write fewer at once"
            )
        return [self._put(name, part, together, wait, conditional) for part in parts]

    def end_session(self, session: str, bank: Optional[str]) -> Call[Written]:
        """A conversation has ended: its open window closes."""
        name = self.bank(bank)
        return self._put(name, [{"type": "session_end", "bank": name, "session": session}])

    def _put(
        self, bank: str, records: list[Json], together: bool = False, wait: float = 0.0, once: bool = False
    ) -> Call[Written]:
        def read(raw: Json) -> Written:
            if raw["after"]:
                self._after[bank] = raw["after"]
            forgotten, stale = (tuple(raw.get(name, ())) for name in ("forgotten", "stale"))
            more = (raw.get("versions", {}), stale, raw.get("reflected", False))
            return Written(raw["after"], raw["turns"], raw.get("not_kept", 0), forgotten, *more)

        body: Json = {"turns": records}
        if together:
            body["together"] = True
        if wait > 0:
            body["wait_ms"] = int(wait * 1000)
        return Call("POST", "/v1/turns", read, body=body, timeout=TIMEOUT + wait + MARGIN, once=once)

    def ask(
        self,
        question: str,
        bank: Optional[str],
        after: Optional[str],
        as_of: Optional[str],
        circumstances: Circumstances,
        timeout: float,
    ) -> Call[Evidence]:
        """A question. Without ``after`` its answer reflects what this client wrote before."""
        name = self.bank(bank)
        body: Json = {"bank": name, "text": question, "timeout_ms": max(1, int(timeout * 1000))}
        after = after if after is not None or as_of is not None else self._after.get(name)
        for field_name, value in (("after", after), ("as_of", as_of)):
            if value:
                body[field_name] = value
        body.update(circumstances.fields())
        return Call("POST", "/v1/ask", Evidence.from_json, body=body, timeout=timeout + MARGIN)

    def explain(
        self,
        question: str,
        turn: Optional[str],
        unit: Optional[str],
        part: Optional[int],
        bank: Optional[str],
        as_of: Optional[str],
        circumstances: Circumstances,
        timeout: float,
    ) -> Call[Explanation]:
        """A question with a turn or a unit; it reflects what this client wrote before."""
        asked = self.ask(question, bank, None, as_of, circumstances, timeout)
        given = {"turn": turn, "unit": unit, "part": part}
        body = {**(asked.body or {}), **{name: value for name, value in given.items() if value is not None}}
        return Call("POST", "/v1/explain", Explanation.from_json, body=body, timeout=asked.timeout)

    def answer(
        self,
        question: str,
        bank: Optional[str],
        circumstances: Circumstances,
        timeout: float,
    ) -> Call[Answer]:
        """A question that the service's language model answers in words."""
        asked = self.ask(question, bank, None, None, circumstances, timeout)
        body = {**(asked.body or {}), "answer": True}
        return Call("POST", "/v1/ask", lambda raw: answer(raw["answer"]), body=body, timeout=ANSWER_TIMEOUT)

    def unit(self, unit: str, bank: Optional[str]) -> Call[UnitView]:
        """A unit with its neighbours."""
        return Call("GET", "/v1/units", unit_view, query={"bank": self.bank(bank), "id": unit})

    def units(self, ids: Sequence[str], bank: Optional[str]) -> Call[Units]:
        """Many units, as of one moment, without their neighbours."""
        return Call("POST", "/v1/units", units, body={"bank": self.bank(bank), "ids": list(ids)})

    def graph(self, around: Optional[str], limit: int, bank: Optional[str]) -> Call[Graph]:
        """A part of a bank's graph."""
        query = {"bank": self.bank(bank), "limit": str(limit)}
        if around is not None:
            query["around"] = around
        return Call("GET", "/v1/graph", graph, query=query)

    def history(self, before: Optional[str], limit: int, bank: Optional[str]) -> Call[History]:
        """The points of a bank's past that ``as_of`` answers for."""
        query = {"bank": self.bank(bank), "limit": str(limit)}
        if before is not None:
            query["before"] = before
        return Call("GET", "/v1/history", history, query=query)

    def diff(self, start: str, end: Optional[str], bank: Optional[str]) -> Call[Diff]:
        """What came and went in a bank between two points of its past."""
        query = {"bank": self.bank(bank), "from": start}
        if end is not None:
            query["to"] = end
        return Call("GET", "/v1/diff", diff, query=query)

    def profile_query(
        self,
        person: Optional[str],
        kinds: Sequence[str],
        past: bool,
        begin: bool,
        where: Optional[Selector],
        as_of: Optional[str],
        most_tokens: Optional[int],
        bank: Optional[str],
    ) -> dict[str, str]:
        """Whose profile, and what of it."""
        given = {
            "bank": self.bank(bank),
            "person": person,
            "kinds": ",".join(kinds) or None,
            "past": "true" if past else None,
            "begin": "true" if begin else None,
            "where": None if where is None else json.dumps(where.fields()),
            "as_of": as_of,
            "most_tokens": None if most_tokens is None else str(most_tokens),
        }
        return {name: value for name, value in given.items() if value is not None}

    def profile(self, query: dict[str, str]) -> Call[Profile]:
        """What persons said that lasts."""
        return Call("GET", "/v1/profile", profile, query=query)

    def forget(self, turn: str, bank: Optional[str], expected_version: Optional[int], wait: float) -> Call[Forgotten]:
        """Deletes a turn, and waits until no answer reflects it."""
        name = self.bank(bank)

        def read(raw: Json) -> Forgotten:
            self._after[name] = raw["after"]
            return Forgotten(
                raw["bank"], raw["turn"], raw["after"], raw["gone"], raw.get("held"), receipt(raw.get("receipt"))
            )

        query = {"bank": name, "turn": turn, "wait_ms": str(max(0, int(wait * 1000)))}
        if expected_version is not None:
            query["expected_version"] = str(expected_version)
        return Call("DELETE", "/v1/turns", read, query=query, timeout=wait + MARGIN)

    def forget_turns(
        self, select: Selector, bank: Optional[str], dry_run: bool, confirm: Optional[str], wait: float
    ) -> Call[ForgottenTurns]:
        """Deletes turns by what they have in common, or says which those are."""
        name = self.bank(bank)

        def read(raw: Json) -> ForgottenTurns:
            if raw["after"]:
                self._after[name] = raw["after"]
            shown = tuple(held_turn(turn) for turn in raw.get("shown", ()))
            done = receipt(raw.get("receipt"))
            return ForgottenTurns(
                raw["bank"],
                raw.get("turns"),
                shown,
                raw.get("confirm"),
                raw["after"],
                raw["gone"],
                done,
                raw.get("dead_letters", 0),
            )

        body: Json = {"bank": name, "where": select.fields(), "wait_ms": max(0, int(wait * 1000))}
        if dry_run:
            body["dry_run"] = True
        if confirm is not None:
            body["confirm"] = confirm
        return Call("POST", "/v1/forget", read, body=body, timeout=wait + MARGIN)

    def forgets(self, bank: Optional[str]) -> Call[list[Receipt]]:
        """What became of the operations that forgot turns, the latest first."""

        def read(raw: Json) -> list[Receipt]:
            receipts = (receipt(one) for one in raw["forgets"])
            return [one for one in receipts if one is not None]

        return Call("GET", "/v1/forgets", read, query={} if bank is None else {"bank": bank})

    def turns(
        self, select: Selector, before: Optional[str], limit: int, order: str, bank: Optional[str]
    ) -> Call[HeldTurns]:
        """The turns of a bank, in order of their time."""
        body: Json = {"bank": self.bank(bank), "limit": limit, "order": order}
        where = select.fields()
        if where:
            body["where"] = where
        if before is not None:
            body["before"] = before

        def read(raw: Json) -> HeldTurns:
            return HeldTurns(tuple(held_turn(turn) for turn in raw["turns"]), raw["more"], raw.get("next"))

        return Call("POST", "/v1/turns/list", read, body=body)

    def sessions(
        self, prefix: Optional[str], start: Optional[str], limit: int, bank: Optional[str]
    ) -> Call[Sessions]:
        """The conversations of a bank."""
        query = {"bank": self.bank(bank), "limit": str(limit)}
        query.update({name: text for name, text in (("prefix", prefix), ("from", start)) if text})
        return Call("GET", "/v1/sessions", sessions, query=query)

    def name_session(self, session: str, title: str, bank: Optional[str], wait: float) -> Call[None]:
        """Gives a conversation a title."""
        name = self.bank(bank)

        def read(raw: Json) -> None:
            self._after[name] = raw["after"]

        body: Json = {"bank": name, "session": session, "title": title, "wait_ms": max(0, int(wait * 1000))}
        return Call("PUT", "/v1/sessions", read, body=body, timeout=wait + MARGIN)

    def banks(self) -> Call[list[str]]:
        """The banks that hold something."""
        return Call("GET", "/v1/banks", lambda raw: list(raw["banks"]))

    def counted_banks(self, prefix: Optional[str], start: Optional[str], limit: int) -> Call[CountedBanks]:
        """The banks that hold something, with counts."""
        query = {"counts": "true", "limit": str(limit)}
        query.update({name: text for name, text in (("prefix", prefix), ("from", start)) if text})
        return Call("GET", "/v1/banks", counted_banks, query=query)

    def token(self) -> Call[TokenView]:
        """What the token gives."""
        return Call("GET", "/v1/token", token_view)

    def digest(self, bank: Optional[str]) -> Call[Digest]:
        """Counts of a bank, or of all."""
        query = {"bank": bank} if bank else {}
        return Call("GET", "/v1/digest", digest, query=query)

    def status(self) -> Call[Status]:
        """How the service is."""
        return Call(
            "GET", "/v1/status", lambda raw: Status(raw["version"], raw["behind"], raw.get("problem"), raw)
        )


def joined(before: Optional[Written], last: Written) -> Written:
    """Two writes as one: the turns of both, and where the last ones lie."""
    if before is None:
        return last
    return Written(
        last.after,
        before.turns + last.turns,
        before.not_kept + last.not_kept,
        before.forgotten + last.forgotten,
        {**before.versions, **last.versions},
        before.stale + last.stale,
        last.reflected,
    )


def _parts(records: Iterable[Json]) -> Iterator[list[Json]]:
    """The records in their order, divided by number and bytes."""
    part: list[Json] = []
    size = 0
    for record in records:
        # No encoder of JSON writes more bytes than this one, which escapes what is not ASCII.
        record_bytes = len(json.dumps(record)) + 2
        if part and (len(part) == MOST_TURNS or size + record_bytes > MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(record)
        size += record_bytes
    if part:
        yield part
