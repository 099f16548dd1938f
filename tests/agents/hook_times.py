#!/usr/bin/env python3
"""How long a hook takes, beside the bare start of the program.

    hook_times.py RIPPLEMEM [--turns 10000] [--runs 200]

A memory of its own with so many turns of one project, and its service. Runs in turn: `ripplemem --version`, a hook at a
prompt with the service warm, the first one after its start, one with the service away, and one with a service that
takes connections and never answers. Prints p50, p99 and the largest, in milliseconds, and how many of the hooks gave
something. Needs the embedding model.
"""

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

THINGS = "sensor keel sail rudder anchor compass lamp winch pump radio chart buoy mast hull tiller cleat".split()
PLACES = "Oslo Porto Tampere Riga Ghent Bergen Split Cadiz Gdansk Turku Malmo Brest Genoa Varna Kiel Visby".split()


def text(at, random_):
    thing, place = random_.choice(THINGS), random_.choice(PLACES)
    return f"The {thing} number {at} from {place} is checked every {random_.randint(2, 90)} days by crew {at % 97}."


def times(run, runs):
    taken = []
    for _ in range(runs):
        began = time.perf_counter()
        run()
        taken.append((time.perf_counter() - began) * 1000)
    return taken


def row(name, taken, gave=None):
    taken = sorted(taken)
    at = lambda share: taken[min(len(taken) - 1, int(len(taken) * share))]
    print(f"| {name} | {len(taken)} | {at(0.5):.1f} | {at(0.99):.1f} | {taken[-1]:.1f} | {'' if gave is None else gave} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ripplemem")
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=200)
    asked = parser.parse_args()
    program = str(Path(asked.ripplemem).resolve())
    home = Path(tempfile.mkdtemp(prefix="ripplemem-hooks-"))
    project = home / "kite"
    (project / ".git").mkdir(parents=True)
    assets = os.environ.get("RIPPLEMEM_HOME") or f"{os.environ['HOME']}/.local/share/ripplemem"
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "RIPPLEMEM_HOME": assets}

    def ours(*arguments, **more):
        return subprocess.run([program, *arguments], env=env, check=True, capture_output=True, text=True, **more)

    ours("agents", "install", "claude-code", "--yes")
    data = home / ".local/share/ripplemem"
    # The bank of the project, as the reader of transcripts names it.
    line = {"type": "user", "uuid": "u", "parentUuid": None, "isSidechain": False, "sessionId": "s",
            "timestamp": "2026-05-04T10:00:00.000Z", "cwd": str(project), "gitBranch": "main",
            "message": {"role": "user", "content": "A first word."}}
    transcript = home / ".claude/projects/kite/s.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text(json.dumps(line, separators=(",", ":")) + "\n")
    counted = json.loads(ours("ingest", "agents", "--home", str(home), "--dry-run", "--json").stdout)
    bank = next(iter(counted["banks"]))
    random_ = random.Random(7)
    turns = home / "turns.jsonl"
    with turns.open("w") as out:
        for at in range(asked.turns):
            said = {"bank": bank, "turn": f"t{at}", "speaker": "User", "text": text(at, random_), "session": f"s{at // 40}",
                    "time": f"2026-{1 + at // 2500 % 9:02}-{1 + at // 100 % 28:02}T{at % 24:02}:{at // 24 % 60:02}:00Z"}
            out.write(json.dumps(said) + "\n")
    began = time.monotonic()
    ours("ingest", "jsonl", str(turns), "--data", str(data / "memory"))
    print(f"{asked.turns} turns, ingested in {time.monotonic() - began:.0f} s\n", flush=True)
    service = data / "agents/service.json"
    settings = json.loads(service.read_text())
    running = subprocess.Popen([program, "agents", "serve"], env=env, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while "it answers" not in ours("agents", "status").stdout:
        if time.monotonic() > end or running.poll() is not None:
            running.kill()
            sys.exit(f"the service does not answer: {ours('agents', 'status').stdout}")
        time.sleep(0.2)
    gave = 0
    count = 0

    def hook():
        nonlocal gave, count
        count += 1
        thing, place = random_.choice(THINGS), random_.choice(PLACES)
        call = {"session_id": f"b{count}", "cwd": str(project), "prompt": f"How often is the {thing} from {place} checked?"}
        done = subprocess.run([program, "agents", "hook", "claude-code", "UserPromptSubmit"], env=env,
                              input=json.dumps(call), capture_output=True, text=True, check=True)
        gave += bool(done.stdout)

    def bare():
        subprocess.run([program, "--version"], env=env, capture_output=True, check=True, stdin=subprocess.DEVNULL)

    print("| | runs | p50 ms | p99 ms | largest ms | gave something |\n|---|---|---|---|---|---|")
    first = times(hook, 1)
    row("the first prompt after the service's start", first, gave)
    gave = 0
    versions, warm = [], []
    for _ in range(asked.runs):
        versions += times(bare, 1)
        warm += times(hook, 1)
    row("`ripplemem --version`", versions)
    row("a hook, service warm", warm, gave)
    running.terminate()
    running.wait()
    settings["by_systemd"] = True  # so that no hook starts the service again
    service.write_text(json.dumps(settings))
    gave = 0
    row("a hook, service away", times(hook, asked.runs), gave)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        (data / "memory/http.address").write_text(f"process {os.getpid()}\n{address}\n\n")
        row("a hook, service hanging", times(hook, min(asked.runs, 50)), gave)


if __name__ == "__main__":
    main()
