#!/usr/bin/env python3
"""kafka_starts.py BANKS TURNS [PROGRAM]: a start of `serve` on Kafka with banks that sleep, and without sleep.

    make release
    benches/kafka_starts.py 10000 10

Starts a broker, has TURNS turns of each of BANKS banks extracted with the deterministic embedder, and then starts an
instance that only serves, four times: without snapshots and from a snapshot, each without sleep and with it. For each it
prints the seconds until the first answer, and the megabytes that the process then has in memory. PROGRAM is
target/release/ripplemem unless it is named.
"""

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 600
# After the first answer, until what the start no longer needs is freed.
REST_SECONDS = 5
SLEEPS = "memory.sleep_after_seconds = 600\n"


class Instance:
    """A running instance, as its pipeline file says."""

    # None outlives this program.
    running = set()

    def __init__(self, program, file):
        self.began = time.monotonic()
        self.process = subprocess.Popen([program, "run", file], cwd=file.parent, stderr=subprocess.PIPE, text=True)
        self.running.add(self)
        self.lines, self.address = [], threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        if not self.address.wait(PATIENCE_SECONDS):
            raise SystemExit("".join(self.lines))

    def read(self):
        """Keeps what it says, and finds its address."""
        for line in self.process.stderr:
            self.lines.append(line)
            if found := re.search(r"http://[0-9.]+:\d+", line):
                self.url = found[0]
                self.address.set()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)

    def ask(self, bank):
        question = {"bank": bank, "text": "Which kayak does Ann keep?", "timeout_ms": PATIENCE_SECONDS * 1000}
        request = urllib.request.Request(
            self.url + "/v1/ask", json.dumps(question).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)

    def megabytes(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1000

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.running.discard(self)


def turn(bank, turn):
    text = f"I keep the {turn}. kayak of club {bank} in shed {(bank + turn) % 97}."
    at = f"2024-05-01T{10 + turn // 60:02}:{turn % 60:02}:00Z"
    return {"bank": f"b{bank}", "turn": str(turn), "speaker": ["Bo", "Ann"][turn % 2], "time": at, "text": text}


def main():
    if len(sys.argv) not in (3, 4):
        raise SystemExit(__doc__.splitlines()[0])
    banks, turns = int(sys.argv[1]), int(sys.argv[2])
    program = Path(sys.argv[3] if len(sys.argv) == 4 else ROOT / "target/release/ripplemem").resolve()
    with tempfile.TemporaryDirectory(prefix="ripplemem-starts-") as home:
        home = Path(home)
        broker = [ROOT / "scripts/broker", "start", home / "broker"]
        started = subprocess.run(broker, check=True, stdout=subprocess.PIPE, text=True).stdout
        cluster = json.loads(started.splitlines()[-1])["bootstrap"]

        def file(name, roles, more=""):
            settings = (
                f'version = 1\nroles = {roles}\nembed.model = "fixed"\n{more}[log]\nkind = "kafka"\n'
                f'directory = "{home / name}"\npartitions = 4\n[log.kafka]\nbrokers = "{cluster}"\nprefix = "starts"\n'
                '[http]\nlisten = "127.0.0.1:0"\n'
            )
            place = home / f"{name}.toml"
            place.write_text(settings, encoding="utf-8")
            return place

        try:
            lines = (json.dumps(turn(bank, number)) for number in range(turns) for bank in range(banks))
            (home / "turns.jsonl").write_text("\n".join(lines), encoding="utf-8")
            fill = file("fill", '["extract", "serve"]')
            instance = Instance(program, fill)
            ingest = [program, "ingest", "jsonl", home / "turns.jsonl", "--pipeline", fill]
            subprocess.run(ingest, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while instance.get("/v1/status")["behind"]:
                time.sleep(1)
            instance.stop()
            for name, sleep in [("without sleep", ""), ("with sleep", SLEEPS)]:
                place = f"{name.replace(' ', '-')}-snapshots"
                snapshots = f'snapshot.directory = "{home / place}"\n'
                # The first start with a place for snapshots has none, and writes one.
                first = Instance(program, file(place, '["serve"]', sleep + snapshots))
                first.ask("b7")
                taken = [program, "snapshot", "--pipeline", home / f"{place}.toml"]
                subprocess.run(taken, check=True, stdout=subprocess.DEVNULL)
                first.stop()
                for kind, more in [("from the log", sleep), ("from a snapshot", sleep + snapshots)]:
                    instance = Instance(program, file(place, '["serve"]', more))
                    instance.ask("b7")
                    seconds = time.monotonic() - instance.began
                    time.sleep(REST_SECONDS)
                    counts = instance.get("/v1/status").get("sleep") or {}
                    print(
                        f"{kind}, {name}: {seconds:.1f} s, {instance.megabytes():.0f} MB,"
                        f" {counts.get('asleep', 0)} banks asleep",
                        flush=True,
                    )
                    instance.stop()
        finally:
            for instance in list(Instance.running):
                instance.stop()
            subprocess.run([ROOT / "scripts/broker", "stop", home / "broker"], check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
