"""Tapes of TapeAgents and AgentLab (BrowserGym): {"metadata", "steps": [{"kind", "metadata", ...}]}, as JSON.

A tape is thoughts, actions and observations, each of its own kind. Thoughts become the reasoning of the action they
lead to; actions without an observation between them that come of the same prompt are one step with several calls; what
was observed belongs to the action before it. Steps that only say which node is next have nothing to read: they are kept
in the step's extra. AgentLab writes observations as JSON and actions as a line of code, with the environment's reward.
Pictures are named by their file, and taken from the same archive where there is one.
"""

from dataclasses import dataclass, field
from typing import Any

from apps.trajectories.formats.benchmarks.browser import called, is_call, seen
from apps.trajectories.formats.fields import read_id
from workers.errors import InvalidRecord
from workers.schema import (
    ObservationResult,
    Part,
    Step,
    Task,
    ToolCall,
    Trajectory,
    clean,
    parse_json,
)
from workers.schema.decode import finite, optional_str, require_list, require_object
from workers.schema.messages import build_trajectory, decode_arguments
from workers.schema.records import Source

SIGN = "an object with `metadata` and `steps` that each have a `kind`"
READ = ("/steps/*/kind", "/metadata/reward", "/steps/*/metadata/other/reward", "/metadata/id")
_USER = ("task", "question", "user", "goal_observation")
_CONTROL = ("set_next_node", "pass")
_THOUGHTS = ("agent_thinking", "call", "respond")
_SEEN = ("tool", "html_page", "ax_tree_page", "action_result", "action_execution_failure")
_SAID = ("agent_response", "final_step", "assistant_answer")
_TEXTS = (
    "text",
    "content",
    "result",
    "axtree",
    "html",
    "reasoning",
    "thinking",
    "response",
    "answer",
    "reason",
    "goal",
)
_PICTURES = ("image_path", "screenshot_path")


def sniff(document: Any) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        return False
    steps = document.get("steps")
    return isinstance(steps, list) and bool(steps) and isinstance(steps[0], dict) and "kind" in steps[0]


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    about = require_object(document.get("metadata") or {}, pointer="/metadata")
    tape = _Tape()
    for index, step in enumerate(require_list(document.get("steps"), pointer="/steps")):
        step = require_object(step, pointer=f"/steps/{index}")
        kind = optional_str(step.get("kind"), pointer=f"/steps/{index}/kind")
        if not kind:
            raise InvalidRecord("a step of a tape has a kind.", pointer=f"/steps/{index}/kind")
        tape.add(kind, step, index)
    steps = tape.finished()
    instruction = next((step.text for step in steps if step.source == "user"), "")
    reward = finite(about.get("reward"), pointer="/metadata/reward")
    known = ("id", "author", "reward", "task")
    return build_trajectory(
        steps,
        _task(about, instruction),
        pointer="/steps",
        id=read_id(about.get("id"), pointer="/metadata/id"),
        agent=optional_str(about.get("author"), pointer="/metadata/author") or tape.agent,
        reward=reward,
        success=None if reward is None else reward >= 1,
        metadata={
            key: value for key, value in about.items() if key not in known and value not in (None, {}, "")
        }
        | ({"context": document["context"]} if document.get("context") else {}),
    )


@dataclass(slots=True)
class _OpenStep:
    """An agent's step that may still get calls and observations."""

    index: int
    speaker: str | None = None
    prompt: str = ""
    message_parts: list[Part] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    seen: list[ObservationResult] = field(default_factory=list)
    reward: float | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def has_acted(self) -> bool:
        return bool(self.calls or self.message_parts)

    def step(self) -> Step:
        return Step(
            source="agent",
            speaker=self.speaker,
            message=tuple(self.message_parts),
            reasoning="\n\n".join(self.thought) or None,
            tool_calls=tuple(self.calls),
            observation=tuple(self.seen),
            reward=self.reward,
            extra={"source_index": self.index} | self.extra,
        )


@dataclass(slots=True)
class _Tape:
    """agent: who acted first."""

    agent: str = ""
    _steps: list[Step] = field(default_factory=list)
    _open: _OpenStep | None = None

    def add(self, kind: str, step: dict[str, Any], index: int) -> None:
        at = f"/steps/{index}"
        about = require_object(step.get("metadata") or {}, pointer=f"{at}/metadata")
        given = {key: value for key, value in step.items() if key not in ("kind", "metadata")}
        other = require_object(about.get("other") or {}, pointer=f"{at}/metadata/other")
        if kind in _USER:
            self._put("user", index, _view(kind, given, other))
        elif kind == "system":
            self._put("system", index, _view(kind, given, other))
        elif kind in _SEEN or kind.endswith(("_observation", "_page", "_result")):
            view = _browsed(given, at) if kind == "dict_observation" else _view(kind, given, other)
            if self._open is not None and self._open.has_acted:
                self._open.seen.append(view)
            else:
                self._put("environment", index, view)
        else:
            self._act(kind, given, about, other, index)

    def finished(self) -> tuple[Step, ...]:
        self._close()
        return tuple(self._steps)

    def _act(
        self, kind: str, given: dict[str, Any], about: dict[str, Any], other: dict[str, Any], index: int
    ) -> None:
        prompt = str(about.get("prompt_id") or "")
        now = self._open
        goes_on = now is not None and (
            not now.has_acted or (prompt and prompt == now.prompt and not now.seen)
        )
        if now is None or not (goes_on or kind in _CONTROL):
            self._close()
            now = self._open = _OpenStep(index)
        speaker = str(about.get("agent") or "")
        self.agent = self.agent or speaker
        now.speaker = now.speaker or speaker or None
        if kind in _CONTROL:
            now.extra.setdefault("control", []).append({"kind": kind} | given)
        elif kind in _THOUGHTS or kind.endswith("thought"):
            now.thought.append(_text(given))
        else:
            now.prompt = prompt
            now.reward = finite(other.get("reward"), pointer=f"/steps/{index}/metadata/other/reward")
            if other:
                now.extra["other"] = {key: value for key, value in other.items() if key != "reward"}
            self._do(now, kind, given, f"/steps/{index}")

    def _do(self, now: _OpenStep, kind: str, given: dict[str, Any], at: str) -> None:
        if isinstance(given.get("tool_calls"), list):
            now.calls += [_call(call, f"{at}/tool_calls/{n}") for n, call in enumerate(given["tool_calls"])]
        elif kind == "assistant" and isinstance(given.get("content"), str) and is_call(given["content"]):
            now.calls.append(called(given["content"]))
        elif kind == "assistant" or kind in _SAID or kind.endswith("_answer"):
            now.message_parts.append(Part(text=_text(given)))
        else:
            now.calls.append(ToolCall(name=kind.removesuffix("_action"), arguments=given))

    def _put(self, source: Source, index: int, view: ObservationResult) -> None:
        self._close()
        extra = {"source_index": index}
        if source == "environment":
            self._steps.append(Step(source=source, observation=(view,), extra=extra))
        else:
            self._steps.append(Step(source=source, message=view.content, extra=extra | view.extra))

    def _close(self) -> None:
        if self._open is not None:
            self._steps.append(self._open.step())
        self._open = None


def _text(given: dict[str, Any]) -> str:
    """The fields as text; several fields are labelled with their names."""
    fields_given = {key: value for key, value in given.items() if value not in (None, "", [], {})}
    if len(fields_given) == 1:
        (value,) = fields_given.values()
        if isinstance(value, str):
            return value
    return "\n".join(f"{key.replace('_', ' ')}: {_plain(value)}" for key, value in fields_given.items())


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return "".join(f"\n- {_plain(element)}" for element in value)
    return value if isinstance(value, str) else str(value)


def _view(kind: str, given: dict[str, Any], other: dict[str, Any]) -> ObservationResult:
    """What was observed: its text, its picture, and the rest as it is."""
    rest = dict(given)
    picture = next((rest.pop(key) for key in _PICTURES if isinstance(rest.get(key), str)), None)
    picture = picture or next((other[key] for key in _PICTURES if isinstance(other.get(key), str)), "")
    call = rest.pop("tool_call_id", None) if kind == "tool" else None
    name = next((key for key in (kind, *_TEXTS) if isinstance(rest.get(key), str) and rest[key]), None)
    text = rest.pop(name) if name else ""
    rest = {key: value for key, value in rest.items() if value is not None}
    if not text and rest and not picture:
        text, rest = _text(rest), {}
    view = seen(text, picture, rest)
    return ObservationResult(content=view.content, call_id=str(call) if call else None, extra=rest)


def _browsed(given: dict[str, Any], at: str) -> ObservationResult:
    """A BrowserGym observation, as AgentLab writes it: JSON in `content`."""
    content = optional_str(given.get("content"), pointer=f"{at}/content") or "{}"
    try:
        view = require_object(parse_json(content.encode()))
    except InvalidRecord as error:
        raise error.at(f"{at}/content") from None
    text = next(
        (view[key] for key in ("axtree_txt", "pruned_html", "dom_txt") if isinstance(view.get(key), str)), ""
    )
    picture = next((view[key] for key in (*_PICTURES, "screenshot") if isinstance(view.get(key), str)), "")
    about = {
        key: view[key]
        for key in (
            "url",
            "open_pages_urls",
            "focused_element_bid",
            "last_action_error",
            "goal",
            "chat_messages",
        )
        if view.get(key)
    }
    # Where the elements are that actions name: a click is drawn by it.
    of_elements = view.get("extra_element_properties")
    if isinstance(of_elements, dict):
        about["boxes"] = {
            bid: of_element["bbox"]
            for bid, of_element in of_elements.items()
            if isinstance(of_element, dict) and of_element.get("bbox")
        }
    return seen(text, picture, about)


def _call(given: Any, at: str) -> ToolCall:
    given = require_object(given, pointer=at)
    function = require_object(given.get("function"), pointer=f"{at}/function")
    name = optional_str(function.get("name"), pointer=f"{at}/function/name") or "unnamed"
    arguments, raw = decode_arguments(function.get("arguments"))
    return ToolCall(name=name, arguments=arguments, raw=raw, id=read_id(given.get("id"), pointer=f"{at}/id"))


def _task(about: dict[str, Any], instruction: str) -> Task:
    given = about.get("task")
    if not isinstance(given, dict):
        return Task(id=given if isinstance(given, str) else "", instruction=instruction)
    identity = given.get("task_id") or given.get("task_name") or given.get("id") or ""
    seed = given.get("task_seed", given.get("seed"))
    reference = given.get("Final answer", given.get("answer"))
    kept = ("task_id", "task_name", "id", "Final answer", "answer")
    return Task(
        id=f"{identity} {seed}" if identity and isinstance(seed, int) else str(identity),
        instruction=instruction or str(given.get("Question") or ""),
        reference=str(reference) if reference is not None else None,
        metadata={key: value for key, value in given.items() if key not in kept},
    )
