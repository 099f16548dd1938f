"""A capability, a toolset and a conversation store of Pydantic AI in a bank.

>>> from pydantic_ai import Agent
>>> from ripplemem.pydantic_ai import RippleMemCapability
>>> agent = Agent(model, capabilities=[RippleMemCapability(url="http://127.0.0.1:8321", bank="acme/ann")])
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, Optional, Union

from pydantic import TypeAdapter
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord, ConversationStore
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.toolsets import FunctionToolset

from .adapters import (
    ADDRESS,
    MOST_CONFLICTS,
    PROFILE_TOKENS,
    Access,
    Steps,
    held_by_id,
    known,
    listed,
    message_turn,
    now,
    packed,
    recall_answer,
    recalled,
    remember_answer,
    short_name,
    unpacked,
    with_block,
    written,
    written_once,
)
from .calls import MOST_TURNS
from .errors import ConflictError, RippleMemError
from .forms import Deletion, HeldTurn, Json, Selector, Turn

#: Where a record and an entry of a conversation stand in the metadata of their turns.
RECORD, ENTRY = "record", "entry"
#: The session of the records, and what the sessions of entries begin with.
RECORDS, ENTRIES = "conversation records", "conversation/"

Name = Union[str, Callable[[Any], str]]
_RECORD = TypeAdapter(ConversationRecord)
_ENTRY = TypeAdapter(ConversationEntry)


@dataclass
class RippleMemCapability(AbstractCapability[Any]):
    """Recalls before each request to the model, and remembers the messages of a run when it has ended.

    What was recalled stands at the end of the user's last prompt in the request alone, never in the history. What the
    user said that lasts is an instruction of the run, with ``profile_tokens`` at most; 0 leaves it out. ``bank``
    and ``user``, the speaker of prompts, are names, or functions of the ``RunContext``. The conversation is that of the
    run. With ``tools`` the model has ``remember`` and ``recall``, too.

    Where the memory does not answer, the model is told so and the run goes on. Where it does not remember, the run
    fails: with ``lenient``, that is logged instead. ``remember=False`` only recalls.
    """

    url: str = ADDRESS
    bank: Name = ""
    token: Optional[str] = field(default=None, repr=False)
    user: Name = "user"
    assistant: str = "assistant"
    most_tokens: Optional[int] = None
    profile_tokens: int = PROFILE_TOKENS
    where: Optional[Selector] = None
    remember: bool = True
    lenient: bool = False
    tools: bool = False

    def __post_init__(self) -> None:
        if not self.bank:
            raise ValueError("RippleMemCapability: bank: name the bank, or give a function of the RunContext")
        self._access = Access(self.url, token=self.token)
        # What was recalled for the prompt of a run: a loop sends it again with each call of a tool.
        self._recalled: dict[str, tuple[str, str]] = {}

    def get_toolset(self) -> Any:
        """The tools, where the model has them."""
        return _toolset(self._access, self.bank, self.where) if self.tools else None

    def get_instructions(self) -> Any:
        """What the user said that lasts."""
        return self._known

    async def _known(self, ctx: RunContext[Any]) -> Optional[str]:
        user, bank = _named(self.user, ctx), _named(self.bank, ctx)
        profile = known(self._access, user, bank=bank, most_tokens=self.profile_tokens)
        return await self._access.arun(profile) or None

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Recalls into the user's last prompt."""
        messages = list(request_context.messages)
        place = _last_prompt(messages)
        if place is None:
            return request_context
        at, index = place
        asking = messages[at].parts[index]
        question, run = _content_words(asking.content), str(ctx.run_id)
        if self._recalled.get(run, ("", ""))[0] == question:
            block = self._recalled[run][1]
        else:
            spoken = [(_role(one), words(one)) for one in messages[:at] if words(one)]
            names = {"user": _named(self.user, ctx), "assistant": self.assistant}
            block = await self._access.arun(
                recalled(
                    self._access,
                    question,
                    bank=_named(self.bank, ctx),
                    where=self.where,
                    said_before=[(names[role], text) for role, text in spoken],
                    most_tokens=self.most_tokens,
                    beside=[question, *(text for _, text in spoken)],
                )
            )
            self._recalled[run] = (question, block)
        if not block:
            return request_context
        parts = list(messages[at].parts)
        parts[index] = replace(asking, content=_extended(asking.content, block))
        messages[at] = replace(messages[at], parts=parts)
        return replace(request_context, messages=messages)

    async def after_run(self, ctx: Any, *, result: Any) -> Any:
        """Remembers the messages of the run."""
        self._recalled.pop(str(ctx.run_id), None)
        if self.remember:
            names = {"user": _named(self.user, ctx), "assistant": self.assistant}
            session = short_name(str(ctx.conversation_id))
            turns = [
                turn
                for at, message in enumerate(result.new_messages())
                for turn in _turns(message, f"{ctx.run_id}.{at}", session, names)
            ]
            await self._access.arun(
                written_once(self._access, turns, bank=_named(self.bank, ctx), lenient=self.lenient)
            )
        return result

    async def on_run_error(self, ctx: Any, *, error: BaseException) -> Any:
        """Forgets what was recalled for a run that fails."""
        self._recalled.pop(str(ctx.run_id), None)
        raise error

    async def aclose(self) -> None:
        """Ends the connections of this event loop."""
        await self._access.aclose()


def memory_toolset(
    url: str = ADDRESS, *, bank: str, token: Optional[str] = None, where: Optional[Selector] = None
) -> FunctionToolset[Any]:
    """``remember`` and ``recall`` for a model. The bank is this one: a model never chooses whose memory it reads."""
    return _toolset(Access(url, token=token), bank, where)


def _toolset(access: Access, bank: Name, where: Optional[Selector]) -> FunctionToolset[Any]:
    toolset: FunctionToolset[Any] = FunctionToolset()

    async def remember(ctx: RunContext[Any], speaker: str, text: str) -> str:
        """Remember something that was said. It can be recalled at once, also in later conversations.

        Args:
            speaker: Who said it.
            text: What was said, in the speaker's words.
        """
        return await access.arun(remember_answer(access, uuid.uuid4().hex, speaker, text, _named(bank, ctx)))

    async def recall(ctx: RunContext[Any], question: str) -> str:
        """Recall what was said that answers a question. Says so when nothing does.

        Args:
            question: A whole question that names persons and things.
        """
        return await access.arun(recall_answer(access, question, _named(bank, ctx), where))

    for tool in (remember, recall):
        toolset.add_function(tool, takes_ctx=True)
    return toolset


class RippleMemConversationStore(ConversationStore):
    """Conversations and their entries, for any number of processes at once.

    A record is replaced on the condition that nobody else has replaced it, together with the entries that it adds. With
    ``recall=True`` what the user and the assistant say is recalled, too, which is the work of ``RippleMemCapability``
    where an agent has both. A deletion takes the entries with it that no other conversation reaches.
    """

    def __init__(
        self,
        url: str = ADDRESS,
        *,
        bank: str,
        token: Optional[str] = None,
        user: str = "user",
        assistant: str = "assistant",
        recall: bool = False,
    ) -> None:
        self._access = Access(url, bank=bank, token=token)
        self._names, self._recall = {"user": user, "assistant": assistant}, recall

    async def read_record(self, conversation_id: str) -> Optional[ConversationRecord]:
        """The record of a conversation, None where there is none."""
        turn = await self._access.arun(self._record(conversation_id))
        return None if turn is None else _RECORD.validate_python(unpacked(turn, RECORD))

    async def read_records(
        self, *, scope: Optional[str] = None, limit: Optional[int] = None
    ) -> Sequence[ConversationRecord]:
        """The records, or those of a scope, the latest first."""
        turns = await self._access.arun(self._records(scope))
        records = [_RECORD.validate_python(unpacked(turn, RECORD)) for turn in turns]
        # The service keeps milliseconds of the times.
        return sorted(records, key=lambda record: record.updated_at, reverse=True)[:limit]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: Optional[str],
    ) -> None:
        """Replaces a record, with its new entries, or leaves all as it is and raises ``ConversationConflict``."""
        await self._access.arun(self._write(record, list(new_entries), expected_revision))

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Deletes a record and the entries that no other one reaches, or raises ``ConversationConflict``."""
        await self._access.arun(self._delete(conversation_id, expected_revision))

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """An entry; a ``KeyError`` where there is none."""
        held = await self._access.arun(held_by_id(self._access, [entry_name(entry_id)]))
        if not held:
            raise KeyError(entry_id)
        return _entry(next(iter(held.values())))

    async def read_history(self, head_id: Optional[str], *, limit: Optional[int] = None) -> list[ConversationEntry]:
        """The entries up to one, oldest first: a request for each conversation that has some of them."""
        turns = await self._access.arun(self._history(head_id, limit))
        return [_entry(turn) for turn in turns]

    async def aclose(self) -> None:
        """Ends the connections of this event loop."""
        await self._access.aclose()

    def _record(self, conversation_id: str) -> Steps[Optional[HeldTurn]]:
        name = record_name(conversation_id)
        held = yield from held_by_id(self._access, [name])
        return held.get(name)

    def _records(self, scope: Optional[str]) -> Steps[list[HeldTurn]]:
        condition = None if scope is None else {"path": ["scope"], "eq": scope}
        found = yield from listed(self._access, Selector(session=RECORDS, metadata=condition))
        return found

    def _write(
        self, record: ConversationRecord, entries: list[ConversationEntry], expected: Optional[str]
    ) -> Steps[None]:
        conflict = ConversationConflict(record.conversation_id)
        held = yield from self._record(record.conversation_id)
        if _revision(held) != expected:
            raise conflict
        turns: list[Union[Turn, Deletion]] = [self._entry_turn(entry, record.conversation_id) for entry in entries]
        # Entries to which a record comes to point from elsewhere, as a fork does, are written again: a deletion of
        # the conversation that had them finds them changed, and leaves them.
        pinned = {entry.id for entry in entries}
        if held is not None:
            before = _RECORD.validate_python(unpacked(held, RECORD))
            pinned |= {one for one in [before.head_id, *before.branches] if one is not None}
        heads = [one for one in [record.head_id, *record.branches] if one is not None and one not in pinned]
        found = yield from held_by_id(self._access, [entry_name(one) for one in heads])
        for one in heads:
            turn = found.get(entry_name(one))
            if turn is None:
                raise conflict
            touched = {**(turn.metadata or {}), "pins": int((turn.metadata or {}).get("pins", 0)) + 1}
            turns.append(_again(turn, touched))
        turns.append(self._record_turn(record, held))
        # What one request does not hold goes before: until a record points at it, nobody reads it.
        while len(turns) > MOST_TURNS:
            yield from written(self._access, turns[: MOST_TURNS // 2], together=True)
            turns = turns[MOST_TURNS // 2 :]
        try:
            yield from written(self._access, turns, together=True)
        except ConflictError:
            now_held = yield from self._record(record.conversation_id)
            # The connection may have broken off after the service wrote it.
            if _revision(now_held) != record.revision:
                raise conflict from None

    def _delete(self, conversation_id: str, expected: str) -> Steps[None]:
        held = yield from self._record(conversation_id)
        if held is None or _revision(held) != expected:
            raise ConversationConflict(conversation_id)
        record = _RECORD.validate_python(unpacked(held, RECORD))
        try:
            deletion = Deletion(held.turn, version="next", expected_version=held.version)
            yield from written(self._access, [deletion], known_again=False)
        except ConflictError:
            raise ConversationConflict(conversation_id) from None
        for _ in range(MOST_CONFLICTS):
            released = yield from self._released(record)
            try:
                # The latest first: an entry that was pinned meanwhile keeps those before it.
                for start in range(0, len(released), MOST_TURNS):
                    part = released[start : start + MOST_TURNS]
                    deletions = [Deletion(turn.turn, expected_version=turn.version) for turn in part]
                    yield from written(self._access, deletions, together=True)
                return
            except ConflictError:
                continue
        raise RippleMemError(f"the entries of conversation {conversation_id!r} are in use; delete it again", "conflict", 409)

    def _released(self, record: ConversationRecord) -> Steps[list[HeldTurn]]:
        """The entries of a deleted record that no record reaches, the latest first."""
        turns = yield from listed(self._access, Selector(session_prefix=ENTRIES))
        by_name = {turn.turn: turn for turn in turns}
        records = yield from self._records(None)
        reached: set[str] = set()
        for one in records:
            kept = _RECORD.validate_python(unpacked(one, RECORD))
            for name in _chains(kept, by_name):
                reached.add(name)
        return [by_name[name] for name in _chains(record, by_name) if name not in reached]

    def _history(self, head_id: Optional[str], limit: Optional[int]) -> Steps[list[HeldTurn]]:
        found: dict[str, HeldTurn] = {}
        turns: list[HeldTurn] = []
        wanted = None if head_id is None else entry_name(head_id)
        while wanted is not None and (limit is None or len(turns) < limit):
            if wanted not in found:
                head = yield from held_by_id(self._access, [wanted])
                if wanted not in head:
                    raise KeyError(wanted)
                found.update(head)
                if limit is None or limit > 1:
                    beside = yield from listed(self._access, Selector(session=head[wanted].session))
                    found.update((turn.turn, turn) for turn in beside)
            turns.append(found[wanted])
            wanted = _parent(found[wanted])
        return turns[::-1]

    def _entry_turn(self, entry: ConversationEntry, conversation_id: str) -> Turn:
        message = entry.message
        turn = message_turn(
            entry_name(entry.id),
            _role(message),
            words(message),
            _time(message),
            speaker=self._names[_role(message)],
            session=short_name(f"{ENTRIES}{conversation_id}"),
            recall=self._recall,
            otherwise=_otherwise(message),
        )
        parent = None if entry.parent_id is None else entry_name(entry.parent_id)
        # A version of its own, so that the condition of a deletion can name it: 0 says that it is absent.
        return replace(packed(turn, {"parent": parent}, ENTRY, _ENTRY.dump_python(entry, mode="json")), version="next")

    def _record_turn(self, record: ConversationRecord, held: Optional[HeldTurn]) -> Turn:
        turn = Turn(
            record_name(record.conversation_id),
            "conversations",
            f"conversation {record.conversation_id}"[:1_000],
            record.updated_at,
            session=RECORDS,
            version="next",
            expected_version=0 if held is None else held.version,
            kind="bot",
            recall=False,
        )
        beside = {"scope": record.scope, "revision": record.revision}
        return packed(turn, beside, RECORD, _RECORD.dump_python(record, mode="json"))


def entry_name(entry_id: str) -> str:
    """The id of the turn of an entry."""
    return short_name(f"entry/{entry_id}")


def record_name(conversation_id: str) -> str:
    """The id of the turn of a record."""
    return short_name(f"record/{conversation_id}")


def words(message: ModelMessage) -> str:
    """The words of a message: what the user asks or the model says, without calls of tools and thinking."""
    if isinstance(message, ModelResponse):
        return "\n".join(part.content for part in message.parts if isinstance(part, TextPart) and part.content)
    texts = (_content_words(part.content) for part in message.parts if isinstance(part, UserPromptPart))
    return "\n".join(text for text in texts if text)


def _content_words(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = (part if isinstance(part, str) else getattr(part, "text", getattr(part, "content", "")) for part in content)
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def _extended(content: Any, block: str) -> Any:
    return with_block(content, block) if isinstance(content, str) else [*content, block]


def _last_prompt(messages: Sequence[ModelMessage]) -> Optional[tuple[int, int]]:
    for at in reversed(range(len(messages))):
        message = messages[at]
        if isinstance(message, ModelRequest):
            for index in reversed(range(len(message.parts))):
                if isinstance(message.parts[index], UserPromptPart):
                    return at, index
    return None


def _turns(message: ModelMessage, identity: str, session: str, names: dict[str, str]) -> list[Turn]:
    role, text, time = _role(message), words(message), _time(message)
    turns = []
    if text or isinstance(message, ModelResponse):
        turn = message_turn(
            identity, role, text, time, speaker=names[role], session=session, otherwise=_otherwise(message)
        )
        calls = [
            {"tool_name": part.tool_name, "args": part.args_as_dict(), "tool_call_id": part.tool_call_id}
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ]
        turns.append(packed(turn, {}, "tool_calls", calls) if calls else turn)
    if isinstance(message, ModelRequest):
        for at, part in enumerate(message.parts):
            if isinstance(part, ToolReturnPart):
                said = message_turn(
                    f"{identity}.{at}", "tool", part.model_response_str(), time, speaker=part.tool_name, session=session
                )
                turns.append(replace(said, metadata={"tool_call_id": part.tool_call_id}))
    return turns


def _role(message: ModelMessage) -> str:
    return "assistant" if isinstance(message, ModelResponse) else "user"


def _time(message: ModelMessage) -> datetime:
    times = [getattr(message, "timestamp", None), *(getattr(part, "timestamp", None) for part in message.parts)]
    time = next((time for time in times if isinstance(time, datetime)), None) or now()
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _otherwise(message: ModelMessage) -> str:
    calls = [part.tool_name for part in message.parts if isinstance(part, ToolCallPart)]
    returns = [part.tool_name for part in message.parts if isinstance(part, (ToolReturnPart, RetryPromptPart)) and part.tool_name]
    return f"calls {', '.join(calls)}" if calls else f"answers of {', '.join(returns)}" if returns else message.kind


def _entry(turn: HeldTurn) -> ConversationEntry:
    entry: ConversationEntry = _ENTRY.validate_python(unpacked(turn, ENTRY))
    return entry


def _revision(turn: Optional[HeldTurn]) -> Optional[str]:
    return None if turn is None else (turn.metadata or {}).get("revision")


def _parent(turn: HeldTurn) -> Optional[str]:
    return (turn.metadata or {}).get("parent")


def _chains(record: ConversationRecord, by_name: dict[str, HeldTurn]) -> list[str]:
    """The names of the entries that a record reaches, each before its parent."""
    names: dict[str, None] = {}
    for head in [record.head_id, *record.branches]:
        name = None if head is None else entry_name(head)
        while name is not None and name in by_name and name not in names:
            names[name] = None
            name = _parent(by_name[name])
    return list(names)


def _again(turn: HeldTurn, metadata: Json) -> Turn:
    return Turn(
        turn.turn,
        turn.speaker,
        turn.text,
        turn.time,
        session=turn.session,
        kind=turn.kind,
        version="next",
        expected_version=turn.version,
        metadata=metadata,
        recall=turn.recall,
    )


def _named(name: Name, ctx: Any) -> str:
    return name(ctx) if callable(name) else name
