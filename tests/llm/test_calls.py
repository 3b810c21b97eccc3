"""Limits of language models hold however many ask at once, and what was asked is written down."""

import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import httpx
import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.core.errors import DomainError
from apps.llm import calls, services
from apps.llm.calls import BudgetExceeded, RateLimited, call
from apps.llm.models import LLMConnection, Spending
from apps.llm.relay import REFUSED, relay
from apps.llm.selectors import monthly_costs
from apps.llm.services import LLMConnectionSpec
from tests.factories import make_member
from tests.workers.llm.scripted import Script, completion, scripted

pytestmark = pytest.mark.django_db
BODY = json.dumps({"model": "any", "messages": [{"role": "user", "content": "x" * 1000}]}).encode()
PRICED = {"prompt_price": Decimal(1000), "completion_price": Decimal(2000), "answer_tokens": 100}


@pytest.fixture
def script(settings: Any) -> Script:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    return Script(lambda body: "ready")


@pytest.fixture
def address(script: Script) -> Iterator[str]:
    with scripted(script) as url:
        yield url


@pytest.fixture
def owner(project: Project) -> User:
    return make_member(project, "owner@example.org", "owner")


def model(project: Project, address: str, **given: Any) -> LLMConnection:
    spec = LLMConnectionSpec(name="judge", base_url=address, model="tiny", **given)
    return services.create_llm_connection(project=project, spec=spec, key="", by=None)


def only() -> Spending:
    return Spending.objects.get()


def test_what_is_sent_has_an_end_and_is_for_this_model(
    project: Project, address: str, script: Script
) -> None:
    asked = model(project, address, answer_tokens=50)
    wild = {"messages": [], "model": "dear", "n": 90, "stream": True, "max_tokens": 10_000}
    for given in (wild, wild | {"max_completion_tokens": 7}, {"messages": [], "max_tokens": -1}):
        call(asked, json.dumps(given).encode(), purpose="trial")
    first, second, third = script.asked
    assert first == {"messages": [], "model": "tiny", "max_tokens": 50}
    assert second == {"messages": [], "model": "tiny", "max_completion_tokens": 7}
    assert third["max_tokens"] == 50
    for bad in (b"[]", b"{", b'{"messages": 3}', b"[" * 100_000):
        with pytest.raises(DomainError, match="JSON object with messages"):
            call(asked, bad, purpose="trial")


def test_what_the_server_counted_is_what_it_costs(
    project: Project, address: str, owner: User, client: Client
) -> None:
    asked = model(project, address, **PRICED)
    for purpose in ("trial", "judging", "judging"):
        assert call(asked, BODY, purpose=purpose).status == 200
    said = {spending.purpose: spending for spending in Spending.objects.all()}
    assert said["judging"].cost == 2 * (10 * Decimal("0.001") + 5 * Decimal("0.002"))
    assert (said["judging"].calls, said["judging"].failed, said["judging"].prompt_tokens) == (2, 0, 20)
    services.delete_llm_connection(llm_connection=asked, by=None)
    assert [(cost.name, cost.purpose, cost.calls) for cost in monthly_costs(project)] == [
        ("judge", "Judge runs", 2),
        ("judge", "Connection tests", 1),
    ], "what was spent stays when the model goes"
    client.force_login(owner)
    assert b"Connection tests" in client.get(f"/p/{project.slug}/llm-connections/").content


@pytest.mark.parametrize(
    ("reply", "costs"),
    [
        ((500, {}), False),
        ((429, {}), False),
        ((200, "<html>"), True),
        ((200, completion("x") | {"usage": {"prompt_tokens": -3}}), True),
        ((200, completion("x") | {"usage": None}), True),
        (None, True),
    ],
)
def test_an_answer_that_never_came_costs_the_most_it_could(
    project: Project, address: str, script: Script, reply: Any, costs: bool
) -> None:
    asked = model(project, address, **PRICED)
    script.answer = lambda body: reply
    if reply is None:
        with pytest.raises(DomainError, match="did not answer") as error:
            call(asked, BODY, purpose="trial")
        assert error.value.status == 502
    else:
        call(asked, BODY, purpose="trial")
    most = Decimal(1000 + 100) * Decimal("0.001") + 100 * Decimal("0.002")
    assert (only().cost >= most) == costs and (only().cost == 0) == (not costs)


def test_nobody_there_costs_nothing(project: Project, settings: Any) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    asked = model(project, "http://127.0.0.1:9/v1", **PRICED)
    with pytest.raises(DomainError, match="did not answer"):
        call(asked, BODY, purpose="trial")
    assert (only().cost, only().calls, only().failed) == (0, 1, 1)


@pytest.mark.django_db(transaction=True)
def test_the_limit_is_never_passed_however_many_ask_at_once(
    project: Project, address: str, script: Script
) -> None:
    """A call of 10 and 5 tokens costs 0.02, and up to 1.6; the limit has room for one at a time at the end."""
    asked = model(project, address, **PRICED, monthly_limit=Decimal(3))
    refused, done, seen = [], [], []
    lock = threading.Lock()

    def ask() -> None:
        try:
            for _ in range(30):
                try:
                    call(asked, BODY, purpose="judging")
                except BudgetExceeded as error:
                    refused.append(error)
                    if len(refused) > 40:
                        return
                else:
                    done.append(1)
                with lock:
                    seen.append(sum(Spending.objects.values_list("cost", flat=True)))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(seen) <= 3 and len(done) == len(script.asked)
    assert only().cost == len(done) * Decimal("0.02") and done and refused
    assert refused[0].status == 402 and "The monthly budget of judge is 3.00" in refused[0].message
    Spending.objects.update(day=timezone.now().date().replace(day=1) - timedelta(days=1), cost=3)
    assert call(asked, BODY, purpose="judging").status == 200, "another month"


def test_a_killed_worker_leaves_the_most_it_could_have_cost(project: Project, address: str) -> None:
    asked = model(project, address, **PRICED, monthly_limit=Decimal("1.9"))
    calls._reserve(asked, calls._limit_request(BODY, asked), "judging")  # and then it died
    assert only().failed == 1
    with pytest.raises(BudgetExceeded):
        call(asked, BODY, purpose="judging")


def test_calls_come_no_faster_than_allowed(project: Project, address: str, script: Script) -> None:
    asked = model(project, address, calls_per_minute=600)
    began = time.monotonic()
    for _ in range(6):
        call(asked, BODY, purpose="trial")
    assert time.monotonic() - began >= 5 * 60 / 600
    LLMConnection.objects.update(next_call_at=timezone.now() + timedelta(seconds=100))
    with pytest.raises(RateLimited) as error:
        call(asked, BODY, purpose="trial")
    assert error.value.status == 429 and 90 < error.value.seconds <= 100
    assert len(script.asked) == 6


def test_a_model_is_asked_as_it_is_now(project: Project, address: str, script: Script) -> None:
    """However long ago it was read: a relay lives as long as what asks through it."""
    asked = model(project, address)
    spec = LLMConnectionSpec(name="judge", base_url=address, model="larger", answer_tokens=7)
    services.update_llm_connection(llm_connection=asked, spec=spec, key="sk-new", by=None)
    call(asked, BODY, purpose="trial")
    assert script.keys == {"sk-new"} and asked.key == ""
    assert (script.asked[0]["model"], script.asked[0]["max_tokens"]) == ("larger", 7)
    services.delete_llm_connection(llm_connection=LLMConnection.objects.get(), by=None)
    with pytest.raises(DomainError, match="was deleted") as error:
        call(asked, BODY, purpose="trial")
    assert error.value.status == 404 and len(script.asked) == 1


def test_who_waits_less_is_sent_away_sooner(project: Project, address: str, script: Script) -> None:
    asked = model(project, address, calls_per_minute=60)
    LLMConnection.objects.update(next_call_at=timezone.now() + timedelta(seconds=10))
    with pytest.raises(RateLimited):
        call(asked, BODY, purpose="trial", waits=5)
    assert script.asked == [] and not Spending.objects.exists()


def test_a_model_in_a_folder_is_not_called(project: Project, script: Script, settings: Any) -> None:
    settings.MODEL_DIRS = {"x": "/models/x"}
    asked = services.create_llm_connection(
        project=project, spec=LLMConnectionSpec(name="here", folder="x"), by=None
    )
    with pytest.raises(DomainError, match="only GPU workers"):
        call(asked, BODY, purpose="trial")


def test_limits_are_told_in_the_browser(
    client: Client, project: Project, owner: User, address: str, settings: Any
) -> None:
    client.force_login(owner)
    base = f"/p/{project.slug}/llm-connections/"
    given = {"name": "judge", "base_url": address, "model": "tiny", "key": "", "monthly_limit": "5"}
    refused = client.post(base, given)
    assert refused.status_code == 422 and b"needs both prices" in refused.content
    assert client.post(base, given | {"prompt_price": "1000", "completion_price": "2000"}).status_code == 302
    one = LLMConnection.objects.get()
    client.post(f"{base}{one.pk}/test/")
    page = client.get(base).content.decode()
    assert "of 5.00" in page and "0.02" in page
    assert b'value="1000' in client.get(f"{base}{one.pk}/").content
    settings.MODEL_DIRS = {"x": "/models/x"}
    folder = {"name": "here", "folder": "x"}
    assert client.post(base, folder).status_code == 302
    page = client.get(base).content.decode()
    assert "on GPU workers" in page and "Try here" not in page


@pytest.mark.django_db(transaction=True)
def test_the_relay_says_what_stops_it(project: Project, address: str) -> None:
    asked = model(project, address, **PRICED, monthly_limit=Decimal("0.5"), calls_per_minute=1)
    with relay(asked, "judging") as (here, word):
        headers = {"Authorization": f"Bearer {word}"}
        spent = httpx.post(f"{here}/chat/completions", content=BODY, headers=headers)
        assert spent.status_code == 402 and "The monthly budget of judge" in spent.json()["error"]["message"]
        assert REFUSED in spent.headers, "so that it is not taken for the server's word"
        LLMConnection.objects.update(monthly_limit=None, next_call_at=timezone.now() + timedelta(seconds=90))
        later = httpx.post(f"{here}/chat/completions", content=BODY, headers=headers)
        assert later.status_code == 429 and 80 < int(later.headers["retry-after"]) <= 90


@pytest.mark.django_db(transaction=True)
def test_who_waits_is_told_when_the_relay_ends(project: Project, address: str, script: Script) -> None:
    asked, goes_on, told = model(project, address), threading.Event(), list[Exception]()

    def answer(body: Any) -> str:
        goes_on.wait(20)
        return "ready"

    def ask(here: str, word: str) -> None:
        try:
            httpx.post(f"{here}/chat/completions", content=BODY, headers={"Authorization": f"Bearer {word}"})
        except httpx.HTTPError as error:
            told.append(error)

    script.answer = answer
    with relay(asked, "judging") as (here, word):
        waiting = threading.Thread(target=ask, args=(here, word))
        waiting.start()
        while not script.asked:
            time.sleep(0.01)
    waiting.join(timeout=5)
    assert not waiting.is_alive() and len(told) == 1
    goes_on.set()
    for _ in range(500):
        if Spending.objects.filter(failed=0).exists():
            break
        time.sleep(0.01)
    assert only().calls == 1, "the answer that came is written down all the same"
