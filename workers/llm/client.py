"""A client for servers that speak OpenAI's chat completions, whose answers are JSON of a given shape or nothing.

What does not have the shape, or fails the caller's check, is told to the model and asked for again; after that the item
has no answer, and the caller says so. Nothing is made up in its place. Answers that were accepted are kept by what was
asked (`Answers`), so that a caller that asks again pays for what failed only.
"""

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from workers.errors import InvalidRecord, RewardError
from workers.llm import LLMServer
from workers.llm.completions import Completion, Model, NoAnswer, Wanted, chances
from workers.llm.remote import Remote
from workers.prompts.templates import Prompt
from workers.schema.decode import clean, convert, parse_json

T = TypeVar("T")
A = TypeVar("A")
_TOLD = 4000  # characters of a refused answer that are given back to the model
_THOUGHT = ("<think>", "</think>")
Chances = Sequence[Mapping[str, float]]


@dataclass(slots=True)
class Usage:
    """tokens: as the server counted them, 0 where it did not. kept: answers that were there already."""

    calls: int = 0
    kept: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class LogprobChoices:
    """Of a field that the answer gives once or more, the words it can hold each time: how likely was each?"""

    field: str
    words: tuple[tuple[str, ...], ...]


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
                    record = json.loads(line)
                    self._known[record["key"]] = record["answer"]

    def get(self, key: str) -> Any:
        return self._known.get(key)

    def keep(self, key: str, answer: Any, about: Mapping[str, str]) -> None:
        with self._lock:
            self._known[key] = answer
            with self.path.open("a", encoding="utf-8") as out:
                out.write(json.dumps({"key": key, "answer": answer, "about": dict(about)}) + "\n")


class LLMClient:
    """Thread-safe. Raises RewardError where the model is in a folder and cannot be loaded."""

    def __init__(
        self, server: LLMServer, answers: Answers, key: str = "", *, model: Model | None = None
    ) -> None:
        """key: the secret of the server, else OPENAI_API_KEY of the environment. model: the server's, where it is there
        already."""
        self.server, self.usage, self.asked = server, Usage(), dict[str, int]()
        self._answers, self._lock = answers, threading.Lock()
        self._model = model or model_of(server, key or os.environ.get("OPENAI_API_KEY", ""))

    def ask(
        self,
        prompt: Prompt,
        shape: type[T],
        check: Callable[[T], None] = lambda _: None,
        *,
        about: Mapping[str, str] | None = None,
    ) -> T:
        """shape: a msgspec.Struct. check: raises RewardError for an answer that cannot be. about: whose words are in
        the answer, for a caller that keeps it.

        Raises NoAnswer where this item has none; RewardError where no one will have one.
        """
        return self.complete_with_logprobs(prompt, shape, check, about=about)[0]

    def complete_with_logprobs(
        self,
        prompt: Prompt,
        shape: type[T],
        check: Callable[[T], None] = lambda _: None,
        *,
        about: Mapping[str, str] | None = None,
        weighed: LogprobChoices | None = None,
        draw: int | None = None,
    ) -> tuple[T, Chances]:
        """As `ask`, and of each `weighed` field of the answer the chances of its words, in the answer's order.

        They are empty where the model does not tell. draw: None for the likeliest answer, else the number of one that
        is drawn; the same number gives the same answer again, since it is kept.
        """
        schema = _schema(shape)
        key = _key(self.server.name, prompt, schema, weighed, draw)
        with self._lock:
            self.asked[prompt.of] = self.asked.get(prompt.of, 0) + 1
        kept = self._answers.get(key)
        if kept is not None:
            with suppress(RewardError, KeyError, TypeError):
                given, odds = (kept, []) if weighed is None else (kept["answer"], kept["chances"])
                value = convert(given, shape)
                check(value)
                with self._lock:
                    self.usage.kept += 1
                return value, odds
        asked = prompt.chat
        messages, wrong = list(asked), ""
        for _ in range(self.server.attempts):
            completion = self._complete(messages, shape.__name__, schema, weighed, draw)
            said, problem = completion.said, completion.problem
            if not problem:
                try:
                    answer, _changed = clean(_object(said))
                    value = convert(answer, shape)
                    check(value)
                except RewardError as error:
                    problem = f"{error.message}{f' (at {error.pointer})' if error.pointer else ''}"
                else:
                    odds = [] if weighed is None else chances(completion, weighed.field, weighed.words)
                    to_keep = answer if weighed is None else {"answer": answer, "chances": odds}
                    self._answers.keep(key, to_keep, about or {})
                    return value, odds
            wrong = problem
            messages = [
                *asked,
                {"role": "assistant", "content": said[:_TOLD] or "(nothing)"},
                {
                    "role": "user",
                    "content": f"This answer cannot be used: {problem} Answer with one JSON object.",
                },
            ]
        raise NoAnswer(f"{self.server.name} gave no answer that can be used. The last one: {wrong}")

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

    def _complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        name: str,
        schema: Mapping[str, Any],
        weighed: LogprobChoices | None,
        draw: int | None,
    ) -> Completion:
        wanted = Wanted(messages=messages, name=name, schema=schema, draw=draw, likeliest=weighed is not None)
        found = self._model.complete(wanted)
        with self._lock:
            self.usage.calls += 1
            self.usage.prompt_tokens += found.prompt_tokens
            self.usage.completion_tokens += found.completion_tokens
        return found


def model_of(server: LLMServer, key: str) -> Model:
    """Raises RewardError where it is in a folder and cannot be loaded."""
    if not server.folder:
        return Remote(server, key)
    from workers.llm.local import Local  # brings torch along

    return Local(server)


def _object(said: str) -> Any:
    """The JSON object in an answer, whatever a model wrote around it. Raises InvalidRecord."""
    said = _without_thoughts(said)
    start = said.find("{")
    if start < 0:
        raise InvalidRecord("It holds no JSON object.")
    try:
        _, end = json.JSONDecoder().raw_decode(said, start)
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"It is no JSON: {error}.") from None
    return parse_json(said[start:end])


def _without_thoughts(said: str) -> str:
    """Without what stands between the tags of a thought. By `str.find`: an answer is someone else's text, and tags
    that are never closed must not be looked for again from each of them."""
    (begins, ends), kept, at = _THOUGHT, [], 0
    while (start := said.find(begins, at)) >= 0 and (end := said.find(ends, start + len(begins))) >= 0:
        kept.append(said[at:start])
        at = end + len(ends)
    return "".join([*kept, said[at:]])


def _schema(shape: type[Any]) -> dict[str, Any]:
    """As servers with strict structured output want it: definitions next to, every field required."""
    (found,), definitions = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    schema = dict(definitions.pop(shape.__name__))
    assert found
    return schema | {"$defs": definitions} if definitions else schema


def _key(
    model: str, prompt: Prompt, schema: dict[str, Any], weighed: LogprobChoices | None, draw: int | None
) -> str:
    asked: list[Any] = [model, prompt.messages, schema]
    asked += [[[picture.label, picture.key] for picture in prompt.pictures]] if prompt.pictures else []
    if weighed is not None or draw is not None:
        asked += [weighed and [weighed.field, weighed.words], draw]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _ended(waiting: dict[Future[T], A]) -> Iterator[tuple[A, T | NoAnswer]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        thing = waiting.pop(future)
        try:
            yield thing, future.result()
        except NoAnswer as error:
            yield thing, error
