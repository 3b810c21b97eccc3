"""The usage page: empty, with traffic, by whom, and samples shown as trajectories."""

import uuid
from datetime import UTC, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Membership, Project, Role, Scope
from apps.accounts.services import create_api_key
from apps.rewards.accounting import SampledItem, write_usage
from apps.rewards.models import Endpoint, ScoreFlagCount
from apps.rewards.serving.usage_writer import MOST_FLAGS, UsageWriter
from apps.rewards.traffic import traffic_of
from apps.rewards.usage import UsageEvent, UsageGroup, group_flags
from workers.schema import parse_item

ATIF = {
    "schema_version": "ATIF-v1.4",
    "session_id": "s",
    "agent": {"name": "a", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Where is <b>it</b>?"},
        {"step_id": 2, "source": "agent", "message": "It comes today."},
    ],
}
RESULT = {
    "reward": 0.5,
    "raw": 1.5,
    "baseline": 0.25,
    "std": 0.1,
    "steps": [{"agent_step": 0, "reward": 1.25}],
    "components": {"main": 0.5},
    "flags": ["uncertain"],
    "tokens": 12,
}


@pytest.fixture
def row(project: Project) -> Endpoint:
    return Endpoint.objects.create(project=project, name="reward")


def url(name: str, *more: Any) -> str:
    return reverse(f"rewards:{name}", args=["desk", "reward", *more])


def asked(row: Endpoint, *samples: Any, count: int = 1, **group: Any) -> None:
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    key = UsageGroup(**({"endpoint": row.pk, "hour": hour, "version": 1, "caller": "tsk_1"} | group))
    events = [UsageEvent(key, 200, 7.0, rewards=(0.5, 1.0), tokens=20, cached_tokens=5, uncertain=1)] * count
    events += [UsageEvent(key, 429, 1.0), UsageEvent(key, 503, 1.0), UsageEvent(key, 422, 1.0)]
    kept = [SampledItem(key, parse_item(item), RESULT) for item in samples]
    write_usage(batch=uuid.uuid4(), events=events, samples=kept)


def text_of(answer: Any) -> str:
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


def test_nothing_was_asked(researcher_client, row) -> None:
    assert "No requests in this period" in text_of(researcher_client.get(url("endpoint-usage")))


def test_hours_without_requests_are_on_the_axis(researcher_client, row) -> None:
    now = timezone.now().replace(minute=0, second=0, microsecond=0)
    Endpoint.objects.filter(pk=row.pk).update(created_at=now - timedelta(hours=6))
    asked(row, count=2, hour=now - timedelta(hours=4))
    asked(row, count=1, hour=now - timedelta(hours=1))
    row.refresh_from_db()
    chart = traffic_of(row, span="day", by="version").drawings["requests"]
    hours = [f"{now - timedelta(hours=back):%d %b %H:%M}" for back in range(24, -1, -1)]
    assert chart["x"]["labels"][:25] == hours  # also those before there was an endpoint
    assert [series["points"][18:25] for series in chart["series"]] == [
        [0, 0, 2, 0, 0, 1, 0],
        [0, 0, 3, 0, 0, 3, 0],
    ]
    # Of a longer time than the endpoint is there: from its first day, not a month of nothing; a bar is a day.
    month = traffic_of(row, span="month", by="version").drawings["requests"]
    assert month["x"]["labels"][-1] == f"{now:%d %b}" and len(month["x"]["labels"]) in (1, 2)
    assert month["y"]["name"] == "requests per day"
    assert [sum(series["points"]) for series in month["series"]] == [3, 6]
    week = traffic_of(row, span="week", by="version").drawings["requests"]
    assert len(week["x"]["labels"]) in (1, 2, 3) and sum(week["series"][0]["points"]) == 3


def test_what_was_asked(researcher_client, row) -> None:
    asked(row, count=3, run="grpo-1", policy_version="step-1")
    asked(row, run="grpo-1", policy_version="step-2")
    page = text_of(researcher_client.get(url("endpoint-usage")))
    assert "4 answered, with 8 items" in page
    assert "2 overloaded (429), 2 refused (other 4xx), 2 disabled, not loaded or failed (5xx)" in page
    assert "25.0 % from the cache" in page
    assert "0.750" in page and "± 0.250, n 8" in page
    assert "50.0 % of items" in page
    assert page.index("step-1") < page.index("step-2")  # most requests first
    by_run = text_of(researcher_client.get(url("endpoint-usage"), {"by": "run", "span": "week"}))
    assert "grpo-1" in by_run and "step-1" not in by_run
    odd = researcher_client.get(url("endpoint-usage"), {"by": "password", "span": "century"})
    assert odd.status_code == 200


def test_one_request_has_no_spread(researcher_client, row) -> None:
    key = UsageGroup(endpoint=row.pk, hour=timezone.now(), version=1, caller="tsk_1")
    write_usage(batch=uuid.uuid4(), events=[UsageEvent(key, 200, 35.0, rewards=(0.5,))], samples=[])
    page = text_of(researcher_client.get(url("endpoint-usage")))
    assert "too few requests for a median" in page and "one item" in page
    assert "p95 " not in page and "±" not in page
    assert traffic_of(row, span="day", by="version").drawings["rewards"]["kind"] == "bar"
    events = [UsageEvent(key, 200, 35.0, rewards=(0.5,))]
    write_usage(batch=uuid.uuid4(), events=events * 18, samples=[])
    page = text_of(researcher_client.get(url("endpoint-usage")))
    assert "median" in page and "too few requests for a 95th percentile" in page
    write_usage(batch=uuid.uuid4(), events=events, samples=[])
    assert "p95 " in text_of(researcher_client.get(url("endpoint-usage")))


def test_samples_are_shown_as_trajectories(researcher_client, row) -> None:
    asked(row, {"trajectory": ATIF}, {"text": "Just text."}, {"input_ids": [1, 2]}, run="grpo-1")
    trajectory, text, ids = row.samples.order_by("pk")
    assert reverse("rewards:sample-detail", args=["desk", "reward", trajectory.pk]) in text_of(
        researcher_client.get(url("endpoint-usage"))
    )
    page = text_of(researcher_client.get(url("sample-detail", trajectory.pk)))
    assert "Where is &lt;b&gt;it&lt;/b&gt;?" in page and "It comes today." in page
    assert "Reward 0.5000" in page and "+1.2500" in page and "uncertain" in page
    assert "Just text." in text_of(researcher_client.get(url("sample-detail", text.pk)))
    assert "no text to show" in text_of(researcher_client.get(url("sample-detail", ids.pk)))
    assert researcher_client.get(url("sample-detail", 10**6)).status_code == 404


def test_samples_are_kept_and_deleted(researcher_client, row) -> None:
    settings = {"share": "2.5", "days": "7", "most": "100", "redacts": ["email"], "patterns": "a+b\n\n"}
    assert researcher_client.post(url("endpoint-samples"), settings).status_code == 302
    row.refresh_from_db()
    assert (row.sample_share, row.sample_days, row.sample_most) == (0.025, 7, 100)
    assert (row.sample_redacts, row.sample_patterns) == (["email"], ["a+b"])
    assert "2.5 % of scored items are stored" in text_of(researcher_client.get(url("endpoint-usage")))
    asked(row, {"text": "a"})
    refused = text_of(researcher_client.post(url("endpoint-samples"), settings | {"patterns": "("}))
    assert "is not a regular expression of RE2" in refused
    researcher_client.post(url("endpoint-samples"), settings | {"share": "0"})
    row.refresh_from_db()
    assert row.sample_share == 0 and not row.samples.exists()
    assert researcher_client.get(url("endpoint-samples")).status_code == 405


def test_an_annotator_sees_none_of_it(project, row, researcher_client) -> None:
    Membership.objects.update(role=Role.ANNOTATOR)
    assert researcher_client.get(url("endpoint-usage")).status_code == 403


def test_flags_are_counted_by_day_and_version(
    row: Endpoint, researcher_client: Any, project: Project
) -> None:
    """On the page and in the API; a repeated request counts once, and a refused one has none."""
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    receipt = uuid.uuid4()
    for version, flags in ((1, (("unread:image", 2), ("template_in_text", 1))), (2, (("unread:image", 1),))):
        group = UsageGroup(row.pk, hour, version, "tsk_1")
        scored = UsageEvent(group, 200, 7.0, rewards=(0.5, 1.0), receipt=receipt, flags=flags)
        for _ in range(2):
            write_usage(batch=uuid.uuid4(), events=[scored, UsageEvent(group, 422, 1.0)])
        receipt = uuid.uuid4()
    assert {(count.version, count.flag): count.items for count in ScoreFlagCount.objects.all()} == {
        (1, "unread:image"): 2, (1, "template_in_text"): 1, (2, "unread:image"): 1,
    }  # fmt: skip
    page = text_of(researcher_client.get(url("endpoint-usage")))
    assert "Pictures were not read: no model or judge of the endpoint sees" in page
    assert '<td class="number">1</td><td class="number">2</td><td class="number">100.0 %</td>' in page
    assert '<td class="number">2</td><td class="number">1</td><td class="number">50.0 %</td>' in page
    _, key = create_api_key(project=project, scopes=[Scope.ADMIN])
    admin = Client(headers={"Authorization": f"Bearer {key}"})
    reply = admin.get("/api/v1/projects/desk/endpoints/reward/usage?span=week").json()
    assert reply["flags"][0] == {"flag": "unread:image", "version": 1, "items": 2, "share": 1.0}
    day = hour.astimezone(UTC).date().isoformat()
    assert {"day": day, "version": 2, "flag": "unread:image", "items": 1} in reply["flags_by_day"]
    assert reply["total"]["requests"] == 2 and reply["by"]["1"]["items"] == 2
    assert admin.get("/api/v1/projects/desk/endpoints/reward/usage?by=moon").status_code == 422


def test_flags_that_callers_name_make_a_bounded_number_of_rows() -> None:
    writer = UsageWriter()
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    for number in range(300):
        flags = ((f"unread:{number}", 1), ("uncertain", 1), ("x" * 90, 1))
        writer.record(UsageEvent(UsageGroup(1, hour, 1, "k"), 200, 1.0, rewards=(0.5,), flags=flags))
    found = group_flags(writer._events)
    assert len(found) <= MOST_FLAGS + 1
    assert found.total() == 900
    assert {group.flag for group in found} >= {"uncertain", "unread:0", "(others)"}
