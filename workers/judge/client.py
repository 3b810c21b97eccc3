"""A client for servers that speak OpenAI's chat completions, whose answers are JSON of a given shape or nothing.

What does not have the shape, or fails the caller's check, is told to the model and asked for again; after that the item
has no answer, and the caller says so. Nothing is made up in its place. Answers that were accepted are kept by what was
asked (`Answers`), so that whoever asks again pays for what failed only.
"""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import msgspec
import openai

from workers.errors import InvalidRecord, RewardError
from workers.judge import Server
from workers.judge.prompts import Prompt
from workers.schema.decode import clean, convert, parse_json

T = TypeVar("T")
A = TypeVar("A")
MOST_CHARACTERS = 400_000  # of an answer
_TOLD = 4000  # characters of a refused answer that are given back to the model
_RETRIES = 5  # of a call that met no server, a busy one or a broken one; openai waits between them
_IN_A_ROW = 4  # calls that met no server before nobody is asked any more
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_OPTIONAL = {
    "response_format": ("response_format", "json_schema", "guided", "schema"),
    "temperature": ("temperature",),
}


class NoAnswer(RewardError):
    """The model was asked, and gave nothing that could be accepted. The others may still be asked."""


@dataclass(slots=True)
class Usage:
    """tokens: as the server counted them, 0 where it did not. kept: answers that were there already."""

    calls: int = 0
    kept: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Answers(Protocol):
    def get(self, key: str) -> Any: ...

    def keep(self, key: str, answer: Any, about: Mapping[str, str]) -> None: ...


@dataclass(slots=True)
class AnswersFile:
    """Answers in a file of lines {"key", "answer", "about"}; new ones are added to its end as they come."""

    path: Path
    _known: dict[str, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.path.is_file():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                with suppress(ValueError, KeyError):  # a line that was cut off is asked for again
                    one = json.loads(line)
                    self._known[one["key"]] = one["answer"]

    def get(self, key: str) -> Any:
        return self._known.get(key)

    def keep(self, key: str, answer: Any, about: Mapping[str, str]) -> None:
        with self._lock:
            self._known[key] = answer
            with self.path.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"key": key, "answer": answer, "about": dict(about)}) + "\n")


class LanguageModel:
    """Thread-safe. key: the secret of the server."""

    def __init__(self, server: Server, key: str, answers: Answers) -> None:
        self.server, self.usage, self.asked = server, Usage(), dict[str, int]()
        self._answers, self._lock = answers, threading.Lock()
        self._left_out: set[str] = set()  # options that this server does not know
        self._missed = 0
        self._client = openai.OpenAI(
            base_url=server.base_url, api_key=key or "none", timeout=server.timeout, max_retries=_RETRIES
        )

    def ask(
        self,
        prompt: Prompt,
        shape: type[T],
        check: Callable[[T], None] = lambda _: None,
        *,
        about: Mapping[str, str] | None = None,
    ) -> T:
        """shape: a msgspec.Struct. check: raises RewardError for an answer that cannot be. about: whose words are in
        the answer, for whoever keeps it.

        Raises NoAnswer where this item has none; RewardError where nobody will have one.
        """
        schema = _schema(shape)
        key = _key(self.server.model, prompt, schema)
        with self._lock:
            self.asked[prompt.of] = self.asked.get(prompt.of, 0) + 1
        kept = self._answers.get(key)
        if kept is not None:
            with suppress(RewardError):
                value = convert(kept, shape)
                check(value)
                with self._lock:
                    self.usage.kept += 1
                return value
        messages, wrong = list(prompt.messages), ""
        for _ in range(self.server.attempts):
            said, problem = self._complete(messages, shape.__name__, schema)
            if not problem:
                try:
                    answer, _changed = clean(_object(said))
                    value = convert(answer, shape)
                    check(value)
                except RewardError as error:
                    problem = f"{error.message}{f' (at {error.pointer})' if error.pointer else ''}"
                else:
                    self._answers.keep(key, answer, about or {})
                    return value
            wrong = problem
            messages = [
                *prompt.messages,
                {"role": "assistant", "content": said[:_TOLD] or "(nothing)"},
                {
                    "role": "user",
                    "content": f"This answer cannot be used: {problem} Answer with one JSON object.",
                },
            ]
        raise NoAnswer(f"{self.server.model} gave no answer that can be used. The last one: {wrong}")

    def each(self, things: Iterable[A], ask: Callable[[A], T]) -> Iterator[tuple[A, T | NoAnswer]]:
        """`ask` of each thing, several at once, in the order they end; NoAnswer in the place of an answer."""
        waiting: dict[Future[T], A] = {}
        with ThreadPoolExecutor(self.server.at_once) as pool:
            try:
                for thing in things:
                    waiting[pool.submit(ask, thing)] = thing
                    if len(waiting) >= 2 * self.server.at_once:
                        yield from _ended(waiting)
                while waiting:
                    yield from _ended(waiting)
            finally:
                for future in waiting:
                    future.cancel()

    def _complete(self, messages: list[dict[str, str]], name: str, schema: dict[str, Any]) -> tuple[str, str]:
        """What the model said, and what is wrong with that by itself, or an empty string."""
        options: dict[str, Any] = {
            "temperature": 0,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": name, "schema": schema, "strict": True},
            },
        }
        while True:
            sent = {option: value for option, value in options.items() if option not in self._left_out}
            try:
                reply = self._client.chat.completions.create(
                    model=self.server.model,
                    messages=cast(Any, messages),
                    **sent,
                )
                break
            except openai.BadRequestError as error:
                said = str(error).lower()
                unknown = [option for option in sent if any(word in said for word in _OPTIONAL[option])]
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
                with self._lock:
                    self._missed += 1
                    missed = self._missed
                    alone = not self.usage.calls
                if alone or missed >= _IN_A_ROW:
                    raise RewardError(f"The language model cannot be reached: {_short(error)}") from error
                raise NoAnswer(f"The server did not answer: {_short(error)}") from error
            except openai.OpenAIError as error:  # an answer that is no completion
                return "", f"It is no chat completion: {_short(error)}"
            except (ValueError, TypeError, AttributeError) as error:  # JSON of another shape, or none
                return "", f"It is no chat completion: {_short(error)}"
        with self._lock:
            self.usage.calls += 1
            self._missed = 0
            self.usage.prompt_tokens += _count(reply, "prompt_tokens")
            self.usage.completion_tokens += _count(reply, "completion_tokens")
        return _said(reply)


def _said(reply: Any) -> tuple[str, str]:
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


def _object(said: str) -> Any:
    """The JSON object in an answer, whatever a model wrote around it. Raises InvalidRecord."""
    said = _THOUGHT.sub("", said)
    start = said.find("{")
    if start < 0:
        raise InvalidRecord("It holds no JSON object.")
    try:
        _, end = json.JSONDecoder().raw_decode(said, start)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"It is no JSON: {error}.") from None
    return parse_json(said[start:end])


def _schema(shape: type[Any]) -> dict[str, Any]:
    """As servers with strict structured output want it: definitions beside, every field required."""
    (found,), definitions = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    schema = dict(definitions.pop(shape.__name__))
    assert found
    return schema | {"$defs": definitions} if definitions else schema


def _key(model: str, prompt: Prompt, schema: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps([model, prompt.messages, schema], sort_keys=True).encode()).hexdigest()


def _ended(waiting: dict[Future[T], A]) -> Iterator[tuple[A, T | NoAnswer]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        thing = waiting.pop(future)
        try:
            yield thing, future.result()
        except NoAnswer as error:
            yield thing, error


def _count(reply: Any, name: str) -> int:
    found = getattr(getattr(reply, "usage", None), name, 0)
    return found if isinstance(found, int) else 0


def _short(error: BaseException) -> str:
    said = " ".join(str(error).split())
    return (said if len(said) <= 300 else f"{said[:299]}…").rstrip(".") + "."
