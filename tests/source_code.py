"""The Python files of the installation, each read and parsed once for all tests that look at them.

Parsing the 1,800 files takes 3 s and 300 MB: the files of these tests are run by one worker (tests/groups.py), and what
was parsed is forgotten after them (tests/conftest.py).
"""

import ast
import gc
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def python_files(*folders: str, migrations: bool = False) -> tuple[Path, ...]:
    """Sorted within each folder, a path below the root."""
    return tuple(
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if migrations or "migrations" not in path.parts
    )


@cache
def read_text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def parse(path: Path) -> ast.Module:
    was_enabled = gc.isenabled()
    gc.disable()  # a tree has no garbage, and looking for some took as long as parsing
    try:
        return ast.parse(read_text(path), str(path))
    finally:
        if was_enabled:
            gc.enable()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Everything in a file, in the order of `ast.walk`."""
    return tuple(ast.walk(parse(path)))


def forget() -> None:
    for each in (read_text, parse, nodes):
        each.cache_clear()
