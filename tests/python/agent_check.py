"""Checks examples/agent.py against a running service and a scripted OpenAI-style endpoint.

    agent_check.py URL

The endpoint runs in this process. It asks for a tool where the last message asks how long, and else answers with the
name that the memories give. docs/agent.md must show the program as it is. Exits with 1 and a trace when something is
not as it should be.
"""

import importlib.util
import json
import re
import sys
import threading
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "clients" / "python" / "src"))

import httpx  # noqa: E402

from ripplemem import InvalidError, RippleMem, UnreachableError  # noqa: E402

CALL = {"id": "call-1", "type": "function"}


class Scripted(BaseHTTPRequestHandler):
    """Answers chat requests, and keeps them."""

    requests = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append(body)
        last, system = body["messages"][-1], body["messages"][0]["content"]
        if "how long" in last["content"]:
            call = {**CALL, "function": {"name": "days_until", "arguments": json.dumps({"day": DAY})}}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        elif last["role"] == "tool":
            message = {"role": "assistant", "content": f"It is {last['content']}."}
        elif "half" in last["content"]:
            message = {"role": "assistant", "content": "Half \ud83d of it."}
        else:
            message = {"role": "assistant", "content": "Clara does." if "Clara" in system else "Noted."}
        answer = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


DAY = (date.today() + timedelta(days=3)).isoformat()


def agent():
    spec = importlib.util.spec_from_file_location("agent", ROOT / "examples" / "agent.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_shows_the_loop():
    """docs/agent.md shows the loop and the prompt as they are."""
    page = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
    program = (ROOT / "examples" / "agent.py").read_text(encoding="utf-8")
    loop = program[program.index("def converse(") : program.index("def turns(")].strip()
    prompt = program.split('PROMPT = """')[1].split('"""')[0]
    assert loop in page and prompt in page, "docs/agent.md shows another program than examples/agent.py"


def every_name_has_a_bank(example):
    """A bank's name can hold few characters; a person's name can hold any."""
    names = ["Ann", "ann", "Ann Lee", "Ann  Lee", "Ann-Lee", "Ann/Lee", "Jörg", "J\u00f6rg", "Jo\u0308rg", "李雷", "王小明", "..", ".", "-", "🙂", "x" * 500, "x" * 501, "O'Neil", "half \ud83d"]
    banks = {name: example.bank_of(name) for name in names}
    segment = r"[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*"
    for name, bank in banks.items():
        assert re.fullmatch(f"agent/{segment}", bank) and len(bank) <= 128, (name, bank)
    assert banks["Ann"] == "agent/Ann" and banks["Jo\u0308rg"] == banks["Jörg"], banks
    assert len(set(banks.values())) == len(set(names)) - 1, banks


def goes_on_while_the_service_is_away(example, url, base):
    """Answers come without memories, and what was said meanwhile is stored once, when the service is there again."""

    class Away(RippleMem):
        away = True

        def _send(self, call):
            if self.away:
                raise UnreachableError("nobody answers", "unreachable")
            return super()._send(call)

    name = "Jörg Ann Lee"
    with Away(url, bank=example.bank_of(name)) as memory, httpx.Client(base_url=base) as model:
        def lines():
            yield "My sister Clara visits me in August."
            system = Scripted.requests[-1]["messages"][0]["content"]
            assert "The memory cannot be asked now" in system, system
            yield "I like tea."
            memory.away = False
            yield "Who visits me in August?"
            memory.away = True

        answers = list(example.converse(memory, model, name, lines()))
        assert len(answers) == 3, answers
        memory.away = False
        # A question waits until what this client wrote can be found; a list does not.
        memory.ask("What was said?")
        stored = memory.turns().turns
        texts = [turn.text for turn in reversed(stored)]
        assert texts[0].startswith("My sister Clara") and len(texts) == len(set(turn.turn for turn in stored)) == 6, texts
        assert {turn.speaker for turn in stored} == {name, "Assistant"}, stored
        assert list(example.converse(memory, model, name, ["Who visits me in August?"])) == ["Clara does."]
    # What is wrong, and not away, is said.
    with RippleMem(url, bank="../etc") as memory, httpx.Client(base_url=base) as model:
        try:
            list(example.converse(memory, model, "Ann", ["Hello"]))
            raise AssertionError("a wrong bank is no service that is away")
        except InvalidError:
            pass


def main(url):
    page_shows_the_loop()
    server = HTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    example, base = agent(), f"http://127.0.0.1:{server.server_port}/v1"
    with RippleMem(url, bank="agent/Ann") as memory, httpx.Client(base_url=base) as model:
        first = list(example.converse(memory, model, "Ann", ["My sister Clara visits me in August."]))
        assert first == ["Noted."], first
        system = Scripted.requests[0]["messages"][0]
        assert system["role"] == "system" and "bank agent/Ann holds nothing yet" in system["content"], system
        # Another conversation: what was said comes with the prompt, not with the messages.
        lines = ["Who visits me in August?", f"And how long until {DAY}?"]
        second = list(example.converse(memory, model, "Ann", lines))
        assert second == ["Clara does.", f"It is 3 days until {DAY}."], second
        asked = Scripted.requests[1]["messages"]
        assert "Ann: My sister Clara visits me in August." in asked[0]["content"], asked
        assert [message["role"] for message in asked] == ["system", "user"], asked
        # The tool's result went back to the model, in the order that the protocol asks for.
        roles = [message["role"] for message in Scripted.requests[-1]["messages"]]
        assert roles == ["system", "user", "assistant", "user", "assistant", "tool"], roles
        # What holds half a character goes back to the model, and is stored.
        third = list(example.converse(memory, model, "Ann", ["Write half an emoji.", "Who visits me in August?"]))
        assert third == ["Half \ud83d of it.", "Clara does."], third
        assert Scripted.requests[-1]["messages"][2]["content"] == "Half \ud83d of it.", Scripted.requests[-1]
        # Everything is stored, with the kind of its speaker.
        stored = httpx.get(f"{url}/v1/turns", params={"bank": "agent/Ann"}).json()["turns"]
        kinds = [(turn["kind"], turn["text"]) for turn in reversed(stored)]
        assert ("person", "My sister Clara visits me in August.") in kinds, kinds
        assert ("tool", f"3 days until {DAY}") in kinds and ("assistant", "Half \ufffd of it.") in kinds, kinds
        assert {turn["speaker"] for turn in stored} == {"Ann", "Assistant", "days_until"}, stored
        assert any(kind == "assistant" and text.startswith("calls days_until(") for kind, text in kinds), kinds
        assert len({turn["turn"] for turn in stored}) == len(stored) == 12, stored
    every_name_has_a_bank(example)
    goes_on_while_the_service_is_away(example, url, base)
    server.shutdown()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
