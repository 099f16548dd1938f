"""Times add, get and pop of the session of OpenAI Agents beside `SQLiteSession`, in one run."""

import asyncio
import statistics
import time

from agents import SQLiteSession

from ripplemem.openai_agents import RippleMemSession
from service import Service

NUMBER = 100


async def timed(calls):
    """The median and the 95th percentile of calls, in milliseconds."""
    took = []
    for call in calls:
        began = time.perf_counter()
        await call()
        took.append((time.perf_counter() - began) * 1e3)
    return f"{statistics.median(took):.2f} / {statistics.quantiles(took, n=20)[-1]:.2f}"


async def main(url):
    print(f"| {NUMBER} calls, median / 95 % in ms | `add_items` of two | `get_items(10)` | `get_items()` | `pop_item` |")
    print("|---|---|---|---|---|")
    for name, session in (("RippleMemSession", RippleMemSession("s", url, bank="measured")), ("SQLiteSession", SQLiteSession("s"))):
        items = [[{"role": "user", "content": f"Question {n}?"}, {"role": "assistant", "content": f"Answer {n}."}] for n in range(NUMBER)]
        add = await timed(lambda two=two: session.add_items(two) for two in items)
        last = await timed(lambda: session.get_items(10) for _ in range(NUMBER))
        every = await timed(session.get_items for _ in range(NUMBER))
        pop = await timed(session.pop_item for _ in range(NUMBER))
        print(f"| `{name}` | {add} | {last} | {every} | {pop} |")


service = Service()
try:
    asyncio.run(main(service.url))
finally:
    service.end()
