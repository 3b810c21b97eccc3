"""Sessions that coding agents write as Markdown or plain text: {KEY: about the session, "messages": [...]}.

`text_kind` cuts the files; the messages are in the shape of OpenAI's, with `model`, `timestamp` and `usage` where the
text has them.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.coding_agents.session import prompt_task
from apps.trajectories.formats.placed import MessageReader, placed
from workers.schema import Step, Trajectory
from workers.schema.decode import require_object
from workers.schema.messages import build_trajectory
from workers.schema.tool_results import ORPHAN

Message = dict[str, Any]


def is_transcript(document: Any, key: str) -> bool:
    return (
        isinstance(document, dict)
        and isinstance(document.get(key), dict)
        and isinstance(document.get("messages"), list)
    )


def read_transcript(document: Any, key: str, agent: str) -> Trajectory:
    """agent: its name, where the session has none. Raises InvalidRecord."""
    document = require_object(document)
    about = require_object(document.get(key), pointer=f"/{key}")
    steps, facts = MessageReader().read(placed(document.get("messages"), "/messages"))
    identity = about.get("id")
    return build_trajectory(
        tuple(map(_as_note, steps)),
        prompt_task(steps),
        pointer="/messages",
        id=identity if isinstance(identity, str) else None,
        agent=str(about.get("agent") or agent),
        metadata={name: value for name, value in about.items() if name not in ("id", "agent")} | facts,
    )


def _as_note(step: Step) -> Step:
    """What the program wrote between the turns answers no call, so none is missing."""
    if step.source != "environment" or ORPHAN not in step.extra:
        return step
    return replace(step, extra={key: value for key, value in step.extra.items() if key != ORPHAN})


def stripped(lines: list[str]) -> str:
    """Lines without the empty ones around them."""
    return "".join(lines).strip("\r\n").rstrip()
