#!/usr/bin/env python3
"""Writes chats of BEAM with only those questions that name a person whom the chat also calls by a role, twice.

    scripts/role_questions.py BEAM_DIRECTORY OUT

`OUT/named` has the questions as they are, `OUT/role` the same with "my brother" in place of "Scott". A person's role is
the one that the user gives most often in the forms "my ROLE NAME" and "NAME, my ROLE"; a role that two persons have is
left out. `ripplemem-eval beam` on both says how much a second step, from the role to the name, could bring.
"""

import collections
import json
import pathlib
import re
import shutil
import sys

KIN = "sister|brother|mother|mom|mum|father|dad|wife|husband|partner|boyfriend|girlfriend|cousin|aunt|uncle|daughter|son"
KIN += "|grandma|grandmother|nephew|niece|fiance|fiancé|fiancée"
WORK = "friend|boss|manager|colleague|coworker|co-worker|mentor|neighbour|neighbor|doctor|therapist|coach|teacher"
WORK += "|professor|lawyer|attorney|accountant|roommate|landlord|tutor|supervisor|agent|client|editor|producer|director"
WORK += "|advisor|classmate|trainer|instructor|counselor"
OF_FRIENDS = "older|younger|best|close|new|old|former|senior|academic"
ROLE = rf"(?:(?:{OF_FRIENDS}) )?(?:{KIN}|{WORK})"
BEFORE_NAME = re.compile(rf"\b[Mm]y ({ROLE}),? ([A-Z][a-z]+)\b")
BEHIND_NAME = re.compile(rf"\b([A-Z][a-z]+), my ({ROLE})\b")


def user_texts(node):
    """All texts of the user in a chat."""
    if isinstance(node, dict):
        if node.get("role") == "user" and "content" in node:
            yield node["content"]
        node = list(node.values())
    if isinstance(node, list):
        for value in node:
            yield from user_texts(value)


def roles_of(text):
    """The role of each name that has one of its own."""
    counts = collections.defaultdict(collections.Counter)
    for role, name in BEFORE_NAME.findall(text):
        counts[name][role.lower()] += 1
    for name, role in BEHIND_NAME.findall(text):
        counts[name][role.lower()] += 1
    best = {name: roles.most_common(1)[0][0] for name, roles in counts.items()}
    times = collections.Counter(best.values())
    return {name: role for name, role in best.items() if times[role] == 1 and name != "Dr"}


def main(chats, out):
    written = 0
    for chat in sorted(path for path in chats.iterdir() if (path / "chat.json").exists()):
        roles = roles_of(" ".join(user_texts(json.loads((chat / "chat.json").read_text()))))
        questions = json.loads((chat / "probing_questions/probing_questions.json").read_text())
        named, by_role = {}, {}
        for kind, asked in questions.items():
            for question in asked:
                names = [name for name in roles if re.search(rf"\b{name}\b", question["question"])]
                if len(names) != 1:
                    continue
                worded = re.sub(rf"\b(?:Professor |Dr\. )?{names[0]}\b", f"my {roles[names[0]]}", question["question"])
                named.setdefault(kind, []).append(question)
                by_role.setdefault(kind, []).append(question | {"question": worded})
                written += 1
        for form, kept in (("named", named), ("role", by_role)):
            if kept:
                to = out / form / chat.name
                (to / "probing_questions").mkdir(parents=True, exist_ok=True)
                for name in ("chat.json", "topic.json"):
                    shutil.copy(chat / name, to / name)
                (to / "probing_questions/probing_questions.json").write_text(json.dumps(kept))
    print(f"{written} questions")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
