"""Sampled requests over the JSON API."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.models import Project, Scope
from apps.rewards.models import Endpoint, ScoreSample
from tests.api_calls import ApiCaller


@pytest.fixture
def endpoint(db: None) -> Endpoint:
    return Endpoint.objects.create(project=Project.objects.create(slug="lab", name="Lab"), name="reward")


def kept(endpoint: Endpoint, hours_ago: int, flags: list[str], **fields: Any) -> ScoreSample:
    result = {
        "reward": 0.25, "raw": 0.5, "baseline": 0.0, "std": None, "steps": None, "criteria": None,
        "components": {"main": 0.25}, "flags": flags, "tokens": 7, "cached_tokens": 0,
    }  # fmt: skip
    return ScoreSample.objects.create(
        endpoint=endpoint,
        version=fields.pop("version", 1),
        caller="tsk_1",
        item={"text": f"secret {hours_ago}"},
        result=result,
        reward=0.25,
        tokens=7,
        at=timezone.now() - timedelta(hours=hours_ago),
        **fields,
    )


def test_samples_are_listed_newest_first_and_filtered(endpoint: Endpoint) -> None:
    old = kept(endpoint, 5, ["truncated"], version=2, run="grpo-1")
    new = kept(endpoint, 1, ["uncertain", "truncated"], policy_version="40")
    plain = kept(endpoint, 3, [])
    call = ApiCaller(endpoint.project, Scope.REWARD)
    path = "/endpoints/reward/samples"

    def ids(**query: Any) -> list[int]:
        return [row["id"] for row in call("GET", path, **query)["items"]]

    rows = call.all_pages(path, 2)
    assert [row["id"] for row in rows] == [new.pk, plain.pk, old.pk]
    assert rows[0]["flags"] == ["uncertain", "truncated"] and rows[0]["policy_version"] == "40"
    assert "secret" not in str(rows), "what was sent is another call's"
    assert ids(flag="truncated") == [new.pk, old.pk] and ids(flag="trunc") == []
    assert ids(version=2) == ids(run="grpo-1") == [old.pk]
    assert ids(since=(timezone.now() - timedelta(hours=4)).isoformat()) == [new.pk, plain.pk]
    call("GET", path, since="yesterday")
    assert call.status == 422


def test_what_was_sent_is_for_admin_keys(endpoint: Endpoint) -> None:
    sample = kept(endpoint, 1, [])
    path = f"/endpoints/reward/samples/{sample.pk}"
    call = ApiCaller(endpoint.project, Scope.ADMIN)
    found = call("GET", path)
    assert found["item"] == {"text": "secret 1"} and found["result"] == sample.result
    trainer = ApiCaller(endpoint.project, Scope.REWARD)
    trainer("GET", path)
    assert trainer.status == 403
    call("GET", f"/endpoints/reward/samples/{sample.pk + 1}")
    assert call.status == 404
