"""ATIF documents that we write: Harbor's validator takes them, and nothing of the trajectory is lost."""

import io
import json
import random
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from apps.trajectories import formats
from apps.trajectories.import_reader import ImportReader, read_import_records
from tests.trajectories.atif_peer import harbor_errors, require_harbor
from tests.trajectories.mutations import DOCUMENTS
from tests.trajectories.real_files import comes_back, read
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory, from_atif, to_atif
from workers.schema.atif_model import AtifTrajectory

TEXTS = ("", "a", "unknown", "call_1_1", "2026-01-01T00:00:00Z", "yesterday", "sha256:ab")
KEYS = (
    *("atif", "extra", "source", "task", "outcome", "agent", "message", "metrics", "final_metrics", "notes"),
    *("features", "reward", "message_is_null", "__raw__", "__extra__", "__atif__", "__parts__", "part"),
    *("step_id", "tool_call_id", "function_name", "arguments", "source_call_id", "content", "session_id"),
    *("timestamp", "model_name", "llm_call_count", "is_copied_context", "prompt_tokens", "cost_usd"),
    *("subagent_trajectories", "subagent_trajectory_ref", "tool_definitions", "trajectory_id", "logprobs"),
    *("speaker", "name"),
)
SOURCES = (
    *("https://x.test/a.png", "data:image/png;base64,AAAA", "sha256:ab", "scan.bmp", "talk.wav"),
    *("data:,x", "", None),
)


class Maker:
    """Trajectories with whatever the types allow, drawn by a seed; names that ATIF or we use are likely."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def value(self, depth: int = 0) -> Any:
        plain = [None, True, 0, 3, -1, 0.5, *TEXTS]
        kind = self.random.randrange(10)
        if depth > 2 or kind < 6:
            return self.random.choice(plain)
        return self.object(depth + 1) if kind < 9 else [self.value(depth + 1)]

    def object(self, depth: int = 0) -> dict[str, Any]:
        if self.random.random() < 0.3:
            return {}
        return {self.random.choice(KEYS): self.value(depth) for _ in range(self.random.randint(1, 4))}

    def text(self) -> str:
        return self.random.choice(TEXTS)

    def maybe(self, value: Any) -> Any:
        return value if self.random.random() < 0.5 else None

    def part(self) -> Part:
        kind = self.random.choice(("text", "text", "text", "image", "audio", "video", "file"))
        return Part(
            type=kind,  # type: ignore[arg-type]
            text=self.text() if kind == "text" else self.maybe(self.text()),
            source=None if kind == "text" else self.random.choice(SOURCES),
            media_type=self.maybe(self.random.choice(("image/png", "audio/wav", "image/bmp", "a"))),
            extra=self.maybe(self.object()) or {},
        )

    def parts(self) -> tuple[Part, ...]:
        return tuple(self.part() for _ in range(self.random.choice((0, 1, 1, 1, 2))))

    def step(self) -> Step:
        source = self.random.choice(("system", "user", "agent", "agent", "agent", "environment"))
        calls = tuple(
            ToolCall(
                name=self.text(),
                arguments=self.object() if self.random.random() < 0.7 else "no JSON",
                id=self.maybe(f"c{self.random.randrange(3)}"),
                extra=self.maybe(self.object()) or {},
            )
            for _ in range(self.random.choice((0, 1, 2)))
        )
        return Step(
            source=source,  # type: ignore[arg-type]
            speaker=self.maybe("ann"),
            message=self.parts(),
            reasoning=self.maybe(self.text()),
            tool_calls=calls,
            observation=tuple(
                ObservationResult(
                    content=self.parts(),
                    call_id=self.random.choice((None, "elsewhere", *(call.id for call in calls))),
                    extra=self.maybe(self.object()) or {},
                )
                for _ in range(self.random.choice((0, 1, 2)))
            ),
            features=self.maybe((0.5, 1.0)),
            reward=self.maybe(0.25),
            metrics=self.maybe(self.object()) or {},
            extra=self.maybe(self.object()) or {},
        )

    def trajectory(self) -> Trajectory:
        return Trajectory(
            steps=(*(self.step() for _ in range(self.random.randint(0, 3))), Step(source="agent")),
            task=Task(id=self.text(), instruction=self.text(), metadata=self.object()),
            id=self.maybe("run 7"),
            agent=self.text(),
            agent_version=self.text(),
            reward=self.maybe(1.0),
            success=self.maybe(True),
            metadata=self.object(),
        )


def without_place(step: Step) -> dict[str, Any]:
    """A step as plain values, without the number its document gave it."""
    values = msgspec.to_builtins(step)
    extra = {key: value for key, value in step.extra.items() if key != "source_index"}
    return values | {"extra": extra}


@pytest.mark.parametrize("first_seed", range(0, 1200, 300))
def test_any_trajectory_is_valid_and_comes_back(first_seed: int) -> None:
    require_harbor()
    for seed in range(first_seed, first_seed + 300):
        given = Maker(seed).trajectory()
        document = json.loads(json.dumps(to_atif(given)))
        assert harbor_errors(document) == [], seed
        msgspec.convert(document, AtifTrajectory)  # our model of it is as strict
        back = from_atif(document)
        assert [without_place(step) for step in back.steps] == [
            without_place(step) for step in given.steps
        ], seed
        for name in ("id", "task", "agent", "agent_version", "reward", "success", "metadata", "content_hash"):
            assert getattr(back, name) == getattr(given, name), (seed, name)


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_documents_of_every_format_are_valid(name: str) -> None:
    require_harbor()
    reader = ImportReader(formats.FORMATS[name])
    stream = io.BytesIO(json.dumps(DOCUMENTS[name]).encode())
    records = [part for record in read_import_records(stream) for part in reader.parts(record)]
    trajectories = [reader.read(record) for record in chain(records, reader.rest())]
    assert trajectories and [harbor_errors(to_atif(trajectory)) for trajectory in trajectories] == [
        [] for _ in trajectories
    ]


def test_files_of_many_products_are_valid(shared_data: Path) -> None:
    """Each file that any of our formats reads; how many do is for the tests of imports to say."""
    require_harbor()
    found = 0
    for path in sorted([*(shared_data / "wild").iterdir(), *(shared_data / "cases" / "import").iterdir()]):
        try:
            trajectories = read(path)[1] if path.suffix in (".json", ".jsonl") else []
        except (InvalidRecord, AssertionError, UnicodeDecodeError):
            continue
        for trajectory in trajectories:
            found += 1
            assert harbor_errors(json.loads(json.dumps(to_atif(trajectory)))) == [], path.name
            assert comes_back(trajectory), path.name
    assert found > 20


def test_calls_without_ids_are_named_and_come_back_without() -> None:
    given = Trajectory(
        task=Task(id="t"),
        steps=(
            Step(
                source="agent",
                tool_calls=(
                    ToolCall(name="f", arguments={}),
                    ToolCall(name="g", arguments={}, id="call_1_1"),
                ),
                observation=(ObservationResult(call_id="lost", content=(Part(text="o"),)),),
            ),
        ),
    )
    (step,) = to_atif(given)["steps"]
    first, second = (call["tool_call_id"] for call in step["tool_calls"])
    assert (first, second) == ("call_1_1_", "call_1_1")
    assert step["observation"]["results"][0]["source_call_id"] is None
    (back,) = from_atif(to_atif(given)).steps
    assert [call.id for call in back.tool_calls] == [None, "call_1_1"]
    assert back.observation[0].call_id == "lost"


def test_parts_that_atif_has_not_are_named_in_the_text() -> None:
    parts = (
        Part(type="image", source="data:image/png;base64,AAAA"),
        Part(type="video", source="https://x.test/v.mp4"),
        Part(type="audio", source="a.wav", media_type="audio/wav"),
    )
    given = Trajectory(task=Task(id="t"), steps=(Step(source="agent", message=parts),))
    document = to_atif(given)
    assert document["steps"][0]["message"] == [
        {"type": "image", "source": {"media_type": "image/png", "path": "data:image/png;base64,AAAA"}},
        {"type": "text", "text": "[video] https://x.test/v.mp4"},
        {"type": "audio", "source": {"media_type": "audio/wav", "path": "a.wav"}},
    ]
    assert document["schema_version"] == "ATIF-v1.8"  # the first with audio
    assert from_atif(document).steps[0].message == parts


def test_an_agent_without_a_name_comes_back_without() -> None:
    given = Trajectory(task=Task(id="t"), steps=(Step(source="agent"),))
    document = to_atif(given, session="41")
    assert (document["agent"]["name"], document["session_id"]) == ("unknown", "41")
    back = from_atif(document)
    assert (back.agent, back.agent_version, back.id) == ("", "", None)
