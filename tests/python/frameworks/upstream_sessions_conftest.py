"""Our session in the place of `SQLiteSession`, for the tests of OpenAI Agents: one bank for a file of the other."""

import os
import sys
import uuid

import agents

sys.path.insert(0, os.environ["RIPPLEMEM_TESTS"])
from ripplemem.openai_agents import RippleMemSession  # noqa: E402
from service import Service  # noqa: E402

SERVICE = Service()


def pytest_unconfigure():
    SERVICE.end()


class Ours(RippleMemSession):
    def __init__(self, session_id, db_path=":memory:", *_, session_settings=None, **__):
        name = uuid.uuid4().hex if str(db_path) == ":memory:" else uuid.uuid5(uuid.NAMESPACE_URL, str(db_path)).hex
        super().__init__(session_id, SERVICE.url, bank=f"upstream/{name}", session_settings=session_settings)

    def close(self):
        pass


agents.SQLiteSession = Ours
