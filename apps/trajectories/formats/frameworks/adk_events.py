"""Events of Google's Agent Development Kit one by one: JSON lines of a run, or an array."""

from typing import Any

from apps.trajectories.formats.event_log import event_log
from apps.trajectories.formats.frameworks import adk
from apps.trajectories.formats.placed import storable
from workers.schema import Trajectory

SIGN = "events with an `author`, a `content` of `parts` and an `invocation_id`"
Gathered = event_log()


def sniff(document: Any) -> bool:
    events = document if isinstance(document, list) else [document]
    return bool(events) and all(map(_is_event, events[:3]))


def _is_event(value: Any) -> bool:
    return adk.is_event(value) and ("invocation_id" in value or "invocationId" in value)


@storable
def read(document: Any) -> Trajectory:
    return adk.read({"events": document if isinstance(document, list) else [document]})
