"""One agent's part of an episode, as recorders of Gymnasium and PettingZoo environments keep it: its steps.

A step's row is the numbers of what was observed, of what was done, and then of each set: how many rows it has, and
these. What is no number is text or a picture: of the first observation it stands before the first step, of a later one
with the step that led to it, texts only where they changed.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from workers.errors import InvalidRecord
from workers.schema import ObservationResult, Part, Step
from workers.schema.decode import convert, finite, optional_str, require_list, require_object

PART_FIELDS = ("observations", "actions", "rewards", "clip", "observation_parts", "action_parts", "messages")
_DEEPEST = 16
_PART_KINDS = ("texts", "pictures", "sets")


class NumberSet(NamedTuple):
    """A set whose rows have that many numbers."""

    name: str
    width: int


@dataclass(frozen=True, slots=True)
class AgentPart:
    """before: what was seen before the first step. last: metadata of the observation after the last action."""

    before: tuple[Step, ...]
    steps: tuple[Step, ...]
    last: dict[str, Any]
    reward: float | None


def read_part(document: dict[str, Any], pointer: str = "") -> AgentPart:
    """Raises InvalidRecord, with what in `document`, which is at `pointer`, is wrong."""
    observations = _rows(document.get("observations"), f"{pointer}/observations")
    actions = _actions(document, len(observations), pointer)
    if len(observations) not in (len(actions), len(actions) + 1):
        raise InvalidRecord(
            f"{len(actions)} actions go with as many observations or one more, not {len(observations)}.",
            pointer=f"{pointer}/observations",
        )
    sets = read_sets(document.get("sets"), f"{pointer}/sets")
    seen = _parts(document.get("observation_parts"), len(observations), f"{pointer}/observation_parts")
    done = _parts(document.get("action_parts"), len(actions), f"{pointer}/action_parts")
    messages = _messages(document.get("messages"), len(actions), pointer)
    rewards = _rewards(document, len(actions), pointer)
    later = [_changed(before, after) for before, after in pairwise(seen)] + [()]
    steps: list[Step] = []
    fixed = [tuple(row + action) for row, action in zip(observations, actions, strict=False)]
    for index, (row, reward) in enumerate(zip(fixed, rewards, strict=True)):
        if len(row) != len(fixed[0]):
            raise InvalidRecord(
                f"a step has {len(row)} numbers, those before it {len(fixed[0])}. What has no fixed length is a set: "
                "see the docs of the format `gymnasium`.",
                pointer=f"{pointer}/actions/{index}",
            )
        row += _set_numbers(sets, seen[index], done[index], f"{pointer}/observation_parts/{index}/sets")
        message = () if messages[index] is None else (Part(text=messages[index]),)
        result = later[index]
        steps.append(
            Step(
                source="agent",
                message=message + _content(done[index]),
                observation=(ObservationResult(content=result),) if result else (),
                features=row or None,
                reward=reward.worth,
                metrics={"rewards": reward.parts} if reward.parts else {},
                extra={"source_index": index},
            )
        )
    last: dict[str, Any] = {"numbers_before_sets": len(fixed[0])} if sets and fixed else {}
    if len(observations) > len(actions):
        last["last_observation"] = observations[-1]
        if seen[-1].get("sets"):
            last["last_observation_sets"] = seen[-1]["sets"]
    given = [reward.worth for reward in rewards if reward.is_given]
    total = None if None in given or not given else sum(worth or 0.0 for worth in given)
    return AgentPart(_clip(document, pointer) + _first(seen), tuple(steps), last, total)


def read_sets(value: Any, pointer: str) -> list[NumberSet]:
    """Of a list of {"name", "numbers": [names]}."""
    found = []
    for index, entry in enumerate(require_list(value or [], pointer=pointer)):
        entry = require_object(entry, pointer=f"{pointer}/{index}")
        name = optional_str(entry.get("name"), pointer=f"{pointer}/{index}/name") or ""
        numbers = require_list(entry.get("numbers"), pointer=f"{pointer}/{index}/numbers")
        found.append(NumberSet(name, len(numbers)))
    return found


def _actions(document: dict[str, Any], count: int, pointer: str) -> list[list[float]]:
    """Without any, each observation is a step."""
    if document.get("actions") is None:
        return [[]] * count
    return _rows(document["actions"], f"{pointer}/actions")


def _messages(value: Any, count: int, pointer: str) -> list[str | None]:
    messages = convert(value or [None] * count, list[str | None], pointer=f"{pointer}/messages")
    if len(messages) != count:
        raise InvalidRecord(
            f"{count} actions have as many messages, not {len(messages)}.", pointer=f"{pointer}/messages"
        )
    return messages


def _parts(value: Any, count: int, pointer: str) -> list[dict[str, Any]]:
    """By step, its `texts`, `pictures` and `sets`, each by name."""
    if value is None:
        return [{}] * count
    parts = [
        require_object(entry, pointer=f"{pointer}/{index}")
        for index, entry in enumerate(require_list(value, pointer=pointer))
    ]
    if len(parts) != count:
        raise InvalidRecord(f"has {len(parts)} entries for {count} rows.", pointer=pointer)
    for index, entry in enumerate(parts):
        for kind, named in entry.items():
            at = f"{pointer}/{index}/{kind}"
            if kind not in _PART_KINDS:
                raise InvalidRecord(f"is none of {', '.join(_PART_KINDS)}.", pointer=at)
            for name, content in require_object(named, pointer=at).items():
                if kind != "sets" and not isinstance(content, str):
                    raise InvalidRecord("expected a string.", pointer=f"{at}/{name}")
    return parts


def _content(part: dict[str, Any]) -> tuple[Part, ...]:
    texts, pictures = part.get("texts", {}), part.get("pictures", {})
    return (
        *(Part(text=text, extra={"name": name}) for name, text in texts.items()),
        *(Part(type="image", source=source, extra={"name": name}) for name, source in pictures.items()),
    )


def _changed(before: dict[str, Any], after: dict[str, Any]) -> tuple[Part, ...]:
    """What is seen after a step; of texts, those that changed."""
    old, new = before.get("texts", {}), after.get("texts", {})
    if old.keys() == new.keys():
        new = {name: text for name, text in new.items() if text != old[name]}
    return _content(after | {"texts": new})


def _first(seen: list[dict[str, Any]]) -> tuple[Step, ...]:
    content = _content(seen[0]) if seen else ()
    if not content:
        return ()
    result = ObservationResult(content=content)
    return (Step(source="environment", observation=(result,), extra={"source_index": 0}),)


def _set_numbers(
    sets: list[NumberSet], seen: dict[str, Any], done: dict[str, Any], pointer: str
) -> tuple[float, ...]:
    given = {**seen.get("sets", {}), **done.get("sets", {})}
    unknown = next((name for name in given if name not in {known.name for known in sets}), None)
    if unknown is not None:
        raise InvalidRecord("is not among the `sets` of the episode.", pointer=f"{pointer}/{unknown}")
    row: list[float] = []
    for name, width in sets:
        rows = _rows(given.get(name, []), f"{pointer}/{name}")
        bad = next((index for index, element in enumerate(rows) if len(element) != width), None)
        if bad is not None:
            raise InvalidRecord(
                f"has {len(rows[bad])} numbers; those of this set have {width}.",
                pointer=f"{pointer}/{name}/{bad}",
            )
        row += [float(len(rows)), *(number for element in rows for number in element)]
    return tuple(row)


class _Reward(NamedTuple):
    """parts: of several objectives, by their names."""

    worth: float | None = None
    parts: dict[str, float] = {}
    is_given: bool = True


def _rewards(document: dict[str, Any], count: int, pointer: str) -> list[_Reward]:
    if document.get("rewards") is None:
        return [_Reward(is_given=False)] * count
    given = require_list(document["rewards"], pointer=f"{pointer}/rewards")
    last: list[_Reward] = []
    if document.get("actions") is None and len(given) == count - 1:
        last, count = (
            [_Reward(is_given=False)],
            count - 1,
        )  # of observations alone, each reward is of a change
    if len(given) != count:
        raise InvalidRecord(
            f"{count} actions have as many rewards, not {len(given)}.", pointer=f"{pointer}/rewards"
        )
    if not given or not isinstance(given[0], list):
        rewards = [finite(reward, pointer=f"{pointer}/rewards/{index}") for index, reward in enumerate(given)]
        return [*map(_Reward, rewards), *last]
    rows = _rows(given, f"{pointer}/rewards")
    names = _names(document.get("reward_names"), len(rows[0]), pointer)
    weights = document.get("reward_weights")
    weights = (
        None
        if weights is None
        else _flat(require_list(weights, pointer=f"{pointer}/reward_weights"), f"{pointer}/reward_weights")
    )
    for index, row in enumerate(rows):
        if len(row) != len(names):
            raise InvalidRecord(
                f"has {len(row)} numbers, not {len(names)}.", pointer=f"{pointer}/rewards/{index}"
            )
    if weights is not None and len(weights) != len(names):
        raise InvalidRecord(
            f"has {len(weights)} numbers, not {len(names)}.", pointer=f"{pointer}/reward_weights"
        )
    return [
        _Reward(
            None
            if weights is None
            else sum(weight * number for weight, number in zip(weights, row, strict=True)),
            dict(zip(names, row, strict=True)),
        )
        for row in rows
    ] + last


def _names(given: Any, count: int, pointer: str) -> list[str]:
    if given is None:
        return [f"reward {number}" for number in range(1, count + 1)]
    names = require_list(given, pointer=f"{pointer}/reward_names")
    if len(set(map(str, names))) != count or not all(isinstance(name, str) for name in names):
        raise InvalidRecord(
            f"expected {count} different names, one for each reward.", pointer=f"{pointer}/reward_names"
        )
    return names


def _clip(document: dict[str, Any], pointer: str) -> tuple[Step, ...]:
    clip = optional_str(document.get("clip"), pointer=f"{pointer}/clip")
    if not clip:
        return ()
    is_video = clip.startswith("data:video/")
    seen = ObservationResult(content=(Part(type="video" if is_video else "image", source=clip),))
    return (Step(source="environment", observation=(seen,)),)


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
