"""What the work page is made of: the campaign around it, the item, its rows."""

import math
import re
import uuid
from typing import Any

from django.http import HttpRequest, QueryDict

from apps.annotation import selectors
from apps.annotation.alignment import Alignment, Row
from apps.annotation.kinds import KINDS, Shown
from apps.annotation.models import Annotator, Assignment, Campaign
from apps.core.errors import DomainError
from apps.trajectories.cards import StepCard
from apps.trajectories.selectors import step_cards

ROWS = 20  # rows brought at a time
LETTERS = ("A", "B")
SIDES = ("left", "right")
_FIELDS = re.compile(r"choice|comment-\d{1,4}-(text|on|from|to|sign|quote)")
_NUMBER = re.compile(r"comment-(\d{1,4})-")
SKIP_REASONS = ("I do not know enough about this", "The two are the same to me", "Too long", "Cannot be read")
FLAG_REASONS = ("Broken or missing text", "The task makes no sense", "Harmful or private content")


def frame(campaign: Campaign, annotator: Annotator) -> dict[str, Any]:
    return {
        "project": campaign.project,
        "campaign": campaign,
        "mine": selectors.my_campaign(campaign, annotator),
        "previous": selectors.history_of(annotator, campaign).first(),
    }


def item(
    request: HttpRequest, assignment: Assignment, *, fields: dict[str, str] | None = None
) -> dict[str, Any]:
    """fields: what was just posted; without it the draft, or what was said last."""
    shown = selectors.shown_of(assignment)
    fields = selectors.fields_of(assignment, shown) if fields is None else fields
    alignment = selectors.alignment_of(shown)
    everything = "all" in request.GET
    sides = [_side(shown, side) for side in range(len(shown.trajectories))]
    return {
        "assignment": assignment,
        "task": assignment.item.task,
        "sides": sides,
        "alignment": alignment,
        "everything": everything,
        "idempotency_key": uuid.uuid4(),
        "choice": fields.get("choice", ""),
        "comments": _comments(fields, blank="comment" in request.GET),
        "kinds": [KINDS[name] for name in assignment.item.campaign.kinds],
        "skip": leaving("skip"),
        "flag": leaving("flag"),
        "prefix_cards": step_cards(shown.on_side(0).pk, 0, alignment.prefix) if everything else None,
        **_rows(shown, alignment, 0, len(alignment.rows) if everything else ROWS),
    }


def more(assignment: Assignment, start: str) -> dict[str, Any]:
    """The rows from `start` on, or, by the word `prefix`, the steps both begin with."""
    shown = selectors.shown_of(assignment)
    alignment = selectors.alignment_of(shown)
    context: dict[str, Any] = {"campaign": assignment.item.campaign}
    if start == "prefix":
        cards = step_cards(shown.on_side(0).pk, 0, alignment.prefix)
        return context | {"prefix_cards": cards, "trajectory": shown.on_side(0)}
    if not start.isdecimal() or len(start) > 9:
        raise DomainError(f"start is {start!r}; it must be the number of a row.")
    return context | _rows(shown, alignment, int(start), int(start) + ROWS)


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


def posted(data: QueryDict) -> dict[str, str]:
    """The fields of a judgement in a posted form, newlines as the database keeps them."""
    said = {name: str(value).replace("\r\n", "\n") for name, value in data.items() if _FIELDS.fullmatch(name)}
    if len(said) > 1000:
        raise DomainError("One judgement holds at most 100 comments.")
    return {name: value.replace("\0", "\ufffd") for name, value in said.items()}


def seconds(data: QueryDict) -> float | None:
    """Active seconds as the browser counted them; None where nobody counted."""
    raw = data.get("active_seconds", "")
    try:
        value = float(raw) if raw else None
    except ValueError:
        raise DomainError(f"active_seconds is {raw!r}; it must be a number.") from None
    return value if value is None or math.isfinite(value) else None


def _rows(shown: Shown, alignment: Alignment, start: int, stop: int) -> dict[str, Any]:
    wanted = alignment.rows[start:stop]
    cards = [_cards(shown, side, wanted) for side in range(len(shown.trajectories))]
    rows = [
        {
            "number": start + place,
            "differs": row.differs and len(cards) > 1,
            "cells": [
                _side(shown, side) | {"card": by_index.get(at)}
                for side, (by_index, at) in enumerate(zip(cards, (row.left, row.right), strict=False))
            ],
        }
        for place, row in enumerate(wanted)
    ]
    return {
        "rows": rows,
        "next_start": stop if stop < len(alignment.rows) else None,
        "row_count": len(alignment.rows),
    }


def _side(shown: Shown, side: int) -> dict[str, Any]:
    """`side` names it in forms, `letter` on the page."""
    return {"side": SIDES[side], "letter": LETTERS[side], "trajectory": shown.on_side(side)}


def _cards(shown: Shown, side: int, rows: tuple[Row, ...]) -> dict[int | None, StepCard]:
    indices = [at for row in rows if (at := row.left if side == 0 else row.right) is not None]
    if not indices:
        return {}
    found = step_cards(shown.on_side(side).pk, min(indices), max(indices) + 1)
    return {card.index: card for card in found}


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
