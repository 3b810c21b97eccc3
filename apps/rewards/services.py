"""What changes an endpoint. Every change is audited and announced to the reward service when it commits."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from django.db import IntegrityError, connection, transaction
from django.db.models import Max
from django.utils import timezone

from apps.accounts.models import ApiKey, Project, User
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError, NotFound
from apps.core.version_names import check_slug
from apps.judges.models import Judge
from apps.judges.services import lock_judge
from apps.rewards.models import Endpoint, EndpointRevision, RevisionJudge, RevisionModel, Trial
from apps.rewards.redaction import parse_redaction
from apps.rewards.selectors import verdict_of
from apps.rewards.specs import check_models, checked_spec, placed
from apps.rewards.trials import parse_rules
from apps.training.models import RewardModel
from apps.training.services import lock_usable
from workers.schema.endpoints import (
    CriterionPart,
    EndpointSpec,
    JudgePart,
    RewardModelPart,
    parse_transforms,
)

ENDPOINTS_CHANNEL = "touchstone_endpoints"
RESERVED = ("compose", "deploy", "node")
MOST_SAMPLES, MOST_SAMPLE_DAYS = 100_000, 366
CANARY_SHARE = 0.1  # of what is asked, where a trial goes on by itself
Actor = User | ApiKey | None


class Ended(Conflict):
    """A trial that is over."""


@dataclass(frozen=True, slots=True)
class Beside:
    """How a revision is tried beside the active one. share: of what is asked that it answers, above 0 for a canary."""

    stage: str = Trial.Stage.SHADOW
    share: float = 0.0
    rules: Mapping[str, Any] = field(default_factory=dict)
    automatic: bool = False


@transaction.atomic
def create_endpoint(*, project: Project, name: str, by: Actor) -> Endpoint:
    """An endpoint with nothing on it yet. Raises Conflict where the project has one of that name."""
    check_slug(name, what="endpoint", pointer="/endpoint")
    if name in RESERVED:
        raise DomainError(f"{name!r} is the address of a page; choose another name.", pointer="/endpoint")
    try:
        with transaction.atomic():
            endpoint = Endpoint.objects.create(project=project, name=name)
    except IntegrityError:
        raise Conflict(
            f"The project {project.slug} already has an endpoint {name!r}; choose another name.",
            pointer="/endpoint",
        ) from None
    record_audit(project=project, actor=by, verb="endpoint.created", target=name)
    return endpoint


@transaction.atomic
def deploy(
    *,
    model: RewardModel,
    endpoint_name: str,
    project: Project,
    by: Actor,
    transforms: Sequence[Mapping[str, Any]] = (),
    beside: Beside | None = None,
) -> EndpointRevision:
    """Put one model on the endpoint, which is made if there is none. beside: on trial, rather than at once."""
    if model.project_id != project.pk:
        raise NotFound(f"There is no model {model} in the project {project.slug}.")
    lock_usable(model)
    spec = EndpointSpec(
        components=(RewardModelPart(name=model.name, model=str(model)),),
        transforms=parse_transforms(list(transforms), pointer="/transforms"),
    )
    check_models(spec, {str(model): model})
    endpoint = _endpoint_for(project, endpoint_name, by)
    return _add_revision(endpoint, spec, [model], by, beside)


@transaction.atomic
def put_spec(
    *, project: Project, endpoint_name: str, spec: Any, by: Actor, beside: Beside | None = None
) -> EndpointRevision:
    """A new revision from a spec as decoded JSON; the endpoint is made if there is none. beside: see `deploy`.

    Raises InvalidRecord or DomainError with the pointer of the bad field.
    """
    checked = checked_spec(project=project, spec=spec)
    for index, component in enumerate(checked.spec.components):
        if isinstance(component, RewardModelPart | CriterionPart):
            with placed(f"/components/{index}/model"):
                lock_usable(checked.models[component.model])
        elif isinstance(component, JudgePart):
            with placed(f"/components/{index}/judge"):
                lock_judge(checked.judges[component.judge])
    endpoint = _endpoint_for(project, endpoint_name, by)
    models, judges = list(checked.models.values()), list(checked.judges.values())
    return _add_revision(endpoint, checked.spec, models, by, beside, judges)


@transaction.atomic
def rollback(*, endpoint: Endpoint, by: Actor, to: int | None = None) -> EndpointRevision:
    """Make an earlier revision the active one: number `to`, or the one before the active."""
    endpoint = _locked(endpoint)
    if endpoint.active is None:
        raise DomainError(f"Nothing is deployed on {endpoint.name}, so there is nothing to go back from.")
    rows = (
        endpoint.revisions.filter(number=to)
        if to
        else endpoint.revisions.filter(number__lt=endpoint.active.number)
    )
    revision = rows.order_by("-number").first()
    if revision is None:
        which = f"revision {to}" if to else f"revision before {endpoint.active.number}"
        raise DomainError(f"{endpoint.name} has no {which}.", status=409)
    before = endpoint.active.number
    _activate(endpoint, revision, by)
    _record(endpoint, by, "endpoint.rolled_back", {"from": before, "to": revision.number})
    return revision


@transaction.atomic
def start_trial(*, revision: EndpointRevision, beside: Beside, by: Actor) -> Trial:
    """Try a revision beside the active one. Raises DomainError where there is none, or another is on trial."""
    endpoint = _locked(revision.endpoint)
    rules = parse_rules(dict(beside.rules))
    _check_stage(beside.stage, beside.share)
    if endpoint.active is None:
        raise DomainError(
            f"Nothing is deployed on {endpoint.name} that {revision} could be tried beside; deploy it at once.",
            pointer="/stage",
        )
    if endpoint.active_id == revision.pk:
        raise DomainError(f"Revision {revision.number} is what {endpoint.name} answers with.", status=409)
    tried = endpoint.trials.filter(ended_at=None).select_related("revision").first()
    if tried is not None:
        raise Conflict(
            f"Revision {tried.revision.number} is on trial already; promote or withdraw it first.",
            pointer="/stage",
        )
    trial = Trial.objects.create(
        endpoint=endpoint,
        revision=revision,
        against=endpoint.active,
        stage=beside.stage,
        share=beside.share if beside.stage == Trial.Stage.CANARY else 0.0,
        rules=msgspec.to_builtins(rules),
        automatic=beside.automatic,
        started_by=by if isinstance(by, User) else None,
    )
    _record(endpoint, by, "trial.started", _trial_data(trial))
    return trial


@transaction.atomic
def make_canary(*, trial: Trial, share: float, by: Actor, reason: str = "") -> Trial:
    """Have what is on trial answer `share` of what is asked. A larger share keeps what a smaller one chose."""
    trial = _open(trial)
    _check_stage(Trial.Stage.CANARY, share)
    if trial.stage != Trial.Stage.CANARY:
        trial.stage, trial.entered_at = Trial.Stage.CANARY, timezone.now()
    trial.share, trial.reason = share, reason
    trial.save(update_fields=["stage", "entered_at", "share", "reason"])
    _record(trial.endpoint, by, "trial.canary", _trial_data(trial))
    return trial


@transaction.atomic
def promote(*, trial: Trial, by: Actor, reason: str = "") -> EndpointRevision:
    """What is on trial becomes what answers."""
    trial = _open(trial)
    endpoint = trial.endpoint
    _end(trial, Trial.Stage.PROMOTED, reason)
    _activate(endpoint, trial.revision, by)
    _record(endpoint, by, "trial.promoted", _trial_data(trial))
    return trial.revision


@transaction.atomic
def withdraw(*, trial: Trial, by: Actor, reason: str) -> Trial:
    """End a trial; the active revision answers everything."""
    trial = _open(trial)
    _end(trial, Trial.Stage.WITHDRAWN, reason)
    _record(trial.endpoint, by, "trial.withdrawn", _trial_data(trial))
    return trial


def follow_trials() -> None:
    """Take the next step of every trial that may take it by itself, as its rules say."""
    for trial in Trial.objects.filter(ended_at=None, automatic=True).select_related("endpoint", "revision"):
        verdict = verdict_of(trial)
        with suppress(Ended):  # somebody was quicker
            if verdict.says == "fails":
                withdraw(trial=trial, by=None, reason=verdict.reason)
            elif verdict.says == "passes" and trial.stage == Trial.Stage.SHADOW:
                make_canary(trial=trial, share=CANARY_SHARE, by=None, reason=verdict.reason)
            elif verdict.says == "passes":
                promote(trial=trial, by=None, reason=verdict.reason)


@transaction.atomic
def switch_off(*, endpoint: Endpoint, reason: str, by: Actor) -> Endpoint:
    """Answer every request with 503 and the reason, at once."""
    if not reason.strip():
        raise DomainError("Say why the endpoint is switched off; callers are told.", pointer="/reason")
    endpoint = _locked(endpoint)
    endpoint.switched_off, endpoint.switched_off_reason = True, reason.strip()
    endpoint.save(update_fields=["switched_off", "switched_off_reason"])
    _record(endpoint, by, "endpoint.switched_off", {"reason": endpoint.switched_off_reason})
    return endpoint


@transaction.atomic
def switch_on(*, endpoint: Endpoint, by: Actor) -> Endpoint:
    endpoint = _locked(endpoint)
    endpoint.switched_off, endpoint.switched_off_reason = False, ""
    endpoint.save(update_fields=["switched_off", "switched_off_reason"])
    _record(endpoint, by, "endpoint.switched_on", {})
    return endpoint


@transaction.atomic
def keep_samples(
    *,
    endpoint: Endpoint,
    share: float,
    by: Actor,
    days: int = 30,
    most: int = 2000,
    redacts: Sequence[str] = (),
    patterns: Sequence[str] = (),
) -> Endpoint:
    """Keep `share` of what is scored, redacted, for so many days, at most so many items. None: what is there goes."""
    _check_samples(share, days, most)
    redaction = parse_redaction(redacts, patterns)
    endpoint = _locked(endpoint)
    endpoint.sample_share, endpoint.sample_days, endpoint.sample_most = share, days, most
    endpoint.sample_redacts, endpoint.sample_patterns = list(redaction.kinds), list(redaction.patterns)
    endpoint.save(
        update_fields=["sample_share", "sample_days", "sample_most", "sample_redacts", "sample_patterns"]
    )
    if not share:
        endpoint.samples.all().delete()
    kept = {"share": share, "days": days, "most": most, "redacts": endpoint.sample_redacts}
    _record(endpoint, by, "endpoint.samples_kept" if share else "endpoint.samples_dropped", kept)
    return endpoint


def _check_samples(share: float, days: int, most: int) -> None:
    for name, value, low, high in (
        ("share", share, 0, 1),
        ("days", days, 1, MOST_SAMPLE_DAYS),
        ("most", most, 1, MOST_SAMPLES),
    ):
        if not low <= value <= high:
            raise DomainError(f"{name} is from {low} to {high}, not {value:g}.", pointer=f"/{name}")


def _endpoint_for(project: Project, name: str, by: Actor) -> Endpoint:
    endpoint = Endpoint.objects.filter(project=project, name=name).first()
    return endpoint or create_endpoint(project=project, name=name, by=by)


def _add_revision(
    endpoint: Endpoint,
    spec: EndpointSpec,
    models: Sequence[RewardModel],
    by: Actor,
    beside: Beside | None,
    judges: Sequence[Judge] = (),
) -> EndpointRevision:
    endpoint = _locked(endpoint)
    last = endpoint.revisions.aggregate(last=Max("number"))["last"] or 0
    person = by if isinstance(by, User) else None
    revision = EndpointRevision.objects.create(
        endpoint=endpoint, number=last + 1, spec=spec.to_builtins(), created_by=person
    )
    distinct = {model.pk: model for model in models}.values()
    RevisionModel.objects.bulk_create(RevisionModel(revision=revision, model=model) for model in distinct)
    RevisionJudge.objects.bulk_create(RevisionJudge(revision=revision, judge=judge) for judge in judges)
    if beside is None:
        _activate(endpoint, revision, by)
    _record(endpoint, by, "endpoint.deployed", {"revision": revision.number, "spec": revision.spec})
    if beside is not None:
        start_trial(revision=revision, beside=beside, by=by)
    return revision


def _activate(endpoint: Endpoint, revision: EndpointRevision, by: Actor) -> None:
    """endpoint: locked. A trial against what was active ends."""
    for trial in endpoint.trials.filter(ended_at=None).select_related("endpoint", "revision"):
        _end(trial, Trial.Stage.WITHDRAWN, f"Revision {revision.number} was made the active one.")
        _record(endpoint, by, "trial.withdrawn", _trial_data(trial))
    endpoint.active = revision
    endpoint.save(update_fields=["active"])


def _open(trial: Trial) -> Trial:
    """The trial, its endpoint locked. Raises Ended."""
    endpoint = _locked(trial.endpoint)
    found = Trial.objects.select_related("revision").get(pk=trial.pk)
    if not found.is_open:
        raise Ended(f"The trial of revision {found.revision.number} has ended: {found.get_stage_display()}.")
    found.endpoint = endpoint
    return found


def _end(trial: Trial, stage: str, reason: str) -> None:
    trial.stage, trial.reason, trial.ended_at = stage, reason, timezone.now()
    trial.save(update_fields=["stage", "reason", "ended_at"])


def _check_stage(stage: str, share: float) -> None:
    if stage not in Trial.OPEN:
        raise DomainError(
            f"A trial begins in the {Trial.Stage.SHADOW.value} or as a {Trial.Stage.CANARY.value}, not {stage!r}.",
            pointer="/stage",
        )
    if stage == Trial.Stage.CANARY and not 0 < share <= 1:
        raise DomainError(
            f"A canary answers a share of what is asked, above 0 and up to 1, not {share:g}.",
            pointer="/share",
        )


def _trial_data(trial: Trial) -> dict[str, Any]:
    return {
        "revision": trial.revision.number,
        "stage": trial.stage,
        "share": trial.share,
        "reason": trial.reason,
    }


def _locked(endpoint: Endpoint) -> Endpoint:
    """Changes of one endpoint are one after the other."""
    rows = Endpoint.objects.select_for_update(of=("self",)).select_related("active", "project")
    return rows.get(pk=endpoint.pk)


def _record(endpoint: Endpoint, by: Actor, verb: str, data: dict[str, Any]) -> None:
    record_audit(project=endpoint.project, actor=by, verb=verb, target=endpoint.name, data=data)
    # PostgreSQL delivers this when the transaction commits.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [ENDPOINTS_CHANNEL, endpoint.name])
