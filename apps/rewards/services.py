"""What changes an endpoint. Every change is audited and announced to the reward service when it commits."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import Max

from apps.accounts.models import ApiKey, Project, User
from apps.accounts.services import record_audit
from apps.core.errors import Conflict, DomainError, NotFound
from apps.core.names import check_slug
from apps.core.outgoing import check_url
from apps.rewards.models import Endpoint, EndpointRevision, RevisionModel
from apps.rewards.serving.vllm_server import unknown
from apps.training.models import RewardModel
from apps.training.selectors import model_named
from apps.training.services import lock_usable
from workers.schema.endpoints import (
    CriterionPart,
    Delta,
    EndpointSpec,
    Pessimism,
    RewardModelPart,
    Verifier,
    parse_spec,
    parse_transforms,
)

ENDPOINTS_CHANNEL = "touchstone_endpoints"
RESERVED = ("compose", "deploy", "node")
ONE_SET = "endpoints of all projects share one set of names."
Actor = User | ApiKey | None


@transaction.atomic
def create_endpoint(*, project: Project, name: str, by: Actor) -> Endpoint:
    """An endpoint with nothing on it yet. Names are unique in the installation: trainers put them into URLs."""
    check_slug(name, what="endpoint", pointer="/endpoint")
    if name in RESERVED:
        raise DomainError(f"{name!r} is the address of a page; choose another name.", pointer="/endpoint")
    try:
        with transaction.atomic():
            endpoint = Endpoint.objects.create(project=project, name=name)
    except IntegrityError:
        raise Conflict(f"The name {name!r} is taken; {ONE_SET}", pointer="/endpoint") from None
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
) -> EndpointRevision:
    """Put one model on the endpoint, which is made if there is none. The newest revision is the active one."""
    if model.project_id != project.pk:
        raise NotFound(f"There is no model {model} in the project {project.slug}.")
    lock_usable(model)
    spec = EndpointSpec(
        components=(RewardModelPart(name=model.name, model=str(model)),),
        transforms=parse_transforms(list(transforms), pointer="/transforms"),
    )
    check_models(spec, {str(model): model})
    endpoint = _endpoint_for(project, endpoint_name, by)
    return _add_revision(endpoint, spec, [model], by)


@transaction.atomic
def put_spec(*, project: Project, endpoint_name: str, spec: Any, by: Actor) -> EndpointRevision:
    """A new revision from a spec as decoded JSON; the endpoint is made if there is none.

    Raises InvalidRecord or DomainError with the pointer of the bad field.
    """
    parsed, models = checked_spec(project=project, spec=spec)
    for index, component in enumerate(parsed.components):
        if isinstance(component, RewardModelPart | CriterionPart):
            try:
                lock_usable(models[component.model])
            except DomainError as error:
                error.pointer = f"/components/{index}/model"
                raise
    endpoint = _endpoint_for(project, endpoint_name, by)
    return _add_revision(endpoint, parsed, list(models.values()), by)


def checked_spec(*, project: Project, spec: Any) -> tuple[EndpointSpec, dict[str, RewardModel]]:

    parsed = parse_spec(spec)
    models, names = {}, {}
    for index, component in enumerate(parsed.components):
        if isinstance(component, RewardModelPart | CriterionPart):
            try:
                model = model_named(component.model, project=project)
            except DomainError as error:
                error.pointer = f"/components/{index}/model"
                raise
            names[component.model] = str(model)
            models[str(model)] = model
            _require_server(component, f"/components/{index}/server")
        elif isinstance(component, Verifier):
            try:
                check_url(component.url)
            except DomainError as error:
                error.pointer = f"/components/{index}/url"
                raise
    full = parsed.with_models(names)
    check_models(full, models)
    return full, models


def _require_server(component: RewardModelPart | CriterionPart, pointer: str) -> None:
    server = component.server if isinstance(component, RewardModelPart) else None
    if server is not None and server not in settings.VLLM_SERVERS:
        raise DomainError(unknown(server), pointer=pointer)


def check_models(spec: EndpointSpec, models: Mapping[str, RewardModel]) -> None:
    """What the models' manifests tell of whether they can do what the spec asks. Raises DomainError."""
    summed = [models[one.model] for one in spec.components if isinstance(one, RewardModelPart) and one.weight]
    _refuse_mixed_aggregations(summed)
    for index, one in enumerate(spec.components):
        if isinstance(one, CriterionPart) and not models[one.model].manifest.get("criteria"):
            raise DomainError(
                f"{one.model} scores no criteria; train one on rubric scores.",
                pointer=f"/components/{index}/model",
            )
    for index, transform in enumerate(spec.transforms):
        at = f"/transforms/{index}"
        single = [name for name, model in models.items() if _heads(model) == 1]
        if isinstance(transform, Pessimism) and single:
            raise DomainError(
                f"pessimism needs an ensemble, and {single[0]} has a single head; train it with `ensemble` above 1.",
                pointer=at,
            )
        values = [str(model) for model in summed if model.manifest.get("aggregation") == "value"]
        if isinstance(transform, Delta) and values:
            raise DomainError(
                f"delta makes differences of step scores, and those of {values[0]} (aggregation value) are differences "
                "already; leave the transform out.",
                pointer=at,
            )


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
    before, endpoint.active = endpoint.active, revision
    endpoint.save(update_fields=["active"])
    _record(endpoint, by, "endpoint.rolled_back", {"from": before.number, "to": revision.number})
    return revision


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
def keep_samples(*, endpoint: Endpoint, keep: bool, by: Actor) -> Endpoint:
    """Whether now and then a request is kept with its answer. No longer: what was kept goes at once."""
    endpoint = _locked(endpoint)
    endpoint.keeps_samples = keep
    endpoint.save(update_fields=["keeps_samples"])
    if not keep:
        endpoint.samples.all().delete()
    _record(endpoint, by, "endpoint.samples_kept" if keep else "endpoint.samples_dropped", {})
    return endpoint


def _endpoint_for(project: Project, name: str, by: Actor) -> Endpoint:
    endpoint = Endpoint.objects.filter(name=name).first()
    if endpoint is None:
        return create_endpoint(project=project, name=name, by=by)
    if endpoint.project_id != project.pk:
        raise Conflict(f"The name {name!r} is taken; {ONE_SET}", pointer="/endpoint")
    return endpoint


def _add_revision(
    endpoint: Endpoint, spec: EndpointSpec, models: Sequence[RewardModel], by: Actor
) -> EndpointRevision:
    endpoint = _locked(endpoint)
    last = endpoint.revisions.aggregate(last=Max("number"))["last"] or 0
    person = by if isinstance(by, User) else None
    revision = EndpointRevision.objects.create(
        endpoint=endpoint, number=last + 1, spec=spec.to_builtins(), created_by=person
    )
    distinct = {model.pk: model for model in models}.values()
    RevisionModel.objects.bulk_create(RevisionModel(revision=revision, model=model) for model in distinct)
    endpoint.active = revision
    endpoint.save(update_fields=["active"])
    _record(endpoint, by, "endpoint.deployed", {"revision": revision.number, "spec": revision.spec})
    return revision


def _locked(endpoint: Endpoint) -> Endpoint:
    """Changes of one endpoint are one after the other."""
    rows = Endpoint.objects.select_for_update(of=("self",)).select_related("active", "project")
    return rows.get(pk=endpoint.pk)


def _heads(model: RewardModel) -> int | None:
    """Of the ensemble; None where the manifest does not say."""
    heads = model.manifest.get("heads") or {}
    return heads.get("ensemble")


def _refuse_mixed_aggregations(models: Sequence[RewardModel]) -> None:
    found = sorted({str(model.manifest.get("aggregation")) for model in models})
    if len(found) > 1:
        raise DomainError(
            f"The models aggregate their steps differently ({', '.join(found)}), so their step rewards cannot be "
            "added; combine models of one aggregation.",
            pointer="/components",
        )


def _record(endpoint: Endpoint, by: Actor, verb: str, data: dict[str, Any]) -> None:
    record_audit(project=endpoint.project, actor=by, verb=verb, target=endpoint.name, data=data)
    # PostgreSQL delivers this when the transaction commits.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [ENDPOINTS_CHANNEL, endpoint.name])
