"""Drives a server of tools with the official client of the Model Context Protocol, and checks what it sees.

    mcp_client.py CHECK SERVER

SERVER is JSON: {"command": …, "args": […]} for a server on stdin and stdout, {"url": …} for one over HTTP. It holds a
memory of its own with the default bank `me`; with "elsewhere", another process has it open. Ends with exit code 0 when the check holds.
"""

import asyncio
import json
import sys
from pathlib import Path

from jsonschema import Draft202012Validator
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.subscriptions import SubscriptionLost

# `initialize` and sessions; `server/discover` and neither.
REVISIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
TOOLS = ["remember", "recall", "answer", "evidence", "explain", "profile", "list", "show", "forget", "forget_turns", "status"]
READ_ONLY = ["recall", "answer", "evidence", "explain", "profile", "list", "show", "status"]
FORMATS = {"date-time", "uri"}


def connect(server, mode="auto", **options):
    started = {key: value for key, value in server.items() if key != "elsewhere"}
    return Client(server["url"] if "url" in server else StdioServerParameters(**started), mode=mode, **options)


class Tools:
    """A connected client whose calls are checked against the tools' schemas."""

    def __init__(self, client, tools):
        self.client, self.tools = client, {tool.name: tool for tool in tools}

    async def call(self, name, **arguments):
        result = await self.client.call_tool(name, arguments)
        text = result.content[0].text
        assert not result.is_error, f"{name}: {text}"
        tool = self.tools[name]
        Draft202012Validator(tool.input_schema).validate(arguments)
        Draft202012Validator(tool.output_schema).validate(result.structured_content)
        if name == "recall":
            assert text == (result.structured_content["context"] or text), text
        else:
            assert json.loads(text) == result.structured_content, "the text repeats the structured result"
        return result.structured_content

    async def fails(self, name, *words, **arguments):
        result = await self.client.call_tool(name, arguments)
        text = result.content[0].text
        assert result.is_error and result.structured_content is None, result
        for word in words:
            assert word in text, f"{word!r} is not in: {text}"


async def open_tools(client):
    return Tools(client, (await client.list_tools()).tools)


def formats(schema):
    if isinstance(schema, dict):
        yield from [schema["format"]] if isinstance(schema.get("format"), str) else []
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from formats(part)


def keys(schema):
    if isinstance(schema, dict):
        yield from schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            yield from keys(part)


async def each_tool(server):
    """Every tool does what it says, in both revisions."""
    for mode, revision in REVISIONS.items():
        async with connect(server, mode) as client:
            assert client.protocol_version == revision, client.protocol_version
            assert client.server_info.name == "ripplemem" and "recall" in client.instructions
            # A hint must not forbid an answer (docs/agent.md).
            assert "do not know" not in client.instructions and "supported" in client.instructions, client.instructions
            tools = await open_tools(client)
            assert list(tools.tools) == [name for name in TOOLS if name != "answer"], list(tools.tools)
            turns = [
                {"speaker": "Ann", "text": "I moved to Lisbon in May.", "turn": f"{mode}-1", "time": "2024-05-06T09:00:00+01:00"},
                {"speaker": "Bo", "text": "Is your piano in Lisbon already?", "turn": f"{mode}-2", "session": "move"},
                {"speaker": "Ann", "text": "The piano arrives on Friday with the red sofa."},
            ]
            stored = await tools.call("remember", turns=turns)
            assert stored["bank"] == "me" and stored["included"] and stored["turns"][:2] == [f"{mode}-1", f"{mode}-2"], stored
            assert stored["turns"][2].startswith("mcp-"), stored
            recalled = await tools.call("recall", question="When does the piano arrive?", after=stored["after"])
            assert "The piano arrives on Friday" in recalled["context"], recalled
            evidence = await tools.call("evidence", question="Who moved to Lisbon?", asked_at="2024-06-01T00:00:00Z")
            assert f"{mode}-1" in str(evidence["units"]) and evidence["trace"]["first_hop"], evidence
            status = await tools.call("status", bank="me")
            assert status["banks"] == ["me"] and status["counts"]["units"] >= 3 and not status["read_only"], status
            assert status["default_bank"] == "me" and status["problem"] is None and status["behind"] == 0, status
            short = recalled["context"].split("] Ann: The piano")[0].rsplit("[", 1)[1]
            assert short.startswith("~") and len(short) == 7, recalled
            listed = await tools.call("list", limit=2)
            assert short in [turn["id"] for turn in listed["turns"]] and listed["more"] >= 1, listed
            shown = await tools.call("show", turn=short)
            assert shown["turn"] == stored["turns"][2] and shown["text"].startswith("The piano arrives"), shown
            why = await tools.call("explain", question="When does the piano arrive?", turn=short)
            assert why["quoted"] and why["turn"] == stored["turns"][2] and len(why["steps"]) == 12, why
            forgotten = await tools.call("forget", turn=short)
            assert forgotten["included"] and forgotten["held"] and forgotten["turn"] == stored["turns"][2], forgotten
            recalled = await tools.call("recall", question="When does the piano arrive?")
            assert "Friday" not in recalled["context"], recalled
            again = await tools.call("forget", turn=stored["turns"][2], wait_seconds=0)
            assert again["turn"] == stored["turns"][2] and again["held"] is False, again
            await tools.fails("show", "holds no turn", turn=stored["turns"][2])
            why = await tools.call("explain", question="When does the piano arrive?", turn=stored["turns"][2])
            assert not why["quoted"] and why["failed"] == "stored" and "deleted" in why["sentence"], why
            meant = await tools.call("forget_turns", speaker="ann")
            assert meant["count"] == len(meant["turns"]) and meant["count"] >= 1 and not meant["included"], meant
            await tools.fails("forget_turns", "repeat it", speaker="ann", since="2000-01-01T00:00:00Z", confirm="0" * 12)
            deleted = await tools.call("forget_turns", speaker="ann", confirm=meant["confirm"])
            assert deleted["included"] and deleted["count"] == meant["count"] and not deleted["turns"], deleted
            assert not (await tools.call("list", speaker="Ann"))["turns"]
            await tools.fails("forget_turns", "select")
            for turn in stored["turns"]:
                await tools.call("forget", turn=turn)


async def descriptions(server):
    """What a client shows to its model is plain, small and true."""
    async with connect(server) as client:
        tools = (await client.list_tools()).tools
        for tool in tools:
            for schema in [tool.input_schema, tool.output_schema]:
                Draft202012Validator.check_schema(schema)
                assert schema["type"] == "object" and "properties" in schema, tool.name
                assert set(formats(schema)) <= FORMATS, (tool.name, set(formats(schema)))
            # Some models and clients read no references and no alternatives.
            assert not {"$ref", "$defs", "anyOf", "oneOf", "$schema"} & set(keys(tool.input_schema)), tool.name
            assert "null" not in str(tool.input_schema), tool.name
            for name, field in tool.input_schema["properties"].items():
                assert field.get("description"), (tool.name, name)
            hints, writes = tool.annotations, tool.name not in READ_ONLY
            assert hints.title and hints.open_world_hint is False and hints.read_only_hint is not writes, tool
            if writes:
                assert hints.destructive_hint is tool.name.startswith("forget"), tool
                assert hints.idempotent_hint is tool.name.startswith("forget"), tool
        shown = [{"name": t.name, "description": t.description, "parameters": t.input_schema} for t in tools]
        # About 2,900 tokens.
        assert len(json.dumps(shown)) < 11_600, len(json.dumps(shown))
        # With the schemas of results, which some clients show as well.
        whole = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        assert len(json.dumps(whole)) < 23_500, len(json.dumps(whole))


async def errors(server):
    """What goes wrong is a result that says what to do, and the server goes on."""
    async with connect(server) as client:
        tools = await open_tools(client)
        good = {"speaker": "Ann", "text": "I keep bees."}
        nothing = await tools.call("recall", question="Who keeps bees?", bank="nobody")
        assert (nothing["supported"], nothing["units"]) == (False, 0) and "bank nobody" in nothing["notice"], nothing
        await tools.fails("recall", "missing field `question`")
        await tools.fails("recall", "unknown field `query`", "`question`", query="Who keeps bees?")
        await tools.fails("recall", "bank", "..", question="Who keeps bees?", bank="../other")
        await tools.call("remember", turns=[good])
        await tools.fails("recall", "empty", question=" ")
        await tools.fails("recall", "after", "as it came", question="Bees?", after="yesterday")
        await tools.fails("recall", "as_of", "RFC 3339", question="Bees?", as_of="yesterday")
        await tools.fails("remember", "turns", "1 to 1000", turns=[])
        await tools.fails("remember", "speaker", turns=[{**good, "speaker": " "}])
        await tools.fails("remember", "time", turns=[{**good, "time": "noon"}])
        await tools.fails("remember", "unknown field `mood`", turns=[{**good, "mood": "calm"}])
        await tools.fails("remember", "kind", "assistant", turns=[{**good, "role": "parrot"}])
        await tools.fails("forget", "short id", "list", turn="~000000")
        await tools.fails("forget", "turn", turn="")
        await tools.fails("answer", "no language model", "llm.endpoint", "recall", question="Who keeps bees?")
        for name in ["nothing", "", "Recall"]:
            try:
                await client.call_tool(name, {})
                raise AssertionError(f"{name} is a tool")
            except MCPError as error:
                assert error.error.code == -32602, error
        assert "bees" in (await tools.call("recall", question="Who keeps bees?"))["context"]


async def read_only(server):
    """A read-only server offers and takes nothing that changes the memory."""
    async with connect(server) as client:
        tools = await open_tools(client)
        assert list(tools.tools) == [name for name in READ_ONLY if name != "answer"], list(tools.tools)
        for name in ["remember", "forget"]:
            try:
                await client.call_tool(name, {"turns": [{"speaker": "Ann", "text": "Hello"}], "turn": "1"})
                raise AssertionError(f"{name} is a tool")
            except MCPError as error:
                assert "read-only" in str(error), error
        assert (await tools.call("status"))["read_only"]


async def answers(server):
    """With a language model, the tool `answer` answers and cites."""
    async with connect(server) as client:
        tools = await open_tools(client)
        assert list(tools.tools) == TOOLS, list(tools.tools)
        await tools.call("remember", turns=[{"speaker": "Ann", "text": "I keep bees in Porto.", "turn": "1"}])
        answered = await tools.call("answer", question="Where does Ann keep bees?")
        assert answered["answer"]["text"] and answered["bank"] == "me", answered
        assert (await tools.call("status"))["language_model"], answered


async def without_bank(server):
    """Without a default bank, a call must name one."""
    async with connect(server) as client:
        tools = await open_tools(client)
        await tools.fails("recall", "bank: missing", "--bank", question="Who keeps bees?")
        stored = await tools.call("remember", bank="a/b", turns=[{"speaker": "Ann", "text": "I keep bees."}])
        assert stored["bank"] == "a/b", stored
        assert (await tools.call("recall", bank="a/b", question="Who keeps bees?"))["units"] == 1


async def many_at_once(server):
    """Calls that run side by side are all answered, and what was stored is found."""
    async with connect(server) as client:
        tools = await open_tools(client)
        said = [{"speaker": "Ann", "text": f"Hive {n} stands in garden {n}.", "turn": str(n)} for n in range(20)]
        await asyncio.gather(*[tools.call("remember", turns=[turn]) for turn in said])
        found = await asyncio.gather(*[tools.call("recall", question=f"Where does hive {n} stand?") for n in range(20)])
        assert all(f"garden {n}." in one["context"] for n, one in enumerate(found)), found


async def resources(server):
    """Each bank is a resource that says how much it holds."""
    async with connect(server) as client:
        tools = await open_tools(client)
        assert (await client.list_resources()).resources == []
        for bank in ["me", "a/b"]:
            await tools.call("remember", bank=bank, turns=[{"speaker": "Ann", "text": "I keep bees."}])
        listed = (await client.list_resources()).resources
        assert [one.name for one in listed] == ["a/b", "me"], listed
        read = await client.read_resource(str(listed[0].uri))
        assert json.loads(read.contents[0].text) == {"bank": "a/b", "units": 1, "edges": 0}, read
        templates = (await client.list_resource_templates()).resource_templates
        expected = ["ripplemem://banks/{+bank}", "ripplemem://banks/{+bank}{?question,asked_at,asker}"]
        expected.append("ripplemem://profiles/{+bank}{?person}")
        assert [one.uri_template for one in templates] == expected, templates
        read = await client.read_resource("ripplemem://banks/a/b?question=Who%20keeps%20bees%3F")
        found = json.loads(read.contents[0].text)
        assert found["bank"] == "a/b" and "I keep bees." in found["context"] and found["supported"], read
        read = await client.read_resource("ripplemem://profiles/a/b?person=Nobody")
        assert json.loads(read.contents[0].text)["text"] == "", read
        missing = ["ripplemem://profiles/../me", "ripplemem://banks/nobody", "ripplemem://banks/../me", "file:///etc/passwd"]
        missing += ["ripplemem://banks/me?question=", "ripplemem://banks/me?x=y"]
        read = await client.read_resource("ripplemem://banks/nobody?question=Bees%3F")
        assert "holds nothing" in json.loads(read.contents[0].text)["notice"], read
        for uri in missing:
            try:
                await client.read_resource(uri)
                raise AssertionError(f"{uri} is a resource")
            except MCPError as error:
                assert error.error.code in (-32602, -32002), error


async def follows(server):
    """A client hears of a question that it follows when other evidence is found, and not otherwise."""
    kayak, bees = "ripplemem://banks/me?question=Where%20is%20the%20red%20kayak%3F", "ripplemem://banks/b?question=Who%20keeps%20bees%3F"

    def said(bank, text):
        return {"bank": bank, "turns": [{"speaker": "Ann", "text": text}]}

    async def found(client, uri):
        return json.loads((await client.read_resource(uri, cache_mode="bypass")).contents[0].text)["context"]

    # A client of 2025-11-25 follows each question by a request, also in a bank that holds nothing yet.
    updates = asyncio.Queue()

    async def heard(message):
        if getattr(message, "method", "") == "notifications/resources/updated":
            updates.put_nowait(message.params.uri)

    async with connect(server, "legacy", message_handler=heard) as client:
        assert client.server_capabilities.resources.subscribe, client.server_capabilities
        tools = await open_tools(client)
        for uri in [kayak, kayak, bees]:
            await client.subscribe_resource(uri)
        await tools.call("remember", **said("me", "The red kayak is in the boathouse."))
        assert await updates.get() == kayak
        assert "boathouse" in await found(client, kayak)
        # Another bank changed: the first question is not heard of.
        await tools.call("remember", **said("b", "I keep bees."))
        assert await updates.get() == bees
        await client.unsubscribe_resource(kayak)
        await tools.call("remember", **said("me", "Marta took the red kayak to the lake."))
        await tools.call("remember", **said("b", "Bo keeps bees, too."))
        assert await updates.get() == bees and updates.empty(), updates
        for uri in ["ripplemem://banks/me", "file:///etc/passwd", "ripplemem://banks/me?question="]:
            try:
                await client.subscribe_resource(uri)
                raise AssertionError(f"{uri} is followed")
            except MCPError as error:
                assert error.error.code == -32602, error

    # One of 2026-07-28 listens to all at once.
    async with connect(server) as client:
        tools = await open_tools(client)
        await tools.call("status")  # A memory that is not open yet knows no more than one elsewhere.
        asked = [kayak, bees, "ripplemem://banks/me"]
        async with client.listen(resource_subscriptions=asked, tools_list_changed=True) as listening:
            assert listening.honored.resource_subscriptions == [kayak, bees], listening.honored
            assert not listening.honored.tools_list_changed, listening.honored
            if server.get("elsewhere"):
                # What changed since the acknowledgement is not known.
                assert {(await anext(listening)).uri, (await anext(listening)).uri} == {kayak, bees}
            await tools.call("remember", **said("me", "The red kayak lies at the lake, upside down."))
            assert (await anext(listening)).uri == kayak
            assert "upside down" in await found(client, kayak)
            await tools.call("remember", **said("b", "Cem keeps bees in Porto."))
            # On a busy machine what changed before the listening began may be told once more.
            changed = [(await anext(listening)).uri]
            while changed[-1] == kayak and len(changed) < 3:
                changed.append((await anext(listening)).uri)
            assert changed[-1] == bees, changed
        try:
            async with client.listen(resource_subscriptions=["ripplemem://banks/me?question="]) as listening:
                await anext(listening)
                raise AssertionError("nothing is followed")
        except SubscriptionLost as error:
            assert "empty" in str(error.__cause__), error


CHECKS = [each_tool, descriptions, errors, read_only, answers, without_bank, many_at_once, resources, follows]

if __name__ == "__main__":
    (check,) = [check for check in CHECKS if check.__name__ == sys.argv[1]]
    asyncio.run(asyncio.wait_for(check(json.loads(sys.argv[2])), 120))
