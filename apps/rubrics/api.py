"""Rubrics over the JSON API: the YAML document of a rubric's page as JSON."""

from datetime import datetime
from typing import Literal

from ninja import Field, Router, Schema, Status

from apps.accounts.access import project_of_key
from apps.accounts.auth import KeyRequest
from apps.accounts.models import Scope
from apps.core.http.api import DEFAULT_LIMIT, paginate
from apps.core.http.api_schemas import Cursor, Limit, Name, StrictBody
from apps.core.http.api_scopes import needs
from apps.rubrics.factors import factor_ranking, rank_factors
from apps.rubrics.models import MOST_CATEGORIES, Rubric
from apps.rubrics.selectors import newest_rubrics, rubric_named
from apps.rubrics.services import MOST_CRITERIA, CriterionDraft, draft_of, is_used, save_rubric

router = Router()
READ = (Scope.INGEST, Scope.FEEDBACK_READ, Scope.ADMIN)


class CategoryBody(StrictBody):
    name: Name
    definition: str = ""


class CriterionIn(StrictBody):
    name: Name
    definition: str = ""
    answers: Literal["scale", "category", "categories", "step_tags"] = Field(
        "scale", description="a score, one category, several categories, or tags on agent steps"
    )
    categories: list[CategoryBody] = Field(
        default_factory=list,
        max_length=MOST_CATEGORIES,
        description="of the other types of answers than a scale",
    )
    scale: tuple[float, float] = Field((1, 5), description="lowest and highest score, in steps of one")
    points: dict[str, str] = Field(
        default_factory=dict, description='names of scores, such as {"1": "Never asks"}'
    )
    good: str = Field("", description="an example of a good trajectory")
    bad: str = ""
    weight: float = 1
    rank: int = Field(1, ge=1, le=32767, description="1 is the most important")


class CriterionOut(Schema):
    name: str
    definition: str
    answers: str
    categories: list[CategoryBody]
    scale: tuple[float, float] | None = Field(description="null where the answers are categories")
    points: dict[str, str] = Field(description="names of scores, by score")
    good: str
    bad: str
    weight: float
    rank: int


class RubricIn(StrictBody):
    name: Name
    about: str = ""
    criteria: list[CriterionIn] = Field(min_length=1, max_length=MOST_CRITERIA)


class RubricOut(Schema):
    rubric: str = Field(description="NAME@VERSION")
    name: str
    version: int
    about: str
    used: bool = Field(
        description="whether a campaign, a judge or feedback uses it: such a version never changes"
    )
    criteria: list[CriterionOut]
    factors: list[str] = Field(
        description="the ranking of factors that comparisons are made of, the most important first; with a minus in "
        "front, less is better"
    )
    created: datetime


class FactorsIn(StrictBody):
    factors: list[str] = Field(
        description="the most important first: criteria with a scale, `outcome`, `steps` (fewer are better), "
        "or `metadata.KEY`; with a minus in front, less is better"
    )


class RubricPage(Schema):
    items: list[RubricOut]
    next: str | None


@router.get(
    "/projects/{slug}/rubrics", response=RubricPage, summary="List rubrics", openapi_extra=needs(*READ)
)
def list_rubrics(
    request: KeyRequest, slug: str, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> RubricPage:
    """The newest version of each, newest first."""
    project = project_of_key(request.auth, slug, *READ)
    page, following = paginate(newest_rubrics(project), cursor=cursor, limit=limit)
    return RubricPage(items=[rubric_out(rubric) for rubric in page], next=following)


@router.post(
    "/projects/{slug}/rubrics",
    response={201: RubricOut},
    summary="Save a rubric",
    openapi_extra=needs(Scope.ADMIN),
)
def create_rubric(request: KeyRequest, slug: str, body: RubricIn) -> Status[RubricOut]:
    """A new rubric, or the next version of the one of this name: a version in use stays as it is."""
    project = project_of_key(request.auth, slug, Scope.ADMIN)
    rubric = save_rubric(
        project=project,
        name=body.name,
        about=body.about.strip(),
        criteria=[_draft(criterion) for criterion in body.criteria],
        by=request.auth,
    )
    return Status(201, rubric_out(rubric))


@router.put(
    "/projects/{slug}/rubrics/{path:name}/factors",
    response=RubricOut,
    summary="Rank the factors of a rubric",
    openapi_extra=needs(Scope.ADMIN),
)
def rank_rubric_factors(request: KeyRequest, slug: str, name: str, body: FactorsIn) -> RubricOut:
    """Of one version (`name@version`), or the newest one (`name`). The generator `factors` of a dataset version makes
    comparisons of this ranking. Annotators do not see it, so that it changes without a new version."""
    rubric = rubric_named(project_of_key(request.auth, slug, Scope.ADMIN), name)
    return rubric_out(rank_factors(rubric=rubric, factors=[factor.strip() for factor in body.factors]))


@router.get(
    "/projects/{slug}/rubrics/{path:name}",
    response=RubricOut,
    summary="A rubric",
    openapi_extra=needs(*READ),
)
def get_rubric(request: KeyRequest, slug: str, name: str) -> RubricOut:
    """One version (`name@version`), or the newest one (`name`)."""
    return rubric_out(rubric_named(project_of_key(request.auth, slug, *READ), name))


def _draft(criterion: CriterionIn) -> CriterionDraft:
    return CriterionDraft(
        name=criterion.name.strip(),
        definition=criterion.definition.strip(),
        answer_type=criterion.answers,
        categories=[
            {"name": each.name.strip(), "definition": each.definition.strip()}
            for each in criterion.categories
        ],
        scale_low=criterion.scale[0],
        scale_high=criterion.scale[1],
        point_names={point.strip(): name.strip() for point, name in criterion.points.items()},
        good_example=criterion.good.strip(),
        bad_example=criterion.bad.strip(),
        weight=criterion.weight,
        rank=criterion.rank,
    )


def rubric_out(rubric: Rubric) -> RubricOut:
    drafts = [draft_of(entry) for entry in rubric.entries.select_related("criterion")]
    return RubricOut(
        rubric=str(rubric),
        name=rubric.name,
        version=rubric.version,
        about=rubric.about,
        used=is_used(rubric),
        criteria=[
            CriterionOut(
                name=draft.name,
                definition=draft.definition,
                answers=draft.answer_type,
                categories=[CategoryBody(**each) for each in draft.categories],
                scale=(draft.scale_low, draft.scale_high) if draft.answer_type == "scale" else None,
                points=draft.point_names,
                good=draft.good_example,
                bad=draft.bad_example,
                weight=draft.weight,
                rank=draft.rank,
            )
            for draft in drafts
        ],
        factors=factor_ranking(rubric),
        created=rubric.created_at,
    )
