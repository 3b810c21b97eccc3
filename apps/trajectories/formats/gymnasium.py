"""Episodes of Gymnasium environments, as Minari keeps them: {"observations", "actions", "rewards", ...}, numbers alone.

An episode of T actions has T or T + 1 observations (the last is where it ended). A step is what was seen and what was
done, both flattened (dictionaries by the order of their keys), one after the other. `rewards` are the environment's
own: each step's, and their sum the outcome.
"""

from typing import Any

from apps.trajectories.formats.fields import read_agent, read_id, read_task
from workers.errors import InvalidRecord
from workers.schema import Step, Task, Trajectory, clean
from workers.schema.decode import finite, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `observations` and `actions`"
_KNOWN = ("id", "episode_id", "env", "env_id", "task", "agent", "observations", "actions", "rewards")
_DEEPEST = 16


def sniff(document: Any) -> bool:
    return isinstance(document, dict) and "actions" in document and "observations" in document


def read(document: Any) -> Trajectory:
    document, _ = clean(require_object(document))
    actions = _rows(document.get("actions"), "/actions")
    observations = _rows(document.get("observations"), "/observations")
    if len(observations) not in (len(actions), len(actions) + 1):
        raise InvalidRecord(
            f"{len(actions)} actions go with as many observations or one more, not {len(observations)}.",
            pointer="/observations",
        )
    given = document.get("rewards")
    rewards = [None] * len(actions) if given is None else require_list(given, pointer="/rewards")
    if len(rewards) != len(actions):
        raise InvalidRecord(
            f"{len(actions)} actions have as many rewards, not {len(rewards)}.", pointer="/rewards"
        )
    steps: list[Step] = []
    for index, (seen, done, reward) in enumerate(zip(observations, actions, rewards, strict=False)):
        row = tuple(seen + done)
        if steps and len(row) != len(steps[0].features or ()):
            raise InvalidRecord(
                f"a step has {len(row)} numbers, those before it {len(steps[0].features or ())}.",
                pointer=f"/actions/{index}",
            )
        worth = finite(reward, pointer=f"/rewards/{index}")
        steps.append(Step(source="agent", features=row, reward=worth, extra={"source_index": index}))
    name, version = read_agent(document.get("agent"))
    number = document.get("id", document.get("episode_id"))
    metadata = {key: value for key, value in document.items() if key not in _KNOWN}
    if len(observations) > len(actions):
        metadata["last_observation"] = observations[-1]
    return build_trajectory(
        tuple(steps),
        _task(document),
        pointer="/actions",
        id=read_id(number),
        agent=name,
        agent_version=version,
        reward=None if given is None else sum(step.reward or 0.0 for step in steps),
        metadata=metadata,
    )


def _task(document: dict[str, Any]) -> Task:
    """The environment and how it was reset: episodes that began alike are the same task."""
    if document.get("task") is not None:
        return read_task(document["task"])
    environment = document.get("env_id", document.get("env"))
    if not isinstance(environment, str) or not environment:
        return Task(id="")
    seed = document.get("seed")
    whole = isinstance(seed, int) and not isinstance(seed, bool)
    return Task(id=f"{environment} {seed}" if whole else environment, instruction=environment)


def _rows(value: Any, pointer: str) -> list[list[float]]:
    """Of a list of steps; or, of a space of parts, an object of such lists."""
    if isinstance(value, dict):
        parts = [_rows(value[key], f"{pointer}/{key}") for key in sorted(value)]
        if len({len(part) for part in parts}) > 1:
            raise InvalidRecord("its parts have different numbers of steps.", pointer=pointer)
        return [
            [number for part in parts for number in part[index]]
            for index in range(len(parts[0]) if parts else 0)
        ]
    return [
        _flat(one, f"{pointer}/{index}") for index, one in enumerate(require_list(value, pointer=pointer))
    ]


def _flat(value: Any, pointer: str, depth: int = 0) -> list[float]:
    if depth > _DEEPEST:
        raise InvalidRecord("nested too deeply to be read.", pointer=pointer)
    if isinstance(value, list):
        return [
            number
            for index, one in enumerate(value)
            for number in _flat(one, f"{pointer}/{index}", depth + 1)
        ]
    if isinstance(value, dict):
        return [
            number for key in sorted(value) for number in _flat(value[key], f"{pointer}/{key}", depth + 1)
        ]
    if isinstance(value, bool):
        return [float(value)]
    number = finite(value, pointer=pointer)
    if number is None:
        raise InvalidRecord("expected a number, got null.", pointer=pointer)
    return [number]
