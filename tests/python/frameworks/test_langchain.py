"""The middleware of LangChain: recall at the end of the prompt, memory of what was said, and outages."""

import asyncio

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from ripplemem import RippleMem, RippleMemError
from ripplemem.langchain import RippleMemMiddleware


class Scripted(GenericFakeChatModel):
    """LangChain's own scripted model, which also takes tools and keeps what it was asked."""

    asked: list = []

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, messages, *arguments, **more):
        self.asked.append(messages)
        return super()._generate(messages, *arguments, **more)


def scripted(*answers):
    model = Scripted(messages=iter([one if isinstance(one, AIMessage) else AIMessage(one) for one in answers]))
    model.asked = []
    return model


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"The weather of {city} is called kumquat."


def config(thread):
    return {"configurable": {"thread_id": thread}}


AGENT = """
import sys
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from ripplemem.langchain import RippleMemMiddleware
model = GenericFakeChatModel(messages=iter([AIMessage("Noted.")]))
agent = create_agent(model, middleware=[RippleMemMiddleware(sys.argv[1], bank=sys.argv[2], user="Ann")])
agent.invoke({"messages": [("user", "I moved to Lisbon in May, into a flat above a bakery.")]}, {"configurable": {"thread_id": "monday"}})
"""


@pytest.mark.parametrize("style", ["sync", "async"])
def test_an_agent_remembers_across_processes_and_stores_no_recalled_text(url, bank, elsewhere, style):
    elsewhere(AGENT, url, bank)
    call = AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Lisbon"}, "id": "c1"}])
    model = scripted(call, "To Lisbon.")
    middleware = RippleMemMiddleware(url, bank=bank, user=lambda runtime: "Ann")
    agent = create_agent(model, tools=[weather], middleware=[middleware], checkpointer=InMemorySaver())
    said = {"messages": [("user", "Where did I move in May?")]}
    if style == "sync":
        state = agent.invoke(said, config("tuesday"))
    else:
        state = asyncio.run(agent.ainvoke(said, config("tuesday")))
    first, second = model.asked
    assert first[-1].content.startswith("Where did I move in May?\n\n<recalled_memory>\n"), first
    assert "above a bakery" in first[-1].content and first[-1].content.endswith("</recalled_memory>")
    assert second[: len(first)] == first, "the prompt begins as before, for the provider's cache"
    assert state["messages"][0].content == "Where did I move in May?"
    with RippleMem(url, bank=bank) as memory:
        turns = memory.turns(limit=100, order="oldest").turns
        assert [(turn.speaker, turn.text, turn.recall) for turn in turns] == [
            ("Ann", "I moved to Lisbon in May, into a flat above a bakery.", True),
            ("assistant", "Noted.", True),
            ("Ann", "Where did I move in May?", True),
            ("assistant", "calls weather", False),
            ("weather", "The weather of Lisbon is called kumquat.", False),
            ("assistant", "To Lisbon.", True),
        ]
        assert turns[3].metadata["langchain"]["tool_calls"][0]["args"] == {"city": "Lisbon"}
        assert {turn.session for turn in turns} == {"monday", "tuesday"}
        assert "kumquat" not in memory.ask("What is the weather of Lisbon called?").context


def test_what_was_said_is_stored_once(url, bank):
    """The same conversation comes again with each run: with a checkpointer, and as a whole without one."""
    middleware = RippleMemMiddleware(url, bank=bank)
    agent = create_agent(scripted("One.", "Two."), middleware=[middleware], checkpointer=InMemorySaver())
    agent.invoke({"messages": [("user", "First.")]}, config("t"))
    agent.invoke({"messages": [("user", "Second.")]}, config("t"))
    stateless = create_agent(scripted("Yes.", "No."), middleware=[middleware])
    stateless.invoke({"messages": [("user", "Is it?")]})
    stateless.invoke({"messages": [("user", "Is it?"), ("assistant", "Yes."), ("user", "Is it?")]})
    with RippleMem(url, bank=bank) as memory:
        texts = [turn.text for turn in memory.turns(limit=100, order="oldest").turns]
    assert texts == ["First.", "One.", "Second.", "Two.", "Is it?", "Yes.", "Is it?", "No."]


def test_a_message_that_was_forgotten_stays_forgotten(url, bank):
    agent = create_agent(
        scripted("A.", "B."), middleware=[RippleMemMiddleware(url, bank=bank)], checkpointer=InMemorySaver()
    )
    agent.invoke({"messages": [("user", "My secret is a heron.")]}, config("t"))
    with RippleMem(url, bank=bank) as memory:
        memory.forget(memory.turns(order="oldest").turns[0].turn)
        agent.invoke({"messages": [("user", "Something else.")]}, config("t"))
        assert [turn.text for turn in memory.turns(order="oldest").turns] == ["A.", "Something else.", "B."]
        assert "heron" not in memory.ask("What is the secret?").context


def test_blocks_of_content_keep_their_form(url, bank):
    middleware = RippleMemMiddleware(url, bank=bank)
    create_agent(scripted("Ok."), middleware=[middleware]).invoke({"messages": [("user", "My kayak is red.")]})
    model = scripted("Red.")
    content = [{"type": "text", "text": "Which colour has my kayak?"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    create_agent(model, middleware=[middleware]).invoke({"messages": [HumanMessage(content)]})
    asked = model.asked[0][-1].content
    assert asked[:2] == content and "kayak is red" in asked[2]["text"], asked


def test_recall_opens_and_memory_raises_where_no_service_is(away, bank, caplog):
    model = scripted("Hello.")
    with pytest.raises(RippleMemError):
        create_agent(model, middleware=[RippleMemMiddleware(away, bank=bank)]).invoke({"messages": [("user", "Hi")]})
    assert "could not be read just now" in model.asked[0][-1].content and "recall failed" in caplog.text
    lenient = create_agent(scripted("Hello."), middleware=[RippleMemMiddleware(away, bank=bank, lenient=True)])
    assert lenient.invoke({"messages": [("user", "Hi")]})["messages"][-1].content == "Hello."
    assert "are not remembered" in caplog.text
    silent = create_agent(scripted("Hello."), middleware=[RippleMemMiddleware(away, bank=bank, remember=False)])
    assert silent.invoke({"messages": [("user", "Hi")]})["messages"][-1].content == "Hello."


def test_what_the_user_said_that_lasts_stands_behind_the_system_prompt(url, told):
    for tokens, prompt in ((300, "Be brief."), (300, None), (0, "Be brief.")):
        model = scripted("It is 3 km.")
        middleware = RippleMemMiddleware(url, bank=told, user="Ann", profile_tokens=tokens, remember=False)
        agent = create_agent(model, system_prompt=prompt, middleware=[middleware])
        agent.invoke({"messages": [("user", "How far is it to the harbour?")]})
        first = model.asked[0][0]
        wish = "From now on, always answer in metric units." in first.content
        assert (first.type, wish) == (("system", True) if tokens else ("system", False)), first
        assert first.content.startswith(prompt or "<recalled_memory>\n"), first
