"""Times put, get, search and delete of the store of LangGraph beside `InMemoryStore`, in one run."""

import statistics
import time

from langgraph.store.memory import InMemoryStore

from ripplemem.langgraph import RippleMemStore
from service import Service

NUMBER = 200


def timed(calls):
    """The median and the 95th percentile of calls, in milliseconds."""
    took = []
    for call in calls:
        began = time.perf_counter()
        call()
        took.append((time.perf_counter() - began) * 1e3)
    return f"{statistics.median(took):.2f} / {statistics.quantiles(took, n=20)[-1]:.2f}"


service = Service()
try:
    print(f"| {NUMBER} calls, median / 95 % in ms | put | get | search by a filter | search by a query | delete |")
    print("|---|---|---|---|---|---|")
    for name, store in (("RippleMemStore", RippleMemStore(service.url, bank="measured")), ("InMemoryStore", InMemoryStore())):
        places = ["Lisbon", "Porto", "Braga", "Faro"]
        put = timed(
            lambda n=n: store.put(("m", f"u{n % 5}"), f"k{n}", {"text": f"Person {n} lives in {places[n % 4]}.", "n": n})
            for n in range(NUMBER)
        )
        get = timed(lambda n=n: store.get(("m", f"u{n % 5}"), f"k{n}") for n in range(NUMBER))
        filtered = timed(lambda n=n: store.search(("m",), filter={"n": n}) for n in range(NUMBER))
        asked = timed(lambda n=n: store.search(("m", f"u{n % 5}"), query=f"Where does person {n} live?") for n in range(NUMBER))
        deleted = timed(lambda n=n: store.delete(("m", f"u{n % 5}"), f"k{n}") for n in range(NUMBER))
        asked = asked if name == "RippleMemStore" else f"{asked} (in order of insertion: it has no embeddings)"
        print(f"| `{name}` | {put} | {get} | {filtered} | {asked} | {deleted} |")
finally:
    service.end()
