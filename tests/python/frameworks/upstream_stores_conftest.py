"""A store of LangGraph for the tests of its own stores."""

import os
import sys
import uuid

import pytest

sys.path.insert(0, os.environ["RIPPLEMEM_TESTS"])
from ripplemem.langgraph import RippleMemStore  # noqa: E402
from service import Service  # noqa: E402


@pytest.fixture(scope="session")
def shared():
    service = Service()
    yield service.url
    service.end()


@pytest.fixture
def store(shared):
    one = RippleMemStore(shared, bank=f"upstream/{uuid.uuid4().hex}")
    yield one
    one.close()
