"""OpenAI's moderations form of a guard, by OpenAI's client."""

from typing import Any

import openai
import pytest

from apps.rewards.models import GuardDecision
from apps.rewards.services import put_spec
from tests.rewards.conftest import serves, wait_until

CHECKS: list[dict[str, Any]] = [
    {"name": "short", "tools": ["*"], "most_calls": 5},
]
SPEC: dict[str, Any] = {
    "components": [
        {"name": "policy", "type": "policy_checks", "checks": CHECKS},
        {"name": "curses", "type": "pattern", "expression": "damn", "weight": -3.0},
    ],
    "guard": {"ask_below": -2.0},
}


@pytest.fixture
def moderated(service: Any, endpoint: str, project: Any) -> str:
    version = put_spec(project=project, endpoint_name=endpoint, spec=SPEC, by=None).number
    wait_until(lambda: serves(service, endpoint, version))
    return endpoint


def test_with_the_openai_client(service: Any, moderated: str, key: str) -> None:
    with openai.OpenAI(base_url=f"{service.url}/compat/openai/v1", api_key=key, max_retries=0) as client:
        found = client.moderations.create(model=moderated, input=["All is well.", "damn it"])
        assert [result.flagged for result in found.results] == [False, True]
        assert (found.model, found.id[:5]) == (moderated, "modr-")
        categories = found.results[1].categories.model_dump(exclude_unset=True)
        assert categories == {"short": False, "reward": True}
        assert found.results[1].category_scores.model_dump(exclude_unset=True) == {
            "short": 0.0,
            "reward": 1.0,
        }
        (single,) = client.moderations.create(model=moderated, input="All is well.").results
        assert not single.flagged
        parts: Any = [{"type": "text", "text": "damn"}]
        assert client.moderations.create(model=moderated, input=parts).results[0].flagged
        picture: Any = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
        with pytest.raises(openai.UnprocessableEntityError) as refused:
            client.moderations.create(model=moderated, input=picture)
        assert refused.value.response.json()["pointer"] == "/input/0"
    wait_until(lambda: GuardDecision.objects.count() == 4)
    assert GuardDecision.objects.filter(decision="ask").count() == 2


def test_an_endpoint_without_a_guard(service: Any, endpoint: str, key: str) -> None:
    base = f"{service.url}/compat/openai/v1"
    with (
        openai.OpenAI(base_url=base, api_key=key, max_retries=0) as client,
        pytest.raises(openai.UnprocessableEntityError) as refused,
    ):
        client.moderations.create(model=endpoint, input="Hello")
    assert "no policy checks" in refused.value.response.json()["detail"]
