"""The providers of Microsoft Agent Framework, the history beside its in-memory one, with agents and outages."""

import asyncio

import pytest
from agent_framework import Agent, BaseChatClient, ChatResponse, Content, InMemoryHistoryProvider, Message

from ripplemem import RippleMem, RippleMemError
from ripplemem.agent_framework import RippleMemContextProvider, RippleMemHistoryProvider


class Scripted(BaseChatClient):
    """A client that says what a test has written, and keeps what it was asked."""

    def __init__(self, *answers):
        super().__init__()
        self.answers, self.asked, self.options = list(answers), [], []

    def _inner_get_response(self, *, messages, stream=False, options=None, **_):
        assert not stream
        self.options.append(dict(options or {}))
        self.asked.append(list(messages))

        async def answer():
            return ChatResponse(messages=[Message("assistant", [self.answers.pop(0)])])

        return answer()


AGENT = """
import asyncio, sys
sys.path.insert(0, sys.argv[3])
from test_agent_framework import *
async def main():
    url, bank = sys.argv[1:3]
    agent = Agent(Scripted("Noted."), name="assistant", context_providers=[RippleMemContextProvider(url, bank=bank, user="Ann")])
    await agent.run("I moved to Lisbon in May, into a flat above a bakery.", session=agent.create_session(session_id="monday"))
asyncio.run(main())
"""


def test_an_agent_remembers_across_processes_and_stores_no_recalled_text(url, bank, elsewhere):
    from pathlib import Path

    elsewhere(AGENT, url, bank, Path(__file__).parent)

    async def check():
        client = Scripted("To Lisbon.", "Yes.")
        history = RippleMemHistoryProvider(url, bank=bank)
        context = RippleMemContextProvider(url, bank=lambda session: bank, user=lambda session: "Ann")
        agent = Agent(client, name="assistant", context_providers=[history, context])
        session = agent.create_session(session_id="tuesday")
        result = await agent.run("Where did I move in May?", session=session)
        assert result.text == "To Lisbon."
        asked = client.asked[0]
        assert asked[-1].text == "Where did I move in May?"
        assert asked[-2].text.startswith("<recalled_memory>\n") and "above a bakery" in asked[-2].text, asked
        assert [one.text for one in await history.get_messages("tuesday")] == ["Where did I move in May?", "To Lisbon."]
        await agent.run("Is that right?", session=session)
        assert [one.text for one in client.asked[1]][:2] == ["Where did I move in May?", "To Lisbon."]
        with RippleMem(url, bank=bank) as memory:
            turns = [turn for turn in memory.turns(limit=100, order="oldest").turns if turn.recall]
        assert [(turn.speaker, turn.text, turn.session) for turn in turns] == [
            ("Ann", "I moved to Lisbon in May, into a flat above a bakery.", "monday"),
            ("assistant", "Noted.", "monday"),
            ("Ann", "Where did I move in May?", "tuesday"),
            ("assistant", "To Lisbon.", "tuesday"),
            ("Ann", "Is that right?", "tuesday"),
            ("assistant", "Yes.", "tuesday"),
        ]

    asyncio.run(check())


def message(role, *contents, **more):
    return Message(role, list(contents), **more)


MESSAGES = [
    message("user", "Hello"),
    message("assistant", Content.from_function_call(call_id="c1", name="look", arguments={"word": "kumquat"})),
    message("tool", Content.from_function_result(call_id="c1", result="The word is kumquat.")),
    message("assistant", "It is there. 🐝", message_id="m1"),
    message("user", "Hello"),
]


def test_the_history_beside_the_one_in_memory(url, bank):
    async def check():
        ours, theirs, state = RippleMemHistoryProvider(url, bank=bank), InMemoryHistoryProvider(), {}
        # Earlier versions of theirs add what is held again.
        twice = {}
        for _ in range(2):
            await theirs.save_messages("s", MESSAGES[:4], state=twice)
        adds_again = len(await theirs.get_messages("s", state=twice)) > 4

        async def both(call):
            results = [await call(one) for one in (ours, theirs)]
            return [[item.to_dict() for item in one] for one in results]

        async def save(*messages):
            for one in (ours, theirs):
                await one.save_messages("s", list(messages), state=state)
            found = await both(lambda one: one.get_messages("s", state=state))
            assert adds_again or found[0] == found[1], found
            return found[0]

        assert await ours.get_messages("s") == []
        assert len(await save(*MESSAGES[:1])) == 1
        assert len(await save(*MESSAGES[1:4])) == 4
        # The whole conversation again, and then with one more.
        assert len(await save(*MESSAGES[:4])) == 4
        assert len(await save(*MESSAGES)) == 5
        # The user says the same again.
        assert len(await save(message("user", "Hello"))) == 6
        assert await ours.get_messages("another") == []
        await ours.clear("s")
        assert await ours.get_messages("s") == []
        await ours.save_messages("s", MESSAGES[:2])
        assert len(await ours.get_messages("s")) == 2
        with RippleMem(url, bank=bank) as memory:
            assert "kumquat" not in memory.ask("What is the word?").context

    asyncio.run(check())


def test_two_writers_lose_nothing(url, bank):
    async def check():
        ones = [RippleMemHistoryProvider(url, bank=bank) for _ in range(3)]

        async def write(at):
            for n in range(6):
                await ones[at].save_messages("s", [message("user", f"{at}.{n}", message_id=f"{at}.{n}")])

        await asyncio.gather(*[write(at) for at in range(3)])
        texts = [one.text for one in await ones[0].get_messages("s")]
        assert sorted(texts) == sorted(f"{at}.{n}" for at in range(3) for n in range(6))

    asyncio.run(check())


def test_what_is_recalled_can_be_forgotten(url, bank, asked):
    async def check():
        history = RippleMemHistoryProvider(url, bank=bank, recall=True)
        await history.save_messages("s", [message("user", "My secret is a tattoo of a heron.")])
        with RippleMem(url, bank=bank) as memory:
            assert "heron" in asked(bank, "What is my secret?")
            await history.clear("s")
            assert "heron" not in memory.ask("What is my secret?").context

    asyncio.run(check())


def test_recall_opens_and_memory_raises_where_no_service_is(away, bank, caplog):
    async def check():
        client = Scripted("Hello.", "Hello.")
        with pytest.raises(RippleMemError):
            await Agent(client, context_providers=[RippleMemContextProvider(away, bank=bank)]).run("Hi")
        assert "could not be read just now" in client.asked[0][0].text and "recall failed" in caplog.text
        lenient = RippleMemContextProvider(away, bank=bank, lenient=True)
        assert (await Agent(client, context_providers=[lenient]).run("Hi")).text == "Hello."
        history = RippleMemHistoryProvider(away, bank=bank)
        for work in (history.get_messages("s"), history.save_messages("s", MESSAGES[:1])):
            with pytest.raises(RippleMemError):
                await work

    asyncio.run(check())


def test_a_service_that_is_killed_and_comes_back(service, bank):
    async def check():
        history = RippleMemHistoryProvider(service.url, bank=bank)
        await history.save_messages("s", MESSAGES[:2])
        service.kill()
        with pytest.raises(RippleMemError):
            await history.get_messages("s")
        service.start()
        assert len(await history.get_messages("s")) == 2

    asyncio.run(check())


def test_what_the_user_said_that_lasts_stands_behind_the_instructions(url, told):
    async def check():
        for tokens in (300, 0):
            client = Scripted("It is 3 km.")
            context = RippleMemContextProvider(url, bank=told, user="Ann", profile_tokens=tokens, remember=False)
            agent = Agent(client, "Be brief.", name="assistant", context_providers=[context])
            await agent.run("How far is it to the harbour?", session=agent.create_session())
            instructions = client.options[0]["instructions"]
            assert "Be brief." in str(instructions), instructions
            assert ("always answer in metric units" in str(instructions)) == (tokens > 0), instructions

    asyncio.run(check())
