"""Comparisons by who wrote a trajectory: the policy discrimination of POLAR (Dou et al. 2025, arXiv 2507.05197).

Next to a reference trajectory, one that the same agent wrote is better than one of another agent on the same task. No
one has to label anything; a model that learnt to tell agents from each other is then fine-tuned on preferences.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from workers.errors import RewardError
from workers.schema import FeedbackRecord, Step, Trajectory
from workers.schema.conditions import MOST_CHARACTERS, with_conditions
from workers.schema.recipe import Recipe
from workers.schema.records import record_trajectories

Agent = tuple[str, str]  # name and version: another version is another policy


def same_agent_pairs(
    records: Sequence[FeedbackRecord], recipe: Recipe, *, seed: int
) -> list[tuple[Trajectory, Trajectory]]:
    """(by the reference's agent, by another agent) of one task, both with the reference trajectory as a condition.

    Conditions that a record gave its trajectories, such as the criterion of a comparison, are left out: these pairs are
    not by it.

    The reference trajectory is another one of the task by that agent; where it has none, one of another task. Each
    trajectory is the better one at most `generated_per_trajectory` times. Raises RewardError where no two agents that
    are named have a trajectory of one task.
    """
    written = _by_agent(records)
    by_task: dict[str, list[tuple[Agent, Trajectory]]] = defaultdict(list)
    by_agent: dict[Agent, list[Trajectory]] = defaultdict(list)
    for agent, trajectory in written:
        by_task[trajectory.task.id].append((agent, trajectory))
        by_agent[agent].append(trajectory)
    dice = random.Random(f"{seed}/same_agent")  # noqa: S311 (not for secrets)
    found: list[tuple[Trajectory, Trajectory]] = []
    for agent, trajectory in written:
        rivals = [rival for other, rival in by_task[trajectory.task.id] if other != agent]
        references = _references(trajectory, by_agent[agent])
        if not rivals or not references:
            continue
        for rival in dice.sample(rivals, min(recipe.generated_per_trajectory, len(rivals))):
            given = {"reference": reference_text(dice.choice(references))}
            better, worse = (with_conditions(side, recipe.conditioned, given) for side in (trajectory, rival))
            found.append((better, worse))
    if not found:
        raise RewardError(
            "the generator 'same_agent' found no two agents with trajectories of one task, one of which has another "
            "trajectory to refer to; name the agents when trajectories are imported, or leave the generator out.",
            pointer="/generators",
        )
    return found


def reference_text(trajectory: Trajectory) -> str:
    """What its agent wrote and called, step by step, as a reference trajectory is read; "" where that is nothing."""
    steps = [_written(step) for step in trajectory.steps if step.source == "agent"]
    return "\n\n".join(text for text in steps if text)[:MOST_CHARACTERS]


def _by_agent(records: Iterable[FeedbackRecord]) -> list[tuple[Agent, Trajectory]]:
    """Distinct trajectories whose agent is named, without conditions: else one would be its own reference where two
    records give it different ones. What two agents wrote alike tells neither."""
    agents: dict[str, set[Agent]] = defaultdict(set)
    trajectories: dict[str, Trajectory] = {}
    for record in records:
        for trajectory in map(_without_conditions, record_trajectories(record)):
            if trajectory.agent:
                key = trajectory.content_hash
                agents[key].add((trajectory.agent, trajectory.agent_version))
                trajectories.setdefault(key, trajectory)
    return [
        (next(iter(agents[key])), trajectory)
        for key, trajectory in trajectories.items()
        if len(agents[key]) == 1
    ]


def _without_conditions(trajectory: Trajectory) -> Trajectory:
    return replace(trajectory, conditions={}) if trajectory.conditions else trajectory


def _references(trajectory: Trajectory, own: Sequence[Trajectory]) -> list[Trajectory]:
    """Others of the same agent that have a text: of the task, else of other tasks."""
    others = [other for other in own if other is not trajectory and reference_text(other)]
    return [other for other in others if other.task.id == trajectory.task.id] or others


def _written(step: Step) -> str:
    calls = [f"{call.name}({call.arguments_text})" for call in step.tool_calls]
    return "\n".join(part for part in (step.text, *calls) if part)
