"""The rewards that the steps of a trajectory came with."""

from workers.schema.records import Trajectory


def logged_rewards(trajectory: Trajectory) -> list[float] | None:
    """By agent step, 0 where it has none; a reward of an observation belongs to the agent step before it. None where no
    step has a reward."""
    if all(step.reward is None for step in trajectory.steps):
        return None
    rewards: list[float] = []
    for step in trajectory.steps:
        if step.source == "agent":
            rewards.append(step.reward or 0.0)
        elif rewards:
            rewards[-1] += step.reward or 0.0
    return rewards
