"""The table of protocols and chat templates in the documentation is what the command finds."""

import re
from typing import Any

import pytest

from benchmarks.chat_templates import TEMPLATES
from benchmarks.compatibility import DOCS, KINDS, MESSAGES, PAIRS, QUICK, WHOLES
from tests.benchmarks.quick_runs import run_quick


@pytest.mark.slow
def test_every_protocol_and_template_gives_the_reward_or_says_why_not() -> None:
    """The command ends with 1 where a reward differs and no flag says so."""
    found = run_quick("compatibility")
    documented = documented_cells()
    assert found["messages"] == {name: documented["", name] for name in MESSAGES}
    assert {cell for cells in found["messages"].values() for cell in cells.values()} == {
        "same",
        "same, flagged",
    }
    for part, protocols in (("pairs", PAIRS), ("wholes", WHOLES)):
        assert list(found[part]) == TEMPLATES
        for name, rows in found[part].items():
            assert list(rows) == list(protocols if name in QUICK else protocols[:1])
            assert rows == {protocol: documented[protocol, name] for protocol in rows}
        assert {(protocol, name) for protocol in protocols for name in TEMPLATES} <= documented.keys()


def documented_cells() -> dict[tuple[str, str], dict[str, Any]]:
    """The rows of the tables in the documentation, by protocol and template; of messages, by "" and protocol."""
    cells, protocols = {}, [""]
    for line in DOCS.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            protocols = [""]
        elif line.endswith(":") and not line.startswith("|"):
            protocols = line.removesuffix(":").split(", ")
        elif (
            line.startswith("| ") and line.count("|") == len(KINDS) + 2 and not line.startswith("| Protocol")
        ):
            first, *row = re.split(r" *[|] *", line.strip("| "))
            for name in first.strip("`").split(", "):
                cells.update({(protocol, name): dict(zip(KINDS, row, strict=True)) for protocol in protocols})
    return cells
