"""Trajectories with steps inserted, removed and changed, whose true alignment is therefore known."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from msgspec.structs import replace

from apps.trajectories.alignment import Alignment
from workers.schema import Part, Step

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Edited:
    """steps: the edited run. partners: of each original step, its place in `steps`; None where it was removed."""

    steps: list[Step]
    partners: list[int | None]

    def right(self, found: Alignment) -> tuple[int, int]:
        """(steps placed as they should be, steps): those of the original and those inserted."""
        rows = [(place, place) for place in range(found.prefix)] + [
            (row.cells[0], row.cells[1]) for row in found.rows if row.changed or not row.differs
        ]
        theirs = dict(rows)
        ours = {b for _, b in rows}
        inserted = set(range(len(self.steps))) - set(self.partners)
        right = sum(theirs.get(a) == b for a, b in enumerate(self.partners))
        right += sum(b not in ours for b in inserted)
        return right, len(self.partners) + len(inserted)


def edited(steps: Sequence[Step], others: Sequence[Step], share: float, random: Random) -> Edited:
    """Each step is removed, changed, or preceded by one of `others`, with probability `share` each."""
    out: list[Step] = []
    partners: list[int | None] = []
    for step in steps:
        if random.random() < share:
            out.append(random.choice(others))
        if random.random() < share:
            partners.append(None)
            continue
        partners.append(len(out))
        out.append(changed(step, random) if random.random() < share else step)
    return Edited(out, partners)


def changed(step: Step, random: Random) -> Step:
    """The same tools with other words: half of what was said and seen is something else."""
    return replace(
        step,
        message=_other_parts(step.message, random),
        reasoning=step.reasoning and _other_words(step.reasoning, random),
        tool_calls=tuple(
            replace(call, arguments={"changed": _other_words(call.arguments_text, random)}, raw=None)
            for call in step.tool_calls
        ),
        observation=tuple(
            replace(result, content=_other_parts(result.content, random)) for result in step.observation
        ),
    )


def _other_parts(parts: Sequence[Part], random: Random) -> tuple[Part, ...]:
    return tuple(replace(part, text=part.text and _other_words(part.text, random)) for part in parts)


def _other_words(text: str, random: Random) -> str:
    return _WORD.sub(lambda word: f"w{random.randrange(10**6)}" if random.random() < 0.5 else word[0], text)
