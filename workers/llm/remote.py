"""A language model behind a server that speaks OpenAI's chat completions."""

import json
import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, cast

import openai

from workers.errors import RewardError
from workers.llm import LLMServer
from workers.llm.completions import DRAWN, LIKELIEST, Completion, NoAnswer, Token, Wanted
from workers.llm.http import http
from workers.llm.http_limits import bounded_client
from workers.schema import bounded

MOST_CHARACTERS = 400_000  # of an answer
_TOLD = 4000  # characters that are kept of one that is longer
_RETRIES = 5  # of a call that met no server, a busy one or a broken one; openai waits between them
_IN_A_ROW = 4  # calls that met no server before no one is asked any more
_FEWER = 5  # alternatives of a token, where LIKELIEST are more than the server gives
_SURE = 0.01  # of a log-probability, whose rounding may leave it above 0
_PAYMENT_REQUIRED, _TOO_LARGE, _BROKEN = 402, 413, 500
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

    def __init__(self, server: LLMServer, key: str) -> None:
        self.server = server
        self._lock = threading.Lock()
        self._left_out: set[str] = set()  # options that this server does not know
        self._likeliest = LIKELIEST
        self._missed = 0
        self._answered = False
        self._client = openai.OpenAI(
            base_url=server.base_url,
            api_key=key or "none",
            timeout=server.timeout,
            http_client=bounded_client(server.timeout),
            max_retries=_RETRIES if server.retries is None else server.retries,
        )
        weakref.finalize(self, self._client.close)

    def complete(self, wanted: Wanted) -> Completion:
        options = self._options(wanted)
        while True:
            sent = self._known(options)
            try:
                reply = self._ask(wanted.messages, sent)
                break
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                self._leave_out(error, sent)
            except openai.APIError as error:
                raise self._ended(error) from error
            except (http.HTTPError, ValueError, RecursionError) as error:  # what came is broken, or no JSON
                return Completion(said="", problem=f"It is no chat completion: {_short(error)}")
        said, problem = _message_text(reply)
        return Completion(
            said=said,
            problem=problem,
            prompt_tokens=_count(reply, "prompt_tokens"),
            completion_tokens=_count(reply, "completion_tokens"),
            tokens=_tokens(reply, said) if wanted.likeliest else (),
        )

    def _ask(self, messages: Iterable[Mapping[str, Any]], sent: Mapping[str, Any]) -> Any:
        """The JSON that came. Raises openai.APIError where none did, http.HTTPError where it broke off."""
        with self._client.chat.completions.with_streaming_response.create(
            model=self.server.model, messages=cast(Any, list(messages)), **sent
        ) as reply:
            with self._lock:
                self._missed, self._answered = 0, True
            return bounded.loads(b"".join(reply.iter_bytes()))

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

    def _known(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Those that the server has not refused so far."""
        with self._lock:
            sent = {name: value for name, value in options.items() if name not in self._left_out}
            if "logprobs" in sent:
                sent["top_logprobs"] = self._likeliest
        if "max_tokens" not in sent:  # newer models know it by another name only
            sent["max_completion_tokens"] = self.server.answer_tokens
        return sent

    def _leave_out(
        self, error: openai.BadRequestError | openai.UnprocessableEntityError, sent: Mapping[str, Any]
    ) -> None:
        """What the server refused of `sent`, from now on. Raises NoAnswer where it is the question."""
        said = _about(error)
        unknown = [name for name in sent if any(word in said for word in _OPTIONAL.get(name, ()))]
        if not unknown:
            raise NoAnswer(f"The server refused the question: {_short(error)}") from error
        with self._lock:
            if unknown == ["logprobs"] and "top_logprobs" in said and sent["top_logprobs"] > _FEWER:
                self._likeliest = _FEWER
            else:
                self._left_out.update(unknown)

    def _ended(self, error: openai.APIError) -> RewardError:
        """What comes of a call that has no completion."""
        if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
            return RewardError(f"The server refused the key: {_short(error)} Give a key that may ask.")
        if isinstance(error, openai.NotFoundError):
            return RewardError(
                f"The server knows no model {self.server.model!r} at this address: {_short(error)}"
            )
        status = error.status_code if isinstance(error, openai.APIStatusError) else None
        if isinstance(error, openai.APIStatusError) and status == _PAYMENT_REQUIRED:
            return RewardError(_words(error) or _short(error))
        if status == _TOO_LARGE:
            return NoAnswer(f"The server refused the question: {_short(error)}")
        with self._lock:
            self._missed += 1
            missed = self._missed
        # It may be this question that takes too long or breaks the server.
        is_alone = self._answered or status == _BROKEN or isinstance(error, openai.APITimeoutError)
        if not is_alone or missed >= _IN_A_ROW:
            return RewardError(f"The language model cannot be reached: {_short(error)}")
        return NoAnswer(f"The server did not answer: {_short(error)}")


def _message_text(reply: Any) -> tuple[str, str]:
    """The text of the first choice, and what is wrong with it, or an empty string."""
    try:
        choice = reply["choices"][0]
        text, refusal = choice["message"]["content"], choice["message"].get("refusal")
        ended = choice.get("finish_reason")
    except (AttributeError, IndexError, TypeError, KeyError):
        return "", "It holds no message."
    if refusal:
        return "", f"The model refused: {str(refusal)[:300]}"
    if ended == "content_filter":
        return "", "A filter of the server stopped it."
    text = text if isinstance(text, str) else ""
    if ended == "length":
        return text, "It was cut off before its end."
    if not text.strip():
        return "", "It is empty."
    if len(text) > MOST_CHARACTERS:
        return text[:_TOLD], f"It has {len(text):,} characters; at most {MOST_CHARACTERS:,} are read."
    return text, ""


def _tokens(reply: Any, said: str) -> tuple[Token, ...]:
    """Empty where the server did not tell them, or not in their usual form, or tells those of something else."""
    try:
        tokens = tuple(
            Token(
                token["token"] or "",
                {other["token"]: _log(other["logprob"]) for other in token["top_logprobs"] if other["token"]},
            )
            for token in reply["choices"][0]["logprobs"]["content"]
        )
        as_in_vocabulary = tuple(
            Token(_spaced(token.text), {_spaced(text): log for text, log in token.likeliest.items()})
            for token in tokens
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return ()
    for read in (tokens, as_in_vocabulary):
        if said in "".join(token.text for token in read):
            return read
    return ()


def _spaced(text: str) -> str:
    """Of a byte-level vocabulary, which has other signs for spaces and ends of lines."""
    return text.replace("Ġ", " ").replace("Ċ", "\n")


def _log(probability: Any) -> float:
    found = float(probability)
    if not found < _SURE:  # no number, too
        raise ValueError(found)
    return found


def _count(reply: Any, name: str) -> int:
    usage = reply.get("usage") if isinstance(reply, dict) else None
    found = usage.get(name) if isinstance(usage, dict) else None
    return found if isinstance(found, int) and found > 0 else 0


def _about(error: openai.APIStatusError) -> str:
    """What a server says of a question that it refuses, without what it repeats of it."""
    body = error.body if isinstance(error.body, dict) else {}
    param, detail = body.get("param"), body.get("detail")
    if isinstance(param, str) and param:
        return param.lower()
    if isinstance(detail, list):  # FastAPI's
        return " ".join(str(each.get("loc")) for each in detail if isinstance(each, dict)).lower()
    return _words(error).lower()


def _words(error: openai.APIStatusError) -> str:
    """The server's own, empty where it has none."""
    body = error.body
    if isinstance(body, dict):
        body = body.get("message") or body.get("detail") or body
    return body if isinstance(body, str) else json.dumps(body) if body else ""


def _short(error: BaseException) -> str:
    said = str(error)
    if isinstance(error, openai.APIStatusError):
        said = f"Error code: {error.status_code} - {_words(error)}".removesuffix(" - ")
    said = " ".join(said.split())
    return (said if len(said) <= 300 else f"{said[:299]}…").rstrip(".") + "."
