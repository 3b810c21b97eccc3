"""A judge before real servers: `transformers serve`, which reads no schema and tells no chances, and llama.cpp's, which
does both. The model knows a few answers by heart, so that some go the whole way."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from apps.accounts.models import Project
from apps.llm import services
from apps.llm.models import Spending
from apps.llm.relay import relay
from apps.llm.services import LLMConnectionSpec
from tests.workers.judge.test_rubric import CARE, run
from tests.workers.llm.llama_cpp import as_gguf
from tests.workers.llm.taught import Messages, taught
from workers.judge.rubric import RubricJudge
from workers.llm import LLMServer
from workers.llm.client import AnswersFile, LLMClient, NoAnswer
from workers.llm.completions import Completion, Wanted

pytestmark = pytest.mark.slow
GOOD, BAD = run("sent", "sent"), run("failed")
ANSWERS = (
    '{"c0": {"reason": "Both were sent.", "step": 1, "score": 5}}',
    '{"c0": {"reason": "Both were sent.", "step": 1, "score": 2}}',
    "I cannot judge this.",
    '{"c0": {"reason": "B failed.", "step_a": 1, "step_b": 0, "better": "A"}}',
    '{"c0": {"reason": "A failed.", "step_a": 0, "step_b": 1, "better": "B"}}',
)
ROOT = Path(__file__).parents[3]
TRANSFORMERS, LLAMA = "transformers serve", "llama.cpp"
NEEDED = {TRANSFORMERS: ("fastapi", "uvicorn"), LLAMA: ("xllamacpp", "gguf")}


@dataclass
class Notes:
    """Takes down what it is asked, and answers nothing."""

    asked: list[Messages]

    def complete(self, wanted: Wanted) -> Completion:
        self.asked.append(wanted.messages)
        raise NoAnswer("It only takes notes.")


def questions(folder: Path) -> Sequence[Messages]:
    """In the order of ANSWERS."""
    notes = Notes([])
    server = LLMServer(base_url="http://127.0.0.1:9", model="none")
    judge = RubricJudge(LLMClient(server, AnswersFile(folder / "none.jsonl"), model=notes), [CARE])
    asks: list[Callable[[], Any]] = [
        lambda: judge.score(GOOD),
        lambda: judge.score(GOOD),
        lambda: judge.score(BAD),
        lambda: judge.compare(GOOD, BAD),
        lambda: judge.compare(BAD, GOOD),
    ]
    for ask in asks:
        with pytest.raises(NoAnswer):
            ask()
    return notes.asked


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model `taught` in it."""
    folder = tmp_path_factory.mktemp("models")
    taught(folder / "taught", list(zip(questions(folder), ANSWERS, strict=True)))
    return folder


def command(name: str, models: Path, port: int) -> list[str]:
    """Of a server that knows the model by its name, `taught`."""
    if name == LLAMA:
        made = as_gguf(models / "taught", models / "taught.gguf")
        return ["-m", "tests.workers.llm.llama_cpp", str(made), str(port)]
    where = ("--host", "127.0.0.1", "--port", str(port))
    return ["-m", "transformers.cli.transformers", "serve", *where, "--device", "cpu"]


@contextmanager
def served(name: str, models: Path) -> Iterator[str]:
    """The base URL of a server process, as long as the block runs."""
    if missing := [record for record in NEEDED[name] if find_spec(record) is None]:
        pytest.skip(f"{name} needs {' and '.join(missing)}, which pip did not install here")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    log = models / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *command(name, models, port)],
            cwd=models, env=environment, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            await_health(process, f"http://127.0.0.1:{port}/health", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def await_health(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    until = time.monotonic() + 360
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(url).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module", params=[pytest.param(TRANSFORMERS, marks=pytest.mark.long), LLAMA])
def address(request: pytest.FixtureRequest, models: Path) -> Iterator[tuple[str, str]]:
    with served(request.param, models) as url:
        yield request.param, url


def judge(url: str, folder: Path, key: str = "", **options: Any) -> RubricJudge:
    given: dict[str, Any] = {"model": "taught", "answer_tokens": 80, "attempts": 1, "retries": 0}
    server = LLMServer(base_url=url, **given | options)
    return RubricJudge(LLMClient(server, AnswersFile(folder / "answers.jsonl"), key), [CARE])


def test_an_answer_goes_the_whole_way(address: tuple[str, str], tmp_path: Path) -> None:
    name, url = address
    one = judge(url, tmp_path)
    (care,) = one.score(GOOD)
    assert (care.reason, care.step) == ("Both were sent.", 1)
    if name == LLAMA:  # which tells that 2 and 5 were about as likely
        assert care.value is not None and 2.2 < care.value < 4.8
    else:
        assert care.value in (2, 5)
    usage = one.model.usage
    assert usage.calls == 1 and usage.prompt_tokens > 300 and usage.completion_tokens > 10
    (compared,) = one.compare(GOOD, BAD)
    assert compared.chance == pytest.approx(1, abs=0.05)
    assert (compared.reason, compared.step_a, compared.step_b) == ("B failed.", 1, 0)


def test_what_cannot_be_used_is_no_answer_and_the_others_have_theirs(
    address: tuple[str, str], tmp_path: Path
) -> None:
    """To the bad run the model says no. llama.cpp makes it keep to the shape, within which it mostly goes wrong."""
    one = judge(address[1], tmp_path)
    found = dict(one.model.each((0, 1), lambda number: one.score((BAD, GOOD)[number])))
    answered = [number for number, answer in found.items() if not isinstance(answer, NoAnswer)]
    assert 1 in answered and len((tmp_path / "answers.jsonl").read_text().splitlines()) == len(answered)
    if isinstance(found[0], NoAnswer):
        reasons = {TRANSFORMERS: "It holds no JSON object", LLAMA: r"There is no step|cut off|at /c0"}
        assert re.search(reasons[address[0]], found[0].message)
    else:
        assert address[0] == LLAMA and found[0][0].step in (None, 0, 1)
    with pytest.raises(NoAnswer, match="It was cut off before its end"):
        judge(address[1], tmp_path / "short", answer_tokens=5).score(GOOD)


def test_a_model_that_is_not_there_is_told(address: tuple[str, str], tmp_path: Path) -> None:
    one = judge(address[1], tmp_path, model="gone")
    if address[0] == LLAMA:  # has one model, and does not care what it is called
        assert one.score(GOOD)[0].step == 1
        return
    with pytest.raises(NoAnswer, match="The server did not answer: Error code: 500"):
        one.score(GOOD)
    assert not (tmp_path / "answers.jsonl").exists()


@pytest.mark.django_db(transaction=True)
def test_through_the_relay_it_is_counted(
    address: tuple[str, str], tmp_path: Path, project: Project, settings: Any
) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    spec = LLMConnectionSpec(name="real", base_url=address[1], model="taught")
    row = services.create_llm_connection(project=project, spec=spec, key="", by=None)
    with relay(row, "judging") as (here, word):
        one = judge(here, tmp_path, word)
        (care,) = one.score(GOOD)
    assert (care.reason, care.step) == ("Both were sent.", 1)
    spent = Spending.objects.get()
    assert (spent.purpose, spent.calls, spent.failed) == ("judging", 1, 0)
    usage = one.model.usage
    assert (spent.prompt_tokens, spent.completion_tokens) == (usage.prompt_tokens, usage.completion_tokens)
