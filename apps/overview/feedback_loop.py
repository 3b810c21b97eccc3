"""The feedback loop of a project as a diagram: its stages, each a fragment of the app it belongs to."""

from collections.abc import Sequence
from typing import NamedTuple

from django.urls import reverse

from apps.accounts.models import Project


class LoopStage(NamedTuple):
    """One stage of the feedback loop. Its content is a fragment of the app it belongs to, loaded by URL name."""

    app: str
    icon: str
    title: str
    list_url_name: str
    about: str
    next_action: str  # what leads from this stage to the next


FEEDBACK_LOOP = [
    LoopStage(
        "trajectories",
        "trajectories",
        "Trajectories",
        "trajectories:trajectory-list",
        "Imported agent runs",
        "annotate",
    ),
    LoopStage("annotation", "campaigns", "Campaigns", "annotation:campaign-list", "Human feedback", "freeze"),
    LoopStage(
        "datasets",
        "datasets",
        "Datasets",
        "datasets:dataset-version-list",
        "Frozen feedback, split by task",
        "train",
    ),
    LoopStage(
        "training", "models", "Training", "training:run-list", "Training runs and reward models", "deploy"
    ),
    LoopStage(
        "rewards", "endpoints", "Endpoints", "rewards:endpoint-list", "Rewards for trainers", "monitor"
    ),
    LoopStage(
        "monitoring",
        "warning",
        "Alerts",
        "monitoring:alert-list",
        "Drift and reward hacking checks",
        "review",
    ),
]


def loop_stages(project: Project, only: Sequence[str] = ()) -> list[dict[str, str]]:
    """For the template; `only` the stages of these apps."""
    return [
        {
            **stage._asdict(),
            "url": reverse(stage.list_url_name, args=[project.slug]),
            "fragment_url": reverse(f"{stage.app}:project-node", args=[project.slug]),
        }
        for stage in FEEDBACK_LOOP
        if not only or stage.app in only
    ]
