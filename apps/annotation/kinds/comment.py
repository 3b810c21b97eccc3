"""Words about a trajectory or a part of it. Several at once: the fields of the n-th are `comment-n-...`.

`on` is the side as shown (left, right); `from` and `to` are `step` indices, inclusive; `sign` is 1, -1 or empty.
"""

import re
from collections.abc import Sequence
from typing import Any

from apps.annotation.kinds.base import Feedback, Fields, Shown
from apps.annotation.models import Comment
from apps.core.errors import DomainError
from workers.schema import clean

SIDES = ("left", "right")
LONGEST = 20_000
_FIELD = re.compile(r"comment-(\d{1,4})-text")
MOST = 100


def parse(fields: Fields, shown: Shown) -> list[Comment]:
    numbers = sorted(int(match[1]) for name in fields if (match := _FIELD.fullmatch(name)))
    if len(numbers) > MOST:
        raise DomainError(f"One judgement holds at most {MOST} comments.")
    return [row for number in numbers if (row := _comment(fields, number, shown)) is not None]


def _comment(fields: Fields, number: int, shown: Shown) -> Comment | None:
    at = f"comment-{number}"
    said = {
        name: clean(fields.get(f"{at}-{name}", "").strip())[0]
        for name in ("text", "on", "from", "to", "sign", "quote")
    }
    if not said["text"]:
        if said["quote"] or said["from"] or said["to"]:
            raise DomainError(
                "A comment has a place but no words; write what you think or remove it.",
                pointer=f"/{at}-text",
            )
        return None
    if len(said["text"]) > LONGEST or len(said["quote"]) > LONGEST:
        raise DomainError(f"A comment is longer than {LONGEST} characters.", pointer=f"/{at}-text")
    side = said["on"] or SIDES[0]
    if side not in SIDES[: len(shown.trajectories)]:
        raise DomainError("A comment is on A or on B.", pointer=f"/{at}-on")
    if said["sign"] not in ("", "1", "-1"):
        raise DomainError("A comment is good (1), bad (-1) or neither.", pointer=f"/{at}-sign")
    trajectory = shown.on_side(SIDES.index(side))
    first, last = _range(said["from"], said["to"], trajectory.step_count, at)
    return Comment(
        trajectory=trajectory,
        text=said["text"],
        first_step=first,
        last_step=last,
        quote=said["quote"],
        sign=int(said["sign"]) if said["sign"] else None,
    )


def _range(first: str, last: str, steps: int, at: str) -> tuple[int | None, int | None]:
    if not first and not last:
        return None, None
    low, high = first or last, last or first
    if (
        not (low.isascii() and low.isdigit() and high.isascii() and high.isdigit())
        or not int(low) <= int(high) < steps
    ):
        raise DomainError(
            f"Steps {first or '?'} to {last or '?'} are not in this trajectory; they run from 0 to {steps - 1}.",
            pointer=f"/{at}-from",
        )
    return int(low), int(high)


def fields(rows: Sequence[Any], shown: Shown) -> dict[str, str]:
    out: dict[str, str] = {}
    for number, row in enumerate(row for row in rows if isinstance(row, Comment)):
        said = {
            "text": row.text,
            "on": SIDES[shown.side_of(row.trajectory_id)],
            "from": _number(row.first_step),
            "to": _number(row.last_step),
            "sign": _number(row.sign),
            "quote": row.quote,
        }
        out |= {f"comment-{number}-{name}": value for name, value in said.items()}
    return out


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def check(rows: Sequence[Any], *, alone: bool) -> None:
    if alone and not any(isinstance(row, Comment) for row in rows):
        raise DomainError("Write at least one comment.", pointer="/comment-0-text")


COMMENT = Feedback(
    name="comment",
    label="Comments",
    question="What do you think of it?",
    model=Comment,
    template="annotation/kinds/_comment.html",
    fewest=1,
    most=2,
    parse=parse,
    fields=fields,
    check=check,
)
