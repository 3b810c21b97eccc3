"""Figures of a campaign that were calculated before, for as long as nothing that they depend on has changed.

Each process keeps its own. What is kept is found by a fingerprint of all rows that figures of annotations are made of,
read each time: it costs a tenth of the figures, and there is no moment at which they are stale.
"""

from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from django.db import connection

from apps.annotation.feedback_types import FEEDBACK_TYPES
from apps.annotation.models import Campaign

Figures = TypeVar("Figures")
Calculation = Callable[[Campaign], Figures]

MAX_KEPT = 32  # figures of 57,600 annotations take some 2 MB
_kept: OrderedDict[tuple[int, Calculation[Any]], tuple[tuple[Any, ...], Any]] = OrderedDict()
_lock = Lock()

# Per part, how many rows there are and the sum of a hash of each. Annotations with what their assignments, items and
# annotators say of them; answers of each type; lengths of the trajectories; criteria; the campaign.
_FINGERPRINT = """
    WITH given AS MATERIALIZED (
        SELECT annotation.id, assignment.item_id, hash_record_extended(ROW(
            annotation.*, assignment.id, assignment.item_id, assignment.annotator_id, assignment.state,
            assignment.is_adjudication, assignment.swapped, assignment.finished_at, item.purpose, item.in_pilot,
            annotator.name
        ), 0) AS hash
        FROM annotation_item item
        JOIN annotation_assignment assignment ON assignment.item_id = item.id
        JOIN annotation_annotation annotation ON annotation.assignment_id = assignment.id
        JOIN annotation_annotator annotator ON annotator.id = assignment.annotator_id
        WHERE item.campaign_id = %(campaign)s
    )
    SELECT (SELECT ROW(count(*), sum(hash))::text FROM given),
        {answers},
        (SELECT ROW(count(*), sum(hash_record_extended(
                ROW(place.item_id, place.position, trajectory.id, trajectory.token_count), 0)))::text
            FROM annotation_itemtrajectory place
            JOIN trajectories_trajectory trajectory ON trajectory.id = place.trajectory_id
            WHERE place.item_id IN (SELECT item_id FROM given)),
        (SELECT ROW(count(*), sum(hash_record_extended(
                ROW(criterion.id, criterion.name, criterion.answer_type), 0)))::text
            FROM rubrics_criterion criterion WHERE criterion.project_id = %(project)s),
        (SELECT ROW(name, feedback_types, suggester_id)::text FROM annotation_campaign WHERE id = %(campaign)s)
"""
_ANSWERS = """
        (SELECT ROW(count(*), sum(hash_record_extended(ROW({columns}), 0)))::text FROM {table} answer
            WHERE answer.annotation_id IN (SELECT id FROM given))"""


def kept_figures(campaign: Campaign, calculate: Calculation[Figures]) -> Figures:
    """What `calculate` makes of the campaign, which callers must not change. calculate: a function of a module."""
    key, fingerprint = (campaign.pk, calculate), figures_fingerprint(campaign)
    with _lock:
        known = _kept.get(key)
        if known is not None and known[0] == fingerprint:
            _kept.move_to_end(key)
            figures: Figures = known[1]
            return figures
    figures = calculate(campaign)
    # Annotations that came while it calculated may be in a part of it: of that moment there is no fingerprint.
    if figures_fingerprint(campaign) == fingerprint:
        with _lock:
            _kept[key] = fingerprint, figures
            _kept.move_to_end(key)
            while len(_kept) > MAX_KEPT:
                _kept.popitem(last=False)
    return figures


def figures_fingerprint(campaign: Campaign) -> tuple[Any, ...]:
    """Differs after any change of what figures of the campaign's annotations are made of."""
    parts = {"campaign": campaign.pk, "project": campaign.project_id}
    with connection.cursor() as cursor:
        cursor.execute(_fingerprint_statement(), parts)
        row: tuple[Any, ...] = cursor.fetchone()
    return row


@cache
def _fingerprint_statement() -> str:
    answers = ",".join(
        _ANSWERS.format(
            table=kind.model._meta.db_table,
            # JSON has no hash: as text.
            columns=", ".join(
                f"answer.{field.column}::text"
                if field.get_internal_type() == "JSONField"
                else f"answer.{field.column}"
                for field in kind.model._meta.concrete_fields
            ),
        )
        for kind in FEEDBACK_TYPES.values()
    )
    return _FINGERPRINT.format(answers=answers)
