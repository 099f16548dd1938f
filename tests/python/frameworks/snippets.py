"""Runs the snippet of a framework in docs/frameworks.md, and compares what it prints with its comments.

    snippets.py NAME     NAME is that of an extra

The service is one of its own, and `model` a scripted one: it says "To Lisbon." where the request has a memory of
Lisbon, and "Noted." otherwise.
"""

import contextlib
import io
import os
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "frameworks.md"
HEADINGS = {
    "langgraph": "LangGraph",
    "langchain": "LangChain",
    "openai-agents": "OpenAI Agents",
    "pydantic-ai": "Pydantic AI",
    "google-adk": "Google ADK",
    "agent-framework": "Agent Framework",
}


def snippet_of(name):
    """The first block of code below the heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {HEADINGS[name]}\n")[1].split("\n## ")[0]
    return section.split("```python\n")[1].split("\n```")[0]


def answer_to(text):
    remembered = re.search(r"(?s)(recalled_memory|PAST_CONVERSATIONS)>.*Lisbon", text)
    return "To Lisbon." if remembered else "Noted."


def langchain():
    from langchain_core.language_models.chat_models import SimpleChatModel

    class Scripted(SimpleChatModel):
        @property
        def _llm_type(self):
            return "scripted"

        def _call(self, messages, stop=None, run_manager=None, **_):
            return answer_to(str(messages))

    return Scripted()


def openai_agents():
    from agents import set_tracing_disabled
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Scripted(Model):
        async def get_response(self, system_instructions, input, *_, **__):
            text = ResponseOutputText(text=answer_to(str(input)), type="output_text", annotations=[], logprobs=[])
            message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        async def stream_response(self, *_, **__):
            raise NotImplementedError
            yield

    return Scripted()


def pydantic_ai():
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel

    return FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart(answer_to(str(messages)))]))


def google_adk():
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    class Scripted(BaseLlm):
        model: str = "scripted"

        async def generate_content_async(self, llm_request, stream=False):
            part = types.Part(text=answer_to(str(llm_request.contents) + str(llm_request.config)))
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    return Scripted()


def agent_framework():
    from agent_framework import BaseChatClient, ChatResponse, Message

    class Scripted(BaseChatClient):
        def _inner_get_response(self, *, messages, stream=False, options=None, **_):
            async def answer():
                text = answer_to("\n".join(message.text for message in messages))
                return ChatResponse(messages=[Message("assistant", [text])])

            return answer()

    return Scripted()


def run(name, url):
    """Runs the snippet; what it prints must be what its comments say."""
    source = snippet_of(name)
    wanted = [line.split("  # ")[-1].split(" # ")[-1].strip() for line in source.splitlines() if line.startswith("print(")]
    made = globals().get(name.replace("-", "_"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(source.replace("http://127.0.0.1:8321", url), {"model": made() if made else None, "__name__": "snippet"})
    assert wanted and printed.getvalue().splitlines() == wanted, (printed.getvalue(), wanted)


if __name__ == "__main__":
    from service import Service

    os.environ.setdefault("OPENAI_API_KEY", "no-key")
    os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
    one = Service()
    try:
        run(sys.argv[1], one.url)
    finally:
        one.end()
