"""A middleware of LangChain: an agent that recalls before each answer and remembers what was said.

>>> from langchain.agents import create_agent
>>> from ripplemem.langchain import RippleMemMiddleware
>>> agent = create_agent(model, middleware=[RippleMemMiddleware("http://127.0.0.1:8321", bank="acme/ann")])
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any, Optional, Union

from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.config import get_config

from .adapters import (
    ADDRESS,
    PROFILE_TOKENS,
    Access,
    Steps,
    content_name,
    known,
    message_turn,
    now,
    packed,
    recalled,
    short_name,
    with_block,
    written_once,
)
from .forms import Selector, Turn

#: What the middleware knows of the last messages that it saw.
MOST_SEEN = 1_000

Name = Union[str, Callable[[Any], str]]


class RippleMemMiddleware(AgentMiddleware[Any, Any]):
    """Recalls for the last message of the user, and remembers the messages of a run when it has ended.

    What was recalled stands at the end of that message in the request alone: it never enters the state. What the user
    said that lasts stands behind the system prompt, with ``profile_tokens`` at most; 0 leaves it out. ``bank`` and
    ``user``, the speaker of the user's messages, are names, or functions of LangGraph's ``Runtime``. ``assistant`` is
    the speaker of the model's. The conversation is the ``thread_id`` of the configuration.

    Where the memory does not answer, the model is told so and the agent goes on. Where it does not remember, the run
    fails: with ``lenient``, that is logged instead. ``remember=False`` only recalls.
    """

    def __init__(
        self,
        url: str = ADDRESS,
        *,
        bank: Name,
        token: Optional[str] = None,
        user: Name = "user",
        assistant: str = "assistant",
        most_tokens: Optional[int] = None,
        profile_tokens: int = PROFILE_TOKENS,
        where: Optional[Selector] = None,
        remember: bool = True,
        lenient: bool = False,
    ) -> None:
        super().__init__()
        self._access = Access(url, token=token)
        self._bank, self._user, self._assistant = bank, user, assistant
        self._most_tokens, self._profile_tokens, self._where = most_tokens, profile_tokens, where
        self._remember, self._lenient = remember, lenient
        # When a message was first seen, what was recalled for it, and what was known of the user: a loop sends it again
        # with each call of a tool.
        self._seen: OrderedDict[str, tuple[datetime, str, str]] = OrderedDict()

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Recalls for the last message of the user."""
        return handler(self._access.run(self._recalling(request)))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """The same on asyncio."""
        return await handler(await self._access.arun(self._recalling(request)))

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Remembers the messages that the bank does not hold."""
        if self._remember:
            self._access.run(self._remembering(state["messages"], runtime))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """The same on asyncio."""
        if self._remember:
            await self._access.arun(self._remembering(state["messages"], runtime))

    def _recalling(self, request: Any) -> Steps[Any]:
        messages: list[AnyMessage] = list(request.messages)
        at = next((at for at in reversed(range(len(messages))) if isinstance(messages[at], HumanMessage)), None)
        if at is None:
            return request
        asking = messages[at]
        bank = _named(self._bank, request.runtime)
        key = f"{bank}/{asking.id}"
        if asking.id is not None and key in self._seen:
            _, text, profile = self._seen[key]
        else:
            seen = now()
            before = [(self._speaker(one, request.runtime), words(one)) for one in messages[:at] if _spoken(one)]
            text = yield from recalled(
                self._access,
                words(asking),
                bank=bank,
                where=self._where,
                said_before=before,
                most_tokens=self._most_tokens,
                beside=[words(one) for one in messages],
            )
            user = self._speaker(asking, request.runtime)
            profile = yield from known(self._access, user, bank=bank, most_tokens=self._profile_tokens)
            if asking.id is not None:
                self._seen[key] = (seen, text, profile)
                while len(self._seen) > MOST_SEEN:
                    self._seen.popitem(last=False)
        if profile:
            request = request.override(system_prompt=with_block(request.system_prompt or "", profile).strip())
        if text:
            messages[at] = asking.model_copy(update={"content": _extended(asking.content, text)})
            request = request.override(messages=messages)
        return request

    def _remembering(self, messages: Sequence[BaseMessage], runtime: Any) -> Steps[None]:
        bank = _named(self._bank, runtime)
        thread = get_config().get("configurable", {}).get("thread_id")
        turns: list[Turn] = []
        for at, message in enumerate(messages):
            if not isinstance(message, (HumanMessage, AIMessage, ToolMessage)):
                continue
            seen, *_ = self._seen.get(f"{bank}/{message.id}", (now(), "", ""))
            turn = message_turn(
                "",
                message.type,
                words(message),
                seen,
                speaker=self._speaker(message, runtime),
                session=short_name(str(thread)) if thread else None,
                otherwise=_otherwise(message),
            )
            # Without a checkpointer the ids of messages are new in each run, and the same conversation comes again.
            same = sum(1 for one in messages[:at] if (one.type, words(one)) == (message.type, words(message)))
            name = short_name(str(thread), str(message.id)) if thread else content_name(turn.speaker, turn.text, str(same))
            fields: dict[str, Any] = {}
            if isinstance(message, AIMessage) and message.tool_calls:
                fields["tool_calls"] = [{**call} for call in message.tool_calls]
            if isinstance(message, ToolMessage):
                fields["tool_call_id"] = message.tool_call_id
            turn = Turn(**{**turn.__dict__, "turn": name})
            turns.append(packed(turn, {}, "langchain", fields) if fields else turn)
        yield from written_once(self._access, turns, bank=bank, lenient=self._lenient)

    def _speaker(self, message: BaseMessage, runtime: Any) -> str:
        if isinstance(message, HumanMessage):
            return message.name or _named(self._user, runtime)
        return message.name or (self._assistant if isinstance(message, AIMessage) else message.type)


def words(message: BaseMessage) -> str:
    """The words of a message: its text, without images and calls."""
    content = message.content
    if isinstance(content, str):
        return content
    texts = (part if isinstance(part, str) else part.get("text", "") for part in content if _is_text(part))
    return "\n".join(text for text in texts if text)


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type") == "text")


def _spoken(message: BaseMessage) -> bool:
    return isinstance(message, (HumanMessage, AIMessage)) and bool(words(message).strip())


def _otherwise(message: BaseMessage) -> str:
    if isinstance(message, AIMessage) and message.tool_calls:
        return "calls " + ", ".join(call["name"] for call in message.tool_calls)
    return "no text"


def _extended(content: Any, block: str) -> Any:
    return with_block(content, block) if isinstance(content, str) else [*content, {"type": "text", "text": block}]


def _named(name: Name, runtime: Any) -> str:
    return name(runtime) if callable(name) else name
