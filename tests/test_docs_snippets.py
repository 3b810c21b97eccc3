"""What code blocks of README and docs name is there: commands, options, settings, packages, modules, addresses."""

from pathlib import Path

import pytest

from docs.site.page_tree import blocks
from tests.snippets import Snippet, documents, faults_in, inline_faults, snippets

ROOT = Path(__file__).parents[1]
ALL = list(snippets())


@pytest.mark.parametrize("snippet", ALL, ids=str)
def test_what_a_code_block_names_is_there(snippet: Snippet) -> None:
    assert faults_in(snippet) == []


@pytest.mark.parametrize(
    ("language", "code", "fault"),
    [
        ("", "m trian support --dataset first", "There is no command trian"),
        ("", "m train support --datset first", "--datset"),
        ("sh", "touchstone import support runs.json --nothing", "--nothing"),
        ("sh", "make nothing", "no target nothing"),
        ("sh", "TOUCHSTONE_NOTHING=1 .venv/bin/python manage.py up", "no setting TOUCHSTONE_NOTHING"),
        ("sh", "pip install touchstone-client", "no package"),
        ("sh", "python -m docs.examples.nothing", "no module docs.examples.nothing"),
        ("sh", "curl $URL/api/v1/nothing", "no address"),
        ("sh", "touchstoone login", "no command"),
        ("python", "from touchstone_client import Nothing", "has no Nothing"),
        ("python", "x = = 1", "does not read"),
        ("toml", 'objective = "nothing"', "recipe is refused"),
        ("json", '{"components": [{"name": "a"}]}', "composition is refused"),
    ],
)
def test_a_planted_fault_is_found(language: str, code: str, fault: str) -> None:
    assert any(fault in found for found in faults_in(Snippet("page", 1, language, code)))


def test_blocks_are_found() -> None:
    assert len(ALL) > 130


@pytest.mark.parametrize("page", documents())
def test_commands_in_prose_are_there(page: str) -> None:
    prose = "".join(text for is_code, text in blocks((ROOT / page).read_text()) if not is_code)
    assert list(inline_faults(prose)) == []


def test_a_planted_command_in_prose_is_found() -> None:
    assert (
        len(list(inline_faults("Run `m trian support` or `make nothing`, then `touchstone login URL`."))) == 2
    )
