"""What is asked is counted: once, by every replica, and made up for after the database was away."""

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from django.db import DataError, OperationalError
from django.utils import timezone as now

from apps.core.errors import DomainError
from apps.rewards import accounting
from apps.rewards.accounting import RECEIPTS_KEPT, delete_expired, write_usage
from apps.rewards.models import Endpoint, ScoreReceipt, ScoreRollup, ScoreSample
from apps.rewards.services import keep_samples, switch_off
from apps.rewards.serving import usage_writer as serving
from apps.rewards.usage import LATENCY_MS, REWARDS, UsageEvent, UsageGroup, UsageTally, group_usage, quantile
from tests.rewards.conftest import wait_until
from workers.errors import InvalidRecord

HOUR = datetime(2026, 11, 22, 19, tzinfo=UTC)


def event(
    group: UsageGroup, *rewards: float, status: int = 200, receipt: uuid.UUID | None = None
) -> UsageEvent:
    return UsageEvent(group, status, 7.0, rewards=rewards, tokens=10, cached_tokens=4, receipt=receipt)


def group(endpoint: int = 1, **more: Any) -> UsageGroup:
    return UsageGroup(endpoint, HOUR, 1, "tsk_1", **more)


def test_a_tally_by_hand() -> None:
    tally = UsageTally()
    for entry in (event(group(), 0.1, -9.0), event(group(), 99.0), event(group(), status=429)):
        tally.add(entry)
    for status in (422, 503, 500):
        tally.add(event(group(), status=status))
    tally.add(event(group(), 1.0), is_repeated=True)
    assert (tally.requests, tally.items, tally.tokens, tally.cached_tokens) == (2, 3, 20, 8)
    assert (tally.overloaded, tally.refused, tally.failed, tally.repeated) == (1, 1, 2, 1)
    assert tally.reward_sum == pytest.approx(90.1)
    assert tally.reward_squares == pytest.approx(0.01 + 81 + 99**2)
    assert (tally.rewards[0], tally.rewards[-1], tally.rewards[REWARDS.index(0.25)]) == (1, 1, 1)
    assert tally.latency[LATENCY_MS.index(10)] == 2


def test_quantiles() -> None:
    counts = [0, 0, 10, 10] + [0] * 12
    assert quantile(counts, LATENCY_MS, 0.25) == pytest.approx(3.5)
    assert quantile(counts, LATENCY_MS, 1.0) == 10
    assert quantile([0] * 15 + [1], LATENCY_MS, 0.5) == LATENCY_MS[-1]
    assert quantile([0] * 16, LATENCY_MS, 0.5) is None


def test_groups_are_counted_apart() -> None:
    found = group_usage(
        [event(group(run="a"), 1.0), event(group(run="b"), 1.0), event(group(run="a"), 1.0)], [2]
    )
    assert {entry.run: (tally.requests, tally.repeated) for entry, tally in found.items()} == {
        "a": (1, 1),
        "b": (1, 0),
    }


@pytest.fixture
def row(project) -> Endpoint:
    return Endpoint.objects.create(project=project, name="counted")


def test_batches_add_up_and_are_written_once(row) -> None:
    batch = uuid.uuid4()
    events = [event(group(row.pk), 0.1), event(group(row.pk, run="x"), 0.2, 0.3)]
    assert write_usage(batch=batch, events=events)
    assert not write_usage(batch=batch, events=events)
    assert write_usage(batch=uuid.uuid4(), events=events)
    plain, run = ScoreRollup.objects.order_by("run")
    assert (plain.requests, plain.items, run.items, sum(run.rewards), sum(run.latency)) == (2, 2, 4, 4, 2)
    assert run.reward_sum == pytest.approx(1.0)


def test_a_request_that_is_repeated_is_counted_once(row) -> None:
    """In one batch, in a later one, and by another replica."""
    receipt = uuid.uuid4()
    one = event(group(row.pk), 0.1, receipt=receipt)
    failed = event(group(row.pk), status=503, receipt=receipt)
    write_usage(batch=uuid.uuid4(), events=[failed])
    write_usage(batch=uuid.uuid4(), events=[one, one])
    write_usage(batch=uuid.uuid4(), events=[one])
    rollup = ScoreRollup.objects.get()
    assert (rollup.requests, rollup.repeated, rollup.failed) == (1, 2, 1)


def test_what_is_about_an_endpoint_that_is_gone_is_dropped(row) -> None:
    write_usage(batch=uuid.uuid4(), events=[event(group(row.pk + 1), 0.1), event(group(row.pk), 0.1)])
    assert ScoreRollup.objects.get().endpoint == row


def test_receipts_are_forgotten(row) -> None:
    write_usage(batch=uuid.uuid4(), events=[event(group(row.pk), 0.1)])
    ScoreReceipt.objects.update(at=now.now() - 2 * RECEIPTS_KEPT)
    delete_expired()
    assert not ScoreReceipt.objects.exists()


def counted(**fields: Any) -> ScoreRollup | None:
    return ScoreRollup.objects.filter(**fields).first()


def test_a_request_is_counted(service, http, endpoint, monkeypatch) -> None:
    monkeypatch.setattr(serving, "EVERY_SECONDS", 0.05)
    body = {"inputs": [{"text": "a"}, {"text": "b"}], "run": "grpo-1", "policy_version": 7}
    path = f"/api/v1/rewards/{endpoint}/score"
    first = http.post(path, json=body, headers={"Idempotency-Key": "call-1"}).json()["results"]
    http.post(path, json=body, headers={"Idempotency-Key": "call-1"})
    http.post(path, json={"inputs": [{"text": 7}], "run": "grpo-1", "policy_version": 7})
    asyncio.run_coroutine_threadsafe(service.state.usage.flush(), service.loop).result(10)
    rollup = counted(run="grpo-1")
    assert rollup is not None
    assert (rollup.version, rollup.policy_version, rollup.caller) == (
        1,
        "7",
        http.headers["Authorization"][7:19],
    )
    assert (rollup.requests, rollup.items, rollup.repeated) == (1, 2, 1)
    assert rollup.reward_sum == pytest.approx(sum(entry["reward"] for entry in first))
    wrong = counted(run="")
    assert wrong is not None and wrong.refused == 1  # what could not be read names no run


def test_a_switched_off_endpoint_counts_its_refusals(service, http, endpoint) -> None:
    switch_off(endpoint=Endpoint.objects.get(name=endpoint), reason="hacked", by=None)
    path = f"/api/v1/rewards/{endpoint}/score"
    wait_until(lambda: http.post(path, json={"inputs": []}).status_code == 503)
    asyncio.run_coroutine_threadsafe(service.state.usage.flush(), service.loop).result(10)
    rollup = ScoreRollup.objects.get(failed__gt=0)
    assert rollup.failed >= 1


def test_it_is_made_up_for_after_the_database_was_away(service, http, endpoint, monkeypatch) -> None:
    real = accounting.write_usage
    away = True

    def write(**given: Any) -> bool:
        if away:
            raise OperationalError("away")
        return real(**given)

    monkeypatch.setattr(serving, "write_usage", write)
    usage, path = service.state.usage, f"/api/v1/rewards/{endpoint}/score"
    for _ in range(3):
        assert http.post(path, json={"inputs": [{"text": "a"}]}).status_code == 200
        asyncio.run_coroutine_threadsafe(usage.flush(), service.loop).result(10)
    assert (usage.waiting, ScoreRollup.objects.count()) == (3, 0)
    away = False
    asyncio.run_coroutine_threadsafe(usage.flush(), service.loop).result(10)
    assert (usage.waiting, usage.lost, ScoreRollup.objects.get().requests) == (0, 0, 3)


@pytest.mark.parametrize(
    "error", [UnicodeEncodeError("utf-8", "\ud800", 0, 1, "lone"), DataError("no such value")]
)
def test_what_no_database_takes_holds_nothing_up(monkeypatch, error: Exception) -> None:
    written: list[int] = []

    def write(batch: Any) -> None:
        if not written:
            written.append(0)
            raise error
        written.append(len(batch.events))

    monkeypatch.setattr(serving, "_write", write)
    usage = serving.UsageWriter()
    usage.record(event(group(), 1.0))
    asyncio.run(usage.flush())
    usage.record(event(group(), 1.0))
    asyncio.run(usage.flush())
    assert (written, usage.waiting, usage.written, usage.lost) == ([0, 1], 0, 1, 1)
    usage.close()


def test_what_finds_no_room_is_counted_as_lost(monkeypatch) -> None:
    monkeypatch.setattr(serving, "MOST_EVENTS", 2)
    usage = serving.UsageWriter()
    for _ in range(5):
        usage.record(event(group(), 1.0))
    assert (usage.waiting, usage.lost) == (2, 3)


def test_a_client_that_names_every_request_makes_no_row_for_each(monkeypatch) -> None:
    monkeypatch.setattr(serving, "MOST_GROUPS", 2)
    usage = serving.UsageWriter()
    for number in range(5):
        usage.record(event(group(run=f"run-{number}", policy_version="1"), 1.0))
    assert sorted(entry.group.run for entry in usage._events) == ["(others)"] * 3 + ["run-0", "run-1"]


def test_samples_are_kept_where_it_is_wished(service, http, endpoint) -> None:
    path = f"/api/v1/rewards/{endpoint}/score"
    row, usage = Endpoint.objects.get(name=endpoint), service.state.usage

    def ask() -> None:
        messages = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "a"}]
        assert http.post(path, json={"inputs": [{"messages": messages}], "run": "r"}).status_code == 200
        asyncio.run_coroutine_threadsafe(usage.flush(), service.loop).result(10)

    ask()
    assert not ScoreSample.objects.exists()
    keep_samples(endpoint=row, share=1.0, by=None)
    wait_until(lambda: service.deployed[endpoint].info.sample_share == 1.0)
    ask()
    sample = ScoreSample.objects.get()
    assert (sample.run, sample.version, sample.steps, sample.tokens) == ("r", 1, 1, 1)
    assert sample.reward == sample.result["reward"]
    assert sample.item["trajectory"]["steps"][1]["source"] == "agent"
    assert sample.result["reward"] == pytest.approx((0.25 + 0.097 - 0.5) / 2)
    keep_samples(endpoint=row, share=0.0, by=None)
    assert not ScoreSample.objects.exists()


def followed(service, endpoint: str, share: float) -> None:
    wait_until(lambda: service.deployed[endpoint].info.sample_share == share)


def flushed(service) -> None:
    asyncio.run_coroutine_threadsafe(service.state.usage.flush(), service.loop).result(10)


def test_all_answers_to_a_prompt_are_kept_or_none(service, http, endpoint) -> None:
    keep_samples(endpoint=Endpoint.objects.get(name=endpoint), share=0.4, by=None)
    followed(service, endpoint, 0.4)
    for prompt in range(30):
        for answer in "abc":
            messages = [{"role": "user", "content": f"p{prompt}"}, {"role": "assistant", "content": answer}]
            http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [{"messages": messages}]})
    flushed(service)
    prompts: dict[str, int] = {}
    for sample in ScoreSample.objects.all():
        prompt = sample.item["trajectory"]["steps"][0]["message"]
        prompts[prompt] = prompts.get(prompt, 0) + 1
    assert set(prompts.values()) == {3}
    assert 3 <= len(prompts) <= 24


def test_what_is_kept_is_redacted_before_it_is_written(service, http, endpoint) -> None:
    row = Endpoint.objects.get(name=endpoint)
    keep_samples(endpoint=row, share=1.0, redacts=["email", "key"], patterns=[r"ORD-\d+"], by=None)
    followed(service, endpoint, 1.0)
    said = "Write to eve@example.org about ORD-123, with sk-abcdefghijklmnop."
    item = {"prompt": said, "response": said, "metadata": {"who": "eve@example.org"}}
    assert http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [item]}).status_code == 200
    flushed(service)
    kept = json.dumps(ScoreSample.objects.get().item)
    assert "Write to [email] about [redacted], with [key]." in kept
    assert "example.org" not in kept and "ORD-123" not in kept and "abcdefgh" not in kept


def test_what_is_too_long_or_too_much_is_not_kept(service, http, endpoint, monkeypatch) -> None:
    monkeypatch.setattr(serving, "SAMPLE_TOKENS", 5)
    monkeypatch.setattr(serving, "MOST_SAMPLES", 2)
    keep_samples(endpoint=Endpoint.objects.get(name=endpoint), share=1.0, by=None)
    followed(service, endpoint, 1.0)
    texts = ["longer", "a", "b", "c"]
    http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [{"text": text} for text in texts]})
    flushed(service)
    assert [object.item["text"] for object in ScoreSample.objects.order_by("pk")] == ["a", "b"]


def test_samples_go_when_their_time_has_come(project) -> None:
    row = Endpoint.objects.create(project=project, name="e", sample_share=0.5, sample_days=3, sample_most=2)
    for days in (0, 1, 2, 4):
        sample = ScoreSample(endpoint=row, version=1, caller="k", item={"text": "a"}, result={})
        sample.reward, sample.tokens, sample.steps = float(days), 1, 1
        sample.at = now.now() - timedelta(days=days)
        sample.save()
    delete_expired()
    assert sorted(row.samples.values_list("reward", flat=True)) == [0.0, 1.0]
    Endpoint.objects.update(sample_share=0.0)
    delete_expired()
    assert not row.samples.exists()


@pytest.mark.parametrize(
    ("settings", "pointer"),
    [
        ({"share": 1.1}, "/share"),
        ({"share": 0.1, "days": 0}, "/days"),
        ({"share": 0.1, "most": 10**9}, "/most"),
        ({"share": 0.1, "redacts": ["nose"]}, "/kinds/0"),
        ({"share": 0.1, "patterns": ["ok", "("]}, "/patterns/1"),
        ({"share": 0.1, "patterns": ["a*"]}, "/patterns/0"),
    ],
)
def test_what_cannot_be_kept(project, settings, pointer) -> None:
    row = Endpoint.objects.create(project=project, name="e")
    with pytest.raises((DomainError, InvalidRecord)) as raised:
        keep_samples(endpoint=row, by=None, **settings)
    assert raised.value.pointer == pointer


def test_prometheus_reads_them(service, http, endpoint) -> None:
    http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [{"text": "ab"}, {"text": "ab"}]})
    http.post(f"/api/v1/rewards/{endpoint}/score", json={"inputs": [{"text": 7}]})
    text = httpx.get(f"{service.url}/metrics", trust_env=False).text
    for line in (
        f'touchstone_requests_total{{endpoint="{endpoint}",project="desk",status="200"}} 1.0',
        f'touchstone_requests_total{{endpoint="{endpoint}",project="desk",status="422"}} 1.0',
        f'touchstone_items_total{{endpoint="{endpoint}",project="desk"}} 2.0',
        "touchstone_queue_tokens 0.0",
        "process_resident_memory_bytes",
    ):
        assert line in text, text
