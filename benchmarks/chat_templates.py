"""Conversations as the chat templates that TRL ships render them, with no tokenizer."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from transformers.utils.chat_template_utils import render_jinja_template

from workers.schema import Trajectory, from_messages
from workers.schema.messages import build_trajectory
from workers.schema.records import Part, Task
from workers.text.segments import parts_text

Json = dict[str, Any]


def _template_folder() -> Path:
    """Found without importing TRL, which takes a second of CPU."""
    found = find_spec("trl")
    assert found is not None and found.origin is not None, "TRL is not installed: `make install-dev`"
    return Path(found.origin).parent / "chat_templates"


TEMPLATES = sorted(path.stem for path in _template_folder().glob("*.jinja"))
_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
_REFUSALS = (TemplateError, TypeError, KeyError, IndexError, ValueError, AttributeError)

_SCHEMA = {
    "type": "object",
    "properties": {"order": {"type": "string", "description": "its id"}, "deep": {"type": "object"}},
    "required": ["order"],
}
TOOLS = [
    {"type": "function", "function": {"name": "look_up", "description": "Looks up.", "parameters": _SCHEMA}}
]
ASKED = {"role": "user", "content": "Where is my order 1007?"}
ANSWER = {"role": "assistant", "content": "It was sent on Monday."}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "call00000",
            "type": "function",
            "function": {"name": "look_up", "arguments": {"order": "1007", "deep": {"a": [1, True]}}},
        }
    ],
}
RESULT = {"role": "tool", "tool_call_id": "call00000", "name": "look_up", "content": "sent"}
THOUGHT = {"reasoning_content": "It left the depot.", "thinking": "It left the depot."}
PICTURE = [{"type": "image"}, {"type": "text", "text": "What is shown?"}]
CONVERSATIONS: dict[str, list[Json]] = {
    "plain": [ASKED, ANSWER],
    "system": [{"role": "system", "content": "Be kind."}, ASKED, ANSWER],
    "tools": [ASKED, CALL, RESULT, ANSWER],
    "reasoning": [ASKED, ANSWER | THOUGHT],
    "multi-turn": [ASKED, ANSWER, {"role": "user", "content": "And when?"}, {"role": "assistant", "content": "Today."}],
    "pictures": [{"role": "user", "content": PICTURE}, ANSWER],
}  # fmt: skip


class NotShown(Exception):
    """A template that refuses a conversation."""


def template_text(name: str) -> str:
    return (_template_folder() / f"{name}.jinja").read_text(encoding="utf-8")


def render(name: str, messages: list[Json], *, generation: bool = False) -> str:
    """Raises NotShown."""
    template = template_text(name)
    tools = TOOLS if any(message.get("tool_calls") for message in messages) else None
    forms = [messages, [_in_parts(message) for message in messages]]
    if "message['content'][0]" in template:  # written for parts: of text it shows nothing
        forms = forms[1:]
    for form in forms:
        try:
            shown = render_jinja_template(
                [form], chat_template=template, tools=tools, add_generation_prompt=generation, **_TOKENS
            )
        except _REFUSALS:
            continue
        return str(shown[0][0])
    raise NotShown(name)


def prompt_and_response(name: str, messages: list[Json]) -> tuple[str, str]:
    """The prompt that a policy is given, and what it then writes: the last turn of the agent's."""
    whole, prompt = render(name, messages), render(name, messages[:-1], generation=True)
    pairs = enumerate(zip(whole, prompt, strict=False))
    start = next((at for at, (one, other) in pairs if one != other), min(len(whole), len(prompt)))
    return prompt, whole[start:]


def scored_messages(messages: list[Json]) -> list[Json]:
    """As they are sent to `/score`: reasoning under one key."""
    return [{key: value for key, value in message.items() if key != "thinking"} for message in messages]


def reads_as(messages: list[Json]) -> list[Any]:
    """What a model is shown of messages: by step, its source, words, reasoning, calls and results."""
    return steps_of(build_trajectory(from_messages(messages), Task(id="")))


def steps_of(trajectory: Trajectory) -> list[Any]:
    return [
        (
            step.source,
            _words(step.message),
            step.reasoning or None,
            [(call.name, call.arguments) for call in step.tool_calls],
            [_words(result.content) for result in step.observation],
        )
        for step in trajectory.steps
    ]


def _words(parts: tuple[Part, ...]) -> str:
    return parts_text(parts)


def _in_parts(message: Json) -> Json:
    content = message["content"]
    return message | {"content": [{"type": "text", "text": content}]} if isinstance(content, str) else message
