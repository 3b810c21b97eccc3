"""Trajectories as conversations that chat templates show: fields without a value are left out, arguments are objects.

Templates ask whether a message has calls, a name or reasoning, so an empty one changes what they write, or makes them
raise; arguments as text are quoted once more by most of them.
"""

import json
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from apps.annotation.feedback.frozen_records import FIELD, record_text
from apps.datasets.exports.columns import LeftOut
from apps.datasets.models import DatasetVersion
from apps.datasets.selectors import read_dataset_records
from apps.trajectories.attachments import restore_attachments
from workers.schema import ObservationResult, Part, PreferenceRecord, Step, Trajectory
from workers.schema.atif_model import ARGUMENTS_TEXT
from workers.schema.records import KIND_OF, FeedbackRecord, record_trajectories
from workers.schema.tool_definitions import stated_tools
from workers.schema.tool_results import call_places

Message = dict[str, Any]
NUMERIC = "records of numeric trajectories, which have no text"
# Llama 2 (arXiv 2307.09288), table 27, small margins: slightly better, better, significantly better.
MARGINS = {1: 1 / 3, 2: 2 / 3, 3: 1.0}
_LOADABLE = ("data:", "http://", "https://")  # sources of images that others can open


def decided_pairs(
    dataset_version: DatasetVersion, split: str | None, left_out: LeftOut
) -> Iterator[PreferenceRecord]:
    """Comparisons with a chosen side, judged overall; the others are counted in `left_out`."""
    for record in read_dataset_records(dataset_version, split):
        reason = undecided(record) or numeric(record)
        if reason is None and isinstance(record, PreferenceRecord):
            yield record
        elif reason is not None:
            left_out[reason] += 1


def undecided(record: FeedbackRecord) -> str | None:
    """Why a record is no comparison with a chosen side."""
    if not isinstance(record, PreferenceRecord):
        return f"{KIND_OF[type(record)]} records"
    if record.criterion is not None:
        return "comparisons by one criterion"
    return {"tie": "ties", "both_bad": "both bad"}.get(record.choice)


def numeric(record: FeedbackRecord) -> str | None:
    """Why a record has nothing to read: a trajectory of it is made of numbers alone."""
    return NUMERIC if any(map(is_numeric, record_trajectories(record))) else None


def is_numeric(trajectory: Trajectory) -> bool:
    """Whether its steps have numbers, and none of them a message, a call or an observation."""
    return any(step.features is not None for step in trajectory.steps) and not any(
        step.message or step.reasoning or step.tool_calls or step.observation for step in trajectory.steps
    )


def with_images(dataset_version: DatasetVersion, record: PreferenceRecord) -> PreferenceRecord:
    """The record with the bytes of its images in it: of other contents, by their hash, than the project's."""
    a, b = (restore_attachments(dataset_version.project, side) for side in (record.a, record.b))
    return replace(record, a=a, b=b)


def chosen_and_rejected(record: PreferenceRecord) -> tuple[Trajectory, Trajectory]:
    """Chosen, rejected."""
    return (record.a, record.b) if record.choice == "a" else (record.b, record.a)


def preference_fields(record: PreferenceRecord) -> dict[str, Any]:
    """The fields of a preference other than its two sides."""
    fields = {"margin": MARGINS[record.strength], "origin": record.origin, FIELD: record_text(record)}
    return fields | tools_field(record.a, record.b)


def tools_field(*trajectories: Trajectory) -> dict[str, Any]:
    """{"tools": [...]}: the definitions that the trajectories state, each once; empty where they state none."""
    found = stated_tools(*(trajectory.metadata for trajectory in trajectories))
    return {"tools": found} if found else {}


def conversation_messages(trajectory: Trajectory) -> list[Message]:
    """The messages that a policy was shown and wrote. A content with an image is a list of parts, else it is text."""
    return [message for step in trajectory.steps for message in step_messages(step)]


def step_messages(step: Step) -> list[Message]:
    """The messages of a step: that of the agent with its calls, then the result of each."""
    return list(_step_messages(step))


def _step_messages(step: Step) -> Iterator[Message]:
    if step.source == "environment":
        yield from ({"role": "user", "content": _content(result.content)} for result in step.observation)
        return
    name = {"name": step.speaker} if step.speaker else {}
    if step.source != "agent":
        yield {"role": step.source} | name | {"content": _content(step.message)}
        return
    message: Message = {"role": "assistant"} | name | {"content": _content(step.message)}
    if step.reasoning:
        message["reasoning_content"] = step.reasoning
    if step.tool_calls:
        message["tool_calls"] = [
            ({"id": call.id} if call.id else {})
            | {
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call.arguments)},
            }
            for call in step.tool_calls
        ]
    yield message
    for result, place in zip(step.observation, call_places(step), strict=True):
        yield _result_message(step, place, result)


def _result_message(step: Step, place: int | None, result: ObservationResult) -> Message:
    """place: of the call that it answers."""
    content = _content(result.content)
    if place is None:
        return {"role": "user", "content": content}
    call = step.tool_calls[place]
    named = {"tool_call_id": call.id} if call.id else {}
    return {"role": "tool"} | named | {"name": call.name, "content": content}


def _arguments(arguments: Any) -> dict[str, Any]:
    """Templates take an object. Text that is none is its only member."""
    return arguments if isinstance(arguments, dict) else {ARGUMENTS_TEXT: arguments}


def _content(parts: tuple[Part, ...]) -> Any:
    if not any(_is_loadable(part) for part in parts):
        return "\n".join(part.text or f"[{part.type}]" for part in parts if part.text != "")
    return [
        {"type": "image", "image": part.source}
        if _is_loadable(part)
        else {"type": "text", "text": part.text or f"[{part.type}]"}
        for part in parts
        if part.text != ""
    ]


_NAMED_MEDIA = {"image": "images", "file": "files", "video": "videos"}


def _is_loadable(part: Part) -> bool:
    return part.type == "image" and (part.source or "").startswith(_LOADABLE)


def count_named_media(left_out: LeftOut, *trajectories: Trajectory) -> None:
    """Count what `_content` names in brackets: media without text, but for images that trainers load."""
    for step in (step for trajectory in trajectories for step in trajectory.steps):
        for part in (*step.message, *(part for result in step.observation for part in result.content)):
            if part.type != "text" and not part.text and not _is_loadable(part):
                left_out[f"{_NAMED_MEDIA.get(part.type, part.type)} named in the text"] += 1


def prompt_and_rest(trajectory: Trajectory) -> tuple[list[Message], list[Message]]:
    """The messages before the first agent step, and the rest."""
    messages = conversation_messages(trajectory)
    cut = next((at for at, message in enumerate(messages) if message["role"] == "assistant"), len(messages))
    return asked(messages[:cut], trajectory), messages[cut:]


def asked(prompt: list[Message], trajectory: Trajectory) -> list[Message]:
    """A prompt that ends with someone else than the system, as trainers require one."""
    if prompt and prompt[-1]["role"] != "system":
        return prompt
    return [*prompt, {"role": "user", "content": trajectory.task.instruction}]


def split_prompt(
    chosen: list[Message], rejected: list[Message]
) -> tuple[list[Message], list[Message], list[Message]]:
    """The common prompt, and the continuation of each side, which starts with an agent message."""
    shared = 0
    for message, other in zip(chosen, rejected, strict=False):
        if message != other:
            break
        shared += 1
    cut = min(shared, len(chosen) - 1, len(rejected) - 1)
    while cut > 0 and not (chosen[cut]["role"] == rejected[cut]["role"] == "assistant"):
        cut -= 1
    return chosen[:cut], chosen[cut:], rejected[cut:]


def has_images(messages: list[Message]) -> bool:
    return any(isinstance(message["content"], list) for message in messages)


def prompt_images(
    messages: list[Message], left_out: LeftOut, *, parts: bool
) -> tuple[list[Message], list[str]]:
    """A prompt as TRL takes one with images: a placeholder where each belongs, and the images in order.

    Of tools' messages TRL takes none, so that they are named in the text. parts: every content as a list of parts,
    since `datasets` reads texts that look like JSON as JSON where only some contents are lists.
    """
    out, images = [], []
    for message in messages:
        content = message["content"]
        if isinstance(content, list) and message["role"] != "tool":
            images += [part["image"] for part in content if part["type"] == "image"]
            content = [{"type": "image"} if part["type"] == "image" else part for part in content]
        else:
            (message,) = without_images([message], left_out)
            content = message["content"]
            content = [{"type": "text", "text": content}] if parts else content
        out.append(message | {"content": content})
    return out, images


def without_images(messages: list[Message], left_out: LeftOut) -> list[Message]:
    """The messages with text only: an image is named in brackets, and counted."""
    left_out["images named in the text"] += sum(
        part["type"] == "image"
        for message in messages
        if isinstance(message["content"], list)
        for part in message["content"]
    )
    return [message | {"content": content_text(message["content"])} for message in messages]


def content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or f"[{part['type']}]" for part in content)


def as_text(messages: list[Message]) -> str:
    """Plain text: one message as it is, several with their roles; reasoning in <think>, calls as `name(arguments)`."""
    if len(messages) == 1 and messages[0].keys() == {"role", "content"}:
        return content_text(messages[0]["content"])
    return "\n\n".join(f"{_who(message)}: {message_text(message)}" for message in messages)


def _who(message: Message) -> str:
    """The role, with who spoke where several share it."""
    name = message.get("name") if message["role"] != "tool" else None
    return f"{message['role']} ({name})" if name else str(message["role"])


def message_text(message: Message) -> str:
    reasoning = message.get("reasoning_content")
    thought = f"<think>\n{reasoning}\n</think>" if reasoning else ""
    calls = [
        f"{call['function']['name']}({_arguments_text(call['function']['arguments'])})"
        for call in message.get("tool_calls", ())
    ]
    return "\n".join(part for part in (thought, content_text(message["content"]), *calls) if part)


def _arguments_text(arguments: dict[str, Any]) -> str:
    if arguments.keys() == {ARGUMENTS_TEXT}:
        return str(arguments[ARGUMENTS_TEXT])
    return json.dumps(arguments, ensure_ascii=False)
