import json
from pathlib import Path

import pytest

from apps.core.errors import DomainError
from apps.trajectories import formats
from tests.trajectories.benchmarks.documents import DOCUMENTS as AGENT_DATA
from tests.trajectories.benchmarks.run_documents import (
    BROWSED,
    EPISODE,
    INSPECT,
    MESSAGES,
    MINT,
    SWE,
    TAU,
    TAU2,
    WHO,
)
from tests.trajectories.coding_agents import examples as coding_agents
from tests.trajectories.computer_use.documents import DOCUMENTS as COMPUTER_USE
from tests.trajectories.conftest import record
from tests.trajectories.data_rows.row_documents import ROWS
from tests.trajectories.frameworks.documents import DOCUMENTS as OF_FRAMEWORKS
from tests.trajectories.general.documents import DOCUMENTS as GENERAL
from tests.trajectories.tracing import documents as traces
from workers import schema
from workers.errors import InvalidRecord


def test_each_is_told_by_its_sign() -> None:
    documents = {
        **COMPUTER_USE,
        **AGENT_DATA,
        "agentrx": TAU | {"traj": [message | {"index": 1} for message in TAU["traj"]]},  # type: ignore[attr-defined]
        "swe-agent": SWE,
        "otel": {"resourceSpans": []},
        "tau2": TAU2,
        "agent-reward-bench": BROWSED,
        "tape": {"metadata": {}, "steps": [{"kind": "task"}]},
        "gymnasium": EPISODE,
        "autolibra": {"points": [{"point_type": "action", "data": "Hello."}]},
        "mini-swe-agent": MESSAGES,
        "inspect": INSPECT,
        "mint": MINT,
        "who-and-when": WHO,
        "openai": record(),
        "tau-bench": TAU,
        "prompt-response": {"prompt": "a", "response": "b"},
        "atif": {"schema_version": "ATIF-v1.5", "steps": []},
        **coding_agents.EXAMPLES,
        **traces.FIRST_RECORDS,
        **OF_FRAMEWORKS,
        **GENERAL,
        "call-log": OF_FRAMEWORKS["call-log"][0],
        **ROWS,
    }
    assert {name: formats.detect(document).name for name, document in documents.items()} == {
        name: name for name in formats.FORMATS
    }
    assert formats.detect(record()["messages"]).name == "openai"


def test_what_is_none_of_them_is_said_with_what_it_is() -> None:
    with pytest.raises(
        InvalidRecord, match=r"an object with the keys 'a', 'b'.*docs/formats.md lists every format"
    ):
        formats.detect({"a": 1, "b": 2})


def test_a_name_of_an_earlier_version_is_the_format_that_has_another_now() -> None:
    found = formats.by_name("call-logs")
    assert found is not None and found.name == "proxy-logs" and "call-logs" not in formats.FORMATS


def test_an_unknown_format_names_the_known() -> None:
    with pytest.raises(
        DomainError, match="no trajectory format 'csv'; choose from auto, atif, agentrx, tau-bench"
    ):
        formats.by_name("csv")


def test_tau_bench_keeps_what_leaks_out_of_the_steps() -> None:
    read = formats.FORMATS["tau-bench"].read(TAU)
    assert (read.task.id, read.task.instruction) == ("7", "You want a refund.")
    assert (read.reward, read.success) == (1.0, True)
    assert read.metadata["trial"] == 2
    assert "refund" not in json.dumps(schema.to_messages(read))
    assert formats.FORMATS["tau-bench"].read(TAU | {"reward": 0.0}).success is False


def test_openai_reads_what_surrounds_the_messages() -> None:
    around = {
        "id": 5,
        "agent": {"name": "mono", "version": 2},
        "reward": 0.5,
        "success": False,
        "temperature": 1,
    }
    read = formats.FORMATS["openai"].read(record(3, **around))
    assert (read.id, read.agent, read.agent_version, read.reward, read.success) == (
        "5",
        "mono",
        "2",
        0.5,
        False,
    )
    assert read.metadata == {"temperature": 1}
    assert read.task.id == "task-3"


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"reward": float("nan")}, "/reward"),
        ({"reward": "high"}, "/reward"),
        ({"success": 2}, "/success"),
        ({"task": {"id": [1]}}, "/task/id"),
        ({"agent": 3}, "/agent"),
        ({"messages": [{"role": "user", "content": "x"}]}, "/messages"),
        ({"messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]}, "/messages"),
    ],
)
def test_openai_points_at_what_is_wrong(fields: dict[str, object], pointer: str) -> None:
    with pytest.raises(InvalidRecord) as caught:
        formats.FORMATS["openai"].read(record(0, **fields))
    assert caught.value.pointer == pointer


def test_atif_refuses_a_duplicate_step_index() -> None:
    steps = [
        {"step_id": 1, "source": "user", "message": "a"},
        {"step_id": 1, "source": "agent", "message": "b"},
    ]
    with pytest.raises(InvalidRecord, match="duplicate step index") as caught:
        formats.FORMATS["atif"].read(
            {"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {}, "steps": steps}
        )
    assert caught.value.pointer == "/steps/1/step_id"


def test_the_documented_table_is_the_one_formats_are_found_by() -> None:
    assert formats.table() in (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
