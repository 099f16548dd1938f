"""The capability, the toolset and the conversation store of Pydantic AI, the store beside its in-memory one."""

import asyncio
import random

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationRecord, InMemoryConversationStore
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from ripplemem import RippleMem, RippleMemError
from ripplemem.pydantic_ai import RippleMemCapability, RippleMemConversationStore, memory_toolset


class Scripted:
    """The framework's scripted model, with what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []
        self.model = FunctionModel(self.answer)

    def answer(self, messages, info):
        self.asked.append(messages)
        answer = self.answers.pop(0)
        parts = answer.parts if isinstance(answer, ModelResponse) else [TextPart(answer)]
        return ModelResponse(parts=parts)


def prompt_of(messages):
    return messages[-1].parts[-1].content


AGENT = """
import sys
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from ripplemem.pydantic_ai import RippleMemCapability
model = FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart("Noted.")]))
agent = Agent(model, capabilities=[RippleMemCapability(url=sys.argv[1], bank=sys.argv[2], user="Ann")])
agent.run_sync("I moved to Lisbon in May, into a flat above a bakery.", conversation_id="monday")
"""


def test_an_agent_remembers_across_processes_and_stores_no_recalled_text(url, bank, elsewhere):
    elsewhere(AGENT, url, bank)
    call = ModelResponse(parts=[ToolCallPart("recall", {"question": "Where did Ann move in May?"}, tool_call_id="c1")])
    scripted = Scripted(call, "To Lisbon.")
    capability = RippleMemCapability(url=url, bank=lambda ctx: bank, user=lambda ctx: "Ann", tools=True)
    agent = Agent(scripted.model, capabilities=[capability])
    result = agent.run_sync("Where did I move in May?", conversation_id="tuesday")
    asked = prompt_of(scripted.asked[0])
    assert asked.startswith("Where did I move in May?\n\n<recalled_memory>\n") and "above a bakery" in asked, asked
    assert scripted.asked[1][0].parts[-1].content == asked, "the prompt begins as before, for the provider's cache"
    assert "bakery" in scripted.asked[1][-1].parts[0].content
    assert prompt_of(result.all_messages()[:1]) == "Where did I move in May?"
    with RippleMem(url, bank=bank) as memory:
        turns = memory.turns(limit=100, order="oldest").turns
        assert [(turn.speaker, turn.text, turn.recall, turn.session) for turn in turns if turn.speaker != "recall"] == [
            ("Ann", "I moved to Lisbon in May, into a flat above a bakery.", True, "monday"),
            ("assistant", "Noted.", True, "monday"),
            ("Ann", "Where did I move in May?", True, "tuesday"),
            ("assistant", "calls recall", False, "tuesday"),
            ("assistant", "To Lisbon.", True, "tuesday"),
        ]
        assert not [turn for turn in turns if "recalled_memory" in turn.text]
        assert [turn.recall for turn in turns if turn.speaker == "recall"] == [False]


def test_a_history_that_comes_again_is_stored_once(url, bank):
    scripted = Scripted("One.", "Two.")
    agent = Agent(scripted.model, capabilities=[RippleMemCapability(url=url, bank=bank)])
    first = agent.run_sync("First.")
    agent.run_sync("Second.", message_history=first.all_messages())
    with RippleMem(url, bank=bank) as memory:
        texts = [turn.text for turn in memory.turns(limit=100, order="oldest").turns]
    assert texts == ["First.", "One.", "Second.", "Two."]


def test_the_toolset_remembers(url, bank):
    call = ModelResponse(parts=[ToolCallPart("remember", {"speaker": "Ann", "text": "Ann's canary is called Otto."})])
    Agent(Scripted(call, "Noted.").model, toolsets=[memory_toolset(url, bank=bank)]).run_sync("My canary is called Otto.")
    with RippleMem(url, bank=bank) as memory:
        assert "Otto" in memory.ask("What is Ann's canary called?").context


def test_recall_opens_and_memory_raises_where_no_service_is(away, bank, caplog):
    scripted = Scripted("Hello.")
    with pytest.raises(RippleMemError):
        Agent(scripted.model, capabilities=[RippleMemCapability(url=away, bank=bank)]).run_sync("Hi")
    assert "could not be read just now" in prompt_of(scripted.asked[0]) and "recall failed" in caplog.text
    lenient = RippleMemCapability(url=away, bank=bank, lenient=True)
    assert Agent(Scripted("Hello.").model, capabilities=[lenient]).run_sync("Hi").output == "Hello."
    assert "are not remembered" in caplog.text
    with pytest.raises(RippleMemError):
        asyncio.run(RippleMemConversationStore(away, bank=bank).load("c"))


def same(one, other):
    """Whether two conversations or lists of them are the same, whatever their tokens and times."""

    def plain(conversation):
        return None if conversation is None else (conversation.messages, conversation.usage)

    return plain(one) == plain(other)


def test_a_random_program_has_the_same_results_as_in_memory(url, bank):
    """Runs, saves, stale saves, branches, forks and deletions, both stores beside each other."""

    async def check():
        chance = random.Random(3)
        stores = (RippleMemConversationStore(url, bank=bank), InMemoryConversationStore())
        agent = Agent(FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart(f"answer {len(messages)}")])))
        names = [f"c{n}" for n in range(4)]
        for step in range(60):
            name = chance.choice(names)
            loaded = [await store.load(name) for store in stores]
            assert same(*loaded), (step, name)
            what = chance.random()
            if what < 0.55:
                result = await agent.run(f"prompt {step}", conversation=loaded[1] or Conversation(conversation_id=name))
                for at, store in enumerate(stores):
                    conversation = loaded[at] or Conversation(conversation_id=name)
                    conversation.messages[:] = result.all_messages()
                    conversation.usage = result.conversation.usage
                    await store.save(conversation, scope="ann")
            elif what < 0.65 and loaded[0] is not None:
                for store, conversation in zip(stores, loaded):
                    stale = await store.load(name)
                    await store.save(conversation)
                    with pytest.raises(ConversationConflict):
                        await store.save(stale)
            elif what < 0.75 and loaded[0] is not None:
                at = chance.randrange(len(loaded[0].messages) + 1)
                for store, conversation in zip(stores, loaded):
                    await store.branch(name, at=at, expected_revision=conversation.revision)
            elif what < 0.85 and loaded[0] is not None:
                at = chance.randrange(len(loaded[0].messages) + 1)
                forks = [await store.fork(name, at=at) for store in stores]
                names.append(f"fork{step}")
                for store, fork in zip(stores, forks):
                    # Under a name that both stores know.
                    record = await store.read_record(fork.conversation_id)
                    assert record.forked_from == name
                    await store.write_record(
                        ConversationRecord(conversation_id=names[-1], head_id=record.head_id, scope="ann"),
                        expected_revision=None,
                    )
                    await store.delete_record(fork.conversation_id, expected_revision=record.revision)
            elif loaded[0] is not None:
                for store in stores:
                    record = await store.read_record(name)
                    with pytest.raises(ConversationConflict):
                        await store.delete_record(name, expected_revision="another")
                    await store.delete_record(name, expected_revision=record.revision)
            for scope in (None, "ann", "bo"):
                ours, theirs = [await store.read_records(scope=scope) for store in stores]
                assert [one.conversation_id for one in ours] == [one.conversation_id for one in theirs], step
            assert same(*[await store.load(name, limit=2) for store in stores]), step

    asyncio.run(check())


def test_a_deletion_takes_what_no_other_conversation_reaches(url, bank, asked):
    async def check():
        store = RippleMemConversationStore(url, bank=bank, recall=True)
        agent = Agent(Scripted(*["Noted."] * 9).model)
        result = await agent.run("My secret is a tattoo of a heron.", conversation=Conversation(conversation_id="c"))
        entries = await store.save(result)
        result = await agent.run("My kayak is red.", conversation=result.conversation)
        await store.save(result)
        with RippleMem(url, bank=bank) as memory:
            assert "heron" in asked(bank, "What is my secret?")
            fork = await store.fork("c", at=2)
            record = await store.read_record("c")
            await store.delete_record("c", expected_revision=record.revision)
            assert len((await store.load(fork.conversation_id)).messages) == 2 and await store.load("c") is None
            assert "kayak is red" not in memory.ask("Which colour has my kayak?").context
            record = await store.read_record(fork.conversation_id)
            await store.delete_record(fork.conversation_id, expected_revision=record.revision)
            assert "heron" not in memory.ask("What is my secret?").context
            assert [turn.speaker for turn in memory.turns().turns] == ["nobody"]
        with pytest.raises(KeyError):
            await store.read_entry(entries[0].id)
        # The same name again is another conversation.
        await store.save(await agent.run("Again.", conversation=Conversation(conversation_id="c")))
        assert len((await store.load("c")).messages) == 2

    asyncio.run(check())


def test_of_two_writers_one_wins_and_nothing_is_lost(url, bank):
    async def check():
        stores = [RippleMemConversationStore(url, bank=bank) for _ in range(2)]
        agent = Agent(FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart("ok")])))
        await stores[0].save(await agent.run("begin", conversation=Conversation(conversation_id="c")))
        conflicts = 0

        async def write(at):
            nonlocal conflicts
            for n in range(6):
                while True:
                    result = await agent.run(f"{at}.{n}", conversation=await stores[at].load("c"))
                    try:
                        await stores[at].save(result)
                        break
                    except ConversationConflict:
                        conflicts += 1

        await asyncio.gather(write(0), write(1))
        prompts = [one.parts[0].content for one in (await stores[0].load("c")).messages[2::2]]
        assert sorted(prompts) == sorted(f"{at}.{n}" for at in range(2) for n in range(6)), (prompts, conflicts)
        records = await stores[1].read_records()
        assert len(records) == 1 and records[0].branches == []

    asyncio.run(check())


def test_a_service_that_is_killed_and_comes_back(service, bank):
    async def check():
        store = RippleMemConversationStore(service.url, bank=bank)
        agent = Agent(Scripted(*["ok"] * 3).model)
        result = await agent.run("one", conversation=Conversation(conversation_id="c"))
        await store.save(result)
        service.kill()
        with pytest.raises(RippleMemError):
            await store.load("c")
        result = await agent.run("two", conversation=result.conversation)
        with pytest.raises(RippleMemError):
            await store.save(result)
        service.start()
        await store.save(result)
        assert len((await store.load("c")).messages) == 4

    asyncio.run(check())


def test_what_the_user_said_that_lasts_is_an_instruction(url, told):
    for tokens in (300, 0):
        scripted = Scripted("It is 3 km.")
        capability = RippleMemCapability(url=url, bank=told, user="Ann", profile_tokens=tokens, remember=False)
        agent = Agent(scripted.model, instructions="Be brief.", capabilities=[capability])
        agent.run_sync("How far is it to the harbour?")
        instructions = scripted.asked[0][0].instructions
        assert "Be brief." in instructions, instructions
        assert ("always answer in metric units" in instructions) == (tokens > 0), instructions
