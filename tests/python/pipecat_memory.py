#!/usr/bin/env python3
"""pipecat_memory.py URL TOKEN: Pipecat's own service for Mem0, unchanged, in a pipeline's place against a memory of ours."""

import asyncio
import sys

from loguru import logger
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.services.mem0.memory import Mem0MemoryService

url, token = sys.argv[1:]
# The service logs what goes wrong, and goes on.
failures = []
logger.remove()
logger.add(lambda message: failures.append(str(message)), level="ERROR")


async def main():
    service = Mem0MemoryService(api_key=token, host=url, user_id="pia", agent_id="guide", run_id="call-1")
    said = [
        {"role": "user", "content": "I moved to Lisbon last week."},
        {"role": "assistant", "content": "Lisbon is lovely."},
    ]
    await service._store_messages(said)
    held = [memory["memory"] for memory in await service.get_memories()]
    assert sorted(held) == ["I moved to Lisbon last week.", "Lisbon is lovely."], held
    # A later call of the same person: what was said is in front of the model.
    later = Mem0MemoryService(
        api_key=token, host=url, user_id="pia", agent_id="guide", params=Mem0MemoryService.InputParams(search_limit=3)
    )
    question = "Where did I move?"
    context = LLMContext([{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}])
    await later._enhance_context_with_memories(context, question)
    messages = context.get_messages()
    assert len(messages) == 3 and "I moved to Lisbon last week." in messages[1]["content"], messages
    # Somebody else's call has nothing of it.
    other = Mem0MemoryService(api_key=token, host=url, user_id="someone else")
    context = LLMContext([{"role": "user", "content": question}])
    await other._enhance_context_with_memories(context, question)
    assert len(context.get_messages()) == 1, context.get_messages()
    assert not failures, failures


asyncio.run(main())
