"""Reads a context back into the turns that it quotes."""

from __future__ import annotations

import json
from typing import NamedTuple


class QuotedTurn(NamedTuple):
    """A turn that a context quotes, whole or by passages."""

    #: The heading above it: the day, and the time of the first turn below it.
    heading: str
    speaker: str
    #: What was said, with its line breaks: one text, or the passages that are quoted of a long turn. An empty
    #: passage at either end says that something is left out there.
    passages: list[str]

    @property
    def text(self) -> str:
        """The passages, with an empty line between them."""
        return "\n\n".join(passage for passage in self.passages if passage)


def read_context(context: str) -> list[QuotedTurn]:
    """The turns that a context quotes, in order. Memories that a language model restated are left out."""
    turns: list[QuotedTurn] = []
    heading, empty = "", 0
    for line in context.split("\n"):
        if line == "[…]" and turns:
            turns[-1].passages.append("")
        elif line.startswith("    ") and turns:
            passages = turns[-1].passages
            passages[-1] += "\n" * (empty + 1 if passages[-1] else 0) + line[4:]
        elif line.startswith("## "):
            heading = line[3:]
        elif line.startswith('"'):
            speaker, end = json.JSONDecoder().raw_decode(line)
            turns.append(QuotedTurn(heading, speaker, [line[end + 1 :].removeprefix(" ")]))
        elif heading and line and not line.startswith("["):
            speaker, _, text = line.partition(":")
            turns.append(QuotedTurn(heading, speaker, [text.removeprefix(" ")]))
        empty = 0 if line else empty + 1
    return turns
