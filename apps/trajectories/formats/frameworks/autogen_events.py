"""Messages and events of AutoGen one by one, as a list or as JSON lines, and the log of Magentic-One.

A log of Magentic-One has {"timestamp", "source", "message", "type": "OrchestrationEvent"} and, of calls of its models,
{"type": "LLMCallEvent", "prompt_tokens", "completion_tokens"}. `source` may say more than the speaker: "Orchestrator
(thought)".
"""

from typing import Any

from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.frameworks.autogen import CONVERSATION, is_message
from apps.trajectories.formats.placed import Placed, objects, spoken, steps_of, storable, summed
from apps.trajectories.formats.stated import run_facts
from workers.schema import Task, Trajectory
from workers.schema.framework_messages import is_person
from workers.schema.message_parts import result_content
from workers.schema.messages import build_trajectory

SIGN = "messages or events with a `type` of AutoGen, such as TextMessage or OrchestrationEvent"
_LOGGED = ("OrchestrationEvent", "AgentEvent", "WebSurferEvent", "LLMCallEvent")
Gathered = event_log()


def sniff(document: Any) -> bool:
    if isinstance(document, list):
        return bool(document) and all(map(_is_event, document[:3]))
    return _is_event(document)


def _is_event(value: Any) -> bool:
    return is_message(value) or _is_logged(value)


def _is_logged(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and str(value.get("type")) in _LOGGED
        and ("message" in value or "prompt_tokens" in value)
    )


@storable
def read(document: Any) -> Trajectory:
    events = document if isinstance(document, list) else [document]
    if not any(map(_is_logged, events)):
        steps, facts = CONVERSATION.read([(f"/{index}", each) for index, each in enumerate(events)])
        return build_trajectory(steps, Task(id=""), metadata=facts)
    said: list[Placed] = []
    speakers: dict[int, str] = {}
    for index, event in enumerate(events):
        if isinstance(event, dict) and "message" in event:
            speaker = str(event.get("source") or "").partition("(")[0].strip()
            speakers[len(said)] = speaker
            said.append((f"/{index}", _logged(event, speaker)))
    steps = spoken(steps_of(said), speakers)
    calls = [event for event in objects(events) if event.get("type") == "LLMCallEvent"]
    return build_trajectory(steps, Task(id=""), metadata=run_facts(summed(calls)))


def _logged(event: dict[str, Any], speaker: str) -> dict[str, Any]:
    content = event["message"]
    content = content if isinstance(content, str) else result_content(content)
    known = ("message", "type", "source", "timestamp")
    rest = {key: value for key, value in event.items() if key not in known}
    about = {"event": event["type"], "logged_source": event.get("source")}
    return {"role": "user" if is_person(speaker) else "assistant", "content": content} | rest | about
