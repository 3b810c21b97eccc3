"""Code blocks of README and docs that take less than 30 seconds each are run; marks are right."""

from pathlib import Path

import pytest

from tests.core.homes import open_home
from tests.docs_check.marked_blocks import REASONS, marked_blocks
from tests.docs_check.pages import PROJECTS, WORDS
from tests.docs_check.runs import checked, in_order
from tests.snippets import ROOT, documents


@pytest.mark.long
def test_blocks_of_the_documentation_run(tmp_path: Path) -> None:
    wanted = in_order([block for block in marked_blocks() if block.runs and not block.is_long])
    assert len(wanted) >= 30
    with open_home() as home, checked(home, tmp_path / "work") as installation:
        failures = {
            str(block.snippet): outcome.error
            for block in wanted
            if (outcome := installation.run(block)).error
        }
    assert failures == {}


def test_marks_and_pages_are_known() -> None:
    blocks = list(marked_blocks())  # raises for a mark, reason or test that is not there
    assert {block.reason for block in blocks if block.reason} <= REASONS.keys()
    pages = set(documents())
    assert {*PROJECTS, *WORDS} - {""} <= pages
    before = {path.stem for path in (ROOT / "tests/docs_check/before").iterdir()} - {"first"}
    assert before <= {page.removesuffix(".md").replace("/", "-") for page in pages}
    for page, words in WORDS.items():
        text = (ROOT / page).read_text() if page else "".join((ROOT / each).read_text() for each in pages)
        assert [written for written in words if written not in text] == [], page
