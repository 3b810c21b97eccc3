"""One hash for everything that decides which token ids a trajectory becomes."""

import hashlib
import json

from msgspec.structs import replace

from workers.schema import ObservationResult, Part, Step, Task, Text, ToolCall, Trajectory
from workers.text.rendered import Renderer


def template_fingerprint(renderer: Renderer) -> str:
    """Over rendered probe conversations, the limits and the tokenizer: a changed renderer does not go unnoticed."""
    limits, *rest = renderer.settings()
    probes = (
        (*_PROBES, _SPEAKERS) if renderer.named_sources else _PROBES
    )  # those of earlier models stay as they are
    if renderer.conditioned:
        probes = (*probes, _CONDITIONED)
    probes = getattr(renderer, "probes", probes)  # its own, of a renderer that reads no text
    if getattr(renderer, "splits_negations", False):
        probes = (*probes, _TURNED)
    shown = [renderer.model_input(renderer.render(probe)) for probe in probes]
    text = json.dumps([limits, shown, *rest], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _probe(*steps: Step) -> Trajectory:
    return Trajectory(steps=steps, task=Task(id="probe"))


def _text_step(source: str, text: str) -> Step:
    return Step(source=source, message=(Part(text=text),))  # type: ignore[arg-type]


_CALL = Step(
    source="agent",
    reasoning="The order number is known.",
    tool_calls=(ToolCall(name="find_order", arguments={"number": 17, "city": "Zürich"}, id="c1"),),
    observation=(ObservationResult(content=(Part(text='{"state": "sent"}'),), call_id="c1"),),
)
_PROBES = (
    Text("It was sent on Monday."),
    _probe(
        _text_step("system", "Help."),
        _text_step("user", "Where is 17?"),
        _CALL,
        _text_step("agent", "It was sent."),
    ),
    _probe(
        _text_step("user", "Look:"),
        Step(source="user", message=(Part(type="image", source="sha256:00"), Part(text="What is it?"))),
        _text_step("environment", "The page has loaded."),
        _text_step("agent", ""),
        _text_step("agent", "A long answer, cut into chunks. " * 600),
        _text_step("agent", "Done."),
    ),
)
_CONDITIONED = replace(
    _PROBES[1],
    conditions={
        "reference": "It was sent on Monday.",
        "goal": "The state of order 17 is told.",
        "principle": "short: says no more than it has to",
        "persona": "Ann, who is in a hurry",
    },
)
_TURNED = replace(_PROBES[1], conditions={"goal": "Never say more.", "principle": "The opposite of: short"})
_SPEAKERS = _probe(
    Step(source="user", speaker="Ann", message=(Part(text="Where is 17?"),)),
    replace(_CALL, speaker="Clerk"),
    Step(
        source="environment", speaker="Shop", observation=(ObservationResult(content=(Part(text="Open."),)),)
    ),
    Step(source="agent", speaker="Chief", message=(Part(text="It was sent."),)),
)
