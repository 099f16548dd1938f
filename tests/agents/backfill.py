#!/usr/bin/env python3
"""How long a backfill of coding agents' transcripts takes, beside the same talk as JSON Lines.

    backfill.py RIPPLEMEM TRANSCRIPTS [--megabytes 1000] [--model fixed]

TRANSCRIPTS is a directory in which programs' folders lie as in a home directory, such as `.claude` and `.codex`, at any
depth. Their sessions are copied into a home of their own until it has so many megabytes; each copy has ids of its own,
so that no message is one that is known, and every hundred copies have projects, and so banks, of their own. Then `ingest agents` reads them into one memory, and `ingest jsonl` reads the
turns of that memory into another. Prints seconds, turns a second and the peak memory of each. Everything is removed at
the end.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Where programs keep sessions, each of which is a file or a folder by itself.
SESSIONS = (".claude/projects", ".codex/sessions", ".gemini/tmp", ".pi/agent/sessions", ".qwen/projects",
            ".copilot/session-state")
# A directory of the given transcripts' person, as a path and as Claude Code writes it.
PROJECT = re.compile(rb"(?<=home[/-]mirela[/-])[a-z]+(-[a-z]+)*")
NAMES = re.compile(rb"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\bmsg_\w+|(?<=session-\d{4}-\d\d-\d\dT\d\d-\d\d-)[0-9a-f]{8}")


def session_files(directory):
    """The files below the places of sessions, with their paths in a home directory."""
    for path in sorted(directory.rglob("*")):
        below = path.as_posix()
        place = next((place for place in SESSIONS if f"/{place}/" in below), None)
        if place is not None and path.is_file():
            yield below[below.index(f"/{place}/") + 1 :], path.read_bytes()


def renamed(content, number):
    """The content with names of its own: eight hexadecimal digits of each are another number."""
    mark = f"{number:08x}".encode()
    content = PROJECT.sub(lambda name: name[0] + str(number // 100).encode(), content)
    return NAMES.sub(lambda name: mark + name[0][8:] if name[0][:4] != b"msg_" else name[0] + mark, content)


def made_home(files, home, megabytes):
    """Writes copies of all files until there are so many megabytes; gives their number and their bytes."""
    copies = written = 0
    while written < megabytes * 1_000_000:
        for below, content in files:
            path = home / renamed(below.encode(), copies).decode()
            if path.exists() and path.name == "projects.json":
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            content = renamed(content, copies)
            path.write_bytes(content)
            written += len(content)
        copies += 1
    return copies, written


def timed(arguments, env):
    """Seconds, the peak memory in megabytes and what was printed."""
    began = time.perf_counter()
    process = subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(arguments)}: {said}")
    return time.perf_counter() - began, used.ru_maxrss / 1000, said


def write_lines(program, env, pipeline, path):
    """Writes the turns of a log as lines that `ingest jsonl` reads; gives their number."""
    turns = 0
    tap = [program, "tap", "turns", "--pipeline", pipeline]
    with path.open("w") as file, subprocess.Popen(tap, env=env, stdout=subprocess.PIPE, text=True) as tapped:
        for line in tapped.stdout:
            record = json.loads(line)["value"]
            if record["type"] == "turn":
                file.write(json.dumps(record) + "\n")
                turns += 1
    return turns


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ripplemem")
    parser.add_argument("transcripts", type=Path)
    parser.add_argument("--megabytes", type=int, default=1_000)
    parser.add_argument("--model", default="fixed")
    asked = parser.parse_args()
    program = str(Path(asked.ripplemem).resolve())
    files = list(session_files(asked.transcripts))
    if not files:
        sys.exit(f"{asked.transcripts}: no session of a program lies in it")
    place = Path(tempfile.mkdtemp(prefix="ripplemem-backfill-"))
    try:
        home = place / "home"
        copies, written = made_home(files, home, asked.megabytes)
        print(f"{len(files)} files, {copies} copies, {written / 1e6:,.0f} MB", flush=True)
        env = {**os.environ, "HOME": str(home), "RIPPLEMEM_HOME": os.environ.get("RIPPLEMEM_HOME")
               or f"{os.environ['HOME']}/.local/share/ripplemem"}

        def pipeline(name):
            path = place / f"{name}.toml"
            path.write_text(f'version = 1\nembed.model = "{asked.model}"\nlog.directory = "{place / name}"\n')
            return str(path)

        agents, lines = pipeline("agents"), pipeline("lines")
        exported = place / "turns.jsonl"
        print("| | seconds | turns | turns a second | peak, MB |\n|---|---|---|---|---|", flush=True)
        taken, peak, said = timed([program, "ingest", "agents", "--yes", "--pipeline", agents], env)
        turns = write_lines(program, env, agents, exported)
        row = "| {} | {:.1f} | {:,} | {:,.0f} | {:,.0f} |"
        print(row.format("ingest agents", taken, turns, turns / taken, peak), flush=True)
        taken, peak, _ = timed([program, "ingest", "jsonl", str(exported), "--pipeline", lines], env)
        print(row.format("ingest jsonl", taken, turns, turns / taken, peak), flush=True)
        print(said.strip().splitlines()[-1])
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
