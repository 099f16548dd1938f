"""What goes to the service and what comes back, as plain values.

Fields that a later service adds are ignored; ``Evidence.raw`` has the whole answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
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

    ``turn`` is its id, unique in the bank: the same id, version and content again changes nothing, a higher
    ``version`` replaces it. ``time`` is when it was said, with its zone. ``kind`` says what the speaker is:
    ``person``, ``assistant``, ``tool`` or ``bot``. ``metadata`` is a JSON object of at most 64 KiB, kept with the turn
    exactly as it is. A turn with ``recall=False`` is kept, listed and forgotten like any other, and never quoted.

    With ``version="next"`` the service chooses the version: one above the present, unless the content is the same.
    With ``expected_version`` the turn is written only where the present version is that one, or, with 0, where the
    turn is absent or deleted; otherwise it is a ``ConflictError``.
    """

    turn: str
    speaker: str
    text: str
    time: Union[datetime, str]
    session: Optional[str] = None
    thread: Optional[str] = None
    reply_to: Optional[str] = None
    version: Union[int, str] = 0
    attachments: tuple[Json, ...] = ()
    kind: Optional[str] = None
    metadata: Optional[Json] = None
    recall: bool = True
    expected_version: Optional[int] = None

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
        for name in ("kind", "session", "thread", "reply_to", "metadata", "expected_version"):
            value = getattr(self, name)
            if value is not None:
                record[name] = value
        if self.attachments:
            record["attachments"] = list(self.attachments)
        if not self.recall:
            record["recall"] = False
        return record


@dataclass(frozen=True)
class Deletion:
    """A deletion among turns that are written, such as those of ``remember(…, together=True)``.

    Without ``version`` no later turn has this id again; with one, a turn of a higher version has. ``expected_version``
    is that of a ``Turn``. ``forget`` also waits until no answer reflects the turn.
    """

    turn: str
    version: Optional[Union[int, str]] = None
    expected_version: Optional[int] = None

    def to_json(self, bank: str) -> Json:
        """The record of the deletion."""
        record: Json = {"type": "deletion", "bank": bank, "turn": self.turn}
        for name in ("version", "expected_version"):
            if getattr(self, name) is not None:
                record[name] = getattr(self, name)
        return record


@dataclass(frozen=True)
class Written:
    """Turns are durable. ``after`` says where they lie: an answer can be asked to reflect them.

    ``not_kept``: how many of them are not kept, because turns with their ids were forgotten before; ``forgotten`` are
    these ids, at most 100 of each request. To keep such a turn all the same, send it with another id.

    ``versions``: the version of each turn that named ``version="next"`` or a condition. ``stale``: the ids of those that
    changed nothing, because a newer version or a deletion stands; of turns without both it is known with ``wait``.
    ``reflected``: answers and lists reflect all of them.
    """

    after: str
    turns: int
    not_kept: int = 0
    forgotten: tuple[str, ...] = ()
    versions: dict[str, int] = field(default_factory=dict)
    stale: tuple[str, ...] = ()
    reflected: bool = False


@dataclass(frozen=True)
class Selector:
    """Which turns of a bank: a turn must fit each field that is set.

    ``since`` and ``until`` are times at which they were said, from the first one on and before the second one.
    ``mentions`` are turns whose words hold one of these names; with ``speakers``, those of either. ``kinds`` are
    ``person``, ``assistant``, ``tool`` and ``bot``. ``everything`` stands alone.

    ``metadata`` is a condition: ``{"path": ["a", "b"], "eq": value}``, with ``in``, ``gt``, ``gte``, ``lt``, ``lte``,
    ``has`` or ``exists`` in place of ``eq``; or ``{"all": [...]}``, ``{"any": [...]}`` or ``{"not": condition}``. A key
    that is missing and a value of another type fit none of them but ``{"exists": False}``, and ``not`` turns that round.
    """

    turns: Sequence[str] = ()
    speakers: Sequence[str] = ()
    since: Optional[Union[datetime, str]] = None
    until: Optional[Union[datetime, str]] = None
    session: Optional[str] = None
    thread: Optional[str] = None
    mentions: Sequence[str] = ()
    everything: bool = False
    session_prefix: Optional[str] = None
    kinds: Sequence[str] = ()
    metadata: Optional[Json] = None

    def fields(self) -> Json:
        """Its JSON form."""
        times = {"since": self.since, "until": self.until}
        fields: Json = {name: time_text(time) for name, time in times.items() if time is not None}
        texts = (("session", self.session), ("thread", self.thread), ("session_prefix", self.session_prefix))
        fields.update({name: text for name, text in texts if text})
        lists = (("turns", self.turns), ("speakers", self.speakers), ("mentions", self.mentions), ("kinds", self.kinds))
        fields.update({name: list(values) for name, values in lists if values})
        if self.metadata is not None:
            fields["metadata"] = self.metadata
        return {**fields, "all": True} if self.everything else fields


@dataclass(frozen=True)
class HeldTurn:
    """A turn as the memory holds it; ``short`` may stand for its id.

    ``stored_ms`` and ``first_stored_ms``: when this version and the first one of the turn entered the log, in
    milliseconds since 1970.
    """

    turn: str
    short: str
    speaker: str
    time: str
    text: str
    session: Optional[str] = None
    kind: Optional[str] = None
    thread: Optional[str] = None
    reply_to: Optional[str] = None
    attachments: tuple[Json, ...] = ()
    version: int = 0
    metadata: Optional[Json] = None
    recall: bool = True
    stored_ms: Optional[int] = None
    first_stored_ms: Optional[int] = None


@dataclass(frozen=True)
class Session:
    """A conversation of a bank: how many turns it has, and when the first and the last were said, in RFC 3339.

    One that has only a title has no turns, and neither time.
    """

    session: str
    turns: int
    first: Optional[str] = None
    last: Optional[str] = None
    title: Optional[str] = None


@dataclass(frozen=True)
class Sessions:
    """Conversations of a list, by name. ``next``: where the list goes on, None at its end."""

    sessions: tuple[Session, ...]
    next: Optional[str] = None


@dataclass(frozen=True)
class HeldTurns:
    """Turns of a list, in its order. ``next``: where the list goes on, None at its end."""

    turns: tuple[HeldTurn, ...]
    more: int
    next: Optional[str] = None


@dataclass(frozen=True)
class Receipt:
    """What became of an operation that forgot turns; times are RFC 3339, None until then.

    ``stage``: ``accepted``, ``hidden`` (in no answer), ``rebuilt`` (others' words of the same windows are back) or
    ``erased`` (in no stored byte). ``due``: by when it is erased, None where only a request erases. ``never``: on
    Kafka, the topics that never let go of its words, with the setting to change. ``retention``: the ``bank`` and the
    place ``rule`` in the pipeline file of the rule that deleted the turns, None where somebody asked for it. ``raw`` is
    the whole receipt, which ``hmac_sha256`` signs.
    """

    operation: str
    bank: str
    turns: int
    stage: str
    requested: str
    hidden: Optional[str]
    rebuilt: Optional[str]
    erased: Optional[str]
    due: Optional[str]
    hmac_sha256: Optional[str]
    never: tuple[str, ...]
    retention: Optional[Json]
    raw: Json = field(repr=False, compare=False)


def receipt(raw: Optional[Json]) -> Optional[Receipt]:
    """Reads a receipt, where there is one."""
    if raw is None:
        return None
    times = (raw.get(name) for name in ("hidden", "rebuilt", "erased", "due"))
    hidden, rebuilt, erased, due = times
    operation, bank, turns = raw["operation"], raw["bank"], raw["turns"]
    stage, requested, hmac = raw["stage"], raw["requested"], raw.get("hmac_sha256")
    never, retention = tuple(raw.get("never", ())), raw.get("retention")
    return Receipt(operation, bank, turns, stage, requested, hidden, rebuilt, erased, due, hmac, never, retention, raw)


@dataclass(frozen=True)
class ForgottenTurns:
    """What became of turns that were to be deleted.

    ``turns``: how many the bank held; ``dead_letters``: how many rejected records of the same speakers went with them.
    Of a dry run, ``shown`` has the latest turns and ``confirm`` names exactly those turns. ``gone``: no answer reflects
    them any more. ``receipt``: what the operation has reached.
    """

    bank: str
    turns: Optional[int]
    shown: tuple[HeldTurn, ...]
    confirm: Optional[str]
    after: str
    gone: bool
    receipt: Optional[Receipt] = None
    dead_letters: int = 0


def held_turn(raw: Json) -> HeldTurn:
    """Reads a turn of a list."""
    known = {name.name: raw[name.name] for name in fields(HeldTurn) if raw.get(name.name) is not None}
    return HeldTurn(**{**known, "attachments": tuple(raw.get("attachments") or ())})


def sessions(raw: Json) -> Sessions:
    """Reads a list of conversations."""
    names = [name.name for name in fields(Session)]
    listed = (Session(**{name: one[name] for name in names if name in one}) for one in raw["sessions"])
    return Sessions(tuple(listed), raw.get("next"))


@dataclass(frozen=True)
class Forgotten:
    """A deletion is durable.

    ``gone``: no answer reflects the turn any more. ``held``: the memory held it; False for a wrong id, None where
    the service cannot tell. ``receipt``: what the operation has reached.
    """

    bank: str
    turn: str
    after: str
    gone: bool
    held: Optional[bool] = None
    receipt: Optional[Receipt] = None


@dataclass(frozen=True)
class Position:
    """An answer reflects everything before ``next_offset`` of this partition of a topic."""

    topic: str
    partition: int
    next_offset: int


@dataclass(frozen=True)
class Excerpt:
    """Words of a turn, as they were said; ``metadata`` is that of the turn, where the question asks for it."""

    turn: str
    speaker: str
    said_at: str
    text: str
    metadata: Optional[Json] = None


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
class FlatUnit:
    """A unit that a ranking without the graph would quote: its turns, what it is ranked by, and its tokens."""

    id: str
    label: str
    said_at: str
    turns: tuple[str, ...]
    score: float
    tokens: int


@dataclass(frozen=True)
class FlatRanking:
    """What a ranking would quote, best first, and the tokens of its context."""

    units: tuple[FlatUnit, ...]
    tokens: int


@dataclass(frozen=True)
class Flat:
    """Three rankings without the graph, each within the tokens of the answer's context."""

    meaning: FlatRanking
    words: FlatRanking
    same_score: FlatRanking


@dataclass(frozen=True)
class Notice:
    """What a question names that the memory does not know: ``empty_bank`` or ``unknown_asker``, and a sentence."""

    code: str
    message: str


@dataclass(frozen=True)
class Evidence:
    """The answer to a question.

    ``context`` is text for a prompt. ``supported`` is false where nothing was found that supports the question: a
    hint, since what is quoted may still answer it. ``notice`` says that the bank holds nothing yet, or that nobody
    of the asker's name speaks in it; None where both are known. ``raw`` is the whole answer, with its trace. ``flat`` is there where the question asks to ``compare``.
    ``forgotten``: of an answer ``as_of`` a point of the past, how many turns the bank held then and were forgotten
    since, None where none was.
    """

    context: str
    supported: bool
    sufficiency: float
    units: tuple[Unit, ...]
    reflects: tuple[Position, ...]
    stop_reason: str
    raw: Json = field(repr=False)
    flat: Optional[Flat] = None
    forgotten: Optional[int] = None
    notice: Optional[Notice] = None

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
            flat=_flat(raw["flat"]) if raw.get("flat") else None,
            forgotten=raw.get("forgotten"),
            notice=Notice(raw["notice"]["code"], raw["notice"]["message"]) if raw.get("notice") else None,
        )


@dataclass(frozen=True)
class Step:
    """A step from a stored turn to its line in the context.

    ``state`` is ``passed``, ``failed``, ``not_reached`` or ``unknown``. ``numbers`` are what the step counted, and
    ``change`` says what would have changed it.
    """

    name: str
    state: str
    sentence: str
    numbers: Json = field(repr=False)
    change: Optional[str] = None


@dataclass(frozen=True)
class Explanation:
    """Why the answer to a question quotes a turn, or why not.

    ``failed`` names the first step that kept the turn out, and ``change`` says what would have changed that; both are
    None where it is quoted. ``raw`` is the whole explanation.
    """

    quoted: bool
    sentence: str
    failed: Optional[str]
    change: Optional[str]
    steps: tuple[Step, ...]
    raw: Json = field(repr=False)

    @staticmethod
    def from_json(raw: Json) -> Explanation:
        """Reads an explanation."""
        return Explanation(
            quoted=raw["quoted"],
            sentence=raw["sentence"],
            failed=raw.get("failed"),
            change=raw.get("change"),
            steps=tuple(
                Step(step["step"], step["state"], step["sentence"], step["numbers"], step.get("change"))
                for step in raw["steps"]
            ),
            raw=raw,
        )


@dataclass(frozen=True)
class FollowedUnit:
    """A unit of the evidence of a question that is followed."""

    id: str
    restatement: str
    said_at: str
    sources: tuple[str, ...]
    excerpts: tuple[Excerpt, ...]


@dataclass(frozen=True)
class Followed:
    """The evidence of a question that is followed, complete as of ``reflects``, best first.

    ``added`` and ``removed`` are what changed since the one before; None where this is the whole
    evidence anew, or nothing but the offsets changed. ``removed`` has the units as they were received.
    """

    units: tuple[FollowedUnit, ...]
    supported: bool
    sufficiency: float
    reflects: tuple[Position, ...]
    added: Optional[tuple[FollowedUnit, ...]] = None
    removed: Optional[tuple[FollowedUnit, ...]] = None


@dataclass(frozen=True)
class BankEvent:
    """What happened in a bank that is followed: ``name`` is the event's, such as ``turn``, ``data`` its fields.

    A ``progress`` comes after the events that led to it, and says what the bank holds then.
    """

    name: str
    data: Json


@dataclass(frozen=True)
class Citation:
    """A line of the evidence on which an answer rests."""

    line: str
    units: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """An answer in words. ``raw`` is the whole of it, with what the model took."""

    text: str
    reasoning: str
    citations: tuple[Citation, ...]
    raw: Json = field(repr=False)


@dataclass(frozen=True)
class Piece:
    """A piece of an answer that is being generated.

    ``text`` is further words. ``restart``: the words so far are void. ``answer`` is in the last piece.
    """

    text: str = ""
    restart: bool = False
    answer: Optional[Answer] = None


@dataclass(frozen=True)
class Edge:
    """An edge of a unit: its kind, its strength, why it is there, and the unit at the other end."""

    channel: str
    weight: float
    reasons: Json
    unit: FollowedUnit


@dataclass(frozen=True)
class UnitView:
    """A unit with all of its parts, and the edges that leave it."""

    bank: str
    unit: FollowedUnit
    edges: tuple[Edge, ...]
    reflects: tuple[Position, ...]
    raw: Json = field(repr=False)


@dataclass(frozen=True)
class Units:
    """Units of a bank as of one moment, without their edges; ``missing`` are those that it has not."""

    bank: str
    units: tuple[FollowedUnit, ...]
    missing: tuple[str, ...]
    reflects: tuple[Position, ...]


@dataclass(frozen=True)
class GraphUnit:
    """A unit of a graph; ``label`` is what it says, cut to 80 characters."""

    id: str
    label: str
    said_at: str
    session: str


@dataclass(frozen=True)
class GraphEdge:
    """An edge between the units ``start`` and ``end``; it has no direction."""

    start: str
    end: str
    channel: str
    weight: float


@dataclass(frozen=True)
class Graph:
    """A part of a bank's graph: units, and the edges between them, the strongest first.

    ``truncated``: whether a limit left out units or edges.
    """

    bank: str
    units: tuple[GraphUnit, ...]
    edges: tuple[GraphEdge, ...]
    total_units: int
    total_edges: int
    truncated: bool
    reflects: tuple[Position, ...]


@dataclass(frozen=True)
class BankCounts:
    """What a bank holds. ``state``: ``here``; ``asleep``, with the counts with which it fell asleep; or why there
    are no counts: ``loading``, ``elsewhere``, ``quarantined``.

    ``last_append_ms``: when the memory log last took a record of it, in milliseconds since 1970.
    """

    bank: str
    state: str
    units: Optional[int] = None
    semantic_edges: Optional[int] = None
    structural_edges: Optional[int] = None
    behind: Optional[int] = None
    last_append_ms: Optional[int] = None


@dataclass(frozen=True)
class CountedBanks:
    """Banks of a list, in order. ``next``: where the list goes on, None at its end."""

    banks: tuple[BankCounts, ...]
    next: Optional[str] = None


@dataclass(frozen=True)
class Point:
    """A point of a bank's past: an offset, as ``as_of`` takes it; ``append_ms`` is in milliseconds since 1970."""

    offset: str
    append_ms: int


@dataclass(frozen=True)
class History:
    """The points of a bank's past that ``as_of`` answers for, oldest first.

    ``more``: how many earlier ones are not listed. ``oldest`` and ``newest`` are those of all.
    """

    bank: str
    points: tuple[Point, ...]
    oldest: Optional[Point]
    newest: Optional[Point]
    more: int


@dataclass(frozen=True)
class Diff:
    """What came and went in a bank between the offsets ``start`` and ``end``; at most 1,000 entries a list.

    Units are in the order of time, the latest first; edges the strongest first. ``skipped`` has how many entries each
    list lacks, by its name. An edge whose weight changed is in both lists. ``forgotten``: how many turns the bank held
    at one of the two points and were forgotten since; neither point shows them.
    """

    bank: str
    start: str
    end: str
    units_added: tuple[GraphUnit, ...]
    units_removed: tuple[GraphUnit, ...]
    edges_added: tuple[GraphEdge, ...]
    edges_removed: tuple[GraphEdge, ...]
    skipped: dict[str, int]
    forgotten: int


@dataclass(frozen=True)
class ProfileLine:
    """A line of a profile.

    ``kind`` is ``instruction``, ``preference``, ``fact`` or ``plan``. ``turns`` say it, in the order of time, the last
    one with the words of ``text``. ``open``: of a plan, whether its time has not passed. ``superseded_by`` has the
    ``turn``, ``said_at`` and ``text`` of what superseded it, None where it holds.
    """

    kind: str
    speaker: str
    relation: str
    object: str
    text: str
    said_at: str
    since: str
    turns: tuple[str, ...]
    subject: Optional[str] = None
    negated: bool = False
    time: Optional[Json] = None
    open: Optional[bool] = None
    superseded_by: Optional[Json] = None


@dataclass(frozen=True)
class LatestSession:
    """A session in which something was said last; ``begins`` has its first words where it has no title."""

    session: str
    turns: int
    first: str
    last: str
    title: Optional[str] = None
    begins: Optional[Json] = None


@dataclass(frozen=True)
class Profile:
    """What persons of a bank said that lasts.

    ``text`` is the same for a prompt; ``left_out`` lines had no room in it. ``version`` is another one once it changed.
    """

    bank: str
    person: Optional[str]
    lines: tuple[ProfileLine, ...]
    sessions: tuple[LatestSession, ...]
    text: str
    tokens: int
    left_out: int
    version: str
    reflects: tuple[Position, ...]


@dataclass(frozen=True)
class TokenView:
    """What the token gives. ``name`` is None where no token is asked for; ``*`` in ``banks`` is every bank."""

    name: Optional[str]
    rights: tuple[str, ...]
    banks: tuple[str, ...]
    expires: Optional[str] = None
    requests_per_minute: Optional[int] = None
    requests_left: Optional[int] = None


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


def _flat(raw: Json) -> Flat:
    def ranking(raw: Json) -> FlatRanking:
        units = (
            FlatUnit(unit["id"], unit["label"], unit["said_at"], tuple(unit["turns"]), unit["score"], unit["tokens"])
            for unit in raw["units"]
        )
        return FlatRanking(tuple(units), raw["tokens"])

    return Flat(ranking(raw["meaning"]), ranking(raw["words"]), ranking(raw["same_score"]))


def _excerpts(raw: list[Json]) -> tuple[Excerpt, ...]:
    return tuple(Excerpt(e["turn"], e["speaker"], e["said_at"], e["text"], e.get("metadata")) for e in raw)


def _followed_unit(raw: Json, parts: str = "excerpts") -> FollowedUnit:
    sources = tuple(raw["sources"])
    return FollowedUnit(raw["id"], raw["restatement"], raw["said_at"], sources, _excerpts(raw[parts]))


def followed(units: list[Json], progress: Json, changes: Optional[tuple[list[Json], list[Json]]]) -> Followed:
    """The evidence at a progress, with the units that came and those that went."""

    def changed(at: int) -> Optional[tuple[FollowedUnit, ...]]:
        return None if changes is None else tuple(_followed_unit(unit) for unit in changes[at])

    return Followed(
        units=tuple(_followed_unit(unit) for unit in units),
        supported=progress["supported"],
        sufficiency=progress["sufficiency"],
        reflects=tuple(_position(at) for at in progress["reflects"]),
        added=changed(0),
        removed=changed(1),
    )


def answer(raw: Json) -> Answer:
    """Reads an answer in words."""
    cited = (Citation(c["line"], tuple(c["units"]), tuple(c["sources"])) for c in raw["standing"])
    return Answer(raw["text"], raw["reasoning"], tuple(cited), raw)


def unit_view(raw: Json) -> UnitView:
    """Reads a unit with its neighbours."""
    edges = (Edge(e["channel"], e["weight"], e["reasons"], _followed_unit(e["unit"], "parts")) for e in raw["edges"])
    reflects = tuple(_position(at) for at in raw["reflects"])
    return UnitView(raw["bank"], _followed_unit(raw["unit"], "parts"), tuple(edges), reflects, raw)


def units(raw: Json) -> Units:
    """Reads many units."""
    held = tuple(_followed_unit(unit, "parts") for unit in raw["units"])
    return Units(raw["bank"], held, tuple(raw["missing"]), tuple(_position(at) for at in raw["reflects"]))


def graph(raw: Json) -> Graph:
    """Reads a part of a bank's graph."""
    totals = (raw["total_units"], raw["total_edges"], raw["truncated"])
    reflects = tuple(_position(at) for at in raw["reflects"])
    return Graph(raw["bank"], _graph_units(raw["units"]), _graph_edges(raw["edges"]), *totals, reflects)


def _graph_units(raw: list[Json]) -> tuple[GraphUnit, ...]:
    return tuple(GraphUnit(unit["id"], unit["label"], unit["said_at"], unit["session"]) for unit in raw)


def _graph_edges(raw: list[Json]) -> tuple[GraphEdge, ...]:
    return tuple(GraphEdge(edge["from"], edge["to"], edge["channel"], edge["weight"]) for edge in raw)


def diff(raw: Json) -> Diff:
    """Reads what changed between two points."""
    units = (_graph_units(raw[name]) for name in ("units_added", "units_removed"))
    edges = (_graph_edges(raw[name]) for name in ("edges_added", "edges_removed"))
    return Diff(raw["bank"], raw["from"], raw["to"], *units, *edges, raw["skipped"], raw.get("forgotten", 0))


def profile(raw: Json) -> Profile:
    """Reads what persons said that lasts."""
    names = [name.name for name in fields(ProfileLine) if name.name != "turns"]
    lines = tuple(
        ProfileLine(turns=tuple(line["turns"]), **{name: line[name] for name in names if name in line})
        for line in raw["lines"]
    )
    reflects = tuple(_position(at) for at in raw["reflects"])
    return Profile(
        bank=raw["bank"],
        person=raw.get("person"),
        lines=lines,
        sessions=tuple(LatestSession(**session) for session in raw.get("sessions", ())),
        text=raw["text"],
        tokens=raw["tokens"],
        left_out=raw["left_out"],
        version=raw["version"],
        reflects=reflects,
    )


def counted_banks(raw: Json) -> CountedBanks:
    """Reads a list of banks with counts."""
    names = [name.name for name in fields(BankCounts)]
    counts = (BankCounts(**{name: one[name] for name in names if name in one}) for one in raw["counts"])
    return CountedBanks(tuple(counts), raw.get("next"))


def history(raw: Json) -> History:
    """Reads the points of a bank's past."""

    def point(at: Optional[Json]) -> Optional[Point]:
        return None if at is None else Point(at["offset"], at["append_ms"])

    points = tuple(Point(at["offset"], at["append_ms"]) for at in raw["points"])
    return History(raw["bank"], points, point(raw.get("oldest")), point(raw.get("newest")), raw["more"])


def token_view(raw: Json) -> TokenView:
    """Reads what a token gives."""
    limits = (raw.get(name) for name in ("expires", "requests_per_minute", "requests_left"))
    return TokenView(raw.get("name"), tuple(raw["rights"]), tuple(raw["banks"]), *limits)


def _unit(raw: Json) -> Unit:
    excerpts = _excerpts(raw["excerpts"])
    return Unit(
        id=raw["id"],
        restatement=raw["restatement"],
        said_at=raw["said_at"],
        sources=tuple(raw["sources"]),
        excerpts=excerpts,
        rho=raw["rho"],
        provenance=tuple(raw["provenance"]),
    )


def digest(raw: Json) -> Digest:
    """Reads a digest."""
    reflects = tuple(_position(at) for at in raw["reflects"])
    return Digest(raw["units"], raw["semantic_edges"], raw["structural_edges"], raw["hash"], reflects)
