"""Models next to judges over the JSON API: accuracy, agreement and cost on the same held-out comparisons."""

from dataclasses import asdict
from typing import Annotated, Any

from ninja import Field, Query, Router, Schema

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api_scopes import needs
from apps.training.judged_comparisons import JudgeNextToModels, next_to_judges
from apps.training.selectors import model_named

router = Router()
MOST_MODELS = 8


class ComparisonCostOut(Schema):
    calls: float = Field(description="of the language model; 0 for a model")
    tokens: float
    seconds: float | None = Field(description="null where they are not known")


class ComparedScorerOut(Schema):
    name: str = Field(description="the judge, or a model")
    accuracy: float = Field(description="share of the annotators' comparisons with the same preference")
    interval: tuple[float, float] | None = Field(description="95 %, by task; null for too few")
    agreement: float | None = Field(
        description="with the judge, on the comparisons that it decided; null of the judge"
    )
    cost: ComparisonCostOut | None = Field(description="of 1,000 comparisons; null where it is not known")


class NextToJudgeOut(Schema):
    judge: str
    answers: int = Field(description="of annotators, on comparisons that the judge and every model decided")
    tasks: int
    decided: int = Field(description="comparisons that the judge decided")
    scorers: list[ComparedScorerOut] = Field(
        description="the judge first, then the models as they were named"
    )


class NextToJudgesOut(Schema):
    judges: list[NextToJudgeOut] = Field(
        description="the newest first; empty where no judge compared held-out trajectories of all these models"
    )


@router.get(
    "/projects/{slug}/models/{name}/next-to-judges",
    response=NextToJudgesOut,
    operation_id="next_to_judges",
    summary="A model next to the judges that compared the same trajectories",
    openapi_extra=needs(Scope.TRAIN),
)
def list_next_to_judges(
    request: KeyRequest,
    slug: str,
    name: str,
    also: Annotated[
        list[str], Query(max_length=MOST_MODELS - 1, description="further models; once for each of them")
    ] = [],  # noqa: B006
) -> dict[str, Any]:
    """What is lost, and saved, where a model replaces a judge: the table *Next to the judge* of the pages of models and
    training runs. name, also: one version (`name@version`), or the newest (`name`). Several models are compared on the
    comparisons that all of them decided."""
    project = project_of_key(request.auth, slug, Scope.TRAIN)
    models = [model_named(each, project=project) for each in dict.fromkeys([name, *also])]
    return {"judges": [_judge_out(entry) for entry in next_to_judges(project, models)]}


def _judge_out(entry: JudgeNextToModels) -> dict[str, Any]:
    return {
        "judge": entry.judge.name,
        "answers": entry.n,
        "tasks": entry.tasks,
        "decided": entry.n_decided,
        "scorers": [asdict(row) for row in entry.rows],
    }
