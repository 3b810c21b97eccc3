"""Rows of output.jsonl, which OpenHands' evaluations and its resolver of issues write: see `openhands`."""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.coding_agents.openhands import (
    LEFT_OUT_KEYS,
    READ_KEYS,
    REPEATED_KEYS,
    event_steps,
    is_event,
    issue_task,
    log_facts,
)
from apps.trajectories.formats.stated import (
    SUCCESS_KEYS,
    model_name,
    run_facts,
    stated_success,
    stated_task_id,
)
from workers.errors import InvalidRecord
from workers.schema import Trajectory, clean
from workers.schema.decode import require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with a `history` of OpenHands' events"
_HOLDERS = ("", "/report", "/test_result", "/test_result/report", "/test_result/result")
READ = (
    *(f"{at}/{key}" for at in _HOLDERS for key in SUCCESS_KEYS),
    *(f"/history/*/{key}" for key in READ_KEYS),
    *(f"/history/*/*/{key}" for key in READ_KEYS),
)
REPEATED = tuple(f"/history/{at}/{key}" for at in ("*", "*/*") for key in REPEATED_KEYS)
LEFT_OUT = {f"/history/*/{key}": reason for key, reason in LEFT_OUT_KEYS.items()}
_ROW = ("instance_id", "test_result", "git_patch", "metrics")


def sniff(document: Any) -> bool:
    history = document.get("history") if isinstance(document, dict) else None
    if not isinstance(history, list):
        return False
    events = [event for each in history[:3] for event in (each if isinstance(each, list) else [each])]
    return any(map(is_event, events)) or (any(key in document for key in _ROW) and any(map(_is_flat, events)))


def _is_flat(event: Any) -> bool:
    """Whether it is an event of versions that had the arguments next to the action."""
    return isinstance(event, dict) and (
        isinstance(event.get("action"), str) or isinstance(event.get("observation"), str)
    )


def read(document: Any) -> Trajectory:
    row, _ = clean(require_object(document))
    history = require_list(row.get("history"), pointer="/history")
    events = [event for each in history for event in (each if isinstance(each, list) else [each])]
    steps, others = event_steps(events, pointer="/history")
    if not steps:
        raise InvalidRecord(
            "the history has no message of the agent; leave out runs that failed before it began."
        )
    around = {key: value for key, value in row.items() if key != "history"}
    about, metrics, tests = (around.get(key) for key in ("metadata", "metrics", "test_result"))
    nested = [tests.get(key) for key in ("report", "result")] if isinstance(tests, dict) else []
    config = about.get("llm_config") if isinstance(about, dict) else None
    stated = log_facts(steps, events)
    facts = run_facts(metrics, model=model_name(config, about, around) or stated.get("model", ""))
    usage = metrics.get("accumulated_token_usage") if isinstance(metrics, dict) else None
    cost = metrics.get("accumulated_cost") if isinstance(metrics, dict) else None
    facts |= run_facts({"cost": cost}, usage if isinstance(usage, dict) else None)
    instance = around.get("instance")
    identity = stated_task_id(around) or (stated_task_id(instance) if isinstance(instance, dict) else "")
    task = issue_task(around, steps)
    metadata = stated | facts | around | {"events": others}
    return build_trajectory(
        steps,
        replace(task, id=identity) if identity else task,
        pointer="/history",
        agent="OpenHands",
        success=stated_success(around, around.get("report"), tests, *nested),
        metadata={key: value for key, value in metadata.items() if value not in ("", [], {}, None)},
    )
