"""An episode of several agents: the steps of all of them in the order of their turns, each spoken by its agent."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from apps.trajectories.formats.benchmarks.agent_parts import AgentPart, read_part
from workers.errors import InvalidRecord
from workers.schema import Step
from workers.schema.decode import convert, require_object


def read_team(document: dict[str, Any]) -> AgentPart:
    """`parts`: by agent. `turns`: lists of the agents that acted together, each once for each of its steps."""
    given = require_object(document.get("parts"), pointer="/parts")
    weights = {key: document[key] for key in ("reward_names", "reward_weights") if key in document}
    parts = {
        agent: read_part(weights | require_object(part, pointer=f"/parts/{agent}"), f"/parts/{agent}")
        for agent, part in given.items()
    }
    turns = convert(document.get("turns"), list[list[str]], pointer="/turns")
    steps = tuple(_in_turn(parts, turns))
    before = tuple(replace(step, speaker=agent) for agent, part in parts.items() for step in part.before)
    rewards = [part.reward for part in parts.values()]
    total = None if None in rewards else sum(reward or 0.0 for reward in rewards)
    about = {agent: _about(part, parts[agent]) for agent, part in given.items()}
    return AgentPart(before, steps, {"agents": about}, total)


def _in_turn(parts: dict[str, AgentPart], turns: list[list[str]]) -> Iterator[Step]:
    taken = dict.fromkeys(parts, 0)
    for turn, agents in enumerate(turns):
        for place, agent in enumerate(agents):
            at = f"/turns/{turn}/{place}"
            if agent not in parts:
                raise InvalidRecord(f"{agent!r} is none of `parts`: {', '.join(parts)}.", pointer=at)
            if taken[agent] == len(parts[agent].steps):
                raise InvalidRecord(
                    f"{agent} has {taken[agent]} actions, and acts once more here.", pointer=at
                )
            step = parts[agent].steps[taken[agent]]
            taken[agent] += 1
            yield replace(step, speaker=agent, extra=step.extra | {"turn": turn})
    for agent, part in parts.items():
        if taken[agent] < len(part.steps):
            raise InvalidRecord(
                f"{agent} has {len(part.steps)} actions, of which `turns` has {taken[agent]}.",
                pointer="/turns",
            )


def _about(given: dict[str, Any], part: AgentPart) -> dict[str, Any]:
    """What of an agent is in none of its steps: how it ended, its last observation, and what its numbers are."""
    of_steps = ("observations", "actions", "rewards", "observation_parts", "action_parts", "messages", "clip")
    return {key: value for key, value in given.items() if key not in of_steps} | part.last
