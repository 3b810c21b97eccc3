"""The source of a reward program: what it must define, and what it may not use.

These checks are no sandbox. They keep a program's value a function of its input alone, and say early, with the line,
what the sandbox (workers/programs/sandbox.py) would refuse late.
"""

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from workers.errors import InvalidRecord

MOST_CHARACTERS = 50_000
MOST_SECONDS = 10.0  # for one trajectory
MODULES = (
    "base64",
    "bisect",
    "collections",
    "copy",
    "csv",
    "dataclasses",
    "functools",
    "hashlib",
    "itertools",
    "json",
    "math",
    "re",
    "typing",
    "unicodedata",
)
_NO_CODE = "a program may not make code of text"
_NO_STATE = "values may not depend on what ran before"
_REFUSED = {
    "open": "a program has no files",
    "input": "a program has no terminal",
    "breakpoint": "a program has no terminal",
    "exec": _NO_CODE,
    "eval": _NO_CODE,
    "compile": _NO_CODE,
    "globals": _NO_STATE,
    "locals": _NO_STATE,
    "vars": _NO_STATE,
    "id": _NO_STATE,
    "hash": _NO_STATE,
}
_HINT = "Define `def reward(trajectory):`, which returns a number."
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Program:
    """code: as it was written. wrapped: as a function `_program` of a trajectory, so that what one call leaves in
    variables is gone before the next; its lines are those of `code`, plus one. has_steps: it defines step_rewards."""

    code: str
    wrapped: str
    has_steps: bool

    @property
    def hash(self) -> str:
        return hashlib.sha256(self.code.encode()).hexdigest()


@lru_cache(maxsize=256)
def read_program(code: str) -> Program:
    """Raises InvalidRecord, which names the line."""
    if len(code) > MOST_CHARACTERS:
        raise InvalidRecord(
            f"the code has {len(code):,} characters, and may have {MOST_CHARACTERS:,}; shorten it."
        )
    tree = _parsed(code)
    for node in ast.walk(tree):
        _require_allowed(node)
    for node in _module_scope(tree):
        if isinstance(node, ast.Return | ast.Await):
            raise _refused(node, "`return` and `await` only make sense in a function")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    if "reward" not in functions:
        raise InvalidRecord(f"the code has no function `reward`. {_HINT}")
    for name in ("reward", "step_rewards"):
        if name in functions and not _takes_one(functions[name].args):
            raise _refused(functions[name], f"`{name}` must take one argument, the trajectory")
    has_steps = "step_rewards" in functions
    return Program(code, _wrapped(code, tree, has_steps=has_steps), has_steps)


def _parsed(code: str) -> ast.Module:
    try:
        return ast.parse(code)
    except SyntaxError as error:
        raise InvalidRecord(f"line {error.lineno or 1}: {error.msg}.") from None
    except (ValueError, MemoryError, RecursionError):
        raise InvalidRecord("the code cannot be read: it is nested too deeply, or is no text.") from None


def _require_allowed(node: ast.AST) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            _require_module(node, alias.name)
    elif isinstance(node, ast.ImportFrom):
        _require_module(node, node.module or ".")
    elif isinstance(node, ast.Yield | ast.YieldFrom):
        raise _refused(node, "`yield` is not available; collect the values in a list")
    elif isinstance(node, ast.Global):
        raise _refused(node, f"`global` is not available: {_NO_STATE}")
    elif isinstance(node, ast.Name):
        if node.id in _REFUSED:
            raise _refused(node, f"`{node.id}` is not available: {_REFUSED[node.id]}")
        _require_plain(node, node.id)
    elif isinstance(node, ast.arg):
        _require_plain(node, node.arg)
    elif isinstance(node, ast.alias) and node.asname:
        _require_plain(node, node.asname)


def _require_module(node: ast.AST, name: str) -> None:
    if name.split(".")[0] not in MODULES:
        raise _refused(node, f"the module {name} is not available; there are {', '.join(MODULES)}")


def _require_plain(node: ast.AST, name: str) -> None:
    if name.startswith("__") or name == "_program":
        raise _refused(node, f"`{name}` is not available as a name; choose another one")


def _refused(node: ast.AST, why: str) -> InvalidRecord:
    return InvalidRecord(f"line {getattr(node, 'lineno', 1)}: {why}.")


def _takes_one(arguments: ast.arguments) -> bool:
    places = [*arguments.posonlyargs, *arguments.args]
    required = len(places) - len(arguments.defaults)
    keywords = sum(default is None for default in arguments.kw_defaults)
    return required <= 1 and keywords == 0 and (bool(places) or arguments.vararg is not None)


def _module_scope(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes outside of functions and classes."""
    left: list[ast.AST] = list(tree.body)
    while left:
        node = left.pop()
        yield node
        if not isinstance(node, _SCOPES):
            left.extend(ast.iter_child_nodes(node))


def _wrapped(code: str, tree: ast.Module, *, has_steps: bool) -> str:
    """Each line one space to the right, but for those that begin within a text."""
    within: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno is not None:
            within.update(range(node.lineno + 1, node.end_lineno + 1))
    lines = code.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    body = "\n".join(line if number in within else f" {line}" for number, line in enumerate(lines, start=1))
    steps = "step_rewards(__trajectory)" if has_steps else "None"
    return f"def _program(__trajectory):\n{body}\n return reward(__trajectory), {steps}\n"
