import json

import pytest

from apps.core.errors import DomainError
from apps.trajectories import formats
from tests.trajectories.conftest import record
from workers import schema
from workers.errors import InvalidRecord

TAU = {
    "task_id": 7,
    "reward": 1.0,
    "trial": 2,
    "info": {"task": {"instruction": "You want a refund.", "actions": []}},
    "traj": [{"role": "user", "content": "Refund!"}, {"role": "assistant", "content": "Done."}],
}


def test_each_is_told_by_its_sign() -> None:
    documents = {
        "openai": record(),
        "tau-bench": TAU,
        "prompt-response": {"prompt": "a", "response": "b"},
        "atif": {"schema_version": "ATIF-v1.5", "steps": []},
    }
    assert {name: formats.detect(document).name for name, document in documents.items()} == {
        name: name for name in formats.FORMATS
    }
    assert formats.detect(record()["messages"]).name == "openai"


def test_what_is_none_of_them_is_said_with_what_it_is() -> None:
    with pytest.raises(InvalidRecord, match=r"an object with the keys 'a', 'b'.*tau-bench: an object with"):
        formats.detect({"a": 1, "b": 2})


def test_an_unknown_format_names_the_known() -> None:
    with pytest.raises(DomainError, match="no trajectory format 'csv'; known are auto, atif, tau-bench"):
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
        ({"success": 1}, "/success"),
        ({"task": {"id": [1]}}, "/task/id"),
        ({"agent": 3}, "/agent"),
        ({"messages": [{"role": "user", "content": "x"}]}, "/messages"),
        ({"messages": [{"role": "tool", "tool_call_id": "c1", "content": "x"}]}, "/messages/0/tool_call_id"),
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
