"""One hash for everything that decides which token ids a trajectory becomes."""

import hashlib
import json

from workers.schema import ObservationResult, Part, Step, Task, Text, ToolCall, Trajectory
from workers.text.chunks import ChunkRenderer


def template_fingerprint(renderer: ChunkRenderer) -> str:
    """Over rendered probe conversations, the limits and the tokenizer: a changed renderer does not go unnoticed."""
    rendered = [renderer.render(probe) for probe in _PROBES]
    shown = [
        [[chunk.source, chunk.step, chunk.agent_step, *renderer.framed(chunk)] for chunk in one.chunks]
        + [list(one.reads), one.start, one.truncated]
        for one in rendered
    ]
    limits = [renderer.chunk_tokens, renderer.max_tokens]
    text = json.dumps([limits, shown, renderer.tokenizer.to_str()], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _probe(*steps: Step) -> Trajectory:
    return Trajectory(steps=steps, task=Task(id="probe"))


def _said(source: str, text: str) -> Step:
    return Step(source=source, message=(Part(text=text),))  # type: ignore[arg-type]


_CALL = Step(
    source="agent",
    reasoning="The order number is known.",
    tool_calls=(ToolCall(name="find_order", arguments={"number": 17, "city": "Zürich"}, id="c1"),),
    observation=(ObservationResult(content=(Part(text='{"state": "sent"}'),), call_id="c1"),),
)
_PROBES = (
    Text("It was sent on Monday."),
    _probe(_said("system", "Help."), _said("user", "Where is 17?"), _CALL, _said("agent", "It was sent.")),
    _probe(
        _said("user", "Look:"),
        Step(source="user", message=(Part(type="image", source="sha256:00"), Part(text="What is it?"))),
        _said("environment", "The page has loaded."),
        _said("agent", ""),
        _said("agent", "A long answer, cut into chunks. " * 600),
        _said("agent", "Done."),
    ),
)
