"""Times of steps and spans, and what steps cost, as the page of a trajectory shows them."""

import io
import json
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.trajectories import services
from apps.trajectories.models import Trajectory
from apps.trajectories.step_times import parse_time, step_span
from apps.trajectories.step_usage import (
    StepUsage,
    format_duration,
    format_money,
    stated_usage,
    summarize_usage,
    trajectory_usage,
)
from apps.trajectories.timeline import trajectory_timeline
from tests.trajectories.tracing.documents import DOCUMENTS


def bring(project: Project, document: Any) -> Trajectory:
    raw = document.encode() if isinstance(document, str) else json.dumps(document).encode()
    services.import_trajectories(project=project, stream=io.BytesIO(raw), by=None)
    return Trajectory.objects.latest("pk")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2030-01-01T00:00:00Z", 1893456000.0),
        ("2030-01-01T01:00:00+01:00", 1893456000.0),
        ("2030-01-01 00:00:00", 1893456000.0),
        (1893456000, 1893456000.0),
        (1893456000_000, 1893456000.0),
        (1893456000_000_000, 1893456000.0),
        (1893456000_000_000_000, 1893456000.0),
        (1, None),
        (True, None),
        ("t1", None),
        ("yesterday!", None),
        (None, None),
        ([1893456000], None),
    ],
)
def test_times_are_read_in_any_unit(value: Any, seconds: float | None) -> None:
    assert parse_time(value) == seconds


def test_the_time_of_a_step_is_found_where_importers_keep_it() -> None:
    time = "2030-01-01T00:00:00Z"
    at = (1893456000.0, None)
    for extra in (
        {"atif": {"timestamp": time}},
        {"message": {"timestamp": 1, "entry": {"timestamp": time}}},
        {"message": {"items": [{"timestamp": time}, {"timestamp": "2031-01-01T00:00:00Z"}]}},
        {"message": {"ts": 1893456000_000}},
    ):
        assert step_span(extra) == at, extra
    span = {"span": {"start": 1893456000_000_000_000, "end": 1893456002_000_000_000}}
    assert step_span(span) == (1893456000.0, 1893456002.0)
    assert step_span({"source_index": 3, "message": {"id": "m1"}}) is None


def test_usage_is_what_steps_state() -> None:
    found = summarize_usage(
        [
            (0, {}),
            (1, {"prompt_tokens": 10, "completion_tokens": 2, "cost_usd": 0.25, "seconds": 3}),
            (2, {"input_tokens": 5, "cost": 0.5}),
            (3, {"seconds": 4.5}),
        ]
    )
    assert found is not None
    assert found.total == StepUsage(15, 2, 0.75, 7.5) and found.stated == 3
    assert (found.slowest or (None,))[0] == 3 and (found.costliest or (None,))[0] == 2
    assert summarize_usage([(0, {"speed": 3})]) is None
    assert trajectory_usage({"atif": {"final_metrics": {"total_cost_usd": 0.5}}}).cost == 0.5
    assert stated_usage({"usage": {"input_tokens": 7}}).tokens_text == "7 in"
    assert [format_money(value) for value in (0, 0.0123, 12.3)] == ["$0.00", "$0.0123", "$12.30"]
    assert [format_duration(value) for value in (0.012, 1.24, 200, 7500)] == [
        *("12 ms", "1.2 s", "3 min 20 s", "2 h 5 min"),
    ]


@pytest.mark.parametrize("name", ["OpenInference", "OpenLLMetry"])
def test_a_trace_is_a_waterfall_of_its_spans(project: Project, name: str) -> None:
    row = bring(project, DOCUMENTS[name][1])
    timeline = trajectory_timeline(row, 0, 200)
    assert timeline is not None and timeline.has_spans and timeline.untimed == 0
    assert {line.depth for line in timeline.rows} >= {0, 1}
    steps = [line.index for line in timeline.rows if line.index is not None]
    agent_steps = row.steps.filter(source="agent").values_list("index", flat=True)
    assert steps and set(steps) <= set(agent_steps)
    assert all(line.x >= 0 and line.x + line.width <= 1000 for line in timeline.rows)
    assert timeline.rows[0].start == 0


def test_steps_without_a_time_are_counted(project: Project) -> None:
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a", "timestamp": "2030-01-01T00:00:00Z"},
        {"role": "user", "content": "q", "timestamp": "2030-01-01T00:00:03Z"},
        {"role": "assistant", "content": "b", "timestamp": "2030-01-01T00:00:04Z"},
    ]
    timeline = trajectory_timeline(bring(project, {"messages": messages}), 1, 1)
    assert timeline is not None and not timeline.has_spans
    assert (timeline.count, timeline.untimed, timeline.seconds) == (3, 1, 4.0)
    assert [(line.index, line.start, line.x) for line in timeline.rows] == [(2, 3.0, 750)]
    assert (
        trajectory_timeline(
            bring(project, {"messages": [*messages[:1], {"role": "assistant", "content": "a"}]}), 0, 9
        )
        is None
    )
