"""The memory as tools of an agent: definitions in the form of function calling, and what runs a call.

``TOOLS`` goes to the model; ``call_tool`` runs what it asks for. The bank is the client's own: a model
never chooses whose memory it reads.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timezone
from typing import Any

from .client import RippleMem
from .errors import RippleMemError
from .forms import Json, Turn

TOOLS: list[Json] = [
    {
        "type": "function",
        "function": {
            "name": "remember",
            "description": "Remember something that was said. It can be recalled at once, also in later conversations.",
            "parameters": {
                "type": "object",
                "properties": {
                    "speaker": {"type": "string", "description": "Who said it."},
                    "text": {"type": "string", "description": "What was said, in the speaker's words."},
                },
                "required": ["speaker", "text"],
                "additionalProperties": False,
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "recall",
            "description": "Recall what was said that answers a question. Says so when nothing does.",
            "parameters": {
                "type": "object",
                "properties": {
                    "question": {"type": "string", "description": "A whole question that names persons and things."}
                },
                "required": ["question"],
                "additionalProperties": False,
            },
        },
    },
]


def call_tool(memory: RippleMem, name: str, arguments: dict[str, Any]) -> str:
    """Runs a call of a model and returns text for it. A problem is text too: the model may mend its call."""
    try:
        if name == "remember":
            now = datetime.now(timezone.utc)
            turn = Turn(uuid.uuid4().hex, str(arguments["speaker"]), str(arguments["text"]), now)
            memory.remember(turn)
            return f"remembered as turn {turn.turn}"
        if name == "recall":
            evidence = memory.ask(str(arguments["question"]), asked_at=datetime.now(timezone.utc))
            return evidence.context if evidence.notice is None else f"{evidence.context}Note: {evidence.notice.message}."
    except KeyError as error:
        return f"{name}: {error.args[0]} is missing"
    except RippleMemError as error:
        return f"{name}: {error}"
    return f"{name}: no such tool; there are {', '.join(tool['function']['name'] for tool in TOOLS)}"
