#!/usr/bin/env python3
"""Merges stories of MemDaily (nuster1128/MemSim, in Chinese) into banks, in the form of LoCoMo's file.

    memdaily_as_locomo.py messages_and_QAs memdaily300.json

300 stories are drawn (seeded), each with its first question; a bank is full once it has 176 messages. A day is a
session, one person says everything, and the messages that a question names are its evidence.
"""
import datetime
import json
import pathlib
import random
import re
import sys

QUESTIONS, MESSAGES = 300, 176
source, target = sys.argv[1:]
stories = []
for file in sorted(pathlib.Path(source).glob("*.json")):
    stories += [story for story in json.loads(file.read_text("utf-8")) if story["question_list"]]
random.Random(7).shuffle(stories)


def time_of(message):
    return datetime.datetime(*map(int, re.match(r"(\d+)年(\d+)月(\d+)日.*?(\d+):(\d+)", message["time"]).groups()))


def bank(number, stories):
    """A conversation of LoCoMo's form."""
    said = sorted((time_of(m), at, m["mid"], m["message"]) for at, s in enumerate(stories) for m in s["message_list"])
    conversation, places, session, day = {"speaker_a": "小林", "speaker_b": "助手"}, {}, 0, None
    for time, story, message, text in said:
        if time.date() != day:
            session, day = session + 1, time.date()
            hour, half = time.hour % 12 or 12, "am" if time.hour < 12 else "pm"
            head = f"{hour}:{time.minute:02d} {half} on {time.day} {time.strftime('%B')}, {time.year}"
            conversation |= {f"session_{session}": [], f"session_{session}_date_time": head}
        turns = conversation[f"session_{session}"]
        places[story, message] = f"D{session}:{len(turns) + 1}"
        turns.append({"speaker": "小林", "dia_id": places[story, message], "text": text})
    questions = []
    for at, story in enumerate(stories):
        asked = story["question_list"][0]
        evidence = [places[at, message] for message in asked["target_step_id"]]
        answer = str(asked["answer"])
        questions.append({"question": asked["question"], "answer": answer, "evidence": evidence, "category": 4})
    return {"qa": questions, "conversation": conversation, "sample_id": f"memdaily-{number}"}


banks, stories_of_bank, asked = [], [], 0
for story in stories:
    known = {message["mid"] for message in story["message_list"]}
    if asked == QUESTIONS or not known.issuperset(story["question_list"][0]["target_step_id"]):
        continue
    asked += 1
    stories_of_bank.append(story)
    if sum(len(of["message_list"]) for of in stories_of_bank) >= MESSAGES:
        banks.append(bank(len(banks), stories_of_bank))
        stories_of_bank = []
if stories_of_bank:
    banks.append(bank(len(banks), stories_of_bank))
pathlib.Path(target).write_text(json.dumps(banks, ensure_ascii=False), "utf-8")
