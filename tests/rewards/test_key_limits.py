"""A key's limits, as trainers meet them: 429 in every protocol, 403 from elsewhere, 503 where bodies fill memory."""

import asyncio
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.utils import timezone

from apps.accounts.keys import KeyLimits, create_api_key
from apps.accounts.models import ApiKey, Scope
from apps.core.http.client_address import SIGNED_HEADER, signed_address
from apps.rewards.models import Endpoint, ScoreRollup
from apps.rewards.serving.access import Caller
from apps.rewards.serving.intake import Intake
from apps.rewards.serving.problems import Problem
from apps.rewards.usage import UsageTally
from tests.rewards.test_hostile import PATHS

GOOD = {"inputs": [{"text": "hello there"}]}


def limited(project, **limits) -> tuple[ApiKey, dict[str, str]]:
    key, secret = create_api_key(project=project, scopes=[Scope.REWARD], limits=KeyLimits(**limits))
    return key, {"Authorization": f"Bearer {secret}"}


def test_too_many_requests_are_refused_in_every_protocol(http, endpoint, project) -> None:
    _, headers = limited(project, requests_per_minute=1)
    url = f"/api/v1/rewards/{endpoint}/score"
    first = http.post(url, json=GOOD, headers=headers)
    assert first.status_code == 200
    assert first.headers["RateLimit-Policy"] == '"requests_per_minute";q=1;w=60'
    assert first.headers["RateLimit"].startswith('"requests_per_minute";r=0;t=')
    for path in PATHS:
        reply = http.post(path.format(endpoint=endpoint), json=GOOD, headers=headers)
        document = reply.json()
        assert (reply.status_code, int(reply.headers["Retry-After"]) > 0) == (429, True), path
        assert "1 requests per minute" in document["detail"]
        assert (document["limit"], document["limit_name"]) == (1, "requests_per_minute")
        assert "RateLimit" in reply.headers
        if path.startswith("/compat/vllm"):
            assert document["error"]["code"] == 429
        if path.startswith("/compat/tei"):
            assert document["error_type"] == "Too Many Requests"
    assert http.get(f"/api/v1/rewards/{endpoint}/", headers=headers).status_code == 429
    assert http.post(url, json=GOOD).status_code == 200  # another key of the project


def test_tokens_are_counted_before_they_are_scored(http, endpoint, project, fake) -> None:
    _, headers = limited(project, tokens_per_minute=5)
    url = f"/api/v1/rewards/{endpoint}/score"
    assert http.post(url, json=GOOD, headers=headers).status_code == 200
    computed = sum(fake.batches)
    reply = http.post(url, json={"inputs": [{"text": "something else"}]}, headers=headers)
    assert (reply.status_code, reply.json()["limit_name"]) == (429, "tokens_per_minute")
    assert sum(fake.batches) == computed


def test_tokens_of_the_day_count_on_after_a_restart(http, endpoint, project) -> None:
    key, headers = limited(project, tokens_per_day=1000)
    tally = UsageTally(requests=1, tokens=1000)
    ScoreRollup.objects.create(
        endpoint=Endpoint.objects.get(name=endpoint),
        hour=timezone.now().replace(minute=0, second=0, microsecond=0),
        version=1,
        caller=key.prefix,
        tokens=tally.tokens,
        latency=tally.latency,
        rewards=tally.rewards,
    )
    reply = http.post(f"/api/v1/rewards/{endpoint}/score", json=GOOD, headers=headers)
    assert (reply.status_code, reply.json()["limit_name"]) == (429, "tokens_per_day")


def test_a_key_is_used_from_its_networks_alone(service, http, endpoint, project) -> None:
    _, headers = limited(project, allowed_networks=("203.0.113.0/24",))
    url = f"/api/v1/rewards/{endpoint}/score"

    def status(**more: str) -> int:
        return http.post(
            url, json=GOOD, headers=headers | {k.replace("_", "-"): v for k, v in more.items()}
        ).status_code

    refused = http.post(url, json=GOOD, headers=headers)
    assert refused.status_code == 403
    assert "203.0" not in refused.text
    assert status(X_Forwarded_For="203.0.113.9") == 403
    assert status(**{SIGNED_HEADER: "203.0.113.9"}) == 403
    assert status(**{SIGNED_HEADER: "203.0.113.9:made-up"}) == 403
    assert status(**{SIGNED_HEADER: signed_address("203.0.113.9")}) == 200  # as our web process passes it on


def test_bodies_in_memory_have_a_limit_and_a_project_half_of_it() -> None:
    with ThreadPoolExecutor(1) as pool:
        intake = Intake(100, pool, 4)
        intake.reserve("a", 40)
        with pytest.raises(Problem, match="of this project") as error:
            intake.reserve("a", 20)
        assert (error.value.status, error.value.headers["Retry-After"]) == (503, "2")
        intake.reserve("b", 50)
        with pytest.raises(Problem):
            intake.reserve("a", 20)
        intake.release("a", 40)
        intake.release("b", 50)
        intake.reserve("c", 50)  # what was held is given back


def test_large_bodies_are_decoded_one_at_a_time() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def parse(body: bytes, headers: Mapping[str, str]) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1

    async def run() -> None:
        nonlocal most
        with ThreadPoolExecutor(8) as pool:
            intake = Intake(100, pool, 4)
            slots = [intake.parsers(Caller("k", name)) for name in "abcd"]
            await asyncio.gather(*(intake.parse(slot, parse, bytes(5 * 2**20), {}) for slot in slots))
            assert most == 1
            most = 0
            await asyncio.gather(*(intake.parse(slots[0], parse, b"", {}) for _ in range(8)))
            assert most == 2  # a key has half of the threads

    asyncio.run(run())
