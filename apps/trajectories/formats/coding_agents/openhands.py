"""OpenHands: logs of its events, those of its SDK (`kind`) included, and rows of its evaluations' output.jsonl.

An event is {"id", "timestamp", "source", "action", "args"} or {..., "observation", "content", "extras", "cause"}; of
the SDK {"id", "timestamp", "source", "kind", ...}. A row is {"instance_id", "instruction", "history": events, or pairs
of an action and its observation, "test_result", "metadata", "metrics", "error", "report"?}; the resolver of issues has
`issue`, `success` and `git_patch` instead. The outcome is what a row says was resolved.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.coding_agents import openhands_events, openhands_sdk
from apps.trajectories.formats.coding_agents.openhands_events import EventMessages
from apps.trajectories.formats.coding_agents.openhands_sdk import SdkMessages
from apps.trajectories.formats.coding_agents.session import (
    first_text,
    prompt_task,
    summed_metrics,
    with_usage,
)
from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.stated import run_facts
from workers.schema import Step, Task, Trajectory, clean, from_messages
from workers.schema.decode import require_list
from workers.schema.messages import build_trajectory

SIGN = "events with an `action` and `args`, an `observation` and `extras`, or a `kind` of OpenHands"
READ_KEYS = (
    *("observation", "kind", "llm_response_id", "llm_message/role"),
    *("tool_call_metadata/total_calls_in_response", "tool_call_metadata/model_response/id"),
    *(
        f"tool_call_metadata/model_response/choices/{key}"
        for key in ("*/index", "*/message/tool_calls/*/index")
    ),
)
# A message of an event for the screen repeats what it says; each event of a call holds the response that made it.
REPEATED_KEYS = ("args", "tool_call_metadata", "action", "tool_call", "extras", "timestamp", "message")
LEFT_OUT_KEYS = {"llm_metrics": "the counts so far, of which the last are read"} | {
    f"{key}/cache_prompt": "whether the provider was asked to cache the text"
    for key in ("thought/*", "observation/content/*", "llm_message/content/*", "system_prompt")
}
READ = tuple(f"/*/{key}" for key in READ_KEYS)
REPEATED = tuple(f"/*/{key}" for key in REPEATED_KEYS)
LEFT_OUT = {f"/*/{key}": reason for key, reason in LEFT_OUT_KEYS.items()}
Gathered = event_log()


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return any(map(is_event, document[:3]))
    return is_event(document)


def is_event(event: Any) -> bool:
    return openhands_events.is_event(event) or openhands_sdk.is_event(event)


def read(document: Any) -> Trajectory:
    events, _ = clean(require_list(document))
    steps, others = event_steps(events)
    metadata = log_facts(steps, events) | {"events": others}
    return build_trajectory(
        steps,
        prompt_task(steps),
        agent="OpenHands",
        metadata={key: value for key, value in metadata.items() if value not in ("", [], {}, None)},
    )


def event_steps(events: list[Any], *, pointer: str = "") -> tuple[tuple[Step, ...], list[Any]]:
    """The steps of events, and the events that are none."""
    found = SdkMessages() if any(map(openhands_sdk.is_event, events)) else EventMessages()
    for index, event in enumerate(events):
        found.add(event, index)
    steps = tuple(
        with_usage(
            replace(step, extra=step.extra | {"source_index": found.places[step.extra["source_index"]]})
        )
        for step in from_messages(found.messages, pointer=pointer)
    )
    return steps, found.others


def log_facts(steps: tuple[Step, ...], events: list[Any]) -> dict[str, Any]:
    """Model, usage and cost: as the SDK counts them in its state, else by the responses that are logged."""
    model = first_text((step.extra.get("message") for step in steps), "model")
    stated = _stated_metrics(events)
    if stated:
        return run_facts(
            *({"cost": sum(_number(each.get("accumulated_cost")) for each in stated)}, _token_sum(stated)),
            model=first_text(stated, "model_name"),
        )
    counted = [event.get("llm_metrics") for event in events if isinstance(event, dict)]
    costs = [
        each["accumulated_cost"] for each in counted if isinstance(each, dict) and "accumulated_cost" in each
    ]
    cost = {"cost": costs[-1]} if costs else {}
    usage = summed_metrics(steps)
    return run_facts(cost, usage, model=model) | ({"usage": usage} if usage else {})


def _stated_metrics(events: list[Any]) -> list[dict[str, Any]]:
    """The metrics of each model by the last event of the SDK that states them."""
    for event in reversed(events):
        value: Any = event.get("value") if isinstance(event, dict) else None
        value = value.get("stats", value) if isinstance(value, dict) else None
        metrics = value.get("usage_to_metrics") if isinstance(value, dict) else None
        if isinstance(metrics, dict) and metrics:
            return [each for each in metrics.values() if isinstance(each, dict)]
    return []


def _token_sum(metrics: list[dict[str, Any]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in metrics:
        usage: Any = each.get("accumulated_token_usage")
        for key in ("prompt_tokens", "completion_tokens") if isinstance(usage, dict) else ():
            total[key] = total.get(key, 0) + _number(usage.get(key))
    return total


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def issue_task(row: dict[str, Any], steps: tuple[Step, ...]) -> Task:
    """The task of a row of the resolver: the issue."""
    issue = row.get("issue")
    instruction = first_text([row], "instruction") or prompt_task(steps).instruction
    if isinstance(issue, dict) and isinstance(issue.get("number"), int):
        name = "/".join(str(issue[key]) for key in ("owner", "repo") if issue.get(key))
        return Task(id=f"{name}#{issue['number']}", instruction=instruction)
    return replace(prompt_task(steps), instruction=instruction)
