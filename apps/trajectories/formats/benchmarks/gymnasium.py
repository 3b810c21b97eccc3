"""Episodes of Gymnasium environments, as Minari keeps them: {"observations", "actions", "rewards", ...}, numbers alone.

An episode of T actions has T or T + 1 observations (the last is where it ended). A step is what was seen and what was
done, both flattened (dictionaries by the order of their keys), one after the other. `rewards` are the environment's
own: each step's, and their sum the outcome. Rewards of several objectives are rows of numbers, named by `reward_names`:
each step keeps all of them, and is worth their sum weighted by `reward_weights`, without which it has no single worth.
`clip`, a data URL, is what could be seen of the episode: it stands before the first step.
"""

from typing import Any, NamedTuple

from apps.trajectories.formats.fields import read_agent, read_id, read_success, read_task
from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Part, Step, Task, Trajectory, clean
from workers.schema.decode import finite, optional_str, require_list, require_object
from workers.schema.messages import build_trajectory

SIGN = "an object with `observations` and `actions`"
READ = (
    "/observations",
    "/actions",
    "/rewards",
    "/success",
    "/id",
    "/episode_id",
    "/env",
    "/env_id",
    "/task/id",
    "/agent/version",
)
_KNOWN = (
    "id",
    "episode_id",
    "env",
    "env_id",
    "task",
    "agent",
    "observations",
    "actions",
    "rewards",
    "clip",
    "success",
)
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
    rewards = _rewards(document, len(actions))
    steps: list[Step] = []
    for index, (seen, done, reward) in enumerate(zip(observations, actions, rewards, strict=False)):
        row = tuple(seen + done)
        if steps and len(row) != len(steps[0].features or ()):
            raise InvalidRecord(
                f"a step has {len(row)} numbers, those before it {len(steps[0].features or ())}.",
                pointer=f"/actions/{index}",
            )
        steps.append(
            Step(
                source="agent",
                features=row,
                reward=reward.worth,
                metrics={"rewards": reward.parts} if reward.parts else {},
                extra={"source_index": index},
            )
        )
    steps = _clip(document) + steps
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
        reward=None
        if any(reward.worth is None for reward in rewards)
        else sum(reward.worth or 0.0 for reward in rewards),
        success=read_success(document.get("success")),
        metadata=metadata,
    )


class _Reward(NamedTuple):
    """parts: of several objectives, by their names."""

    worth: float | None = None
    parts: dict[str, float] = {}


def _rewards(document: dict[str, Any], count: int) -> list[_Reward]:
    if document.get("rewards") is None:
        return [_Reward()] * count
    given = require_list(document["rewards"], pointer="/rewards")
    if len(given) != count:
        raise InvalidRecord(f"{count} actions have as many rewards, not {len(given)}.", pointer="/rewards")
    if not given or not isinstance(given[0], list):
        return [_Reward(finite(reward, pointer=f"/rewards/{index}")) for index, reward in enumerate(given)]
    rows = _rows(given, "/rewards")
    names = _names(document.get("reward_names"), len(rows[0]))
    weights = document.get("reward_weights")
    weights = (
        None
        if weights is None
        else _flat(require_list(weights, pointer="/reward_weights"), "/reward_weights")
    )
    for index, row in enumerate(rows):
        if len(row) != len(names):
            raise InvalidRecord(f"has {len(row)} numbers, not {len(names)}.", pointer=f"/rewards/{index}")
    if weights is not None and len(weights) != len(names):
        raise InvalidRecord(f"has {len(weights)} numbers, not {len(names)}.", pointer="/reward_weights")
    return [
        _Reward(
            None
            if weights is None
            else sum(weight * number for weight, number in zip(weights, row, strict=True)),
            dict(zip(names, row, strict=True)),
        )
        for row in rows
    ]


def _names(given: Any, count: int) -> list[str]:
    if given is None:
        return [f"reward {number}" for number in range(1, count + 1)]
    names = require_list(given, pointer="/reward_names")
    if len(set(map(str, names))) != count or not all(isinstance(name, str) for name in names):
        raise InvalidRecord(
            f"expected {count} different names, one for each reward.", pointer="/reward_names"
        )
    return names


def _clip(document: dict[str, Any]) -> list[Step]:
    clip = optional_str(document.get("clip"), pointer="/clip")
    if not clip:
        return []
    is_video = clip.startswith("data:video/")
    seen = ObservationResult(content=(Part(type="video" if is_video else "image", source=clip),))
    return [Step(source="environment", observation=(seen,))]


def _task(document: dict[str, Any]) -> Task:
    """The environment and how it was reset: episodes with the same start are the same task."""
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
        _flat(row, f"{pointer}/{index}") for index, row in enumerate(require_list(value, pointer=pointer))
    ]


def _flat(value: Any, pointer: str, depth: int = 0) -> list[float]:
    if depth > _DEEPEST:
        raise InvalidRecord("nested too deeply to be read.", pointer=pointer)
    if isinstance(value, list):
        return [
            number
            for index, part in enumerate(value)
            for number in _flat(part, f"{pointer}/{index}", depth + 1)
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
