"""Models are made one at a time: transformers replaces functions of its own classes while it loads."""

import ast
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from tests.workers.judge.judges import decoder
from workers.models.generative.model import load_language

pytestmark = pytest.mark.ml

ROOT = Path(__file__).parents[3]
MAKES_MODEL = {"from_pretrained", "from_config"}
OTHER_CLASSES = {"AutoConfig", "AutoTokenizer"}


def test_threads_that_load_at_the_same_time_get_whole_models(tmp_path: Path) -> None:
    """With tied embeddings: the head of one load was left without data by the other one."""
    folder = decoder(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    assert config["tie_word_embeddings"]
    with ThreadPoolExecutor(4) as threads:
        loaded = list(threads.map(lambda _: load_language(folder, device="cpu"), range(24)))
    first, *others = (model.state_dict() for model in loaded)
    for other in others:
        assert all(torch.equal(other[name], tensor) for name, tensor in first.items())


def unguarded(tree: ast.AST) -> list[int]:
    """Lines that make a model of transformers outside of `with transformers_loading()`."""
    found: list[int] = []

    def visit(node: ast.AST, guarded: bool) -> None:
        if isinstance(node, ast.With):
            guarded |= any(ast.unparse(item.context_expr) == "transformers_loading()" for item in node.items)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if node.func.attr in MAKES_MODEL and owner not in OTHER_CLASSES and not guarded:
                found.append(node.lineno)
        for child in ast.iter_child_nodes(node):
            visit(child, guarded)

    visit(tree, False)
    return found


def test_every_load_waits_for_others() -> None:
    files = sorted((ROOT / "workers").rglob("*.py"))
    assert len(files) > 100
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in files
        for line in unguarded(ast.parse(file.read_text()))
    ]
    assert not found, "put these in `with transformers_loading():`"


def test_the_check_finds_one() -> None:
    code = "AutoModel.from_config(c)\nwith transformers_loading():\n    AutoModel.from_config(c)\n"
    assert unguarded(ast.parse(code)) == [1]
