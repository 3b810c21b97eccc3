"""A prompt and its response, each a text or a list of chat messages; what surrounds them is as for `openai`."""

from typing import Any

from apps.trajectories.formats.chat.openai import READ as CHAT_READ
from apps.trajectories.formats.chat.openai import common, with_system
from workers.schema import Trajectory, from_prompt_response
from workers.schema.decode import require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `prompt` and `response`"
READ = (*CHAT_READ, "/prompt/*/reward", "/response/*/reward")
_KNOWN = ("id", "task", "agent", "prompt", "response", "reward", "success", "metadata", "system")


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and "prompt" in document and "response" in document


def read(document: Any) -> Trajectory:
    document = require_object(document)
    steps = with_system(
        from_prompt_response(document.get("prompt"), document.get("response")), document.get("system")
    )
    return build_trajectory(steps, **common(document, known=_KNOWN), pointer="/response")
