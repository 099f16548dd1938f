#!/usr/bin/env python3
"""The whole loop with a real coding agent of npm and a scripted model.

    loop.py RIPPLEMEM NPM_DIRECTORY PROGRAM [PACKAGE@VERSION]

A home directory of its own; `ripplemem agents install PROGRAM`; session one says something, is compacted where the
program can be told to, and goes on; session two, in another process, must get it in its first request, as the model's
server saw it, exactly once; then ten rounds. At the end, the memory must hold each message once and nothing that was
recalled, and `remove` must leave the settings as they were, to the byte.

Prints a line of JSON with what was seen. Exit codes: 0 all held; 1 something did not; 5 the program cannot be installed
or does not run here, with the reason on stderr.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROUNDS = int(os.environ.get("ROUNDS", "10"))
FACT = "The harbour sensor of the tide clock reads every 7 minutes."
WISH = "Always answer me in metric units."
ASKED = "How often does the harbour sensor of the tide clock read?"
APART = "Sing a song of roses and cheese and yellow paint"
PACKAGES = {
    "claude-code": ("@anthropic-ai/claude-code@2.1.197", "claude"),
    "codex": ("@openai/codex@0.171.0", "codex"),
    "gemini": ("@google/gemini-cli@0.61.0", "gemini"),
    "copilot": ("@github/copilot@1.0.102", "copilot"),
    "opencode": ("opencode-ai@1.18.33", "opencode"),
    "pi": ("@mariozechner/pi-coding-agent@0.73.1", "pi"),
}
STORY = {
    "rules": [
        {
            "when": "(?i)summary of the conversation|handoff|compact|create a detailed summary|state_snapshot|summariz",
            "replies": [{"text": "<summary>The person builds a clock.</summary>"}],
        }
    ],
    "default": [{"text": "Noted."}],
}


class Failure(Exception):
    """Something did not hold."""


def check(holds, what):
    if not holds:
        raise Failure(what)


def installed(directory, package, name):
    """The program of a package, installed once."""
    home = Path(directory) / package.replace("/", "_")
    program = home / "node_modules/.bin" / name
    if not program.exists():
        home.mkdir(parents=True, exist_ok=True)
        npm = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--fetch-retries=0", "--fetch-timeout=120000"]
        done = subprocess.run([*npm, "--prefix", home, package], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.stderr.write(f"{package} cannot be installed: {done.stderr.strip()[-300:]}\n")
            sys.exit(5)
    runs = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if runs.returncode != 0:
        sys.stderr.write(f"{package} does not run here\n")
        sys.exit(5)
    return str(program)


class Loop:
    """A program in a home directory of its own, a scripted model, and a memory."""

    def __init__(self, ripplemem, home, program, name):
        self.ripplemem, self.home, self.program, self.name = str(Path(ripplemem).resolve()), home, program, name
        self.project = home / "kite"
        self.project.mkdir()
        (self.project / ".git").mkdir()
        assets = os.environ.get("RIPPLEMEM_HOME") or f"{os.environ['HOME']}/.local/share/ripplemem"
        keep = ("PATH", "LANG", "LD_LIBRARY_PATH", "ORT_DYLIB_PATH", "SSL_CERT_FILE", "http_proxy", "https_proxy")
        self.env = {key: os.environ[key] for key in keep if key in os.environ}
        self.env |= {"HOME": str(home), "TERM": "dumb", "USER": "odalys"}
        # In its usual place, as for a user: some programs start their servers without most variables.
        data = home / ".local/share/ripplemem"
        data.mkdir(parents=True)
        for part in ("lib", "models"):
            (data / part).symlink_to(Path(assets) / part)
        story = home / "story.json"
        story.write_text(json.dumps(STORY))
        self.log = home / "requests.jsonl"
        self.log.touch()
        command = [sys.executable, HERE / "scripted_model.py", "--script", story, "--log", self.log]
        self.model = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{self.model.stdout.readline().strip()}"
        self.session = None
        self.typed, self.seen = [], {}
        getattr(self, f"prepare_{name.replace('-', '_')}")()

    # Each program: how it is set up, how it is talked to, and how it is compacted.

    def prepare_claude_code(self):
        self.env |= {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "x",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        self.write(".claude/settings.json", '{"cleanupPeriodDays": 60}')

    def say_claude_code(self, text, goes_on):
        more = ["--resume", self.session] if goes_on else []
        answer = self.run([self.program, "-p", text, "--output-format", "json", *more])
        self.session = json.loads(answer)["session_id"]

    def compact_claude_code(self):
        self.run([self.program, "-p", "/compact", "--resume", self.session, "--output-format", "json"])
        return True

    def fork_claude_code(self, text):
        more = ["--resume", self.session, "--fork-session"]
        self.run([self.program, "-p", text, "--output-format", "json", *more])
        return True

    def prepare_codex(self):
        self.write(
            ".codex/config.toml",
            f'# mine\nmodel = "gpt-5"\nmodel_provider = "scripted"\n\n[model_providers.scripted]\nname = "scripted"\n'
            f'base_url = "{self.url}/v1"\nwire_api = "responses"\n',
        )

    def codex(self, *more):
        trusted = "--dangerously-bypass-hook-trust"
        return self.run([self.program, "exec", "--skip-git-repo-check", trusted, *more])

    def say_codex(self, text, goes_on):
        self.codex(*(["resume", self.session, text] if goes_on else [text]))
        if not goes_on:
            newest = max(self.home.glob(".codex/sessions/*/*/*/rollout-*.jsonl"), key=lambda path: path.stat().st_mtime)
            self.session = json.loads(newest.read_text().splitlines()[0])["payload"]["id"]

    def compact_codex(self):
        self.typed.append("Once more, please, then we are done here.")
        self.codex("-c", "model_auto_compact_token_limit=50", "resume", self.session, self.typed[-1])
        return True

    def fork_codex(self, text):
        self.codex("fork", self.session, text)
        return True

    def prepare_gemini(self):
        self.env |= {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": self.url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        auth = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
        self.write(".gemini/settings.json", json.dumps(auth, indent=2))

    def say_gemini(self, text, goes_on):
        self.run([self.program, "-y", *(["--resume", "latest"] if goes_on else []), "-p", text])

    def prepare_copilot(self):
        self.env |= {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{self.url}/v1",
            "COPILOT_MODEL": "scripted",
        }

    def say_copilot(self, text, goes_on):
        self.run([self.program, *(["--continue"] if goes_on else []), "-p", text, "--allow-all-tools"])

    def prepare_opencode(self):
        options = {"baseURL": f"{self.url}/v1", "apiKey": "x"}
        models = {"scripted": {"name": "scripted"}}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "Scripted", "options": options, "models": models}
        settings = {"model": "scripted/scripted", "provider": {"scripted": provider}}
        self.write(".config/opencode/opencode.json", json.dumps(settings, indent=2))

    def say_opencode(self, text, goes_on):
        self.run([self.program, "run", *(["-c"] if goes_on else []), text])

    def prepare_pi(self):
        provider = {"baseUrl": f"{self.url}/v1", "api": "openai-completions", "apiKey": "x"}
        provider["models"] = [{"id": "scripted", "name": "scripted"}]
        self.write(".pi/agent/models.json", json.dumps({"providers": {"scripted": provider}}))

    def say_pi(self, text, goes_on):
        model = ["--provider", "scripted", "--model", "scripted"]
        self.run([self.program, *model, *(["-c"] if goes_on else []), "-p", text])

    # What all of them share.

    def write(self, path, text):
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, command, **more):
        done = subprocess.run(
            command, cwd=self.project, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=180, check=False, **more,
        )
        check(done.returncode == 0, f"{command[:3]}: {done.returncode} {done.stdout[-500:]} {done.stderr[-1500:]}")
        return done.stdout

    def ours(self, *arguments):
        return self.run([self.ripplemem, *arguments])

    def say(self, text, goes_on):
        """Talks to the program. Returns the requests that the model saw meanwhile and that hold the prompt."""
        before = len(self.log.read_text().splitlines())
        self.typed.append(text)
        getattr(self, f"say_{self.name.replace('-', '_')}")(text, goes_on)
        requests = [json.loads(line)["body"] for line in self.log.read_text().splitlines()[before:]]
        # Some programs ask for a title with a request of its own, which has no tools.
        return [json.dumps(body, ensure_ascii=False) for body in requests if text in json.dumps(body) and body.get("tools")]

    def does(self, what, *arguments):
        """Does what only some programs can be told to do."""
        order = getattr(self, f"{what}_{self.name.replace('-', '_')}", None)
        return bool(order and order(*arguments))

    def address(self):
        lines = (self.home / ".local/share/ripplemem/memory/http.address").read_text().split("\n")
        return lines[1], lines[2]

    def get(self, path):
        address, token = self.address()
        request = urllib.request.Request(f"http://{address}{path}", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def turns(self):
        banks = self.get("/v1/banks")["banks"]
        names = [bank if isinstance(bank, str) else bank["bank"] for bank in banks]
        return [turn for name in names for turn in self.get(f"/v1/turns?bank={name}&limit=1000")["turns"]]

    def wait(self, what, holds, seconds=60):
        until = time.monotonic() + seconds
        while True:
            try:
                if holds():
                    return
            except (OSError, ValueError, IndexError):
                pass
            check(time.monotonic() < until, f"{what}: not within {seconds} s; {self.state()}")
            time.sleep(0.2)

    def state(self):
        status = subprocess.run([self.ripplemem, "agents", "status"], env=self.env, capture_output=True, text=True)
        log = self.home / ".local/share/ripplemem/agents/service.log"
        return f"{status.stdout}{status.stderr}{log.read_text()[-2000:] if log.exists() else ''}"

    def remembered(self, text):
        """Waits until an answer can hold a message."""
        self.wait(f"{text!r} is remembered", lambda: any(text in turn["text"] for turn in self.turns()))
        self.wait("it is reflected", lambda: self.get("/v1/status").get("behind", 0) == 0)
        time.sleep(1)

    def files(self):
        """The settings of the program, as they are."""
        places = (".claude.json", ".claude/settings.json", ".codex/config.toml", ".codex/hooks.json",
                  ".gemini/settings.json", ".copilot/hooks/ripplemem.json", ".copilot/mcp-config.json",
                  ".config/opencode/opencode.json", ".config/opencode/plugin/ripplemem.js",
                  ".pi/agent/extensions/ripplemem.ts")
        return {place: (self.home / place).read_bytes() for place in places if (self.home / place).exists()}

    def given(self, request):
        return request.count("<ripplemem>")

    def go(self):
        before = self.files()
        self.ours("agents", "install", self.name, "--yes")
        after = self.files()
        check(after != before, "install writes")
        check("as it should be" in self.ours("agents", "install", self.name, "--yes"), "a second install sees the first")
        check(self.files() == after, "a second install changes nothing")
        # Taken away and put in again, before the program writes its own settings.
        self.ours("agents", "remove", self.name, "--yes")
        check(self.files() == before, f"remove restores: {self.files()} {before}")
        self.ours("agents", "install", self.name, "--yes")
        # This machine may be busy with other tests; docs/lab/hooks.md says how long a hook takes on an idle one.
        service = self.home / ".local/share/ripplemem/agents/service.json"
        service.write_text(json.dumps(json.loads(service.read_text()) | {"deadline_ms": 1800}))

        self.say(FACT, False)
        # The first hook has started the service.
        self.remembered(FACT)
        self.say(WISH, True)
        self.remembered(WISH)
        if self.does("compact"):
            self.seen["compacted"] = True
            first = self.say("What did we say of the harbour sensor and how often it reads?", True)[0]
            check("every 7 minutes" in first, "what was compacted is given again")
        if self.does("fork", "A fork of this, and nothing else."):
            self.typed.append("A fork of this, and nothing else.")
            self.seen["forked"] = True

        # Another process, another session: both facts, once each, in the first request.
        first = self.say(ASKED, False)[0]
        for words in ("every 7 minutes", "metric units"):
            check(first.count(words) == 1, f"{words!r} stands {first.count(words)} times in the first request: {first[-3000:]}")
        self.seen["first_request"] = {"tags": self.given(first)}
        # Nothing is given twice, and nothing to what has nothing to do with it.
        again = self.say("So how often does that harbour sensor read?", True)[0]
        check(again.count("every 7 minutes") == 1, f"given twice in a session: {again[-3000:]}")
        apart = self.say(APART, False)[0]
        check("every 7 minutes" not in apart, f"given where nobody asked: {apart[-3000:]}")

        # A question that was asked many times is nearer to itself than its answer is, so the last rounds may miss it.
        held = []
        for number in range(ROUNDS):
            request = self.say(f"Round {number}: how often does the harbour sensor of the tide clock read?", False)[0]
            check(request.count(FACT) <= 1, f"round {number}: {request.count(FACT)} times: {request[-3000:]}")
            held.append(request.count(FACT) == 1)
        self.seen["rounds_with_the_fact"] = f"{sum(held)} of {ROUNDS}"
        check(all(held[:5]), f"the first rounds hold the fact: {held}")
        self.remembered(f"Round {ROUNDS - 1}:")

        turns = self.turns()
        texts = [turn["text"] for turn in turns if turn["kind"] == "person"]
        for text in self.typed:
            count = sum(text in held for held in texts)
            check(count == 1, f"{text!r} is remembered {count} times: {texts}")
        check(len(texts) == len(self.typed), f"more than was typed is remembered: {texts}")
        for turn in turns:
            check("ripplemem" not in turn["text"].lower(), f"what was recalled is remembered: {turn}")
        self.seen |= {"turns": len(turns), "typed": len(self.typed)}
        self.seen["status"] = [line.strip() for line in self.ours("agents", "status").splitlines() if "last ran" in line]

        ours = self.files()
        self.ours("agents", "remove", self.name, "--yes")
        for place, text in before.items():
            left = self.files().get(place, b"")
            # The program may have written its own settings meanwhile: then only our entries go.
            check(left == text or b"ripplemem" not in left, f"{place} keeps entries of ours: {left}")
            self.seen[f"restored {place}"] = left == text or f"{len(ours[place])} bytes were written by the program"
        check(not any(b"ripplemem" in text for text in self.files().values()), "remove leaves nothing of ours")

    def end(self):
        self.model.terminate()
        lock = self.home / ".local/share/ripplemem/agents/service.lock"
        subprocess.run([self.ripplemem, "agents", "remove", self.name, "--yes"], env=self.env, capture_output=True)
        process = lock.read_text().strip() if lock.exists() else ""
        if process.isdigit() and Path(f"/proc/{process}").exists():
            os.kill(int(process), signal.SIGKILL)


def main():
    ripplemem, directory, name, *rest = sys.argv[1:]
    package, binary = PACKAGES[name]
    package = rest[0] if rest else package
    program = installed(directory, package, binary)
    home = Path(tempfile.mkdtemp(prefix="ripplemem-agents-"))
    loop, began = Loop(ripplemem, home, program, name), time.monotonic()
    try:
        loop.go()
    except (Failure, IndexError, KeyError, subprocess.TimeoutExpired) as failure:
        sys.stderr.write(f"{name}: {type(failure).__name__}: {failure}\n{loop.state()}\n")
        sys.exit(1)
    finally:
        loop.end()
        if not os.environ.get("KEEP"):
            shutil.rmtree(home, ignore_errors=True)
    print(json.dumps({"program": name, "package": package, "seconds": round(time.monotonic() - began)} | loop.seen))


if __name__ == "__main__":
    main()
