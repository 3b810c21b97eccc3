"""docs/systems.toml: each of the 184 systems has a row, and each row is linked to something that is there."""

import ast
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from docs.site.page_tree import parse
from docs.site.systems import AREAS, PAGE, System, page, systems

ROOT = Path(__file__).parents[1]
ROWS = systems()
NUMBERS = range(1, 185)


@cache
def _test_names(path: Path) -> frozenset[str]:
    """Tests of a file and classes of tests, those of a class by `Class::function`."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            tests = {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
            names |= {node.name, *tests} if tests else set()
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
    return frozenset(name for name in names if name.rpartition("::")[2].lower().startswith("test"))


@cache
def _anchors(path: Path) -> frozenset[str]:
    return frozenset(parse(path.read_text()).anchors())


def is_there(evidence: str) -> bool:
    """Whether a link of a row leads to a test, to a benchmark that can be run, or to a heading."""
    kind = evidence.partition("/")[0]
    path, _, name = evidence.partition("#" if kind == "docs" else "::")
    if not (ROOT / path).is_file():
        return False
    if kind == "docs":
        return name in _anchors(ROOT / path)
    if kind == "benchmarks":
        return not name and '__name__ == "__main__"' in (ROOT / path).read_text()
    return kind == "tests" and name in _test_names(ROOT / path)


def problems(rows: list[System]) -> list[str]:
    """What is wrong with the table, row by row."""
    counted = Counter(row.number for row in rows)
    found = [f"{number}: {counted[number]} rows" for number in NUMBERS if counted[number] != 1]
    found += [f"{number}: no such system" for number in counted if number not in NUMBERS]
    for row in rows:
        found += [
            f"{row.number}: {evidence} is not there" for evidence in row.evidence if not is_there(evidence)
        ]
        if not (row.evidence and row.title and row.use and row.area in AREAS):
            found.append(f"{row.number}: a row needs a title, an area, a use and what shows it")
    return found


def test_every_system_has_a_row_whose_links_are_there() -> None:
    assert problems(ROWS) == []


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text() == page(ROWS), "python -m docs.site.systems"


def test_rows_that_work_are_shown_by_more_than_a_page() -> None:
    """Surveys are words, and a checklist is a page; all else that works has a test or a benchmark."""
    working = [row for row in ROWS if not row.missing]
    by_pages = {row.number for row in working if all(each.startswith("docs/") for each in row.evidence)}
    assert by_pages == {row.number for row in ROWS if row.area == "surveys"}


@pytest.mark.parametrize(
    "evidence",
    [
        "tests/test_systems.py::test_that_is_not_there",
        "tests/test_systems.py",
        "tests/test_systems.py::problems",
        "tests/test_no_such_file.py::test_anything",
        "docs/landscape.md#no-such-heading",
        "docs/landscape.md",
        "benchmarks/output.py",
        "benchmarks/no_such_benchmark.py",
        "apps/__init__.py",
    ],
)
def test_a_dead_link_is_found(evidence: str) -> None:
    broken = [replace(ROWS[0], evidence=(evidence,)), *ROWS[1:]]
    assert problems(broken) == [f"{ROWS[0].number}: {evidence} is not there"]


def test_a_row_that_is_missing_doubled_or_empty_is_found() -> None:
    first, second, *others = ROWS
    assert problems([first, first, *others]) == ["1: 2 rows", "2: 0 rows"]
    assert problems([first, second, *others, replace(first, number=185)]) == ["185: no such system"]
    assert problems([replace(first, evidence=()), second, *others]) == [
        "1: a row needs a title, an area, a use and what shows it"
    ]
