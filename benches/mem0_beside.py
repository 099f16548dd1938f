#!/usr/bin/env python3
"""mem0_beside.py URL: adds and searches a second, of Mem0's client against a memory of ours at URL, and of Mem0's library.

Both get the same dialogue with infer=False, one message after the other, and the same embedding model: the one that
the set-up has put below RIPPLEMEM_HOME. Mem0's library keeps its vectors in Qdrant's local mode in memory.
"""

import os
import sys
import time
from pathlib import Path

import numpy
import onnxruntime
import tokenizers
from mem0 import Memory, MemoryClient

TURNS, QUESTIONS, USERS = 500, 200, 5
SUBJECTS = ["Ann", "Bo", "Clara", "Dan", "Eve"]
DEEDS = ["moved to", "came back from", "wrote a letter about", "dreams of", "bought a map of"]
PLACES = ["Lisbon", "Oslo", "Kyoto", "Quito", "Porto", "Riga", "Cork", "Bergen", "Turin", "Ghent"]


def home():
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return Path(os.environ.get("RIPPLEMEM_HOME") or Path(data) / "ripplemem")


class Embedder:
    """The model, as Mem0 calls one."""

    def __init__(self):
        directory = home() / "models" / "all-MiniLM-L6-v2-int8"
        self.tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(256)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        self.session = onnxruntime.InferenceSession(str(directory / "model.onnx"), options)
        self.names = {one.name for one in self.session.get_inputs()}

    def embed(self, text, memory_action=None):
        coded = self.tokenizer.encode(text)
        given = {"input_ids": coded.ids, "attention_mask": coded.attention_mask, "token_type_ids": coded.type_ids}
        given = {name: numpy.array([row], dtype=numpy.int64) for name, row in given.items() if name in self.names}
        vector = self.session.run(None, given)[0][0].mean(axis=0)
        return (vector / numpy.linalg.norm(vector)).tolist()

    def embed_batch(self, texts, memory_action=None):
        return [self.embed(text) for text in texts]


def library():
    memory = Memory.from_config({
        "vector_store": {"provider": "qdrant", "config": {"path": ":memory:", "collection_name": "m", "embedding_model_dims": 384}},
        "history_db_path": ":memory:",
    })
    memory.embedding_model = Embedder()
    return memory


def measure(name, add, search):
    def text(n):
        return f"{SUBJECTS[n % 5]} {DEEDS[n // 5 % 5]} {PLACES[n // 25 % 10]} in the year {1900 + n % 120}, he said."

    started = time.perf_counter()
    for n in range(TURNS):
        add(text(n), f"user-{n % USERS}")
    added = TURNS / (time.perf_counter() - started)
    times, found = [], 0
    for n in range(QUESTIONS):
        question = f"Who {DEEDS[n % 5]} {PLACES[n % 10]}?"
        started = time.perf_counter()
        results = search(question, f"user-{n % USERS}")["results"]
        times.append(time.perf_counter() - started)
        found += any(PLACES[n % 10] in one["memory"] for one in results)
    times.sort()
    milliseconds = 1000 * times[len(times) // 2]
    print(f"{name}: {added:.0f} adds/s, search median {milliseconds:.1f} ms, {found} of {QUESTIONS} name the place", flush=True)


def main():
    client = MemoryClient(api_key="any", host=sys.argv[1])
    measure(
        "mem0ai's client, this memory",
        lambda text, user: client.add(text, user_id=user, infer=False),
        lambda question, user: client.search(question, filters={"user_id": user}),
    )
    mem0 = library()
    measure(
        "mem0ai's library, Qdrant in memory",
        lambda text, user: mem0.add(text, user_id=user, infer=False),
        lambda question, user: mem0.search(question, filters={"user_id": user}),
    )


if __name__ == "__main__":
    main()
