"""A judge of two criteria behind an endpoint: its language model counts what failed."""

import json
from typing import Any

import httpx

from apps.accounts.models import Project
from apps.judges.models import Judge
from apps.judges.services import JudgeSpec, create_judge
from apps.llm.models import LLMConnection
from apps.llm.services import LLMConnectionSpec, create_llm_connection
from apps.rewards.services import put_spec
from apps.rubrics.models import Rubric
from apps.rubrics.services import CriterionDraft, save_rubric
from benchmarks.rule_judge import judged
from tests.judges.parcels import run
from tests.rewards.conftest import Service, serves, wait_until
from tests.workers.llm.scripted import Body

PART = {"name": "parcels", "type": "judge", "judge": "inspector"}


def item(failed: int, words: str = "Done.") -> dict[str, Any]:
    return run("task", failed, words=words)


def mean(failed: int) -> float:
    """Care, from 1 to 5, weighs three times what Speed does, from 0 to 2."""
    return (3 * (4 - failed) / 4 + max(2 - failed, 0) / 2) / 4


def unclear(*keys: str) -> Any:
    """Answers as the rules do, and cannot tell by these criteria."""

    def answer(body: Body) -> str:
        said = json.loads(judged(body))
        for key in keys:
            said[key] |= {"score": None, "reason": "Nobody says."}
        return json.dumps(said)

    return answer


def rubric_of(project: Project) -> Rubric:
    drafts = [
        CriterionDraft(name="Care", definition="How many parcels arrive.", weight=3),
        CriterionDraft(name="Speed", scale_low=0, scale_high=2),
    ]
    return save_rubric(project=project, name="Parcels", criteria=drafts)


def model_at(project: Project, url: str, **more: Any) -> LLMConnection:
    spec = LLMConnectionSpec(name="rules", base_url=url, model="rules", **more)
    return create_llm_connection(project=project, spec=spec, key="sk-first", by=None)


def judge_of(project: Project, llm_connection: LLMConnection, name: str = "inspector", **more: Any) -> Judge:
    given = {"mode": "score", "rubric": rubric_of(project)} | more
    spec = JudgeSpec(name=name, llm_connection=llm_connection, **given)
    return create_judge(project=project, spec=spec, by=None)


def serve(service: Service, project: Project, *components: dict, name: str = "judged", **spec: Any) -> str:
    """A new revision of these components, loaded."""
    whole = {"components": list(components), **spec}
    revision = put_spec(project=project, endpoint_name=name, spec=whole, by=None)
    wait_until(lambda: serves(service, name, revision.number))
    return name


def ask(http: httpx.Client, endpoint: str, call: str, *inputs: dict, **more: Any) -> httpx.Response:
    return http.post(f"/api/v1/rewards/{endpoint}/{call}", json={"inputs": list(inputs), **more})
