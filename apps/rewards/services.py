"""Changes of endpoints. Every change is audited and announced to the reward service when it commits."""

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
from apps.reward_programs.selectors import require_deployable
from apps.rewards.deploy_gate import require_reason
from apps.rewards.models import Endpoint, EndpointRevision, Release, RevisionJudge, RevisionModel
from apps.rewards.redaction import parse_redaction
from apps.rewards.releases import parse_rules
from apps.rewards.selectors import release_decision, spec_of
from apps.rewards.specs import checked_spec, error_pointer, spec_with_model
from apps.training.models import RewardModel
from apps.training.services import lock_usable
from workers.schema.components import JudgePart, ModelPart
from workers.schema.endpoints import EndpointSpec

ENDPOINTS_CHANNEL = "touchstone_endpoints"
RESERVED = ("compose", "deploy", "node", "servers")
MOST_SAMPLES, MOST_SAMPLE_DAYS = 100_000, 366
STANDBY = (
    "standby"  # a stage of ReleaseOptions that is no release: the revision is loaded and answers nothing
)
CANARY_SHARE = 0.1  # of what is asked, where a release advances automatically
Actor = User | ApiKey | None


class ReleaseEnded(Conflict):
    """The release is over."""


@dataclass(frozen=True, slots=True)
class ReleaseOptions:
    """How a revision is released. stage: `shadow`, `canary` or `standby`. share: of what is asked that it answers;
    above 0 for a canary."""

    stage: str = Release.Stage.SHADOW
    share: float = 0.0
    rules: Mapping[str, Any] = field(default_factory=dict)
    automatic: bool = False

    @property
    def may_answer(self) -> bool:
        """Whether callers may get its rewards without another decision of a person."""
        return self.automatic or self.stage in (Release.Stage.CANARY, STANDBY)


@transaction.atomic
def create_endpoint(*, project: Project, name: str, by: Actor) -> Endpoint:
    """An endpoint with nothing on it yet. Raises Conflict where the project has one of that name."""
    check_slug(name, what="endpoint", pointer="/endpoint")
    if name in RESERVED:
        raise DomainError(f"{name!r} is reserved for a page; choose another name.", pointer="/endpoint")
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
    transforms: Sequence[Mapping[str, Any]] | None = None,
    release_options: ReleaseOptions | None = None,
    reason: str = "",
) -> EndpointRevision:
    """Put a model on the endpoint, which is made if there is none, in place of the model of its active revision: its
    other components, its transforms and its policy template stay. transforms: instead of those. release_options: none
    deploys it immediately. reason: see `require_reason`."""
    if model.project_id != project.pk:
        raise NotFound(f"There is no model {model} in the project {project.slug}.")
    spec = spec_with_model(_locked_active_spec(project, endpoint_name), model, transforms)
    lock_usable(model)
    return put_spec(
        project=project,
        endpoint_name=endpoint_name,
        spec=spec.to_builtins(),
        by=by,
        release_options=release_options,
        reason=reason,
    )


@transaction.atomic
def put_spec(
    *,
    project: Project,
    endpoint_name: str,
    spec: Any,
    by: Actor,
    release_options: ReleaseOptions | None = None,
    reason: str = "",
) -> EndpointRevision:
    """A new revision from a spec as decoded JSON; the endpoint is made if there is none. release_options: see `deploy`.

    A spec without `policy_template`, which describes the policy and not the model, keeps that of the active revision;
    null removes it.

    Raises InvalidRecord or DomainError with the pointer of the bad field.
    """
    active = _locked_active_spec(project, endpoint_name)
    if isinstance(spec, Mapping) and active is not None and active.policy_template is not None:
        spec = {"policy_template": active.policy_template, **spec}
    checked = checked_spec(project=project, spec=spec)
    require_deployable(checked.spec, project=project)
    for index, component in enumerate(checked.spec.components):
        if isinstance(component, ModelPart):
            with error_pointer(f"/components/{index}/model"):
                lock_usable(checked.models[component.model])
        elif isinstance(component, JudgePart):
            with error_pointer(f"/components/{index}/judge"):
                lock_judge(checked.judges[component.judge])
    endpoint = _endpoint_for(project, endpoint_name, by)
    models, judges = list(checked.models.values()), list(checked.judges.values())
    return _add_revision(endpoint, checked.spec, models, by, release_options, judges, reason)


@transaction.atomic
def rollback(*, endpoint: Endpoint, by: Actor, to: int | None = None, reason: str = "") -> EndpointRevision:
    """Make an earlier revision the active one: number `to`, or the one before the active. reason: see `require_reason`,
    for a revision that was never promoted."""
    endpoint = _locked(endpoint)
    if endpoint.active is None:
        raise DomainError(
            f"Nothing is deployed on {endpoint.name}, so it cannot be rolled back; deploy a model first."
        )
    rows = (
        endpoint.revisions.filter(number=to)
        if to
        else endpoint.revisions.filter(number__lt=endpoint.active.number)
    )
    revision = rows.order_by("-number").first()
    if revision is None:
        which = f"revision {to}" if to else f"revision before {endpoint.active.number}"
        raise DomainError(f"{endpoint.name} has no {which}; choose another one.", status=409)
    before = endpoint.active.number
    released = revision.releases.all()
    if released.exists() and not released.filter(stage=Release.Stage.PROMOTED).exists():
        require_reason(revision, reason)
    _activate(endpoint, revision, by)
    _record(endpoint, by, "endpoint.rolled_back", {"from": before, "to": revision.number})
    return revision


@transaction.atomic
def start_release(
    *, revision: EndpointRevision, release_options: ReleaseOptions, by: Actor, reason: str = ""
) -> Release:
    """Raises DomainError where nothing is active, or for want of a reason (`require_reason`); Conflict where another
    release is open."""
    endpoint = _locked(revision.endpoint)
    rules = parse_rules(dict(release_options.rules))
    _check_stage(release_options.stage, release_options.share)
    if endpoint.active is None:
        raise DomainError(
            f"Nothing is deployed on {endpoint.name} to compare {revision} with; deploy it without a stage.",
            pointer="/stage",
        )
    if endpoint.active_id == revision.pk:
        raise DomainError(
            f"Revision {revision.number} is already active on {endpoint.name}; choose another.", status=409
        )
    other = endpoint.releases.filter(ended_at=None).select_related("revision").first()
    if other is not None:
        raise Conflict(
            f"A release of revision {other.revision.number} is open; promote it or roll it back first.",
            pointer="/stage",
        )
    if release_options.may_answer:
        require_reason(revision, reason)
    release = Release.objects.create(
        endpoint=endpoint,
        revision=revision,
        against=endpoint.active,
        stage=release_options.stage,
        share=release_options.share if release_options.stage == Release.Stage.CANARY else 0.0,
        rules=msgspec.to_builtins(rules),
        automatic=release_options.automatic,
        started_by=by if isinstance(by, User) else None,
    )
    _record(endpoint, by, "release.started", _release_data(release))
    return release


@transaction.atomic
def make_canary(
    *, release: Release, share: float, by: Actor, reason: str = "", deploy_reason: str = ""
) -> Release:
    """Let the release answer `share` of what is asked. A larger share keeps what a smaller one chose. deploy_reason:
    see `require_reason`."""
    release = _open(release)
    _check_stage(Release.Stage.CANARY, share)
    require_reason(release.revision, deploy_reason)
    if release.stage != Release.Stage.CANARY:
        release.stage, release.stage_started_at = Release.Stage.CANARY, timezone.now()
    release.share, release.reason = share, reason
    release.save(update_fields=["stage", "stage_started_at", "share", "reason"])
    _record(release.endpoint, by, "release.canary", _release_data(release))
    return release


@transaction.atomic
def promote_release(
    *, release: Release, by: Actor, reason: str = "", deploy_reason: str = ""
) -> EndpointRevision:
    """Its revision becomes the active one. Raises DomainError for want of a deploy_reason
    (`require_reason`)."""
    release = _open(release)
    endpoint = release.endpoint
    require_reason(release.revision, deploy_reason)
    _end(release, Release.Stage.PROMOTED, reason)
    _activate(endpoint, release.revision, by)
    _record(endpoint, by, "release.promoted", _release_data(release))
    return release.revision


@transaction.atomic
def roll_back_release(*, release: Release, by: Actor, reason: str) -> Release:
    """End the release; the active revision answers everything."""
    release = _open(release)
    _end(release, Release.Stage.ROLLED_BACK, reason)
    _record(release.endpoint, by, "release.rolled_back", _release_data(release))
    return release


@transaction.atomic
def set_standby(
    *, endpoint: Endpoint, revision: EndpointRevision | None, by: Actor, reason: str = ""
) -> Endpoint:
    """Keep `revision` loaded and warm next to the active one, so that it can take over at any time; None: none."""
    endpoint = _locked(endpoint)
    if revision is not None and endpoint.active is None:
        raise DomainError(
            f"Nothing is deployed on {endpoint.name}, so nothing can stand by; deploy a model first.",
            pointer="/stage",
        )
    if revision is not None and revision.pk == endpoint.active_id:
        raise Conflict(
            f"Revision {revision.number} is active on {endpoint.name}; choose another one.",
            pointer="/revision",
        )
    if revision is not None:
        require_reason(revision, reason)
    endpoint.standby = revision
    endpoint.save(update_fields=["standby"])
    standby = None if revision is None else {"revision": revision.number, "reason": revision.reason}
    _record(endpoint, by, "endpoint.standby", standby or {"revision": None})
    return endpoint


@transaction.atomic
def promote_standby(*, endpoint: Endpoint, by: Actor) -> EndpointRevision:
    """The standby revision becomes the active one, and the other way round: promoting again rolls back."""
    endpoint = _locked(endpoint)
    revision = endpoint.standby
    if revision is None:
        raise DomainError(f"The endpoint {endpoint.name} has no standby revision; choose one.", status=409)
    before = None if endpoint.active is None else endpoint.active.number
    _activate(endpoint, revision, by)
    _record(endpoint, by, "endpoint.standby_promoted", {"from": before, "to": revision.number})
    return revision


def advance_releases() -> None:
    """Take the next step of every automatic release whose rules allow or demand one."""
    rows = Release.objects.filter(ended_at=None, automatic=True, endpoint__project__archived_at=None)
    for release in rows.select_related("endpoint", "revision"):
        verdict = release_decision(release)
        with suppress(ReleaseEnded):  # another process was first
            if verdict.says == "fails":
                roll_back_release(release=release, by=None, reason=verdict.reason)
            elif verdict.says == "passes" and release.stage == Release.Stage.SHADOW:
                make_canary(release=release, share=CANARY_SHARE, by=None, reason=verdict.reason)
            elif verdict.says == "passes":
                promote_release(release=release, by=None, reason=verdict.reason)


@transaction.atomic
def switch_off(*, endpoint: Endpoint, reason: str, by: Actor) -> Endpoint:
    """Answer every request with 503 and the reason, immediately."""
    if not reason.strip():
        raise DomainError(
            "Enter the reason why the endpoint is switched off; it is shown to callers.", pointer="/reason"
        )
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
    """Store `share` of scored items, redacted, for `days`, at most `most` of them. A share of 0 deletes all samples."""
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
            raise DomainError(f"{name} must be from {low} to {high}, not {value:g}.", pointer=f"/{name}")


def _locked_active_spec(project: Project, name: str) -> EndpointSpec | None:
    """What a change starts from. Before any model is locked: one that changes the endpoint next to it waits."""
    rows = Endpoint.objects.select_for_update(of=("self",)).select_related("active")
    endpoint = rows.filter(project=project, name=name).first()
    return None if endpoint is None or endpoint.active is None else spec_of(endpoint.active)


def _endpoint_for(project: Project, name: str, by: Actor) -> Endpoint:
    endpoint = Endpoint.objects.filter(project=project, name=name).first()
    return endpoint or create_endpoint(project=project, name=name, by=by)


def _add_revision(
    endpoint: Endpoint,
    spec: EndpointSpec,
    models: Sequence[RewardModel],
    by: Actor,
    release_options: ReleaseOptions | None,
    judges: Sequence[Judge] = (),
    reason: str = "",
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
    if release_options is None:
        require_reason(revision, reason)
        _activate(endpoint, revision, by)
    data = {"revision": revision.number, "spec": revision.spec, "reason": revision.reason}
    _record(endpoint, by, "endpoint.deployed", data)
    if release_options is not None and release_options.stage == STANDBY:
        set_standby(endpoint=endpoint, revision=revision, by=by, reason=reason)
    elif release_options is not None:
        start_release(revision=revision, release_options=release_options, by=by, reason=reason)
    return revision


def _activate(endpoint: Endpoint, revision: EndpointRevision, by: Actor) -> None:
    """endpoint: locked. An open release, which compares with what was active, ends."""
    for release in endpoint.releases.filter(ended_at=None).select_related("endpoint", "revision"):
        _end(release, Release.Stage.ROLLED_BACK, f"Revision {revision.number} was made the active one.")
        _record(endpoint, by, "release.rolled_back", _release_data(release))
    if endpoint.standby_id == revision.pk:  # what answered until now stays warm, for a rollback
        endpoint.standby = endpoint.active
    endpoint.active = revision
    revision.endpoint = endpoint  # callers answer with the endpoint of the revision
    endpoint.save(update_fields=["active", "standby"])


def _open(release: Release) -> Release:
    """The release, its endpoint locked. Raises ReleaseEnded."""
    endpoint = _locked(release.endpoint)
    found = Release.objects.select_related("revision").get(pk=release.pk)
    if not found.is_open:
        raise ReleaseEnded(
            f"The release of revision {found.revision.number} has ended: {found.get_stage_display()}."
        )
    found.endpoint = endpoint
    return found


def _end(release: Release, stage: str, reason: str) -> None:
    release.stage, release.reason, release.ended_at = stage, reason, timezone.now()
    release.save(update_fields=["stage", "reason", "ended_at"])


def _check_stage(stage: str, share: float) -> None:
    if stage not in Release.OPEN:
        raise DomainError(
            f"The stage must be {Release.Stage.SHADOW.value!r} or {Release.Stage.CANARY.value!r}, not {stage!r}.",
            pointer="/stage",
        )
    if stage == Release.Stage.CANARY and not 0 < share <= 1:
        raise DomainError(
            f"The share of a canary must be above 0 and at most 1, not {share:g}.",
            pointer="/share",
        )


def _release_data(release: Release) -> dict[str, Any]:
    return {
        "revision": release.revision.number,
        "stage": release.stage,
        "share": release.share,
        "reason": release.reason,
        "deploy_reason": release.revision.reason,
    }


def _locked(endpoint: Endpoint) -> Endpoint:
    """Changes of one endpoint are one after the other."""
    rows = Endpoint.objects.select_for_update(of=("self",)).select_related("active", "standby", "project")
    return rows.get(pk=endpoint.pk)


def _record(endpoint: Endpoint, by: Actor, verb: str, data: dict[str, Any]) -> None:
    record_audit(project=endpoint.project, actor=by, verb=verb, target=endpoint.name, data=data)
    announce_change(endpoint.name)


def announce_change(name: str) -> None:
    """To the reward service, which reads endpoints and servers again. PostgreSQL delivers this when the transaction
    commits."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [ENDPOINTS_CHANNEL, name])
