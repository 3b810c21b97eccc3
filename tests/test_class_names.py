"""A class name stands for one thing within `apps`, and for one within `workers`."""

import ast
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from tests import source_code

ROOT = Path(__file__).parents[1]

# Names that repeat, and why.
ALLOWED_REPEATS = {
    "Meta": "Django's options of a model or form",
    "Command": "Django's name of a management command",
    "Migration": "Django's name of a migration",
}


def read_class_names(nodes: Iterable[ast.AST]) -> list[str]:
    """Names of all classes. Choices within a model, such as `State`, are always written with the model's name."""
    names = []
    for node in nodes:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                if isinstance(node, ast.ClassDef) and _is_choices(child):
                    names.append(f"{node.name}.{child.name}")
                else:
                    names.append(child.name)
    return names


def _is_choices(node: ast.ClassDef) -> bool:
    return any(ast.unparse(base).endswith("Choices") for base in node.bases)


def find_repeats(files: Iterable[tuple[str, Iterable[ast.AST]]]) -> dict[str, list[str]]:
    """Class names with several places, of (place, nodes) pairs."""
    places = defaultdict(list)
    for place, nodes in files:
        for name in read_class_names(nodes):
            places[name].append(place)
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


@cache
def repeats_in(folder: str) -> dict[str, list[str]]:
    paths = source_code.python_files(folder, migrations=True)
    return find_repeats((str(path.relative_to(ROOT)), source_code.nodes(path)) for path in paths)


@pytest.mark.parametrize("folder", ["apps", "workers"])
def test_no_class_name_repeats(folder: str) -> None:
    repeats = repeats_in(folder)
    assert {name: places for name, places in repeats.items() if name not in ALLOWED_REPEATS} == {}


def test_every_allowed_repeat_is_one() -> None:
    assert ALLOWED_REPEATS.keys() <= repeats_in("apps").keys() | repeats_in("workers").keys()


def test_a_planted_repeat_is_found() -> None:
    planted = [
        ("apps/a.py", "class Answer:\n    class Meta: ..."),
        ("apps/b.py", "def f():\n    class Answer: ..."),
    ]
    assert find_repeats((place, ast.walk(ast.parse(source))) for place, source in planted) == {
        "Answer": ["apps/a.py", "apps/b.py"]
    }


def test_choices_of_two_models_are_no_repeat() -> None:
    model = "class {}:\n    class State(models.TextChoices): ..."
    planted = [("apps/a.py", model.format("Run")), ("apps/b.py", model.format("Judge"))]
    assert find_repeats((place, ast.walk(ast.parse(source))) for place, source in planted) == {}
