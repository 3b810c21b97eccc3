"""Regular expressions on text of others: RE2 everywhere; where the standard `re` is left, each with its reason, and
every pattern of either kind timed on inputs that make backtracking and repeated search long."""

import ast
import gc
import math
import re
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from workers.errors import InvalidRecord
from workers.schema.patterns import MOST_CHARACTERS, TextPattern, compiled

ROOT = Path(__file__).parents[1]
PACKAGES = ("apps", "workers", "client")
_ONE_CLASS = "one class of characters, or one and what follows it: no text can be read in two ways"
ALLOWED = {
    "apps/core/health.py": "reads /proc/meminfo",
    "apps/trajectories/alignment.py": f"4,000 characters of a text; {_ONE_CLASS}",
    "apps/trajectories/rendering/words.py": f"12,000 characters; {_ONE_CLASS}",
    "apps/trajectories/search_vectors.py": f"of search_text; {_ONE_CLASS}, and digits that begin a word",
    "apps/trajectories/search_text.py": f"8,000 characters of a text, at each import; {_ONE_CLASS}",
    "workers/engine/rules/repetition.py": _ONE_CLASS,
    "workers/induce/step_features.py": f"4,000 characters; {_ONE_CLASS}",
    "workers/induce/metric_names.py": _ONE_CLASS,
    "workers/induce/comment_points.py": "200,000 characters, without long whitespace, which its look-behinds need",
    "workers/prompts/templates.py": f"looks for lone surrogates, which RE2 cannot read; {_ONE_CLASS}",
    "workers/text/word_deletion.py": f"a megabyte of a text; {_ONE_CLASS}",
    "workers/text/overlap.py": f"a megabyte of a text; words, and their decimals, which are {_ONE_CLASS}",
    "workers/schema/decode.py": f"looks for lone surrogates, which RE2 cannot read; {_ONE_CLASS}",
}
_BACKTRACKING = {"re", "regex", "sre_compile", "sre_parse", "fnmatch", "difflib", "textwrap"}
_NAMED = re.compile(rf"\b(?:{'|'.join(sorted(_BACKTRACKING))})\b")

# Of the attack that found the first three, and beginnings of what our patterns look for.
SEEDS = [
    *("<think>", "```\n", "```bash\n", "\nISSUE:\n", "\n\nISSUE:\n", "click(", "f(", "(((", "\x1b[", "\x1b]"),
    *("data:a/b;a=a;", "\n\nHuman:", "--- a\n", "--- ", "+++ b\n@@ ", "diff --git ", "a", "a ", "  ", "\t"),
    *(
        "Traceback",
        "Error: ",
        "a.",
        "1,",
        "1.5, ",
        "'a'",
        "x=1,",
        "\n",
        " \n",
        "-",
        '"a ',
        '-"',
        "://a:",
        "key=",
    ),
    *("bearer ", "sessionid=", "{", "[", "*", "_", "`", "![", "<", "&#", "|a", "> ", "- ", "1. ", "~~", "a@"),
    *("exit code: ", "command not found ", ". ", ". (", ", but", "; ", " - ", "e.g. ", '"', "\\", "/", ".a"),
]
# Characters, and the seconds of this thread that are slow for as many: ten times what the slowest linear pattern takes.
_SIZES = ((400, 0.01), (8000, 0.2), (48_000, 0.4))
_TRIES = 4


def _files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def _imported(source: str) -> set[str]:
    """Of the backtracking modules, those that are imported. A file that names none is not parsed."""
    found: set[str] = set()
    if not _NAMED.search(source):
        return found
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("__import__", "import_module")):
            found |= {arg.value for arg in node.args if isinstance(arg, ast.Constant)}
    return found & _BACKTRACKING


def test_text_of_others_meets_no_backtracking_expression() -> None:
    using = {str(path.relative_to(ROOT)) for path in _files() if _imported(path.read_text(encoding="utf-8"))}
    more = ", ".join(sorted(using - ALLOWED.keys()))
    assert not more, (
        f"{more}: use workers.schema.patterns.TextPattern or methods of str; or give a reason here"
    )
    assert using == ALLOWED.keys(), "no longer needed here: take it off the list"


@pytest.mark.parametrize(
    "source", ["import re", "from re import sub", "import re as r", "x = __import__('re')"]
)
def test_the_lint_finds_every_way_to_import(source: str) -> None:
    assert _imported(source) == {"re"}


def _in_values(name: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, re.Pattern | TextPattern):
        yield name, value
    elif depth < 4:
        items: Any = ()
        if isinstance(value, dict):
            items = value.items()
        elif isinstance(value, list | tuple | set | frozenset):
            items = enumerate(value)
        elif hasattr(value, "__dict__") and type(value).__module__.startswith(PACKAGES):
            items = (vars(type(value)) | vars(value)).items()
        for key, each in items:
            yield from _in_values(f"{name}[{key}]", each, depth + 1)


def _in_functions(tree: ast.AST) -> Iterator[tuple[str, Any]]:
    """Patterns that are written where they are used."""
    calls = {"compile", "match", "search", "sub", "subn", "fullmatch", "split", "findall", "finditer"}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
            continue
        written = node.args[0].value
        if not isinstance(written, str | bytes):
            continue
        if (
            isinstance(node.func, ast.Attribute)
            and ast.unparse(node.func.value) == "re"
            and node.func.attr in calls
        ):
            flags = [
                each
                for each in (*node.args, *(keyword.value for keyword in node.keywords))
                if "re." in ast.unparse(each)
            ]
            value = eval(ast.unparse(flags[0]), {"re": re}) if flags else 0
            yield f"line {node.lineno}", re.compile(written, value)
        elif ast.unparse(node.func) == "TextPattern":
            yield f"line {node.lineno}", TextPattern(str(written))


def _patterns() -> list[Any]:
    found: dict[tuple[type, Any, int], Any] = {}
    for path in _files():
        source = path.read_text(encoding="utf-8")
        if "TextPattern" not in source and "import re\n" not in source:
            continue
        parts = (
            path.relative_to(ROOT / "client" if path.is_relative_to(ROOT / "client") else ROOT)
            .with_suffix("")
            .parts
        )
        module = import_module(".".join(parts))
        each = [pair for name, value in list(vars(module).items()) for pair in _in_values(name, value)]
        for name, pattern in [*each, *_in_functions(ast.parse(source))]:
            key = (type(pattern), pattern.pattern, getattr(pattern, "flags", 0))
            found.setdefault(key, pytest.param(pattern, id=f"{path.stem}:{name}"))
    return list(found.values())


PATTERNS = _patterns()


def _own_seeds(pattern: str) -> set[str]:
    """Beginnings of what a pattern itself looks for: its stretches without a special character."""
    stretches = re.split(r"\\[a-zA-Z]|\(\?[a-zA-Z<:!=]*|[][(){}|?*+^$]+", pattern)
    texts = {stretch.replace("\\", "") for stretch in stretches} - {""}
    return {text + more for text in texts for more in ("", " ", "a")}


def _inputs(seed: str, size: int) -> Iterator[str]:
    yield seed * (size // len(seed))
    yield "a" + seed * (size // len(seed)) + "\x00b"
    yield seed + "a" * size
    yield seed + " " * size + "\x00"


def _seconds(call: Callable[[], object]) -> float:
    """Of this thread, without garbage collection: it takes as long as everything else in the process makes it."""
    was_enabled = gc.isenabled()
    gc.disable()
    began = time.thread_time()
    try:
        call()
        return time.thread_time() - began
    finally:
        if was_enabled:
            gc.enable()


def _once(pattern: Any, text: str) -> float:
    """Seconds for every match in a text. `sub` searches as `finditer` does, and makes no object of each match."""
    if isinstance(pattern, TextPattern):
        return _seconds(lambda: list(pattern.finditer(text)))
    given: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    return max(_seconds(lambda: pattern.sub(given[:0], given)), _seconds(lambda: pattern.fullmatch(given)))


def _least(pattern: Any, text: str, most: float, tries: int) -> float:
    """The least seconds of a few tries: a busy or throttled machine makes one of them long, but not all of them."""
    least = math.inf
    for _ in range(tries):
        least = min(least, _once(pattern, text))
        if least <= most or least > 100 * most:
            break
    return least


def _is_slow(pattern: Any, seed: str, tries: int = _TRIES) -> bool:
    """Longer inputs are tried only where shorter ones took long: most do not, and a cubic one must not hang.

    They are left out where seconds that grew with the square would still be half of what the longest may take.
    """
    sizes = _SIZES[:2] if isinstance(pattern, TextPattern) else _SIZES
    longest, allowed = sizes[-1]
    for texts in zip(*(_inputs(seed, size) for size, _ in sizes), strict=True):
        for text, (size, most) in zip(texts, sizes, strict=True):
            taken = _least(pattern, text, most, tries)
            if taken > most:
                return True
            if taken * (longest / size) ** 2 < allowed / 2:
                break
    return False


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_pattern_takes_longer_than_the_text_is_long(pattern: Any) -> None:
    written = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    own = sorted(_own_seeds(written))
    seeds = own if isinstance(pattern, TextPattern) else [*SEEDS, *own]  # RE2 can only search too often
    assert next((seed for seed in seeds if _is_slow(pattern, seed)), None) is None


OLD = [
    (r"(?m)^\s*(?:---|===)|^\s*(?:[-+]|\d+[.)])\s", "\n"),
    (r"(?s)<think>.*?</think>", "<think>"),
    (r"(?s)\n(?:ISSUE|TICKET):\n(.*?)\n\nINSTRUCTIONS:", "\nISSUE:\n"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("old", "seed"), OLD)
def test_the_timing_finds_what_was_found_by_attack(old: str, seed: str) -> None:
    assert _is_slow(re.compile(old), seed, tries=1)


def test_hundreds_of_patterns_are_not_missed() -> None:
    assert len(PATTERNS) >= 60


@pytest.mark.parametrize(
    "expression", ["(", "a" * (MOST_CHARACTERS + 1), r"(a|b)*a(a|b){1,999}c{999}", "(?i)\\pL{400}", "\ud800"]
)
def test_an_expression_that_people_write_is_bounded(expression: str) -> None:
    with pytest.raises(InvalidRecord, match="regular expression"):
        compiled(expression)


def test_a_pattern_reads_lone_surrogates_and_keeps_places() -> None:
    found = TextPattern("b(.)").search("a\ud800\udc00bü")
    assert found is not None
    assert (found.span(), found[1]) == ((3, 5), "ü")
