"""docs/comparison.md claims nothing that no test shows: its tests and pages are there, and what is missing is named."""

import ast
import re
from functools import cache
from pathlib import Path

from django.urls import Resolver404, resolve

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "comparison.md").read_text()
PRODUCTS = {"Label Studio", "Argilla", "Langfuse", "Docent", "Inspect View", "W&B"}
GROUPS = ("Annotators", "Researchers", "Trainers", "Owners")
ENDS = ("yes", "partly", "no")


def _part(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def _rows(group: str) -> list[list[str]]:
    lines = [line for line in _part(group).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


ROWS = [row for group in GROUPS for row in _rows(group)]


@cache
def _test_names(file: str) -> set[str]:
    """Test functions of a file, those of a class by `Class::function`."""
    names = set()
    for node in ast.parse((ROOT / "tests" / file).read_text()).body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
    return names


def test_every_row_is_whole() -> None:
    assert len(ROWS) >= 55
    assert len({what for what, *_ in ROWS}) == len(ROWS)
    for what, found_in, here, where, tests in ROWS:
        products = {product.removesuffix(" (E)") for product in found_in.split(", ")}
        assert products and products <= PRODUCTS, what
        verdict, _, reason = here.partition(": ")
        assert verdict in ENDS and (reason or verdict == "yes"), f"{what}: yes, or partly or no with a reason"
        assert (where != "-") == (verdict != "no"), what
        assert tests != "-" or verdict != "yes", f"{what}: a yes needs a test"


def test_tests_are_linked_by_their_paths() -> None:
    for what, *_, tests in ROWS:
        links = [] if tests == "-" else tests.split(", ")
        assert all(re.fullmatch(r"\[`([\w/]+\.py)::[\w:]+`\]\(\.\./tests/\1\)", link) for link in links), what


def test_named_tests_are_there() -> None:
    named = {target for *_, tests in ROWS for target in re.findall(r"\[`([^`]+)`\]", tests)}
    found = {target: target.partition("::")[2] in _test_names(target.partition("::")[0]) for target in named}
    assert sorted(target for target, is_there in found.items() if not is_there) == []


def _is_page(place: str) -> bool:
    """A part in capitals stands for what varies; every other part is in the route itself."""
    path = place if place.startswith("/") else f"/p/PROJECT/{place}"
    filled = re.sub(r"(?<=/)[A-Z]+(?=/|$)", "1", path)
    try:
        route = resolve(filled).route
    except Resolver404:
        return False
    return re.sub(r"<[^>]+>", "1", route) == filled.lstrip("/")


def test_places_are_pages() -> None:
    places = {place for *_, where, _ in ROWS for place in re.findall(r"`([^`]+)`", where)}
    assert len(places) > 50
    assert sorted(place for place in places if not _is_page(place)) == []
    assert not _is_page("campaigns/ID/quality/none/") and not _is_page("endpoints/usage/")


def test_what_is_missing_is_at_the_top() -> None:
    assert PAGE.index("\n## Missing\n") < min(PAGE.index(f"\n## {group}\n") for group in GROUPS)
    listed = re.findall(r"^- (.+?): ", _part("Missing"), re.MULTILINE)
    without = [row for group in GROUPS[:3] for row in _rows(group) if row[2].startswith("no: ")]
    reasons = {what: here.removeprefix("no: ") for what, _, here, *_ in without}
    assert all(reason.startswith(("missing; ", "by choice; ")) for reason in reasons.values())
    assert listed == [what for what, reason in reasons.items() if reason.startswith("missing; ")]
