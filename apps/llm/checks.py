"""The test of an LLM connection: a short question, and one about a picture where it is to read pictures."""

import base64
import json
import random
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import numpy as np

from apps.core.errors import DomainError
from apps.llm.calls import call, completions_url, reported_tokens
from apps.llm.models import LLMConnection, SpendingPurpose
from workers.schema import bounded
from workers.schema.pictures import encode_jpeg

_SECONDS = 60.0
_TOKENS = 256
_LONGEST_SHOWN = 300  # characters of a reply
_MOST_BYTES = 160_000
_COLOURS = {"red": (220, 20, 20), "green": (20, 160, 20), "blue": (20, 40, 220), "yellow": (240, 220, 20)}
_QUESTION = "Answer with the word: ready"
_PICTURE_QUESTION = "Which colour has the picture: red, green, blue or yellow? Answer with one word."


@dataclass(frozen=True, slots=True)
class _CheckReply:
    """tokens: input tokens as the server counted them; 0 where it did not."""

    text: str
    tokens: int


def check_llm_connection(*, llm_connection: LLMConnection) -> str:
    """What the model answers to a short question; for a connection that reads pictures, what it says of one as well.

    Raises DomainError with what went wrong: a model that names another colour than the picture's does not read it.
    """
    reply = _ask(llm_connection, _QUESTION)
    if not llm_connection.reads_pictures:
        return reply.text
    colour = random.choice([*_COLOURS])  # noqa: S311 (not for secrets)
    pixels = llm_connection.picture_pixels
    picture = encode_jpeg(np.full((pixels, pixels, 3), _COLOURS[colour], dtype=np.uint8), pixels, _MOST_BYTES)
    url = f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"
    content = [
        {"type": "text", "text": _PICTURE_QUESTION},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    seen = _ask(llm_connection, content)
    if colour not in seen.text.lower():
        raise DomainError(
            f"{llm_connection.name} was sent a {colour} picture and answered: {seen.text}. It does not seem to read "
            "pictures. Choose a model that does, or switch “Reads pictures” off."
        )
    plain = _ask(llm_connection, _PICTURE_QUESTION) if seen.tokens else seen
    return f"{reply.text} It reads pictures: it named the colour. {_counted(llm_connection, seen, plain)}"


def _counted(llm_connection: LLMConnection, seen: _CheckReply, plain: _CheckReply) -> str:
    """How many tokens the picture counted as, and whether the reserved cost covers that."""
    if not seen.tokens or not plain.tokens:
        return "The server reports no tokens, so what a picture counts as is not known."
    counted, pixels = seen.tokens - plain.tokens, llm_connection.picture_pixels
    found = f"A picture of {pixels} × {pixels} pixels counted as {counted:,} tokens"
    if counted > llm_connection.picture_tokens:
        return (
            f"{found}, more than the {llm_connection.picture_tokens:,} tokens per picture that are set: raise them to "
            f"{counted:,}, so that the monthly budget holds."
        )
    return f"{found}."


def _ask(llm_connection: LLMConnection, content: Any) -> _CheckReply:
    messages = [{"role": "user", "content": content}]
    body = json.dumps({"messages": messages, "max_tokens": _TOKENS}).encode()
    reply = call(llm_connection, body, purpose=SpendingPurpose.TEST, seconds=_SECONDS)
    url = completions_url(llm_connection)
    try:
        document = bounded.loads(reply.body)
    except ValueError as error:
        raise DomainError(
            f"{url} answered with status {reply.status}, but not with valid JSON: {error}."
        ) from None
    if reply.status != HTTPStatus.OK:
        raise DomainError(f"{url} answered with status {reply.status}: {_error_message(document)}")
    try:
        text = str(document["choices"][0]["message"]["content"])[:_LONGEST_SHOWN]
    except (LookupError, TypeError):
        raise DomainError(f"{url} answered, but not with a chat completion.") from None
    return _CheckReply(text, reported_tokens(reply.body)[0])


def _error_message(document: Any) -> str:
    """The message of an OpenAI-style error. Nothing else is shown: another service of the network may have sent it."""
    found = document.get("error", document) if isinstance(document, dict) else None
    message = found.get("message", found.get("detail")) if isinstance(found, dict) else found
    if not isinstance(message, str):
        return "no error message in the format of the OpenAI API."
    return " ".join(message.split())[:_LONGEST_SHOWN]
