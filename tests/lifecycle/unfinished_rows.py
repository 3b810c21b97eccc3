"""A project with rows of what is not finished: waiting items, questions, tags, subgoals, programs."""

from django.utils import timezone

from apps.accounts.models import Project, User
from apps.agent_drift.references import choose_reference
from apps.annotation.models import Item, ItemTrajectory
from apps.hindsight.models import HindsightTask
from apps.key_nodes.services import set_key_nodes
from apps.questions.models import TrajectoryQuestion
from apps.reward_programs.services import create_reward_program
from apps.rewards.models import GuardDecision
from apps.rewards.services import put_spec
from apps.subgoals.models import TaskSubgoals
from apps.trajectories.models import SavedView, Trajectory, TrajectoryComment


def add_waiting(project: Project) -> Item:
    """An item that no one annotated, a comment on a page, views, a question, tags, subgoals and a reward program."""
    trajectory = Trajectory.objects.filter(project=project).latest("pk")
    campaign = project.campaigns.get(name="Scores")
    item = Item.objects.create(campaign=campaign, task=trajectory.task, key="k", overlap=2, priority=3.0)
    ItemTrajectory.objects.create(item=item, trajectory=trajectory, position=0)
    TrajectoryComment.objects.create(
        project=project,
        trajectory=trajectory,
        author=User.objects.get(email="owner@example.org"),
        text="Stops too early.",
        step=0,
    )
    SavedView.objects.create(project=project, name="Failed", query="success=no")
    SavedView.objects.create(project=project, name="Mine", query="id=1-3")
    TrajectoryQuestion.objects.create(project=project, text="Why?")
    Trajectory.objects.filter(pk=trajectory.pk).update(tags=["slow", "to do"])
    goals = [{"goal": "found the order", "expression": "order", "weight": 1.0}]
    TaskSubgoals.objects.create(project=project, task=trajectory.task, subgoals=goals, state="accepted")
    nodes = [{"name": "found the order", "text": "order", "within": "both"}]
    set_key_nodes(task=trajectory.task, nodes=nodes, in_order=True, by=None)
    agent = {"agent": trajectory.agent_name, "version": trajectory.agent_version}
    choose_reference(project=project, **agent, by=None)
    HindsightTask.objects.create(
        project=project,
        trajectory=trajectory,
        text="Look up an order of ann's.",
        accepted_text="Look up an order.",
        evidence=[1],
    )
    checks = [{"name": "confirm", "tools": ["cancel"], "confirmation": {}}]
    spec = {"components": [{"name": "policy", "type": "policy_checks", "checks": checks}]}
    guard = put_spec(project=project, endpoint_name="guarded", spec=spec, by=None)
    GuardDecision.objects.create(
        endpoint=guard.endpoint, version=1, caller="tsk_1", decision="deny", rule="confirm", reward=0.5,
        milliseconds=3.0, action="refund", is_sampled=True, is_right=False, answered_at=timezone.now(),
    )  # fmt: skip
    author = User.objects.get(email="owner@example.org")
    for note in ("1", "2"):
        code = f"def reward(trajectory):\n    return {note}.0\n"
        create_reward_program(project=project, name="constant", code=code, note=note, by=author)
    project.reward_programs.filter(version=1).update(deleted_at=timezone.now())
    project.reward_programs.filter(version=2).update(dry_run_passed_at=timezone.now())
    return item
