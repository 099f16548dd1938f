"""What the checks of all adapters share: a service for a module, a bank for a test, and processes of their own."""

import subprocess
import sys
import uuid
from datetime import datetime, timezone
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from service import Service  # noqa: E402


@pytest.fixture(scope="session")
def shared():
    """A service that no test kills."""
    service = Service()
    yield service.url
    service.end()


@pytest.fixture
def url(shared):
    return shared


@pytest.fixture
def bank():
    return f"test/{uuid.uuid4().hex}"


@pytest.fixture
def service():
    """A service that a test may kill."""
    one = Service()
    yield one
    one.end()


@pytest.fixture
def away():
    """An address where nothing listens."""
    return "http://127.0.0.1:9"


@pytest.fixture
def told(url, bank):
    """A bank in which Ann has asked for something that lasts."""
    from ripplemem import RippleMem, Turn

    with RippleMem(url, bank=bank) as memory:
        now = datetime.now(timezone.utc)
        wish = Turn("1", "Ann", "From now on, always answer in metric units.", now, kind="person")
        memory.remember(wish, Turn("2", "assistant", "Noted.", now, kind="assistant"), wait=60)
    return bank


@pytest.fixture
def asked(url):
    """The context of an answer for somebody else, once the memory has read all that was written before."""
    from ripplemem import RippleMem, Turn

    def ask(bank, question):
        with RippleMem(url, bank=bank) as memory:
            now = datetime.now(timezone.utc)
            memory.remember(Turn(uuid.uuid4().hex, "nobody", "no words", now, recall=False), wait=60)
            return memory.ask(question).context

    return ask


@pytest.fixture
def elsewhere():
    """Runs a program in a process of its own; what it prints is returned."""

    def run(program, *arguments):
        done = subprocess.run(
            [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
