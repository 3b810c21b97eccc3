"""Reward studies are started and deleted."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec
from django.db import transaction

from apps.accounts.actors import Actor, person_of
from apps.accounts.models import Project
from apps.accounts.services import record_audit
from apps.annotation.selectors import get_campaign_by_name
from apps.core.errors import Conflict, DomainError
from apps.core.jobs import job_queue
from apps.datasets.selectors import find_dataset_version
from apps.reward_studies.models import RewardStudy
from apps.rewards.models import Endpoint
from apps.rewards.specs import checked_spec
from apps.trajectories.filters import parse_filter

ADVANCE = "apps.reward_studies.tasks.advance_reward_studies"
PROBE_NAMES = ("repeat", "pad", "flatter", "empty", "copy")  # of workers.engine.hacking_probes
DEFAULT_SAMPLE, MAX_SAMPLE = 200, 2000
FeedbackChoice = Literal["auto", "comparisons", "outcomes", "ratings", "policy"]
PenaltyChoice = Literal["l1", "l2"]
FEEDBACK_CHOICES: tuple[str, ...] = get_args(FeedbackChoice)


class StudyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """sample: trajectories that are scored; where there are more, they are drawn at random. The others are of weights.

    feedback: what weights are fitted to; `auto` takes what there is most of. allow_negative: whether a component may be
    turned round. probes, of analyses: whether changed trajectories are scored too, five times as many.
    """

    sample: int = DEFAULT_SAMPLE
    feedback: FeedbackChoice = "auto"
    penalty: PenaltyChoice = "l1"
    allow_negative: bool = False
    probes: bool = True


@transaction.atomic
def start_reward_study(
    *,
    project: Project,
    kind: str,
    spec: Any = None,
    endpoint: Endpoint | None = None,
    filter: str = "",
    dataset: str = "",
    campaign: str = "",
    options: StudyOptions | None = None,
    by: Actor = None,
) -> RewardStudy:
    """Queue a study of a spec, by default of the endpoint's active revision, on what one of filter, dataset and
    campaign names. Raises DomainError and InvalidRecord."""
    options = options or StudyOptions()
    if not 1 <= options.sample <= MAX_SAMPLE:
        raise DomainError(f"The sample is {options.sample}; choose 1 to {MAX_SAMPLE:,}.", pointer="/sample")
    if spec is None:
        if endpoint is None or endpoint.active is None:
            raise DomainError("Name an endpoint that has a revision, or give a spec.", pointer="/spec")
        spec = endpoint.active.spec
    checked = checked_spec(project=project, spec=spec)
    if kind == RewardStudy.Kind.WEIGHTS and sum(part.weight != 0 for part in checked.spec.components) < 2:
        raise DomainError(
            "The spec has fewer than two components with a weight, so there is nothing to weigh; add a component.",
            pointer="/spec/components",
        )
    study = RewardStudy.objects.create(
        project=project,
        kind=kind,
        endpoint=endpoint,
        spec=checked.spec.to_builtins(),
        source=_source(project, filter, dataset, campaign),
        options=msgspec.to_builtins(options),
        created_by=person_of(by),
    )
    study.refresh_from_db(fields=["number"])
    record_audit(
        project=project,
        actor=by,
        verb="reward_study.started",
        target=study.title,
        data={"kind": kind, "source": study.source, "endpoint": endpoint.name if endpoint else None},
    )
    job_queue.nudge_on_commit(ADVANCE)
    return study


def _source(project: Project, filter: str, dataset: str, campaign: str) -> Mapping[str, str]:
    """Raises DomainError where more than one is named, or what is named is not there."""
    if sum(map(bool, (filter, dataset, campaign))) > 1:
        raise DomainError("Choose one of filter, dataset and campaign.", pointer="/dataset")
    if dataset:
        return {"dataset": find_dataset_version(dataset, project=project).short_name}
    if campaign:
        return {"campaign": get_campaign_by_name(project, campaign, pointer="/campaign").name}
    return {"filter": parse_filter(filter).query}


def study_options(study: RewardStudy) -> StudyOptions:
    return msgspec.convert(study.options, StudyOptions)


@transaction.atomic
def delete_reward_study(*, study: RewardStudy, by: Actor) -> None:
    """Raises Conflict while it is being done."""
    locked = RewardStudy.objects.select_for_update().get(pk=study.pk)
    if not locked.is_finished:
        raise Conflict("The study has not ended yet. Cancel it first.")
    record_audit(project=locked.project, actor=by, verb="reward_study.deleted", target=locked.title, data={})
    locked.delete()


def spec_with_weights(study: RewardStudy) -> dict[str, Any]:
    """The study's spec with the fitted weights. A component whose weight became 0 is left out, unless another part
    names it, such as a gate. Raises DomainError where none was fitted."""
    fitted = {part["name"]: part["weight"] for part in study.result.get("components", [])}
    if study.kind != RewardStudy.Kind.WEIGHTS or not any(fitted.values()):
        raise DomainError("This study has no fitted weights.", status=409)
    parts = study.spec["components"]
    read = {
        value
        for part in [*parts, *study.spec["transforms"]]
        for key, value in part.items()
        if key not in ("name", "type") and isinstance(value, str)
    }
    components = [part | {"weight": round(fitted.get(part["name"], part["weight"]), 6)} for part in parts]
    kept = [
        part for part in components if part["weight"] or part["name"] in read or part["name"] not in fitted
    ]
    return study.spec | {"components": kept}
