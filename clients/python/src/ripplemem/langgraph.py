"""A store of LangGraph in a bank, for its nodes and tools, Deep Agents and langmem.

>>> from ripplemem.langgraph import RippleMemStore
>>> store = RippleMemStore("http://127.0.0.1:8321", bank="acme")
>>> store.put(("users", "ann"), "home", {"text": "Ann lives in Lisbon."})
>>> store.search(("users",), query="Where does Ann live?")[0].value

An item is a turn: its namespace is the session, its value the metadata, and what is indexed of it the text. The
TypeScript client's store has the same form.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import sys
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Optional, Union

from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
    tokenize_path,
)

from .adapters import (
    ADDRESS,
    MOST_NAME_BYTES,
    PAGE,
    CONTROL,
    Access,
    Steps,
    asked,
    exact_json,
    held_by_id,
    listed,
    moment_of_ms,
    now,
    packed,
    short_name,
    unpacked,
    written,
)
from .calls import MOST_BYTES, MOST_TURNS
from .errors import RippleMemError, UnknownBankError
from .forms import Deletion, Evidence, HeldTurn, Json, Selector, Turn

#: What ends a label: a label has none, so a prefix of a session's name is a prefix of the namespace.
LABEL_END = "."
#: Where an item stands in the metadata of its turn, with ``namespace``, ``key`` and ``value``.
ITEM = "langgraph"
#: What every item has, and no other turn of the bank.
IS_ITEM: Json = {"path": [ITEM, "key"], "exists": True}
#: Items that a search with a query ranks beyond those that an answer would quote.
NEAR = 200
#: Seconds that a search with a query may take.
SEARCH_SECONDS = 30.0

Namespace = tuple[str, ...]
_ESCAPED = re.compile(r"\\(?:\\|x([0-9a-f]{2})|u([0-9a-f]{4}))")


class RippleMemStore(BaseStore):
    """Items in one bank, for synchronous and asynchronous programs; a write is visible on return.

    ``fields`` are the paths of a value that are searched by a query, where ``put`` names no others: ``$`` is all of
    it. ``token`` is as for the client.
    """

    def __init__(
        self,
        url: str = ADDRESS,
        *,
        bank: str,
        token: Optional[str] = None,
        fields: Sequence[str] = ("$",),
    ) -> None:
        super().__init__()
        self._access = Access(url, bank=bank, token=token)
        self._fields = tuple(fields)
        # Calls of a turn of an event loop, and the tasks that execute them.
        self._waiting: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, list[tuple[list[Op], asyncio.Future[list[Result]]]]
        ] = weakref.WeakKeyDictionary()
        self._tasks: set[asyncio.Task[None]] = set()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Executes operations; those that read see the state before those that write."""
        wanted = list(ops)
        records = self._records(wanted)
        results: list[Result] = [None] * len(wanted)
        for at, found in self._access.run(self._gets(wanted)).items():
            results[at] = found
        for at, op in enumerate(wanted):
            if isinstance(op, (SearchOp, ListNamespacesOp)):
                results[at] = self._access.run(self._reading(op))
        self._access.run(self._puts(records))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same on asyncio. What is called in the same turn of the event loop goes to the service together."""
        wanted = list(ops)
        # What is wrong fails here, for its caller alone.
        self._records(wanted)
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault(loop, [])
        done: asyncio.Future[list[Result]] = loop.create_future()
        waiting.append((wanted, done))
        if len(waiting) == 1:
            task = loop.create_task(self._drain(loop))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await done

    async def _drain(self, loop: asyncio.AbstractEventLoop) -> None:
        calls = self._waiting.pop(loop, [])
        try:
            results = await self._executed([op for ops, _ in calls for op in ops])
        except Exception as error:
            if len(calls) == 1:
                _settle(calls[0][1], error)
                return
            # One of them may be why the others failed.
            for ops, done in calls:
                try:
                    _settle(done, await self._executed(ops))
                except Exception as own:
                    _settle(done, own)
            return
        at = 0
        for ops, done in calls:
            _settle(done, results[at : at + len(ops)])
            at += len(ops)

    async def _executed(self, ops: list[Op]) -> list[Result]:
        records = self._records(ops)
        results: list[Result] = [None] * len(ops)
        # The same question at the same time has the same answer.
        same: dict[str, list[int]] = {}
        for at, op in enumerate(ops):
            if isinstance(op, (SearchOp, ListNamespacesOp)):
                same.setdefault(repr(op), []).append(at)
        reading = [self._access.arun(self._reading(ops[places[0]])) for places in same.values()]
        gets, *found = await asyncio.gather(self._access.arun(self._gets(ops)), *reading)
        for places, one in zip(same.values(), found):
            for at in places:
                results[at] = list(one)
        for at, item in gets.items():
            results[at] = item
        await self._access.arun(self._puts(records))
        return results

    def close(self) -> None:
        """Ends the connections of synchronous calls."""
        self._access.close()

    async def aclose(self) -> None:
        """Ends all connections of this event loop."""
        await self._access.aclose()

    def _records(self, ops: list[Op]) -> list[Union[Turn, Deletion]]:
        """What the operations write, of two puts of a key the last; fails where one of them is wrong."""
        for op in ops:
            if isinstance(op, GetOp):
                _session(op.namespace)
            elif isinstance(op, SearchOp):
                _session(op.namespace_prefix)
                condition(op.filter or {})
            elif isinstance(op, ListNamespacesOp):
                for one in op.match_conditions or ():
                    _session(one.path)
            elif not isinstance(op, PutOp):
                raise ValueError(f"Unknown operation type: {type(op)}")
        puts = {_identity(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        return [self._record(identity, op) for identity, op in puts.items()]

    def _gets(self, ops: list[Op]) -> Steps[dict[int, Optional[Item]]]:
        ids = {at: _identity(op.namespace, op.key) for at, op in enumerate(ops) if isinstance(op, GetOp)}
        held = yield from held_by_id(self._access, list(ids.values()))
        return {at: Item(**_fields_of(held[one])) if one in held else None for at, one in ids.items()}

    def _reading(self, op: Op) -> Steps[Any]:
        found = yield from self._search(op) if isinstance(op, SearchOp) else self._namespaces(op)
        return found

    def _puts(self, records: list[Union[Turn, Deletion]]) -> Steps[None]:
        # As one transaction, as far as one request holds it.
        size = sum(len(json.dumps(record.to_json(""))) for record in records)
        whole = 1 < len(records) <= MOST_TURNS and size < MOST_BYTES - PAGE * MOST_NAME_BYTES
        results = yield from written(self._access, records, together=whole)
        gone = [turn for result in results for turn in result.forgotten]
        if gone:
            raise RippleMemError(
                f"items {gone[:3]} were forgotten for good (/v1/forget), so that nothing comes back with their ids; "
                "put them with other keys",
                "forgotten",
                409,
            )

    def _record(self, identity: str, op: PutOp) -> Union[Turn, Deletion]:
        if op.value is None:
            # With a version, so that the key can be put again.
            return Deletion(identity, version="next")
        if op.ttl is not None:
            raise NotImplementedError("RippleMemStore keeps items until they are deleted: put them without ttl")
        if not op.namespace:
            raise InvalidNamespaceError("Namespace cannot be empty.")
        value = dict(op.value)
        texts = [] if op.index is False else _texts(value, self._fields if op.index is None else op.index)
        text = "\n".join(text for text in texts if text.strip())
        turn = Turn(
            identity,
            "memory",
            text or exact_json(value),
            now(),
            session=_session(op.namespace),
            version="next",
            kind="bot",
            recall=bool(text),
        )
        return packed(turn, {"namespace": list(op.namespace), "key": op.key}, "value", value, ITEM)

    def _search(self, op: SearchOp) -> Steps[list[SearchItem]]:
        if op.limit <= 0:
            return []
        where = Selector(session_prefix=_session(op.namespace_prefix), metadata=condition(op.filter or {}))
        last = op.offset + op.limit
        if not op.query or not op.query.strip():
            held = yield from listed(self._access, where, limit=last)
            return [SearchItem(**_fields_of(turn)) for turn in held[op.offset : last]]
        try:
            evidence = yield from asked(self._access, op.query, where=where, near=NEAR, seconds=SEARCH_SECONDS)
        except UnknownBankError:
            return []
        scores = {} if evidence is None else _scores(evidence)
        chosen = list(scores)[op.offset : last]
        found = yield from held_by_id(self._access, chosen)
        return [SearchItem(**_fields_of(found[turn]), score=scores[turn]) for turn in chosen if turn in found]

    def _namespaces(self, op: ListNamespacesOp) -> Steps[list[Namespace]]:
        conditions = op.match_conditions or ()
        prefixes = [one.path for one in conditions if one.match_type == "prefix"]
        fixed: list[str] = []
        for label in prefixes[0] if prefixes else ():
            if label == "*":
                break
            fixed.append(label)
        found: set[Namespace] = set()
        start: Optional[str] = None
        while True:
            try:
                page = yield self._access.calls.sessions(_session(tuple(fixed)), start, PAGE, None)
            except UnknownBankError:
                break
            names = (_namespace(one.session) for one in page.sessions if one.turns and one.session.endswith(LABEL_END))
            found.update(name for name in names if all(_matches(one, name) for one in conditions))
            start = page.next
            if start is None:
                break
        return sorted({name[: op.max_depth] for name in found})[op.offset : op.offset + op.limit]


def _texts(value: Json, paths: Sequence[str]) -> list[str]:
    texts: list[str] = []
    for path in paths:
        texts += _leaves(value) if path == "$" else get_text_at_path(value, tokenize_path(path))
    return texts


def _leaves(value: Json) -> list[str]:
    """The one text of a value, or a line for each of its leaves."""
    leaves: list[tuple[str, Any]] = []

    def walk(path: str, one: Any) -> None:
        if isinstance(one, dict):
            for name, inner in one.items():
                walk(f"{path}.{name}" if path else str(name), inner)
        elif isinstance(one, (list, tuple)):
            for at, inner in enumerate(one):
                walk(f"{path}.{at}" if path else str(at), inner)
        elif one is not None:
            leaves.append((path, one))

    walk("", value)
    if len(leaves) == 1 and isinstance(leaves[0][1], str):
        return [leaves[0][1]]
    return [f"{path}: {leaf if isinstance(leaf, str) else json.dumps(leaf)}" for path, leaf in leaves]


def _settle(done: asyncio.Future[list[Result]], result: Union[list[Result], Exception]) -> None:
    if done.done():
        return
    if isinstance(result, Exception):
        done.set_exception(result)
    else:
        done.set_result(result)


def condition(filters: dict[str, Any]) -> Json:
    """The condition on metadata that a filter of LangGraph means, as ``InMemoryStore`` reads it.

    ``$ne`` and a filter by ``None`` hold where the key is missing. A comparison with a value of another type does not
    hold. An unknown operator is a ``ValueError``.
    """
    return _all([IS_ITEM, *(_compared([ITEM, "value", name], wanted) for name, wanted in filters.items())])


_ORDERS = {"$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}


def _compared(path: list[str], wanted: Any) -> Json:
    if isinstance(wanted, dict):
        if any(name.startswith("$") for name in wanted):
            return _all([_operated(path, operator, value) for operator, value in wanted.items()])
        if not wanted:
            return {"path": path, "exists": True}
        return _all([_compared([*path, name], value) for name, value in wanted.items()])
    return _equal(path, wanted)


def _operated(path: list[str], operator: str, value: Any) -> Json:
    if operator == "$eq":
        return _equal(path, value)
    if operator == "$ne":
        return {"not": _equal(path, value)}
    if operator in _ORDERS:
        order = _ORDERS[operator]
        if isinstance(value, float) and math.isnan(value):
            return _nothing(path)
        if isinstance(value, float) and math.isinf(value):
            # JSON has no infinity: all numbers lie between the largest and its negative.
            beyond = (value > 0) == (order in ("gt", "gte"))
            order = order[:2] if beyond else f"{order[:2]}e"
            value = math.copysign(sys.float_info.max, value)
        return {"path": path, order: value}
    raise ValueError(f"Unsupported operator: {operator}")


def _equal(path: list[str], value: Any) -> Json:
    if value is None:
        return {"any": [{"path": path, "eq": None}, {"not": {"path": path, "exists": True}}]}
    if isinstance(value, float) and not math.isfinite(value):
        return _nothing(path)
    return {"path": path, "eq": list(value) if isinstance(value, tuple) else value}


def _nothing(path: list[str]) -> Json:
    """What no value fulfils. JSON has neither an infinity nor NaN, so that no stored value is one."""
    return {"all": [{"path": path, "exists": True}, {"path": path, "exists": False}]}


def _all(parts: list[Json]) -> Json:
    return parts[0] if len(parts) == 1 else {"all": parts}


def _session(namespace: Sequence[str]) -> str:
    for label in namespace:
        if not isinstance(label, str) or not label or LABEL_END in label or "\x00" in label:
            raise InvalidNamespaceError(
                f"Invalid namespace label {label!r} found in {tuple(namespace)}. A label is text without periods and "
                "NUL bytes."
            )
    session = "".join(_printable(label) + LABEL_END for label in namespace)
    if len(session.encode("utf-8", "surrogatepass")) > MOST_NAME_BYTES:
        raise InvalidNamespaceError(
            f"Namespace {tuple(namespace)} is longer than RippleMemStore holds: its labels may have "
            f"{MOST_NAME_BYTES} bytes together, with one more for each"
        )
    return session


def _printable(label: str) -> str:
    """A label as a session's name may hold it: a control character is ``\\x`` and two digits, a backslash two."""
    def escaped(found: re.Match[str]) -> str:
        code = ord(found[0])
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

    return CONTROL.sub(escaped, label.replace("\\", "\\\\"))


def _namespace(session: str) -> Namespace:
    return tuple(
        _ESCAPED.sub(lambda found: chr(int(found[1] or found[2], 16)) if found[1] or found[2] else "\\", label)
        for label in session.split(LABEL_END)[:-1]
    )


def _identity(namespace: Sequence[str], key: str) -> str:
    _session(namespace)
    # A second end of a label is where the key begins, whatever the key holds.
    return short_name(f"{''.join(label + LABEL_END for label in namespace)}{LABEL_END}{key}")


def _fields_of(turn: HeldTurn) -> Json:
    item = (turn.metadata or {}).get(ITEM, {})
    return {
        "value": unpacked(turn, "value", ITEM),
        "key": item.get("key"),
        "namespace": tuple(item.get("namespace", ())),
        "created_at": moment_of_ms(turn.first_stored_ms),
        "updated_at": moment_of_ms(turn.stored_ms),
    }


def _scores(evidence: Evidence) -> dict[str, float]:
    """Each turn that was found, best first, with its share: 1 is the best part of the bank, 0 its background."""
    trace: Json = evidence.raw["trace"]
    near = [(str(one["turn"]), float(one["share"])) for one in trace.get("near", ())]
    # What is quoted comes first; it has no share of its own that is lower than that of what was left out.
    least = max([share for _, share in near], default=0.0)
    quoted = [excerpt.turn for unit in evidence.units for excerpt in unit.excerpts]
    scores: dict[str, float] = {}
    for at, turn in enumerate(dict.fromkeys(quoted)):
        scores[turn] = least + (max(1.0, least) - least) * (1 - at / max(1, len(quoted)))
    for turn, share in near:
        scores.setdefault(turn, share)
    return scores


def _matches(one: MatchCondition, namespace: Namespace) -> bool:
    path = one.path
    if one.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {one.match_type}")
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if one.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part))
