"""Calls whose answer is a text alone, as APIs of completions have them: Cohere, the models of Amazon Bedrock (Titan,
Llama, Mistral, Jurassic, Claude before messages), watsonx, Ollama's `generate`, Aleph Alpha, text-generation-inference
and Replicate.

Read only where such a request stands next to such a response: a `text` or an `output` alone may be anything.
"""

from collections.abc import Mapping
from typing import Any

from apps.trajectories.formats.placed import objects

Fields = dict[str, Any]
_PROMPTS = ("prompt", "inputText", "message", "inputs", "input")  # the first that is text
# Where the answer is, with a key that only such a response has next to it.
_ANSWERS: tuple[tuple[tuple[str | int, ...], tuple[str, ...]], ...] = (
    (("text",), ("response_id", "generation_id", "finish_reason", "chat_history")),
    (("generation",), ("stop_reason", "prompt_token_count", "generation_token_count")),
    (("completion",), ("stop_reason", "stop", "log_id")),
    (("response",), ("done",)),
    (("outputText",), ("completionReason", "inputTextTokenCount", "index")),
    (("generations", 0, "text"), ()),
    (("results", 0, "outputText"), ()),
    (("results", 0, "generated_text"), ()),
    (("outputs", 0, "text"), ()),
    (("completions", 0, "data", "text"), ()),
    (("completions", 0, "completion"), ()),
    (("generated_text",), ()),
)
_SPEAKERS = {"user": "user", "chatbot": "assistant", "system": "system", "tool": "tool"}


def prompt_name(request: Mapping[str, Any]) -> str:
    return next((name for name in _PROMPTS if isinstance(request.get(name), str) and request[name]), "")


def answer_path(response: Any) -> tuple[str | int, ...] | None:
    """Where the text of an answer is; None for what is no such response."""
    if isinstance(response, list):
        found = answer_path(response[0]) if len(response) == 1 else None
        return None if found is None else (0, *found)
    if not isinstance(response, dict):
        return None
    for path, companions in _ANSWERS:
        if isinstance(_at(response, path), str) and (
            not companions or any(name in response for name in companions)
        ):
            return path
    is_joined = isinstance(response.get("output"), list) and "urls" in response  # Replicate
    return ("output",) if is_joined and all(isinstance(piece, str) for piece in response["output"]) else None


def answer_text(response: Any) -> str:
    path = answer_path(response)
    found = _at(response, path) if path else ""
    return "".join(found) if isinstance(found, list) else found


def history(request: Mapping[str, Any]) -> list[Fields]:
    """What was said before, as Cohere has it: {"role": "USER" | "CHATBOT", "message"}."""
    found = []
    for turn in objects(request.get("chat_history")):
        role = _SPEAKERS.get(str(turn.get("role")).lower())
        if role and isinstance(turn.get("message"), str):
            found.append({"role": role, "content": turn["message"]})
    return found


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        if isinstance(key, int):
            value = value[key] if isinstance(value, list) and len(value) > key else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value
