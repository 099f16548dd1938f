#!/usr/bin/env python3
"""mem0_client.py URL TOKEN: what a program does with Mem0's published client against a memory of ours."""

import asyncio
import sys

from mem0 import AsyncMemoryClient, MemoryClient
from mem0.exceptions import MemoryError as Mem0Error
from mem0.exceptions import MemoryNotFoundError, ValidationError

url, token = sys.argv[1:]
client = MemoryClient(api_key=token, host=url)


def refused(kind, words, call):
    try:
        answer = call()
    except kind as error:
        assert words in str(error), str(error)
    else:
        raise AssertionError(f"not refused: {answer}")


def texts(found):
    return [memory["memory"] for memory in found["results"]]


# Add, then search finds it.
added = client.add(
    [{"role": "user", "content": "I moved to Lisbon last week."}, {"role": "assistant", "content": "Noted."}], user_id="ann"
)
assert [one["event"] for one in added["results"]] == ["ADD", "ADD"] and added["status"] == "SUCCEEDED", added
lisbon = added["results"][0]["id"]
client.add("I like tea.", user_id="ann@example.org", infer=False, metadata={"k": "v"}, timestamp=1795000000)
found = client.search("Where did Ann move?", filters={"user_id": "ann"})
assert texts(found)[0] == "I moved to Lisbon last week.", found
assert found["results"][0]["id"] == lisbon and found["results"][0]["user_id"] == "ann", found
assert isinstance(found["results"][0]["score"], float)
assert len(client.search("Where did Ann move?", filters={"user_id": "ann"}, top_k=1)["results"]) == 1
tea = client.search("tea", filters={"AND": [{"user_id": "ann@example.org"}]}, rerank=True)["results"][0]
assert (tea["memory"], tea["metadata"], tea["created_at"]) == ("I like tea.", {"k": "v"}, "2026-11-18T11:06:40Z"), tea

# Who asks, and what was said before: fields of ours, which the client passes on.
asked = {"filters": {"user_id": "ann"}, "asker": "ann", "said_before": [{"speaker": "ann", "text": "I am so glad I moved."}]}
assert texts(client.search("Where do I live now?", **asked))[0] == "I moved to Lisbon last week."
stranger = client.search("Where do I live?", filters={"user_id": "ann"}, asker="cy")
assert stranger["results"] == [] and '"cy" does not speak' in stranger["notice"], stranger
nobody = client.search("Where do I live?", filters={"user_id": "nobody"})
assert nobody["results"] == [] and "no memory of these ids" in nobody["notice"], nobody

# A narrower scope is found by the wider one, not the other way round.
client.add("The ferry leaves at noon.", user_id="ann", run_id="trip/1")
assert "The ferry leaves at noon." in texts(client.search("When does the ferry leave?", filters={"user_id": "ann"}))
assert texts(client.get_all(filters={"run_id": "trip/1"})) == ["The ferry leaves at noon."]
assert texts(client.get_all(filters={"user_id": "ann", "run_id": "trip/1"})) == ["The ferry leaves at noon."]
assert texts(client.get_all(filters={"user_id": "ann", "run_id": "trip/2"})) == []

# Get, list, update, history.
assert client.get(lisbon)["memory"] == "I moved to Lisbon last week."
page = client.get_all(filters={"user_id": "ann"}, page=1, page_size=2)
assert page["count"] == 3 and len(page["results"]) == 2 and page["next"] and not page["previous"], page
assert len(client.get_all(filters={"user_id": "ann"}, page=2, page_size=2)["results"]) == 1
assert client.update(lisbon, text="I moved to Porto last week.")["memory"] == "I moved to Porto last week."
assert client.update(lisbon, metadata={"city": "Porto"})["id"] == lisbon
porto = client.get(lisbon)
assert (porto["memory"], porto["metadata"]) == ("I moved to Porto last week.", {"city": "Porto"}), porto
history = client.history(lisbon)
assert [(one["event"], one["new_memory"]) for one in history] == [
    ("ADD", "I moved to Lisbon last week."),
    ("UPDATE", "I moved to Porto last week."),
    ("UPDATE", "I moved to Porto last week."),
], history
found = client.search("Where did Ann move?", filters={"user_id": "ann"})
assert "I moved to Porto last week." in texts(found) and "I moved to Lisbon last week." not in texts(found), found

# Filters: of several scopes, of metadata, in any depth; and a threshold on the scores of a search.
def listed(filters):
    return sorted(texts(client.get_all(filters=filters)))


either = {"OR": [{"user_id": "ann@example.org"}, {"run_id": "trip/1"}]}
assert listed(either) == ["I like tea.", "The ferry leaves at noon."], listed(either)
assert listed({"user_id": {"in": ["ann@example.org", "nobody"]}}) == ["I like tea."]
assert listed({"AND": [{"user_id": "ann"}, {"metadata": {"city": "Porto"}}]}) == ["I moved to Porto last week."]
assert listed({"AND": [{"user_id": "ann"}, {"metadata": {"city": {"in": ["Lisbon"]}}}]}) == []
assert listed({"AND": [{"user_id": "ann"}, {"NOT": {"metadata": {"city": "*"}}}]}) == ["Noted.", "The ferry leaves at noon."]
assert listed({"AND": [either, {"metadata": {"k": {"ne": "w"}}}, {"metadata": {"k": "*"}}]}) == ["I like tea."]
of_porto = {"AND": [{"user_id": "ann"}, {"metadata": {"city": {"eq": "Porto"}}}]}
assert texts(client.search("When does the ferry leave?", filters=of_porto)) in ([], ["I moved to Porto last week."])
ferry = client.search("When does the ferry leave?", filters=either)["results"]
best = max(one["score"] for one in ferry)
above = client.search("When does the ferry leave?", filters=either, threshold=best)["results"]
assert texts({"results": above}) == [one["memory"] for one in ferry if one["score"] >= best], (ferry, above)

# Users.
users = {(one["type"], one["name"]): one["total_memories"] for one in client.users()["results"]}
assert users == {("user", "ann"): 3, ("user", "ann@example.org"): 1, ("run", "trip/1"): 1}, users

# An omitted scope is an error that says so.
refused(ValidationError, "user_id", lambda: client.search("tea"))
refused(ValidationError, "user_id", lambda: client.get_all(filters={}))
refused(ValidationError, "user_id", lambda: client.add("Nobody's."))
refused(ValidationError, "user_id", lambda: client.delete_all())
refused(ValidationError, "every memory", lambda: client.delete_all(user_id="*"))
assert client.get_all(filters={"user_id": "ann"})["count"] == 3, "nothing was deleted"

# What cannot be the same is refused by name.
refused(Mem0Error, "expiration_date", lambda: client.add("x", user_id="ann", expiration_date="2030-01-01"))
refused(Mem0Error, "created_at", lambda: client.get_all(filters={"user_id": "ann", "created_at": {"gte": "2024-01-01"}}))
refused(Mem0Error, "icontains", lambda: client.get_all(filters={"user_id": "ann", "metadata": {"k": {"icontains": "v"}}}))
refused(Mem0Error, "/v1/summary/", lambda: client.get_summary(filters={"user_id": "ann"}))
refused(MemoryNotFoundError, "no such id", lambda: client.get("0b5c1f7e-1111-4a4a-9c9c-000000000001"))

# Delete, then it is gone.
assert client.delete(lisbon)["message"]
refused(MemoryNotFoundError, "does not exist", lambda: client.get(lisbon))
refused(MemoryNotFoundError, "does not exist", lambda: client.history(lisbon))
refused(MemoryNotFoundError, "does not exist", lambda: client.update(lisbon, text="x"))
assert not any("Porto" in text for text in texts(client.search("Where did Ann move?", filters={"user_id": "ann"})))
three = [{"role": "user", "content": text} for text in "xyz"]
ids = [one["id"] for one in client.add(three, agent_id="a")["results"]]
client.batch_update([{"memory_id": ids[0], "text": "The first."}, {"memory_id": ids[1], "metadata": {"n": 2}}])
assert sorted(texts(client.get_all(filters={"agent_id": "a"}))) == ["The first.", "y", "z"]
client.batch_delete([{"memory_id": one} for one in ids[:2]])
assert texts(client.get_all(filters={"agent_id": "a"})) == ["z"]
client.delete_all(user_id="ann")
assert client.get_all(filters={"user_id": "ann"})["count"] == 0 and client.get_all(filters={"run_id": "trip/1"})["count"] == 0
assert texts(client.get_all(filters={"user_id": "ann@example.org"})) == ["I like tea."]
client.delete_users(user_id="ann@example.org")
assert [one["name"] for one in client.users()["results"]] == ["a"]


async def asynchronous():
    client = AsyncMemoryClient(api_key=token, host=url)
    await client.add("The bassoon is in the attic.", user_id="bea")
    found = await client.search("Where is the bassoon?", filters={"user_id": "bea"})
    assert texts(found) == ["The bassoon is in the attic."], found


asyncio.run(asynchronous())
client.reset()
assert client.users()["results"] == []
for wrong in ["wrong", token + "x"]:
    refused(ValueError, "token is not known", lambda: MemoryClient(api_key=wrong, host=url))
