"""Servers of language models are other people's: whatever they answer is an answer or a sentence."""

import time
from typing import Any

import pytest

from apps.accounts.models import Project
from apps.core.errors import DomainError
from apps.llm import services
from apps.llm.calls import REPLY_BYTES, _longest, call
from apps.llm.checks import check_llm_connection
from apps.llm.models import LLMConnection, SpendingPurpose
from apps.llm.services import LLMConnectionSpec
from tests.core import hostile_server
from tests.core.hostile_server import ANSWERS, DOCUMENTS, SLOW, whole
from workers.errors import RewardError
from workers.llm import LLMServer
from workers.llm.completions import Completion, Wanted
from workers.llm.remote import Remote

BODY = b'{"messages": []}'
WANTED = Wanted(messages=[{"role": "user", "content": "?"}], name="answer", schema={"type": "object"})


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]


def model_at(project: Project, url: str) -> LLMConnection:
    spec = LLMConnectionSpec(name="evil", base_url=url, model="tiny")
    return services.create_llm_connection(project=project, spec=spec, key="", by=None)


@pytest.mark.django_db
@pytest.mark.parametrize("what", ANSWERS)
def test_a_hostile_answer_is_none(project: Project, what: str) -> None:
    """3 kB of gzip within gzip took 3.9 GB of `rewards` and `web` before."""
    with hostile_server.serving(ANSWERS[what]) as url, pytest.raises(DomainError) as error:
        call(model_at(project, url), BODY, purpose=SpendingPurpose.TEST, seconds=10)
    assert error.value.status == 502 and "did not answer: " in error.value.message


@pytest.mark.django_db
@pytest.mark.parametrize("what", DOCUMENTS)
def test_a_hostile_document_is_passed_on_and_read_by_nobody(project: Project, what: str) -> None:
    with hostile_server.serving(whole(DOCUMENTS[what])) as url:
        model = model_at(project, url)
        assert call(model, BODY, purpose=SpendingPurpose.TEST).body == DOCUMENTS[what]
        with pytest.raises(DomainError, match="but not with"):
            check_llm_connection(llm_connection=model)


@pytest.mark.django_db
@pytest.mark.parametrize("what", SLOW)
def test_a_slow_answer_has_an_end(project: Project, what: str) -> None:
    began = time.monotonic()
    with hostile_server.serving(SLOW[what]) as url, pytest.raises(DomainError, match="took over"):
        call(model_at(project, url), BODY, purpose=SpendingPurpose.TEST, seconds=0.5)
    assert time.monotonic() - began < 20


def _remote(url: str) -> Remote:
    return Remote(LLMServer(model="tiny", base_url=f"{url}/v1", timeout=10.0, retries=0), "key")


def _complete(url: str) -> Completion | None:
    """None where it says why there is none."""
    try:
        return _remote(url).complete(WANTED)
    except RewardError:
        return None


@pytest.mark.parametrize("what", ANSWERS)
def test_a_machine_without_the_relay_is_as_safe(what: str) -> None:
    with hostile_server.serving(ANSWERS[what]) as url:
        found = _complete(url)
    assert found is None or (found.said == "" and found.problem)


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("endless interim replies", "its head has more than 500,000 bytes"),
        ("chunks of a byte", "it comes in more than 20,000 parts"),
    ],
)
def test_what_only_takes_time_is_ended_early(what: str, says: str) -> None:
    """Each took the whole time of the call before, which was 10 s of CPU."""
    with hostile_server.serving(ANSWERS[what]) as url:
        try:
            found = _remote(url).complete(WANTED)
        except RewardError as error:
            assert says in f"{error} {error.__cause__} {error.__cause__ and error.__cause__.__cause__}"
        else:
            assert says in found.problem


def test_a_compressed_answer_is_named() -> None:
    with hostile_server.serving(ANSWERS["gzip"]) as url:
        found = _complete(url)
    assert found is not None and "it is compressed (gzip); have it answer uncompressed" in found.problem


def test_a_compressed_error_is_not_unpacked() -> None:
    bomb = hostile_server.whole(b"\x1f\x8b" + b"x" * 1000, b"Content-Encoding: gzip", status=b"500 Broken")
    with hostile_server.serving(bomb) as url:
        found = _complete(url)
    assert found is None or found.problem


@pytest.mark.parametrize("what", DOCUMENTS)
def test_a_hostile_document_is_no_completion(what: str) -> None:
    with hostile_server.serving(whole(DOCUMENTS[what])) as url:
        found = _complete(url)
    assert found is not None and found.said == "" and found.problem


def test_a_reply_may_be_as_long_as_what_was_asked_for() -> None:
    assert _longest({"max_tokens": 100}) < 1.1 * REPLY_BYTES
    assert _longest({"max_tokens": 1000, "logprobs": True}) > 3 * REPLY_BYTES
    assert _longest({"max_tokens": 131_072, "logprobs": True}) == 8_000_000
