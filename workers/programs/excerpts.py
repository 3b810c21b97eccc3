"""What the critic of a reward program reads of trajectories: short excerpts of those that the code may pay wrongly."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import structs

from workers.prompts.templates import quoted
from workers.prompts.trajectory_text import shown
from workers.schema import Trajectory

MOST_OF_A_KIND = 2  # excerpts of over-paid and of under-paid trajectories
_CHARACTERS = 1500  # of an excerpt
_TASK = 300
_RUN = 6  # words in a row that make a quotation


def excerpt(trajectory: Trajectory) -> tuple[dict[str, Any], ...]:
    """Its task and steps, as `shown` draws them; at most about twice 1,500 characters."""
    task = structs.replace(trajectory.task, instruction=trajectory.task.instruction[:_TASK])
    kept, used = list[dict[str, Any]](), 0
    for line in shown(structs.replace(trajectory, task=task), characters=_CHARACTERS).splitlines():
        used += len(line)
        if used > 2 * _CHARACTERS:
            break
        kept.append(json.loads(line))
    return tuple(kept)


def wrongly_paid(values: Sequence[float], about: Sequence[Mapping[str, Any]]) -> list[int]:
    """Places of trajectories that failed and were paid most, and of those that succeeded and were paid least; where no
    outcome is known, of the most and the least paid."""
    order = sorted(range(len(values)), key=lambda place: (-values[place], place))
    failed = [place for place in order if about[place].get("success") is False]
    succeeded = [place for place in reversed(order) if about[place].get("success") is True]
    over = failed or ([] if succeeded else order)
    under = succeeded or ([] if failed else order[::-1])
    return list(dict.fromkeys(over[:MOST_OF_A_KIND] + under[:MOST_OF_A_KIND]))


def quotes(text: str, excerpts: Iterable[Sequence[Mapping[str, Any]]], known: Iterable[str]) -> bool:
    """Whether the text has six words in a row of an excerpt that are not in what is known anyway: such a text is not
    kept."""
    allowed = set().union(*map(_runs, known)) if known else set()
    seen = {run for each in excerpts for step in each for run in _runs(quoted(step))}
    return bool((_runs(text) & seen) - allowed)


def _runs(text: str) -> set[tuple[str, ...]]:
    words = "".join(character if character.isalnum() else " " for character in text.lower()).split()
    return {tuple(words[at : at + _RUN]) for at in range(len(words) - _RUN + 1)}
