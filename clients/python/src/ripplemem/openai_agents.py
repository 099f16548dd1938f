"""A session of OpenAI Agents in a bank, and the memory as tools and as recall before each call of the model.

>>> from agents import Agent, RunConfig, Runner
>>> from ripplemem.openai_agents import RippleMemory, RippleMemSession
>>> memory = RippleMemory("http://127.0.0.1:8321", bank="acme/ann")
>>> agent = Agent(name="assistant", tools=memory.tools())
>>> Runner.run_sync(agent, "Where do I live?", session=memory.session("monday"), run_config=memory.run_config())
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, Optional, Union

from agents import FunctionTool, RunConfig, function_tool
from agents.memory.session import Session
from agents.memory.session_settings import SessionSettings
from agents.run import CallModelData, ModelInputData

from .adapters import (
    ADDRESS,
    PROFILE_TOKENS,
    Access,
    History,
    Steps,
    known,
    message_turn,
    packed,
    recall_answer,
    recalled,
    remember_answer,
    unpacked,
    with_block,
)
from .forms import Json, Selector, Turn

try:
    from agents.memory.session_settings import coerce_session_settings
except ImportError:
    # Earlier versions take no dictionaries themselves.
    def coerce_session_settings(value: Any) -> SessionSettings:
        return value if isinstance(value, SessionSettings) else SessionSettings(**value)

#: Where an item stands in the metadata of its turn.
ITEM = "item"
#: Prompts of which it is known when they were stored.
MOST_SAID = 1_000


class RippleMemSession(Session):
    """The items of a conversation, exactly and in order, for any number of processes and event loops at once.

    What the user and the assistant say is recalled, also in other conversations of the bank; with ``recall=False``
    nothing of it is. Calls of tools, their results and reasoning are kept and never recalled. ``user`` and
    ``assistant`` are the speakers.
    """

    def __init__(
        self,
        session_id: str,
        url: str = ADDRESS,
        *,
        bank: str,
        token: Optional[str] = None,
        user: str = "user",
        assistant: str = "assistant",
        recall: bool = True,
        session_settings: Union[SessionSettings, dict[str, Any], None] = None,
        access: Optional[Access] = None,
        note: Optional[Callable[[str, datetime], None]] = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        self._access = access or Access(url, token=token)
        self._history = History(self._access, session_id, bank)
        self._user, self._assistant, self._recall = user, assistant, recall
        self._note = note

    async def get_items(self, limit: Optional[int] = None) -> list[Any]:
        """The items, oldest first; with a limit the latest of them."""
        most = limit if limit is not None else self.session_settings.limit
        turns = await self._access.arun(self._history.items(None if most is None else max(0, most)))
        return [unpacked(turn, ITEM) for turn in turns]

    async def add_items(self, items: list[Any]) -> None:
        """Appends items, all or none of them (up to 999)."""
        plain = [_plain(item) for item in items]
        await self._access.arun(self._history.add(lambda name, time, at: self._turn(name, time, plain[at]), len(plain)))

    async def pop_item(self) -> Optional[Any]:
        """Deletes the latest item and gives it."""
        turn = await self._access.arun(self._history.pop())
        return None if turn is None else unpacked(turn, ITEM)

    async def clear_session(self) -> None:
        """Deletes all items; no answer has one of them any more."""
        await self._access.arun(self._history.clear())

    async def aclose(self) -> None:
        """Ends the connections of this event loop."""
        await self._access.aclose()

    def _turn(self, name: str, time: datetime, item: Json) -> Turn:
        role = str(item.get("role") or ("tool" if "output" in item else "assistant"))
        if self._note is not None and role == "user":
            self._note(item_words(item), time)
        speaker = {"user": self._user, "assistant": self._assistant}.get(role, role)
        turn = message_turn(
            name, role, item_words(item), time, speaker=speaker, recall=self._recall, otherwise=_otherwise(item)
        )
        return packed(turn, {}, ITEM, item)


class RippleMemory:
    """A bank for the agents of one user: sessions, tools and recall share its connections.

    With recall, what the user said that lasts stands behind the instructions, with ``profile_tokens`` at most; 0 leaves
    it out.
    """

    def __init__(
        self,
        url: str = ADDRESS,
        *,
        bank: str,
        token: Optional[str] = None,
        user: str = "user",
        assistant: str = "assistant",
        most_tokens: Optional[int] = None,
        profile_tokens: int = PROFILE_TOKENS,
        where: Optional[Selector] = None,
    ) -> None:
        self._access = Access(url, token=token)
        self._profile_tokens = profile_tokens
        self._url, self._bank = url, bank
        self._user, self._assistant = user, assistant
        self._most_tokens, self._where = most_tokens, where
        # When its sessions stored what the user said: a run stores a prompt before it calls the model, and a prompt
        # would be the best evidence for itself.
        self._said: OrderedDict[str, datetime] = OrderedDict()

    def session(self, session_id: str, *, recall: bool = True) -> RippleMemSession:
        """A conversation in the bank."""
        return RippleMemSession(
            session_id,
            self._url,
            bank=self._bank,
            user=self._user,
            assistant=self._assistant,
            recall=recall,
            access=self._access,
            note=self._said_at,
        )

    def tools(self) -> list[FunctionTool]:
        """``remember`` and ``recall`` for a model. The bank is this one: a model never chooses whose memory it reads."""
        access, bank, where = self._access, self._bank, self._where

        @function_tool
        async def remember(speaker: str, text: str) -> str:
            """Remember something that was said. It can be recalled at once, also in later conversations.

            Args:
                speaker: Who said it.
                text: What was said, in the speaker's words.
            """
            return await access.arun(remember_answer(access, uuid.uuid4().hex, speaker, text, bank))

        @function_tool
        async def recall(question: str) -> str:
            """Recall what was said that answers a question. Says so when nothing does.

            Args:
                question: A whole question that names persons and things.
            """
            return await access.arun(recall_answer(access, question, bank, where))

        return [remember, recall]

    def run_config(self, **settings: Any) -> RunConfig:
        """A configuration of runs whose calls of the model carry what the memory holds for the user's last message."""
        return RunConfig(**settings, call_model_input_filter=self.filter)

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Recalls into the last message of the user, in this call of the model alone: no session keeps it."""
        items = list(data.model_data.input)
        found = await self._access.arun(self._recalling(items))
        profile = known(self._access, self._user, bank=self._bank, most_tokens=self._profile_tokens)
        text, instructions = await self._access.arun(profile), data.model_data.instructions
        if text:
            instructions = with_block(instructions or "", text).strip()
        return ModelInputData(input=found, instructions=instructions)

    async def aclose(self) -> None:
        """Ends the connections of this event loop."""
        await self._access.aclose()

    def _said_at(self, text: str, time: datetime) -> None:
        self._said[text] = time
        self._said.move_to_end(text)
        while len(self._said) > MOST_SAID:
            self._said.popitem(last=False)

    def _before(self, text: str) -> Optional[Selector]:
        """What was said before a prompt, where one of this memory's sessions has stored it."""
        time, where = self._said.get(text), self._where or Selector()
        if time is None or where.until is not None:
            return self._where
        return replace(where, everything=False, until=time)

    def _recalling(self, items: list[Any]) -> Steps[list[Any]]:
        plain = [_plain(item) for item in items]
        at = next((at for at in reversed(range(len(plain))) if plain[at].get("role") == "user"), None)
        if at is None:
            return items
        spoken = [item for item in plain[:at] if item.get("role") in ("user", "assistant")]
        names = {"user": self._user, "assistant": self._assistant}
        text = yield from recalled(
            self._access,
            item_words(plain[at]),
            bank=self._bank,
            where=self._before(item_words(plain[at])),
            said_before=[(names[item["role"]], item_words(item)) for item in spoken],
            most_tokens=self._most_tokens,
            beside=[item_words(item) for item in plain],
        )
        if text:
            content = plain[at]["content"]
            longer = with_block(content, text) if isinstance(content, str) else [*content, {"type": "input_text", "text": text}]
            items[at] = {**plain[at], "content": longer}
        return items


def item_words(item: Json) -> str:
    """The words of an item: those of a message, without images and files."""
    content = item.get("content")
    if "role" not in item or content is None:
        return ""
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in content if isinstance(part, dict))
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def _plain(item: Any) -> Json:
    """An item as JSON; some of a run are models of pydantic."""
    dump = getattr(item, "model_dump", None)
    plain: Json = dump(exclude_unset=True, mode="json") if dump else dict(item)
    return plain


def _otherwise(item: Json) -> str:
    kind = str(item.get("type") or item.get("role") or "item")
    return f"calls {item['name']}" if kind == "function_call" and item.get("name") else kind
