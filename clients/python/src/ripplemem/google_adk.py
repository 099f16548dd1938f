"""A memory service of Google's ADK in banks: one for each app and user.

>>> from google.adk.runners import Runner
>>> from ripplemem.google_adk import RippleMemMemoryService
>>> runner = Runner(agent=agent, app_name="app", session_service=sessions,
...                 memory_service=RippleMemMemoryService("http://127.0.0.1:8321"))
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Optional

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from .adapters import (
    ADDRESS,
    Access,
    Steps,
    asked,
    held_by_id,
    message_turn,
    moment,
    now,
    packed,
    short_name,
    unpacked,
    written,
)
from .forms import Evidence, HeldTurn, Json, Selector, Turn
from .names import bank_name

#: Where an event or a memory stands in the metadata of its turn.
ENTRY = "google_adk"
#: Memories that a search gives, as ADK's own service does.
MOST_MEMORIES = 10


class RippleMemMemoryService(BaseMemoryService):
    """Events and memories of users, searched by what they say.

    The bank of a user is ``bank_name(*tenant, app_name, user_id)``. An event is a turn with its id, so that it is kept
    once, however often it is added; one that ``delete_memory`` deleted stays deleted. A session that is added again
    brings the edits of its events. Events without words, such as calls of functions, are kept and never found.
    Errors are raised: ADK's ``preload_memory`` goes on without memories and logs them.
    """

    def __init__(
        self,
        url: str = ADDRESS,
        *,
        token: Optional[str] = None,
        tenant: Sequence[str] = (),
        most_memories: int = MOST_MEMORIES,
    ) -> None:
        self._access = Access(url, token=token)
        self._tenant, self._most_memories = tuple(tenant), most_memories

    def bank(self, app_name: str, user_id: str) -> str:
        """The bank of a user of an app."""
        return bank_name(*self._tenant, app_name, user_id)

    async def add_session_to_memory(self, session: Any) -> None:
        """Adds the events of a session; those that are there already change nothing."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Any],
        session_id: Optional[str] = None,
        custom_metadata: Optional[Mapping[str, object]] = None,
    ) -> None:
        """Adds events; ``custom_metadata`` comes back with each of them."""
        turns = [
            self._event_turn(event, session_id, custom_metadata)
            for event in events
            if event.content and event.content.parts
        ]
        await self._access.arun(written(self._access, turns, bank=self.bank(app_name, user_id)))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Optional[Mapping[str, object]] = None,
    ) -> None:
        """Adds memories; one without an id gets one."""
        turns = [self._memory_turn(memory, custom_metadata) for memory in memories]
        await self._access.arun(written(self._access, turns, bank=self.bank(app_name, user_id)))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """What was said that answers the query, best first."""
        found = await self._access.arun(self._search(self.bank(app_name, user_id), query))
        return SearchMemoryResponse(memories=[_entry(turn) for turn in found])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: Optional[str] = None) -> None:
        """Deletes the memory with the id that a search gave; adding its session again does not bring it back."""
        if memory_id:
            await self._access.arun(self._delete(self.bank(app_name, user_id), memory_id))

    async def aclose(self) -> None:
        """Ends the connections of this event loop."""
        await self._access.aclose()

    def _search(self, bank: str, query: str) -> Steps[list[HeldTurn]]:
        where = Selector(metadata={"path": [ENTRY], "exists": True})
        evidence: Optional[Evidence] = yield from asked(self._access, query, bank=bank, where=where, seconds=30.0)
        if evidence is None:
            return []
        quoted = (excerpt.turn for unit in evidence.units for excerpt in unit.excerpts)
        ids = list(dict.fromkeys(quoted))[: self._most_memories]
        held = yield from held_by_id(self._access, ids, bank)
        return [held[one] for one in ids if one in held]

    def _delete(self, bank: str, memory_id: str) -> Steps[None]:
        identity = short_name(memory_id)
        held = yield from held_by_id(self._access, [identity], bank)
        if identity in held:
            yield self._access.calls.forget(identity, bank, None, 10.0)

    def _event_turn(self, event: Any, session_id: Optional[str], more: Optional[Mapping[str, object]]) -> Turn:
        time = datetime.fromtimestamp(event.timestamp, timezone.utc)
        role = "user" if event.author == "user" else "assistant"
        custom = {**(event.custom_metadata or {}), **(more or {})}
        return self._turn(event.id, role, event.content, time, event.author, session_id, custom)

    def _memory_turn(self, memory: MemoryEntry, more: Optional[Mapping[str, object]]) -> Turn:
        time = moment(memory.timestamp) if memory.timestamp else now()
        role = "assistant" if memory.content.role == "model" else "user"
        custom = {**memory.custom_metadata, **(more or {})}
        identity = memory.id or uuid.uuid4().hex
        return self._turn(identity, role, memory.content, time, memory.author or role, None, custom)

    def _turn(
        self,
        identity: str,
        role: str,
        content: types.Content,
        time: datetime,
        author: str,
        session_id: Optional[str],
        custom: Json,
    ) -> Turn:
        # A time without a zone is one of this machine, as ADK formats it.
        time = time if time.tzinfo else time.astimezone()
        text = "\n".join(part.text for part in content.parts or () if part.text and not part.thought)
        turn = message_turn(
            short_name(identity),
            role,
            text,
            time,
            speaker=author,
            session=short_name(session_id) if session_id else None,
            otherwise=_otherwise(content),
        )
        turn = Turn(**{**turn.__dict__, "version": "next"})
        value = {
            "id": identity,
            "author": author,
            "content": content.model_dump(mode="json", exclude_none=True),
            "custom_metadata": custom,
        }
        return packed(turn, {}, ENTRY, value)


def _entry(turn: HeldTurn) -> MemoryEntry:
    value = unpacked(turn, ENTRY)
    return MemoryEntry(
        id=value["id"],
        author=value["author"],
        timestamp=moment(turn.time).isoformat(),
        content=types.Content.model_validate(value["content"]),
        custom_metadata=value["custom_metadata"],
    )


def _otherwise(content: types.Content) -> str:
    calls = [part.function_call.name or "" for part in content.parts or () if part.function_call]
    return f"calls {', '.join(calls)}" if calls else "no text"
