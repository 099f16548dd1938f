"""The tests of LangGraph's own stores, with ours in their place.

    upstream_stores.py TEST_FILE…     prints a module of those tests that need nothing but a store

A test is left out that needs vectors of the caller, expiry or SQL: its reason is printed to stderr.
"""

import ast
import sys
from pathlib import Path

# What only stores have that embed by a function of the caller, expire items, or are SQL.
OTHERS = {
    "ttl": "expiry",
    "_cursor": "SQL",
    "sync_methods_reject": "a loop of the store's own",
    "fails_its_own_call": "a queue of the store's own",
    "no_running_loop": "a loop of the store's own",
    # On these LangGraph's own stores differ, and ours is as `InMemoryStore`.
    "sql_injection_vulnerability": "keys of filters that SQL refuses",
    "hyphens_and_digits": "a period in the key of a filter is a path in SQLite, and a period in memory",
}
IMPORTS_OF = ("langgraph.store.postgres", "langgraph.store.sqlite", "langgraph.checkpoint", "psycopg", "tests.")


def module(path):
    """The text of a module with the tests of a file that any store must pass."""
    source = path.read_text(encoding="utf-8")
    kept, left_out = [], []
    for node in ast.parse(source).body:
        text = ast.get_source_segment(source, node) or ""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not node.name.startswith("test_"):
                continue
            names = {argument.arg for argument in node.args.args}
            parametrized = {
                name.strip()
                for decorator in node.decorator_list
                if isinstance(decorator, ast.Call) and "parametrize" in ast.unparse(decorator.func)
                for name in ast.literal_eval(decorator.args[0]).split(",")
            }
            why = next((why for word, why in OTHERS.items() if word in text or word in node.name), None)
            if "store" not in names or names - {"store"} - parametrized:
                why = "no store, or one with the caller's embeddings"
            if why:
                left_out.append(f"{path.name}: {node.name}: {why}")
                continue
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
            kept.append("\n".join(source.splitlines()[first : node.end_lineno]))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            if not any(name in text for name in IMPORTS_OF):
                kept.append(text)
        elif isinstance(node, ast.Assign):
            kept.append(f"try:\n    {text.replace(chr(10), chr(10) + '    ')}\nexcept Exception:\n    pass")
    return "\n\n".join(["from __future__ import annotations", *(one for one in kept if "__future__" not in one)]), left_out


if __name__ == "__main__":
    for file in sys.argv[1:]:
        text, left_out = module(Path(file))
        print(text)
        print("\n".join(left_out), file=sys.stderr)
