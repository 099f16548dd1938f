"""Converts chat of the irc-disentanglement corpus (CC BY 4.0) to turns in JSON Lines.

In: its `train-raw.tar.gz`, files named by their dates with lines `[10:01] <nick> text`. Out: turns
on standard output, one bank per file, for `ripplemem ingest jsonl` and `ripplemem-eval --filler`.
"""

import json
import re
import sys
import tarfile

MESSAGE = re.compile(r"\[(\d\d:\d\d)\] <([^>]+)> (.*\S)")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: irc_turns.py train-raw.tar.gz > irc.jsonl")
    with tarfile.open(sys.argv[1]) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            name = member.name.rsplit("/", 1)[-1].removesuffix(".raw.txt")
            content = archive.extractfile(member)
            lines = content.read().decode("utf-8", "replace").split("\n") if content else []
            for number, line in enumerate(lines):
                message = MESSAGE.match(line)
                if message:
                    clock, speaker, text = message.groups()
                    turn = {"bank": f"irc/{name}", "turn": str(number), "speaker": speaker, "text": text}
                    print(json.dumps(turn | {"time": f"{name[:10]}T{clock}:00Z"}))


main()
