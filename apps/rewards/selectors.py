"""Reads of endpoints that callers share."""

from collections.abc import Iterator

from django.db.models import QuerySet

from apps.accounts.models import Project
from apps.core.errors import DomainError, NotFound
from apps.rewards.models import (
    Endpoint,
    EndpointRevision,
    ModelServer,
    Release,
    ScoreSample,
    ServerReplica,
)
from apps.rewards.pair_statistics import PairStatistics, merge_pairs
from apps.rewards.releases import ReleaseDecision, decide_release, parse_rules
from workers.schema import Task, Text, Trajectory, parse_item
from workers.schema.endpoints import EndpointSpec, parse_spec
from workers.schema.messages import build_trajectory, from_prompt_response

ENDPOINT_HELP = "its name; PROJECT/NAME where several projects have an endpoint of that name"


def endpoints_of(project: Project) -> QuerySet[Endpoint]:
    return (
        Endpoint.objects.filter(project=project)
        .select_related("active", "standby", "project")
        .order_by("name")
    )


def endpoint_of(project: Project, name: str) -> Endpoint:
    """The project's endpoint of this name. Raises NotFound."""
    endpoint = endpoints_of(project).filter(name=name).first()
    if endpoint is None:
        raise NotFound(f"There is no endpoint {name!r} in the project {project.slug}.")
    return endpoint


def endpoint_named(text: str) -> Endpoint:
    """The endpoint `project/name`, or `name` where only one project has it. For commands, which see every project.

    Raises NotFound with how to create one, DomainError with the full names where several projects have one.
    """
    slug, _, name = text.rpartition("/")
    rows = Endpoint.objects.select_related("active", "project").filter(name=name).order_by("project__slug")
    found = list(rows.filter(project__slug=slug) if slug else rows)
    if not found:
        raise NotFound(f"There is no endpoint {text!r}; create one with `deploy MODEL {name}`.")
    if len(found) > 1:
        names = ", ".join(endpoint.full_name for endpoint in found)
        raise DomainError(f"{len(found)} projects have an endpoint {name!r}; use one of {names}.")
    return found[0]


def shortest_name(endpoint: Endpoint) -> str:
    """What commands print, and accept again: the name alone where no other project has it."""
    is_shared = Endpoint.objects.filter(name=endpoint.name).exclude(pk=endpoint.pk).exists()
    return endpoint.full_name if is_shared else endpoint.name


def revisions_of(endpoint: Endpoint) -> QuerySet[EndpointRevision]:
    rows = endpoint.revisions.select_related("created_by", "endpoint").prefetch_related(
        "reward_models__project"
    )
    return rows.order_by("-number")


def revision_of(endpoint: Endpoint, number: int) -> EndpointRevision:
    """Raises NotFound."""
    revision = revisions_of(endpoint).filter(number=number).first()
    if revision is None:
        raise NotFound(f"{endpoint.name} has no revision {number}.", pointer="/revision")
    return revision


def open_release(endpoint: Endpoint) -> Release | None:
    return (
        endpoint.releases.filter(ended_at=None)
        .select_related("endpoint__project", "revision", "against")
        .first()
    )


def pair_statistics(release: Release, stage: str | None = None) -> PairStatistics:
    """Scores of both revisions in a stage, by default its current one."""
    return merge_pairs(release.rollups.filter(stage=stage or release.stage))


def release_decision(release: Release) -> ReleaseDecision:
    return decide_release(pair_statistics(release), parse_rules(release.rules))


def trajectory_of(sample: ScoreSample) -> Trajectory | None:
    """The scored item as a trajectory; None for token ids and numbers, which have no steps to show."""
    content = parse_item(sample.item).content
    if isinstance(content, Text):
        return build_trajectory(from_prompt_response([], content.text), Task(id=""))
    return content if isinstance(content, Trajectory) else None


def sampled_trajectories(endpoint: Endpoint, count: int) -> Iterator[tuple[str, Trajectory]]:
    """The newest samples that are trajectories, each with its own name."""
    for sample in endpoint.samples.order_by("-at")[:count]:
        trajectory = trajectory_of(sample)
        if trajectory is not None:
            yield f"sample-{sample.pk}", trajectory


def spec_of(revision: EndpointRevision) -> EndpointSpec:
    return parse_spec(revision.spec)


def model_server(project: Project, name: str) -> ModelServer:
    found = project.model_servers.filter(name=name).first()
    if found is None:
        raise NotFound(f"The project {project.slug} has no server {name!r}; add a replica to make one.")
    return found


def server_replica(project: Project, pk: int, *, server: str | None = None) -> ServerReplica:
    """server: of this one only."""
    rows = ServerReplica.objects.filter(server__project=project).select_related("server__project")
    found = (
        (rows if server is None else rows.filter(server=model_server(project, server))).filter(pk=pk).first()
    )
    if found is None:
        raise NotFound(f"The project {project.slug} has no replica {pk}.")
    return found
