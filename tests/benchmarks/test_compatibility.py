"""The table of protocols and chat templates in the documentation is what the command finds."""

import pytest

from benchmarks.chat_templates import TEMPLATES
from benchmarks.compatibility import DOCS, KINDS, MESSAGES, PAIRS, WHOLES, lines
from tests.benchmarks.quick_runs import run_quick


@pytest.mark.slow
def test_every_protocol_and_template_gives_the_reward_or_says_why_not() -> None:
    """The command ends with 1 where a reward differs and no flag says so."""
    found = run_quick("compatibility")
    for part, protocols in (("pairs", PAIRS), ("wholes", WHOLES)):
        assert list(found[part]) == TEMPLATES
        assert all(list(cells) == list(protocols) for cells in found[part].values())
        assert all(list(row) == list(KINDS) for cells in found[part].values() for row in cells.values())
    assert {cell for cells in found["messages"].values() for cell in cells.values()} == {
        "same",
        "same, flagged",
    }
    assert list(found["messages"]) == list(MESSAGES)
    assert "\n".join(lines(found)) in DOCS.read_text(encoding="utf-8")
