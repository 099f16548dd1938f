#!/usr/bin/env python3
"""locomo_beside.py FILE [TOKENS]: the evidence recall of Mem0's library on conversations of LoCoMo, as docs/evaluation.md measures it.

    pip install mem0ai qdrant-client onnxruntime tokenizers rs-bpe
    benches/locomo_beside.py locomo.json 1348

Each turn is added as it was said, behind its speaker, with its time (infer=False: no language model takes part); the
embedding model is that of RippleMem's set-up, and Qdrant keeps the vectors in memory. A question gets the memories that
`search` returns, best first, as many as keep the mean context within TOKENS o200k tokens; each day and hour is counted
once, as a heading above what was said then. Mem0's keyword search is off where its models cannot be fetched. Of the
questions of categories 1 to 4 with evidence it prints: the mean share of evidence turns that are among them, the share
of questions with all of theirs, and the mean tokens.
"""

import json
import re
import sys

from mem0_beside import library
from rs_bpe.bpe import openai

MOST = 200


def turns(conversation):
    """Each turn: its id, its day and hour, what was said."""
    number = 1
    while f"session_{number}_date_time" in conversation:
        when = conversation[f"session_{number}_date_time"]
        for turn in conversation.get(f"session_{number}", []):
            picture = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            yield turn["dia_id"], when, f"{turn['speaker']}: {turn['text']}{picture}"
        number += 1


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__.splitlines()[0])
    with open(sys.argv[1], encoding="utf-8") as file:
        dialogues = json.load(file)
    budget = float(sys.argv[2]) if len(sys.argv) == 3 else 1_348.0
    count = openai.o200k_base().count
    found = []  # Of each question: the evidence, and the ids and tokens of what was found, best first.
    for number, dialogue in enumerate(dialogues):
        memory, user = library(), f"dialogue-{number}"
        known = set()
        for turn, when, text in turns(dialogue["conversation"]):
            known.add(turn)
            memory.add(text, user_id=user, infer=False, metadata={"turn": turn, "when": when})
        for question in dialogue["qa"]:
            evidence = {turn for given in question.get("evidence", []) for turn in re.findall(r"D\d+:\d+", given)} & known
            if question["category"] in (1, 2, 3, 4) and evidence:
                results = memory.search(question["question"], filters={"user_id": user}, top_k=MOST)["results"]
                ranked, seen = [], set()
                for one in results:
                    when = one["metadata"]["when"]
                    heading = "" if when in seen else f"## {when}\n"
                    seen.add(when)
                    ranked.append((one["metadata"]["turn"], count(f"{heading}{one['memory']}\n")))
                found.append((evidence, ranked))
        print(f"{dialogue['sample_id']}: {len(known)} turns, {len(found)} questions so far", file=sys.stderr, flush=True)
    lines = max(
        (lines for lines in range(1, MOST + 1) if mean(sum(t for _, t in ranked[:lines]) for _, ranked in found) <= budget)
    )
    shares = [len(evidence & {turn for turn, _ in ranked[:lines]}) / len(evidence) for evidence, ranked in found]
    tokens = mean(sum(t for _, t in ranked[:lines]) for _, ranked in found)
    whole = mean(share == 1 for share in shares)
    print(
        f"{len(found)} questions, {lines} memories each: evidence recall {100 * mean(shares):.1f}, "
        f"full evidence {100 * whole:.1f}, tokens {tokens:.0f}"
    )


def mean(values):
    values = [float(value) for value in values]
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
