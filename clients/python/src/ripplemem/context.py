"""Reads a context back into the turns that it quotes."""

from __future__ import annotations

import json
from typing import NamedTuple


class QuotedTurn(NamedTuple):
    """A turn, or a part of one, that a context quotes."""

    #: The heading above it: the day, and the time of the first turn below it.
    heading: str
    speaker: str
    #: What was said, with its line breaks.
    text: str


def read_context(context: str) -> list[QuotedTurn]:
    """The turns that a context quotes, in order. Memories that a language model restated are left out."""
    turns: list[QuotedTurn] = []
    heading, empty = "", 0
    for line in context.split("\n"):
        if line.startswith("  ") and turns:
            last = turns[-1]
            turns[-1] = last._replace(text=last.text + "\n" * (empty + 1) + line[2:])
        elif line.startswith("## "):
            heading = line[3:]
        elif line.startswith('"'):
            speaker, end = json.JSONDecoder().raw_decode(line)
            turns.append(QuotedTurn(heading, speaker, line[end + 1 :].removeprefix(" ")))
        elif heading and line and not line.startswith("["):
            speaker, _, text = line.partition(":")
            turns.append(QuotedTurn(heading, speaker, text.removeprefix(" ")))
        empty = 0 if line else empty + 1
    return turns
