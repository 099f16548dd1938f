"""The session and the tools of OpenAI Agents: their contract, SQLiteSession side by side, two processes, and outages."""

import asyncio
import random
import threading

import pytest
from agents import Agent, Runner, SessionSettings, SQLiteSession, set_tracing_disabled
from agents.memory.session import Session

from ripplemem import RippleMem, RippleMemError
from ripplemem.openai_agents import RippleMemory, RippleMemSession
from scripted_openai import call, model_of, said

set_tracing_disabled(True)

ITEMS = [
    {"role": "user", "content": "Hello"},
    {"role": "user", "content": [{"type": "input_text", "text": "And this?"}, {"type": "input_image", "image_url": "data:x"}]},
    {"role": "system", "content": "Be brief."},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Lisbon"}', "id": "f1"},
    {"type": "function_call_output", "call_id": "c1", "output": "sunny, 21.0 °C"},
    {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "x" * 200},
    {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
     "content": [{"type": "output_text", "text": "It is sunny. 🐝", "annotations": []}]},
    {"role": "user", "content": ""},
    {"role": "user", "content": "Robert'); DROP TABLE turns;-- \u0001 日本"},
]


def run(coroutine):
    return asyncio.run(coroutine)


def test_it_is_a_session(url, bank):
    session = RippleMemSession("s", url, bank=bank)
    assert isinstance(session, Session)


def test_items_come_back_exactly_and_in_order(url, bank):
    async def check():
        session, other = RippleMemSession("s", url, bank=bank), SQLiteSession("s")
        for one in (session, other):
            assert await one.get_items() == [] and await one.pop_item() is None
            await one.add_items([])
            await one.add_items(ITEMS[:4])
            await one.add_items(ITEMS[4:])
        assert await session.get_items() == await other.get_items() == ITEMS
        for limit in (0, 1, 3, 100):
            assert await session.get_items(limit) == await other.get_items(limit), limit
        assert await session.pop_item() == await other.pop_item() == ITEMS[-1]
        assert await RippleMemSession("other", url, bank=bank).get_items() == []
        for one in (session, other):
            await one.clear_session()
            assert await one.get_items() == [] and await one.pop_item() is None
            await one.add_items(ITEMS[:1])
            assert await one.get_items() == ITEMS[:1]
        other.close()

    run(check())


def test_a_random_program_has_the_same_results_as_sqlite(url, bank):
    async def check():
        chance, other = random.Random(11), SQLiteSession("random")
        session = RippleMemSession("random", url, bank=bank)
        for step in range(120):
            what = chance.random()
            if what < 0.5:
                items = [{"role": "user", "content": f"{step}.{n}"} for n in range(chance.randrange(1, 5))]
                for one in (session, other):
                    await one.add_items(items)
            elif what < 0.7:
                assert await session.pop_item() == await other.pop_item(), step
            elif what < 0.73:
                for one in (session, other):
                    await one.clear_session()
            else:
                limit = chance.choice([None, 1, 2, 5])
                assert await session.get_items(limit) == await other.get_items(limit), step
        other.close()

    run(check())


def test_settings_limit_what_is_read(url, bank):
    async def check():
        session = RippleMemSession("limited", url, bank=bank, session_settings=SessionSettings(limit=2))
        await session.add_items([{"role": "user", "content": str(n)} for n in range(5)])
        assert [item["content"] for item in await session.get_items()] == ["3", "4"]
        assert len(await session.get_items(4)) == 4

    run(check())


def test_large_items_and_many_of_them(url, bank):
    async def check():
        session = RippleMemSession("large", url, bank=bank)
        large = {"type": "function_call_output", "call_id": "c", "output": "0123456789" * 50_000}
        await session.add_items([large])
        assert await session.get_items() == [large]
        many = [{"role": "user", "content": f"number {n}"} for n in range(1_200)]
        await session.add_items(many)
        assert await session.get_items() == [large, *many]
        assert await session.pop_item() == many[-1]

    run(check())


def test_two_writers_lose_nothing(url, bank):
    async def check():
        sessions = [RippleMemSession("shared", url, bank=bank) for _ in range(4)]

        async def write(at):
            for n in range(8):
                await sessions[at].add_items([{"role": "user", "content": f"{at}.{n}.{part}"} for part in range(2)])

        await asyncio.gather(*[write(at) for at in range(4)])
        items = [item["content"] for item in await sessions[0].get_items()]
        assert len(items) == len(set(items)) == 64
        for at in range(4):
            own = [item for item in items if item.startswith(f"{at}.")]
            assert own == [f"{at}.{n}.{part}" for n in range(8) for part in range(2)]
        # What was added together stays together.
        assert all(items[at][:-1] == items[at + 1][:-1] for at in range(0, 64, 2))
        popped = await asyncio.gather(*[session.pop_item() for session in sessions])
        assert sorted(one["content"] for one in popped) == sorted(items[-4:])

    run(check())


PROCESS = """
import asyncio, sys
from ripplemem.openai_agents import RippleMemSession
async def main():
    session = RippleMemSession("shared", sys.argv[1], bank=sys.argv[2])
    for n in range(15):
        await session.add_items([{"role": "user", "content": f"{sys.argv[3]}.{n}"}])
asyncio.run(main())
"""


def test_two_processes_write_at_once(url, bank, elsewhere):
    threads = [threading.Thread(target=elsewhere, args=(PROCESS, url, bank, name)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    items = [item["content"] for item in run(RippleMemSession("shared", url, bank=bank).get_items())]
    assert sorted(items) == sorted(f"{name}.{n}" for name in "ab" for n in range(15))
    assert [item for item in items if item[0] == "a"] == [f"a.{n}" for n in range(15)]


def test_what_is_said_is_recalled_and_what_tools_say_is_not(url, bank, asked):
    async def check():
        session = RippleMemSession("monday", url, bank=bank, user="Ann")
        await session.add_items(
            [
                {"role": "user", "content": "My bees live in a hive behind the chapel."},
                {"type": "function_call", "call_id": "c", "name": "look", "arguments": '{"word": "kumquat"}'},
                {"type": "function_call_output", "call_id": "c", "output": "The word is kumquat."},
            ]
        )
        await RippleMemSession("silent", url, bank=bank, recall=False).add_items(
            [{"role": "user", "content": "My boat lies in the harbour of Cascais."}]
        )
        assert "Ann: My bees live" in asked(bank, "Where do Ann's bees live?")
        assert "kumquat" not in asked(bank, "What is the word?")
        assert "Cascais" not in asked(bank, "Where does the boat lie?")
        await session.clear_session()
        with RippleMem(url, bank=bank) as memory:
            assert "chapel" not in memory.ask("Where do Ann's bees live?").context

    run(check())


AGENT = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[3])
from agents import Agent, Runner, set_tracing_disabled
from ripplemem.openai_agents import RippleMemory
from scripted_openai import call, model_of, said
set_tracing_disabled(True)
memory = RippleMemory(sys.argv[1], bank=sys.argv[2], user="Ann")
model = model_of(said("Noted."))
agent = Agent(name="assistant", model=model)
Runner.run_sync(agent, "I moved to Lisbon in May, into a flat above a bakery.", session=memory.session("monday"))
"""


def test_an_agent_remembers_across_processes_and_stores_no_recalled_text(url, bank, elsewhere):
    from pathlib import Path

    elsewhere(AGENT, url, bank, Path(__file__).parent)

    async def check():
        memory = RippleMemory(url, bank=bank, user="Ann")
        model = model_of(call("recall", {"question": "Where did Ann move in May?"}), said("To Lisbon."))
        agent = Agent(name="assistant", model=model, tools=memory.tools())
        session = memory.session("tuesday")
        result = await Runner.run(agent, "Where did I move in May?", session=session, run_config=memory.run_config())
        assert result.final_output == "To Lisbon."
        first, second = model.inputs
        asked = first[-1]["content"]
        assert asked.startswith("Where did I move in May?\n\n<recalled_memory>\n") and "above a bakery" in asked
        assert asked.endswith("</recalled_memory>")
        output = next(item["output"] for item in second if item.get("type") == "function_call_output")
        assert "bakery" in output and second[0]["content"] == asked, "the prompt begins as before, for the provider's cache"
        kept = await session.get_items()
        assert kept[0] == {"role": "user", "content": "Where did I move in May?"} and len(kept) == 4
        await memory.aclose()
        with RippleMem(url, bank=bank) as other:
            assert not [turn for turn in other.turns(limit=100).turns if "recalled_memory" in turn.text]

    run(check())


def test_the_tool_remembers(url, bank):
    async def check():
        memory = RippleMemory(url, bank=bank)
        model = model_of(call("remember", {"speaker": "Ann", "text": "Ann's canary is called Otto."}), said("Noted."))
        await Runner.run(Agent(name="assistant", model=model, tools=memory.tools()), "My canary is called Otto.")
        with RippleMem(url, bank=bank) as other:
            assert "Otto" in other.ask("What is Ann's canary called?").context

    run(check())


def test_recall_opens_and_sessions_raise_where_no_service_is(away, bank, caplog):
    async def check():
        memory = RippleMemory(away, bank=bank)
        model = model_of(said("Hello."))
        result = await Runner.run(Agent(name="assistant", model=model), "Hi", run_config=memory.run_config())
        assert result.final_output == "Hello."
        assert "could not be read just now" in model.inputs[0][-1]["content"]
        assert "recall failed" in caplog.text
        for work in (memory.session("s").get_items(), memory.session("s").add_items(ITEMS[:1])):
            with pytest.raises(RippleMemError):
                await work

    run(check())


def test_a_service_that_is_killed_and_comes_back(service, bank):
    async def check():
        session = RippleMemSession("s", service.url, bank=bank)
        await session.add_items(ITEMS[:3])
        service.kill()
        for work in (session.get_items(), session.add_items(ITEMS[3:4]), session.pop_item(), session.clear_session()):
            with pytest.raises(RippleMemError):
                await work
        service.start()
        assert await session.get_items() == ITEMS[:3]
        await session.add_items(ITEMS[3:])
        assert await session.get_items() == ITEMS

    run(check())


def test_what_the_user_said_that_lasts_stands_behind_the_instructions(url, told):
    async def check():
        for tokens in (300, 0):
            memory = RippleMemory(url, bank=told, user="Ann", profile_tokens=tokens)
            model = model_of(said("It is 3 km."))
            agent = Agent(name="a", instructions="Be brief.", model=model)
            await Runner.run(agent, "How far is it to the harbour?", run_config=memory.run_config())
            instructions = model.instructions[0]
            assert instructions.startswith("Be brief."), instructions
            assert ("always answer in metric units" in instructions) == (tokens > 0), instructions
            await memory.aclose()

    run(check())
