"""What the work page is made of: the campaign around it, the item, its rows."""

import math
import uuid
from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, QueryDict

from apps.annotation import selectors
from apps.annotation.feedback_types import KINDS, SIDES, AnyFeedbackType, Shown
from apps.annotation.feedback_types.base import LETTERS, Fields
from apps.annotation.feedback_types.step import BOTH, NONE, STEP, asks_first_error
from apps.annotation.models import Annotator, Assignment, Campaign
from apps.core.errors import DomainError
from apps.trajectories.alignment import Alignment
from apps.trajectories.card_rendering import StepCard
from apps.trajectories.side_by_side import align_stored, card_rows
from apps.trajectories.step_cards import step_cards
from workers.schema.patterns import TextPattern

ROWS = 20  # rows brought at a time
_OF_ONE = TextPattern(r"step-(?:left|right)-(\d{1,6})(-correction)?")
MOST_FIELDS = 5000  # that say something
_NUMBER = TextPattern(r"comment-(\d{1,4})-")
SKIP_REASONS = ("I do not know enough about this", "The two are the same to me", "Too long", "Cannot be read")
FLAG_REASONS = ("Broken or missing text", "The task makes no sense", "Harmful or private content")


def frame(campaign: Campaign, annotator: Annotator, *, adjudicates: bool = False) -> dict[str, Any]:
    return {
        "project": campaign.project,
        "campaign": campaign,
        "mine": selectors.my_campaign(campaign, annotator),
        "previous": selectors.history_of(annotator, campaign, adjudications=adjudicates).first(),
    }


def around(assignment: Assignment) -> dict[str, Any]:
    """`frame` of an item that is there already."""
    return frame(assignment.item.campaign, assignment.annotator, adjudicates=assignment.is_adjudication)


def item(
    request: HttpRequest, assignment: Assignment, *, fields: Fields | None = None, everything: bool = False
) -> dict[str, Any]:
    """fields: what was just posted; without it the draft, or what was said last."""
    shown = selectors.shown_of(assignment)
    alignment = _alignment_of(shown)
    fields = selectors.fields_of(assignment, shown) if fields is None else fields
    fields = _shared_marks(fields, shown, alignment)
    everything = everything or "all" in request.GET
    kinds = [KINDS[name] for name in assignment.item.campaign.feedback_types]
    prefix = _prefix(shown, alignment, fields) if everything else None
    rows = _rows(shown, alignment, 0, len(alignment.rows) if everything else ROWS, fields)
    return {
        "assignment": assignment,
        "task": assignment.item.task,
        "sides": [_side(shown, side) for side in range(len(shown.trajectories))],
        "alignment": alignment,
        "everything": everything,
        "idempotency_key": uuid.uuid4(),
        "kinds": kinds,
        "asked": [{"kind": kind, "questions": kind.questions(fields, shown)} for kind in kinds],
        "comments": _comments(fields, blank="comment" in request.GET),
        "criteria": shown.criteria,
        "marking": _marking(kinds, shown),
        "held": _held(fields, prefix, rows["rows"]),
        "skip": leaving("skip"),
        "flag": leaving("flag"),
        "others": selectors.said_of(assignment.item, shown) if assignment.is_adjudication else [],
        "prefix": prefix,
        **rows,
    }


def _marking(kinds: Sequence[AnyFeedbackType], shown: Shown) -> str:
    """How steps are marked: by `labels`, by the `first` error, or not at all."""
    if STEP not in kinds:
        return ""
    return "first" if asks_first_error(shown) else "labels"


def more(assignment: Assignment, start: str) -> dict[str, Any]:
    """The rows from `start` on, or, by the word `prefix`, the steps all begin with."""
    shown = selectors.shown_of(assignment)
    alignment = _alignment_of(shown)
    fields = _shared_marks(selectors.fields_of(assignment, shown), shown, alignment)
    campaign = assignment.item.campaign
    kinds = [KINDS[name] for name in campaign.feedback_types]
    context: dict[str, Any] = {"campaign": campaign, "marking": _marking(kinds, shown)}
    if start == "prefix":
        return context | {"prefix": _prefix(shown, alignment, fields), "trajectory": shown.on_side(0)}
    if not start.isdecimal() or len(start) > 9:
        raise DomainError(f"start is {start!r}; it must be the number of a row.")
    return context | _rows(shown, alignment, int(start), int(start) + ROWS, fields)


def leaving(how: str) -> dict[str, Any]:
    """What the sheet that asks for a reason says."""
    if how == "skip":
        return {
            "how": how,
            "title": "Skip this item",
            "about": "Others will judge it.",
            "reasons": SKIP_REASONS,
        }
    return {
        "how": how,
        "title": "Flag this item",
        "about": "The researchers see your words; the item goes to somebody else.",
        "reasons": FLAG_REASONS,
    }


def posted(data: QueryDict, campaign: Campaign) -> dict[str, str]:
    """The fields of a judgement in a posted form, newlines as the database keeps them."""
    names = [KINDS[name].names for name in campaign.feedback_types]
    said = {
        name: str(value).replace("\r\n", "\n").replace("\0", "\ufffd")
        for name, value in data.items()
        if value and any(one.fullmatch(name) for one in names)
    }
    if len(said) > MOST_FIELDS:
        raise DomainError(f"One judgement holds at most {MOST_FIELDS} answers.")
    return said


def seconds(data: QueryDict) -> float | None:
    """Active seconds as the browser counted them; None where nobody counted."""
    raw = data.get("active_seconds", "")
    try:
        value = float(raw) if raw else None
    except ValueError:
        raise DomainError(f"active_seconds is {raw!r}; it must be a number.") from None
    return value if value is None or math.isfinite(value) else None


def _alignment_of(shown: Shown) -> Alignment:
    """How the shown sides stand beside each other; one trajectory alone has no prefix."""
    return align_stored(tuple(shown.on_side(side).pk for side in range(len(shown.trajectories))))


def _rows(shown: Shown, alignment: Alignment, start: int, stop: int, fields: Fields) -> dict[str, Any]:
    runs = [shown.on_side(side) for side in range(len(shown.trajectories))]
    rows = [
        {
            "number": row.number,
            "differs": row.differs,
            "cells": [
                _side(shown, side) | _cell(card, SIDES[side], shown, fields)
                for side, card in enumerate(row.cards)
            ],
        }
        for row in card_rows(alignment, [run.pk for run in runs], start, stop)
    ]
    return {
        "rows": rows,
        "next_start": stop if stop < len(alignment.rows) else None,
        "row_count": len(alignment.rows),
    }


def _side(shown: Shown, side: int) -> dict[str, Any]:
    """`side` names it in forms, `letter` on the page."""
    return {"side": SIDES[side], "letter": LETTERS[side], "trajectory": shown.on_side(side)}


def _prefix(shown: Shown, alignment: Alignment, fields: Fields) -> list[dict[str, Any]]:
    """The steps all runs begin with, shown once: what is marked there is said of all of them."""
    cards = step_cards(shown.on_side(0).pk, 0, alignment.prefix)
    return [_cell(card, BOTH, shown, fields) for card in cards]


def _cell(card: StepCard | None, side: str, shown: Shown, fields: Fields) -> dict[str, Any]:
    """A card, and for an agent's step what is marked on it."""
    if card is None or card.agent_step is None:
        return {"card": card}
    name = f"step-{side}-{card.agent_step}"
    correction = fields.get(f"{name}-correction", "")
    return {
        "card": card,
        "mark": {"name": name, "value": fields.get(name, ""), "correction": correction}
        | {"first": f"first-{side}", "is_first": fields.get(f"first-{side}") == str(card.agent_step)},
    }


def _shared_marks(fields: Fields, shown: Shown, alignment: Alignment) -> dict[str, str]:
    """Marks of either run on a step that both begin with, under the name they have where it is shown once."""
    if len(shown.trajectories) != 2 or not alignment.prefix:
        return dict(fields)
    count = shown.on_side(0).steps.filter(index__lt=alignment.prefix, agent_step__isnull=False).count()
    out: dict[str, str] = {}
    for name, value in fields.items():
        if (match := _OF_ONE.fullmatch(name)) and int(match[1]) < count:
            name = f"step-{BOTH}-{match[1]}{match[2] or ''}"
        elif (
            name in ("first-left", "first-right")
            and value.isdecimal()
            and len(value) < 7
            and int(value) < count
        ):
            name = f"first-{BOTH}"
        out[name] = value
    return out


def _held(fields: Fields, prefix: list[dict[str, Any]] | None, rows: list[dict[str, Any]]) -> dict[str, str]:
    """Marks on steps that are not on the page yet: kept as hidden fields, before the ones that are."""
    cells = [*(prefix or ()), *(cell for row in rows for cell in row["cells"])]
    marks = [cell["mark"] for cell in cells if cell.get("mark")]
    there = {name for mark in marks for name in (mark["name"], f"{mark['name']}-correction")}
    there |= {mark["first"] for mark in marks if mark["is_first"]}
    return {
        name: value
        for name, value in fields.items()
        if name not in there and value != NONE and STEP.names.fullmatch(name)
    }


def _comments(fields: dict[str, str], *, blank: bool) -> list[dict[str, Any]]:
    """Comments as the form shows them; the last one is empty where there is none or another is wanted."""
    numbers = sorted({int(match[1]) for name in fields if (match := _NUMBER.match(name))})
    rows = [_comment(fields, number) for number in numbers]
    rows = [row for row in rows if row["text"] or row["quote"] or row["from"]]
    if blank or not rows:
        rows.append(_comment({}, numbers[-1] + 1 if numbers else 0))
    return rows


def _comment(fields: dict[str, str], number: int) -> dict[str, Any]:
    names = ("text", "on", "from", "to", "sign", "quote")
    return {"number": number} | {name: fields.get(f"comment-{number}-{name}", "") for name in names}
