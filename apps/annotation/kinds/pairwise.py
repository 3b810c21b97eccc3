"""Which of two is better, by how much; or a tie; or both bad.

The form's field `choice` speaks of the sides as shown: `left-3` to `left-1`, `tie`, `both_bad`, `right-1` to
`right-3`.
"""

from collections.abc import Sequence
from typing import Any

from apps.annotation.kinds.base import Feedback, Fields, Shown
from apps.annotation.models import Preference
from apps.core.errors import DomainError

SIDES = ("left", "right")
CHOICES = ("a", "b")


def parse(fields: Fields, shown: Shown) -> list[Preference]:
    said = fields.get("choice", "")
    if not said:
        return []
    if said in ("tie", "both_bad"):
        return [Preference(choice=said)]
    side, _, strength = said.partition("-")
    if side not in SIDES or strength not in ("1", "2", "3"):
        raise DomainError(
            f"{said!r} is no choice; choose A or B by 1 to 3, tie, or both bad.", pointer="/choice"
        )
    return [Preference(choice=CHOICES[shown.position(SIDES.index(side))], strength=int(strength))]


def fields(rows: Sequence[Any], shown: Shown) -> dict[str, str]:
    said = next((row for row in rows if isinstance(row, Preference) and row.criterion_id is None), None)
    if said is None:
        return {}
    if said.choice not in CHOICES:
        return {"choice": said.choice}
    return {"choice": f"{SIDES[shown.position(CHOICES.index(said.choice))]}-{said.strength}"}


def check(rows: Sequence[Any], *, alone: bool) -> None:
    said = [row for row in rows if isinstance(row, Preference) and row.criterion_id is None]
    if len(said) != 1:
        raise DomainError("Choose first: A or B, a tie, or both bad.", pointer="/choice")


PAIRWISE = Feedback(
    name="pairwise",
    label="Comparison",
    question="Which run is better?",
    model=Preference,
    template="annotation/kinds/_pairwise.html",
    fewest=2,
    most=2,
    parse=parse,
    fields=fields,
    check=check,
)
