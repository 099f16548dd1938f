"""An agent that remembers, without a language model and without a key.

    ripplemem serve &
    python clients/python/examples/agent_loop.py http://127.0.0.1:8321

A rule stands in for the model: what ends with a question mark is recalled, everything else is remembered.
With a model, send it ``TOOLS`` and run each call that it asks for with ``call_tool``.
"""

from __future__ import annotations

import sys

from ripplemem import TOOLS, RippleMem, call_tool

CONVERSATION = [
    "I moved to Lisbon in May, into a flat above a bakery.",
    "My sister Clara visits me in August.",
    "Who visits me in August?",
    "Where did I move in May?",
]


def decide(text: str) -> tuple[str, dict[str, str]]:
    """The call that a model would ask for."""
    if text.endswith("?"):
        return "recall", {"question": text}
    return "remember", {"speaker": "Ann", "text": text}


def main(url: str) -> None:
    known = {tool["function"]["name"] for tool in TOOLS}
    with RippleMem(url, bank="examples/agent-loop") as memory:
        for text in CONVERSATION:
            name, arguments = decide(text)
            assert name in known
            print(f"> {text}\n{call_tool(memory, name, arguments)}\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
