"""What goes to the service and what comes back, as plain values.

Fields that a later service adds are ignored; ``Evidence.raw`` has the whole answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Optional, Union

Json = dict[str, Any]


def time_text(time: Union[datetime, str]) -> str:
    """RFC 3339 with an offset. A ``datetime`` without a zone is refused: nobody could tell when it was."""
    if isinstance(time, str):
        return time
    if time.tzinfo is None:
        raise ValueError("the time has no zone; use datetime.now().astimezone() or datetime(…, tzinfo=…)")
    return time.isoformat()


@dataclass(frozen=True)
class Turn:
    """One thing that one speaker said.

    ``turn`` is its id, unique in the bank: the same id and version again changes nothing, a higher
    ``version`` replaces it. ``time`` is when it was said, with its zone.
    """

    turn: str
    speaker: str
    text: str
    time: Union[datetime, str]
    session: Optional[str] = None
    thread: Optional[str] = None
    reply_to: Optional[str] = None
    version: int = 0
    attachments: tuple[Json, ...] = ()

    def to_json(self, bank: str) -> Json:
        """The record of the turn."""
        record: Json = {
            "type": "turn",
            "bank": bank,
            "turn": self.turn,
            "version": self.version,
            "speaker": self.speaker,
            "text": self.text,
            "time": time_text(self.time),
        }
        for name in ("session", "thread", "reply_to"):
            value = getattr(self, name)
            if value is not None:
                record[name] = value
        if self.attachments:
            record["attachments"] = list(self.attachments)
        return record


@dataclass(frozen=True)
class Written:
    """Turns are durable. ``after`` says where they lie: an answer can be asked to reflect them."""

    after: str
    turns: int


@dataclass(frozen=True)
class Forgotten:
    """A deletion is durable. ``gone``: no answer reflects the turn any more."""

    bank: str
    turn: str
    after: str
    gone: bool


@dataclass(frozen=True)
class Position:
    """An answer reflects everything before ``next_offset`` of this partition of a topic."""

    topic: str
    partition: int
    next_offset: int


@dataclass(frozen=True)
class Excerpt:
    """Words of a turn, as they were said."""

    turn: str
    speaker: str
    said_at: str
    text: str


@dataclass(frozen=True)
class Unit:
    """A piece of evidence: what was said, in which turns, and how it was reached."""

    id: str
    restatement: str
    said_at: str
    sources: tuple[str, ...]
    excerpts: tuple[Excerpt, ...]
    rho: float
    provenance: tuple[Json, ...]


@dataclass(frozen=True)
class Evidence:
    """The answer to a question.

    ``context`` is text for a prompt. ``supported`` is false where nothing that is remembered answers the
    question. ``raw`` is the whole answer, with its trace.
    """

    context: str
    supported: bool
    sufficiency: float
    units: tuple[Unit, ...]
    reflects: tuple[Position, ...]
    stop_reason: str
    raw: Json = field(repr=False)

    @staticmethod
    def from_json(raw: Json) -> Evidence:
        """Reads an answer."""
        return Evidence(
            context=raw["context"],
            supported=raw["supported"],
            sufficiency=raw["sufficiency"],
            units=tuple(_unit(unit) for unit in raw["units"]),
            reflects=tuple(_position(at) for at in raw["reflects"]),
            stop_reason=raw["stop_reason"],
            raw=raw,
        )


@dataclass(frozen=True)
class Digest:
    """Counts of units and edges, and a hash that depends only on the set of them."""

    units: int
    semantic_edges: int
    structural_edges: int
    hash: str
    reflects: tuple[Position, ...]


@dataclass(frozen=True)
class Status:
    """How the service is. ``behind``: turns that are durable and that no answer reflects yet."""

    version: str
    behind: int
    problem: Optional[str]
    raw: Json = field(repr=False)


def _position(raw: Json) -> Position:
    return Position(raw["topic"], raw["partition"], raw["next_offset"])


def _unit(raw: Json) -> Unit:
    excerpts = (Excerpt(e["turn"], e["speaker"], e["said_at"], e["text"]) for e in raw["excerpts"])
    return Unit(
        id=raw["id"],
        restatement=raw["restatement"],
        said_at=raw["said_at"],
        sources=tuple(raw["sources"]),
        excerpts=tuple(excerpts),
        rho=raw["rho"],
        provenance=tuple(raw["provenance"]),
    )


def digest(raw: Json) -> Digest:
    """Reads a digest."""
    reflects = tuple(_position(at) for at in raw["reflects"])
    return Digest(raw["units"], raw["semantic_edges"], raw["structural_edges"], raw["hash"], reflects)
