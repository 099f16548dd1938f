"""Context and history providers of Microsoft Agent Framework in a bank.

>>> from ripplemem.agent_framework import RippleMemContextProvider, RippleMemHistoryProvider
>>> agent = Agent(client, context_providers=[
...     RippleMemHistoryProvider("http://127.0.0.1:8321", bank="acme/ann"),
...     RippleMemContextProvider("http://127.0.0.1:8321", bank="acme/ann")])
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Optional, Union

from agent_framework import ContextProvider, HistoryProvider, Message

from .adapters import (
    ADDRESS,
    PROFILE_TOKENS,
    Access,
    History,
    known,
    message_turn,
    now,
    packed,
    recalled,
    short_name,
    unpacked,
    without_block,
    written_once,
)
from .forms import Json, Selector, Turn

#: Where a message stands in the metadata of its turn.
MESSAGE = "message"

Name = Union[str, Callable[[Any], str]]


class RippleMemContextProvider(ContextProvider):
    """Recalls before each run, and remembers what was said in it when it has ended.

    What was recalled is a message of its own before those of the user, which history providers do not store. What the
    user said that lasts stands behind the instructions, with ``profile_tokens`` at most; 0 leaves it out. ``bank``
    and ``user``, the speaker of the user's messages, are names, or functions of the ``AgentSession``.

    Where the memory does not answer, the model is told so and the run goes on. Where it does not remember, the run
    fails: with ``lenient``, that is logged instead. ``remember=False`` only recalls.
    """

    DEFAULT_SOURCE_ID = "ripplemem"

    def __init__(
        self,
        url: str = ADDRESS,
        *,
        bank: Name,
        token: Optional[str] = None,
        source_id: str = DEFAULT_SOURCE_ID,
        user: Name = "user",
        assistant: str = "assistant",
        most_tokens: Optional[int] = None,
        profile_tokens: int = PROFILE_TOKENS,
        where: Optional[Selector] = None,
        remember: bool = True,
        lenient: bool = False,
    ) -> None:
        super().__init__(source_id)
        self._access = Access(url, token=token)
        self._bank, self._user, self._assistant = bank, user, assistant
        self._most_tokens, self._profile_tokens, self._where = most_tokens, profile_tokens, where
        self._remember, self._lenient = remember, lenient

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Recalls for the user's last message."""
        # Where this run's messages begin: the name of the run, and its time.
        state["run"] = {"id": uuid.uuid4().hex, "began": now().isoformat()}
        asking = next((one for one in reversed(context.input_messages) if _role(one) == "user"), None)
        if asking is None:
            return
        user = _named(self._user, session)
        said = [one for one in context.get_messages() if _role(one) in ("user", "assistant")]
        before = [(user if _role(one) == "user" else self._assistant, one.text) for one in said]
        block = await self._access.arun(
            recalled(
                self._access,
                asking.text,
                bank=_named(self._bank, session),
                where=self._where,
                said_before=before,
                most_tokens=self._most_tokens,
                beside=[one.text for one in [*said, *context.input_messages]],
            )
        )
        if block:
            context.extend_messages(self, [Message("user", [block])])
        bank = _named(self._bank, session)
        profile = await self._access.arun(known(self._access, user, bank=bank, most_tokens=self._profile_tokens))
        if profile:
            context.extend_instructions(self.source_id, profile)

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]) -> None:
        """Remembers the messages of the run."""
        if not self._remember:
            return
        run = state.get("run") or {"id": uuid.uuid4().hex, "began": now().isoformat()}
        began = datetime.fromisoformat(run["began"])
        messages = [(one, began) for one in context.input_messages]
        messages += [(one, now()) for one in (context.response.messages if context.response else ())]
        user, name = _named(self._user, session), session.session_id
        turns = []
        for at, (message, time) in enumerate(messages):
            speakers = {"user": user, "assistant": self._assistant}
            identity = short_name(name or "", message.message_id or f"{run['id']}.{at}")
            turn = _turn(message, identity, time, speakers, short_name(name) if name else None, recall=True)
            calls = [content.name for content in message.contents if content.type == "function_call"]
            turns.append(packed(turn, {}, "calls", calls) if calls else turn)
        await self._access.arun(
            written_once(self._access, turns, bank=_named(self._bank, session), lenient=self._lenient)
        )

    async def aclose(self) -> None:
        """Ends the connections of this event loop."""
        await self._access.aclose()


class RippleMemHistoryProvider(HistoryProvider):
    """The messages of sessions, exactly and in order, for any number of processes at once.

    ``bank`` is a name. With ``recall=True`` what the user and the assistant say is recalled, too, which is the work of
    ``RippleMemContextProvider`` where an agent has both. The flags are those of ``HistoryProvider``.
    """

    DEFAULT_SOURCE_ID = "ripplemem_history"

    def __init__(
        self,
        url: str = ADDRESS,
        *,
        bank: str,
        token: Optional[str] = None,
        source_id: str = DEFAULT_SOURCE_ID,
        user: str = "user",
        assistant: str = "assistant",
        recall: bool = False,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: Optional[set[str]] = None,
        store_outputs: bool = True,
    ) -> None:
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self._access = Access(url, token=token)
        self._bank, self._recall = bank, recall
        self._speakers = {"user": user, "assistant": assistant}

    async def get_messages(
        self, session_id: Optional[str], *, state: Optional[dict[str, Any]] = None, **kwargs: Any
    ) -> list[Message]:
        """The messages of a session, oldest first."""
        turns = await self._access.arun(self._history(session_id).items())
        return [Message.from_dict(unpacked(turn, MESSAGE)) for turn in turns]

    async def save_messages(
        self,
        session_id: Optional[str],
        messages: Sequence[Message],
        *,
        state: Optional[dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        """Appends those of the messages that are not a repetition of the session's end."""
        existing = await self.get_messages(session_id)
        fresh = new_messages(existing, messages)

        def make(name: str, time: datetime, at: int) -> Turn:
            turn = _turn(fresh[at], name, time, self._speakers, None, self._recall)
            return packed(turn, {}, MESSAGE, fresh[at].to_dict())

        await self._access.arun(self._history(session_id).add(make, len(fresh)))

    async def clear(self, session_id: Optional[str]) -> None:
        """Deletes the messages of a session."""
        await self._access.arun(self._history(session_id).clear())

    async def aclose(self) -> None:
        """Ends the connections of this event loop."""
        await self._access.aclose()

    def _history(self, session_id: Optional[str]) -> History:
        return History(self._access, session_id or "default", self._bank)


def new_messages(existing: Sequence[Message], incoming: Sequence[Message]) -> list[Message]:
    """The messages after those with which they repeat what is held.

    A caller may send the whole conversation with each run, or its end, or what is new alone; a message that the user
    says again is new. This is what ``InMemoryHistoryProvider`` does.
    """
    known, coming = [_same(one) for one in existing], [_same(one) for one in incoming]
    if not known:
        return list(incoming)
    said_again = _role(existing[-1]) == "user" and existing[-1].message_id is None
    for start in range(len(coming) - len(known) + 1):
        if coming[start : start + len(known)] == known:
            if start == 0 and len(known) == 1 and said_again:
                break
            return list(incoming[start + len(known) :])
    for overlap in range(min(len(known), len(coming)), 0, -1):
        if known[-overlap:] == coming[:overlap] and not (overlap == 1 and said_again):
            return list(incoming[overlap:])
    return list(incoming)


def _same(message: Message) -> Json:
    if message.message_id:
        return {"id": message.message_id}
    content: Json = {"role": _role(message), "contents": message.to_dict().get("contents")}
    return content


def _turn(
    message: Message, identity: str, time: datetime, speakers: dict[str, str], session: Optional[str], recall: bool
) -> Turn:
    role = _role(message)
    calls = [str(content.name) for content in message.contents if content.type == "function_call"]
    return message_turn(
        identity,
        role,
        without_block(message.text or ""),
        time,
        speaker=message.author_name or speakers.get(role, role),
        session=session,
        recall=recall,
        otherwise=f"calls {', '.join(calls)}" if calls else role,
    )


def _role(message: Message) -> str:
    role = message.role
    return str(getattr(role, "value", role))


def _named(name: Name, session: Any) -> str:
    return name(session) if callable(name) else name
