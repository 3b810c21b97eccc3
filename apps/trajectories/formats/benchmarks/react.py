"""Turns of agents that write what they do as text: `Thought: ... Action: ...` (ReAct), and where that is found.

Rows of AgentInstruct (AgentTuning), ToolLLaMA and ETO are {"id", "conversations": [{"from" | "role", "value" |
"content"}]}. What comes after a turn with an action is what the environment answers; before any, and after a turn
without one, it is the user who speaks.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.fields import read_id
from apps.trajectories.formats.stated import stated_success
from workers.schema import ObservationResult, Part, Step, Task, ToolCall, Trajectory, clean, from_messages
from workers.schema.decode import finite, require_object
from workers.schema.messages import build_trajectory, decode_arguments
from workers.schema.patterns import SPACE, TextPattern

SIGN = "an object with `conversations` in which the agent writes `Thought:` and `Action:`"
READ = ("/id", "/reward", "/success", "/conversations/*/from", "/conversations/*/role")
_MARKS = (
    TextPattern(r"(?is)(?:^|\n)[ \t]*(?:thought|think)s?[ \t]*:.*?(?:^|[\n.!?])[ \t]*act(?:ion)?[ \t]*:"),
    TextPattern(r"(?s)(?:^|\n)[ \t]*Act(?:ion)?[ \t]*:[ \t]*(?:Operation|Answer|bash|finish|answer\()"),
)
_ACTION = TextPattern(r"(?is)^(.*?)(?:^|[\n.!?])[ \t]*act(?:ion)?[ \t]*:[ \t]*\n?(.*)$")
_INPUT = TextPattern(r"(?is)^(.*?)\n[ \t]*action[ _]input[ \t]*:[ \t]*(.*?)(?:\n[ \t]*End Action[ \t]*)?\n?$")
_THOUGHT = TextPattern(rf"(?is)^[{SPACE}]*(?:thought|think)s?[ \t]*:[{SPACE}]*(.*)$")
_BLOCK = TextPattern(r"(?s)^(.*?)```[A-Za-z]*[ \t]*\n?(.*?)```(.*)$")
_CALL = TextPattern(r"(?s)^([A-Za-z_]\w{0,60})[ \t]*(?:\((.*)\)|\[(.*)\])[ \t.]*$")
_NUMBERED = TextPattern(r"(?s)^Step \d{1,6}: (.*)$")
_LAST = ("answer", "finish", "stop", "terminate", "submit")  # actions that the environment does not answer
_ASKED, _LOOKED = ("conversations", "id", "reward", "success"), 12


def sniff(document: Any) -> bool:
    turns = document.get("conversations") if isinstance(document, dict) else None
    if not isinstance(turns, list) or len(turns) < 2 or not all(isinstance(turn, dict) for turn in turns):
        return False
    texts = (turn.get("value", turn.get("content")) for turn in turns[:_LOOKED] if _is_agent(turn))
    return any(isinstance(text, str) and any(mark.search(text) for mark in _MARKS) for text in texts)


def _is_agent(turn: dict[str, Any]) -> bool:
    return turn.get("from", turn.get("role")) in ("gpt", "assistant", "agent")


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    steps = in_words(from_messages(document.get("conversations"), pointer="/conversations"))
    identity = read_id(document.get("id"))
    numbered = _NUMBERED.match(identity) if identity else None
    reward = finite(document.get("reward"), pointer="/reward")
    success = stated_success(document)
    return build_trajectory(
        steps,
        Task(id="" if numbered else identity or "", instruction=numbered[1] if numbered else asked(steps)),
        pointer="/conversations",
        id=identity,
        reward=reward,
        success=success if success is not None or reward is None else reward >= 1,
        metadata={key: value for key, value in document.items() if key not in _ASKED},
    )


def asked(steps: tuple[Step, ...]) -> str:
    """What the user said last before the first action: the turns before are the rules of the game."""
    acted = next((index for index, step in enumerate(steps) if step.tool_calls), len(steps))
    return next((step.text for step in reversed(steps[:acted]) if step.source == "user"), "")


def in_words(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with the actions that the agent wrote as calls, and what followed them as observations."""
    found: list[Step] = []
    for step in steps:
        last = found[-1] if found else None
        if step.source == "agent" and not step.tool_calls:
            found.append(acted(step))
        elif step.source in ("user", "environment") and last is not None and _is_answered(last):
            index = {"source_index": step.extra["source_index"]} if "source_index" in step.extra else {}
            results = step.observation or (ObservationResult(content=step.message, extra=index),)
            found[-1] = replace(last, observation=(*last.observation, *results))
        else:
            found.append(step)
    return tuple(found)


def _is_answered(step: Step) -> bool:
    """Whether what comes after the step is what the environment says to it."""
    return step.source == "agent" and any(call.name.lower() not in _LAST for call in step.tool_calls)


def acted(step: Step) -> Step:
    """With the action of its text as a call, if it has one; the thought stays its text, all of it is kept in extra."""
    match = _ACTION.match(step.text) if len(step.message) == 1 else None
    if match is None or not match[2].strip():
        return step
    before = step.text[: match.start(2)]
    thought = before[: before.lower().rindex("act")].strip()
    named = _THOUGHT.match(thought)
    thought = (named[1] if named else thought).strip()
    message = (Part(text=thought),) if thought else ()
    extra = step.extra | {"text": step.text}
    return replace(step, message=message, tool_calls=(action_call(match[2].strip()),), extra=extra)


def action_call(action: str) -> ToolCall:
    """An action in words as a call: a name with what is in brackets or below it, or code in a fence."""
    if given := _INPUT.match(action):
        arguments, raw = decode_arguments(given[2].strip())
        return ToolCall(name=given[1].strip() or "act", arguments=arguments, raw=raw)
    if block := _BLOCK.match(action):
        name = block[1].strip()
        texts = {"before": "" if name.isidentifier() else name, "text": block[3].strip()}
        around = {key: text for key, text in texts.items() if text}
        return ToolCall(name=name if name.isidentifier() else "code", arguments={"code": block[2]} | around)
    if called := _CALL.match(action):
        return ToolCall(name=called[1], arguments=called[2] if called[2] is not None else called[3])
    first, _, after = action.partition("\n")
    if first.strip().isidentifier() and after.strip():
        return ToolCall(name=first.strip(), arguments={"text": after.strip()})
    return ToolCall(name=action if action.lower() in _LAST else "act", arguments={"action": action})
