"""Deep Agents and langmem on the store of LangGraph."""

import pytest

from ripplemem.langgraph import RippleMemStore


@pytest.fixture
def store(url, bank):
    one = RippleMemStore(url, bank=bank)
    yield one
    one.close()


def test_files_of_deep_agents(store):
    backends = pytest.importorskip("deepagents.backends")
    files = backends.StoreBackend(store=store, namespace=lambda _: ("ann", "filesystem"))
    assert files.write("/notes/lisbon.md", "Ann moved to Lisbon.\nShe lives above a bakery.\n").error is None
    assert files.write("/plan.txt", "Buy bread.").error is None
    large = "\n".join(f"row {n}: " + "x" * 40 for n in range(3_000))
    assert files.write("/large.txt", large).error is None
    assert "above a bakery" in str(files.read("/notes/lisbon.md"))
    assert "row 2999" in str(files.read("/large.txt", offset=2_990))
    assert files.edit("/notes/lisbon.md", "bakery", "chapel").error is None
    assert "above a chapel" in str(files.read("/notes/lisbon.md"))
    assert {one["path"] for one in files.ls("/").entries} == {"/notes/", "/plan.txt", "/large.txt"}
    assert [one["path"] for one in files.grep("chapel").matches] == ["/notes/lisbon.md"]
    assert [one["path"] for one in files.glob("*.md", path="/notes").matches] == ["/notes/lisbon.md"]
    assert files.delete("/plan.txt").error is None
    assert files.read("/plan.txt").error
    for n in range(130):
        files.write(f"/many/{n}.txt", "x")
    assert len(files.ls("/many").entries) == 130


def test_memories_of_langmem(store):
    langmem = pytest.importorskip("langmem")
    namespace = ("memories", "ann")
    manage = langmem.create_manage_memory_tool(namespace, store=store)
    search = langmem.create_search_memory_tool(namespace, store=store)
    said = manage.invoke({"content": "Ann keeps bees in Porto.", "action": "create"})
    key = said.split()[-1]
    assert store.get(namespace, key).value["content"] == "Ann keeps bees in Porto."
    assert "bees in Porto" in str(search.invoke({"query": "Where does Ann keep bees?"}))
    manage.invoke({"content": "Ann keeps bees in Braga.", "action": "update", "id": key})
    assert "Braga" in str(search.invoke({"query": "Where does Ann keep bees?"}))
    manage.invoke({"action": "delete", "id": key})
    assert "Braga" not in str(search.invoke({"query": "Where does Ann keep bees?"}))
