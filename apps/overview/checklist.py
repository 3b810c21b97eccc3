"""The way from own data to a scored request, as steps of which the database knows whether they are done."""

from collections.abc import Callable
from dataclasses import dataclass

from django.db import transaction
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.annotation.models import Annotation, Campaign
from apps.core.jobs.job_queue import JobState
from apps.datasets.models import DatasetVersion
from apps.overview.models import ChecklistDismissal
from apps.rewards.models import Endpoint, ScoreRollup
from apps.training.models import RewardModel
from apps.trajectories.models import Trajectory

FIRST_ANNOTATIONS = 3


@dataclass(frozen=True, slots=True)
class ChecklistStep:
    """is_next: the first that is not done."""

    title: str
    about: str
    action: str
    url: str
    is_done: bool
    is_next: bool = False


def checklist_steps(project: Project) -> list[ChecklistStep]:
    """All steps in order, each with the page where it is done."""
    steps, has_next = [], False
    for title, about, action, is_done, find_url in _STEPS:
        done = is_done(project)
        is_next = not done and not has_next
        has_next = has_next or is_next
        steps.append(ChecklistStep(title, about, action, find_url(project), done, is_next))
    return steps


def is_dismissed(project: Project, user: User) -> bool:
    return ChecklistDismissal.objects.filter(project=project, user=user).exists()


@transaction.atomic
def dismiss_checklist(*, project: Project, user: User) -> None:
    ChecklistDismissal.objects.get_or_create(project=project, user=user)


@transaction.atomic
def restore_checklist(*, project: Project, user: User) -> None:
    ChecklistDismissal.objects.filter(project=project, user=user).delete()


def _page(name: str) -> Callable[[Project], str]:
    return lambda project: reverse(name, args=[project.slug])


def _has_annotations(project: Project) -> bool:
    rows = Annotation.objects.filter(assignment__item__campaign__project=project)
    return rows[:FIRST_ANNOTATIONS].count() >= FIRST_ANNOTATIONS


def _work_url(project: Project) -> str:
    """The work page of the newest open campaign."""
    campaign = project.campaigns.filter(state=Campaign.State.OPEN).order_by("-created_at").first()
    if campaign is None:
        return reverse("annotation:campaign-list", args=[project.slug])
    return reverse("annotation:campaign-work", args=[project.slug, campaign.pk])


def _deploy_url(project: Project) -> str:
    model = RewardModel.objects.filter(project=project, deleted_at=None).order_by("-created_at").first()
    url = reverse("rewards:endpoint-deploy", args=[project.slug])
    return url if model is None else f"{url}?model={model}&endpoint={model.name}"


def _try_url(project: Project) -> str:
    endpoint = Endpoint.objects.filter(project=project).exclude(active=None).order_by("-created_at").first()
    if endpoint is None:
        return reverse("rewards:endpoint-list", args=[project.slug])
    return reverse("rewards:endpoint-detail", args=[project.slug, endpoint.name])


_STEPS: tuple[tuple[str, str, str, Callable[[Project], bool], Callable[[Project], str]], ...] = (
    (
        "Import trajectories",
        "A file of what your agents did; its format is detected.",
        "Import",
        lambda project: Trajectory.objects.filter(project=project).exists(),
        _page("trajectories:trajectory-upload"),
    ),
    (
        "Create a campaign",
        "What annotators are asked, and about which trajectories.",
        "Create campaign",
        lambda project: project.campaigns.exists(),
        _page("annotation:campaign-create"),
    ),
    (
        "Make three annotations",
        "Compare, rate or mark steps; each answer takes one or two keys.",
        "Annotate",
        _has_annotations,
        _work_url,
    ),
    (
        "Freeze a dataset version",
        "The feedback so far, split by task, so that a training run can be repeated.",
        "Freeze feedback",
        lambda project: DatasetVersion.objects.filter(project=project, state=JobState.SUCCEEDED).exists(),
        _page("datasets:dataset-version-create"),
    ),
    (
        "Train a reward model",
        "The defaults are good; a small dataset takes seconds on a CPU.",
        "Train a model",
        lambda project: RewardModel.objects.filter(project=project, deleted_at=None).exists(),
        _page("training:run-create"),
    ),
    (
        "Deploy it",
        "An endpoint gets an address from which trainers request rewards.",
        "Deploy",
        lambda project: Endpoint.objects.filter(project=project).exclude(active=None).exists(),
        _deploy_url,
    ),
    (
        "Request a reward",
        "On the endpoint's page, or from a trainer with an API key.",
        "Try the endpoint",
        lambda project: ScoreRollup.objects.filter(endpoint__project=project, items__gt=0).exists(),
        _try_url,
    ),
)
