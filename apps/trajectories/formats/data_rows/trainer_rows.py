"""Rows of data for trainers as prompt and answers: texts or messages, images, and what else of a row has a meaning.

Where the prompt is only in the answers, it is what they begin with, as TRL's `extract_prompt` takes it; where it is
also a column (`maybe_extract_prompt`), the answers are read without it.
"""

from collections.abc import Iterator
from typing import Any

from apps.trajectories.pictures import image_data_url
from apps.trajectories.task_ids import content_task_id
from workers.errors import InvalidRecord
from workers.schema import Task, from_messages
from workers.schema.atif_model import ARGUMENTS_TEXT
from workers.schema.decode import optional_str, require_list, require_object
from workers.schema.message_shapes import chat_messages

Messages = list[dict[str, Any]]
_SPEAKERS = {"agent": "assistant"}


def prompt_and_answers(row: dict[str, Any], *names: str, extract: bool) -> tuple[Messages, list[Messages]]:
    """The messages of the prompt, with system text and images, and those of each column of answers.

    extract: whether the prompt may be in the answers too; not in rows of ours, whose answers are without it.
    """
    prompt, answers = message_column(row, "prompt"), [message_column(row, name) for name in names]
    texts = [text for name in names if isinstance(text := row.get(name), str)]
    are_texts, text = len(texts) == len(names), row.get("prompt")
    if extract and are_texts and isinstance(text, str) and text:
        if all(answer.startswith(text) and len(answer) > len(text) for answer in texts):
            answers = [_as_answer(answer[len(text) :]) for answer in texts]
    elif prompt and extract:
        prompt, answers = _without_prompt(prompt, answers)
    elif not prompt and extract and are_texts and len(texts) == 2:
        prompt, answers = _shared_text(*texts)
    elif not prompt and len(answers) == 2:
        prompt, answers = _shared_messages(answers)
    images = iter(
        [image_source(image, f"/images/{place}") for place, image in enumerate(_optional_list(row, "images"))]
    )
    prompt = [_with_images(message, images) for message in _with_system(prompt, row)]
    answers = [[_with_images(message, images) for message in answer] for answer in answers]
    return _with_rest(prompt, list(images)), answers


def message_column(row: dict[str, Any], name: str) -> Messages:
    """A column of text, which is what the user asks or the agent answers, or of messages, or of one message."""
    value = row.get(name)
    if value is None and name == "prompt":
        return []
    if isinstance(value, str):
        return [{"role": "user" if name == "prompt" else "assistant", "content": value}] if value else []
    if isinstance(value, dict):
        value = [value]
    messages = [
        require_object(message, pointer=f"/{name}/{place}")
        for place, message in enumerate(require_list(value, pointer=f"/{name}"))
    ]
    sent = [_as_sent(message) for message in messages]
    from_messages(sent, pointer=f"/{name}")  # for an error that points into the column
    if all("role" in message for message in sent):
        return sent
    return [message for _, message in chat_messages(sent)]


def prompt_task(prompt: Messages, answers: list[Messages]) -> Task:
    """The task of a row that names none: its prompt; without one, each row is a task."""
    asked = from_messages(prompt)
    shown = asked or [step for answer in answers for step in from_messages(answer)]
    said = [step for step in asked if step.source != "system"]
    texts = [f"{_SPEAKERS.get(step.source, step.source)}: {step.text}" for step in said]
    instruction = said[0].text if len(said) == 1 else "\n\n".join(texts)
    return Task(id=content_task_id(shown), instruction=instruction)


def _as_answer(text: str) -> Messages:
    return [{"role": "assistant", "content": text}] if text else []


def _shared_text(chosen: str, rejected: str) -> tuple[Messages, list[Messages]]:
    """As TRL's `extract_prompt`: the common beginning, without the space before the first character that differs."""
    shorter = min(len(chosen), len(rejected))
    length = next((place for place in range(shorter) if chosen[place] != rejected[place]), shorter)
    if length == shorter or chosen[length - 1 : length] == " ":
        length = max(length - 1, 0)  # no answer is empty
    prompt = [{"role": "user", "content": chosen[:length]}] if length else []
    return prompt, [_as_answer(chosen[length:]), _as_answer(rejected[length:])]


def _shared_messages(answers: list[Messages]) -> tuple[Messages, list[Messages]]:
    """The messages that both begin with; each keeps one at least."""
    chosen, rejected = answers
    length = 0
    for message, other in zip(chosen[:-1], rejected[:-1], strict=False):
        if message != other:
            break
        length += 1
    return chosen[:length], [chosen[length:], rejected[length:]]


def _without_prompt(prompt: Messages, answers: list[Messages]) -> tuple[Messages, list[Messages]]:
    """Without the prompt in answers that all repeat it, be it without the system message of one of them."""
    for begin in (prompt, [message for message in prompt if message.get("role") != "system"]):
        size = len(begin)
        if size and all(answer[:size] == begin and len(answer) > size for answer in answers):
            return prompt, [answer[size:] for answer in answers]
    asked = [message for message in prompt if message.get("role") == "user"]
    begin = _common_beginning(answers)
    if begin and asked and all(message in begin for message in asked):  # with messages before it
        return begin, [answer[len(begin) :] for answer in answers]
    return prompt, answers


def _common_beginning(answers: list[Messages]) -> Messages:
    if len(answers) == 2:
        return _shared_messages(answers)[0]
    return answers[0][:-1] if answers else []


def _with_system(prompt: Messages, row: dict[str, Any]) -> Messages:
    text = optional_str(row.get("system"), pointer="/system")
    if not text or any(message.get("role") == "system" for message in prompt):
        return prompt
    return [{"role": "system", "content": text}, *prompt]


def _optional_list(row: dict[str, Any], name: str) -> list[Any]:
    value = row.get(name)
    return [] if value is None else require_list(value, pointer=f"/{name}")


def image_source(image: Any, pointer: str) -> str:
    """The source of an image: text as it is; of an image of `datasets`, its bytes as a data URL, or its path."""
    if isinstance(image, str):
        return image
    image = require_object(image, pointer=pointer)
    data, path = image.get("bytes"), image.get("path", image.get("url"))
    if isinstance(data, str) and data:
        return image_data_url(data, pointer=f"{pointer}/bytes")
    if data is None and isinstance(path, str) and path:
        return path
    raise InvalidRecord(
        "expected an image as text (address or data URL), or as an object with its `bytes` in base64 or its `path`.",
        pointer=pointer,
    )


def _image_part(source: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": source}}


def _with_images(message: dict[str, Any], images: Iterator[str]) -> dict[str, Any]:
    """The message with the images that its placeholders stand for, and those within its parts."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    parts = []
    for place, part in enumerate(content):
        if isinstance(part, dict) and part.get("type") == "image":
            image = part.get("image")
            if isinstance(image, dict) and "bytes" in image:
                part = _image_part(image_source(image, f"/content/{place}/image"))
            elif image is None and (source := next(images, None)) is not None:
                part = _image_part(source)
        parts.append(part)
    return message | {"content": parts}


def _with_rest(prompt: Messages, images: list[str]) -> Messages:
    """Images without a placeholder stand before the text of the first user message, as TRL puts them."""
    if not images:
        return prompt
    place = next((index for index, message in enumerate(prompt) if message.get("role") == "user"), None)
    if place is None:
        return [*prompt, {"role": "user", "content": [*map(_image_part, images)]}]
    content = prompt[place].get("content")
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    found = prompt[place] | {"content": [*map(_image_part, images), *parts]}
    return [*prompt[:place], found, *prompt[place + 1 :]]


def _as_sent(message: dict[str, Any]) -> dict[str, Any]:
    """The message without what `datasets` fills in for missing keys, arguments that are no object as text."""
    kept = {key: value for key, value in message.items() if value is not None or key == "content"}
    calls = kept.get("tool_calls")
    if isinstance(calls, list):
        kept["tool_calls"] = [_call_as_sent(call) for call in calls]
        if not calls:
            del kept["tool_calls"]
    return kept


def _call_as_sent(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    arguments = function.get("arguments")
    if isinstance(arguments, dict) and arguments.keys() == {ARGUMENTS_TEXT}:
        return call | {"function": function | {"arguments": arguments[ARGUMENTS_TEXT]}}
    return call
