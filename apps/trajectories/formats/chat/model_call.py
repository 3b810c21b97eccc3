"""One call of a model: what was asked, and what came back, as the APIs of OpenAI (chat completions, Responses),
Anthropic, Google (Gemini), Amazon (Bedrock Converse) and Ollama have it.

A request has `messages`, `input`, `contents` or `prompt`, and instructions as `system`, `instructions` or
`systemInstruction`; a response has `choices`, `output`, `content`, `candidates` or `message`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.chat import plain_answers
from apps.trajectories.formats.placed import Placed, object_at, objects, placed, steps_of, text_at
from apps.trajectories.formats.stated import call_metrics, model_name, run_facts, stated_success
from workers.errors import InvalidRecord
from workers.schema import Step, Task, Trajectory, clean
from workers.schema.decode import finite
from workers.schema.messages import build_trajectory

_ASKED = ("messages", "input", "contents", "prompt")
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction", "preamble")
_USAGE = ("usage", "usageMetadata", "usage_metadata")
_ANSWERED = ("choices", "output", "candidates", "message", "content", "steps", "outputs")


@dataclass(frozen=True, slots=True)
class ModelCall:
    """request, response: as they were sent, each with its pointer in the document. about: what else is known of the
    call, for the metadata."""

    request: dict[str, Any] = field(default_factory=dict)
    response: Any = None
    request_at: str = ""
    response_at: str = ""
    about: dict[str, Any] = field(default_factory=dict)


def is_request(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(key), str | list) for key in _ASKED)


def is_response(value: Any) -> bool:
    """Whether an object is a response of one of the APIs."""
    if not isinstance(value, dict):
        return False
    if value.get("object") == "response" or is_anthropic(value):
        return isinstance(value.get("output" if "output" in value else "content"), list)
    if is_interaction(value):
        return True
    choices, candidates = value.get("choices"), value.get("candidates")
    if isinstance(choices, list) and choices:
        first = choices[0]
        return isinstance(first, dict) and isinstance(first.get("message", first.get("text")), dict | str)
    if isinstance(candidates, list) and candidates:
        return isinstance(candidates[0], dict) and isinstance(candidates[0].get("content"), dict)
    held = object_at(value, "output") or value
    return isinstance(held.get("message"), dict) and any(
        key in value for key in ("stopReason", "done", "finish_reason")
    )


def is_anthropic(value: dict[str, Any]) -> bool:
    return value.get("type") == "message" and value.get("role") == "assistant" and "stop_reason" in value


def read_call(call: ModelCall, **fields: Any) -> Trajectory:
    """fields: of the Trajectory; `task` and `metadata` are added to what the call says. Raises InvalidRecord."""
    request, _ = clean(call.request)
    response, _ = clean(call.response)
    steps = call_steps(ModelCall(request, response, call.request_at, call.response_at))
    _refuse_failed(response, call.response_at, steps)
    usage = next((response[key] for key in _USAGE if object_at(response, key)), None)
    model = model_name(response, {"model": text_at(response, "modelVersion", "model_version")}, request)
    facts = run_facts(call.about, response, usage, model=model)
    if isinstance(usage, dict):
        facts["usage"] = usage | facts.get("usage", {})
    prompt = plain_answers.prompt_name(request)
    rest = {key: value for key, value in request.items() if key not in (*_ASKED, *_SYSTEM, prompt)}
    answer = _without_answer(response)
    metadata = facts | rest | ({"response": answer} if answer else {}) | call.about
    identity = text_at(response, "id", "responseId", "response_id") or None
    alone = (
        identity if identity and steps and steps[0].source == "agent" else ""
    )  # of answers of unknown prompts
    given = {"task": Task(id=alone), "id": identity, "agent": model} | fields
    given["metadata"] = metadata | fields.get("metadata", {})
    return build_trajectory(steps, pointer=call.response_at, **given)


def outcome(document: Mapping[str, Any]) -> dict[str, Any]:
    """Reward and success that stand next to a call, as fields of the Trajectory."""
    return {"reward": finite(document.get("reward"), pointer="/reward"), "success": stated_success(document)}


def _refuse_failed(response: Any, pointer: str, steps: Sequence[Step]) -> None:
    error = response.get("error") if isinstance(response, dict) else None
    if not error or any(step.source == "agent" for step in steps):
        return
    said = text_at(error, "message") or str(error)
    raise InvalidRecord(
        f"the call of the model failed ({said[:200]}), so there is no answer to read; leave it out.",
        pointer=f"{pointer}/error",
    )


def call_steps(call: ModelCall) -> tuple[Step, ...]:
    """What was asked and answered; the usage is the metrics of the last agent step of the answer."""
    asked = request_messages(call.request, call.request_at)
    answered = answer_messages(call.response, call.response_at)
    steps = list(steps_of([*asked, *answered]))
    agent = [
        place
        for place, step in enumerate(steps)
        if step.source == "agent" and step.extra["source_index"] >= len(asked)
    ]
    if agent:
        usage = next((call.response[key] for key in _USAGE if object_at(call.response, key)), None)
        steps[agent[-1]] = replace(steps[agent[-1]], metrics=call_metrics(usage))
    return tuple(steps)


def request_messages(request: Mapping[str, Any], pointer: str = "") -> list[Placed]:
    key = next((key for key in _ASKED if request.get(key)), "")
    if not key and (name := plain_answers.prompt_name(request)):
        before = [(f"{pointer}/chat_history", message) for message in plain_answers.history(request)]
        system = _system(request.get("preamble"))
        first = [(f"{pointer}/preamble", system)] if system else []
        return [*first, *before, (f"{pointer}/{name}", {"role": "user", "content": request[name]})]
    asked = placed(request.get(key), f"{pointer}/{key}") if key else []
    if key == "contents":
        asked = [(at, _gemini(message, "user")) for at, message in asked]
    holders = ((request, ""), (object_at(request, "config"), "/config"))  # of Google's packages
    for holder, within in holders:
        for name in _SYSTEM:
            if system := _system(holder.get(name)):
                return [(f"{pointer}{within}/{name}", system), *asked]
    return asked


def answer_messages(response: Any, pointer: str = "") -> list[Placed]:
    """The messages of the first choice. Empty for what is no response."""
    if isinstance(response, str) and response:
        return [(pointer, {"role": "assistant", "content": response})]
    if isinstance(response, list):
        return placed(response, pointer)
    if not isinstance(response, dict):
        return []
    if isinstance(choices := response.get("choices"), list) and choices and isinstance(choices[0], dict):
        first, at = choices[0], f"{pointer}/choices/0"
        if isinstance(first.get("message"), dict):
            return [(f"{at}/message", {"role": "assistant"} | first["message"])]
        return answer_messages(first.get("text"), f"{at}/text")
    if not is_response(response) and (path := plain_answers.answer_path(response)):
        where = "".join(f"/{key}" for key in path)
        text = plain_answers.answer_text(response)
        return [(f"{pointer}{where}", {"role": "assistant", "content": text})]
    if isinstance(output := response.get("output"), list):
        return placed(output, f"{pointer}/output")
    if isinstance(candidates := response.get("candidates"), list) and candidates:
        content = object_at(candidates[0], "content")
        return [(f"{pointer}/candidates/0/content", _gemini(content, "model"))] if content else []
    for holder, within in ((response, ""), (object_at(response, "output"), "/output")):
        if isinstance(holder.get("message"), dict):
            return [(f"{pointer}{within}/message", holder["message"])]
    if is_interaction(response):
        return [(f"{pointer}/steps", {"role": "model", "content": _blocks(_interaction_steps(response))})]
    if "role" in response:
        kept = ("role", "content", "tool_calls", "reasoning_content")
        return [(pointer, {key: response[key] for key in kept if key in response})]
    return []


def is_interaction(value: Any) -> bool:
    """A response of Google's Interactions API, whose steps are blocks of one message."""
    return (
        isinstance(value, dict) and value.get("object") == "interaction" and bool(_interaction_steps(value))
    )


def _interaction_steps(value: dict[str, Any]) -> list[dict[str, Any]]:
    return objects(value.get("steps")) or objects(value.get("outputs"))  # as the API first named them


def _blocks(steps: Any) -> list[Any]:
    found: list[Any] = []
    for step in objects(steps):
        found += objects(step.get("content")) if step.get("type") == "model_output" else [step]
    return found


def _gemini(message: Any, role: str) -> Any:
    """The role may be missing, and a content may be a text alone."""
    if isinstance(message, str):
        return {"role": role, "parts": [{"text": message}]}
    if isinstance(message, dict) and "role" not in message:
        return {"role": role} | (message if "parts" in message else {"parts": [message]})
    return message


def _system(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        value = value.get("parts")
        value = [value] if isinstance(value, dict) else value
    return {"role": "system", "content": value} if isinstance(value, str | list) and value else {}


def _without_answer(response: Any) -> dict[str, Any]:
    """What a response has besides its messages and its usage, empty fields left out."""
    if not isinstance(response, dict):
        return {}
    path = plain_answers.answer_path(response)
    plain = path[0] if path and len(path) == 1 else ""
    return {
        key: value
        for key, value in response.items()
        if key not in (*_ANSWERED, *_USAGE, "role", "tool_calls", "reasoning_content", plain)
        and value not in (None, [], {}, "")
    }
