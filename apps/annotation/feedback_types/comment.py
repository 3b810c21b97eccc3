"""Comments on a trajectory or a part of it. The fields of the n-th comment are `comment-n-...`.

`on` is the side as shown (left, right, ...); `from` and `to` are `step` indices, inclusive; `sign` is 1, -1 or empty.
Records: `comments`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db import models
from django.db.models import QuerySet

from apps.annotation.feedback_types.base import (
    AgreementValue,
    FeedbackType,
    ImportTarget,
    Place,
    ReadRecord,
    TrajectoryEvaluation,
    TrajectoryWriter,
    records_of_type,
)
from apps.annotation.models import Comment
from apps.annotation.presentation import SIDES, FormFields, PresentedItem
from apps.core.errors import DomainError
from apps.trajectories.models import Trajectory
from workers import schema
from workers.errors import InvalidRecord
from workers.schema import Anchor, clean
from workers.schema.decode import convert
from workers.schema.patterns import TextPattern

MAX_LENGTH = 20_000
_FIELD = TextPattern(r"comment-(\d{1,4})-text")
MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentValue:
    text: str
    anchor: Anchor | None = None
    sign: Literal[1, -1] | None = None


def _comment(fields: FormFields, number: int, shown: PresentedItem) -> Comment | None:
    at = f"comment-{number}"
    said = {
        name: clean(fields.get(f"{at}-{name}", "").strip())[0]
        for name in ("text", "on", "from", "to", "sign", "quote")
    }
    if not said["text"]:
        if said["quote"] or said["from"] or said["to"]:
            raise DomainError(
                "A comment has a position but no text; write a text or clear the position.",
                pointer=f"/{at}-text",
            )
        return None
    if len(said["text"]) > MAX_LENGTH or len(said["quote"]) > MAX_LENGTH:
        raise DomainError(f"A comment can have at most {MAX_LENGTH} characters.", pointer=f"/{at}-text")
    side = said["on"] or SIDES[0]
    if side not in shown.sides:
        raise DomainError("A comment must be about one of the trajectories shown.", pointer=f"/{at}-on")
    if said["sign"] not in ("", "1", "-1"):
        raise DomainError("The sign of a comment must be 1 (good), -1 (bad) or empty.", pointer=f"/{at}-sign")
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
        or max(len(low), len(high)) > 9
        or not int(low) <= int(high) < steps
    ):
        raise DomainError(
            f"Steps {first or '?'} to {last or '?'} are not in this trajectory; steps are 0 to {steps - 1}.",
            pointer=f"/{at}-from",
        )
    return int(low), int(high)


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _check_anchor(anchor: Anchor) -> None:
    first, last = anchor.steps
    if first < 0 or last < first:
        raise InvalidRecord(
            f"steps must be [first, last], counted from 0, not [{first}, {last}].", pointer="/anchor/steps"
        )
    if anchor.chars is not None and not 0 <= anchor.chars[0] < anchor.chars[1]:
        raise InvalidRecord("chars must be [start, end), counted from 0.", pointer="/anchor/chars")


class CommentType(FeedbackType[Comment, CommentValue, schema.CommentRecord]):
    name = "comment"
    label = "Comments"
    question = "Comments on the trajectory"
    description = "Free text about a trajectory, its steps or selected text."
    model = Comment
    min_trajectories = 1
    max_trajectories = len(SIDES)
    field_pattern = TextPattern(r"comment-\d{1,4}-(text|on|from|to|sign|quote)")
    template = "annotation/feedback_types/_comment.html"
    import_format = "comments"
    record_keys = ("trajectory", "text", "anchor", "sign")
    distinguishing_keys = ("text",)

    def parse(self, fields: FormFields, shown: PresentedItem) -> list[Comment]:
        numbers = sorted(int(match[1]) for name in fields if (match := _FIELD.fullmatch(name)))
        if len(numbers) > MOST:
            raise DomainError(f"An annotation can have at most {MOST} comments.")
        return [row for number in numbers if (row := _comment(fields, number, shown)) is not None]

    def form_values(self, rows: Sequence[Any], shown: PresentedItem) -> dict[str, str]:
        out: dict[str, str] = {}
        for number, row in enumerate(records_of_type(rows, Comment)):
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

    def validate(self, rows: Sequence[Any], shown: PresentedItem, alone: bool) -> None:
        if alone and not records_of_type(rows, Comment):
            raise DomainError("Write at least one comment.", pointer="/comment-0-text")

    def summary(self, rows: Sequence[Any], shown: PresentedItem) -> str:
        return " · ".join(row.text for row in records_of_type(rows, Comment))

    def read_record(self, record: dict[str, Any], place: Place) -> ReadRecord:
        value = convert(
            {key: record[key] for key in ("text", "anchor", "sign") if key in record}, CommentValue
        )
        if not value.text.strip():
            raise InvalidRecord("the text of a comment cannot be empty.", pointer="/text")
        if value.anchor is not None:
            _check_anchor(value.anchor)
        return (place(record.get("trajectory"), "/trajectory"),), value

    def check_record(self, value: CommentValue, rows: Sequence[Trajectory]) -> None:
        """Check that the anchored steps exist. Raises InvalidRecord."""
        last = value.anchor.steps[1] if value.anchor else -1
        if last >= rows[0].step_count:
            raise InvalidRecord(
                f"step {last} is not in the trajectory; steps are 0 to {rows[0].step_count - 1}.",
                pointer="/anchor/steps",
            )

    def make_row(self, value: CommentValue, stored: ImportTarget) -> Comment:
        anchor = value.anchor
        first, last = anchor.steps if anchor else (None, None)
        start, end = (anchor.chars if anchor else None) or (None, None)
        return Comment(
            trajectory=stored.trajectories[0],
            text=value.text,
            first_step=first,
            last_step=last,
            quote=(anchor.quote if anchor else None) or "",
            first_char=start,
            last_char=end,
            sign=value.sign,
        )

    def to_record(
        self,
        row: Comment,
        places: Sequence[schema.Trajectory],
        of: Mapping[int, schema.Trajectory],
        common: dict[str, Any],
    ) -> schema.CommentRecord:
        anchor = None
        if row.first_step is not None and row.last_step is not None:
            is_exact = row.first_char is not None and row.last_char is not None
            anchor = schema.Anchor(
                steps=(row.first_step, row.last_step),
                quote=row.quote or None,
                chars=(row.first_char, row.last_char) if is_exact else None,  # type: ignore[arg-type]
            )
        return schema.CommentRecord(
            trajectory=of[row.trajectory_id],
            text=row.text,
            anchor=anchor,
            sign=row.sign,  # type: ignore[arg-type]
            **common,
        )

    def to_json(self, record: schema.CommentRecord, item: TrajectoryWriter) -> dict[str, Any]:
        anchor = None
        if record.anchor:
            said = {
                "steps": list(record.anchor.steps),
                "quote": record.anchor.quote,
                "chars": record.anchor.chars,
            }
            anchor = {key: value for key, value in said.items() if value is not None}
        return {
            "trajectory": item(record.trajectory),
            "text": record.text,
            "anchor": anchor,
            "sign": record.sign,
        }

    def evaluations(self, record: schema.CommentRecord) -> Iterator[TrajectoryEvaluation]:
        label = {1: "good", -1: "bad"}.get(record.sign or 0)
        about = (
            {"first_step": record.anchor.steps[0], "last_step": record.anchor.steps[1]}
            if record.anchor
            else {}
        )
        yield TrajectoryEvaluation(record.trajectory, "comment", record.sign, label, record.text, about)

    def agreement_values(self, rows: QuerySet[Any]) -> Iterator[AgreementValue]:
        """The sum of signs per trajectory, positive or negative, nominal."""
        said = rows.filter(sign__isnull=False).values_list(
            "annotation__assignment__annotator__name", "annotation__assignment__item_id", "trajectory_id"
        )
        totals = said.annotate(total=models.Sum("sign")).order_by()
        for annotator, item, trajectory, total in totals:
            if total:
                yield AgreementValue(annotator, item, trajectory, 1 if total > 0 else -1, "nominal", "sign")


COMMENT = CommentType()
