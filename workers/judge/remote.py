"""A language model behind a server that speaks OpenAI's chat completions."""

import threading
from typing import Any, cast

import openai

from workers.errors import RewardError
from workers.judge import Server
from workers.judge.completions import DRAWN, LIKELIEST, Completion, NoAnswer, Token, Wanted

MOST_CHARACTERS = 400_000  # of an answer
_TOLD = 4000  # characters that are kept of one that is longer
_RETRIES = 5  # of a call that met no server, a busy one or a broken one; openai waits between them
_IN_A_ROW = 4  # calls that met no server before nobody is asked any more
_PAYMENT_REQUIRED = 402
# What a server that does not know an option says of it.
_OPTIONAL = {
    "response_format": ("response_format", "json_schema", "guided", "schema"),
    "temperature": ("temperature",),
    "seed": ("seed",),
    "logprobs": ("logprobs",),
    "max_tokens": ("max_tokens",),
}


class Remote:
    """key: the secret of the server."""

    def __init__(self, server: Server, key: str) -> None:
        self.server = server
        self._lock = threading.Lock()
        self._left_out: set[str] = set()  # options that this server does not know
        self._missed = 0
        self._answered = False
        self._client = openai.OpenAI(
            base_url=server.base_url, api_key=key or "none", timeout=server.timeout, max_retries=_RETRIES
        )

    def complete(self, wanted: Wanted) -> Completion:
        options = self._options(wanted)
        while True:
            sent = {name: value for name, value in options.items() if name not in self._left_out}
            if "max_tokens" not in sent:  # newer models know it by another name only
                sent["max_completion_tokens"] = self.server.answer_tokens
            if "logprobs" in sent:
                sent["top_logprobs"] = LIKELIEST
            try:
                reply = self._client.chat.completions.create(
                    model=self.server.model, messages=cast(Any, list(wanted.messages)), **sent
                )
                break
            except openai.BadRequestError as error:
                said = str(error).lower()
                unknown = [name for name in sent if any(word in said for word in _OPTIONAL.get(name, ()))]
                if not unknown:
                    raise NoAnswer(f"The server refused the question: {_short(error)}") from error
                with self._lock:
                    self._left_out.update(unknown)
            except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
                raise RewardError(
                    f"The server refused the key: {_short(error)} Give a key that may ask."
                ) from error
            except openai.NotFoundError as error:
                raise RewardError(
                    f"The server knows no model {self.server.model!r} at this address: {_short(error)}"
                ) from error
            except (openai.APIConnectionError, openai.APIStatusError) as error:
                raise self._missing(error) from error
            except openai.OpenAIError as error:  # an answer that is no completion
                return Completion(said="", problem=f"It is no chat completion: {_short(error)}")
            except (ValueError, TypeError, AttributeError) as error:  # JSON of another shape, or none
                return Completion(said="", problem=f"It is no chat completion: {_short(error)}")
        with self._lock:
            self._missed, self._answered = 0, True
        said, problem = _said(reply)
        return Completion(
            said=said,
            problem=problem,
            prompt_tokens=_count(reply, "prompt_tokens"),
            completion_tokens=_count(reply, "completion_tokens"),
            tokens=_tokens(reply) if wanted.likeliest else (),
        )

    def _options(self, wanted: Wanted) -> dict[str, Any]:
        schema = {"name": wanted.name, "schema": wanted.schema, "strict": True}
        options: dict[str, Any] = {
            "temperature": 0 if wanted.draw is None else DRAWN,
            "max_tokens": self.server.answer_tokens,
            "response_format": {"type": "json_schema", "json_schema": schema},
        }
        if wanted.draw is not None:
            options["seed"] = wanted.draw
        if wanted.likeliest:
            options["logprobs"] = True
        return options

    def _missing(self, error: openai.APIConnectionError | openai.APIStatusError) -> RewardError:
        if isinstance(error, openai.APIStatusError) and error.status_code == _PAYMENT_REQUIRED:
            return RewardError(_message(error))
        with self._lock:
            self._missed += 1
            missed = self._missed
        if not self._answered or missed >= _IN_A_ROW:
            return RewardError(f"The language model cannot be reached: {_short(error)}")
        return NoAnswer(f"The server did not answer: {_short(error)}")


def _said(reply: Any) -> tuple[str, str]:
    """What the model said, and what is wrong with that by itself, or an empty string."""
    try:
        choice = reply.choices[0]
        said, refusal = choice.message.content, getattr(choice.message, "refusal", None)
        ended = choice.finish_reason
    except (AttributeError, IndexError, TypeError, KeyError):
        return "", "It holds no message."
    if refusal:
        return "", f"The model refused: {str(refusal)[:300]}"
    if not isinstance(said, str) or not said.strip():
        return "", "It is empty."
    if ended == "length":
        return said, "It was cut off before its end."
    if len(said) > MOST_CHARACTERS:
        return said[:_TOLD], f"It has {len(said):,} characters; at most {MOST_CHARACTERS:,} are read."
    return said, ""


def _tokens(reply: Any) -> tuple[Token, ...]:
    """Empty where the server did not tell them, or not in their usual form."""
    try:
        return tuple(
            Token(one.token, {other.token: float(other.logprob) for other in one.top_logprobs})
            for one in reply.choices[0].logprobs.content
        )
    except (AttributeError, IndexError, TypeError, ValueError):
        return ()


def _count(reply: Any, name: str) -> int:
    found = getattr(getattr(reply, "usage", None), name, 0)
    return found if isinstance(found, int) else 0


def _message(error: openai.APIStatusError) -> str:
    body = error.body if isinstance(error.body, dict) else {}
    return str(body.get("message") or _short(error))


def _short(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return (said if len(said) <= 300 else f"{said[:299]}…").rstrip(".") + "."
