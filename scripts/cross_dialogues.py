#!/usr/bin/env python3
"""Merges dialogues of LoCoMo by two into channels in which they cross, and keeps their questions.

    cross_dialogues.py locomo10.json crossed.json [apart] ID ID [ID ID ...]

Session n of a channel holds the turns of session n of both dialogues, mixed at random (seeded) in runs of one to
three, under the date of the first. With the word apart the same turns stand in sessions of their own instead.
"""
import json
import random
import sys

arguments = [argument for argument in sys.argv[1:] if argument != "apart"]
source, target, *names = arguments
apart = "apart" in sys.argv
dialogues = {dialogue["sample_id"]: dialogue for dialogue in json.load(open(source))}
dice = random.Random(1)


def mixed(queues):
    """The turns of all queues, in runs of one to three."""
    queues = [list(queue) for queue in queues]
    while any(queues):
        queue = dice.choices(queues, [len(queue) for queue in queues])[0]
        for _ in range(min(len(queue), dice.randint(1, 3))):
            yield queue.pop(0)


channels = []
for pair in zip(names[::2], names[1::2]):
    parts = [dialogues[name]["conversation"] for name in pair]
    channel = {"speaker_a": parts[0]["speaker_a"], "speaker_b": parts[0]["speaker_b"]}
    moved, number = {}, 0
    last = max(int(key.split("_")[1]) for part in parts for key in part if key.startswith("session_"))
    for session in range(1, last + 1):
        turns = [[(name, turn) for turn in part.get(f"session_{session}", [])] for name, part in zip(pair, parts)]
        date = next((part[f"session_{session}_date_time"] for part in parts if part.get(f"session_{session}")), None)
        for group in [[queue] for queue in turns] if apart else [turns]:
            if not any(group):
                continue
            number += 1
            channel[f"session_{number}_date_time"] = date
            channel[f"session_{number}"] = []
            for place, (name, turn) in enumerate(mixed(group), 1):
                moved[name, turn["dia_id"]] = f"D{number}:{place}"
                channel[f"session_{number}"].append({**turn, "dia_id": f"D{number}:{place}"})
    questions = []
    for name in pair:
        for question in dialogues[name]["qa"]:
            evidence = [moved.get((name, turn)) for turn in question.get("evidence", [])]
            if evidence and all(evidence):
                questions.append({**question, "evidence": evidence})
    channels.append({"sample_id": "-and-".join(pair), "conversation": channel, "qa": questions})
json.dump(channels, open(target, "w"))
