"""Inspect logs (`.json`, and `.eval`, whose entries are put together by `archives`): one trajectory a sample.

A document is {"version", "status", "eval", "samples": [...]}; a sample alone is {"eval", "sample"}. `scores` give the
label away: the first score of a sample is its outcome (C and I are right and wrong, P partly), all of them metadata.
Texts kept once under `attachments` are put back where they were (`attachment://HASH`), and so are messages that events
name by their number in a pool of messages.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.stated import call_metrics, run_facts
from workers.errors import InvalidRecord
from workers.schema import Step, Task, Trajectory, clean, from_messages
from workers.schema.decode import require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `eval` and `samples`"
READ = ("/sample/id", "/sample/input", "/sample/messages/*/content/*/type")
PLACES = {"/sample": "/samples/*"}
LEFT_OUT = {
    "/sample/events": "the log of how the sample ran; its messages, and usage and time of each call, are read",
    "/sample/events_data": "texts and messages that events name; those of the messages are read",
}
REPEATED = ("/sample/output",)  # the last of the messages
_ATTACHED = "attachment://"
_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # correct, partial, incorrect, no answer
_ABOUT = ("eval_id", "run_id", "task", "task_version", "model", "created")
_LEFT = ("messages", "events", "attachments", "events_data", "store", "output")


def sniff(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and isinstance(document.get("eval"), dict)
        and ("samples" in document or "sample" in document)
    )


def split(document: Any) -> Iterator[tuple[str, Any]]:
    """A document of its own for each sample. Raises InvalidRecord where a log has none."""
    document = require_object(document)
    if "sample" in document:
        yield "", document
        return
    samples = require_list(document.get("samples") or [], pointer="/samples")
    if not samples:
        raise InvalidRecord(
            f"the log has no samples (status {document.get('status')!r}); there is nothing to judge.",
            pointer="/samples",
        )
    for index, sample in enumerate(samples):
        yield f"/samples/{index}", {"eval": document["eval"], "sample": sample}


def read(document: Any) -> Trajectory:
    document = require_object(document)
    about, _ = clean(require_object(document.get("eval"), pointer="/eval"))
    sample, _ = clean(require_object(document.get("sample"), pointer="/sample"))
    attachments = require_object(sample.get("attachments") or {}, pointer="/sample/attachments")
    messages = require_list(_put_back(_messages(sample), attachments), pointer="/sample/messages")
    scores = require_object(sample.get("scores") or {}, pointer="/sample/scores")
    reward = next((value for score in scores.values() if (value := _value(score)) is not None), None)
    target = sample.get("target")
    rest = {key: value for key, value in sample.items() if key not in _LEFT}
    output = sample.get("output")
    if isinstance(output, dict):
        rest["output"] = {key: value for key, value in output.items() if key not in ("choices", "completion")}
    model = str(about.get("model") or "")
    of_model = require_object(sample.get("model_usage") or {}, pointer="/sample/model_usage")
    usage = of_model.get(model) or next(iter(of_model.values()), None)
    steps = from_messages([_as_chat(message) for message in messages], pointer="/sample/messages")
    return build_trajectory(
        _with_metrics(steps, _calls_by_message(sample)),
        Task(
            id=f"{about.get('task') or 'inspect'}/{sample.get('id')}",
            instruction=_put_back(_asked(sample.get("input")), attachments),
            reference=target if isinstance(target, str) and target.strip() else None,
        ),
        pointer="/sample/messages",
        id=str(sample["uuid"]) if sample.get("uuid") else None,
        agent=model,
        reward=reward,
        success=None if reward is None else reward >= 1,
        metadata={"eval": {key: about[key] for key in _ABOUT if key in about}, "sample": rest}
        | run_facts(usage, sample, model=model),
    )


def _calls_by_message(sample: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Metrics of the calls of models that the events tell of, by the id of the message that was the answer."""
    found = {}
    for event in sample.get("events") or []:
        output = event.get("output") if isinstance(event, dict) and event.get("event") == "model" else None
        choices = output.get("choices") if isinstance(output, dict) else None
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if isinstance(output, dict) and isinstance(message, dict) and isinstance(message.get("id"), str):
            found[message["id"]] = call_metrics(output.get("usage"), output.get("time"))
    return found


def _with_metrics(steps: tuple[Step, ...], calls: dict[str, dict[str, Any]]) -> tuple[Step, ...]:
    if not calls:
        return steps
    return tuple(
        replace(step, metrics=calls[name])
        if step.source == "agent" and (name := step.extra.get("message", {}).get("id")) in calls
        else step
        for step in steps
    )


def _messages(sample: dict[str, Any]) -> Any:
    """Of the sample; where it keeps none, of its last call of the model, whose messages may lie in a pool."""
    if sample.get("messages"):
        return sample["messages"]
    pool = (
        require_object(sample.get("events_data") or {}, pointer="/sample/events_data").get("messages") or []
    )
    for event in reversed(sample.get("events") or []):
        if isinstance(event, dict) and event.get("event") == "model":
            asked = event.get("input") or _named(event.get("input_refs") or [], pool)
            choices = (event.get("output") or {}).get("choices") or []
            return [*asked, *(choice["message"] for choice in choices[:1])]
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, dict) else None
    answer = choices[0].get("message") if choices and isinstance(choices[0], dict) else None
    if not isinstance(answer, dict):
        return []
    given = sample.get("input")
    asked = [{"role": "user", "content": given}] if isinstance(given, str) and given else given
    return [*(asked if isinstance(asked, list) else []), answer]


def _named(ranges: list[Any], pool: list[Any]) -> list[Any]:
    """Messages by ranges of their places, [first, last)."""
    try:
        return [pool[place] for first, last in ranges for place in range(first, last)]
    except (IndexError, TypeError, ValueError):
        raise InvalidRecord(
            f"names messages that its pool of {len(pool)} does not hold.", pointer="/sample/events"
        ) from None


def _put_back(value: Any, attachments: dict[str, Any]) -> Any:
    if isinstance(value, str):
        if not value.startswith(_ATTACHED):
            return value
        name = value.removeprefix(_ATTACHED)
        if name not in attachments:
            raise InvalidRecord(
                f"names the attachment {name}, which the sample does not hold.", pointer="/sample"
            )
        return attachments[name]
    if isinstance(value, dict):
        return {key: _put_back(item, attachments) for key, item in value.items()}
    if isinstance(value, list):
        return [_put_back(item, attachments) for item in value]
    return value


def _as_chat(message: Any) -> Any:
    """As an OpenAI message: calls nested, content parts by its names, reasoning of its own."""
    if not isinstance(message, dict):
        return message
    found = {key: value for key, value in message.items() if key != "tool_calls"}
    content = message.get("content")
    if isinstance(content, list):
        thoughts = [_thought(part) for part in content if _is(part, "reasoning")]
        found["content"] = [_part(part) for part in content if not _is(part, "reasoning")]
        if thoughts:
            found["reasoning_content"] = "\n".join(thoughts)
    if message.get("tool_calls"):
        found["tool_calls"] = [_call(call) for call in require_list(message["tool_calls"])]
    if message.get("role") == "tool":
        found["name"] = found.pop("function", None) or found.get("name")
    return found


def _is(part: Any, kind: str) -> bool:
    return isinstance(part, dict) and part.get("type") == kind


def _thought(part: dict[str, Any]) -> str:
    return str(part.get("reasoning") or part.get("summary") or "")


def _part(part: Any) -> Any:
    for kind in ("image", "audio", "video"):
        if _is(part, kind):
            name = {"image": "image_url", "audio": "input_audio", "video": "video_url"}[kind]
            rest = {key: value for key, value in part.items() if key not in ("type", kind)}
            return {"type": name, name: {"url": part.get(kind)} | rest}
    if _is(part, "text"):
        return {key: value for key, value in part.items() if value is not None}
    if isinstance(part, dict) and part.get("type") not in ("document", "data", "tool_use"):
        return part
    return {"type": "text", "text": str(part)}


def _call(call: Any) -> Any:
    call = require_object(call, pointer="/tool_calls")
    function = {"name": call.get("function"), "arguments": call.get("arguments", {})}
    rest = {key: value for key, value in call.items() if key not in ("function", "arguments")}
    return {"type": "function"} | rest | {"function": function}


def _value(score: Any) -> float | None:
    value = score.get("value") if isinstance(score, dict) else None
    if isinstance(value, str):
        return _VALUES.get(value)
    return float(value) if isinstance(value, int | float) else None


def _asked(given: Any) -> str:
    if isinstance(given, str):
        return given
    messages = given if isinstance(given, list) else []
    users = [message for message in messages if isinstance(message, dict) and message.get("role") == "user"]
    content = users[-1].get("content") if users else ""
    return content if isinstance(content, str) else ""
