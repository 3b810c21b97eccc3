"""WebVoyager's `interact_messages.json`: chat messages, of which the user's are what the browser shows.

The first of them holds the task and the address to begin at. An answer is `Thought: ... Action: Click [2]`: the thought
is what the agent said, the action a call; the text as it was stays in extra. Pictures of earlier turns are left out of
the log ("Omitted in context") or are the placeholder `{b64_img}`; in an archive those of the files `screenshotN.png`
next to it are put in their place.
"""

from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.turns import observed
from workers.schema import Part, Step, Task, ToolCall, Trajectory, clean, from_messages
from workers.schema.decode import require_list, require_object
from workers.schema.messages import build_trajectory
from workers.schema.patterns import SPACE, TextPattern

SIGN = (
    "chat messages whose task begins with `Now given a task:` and whose answers have `Thought:` and `Action:`"
)
READ = ("/messages/*/role", "/*/role")
_TASK = TextPattern(
    rf"(?s)Now given a task:[{SPACE}]*(.*?)[{SPACE}]*Please interact with[{SPACE}]*(\S+)[{SPACE}]+and get the answer"
)
_ACTION = TextPattern(rf"(?s)(.*?)[{SPACE}]*Action:[{SPACE}]*([A-Za-z]{{1,30}})(.*)")
_OPERANDS = TextPattern(rf"(?s)[{SPACE};]*(?:\[([^\[\]]{{1,60}})\])?[{SPACE};]*(.*)")
_PLACEHOLDER = "{b64_img}"
_FIRST = "Now given a task:"


def sniff(document: Any) -> bool:
    messages = document.get("messages") if isinstance(document, dict) else document
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages[:3]):
        return False
    users = [message for message in messages[:3] if message.get("role") == "user"]
    return bool(users) and _text(users[0].get("content")).startswith(_FIRST)


def _text(content: Any) -> str:
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return next((text for text in texts if isinstance(text, str)), "")
    return content if isinstance(content, str) else ""


def read(document: Any) -> Trajectory:
    document, _ = clean(document)
    around = require_object({"messages": document} if isinstance(document, list) else document)
    pictures = require_list(around.get("screenshots") or [], pointer="/screenshots")
    at = "" if isinstance(document, list) else "/messages"
    given = from_messages(around.get("messages"), pointer=at)
    users = [index for index, step in enumerate(given) if step.source == "user"]
    steps = [
        _with_picture(step, pictures[users.index(index)] if users.index(index) < len(pictures) else None)
        if step.source == "user"
        else _acted(step)
        for index, step in enumerate(given)
    ]
    first = steps[users[0]].text if users else ""
    match = _TASK.search(first)
    instruction = match[1] if match else first.partition(_FIRST)[2].strip()
    return build_trajectory(
        observed(tuple(steps)),
        Task(id="", instruction=instruction, metadata={"web": match[2]} if match else {}),
        pointer=at,
        metadata={key: value for key, value in around.items() if key not in ("messages", "screenshots")},
    )


def _with_picture(step: Step, picture: Any) -> Step:
    """With the picture in the place of its placeholder, or at the end; a placeholder is no picture."""
    if step.source != "user":
        return step
    parts = [part for part in step.message if not (part.source or "").endswith(_PLACEHOLDER)]
    has_picture = any(part.type == "image" for part in parts)
    if isinstance(picture, str) and picture and not has_picture:
        parts.append(Part(type="image", source=picture))
    is_left_out = len(parts) < len(step.message) and not any(part.type == "image" for part in parts)
    extra = step.extra | ({"picture": "left out of the log"} if is_left_out else {})
    return replace(step, message=tuple(parts), extra=extra)


def _acted(step: Step) -> Step:
    if step.source != "agent" or step.tool_calls or (match := _ACTION.fullmatch(step.text)) is None:
        return step
    operands = _OPERANDS.fullmatch(match[3])
    element, text = (operands[1], operands[2].strip()) if operands else (None, match[3].strip())
    arguments = ({"element": element} if element else {}) | ({"text": text} if text else {})
    call = ToolCall(name=match[2].lower(), arguments=arguments)
    said = match[1].strip().removeprefix("Thought:").strip()
    message = (Part(text=said),) if said else ()
    return replace(step, message=message, tool_calls=(call,), extra=step.extra | {"text": step.text})
