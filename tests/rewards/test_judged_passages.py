"""A judge of passages behind an endpoint: a verdict for each, paid for once, and garbage that is no verdict."""

import json
from typing import Any

import httpx
import pytest

from apps.accounts.models import Project
from apps.judges.services import JudgeSpec, create_judge
from apps.llm.models import Spending
from apps.rubrics.services import CriterionDraft, save_rubric
from tests.rewards.conftest import Service
from tests.rewards.judged import ask, model_at, serve
from tests.workers.engine.test_judged_passages import searched
from tests.workers.llm.scripted import Body, Script, scripted

pytestmark = pytest.mark.ml
PART = {"name": "support", "type": "judge", "judge": "reader", "passages": "retrieved"}


def verdict(body: Body) -> str:
    data = body["messages"][1]["content"]
    if "garbage" in data:
        return "I would rather not say."
    supports = "Paris is the capital" in data
    return json.dumps({"c0": {"reason": "It names it.", "step": 1, "score": int(supports)}})


def test_each_passage_has_a_verdict(
    service: Service, project: Project, http: httpx.Client, settings: Any
) -> None:
    settings.OUTGOING_ALLOW = ["127.0.0.0/8"]
    script = Script(verdict)
    with scripted(script) as url:
        draft = CriterionDraft(
            name="Support", definition="The passage supports the answer.", scale_low=0, scale_high=1
        )
        create_judge(
            project=project,
            spec=JudgeSpec(
                name="reader",
                llm_connection=model_at(project, url),
                mode="score",
                rubric=save_rubric(project=project, name="Support", criteria=[draft]),
            ),
            by=None,
        )
        endpoint = serve(service, project, PART)
        item = searched(["Paris is the capital of France.", "Rome is old."], ["Paris is the capital, too."])
        reply = ask(http, endpoint, "score", item)
        assert reply.status_code == 200, reply.content
        (result,) = reply.json()["results"]
        assert result["reward"] == pytest.approx(2 / 3)
        assert [step["reward"] for step in result["steps"]] == pytest.approx([1 / 3, 1 / 3, 0])
        assert len(script.asked) == 3
        assert all("Looking." not in body["messages"][1]["content"] for body in script.asked)
        ask(http, endpoint, "score", item)
        assert len(script.asked) == 3, "verdicts are cached"
        longer = searched(["Paris is the capital of France.", "Rome is old."], ["A third."])
        assert ask(http, endpoint, "score", longer).status_code == 200
        assert len(script.asked) == 4, "only the new passage is read"
        spent = Spending.objects.get()
        assert (spent.calls, spent.prompt_tokens) == (4, 40)
        assert ask(http, endpoint, "score", searched(["garbage"])).status_code == 502
