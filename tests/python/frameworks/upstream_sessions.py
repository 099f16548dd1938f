"""The tests of OpenAI Agents' own session, with ours in its place.

    upstream_sessions.py TEST_FILE…     prints a module of those tests that need nothing but a session

A test of SQLite itself is left out: its reason is printed to stderr.
"""

import ast
import re
import sys
from pathlib import Path

# What only a session in SQLite has.
SQLITE = re.compile(
    r"sqlite3|_connections|_get_connection|_lock\b|_shared|corrupt|_await_mutation|is closed|rollback|quarantin|closed_rejects"
    r"|post_commit|file_lock|failed_"
)


def module(path):
    """The text of a module with the tests of a file that any session must pass."""
    source = path.read_text(encoding="utf-8")
    kept, left_out = [], []
    for node in ast.parse(source).body:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))]) - 1
        text = "\n".join(source.splitlines()[first : node.end_lineno])
        test = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
        if test and SQLITE.search(text):
            left_out.append(f"{path.name}: {node.name}: SQLite itself")
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and re.search(r"^import sqlite3|agents\.memory\.sqlite", text):
            continue
        else:
            kept.append(text)
    return "\n\n".join(kept), left_out


if __name__ == "__main__":
    for file in sys.argv[1:]:
        text, left_out = module(Path(file))
        print(text)
        print("\n".join(left_out), file=sys.stderr)
