"""The store of LangGraph: its contract, its in-memory store side by side, two processes, and outages."""

import asyncio
import json
import random
import threading
import time
from datetime import datetime, timezone

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from ripplemem import RippleMem, RippleMemError
from ripplemem.langgraph import RippleMemStore


@pytest.fixture
def store(url, bank):
    one = RippleMemStore(url, bank=bank)
    yield one
    one.close()


def values(items):
    return sorted((item.namespace, item.key, json.dumps(item.value, sort_keys=True)) for item in items)


def test_a_random_program_has_the_same_results_as_in_memory(store):
    """Puts, gets, deletions, searches with filters and lists of namespaces, both stores beside each other."""
    other, chance = InMemoryStore(), random.Random(7)
    namespaces = [("users", name, kind) for name in ("ann", "bo", "ann2") for kind in ("facts", "plans")] + [("users",)]
    keys = [f"k{n}" for n in range(6)] + ["a/b.c", "ö" * 200]
    # In Python, and so in memory, True is 1; in JSON it is not.
    scalars = [None, True, False, 3, 1.5, 2, "3", "", "a", [3, 2], [], {"x": 3}, {"x": {"y": "z"}}]
    filters = [None, {"a": 3}, {"a": True}, {"a": {"$ne": 3}}, {"a": {"$eq": "3"}}, {"a": None}, {"a": [3, 2]}]
    filters += [{"a": {"x": 3}}, {"a": {"x": {"y": "z"}}}, {"a": 3, "n": {"$gte": 40}}, {"n": {"$lt": 60, "$gt": 20}}]
    for step in range(250):
        namespace, key = chance.choice(namespaces), chance.choice(keys)
        what = chance.random()
        if what < 0.45:
            value = {"n": chance.randrange(100), "text": f"note {step}"}
            if chance.random() < 0.8:
                value["a"] = chance.choice(scalars)
            for one in (store, other):
                one.put(namespace, key, value)
        elif what < 0.6:
            for one in (store, other):
                one.delete(namespace, key)
        elif what < 0.8:
            found, wanted = store.get(namespace, key), other.get(namespace, key)
            assert (found and found.value) == (wanted and wanted.value), step
        elif what < 0.95:
            prefix = namespace[: chance.randrange(4)]
            chosen = chance.choice(filters)
            found = store.search(prefix, filter=chosen, limit=1_000)
            assert values(found) == values(other.search(prefix, filter=chosen, limit=1_000)), (step, prefix, chosen)
        else:
            depth = chance.choice([None, 1, 2])
            held = {item.namespace for item in other.search((), limit=1_000)}
            wanted = sorted({name[:depth] for name in held})
            assert store.list_namespaces(max_depth=depth) == wanted, step


def test_times_of_items(store):
    store.put(("times",), "k", {"v": 1})
    first = store.get(("times",), "k")
    time.sleep(0.01)
    store.put(("times",), "k", {"v": 2})
    second = store.get(("times",), "k")
    assert second.created_at == first.created_at < second.updated_at <= datetime.now(timezone.utc)
    store.put(("times",), "other", {"v": 3})
    assert [item.key for item in store.search(("times",))] == ["other", "k"]


def test_a_batch_reads_before_it_writes_and_the_last_put_holds(store):
    store.put(("batch",), "k", {"v": 0})
    results = store.batch(
        [
            PutOp(("batch",), "k", {"v": 1}),
            GetOp(("batch",), "k"),
            PutOp(("batch",), "k", {"v": 2}),
            PutOp(("batch",), "gone", {"v": 3}),
            PutOp(("batch",), "gone", None),
            SearchOp(("batch",), limit=5),
            ListNamespacesOp(match_conditions=(MatchCondition("prefix", ("batch",)),)),
        ]
    )
    assert results[1].value == {"v": 0} and [item.value for item in results[5]] == [{"v": 0}], results
    assert results[6] == [("batch",)] and results[0] is None
    assert store.get(("batch",), "k").value == {"v": 2} and store.get(("batch",), "gone") is None


def test_a_search_by_words_finds_filters_and_pages(store):
    facts = {
        "home": "Ann lives in Lisbon above a bakery.",
        "bees": "Ann's sister Clara keeps bees in Porto.",
        "car": "The green car is in the garage until Friday.",
        "tea": "Bo drinks jasmine tea in the morning.",
    }
    for at, (key, text) in enumerate(facts.items()):
        store.put(("people", "facts"), key, {"text": text, "n": at})
    store.put(("people2",), "home", {"text": "Ann lives in Madrid."})
    best = store.search(("people",), query="Where does Ann live?")
    assert best[0].key == "home" and all(item.namespace == ("people", "facts") for item in best), best
    assert {item.key for item in best} == set(facts), "every item is ranked"
    scores = [item.score for item in best]
    assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1], scores
    paged = [store.search(("people",), query="Where does Ann live?", limit=1, offset=at)[0].key for at in range(4)]
    assert paged == [item.key for item in best]
    assert [i.key for i in store.search(("people",), query="Where does Ann live?", filter={"n": {"$gte": 3}})] == ["tea"]
    assert store.search(("nobody",), query="Where does Ann live?") == []


def test_a_filter_comes_before_the_choice(store):
    """500 items of which ten fit: all ten are found, whatever the query prefers."""
    puts = [
        PutOp(("many",), f"k{n}", {"text": f"The train number {n} is late.", "rare": n % 50 == 0}, index=None)
        for n in range(500)
    ]
    store.batch(puts)
    found = store.search(("many",), query="late trains", filter={"rare": True}, limit=20)
    assert {item.key for item in found} == {f"k{n}" for n in range(0, 500, 50)}
    assert len(store.search(("many",), filter={"rare": True}, limit=20)) == 10
    keys = {item.key for at in range(0, 600, 100) for item in store.search(("many",), limit=100, offset=at)}
    assert len(keys) == 500


def test_what_is_indexed(store):
    store.put(("index",), "no", {"text": "The secret word is kumquat."}, index=False)
    store.put(("index",), "title", {"title": "Kayaks", "body": "The secret word is kumquat."}, index=["title"])
    assert [item.key for item in store.search(("index",), query="kumquat")] == ["title"]
    assert {item.key for item in store.search(("index",))} == {"no", "title"}
    assert store.get(("index",), "no").value == {"text": "The secret word is kumquat."}
    with RippleMem(store._access._url, bank=store._access.calls.bank(None)) as memory:
        assert "kumquat" not in memory.ask("What is the secret word?").context


def test_values_come_back_exactly(store):
    exact = {"float": 1.0, "int": 1, "big": 2**53 - 1, "tiny": 1e-300, "none": None, "ünï": "日本 🐝 \x01", "l": [[], {}]}
    store.put(("exact",), "k", exact)
    assert store.get(("exact",), "k").value == exact
    assert isinstance(store.get(("exact",), "k").value["float"], float)
    large = {"content": "".join(f"line {n}\n" for n in range(30_000)), "kind": "file", "n": 3}
    store.put(("exact",), "large", large)
    assert store.get(("exact",), "large").value == large
    assert [item.key for item in store.search(("exact",), filter={"kind": "file", "n": {"$lt": 4}})] == ["large"]
    store.put(("exact",), "empty", {})
    assert store.get(("exact",), "empty").value == {}


def test_long_and_strange_names(store):
    uuids = tuple(f"3f2b8c1e-7a54-4d0b-9c6e-00000000000{n}" for n in range(4))
    store.put(uuids, "k" * 3_000, {"v": 1})
    assert store.get(uuids, "k" * 3_000).key == "k" * 3_000
    assert store.search(uuids[:2])[0].namespace == uuids and store.list_namespaces(prefix=uuids[:1]) == [uuids]
    for namespace in [("a\nb",), ("a\\x0ab",), ("a",), ("🐝", "ö %_*[")]:
        store.put(namespace, "k", {"is": list(namespace)})
    for namespace in [("a\nb",), ("a\\x0ab",), ("a",), ("🐝", "ö %_*[")]:
        assert store.get(namespace, "k").value == {"is": list(namespace)}
        assert [item.namespace for item in store.search(namespace)] == [namespace]
        assert store.list_namespaces(prefix=namespace) == [namespace]
    # A period in a key is none between labels.
    store.put(("dots",), "x.y", {"v": 1})
    store.put(("dots", "x"), "y", {"v": 2})
    assert store.get(("dots",), "x.y").value == {"v": 1} and store.get(("dots", "x"), "y").value == {"v": 2}
    with pytest.raises(InvalidNamespaceError):
        store.put(("x" * 300,), "k", {"v": 1})


def test_what_is_not_supported_is_said(store):
    with pytest.raises(NotImplementedError):
        store.put(("ttl",), "k", {"v": 1}, ttl=5)
    with pytest.raises(ValueError, match="operator"):
        store.search((), filter={"a": {"$regex": "x"}})


def test_a_deletion_deletes(store, url, bank):
    store.put(("gone",), "k", {"text": "Ann's secret is a tattoo of a heron."})
    assert store.search(("gone",), query="What is Ann's secret?")
    store.delete(("gone",), "k")
    assert store.get(("gone",), "k") is None and store.search(("gone",)) == [] and store.list_namespaces() == []
    with RippleMem(url, bank=bank) as memory:
        assert "heron" not in memory.ask("What is Ann's secret?").context
    store.put(("gone",), "k", {"text": "She has none."})
    assert store.get(("gone",), "k").value == {"text": "She has none."}


def test_the_same_store_from_several_loops_and_threads(store):
    async def write(at):
        await store.aput(("loops",), f"k{at}", {"at": at})
        return (await store.aget(("loops",), f"k{at}")).value

    for at in range(3):
        assert asyncio.run(write(at)) == {"at": at}
    assert [store.get(("loops",), f"k{at}").value for at in range(3)] == [{"at": at} for at in range(3)]
    wrong = []

    def writer(name):
        for n in range(10):
            store.put(("threads", name), f"k{n}", {"n": n})
            if store.get(("threads", name), f"k{n}").value != {"n": n}:
                wrong.append((name, n))

    threads = [threading.Thread(target=writer, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(store.search(("threads",), limit=100)) == 40

    async def many():
        await asyncio.gather(*[store.aput(("gathered",), f"k{n}", {"n": n}) for n in range(40)])
        return len(await store.asearch(("gathered",), limit=100))

    assert asyncio.run(many()) == 40


WRITER = """
import sys
from ripplemem.langgraph import RippleMemStore
store = RippleMemStore(sys.argv[1], bank=sys.argv[2])
for n in range(20):
    store.put(("shared",), f"{sys.argv[3]}{n}", {"by": sys.argv[3], "n": n})
    store.put(("shared",), "both", {"by": sys.argv[3], "n": n})
print(len([n for n in range(20) if store.get(("shared",), f"{sys.argv[3]}{n}").value == {"by": sys.argv[3], "n": n}]))
"""


def test_two_processes_write_at_once(store, url, bank, elsewhere):
    results = []
    threads = [threading.Thread(target=lambda name=name: results.append(elsewhere(WRITER, url, bank, name))) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.strip() for one in results] == ["20", "20"]
    assert len(store.search(("shared",), limit=100)) == 41
    assert store.get(("shared",), "both").value["n"] == 19


def test_a_service_that_is_killed_and_comes_back(service, bank):
    store = RippleMemStore(service.url, bank=bank)
    store.put(("kept",), "k", {"v": 1})
    service.kill()
    for call in (lambda: store.get(("kept",), "k"), lambda: store.put(("kept",), "k2", {"v": 2}), lambda: store.search(())):
        with pytest.raises(RippleMemError):
            call()
    service.start()
    assert store.get(("kept",), "k").value == {"v": 1} and store.get(("kept",), "k2") is None
    store.put(("kept",), "k2", {"v": 2})
    assert len(store.search(("kept",))) == 2


GRAPH = """
import sys
from typing import Annotated, TypedDict
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore
from ripplemem.langgraph import RippleMemStore

class State(TypedDict):
    said: str
    found: str

def remember(state, *, store: BaseStore):
    if not state["said"].endswith("?"):
        store.put(("users", "ann"), state["said"][:20], {"text": state["said"]})
    return {}

def recall(state, *, store: BaseStore):
    found = store.search(("users", "ann"), query=state["said"], limit=1)
    return {"found": found[0].value["text"] if found else ""}

graph = StateGraph(State)
graph.add_node("remember", remember)
graph.add_node("recall", recall)
graph.add_edge(START, "remember")
graph.add_edge("remember", "recall")
graph.add_edge("recall", END)
agent = graph.compile(store=RippleMemStore(sys.argv[1], bank=sys.argv[2]))
for said in sys.argv[3:]:
    print(agent.invoke({"said": said, "found": ""})["found"])
"""


def test_a_graph_remembers_across_processes(url, bank, elsewhere):
    pytest.importorskip("langgraph.graph")
    elsewhere(GRAPH, url, bank, "I moved to Lisbon in May.", "My sister keeps bees.")
    assert elsewhere(GRAPH, url, bank, "Where did I move?").strip() == "I moved to Lisbon in May."
