"""A question, what its answer has to look like, and a model behind a script that is asked it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tests.workers.llm.scripted import Body, Reply, Script, scripted
from workers.errors import RewardError
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient
from workers.prompts.templates import Prompt

ASKED = Prompt("test.v1", ({"role": "user", "content": "How many?"},))


class Count(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    number: int
    why: str | None


GOOD = json.dumps({"number": 3, "why": None})


def ask(answer: Callable[[Body], Reply], folder: Path, **options: Any) -> tuple[Count, Script, LLMClient]:
    script = Script(answer)
    with scripted(script) as url:
        server = LLMServer(base_url=url, model="tiny", **options)
        model = LLMClient(server, AnswersFile(folder / "answers.jsonl"), "secret")
        return model.ask(ASKED, Count, few), script, model


def few(count: Count) -> None:
    if count.number > 5:
        raise RewardError("There are at most five.")


def in_turn(*replies: Reply) -> Callable[[Body], Reply]:
    left = list(replies)
    return lambda body: left.pop(0) if len(left) > 1 else left[0]


def numbered(number: int) -> Prompt:
    return Prompt("n", ({"role": "user", "content": str(number)},))
