"""Code blocks of README and docs that take less than 30 seconds each are run; marks are right."""

from pathlib import Path

import pytest

from tests.docs_check.marked_blocks import REASONS, MarkedBlock, counts, marked_blocks
from tests.docs_check.pages import PROJECTS, WORDS
from tests.snippets import ROOT, Snippet, documents

# They fail: by a command's status, by an answer that is a problem, by an exception, and by the interpreter's end.
PLANTED = [
    MarkedBlock(Snippet("docs/rewards.md", 1, "sh", "m deploy sample/nothing sample"), False),
    MarkedBlock(
        Snippet(
            "docs/rewards.md",
            2,
            "sh",
            'curl -s $URL/api/v1/projects/sample/nothing -H "Authorization: Bearer $KEY"',
        ),
        False,
    ),
    MarkedBlock(Snippet("docs/rewards.md", 3, "python", "nothing"), True),
    MarkedBlock(Snippet("docs/rewards.md", 4, "python", "import os; os._exit(0)"), True),
]
NAMED = ["nothing", "404", "NameError", "the interpreter ended"]


@pytest.mark.slow
@pytest.mark.usefixtures("transactional_db", "own_home")
def test_blocks_of_the_documentation_run(tmp_path: Path) -> None:
    """On one installation of forks, page by page as in `make docs-check`: 40 s of CPU."""
    from tests.docs_check.forked_installation import forked_installation
    from tests.docs_check.runs import checked, in_order

    wanted = in_order([block for block in marked_blocks() if block.is_in_ci])
    failures = {}
    with forked_installation(tmp_path) as forks, checked(tmp_path, tmp_path / "work", forks) as installation:
        for block in wanted:
            if error := installation.run(block).error:
                failures[str(block.snippet)] = error
        planted = [installation.run(block).error for block in PLANTED]
    assert failures == {}
    assert [name for name, error in zip(NAMED, planted, strict=True) if name not in error] == []


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


def test_the_page_for_developers_has_the_counts() -> None:
    assert "\n".join(counts(list(marked_blocks()))) in (ROOT / "docs/architecture.md").read_text()


def test_a_mark_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for mark, named in (
        ("<!-- not run (weather): it rains -->", "'weather' is not a reason"),
        ("<!-- run by tests/nothing.py: all of it -->", "there is no tests/nothing.py"),
        ("<!-- run by tests/examples/test_policies.py: all -->", "name the one that runs it"),
        ("<!-- run by tests/examples/test_policies.py::test_nothing: all -->", "there is no test_nothing"),
        ("<!-- not run -->", "is no mark"),
    ):
        (tmp_path / "page.md").write_text(f"# Page\n\n{mark}\n```\nmake test\n```\n")
        monkeypatch.setattr("tests.docs_check.marked_blocks.documents", lambda: [str(tmp_path / "page.md")])
        with pytest.raises(ValueError, match=named):
            list(marked_blocks())
