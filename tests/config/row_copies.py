"""Copies of all rows of a world, so that its lists are long."""

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db import models
from django.db.models import F, UniqueConstraint

from apps.accounts.models import Membership, Project, User
from apps.accounts.project_numbers import ProjectSequence

KEPT = {Project, User, Membership, ProjectSequence}  # one project with its people
_NUMBER, _TEXT = (models.IntegerField,), (models.CharField, models.TextField)


@dataclass
class CopyChanges:
    """Fields in which copies of a row differ: with another value, with a copy of the parent, without the parent."""

    written: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)


def copy_rows(project: Project, count: int) -> dict[type[models.Model], int]:
    """`count` copies of each row that leads to the project. How many rows of each model were copied.

    A copy keeps the parents of its row, so that the parents' lists grow: a campaign has many items. Where a row may be
    there once for each parent, the copy has a copy of that parent: an annotator has many assignments, each to an item.
    """
    copies: dict[tuple[type[models.Model], Any], list[models.Model]] = {}
    copied = {}
    for model in _by_dependence():
        rows = list(model._default_manager.filter(**_path_to_project(model, project)).order_by("pk"))
        if model in KEPT or not rows:
            continue
        changes = _changes(model, {parent for parent, _ in copies})
        if changes is None:
            continue
        made = [_copy(row, number, changes, copies) for row in rows for number in range(count)]
        model._default_manager.bulk_create(made)
        for place, row in enumerate(rows):
            copies[model, row.pk] = list(made[place * count : (place + 1) * count])
        copied[model] = len(rows)
    return copied


def _copy(
    row: models.Model,
    number: int,
    changes: CopyChanges,
    copies: dict[tuple[type[models.Model], Any], list[models.Model]],
) -> models.Model:
    model = type(row)
    values = {}
    for column in model._meta.concrete_fields:
        value = getattr(row, column.attname)
        if isinstance(column, models.ForeignKey):
            if column.name in changes.emptied:
                value = None
            elif column.name in changes.moved and value is not None:
                parent: Any = copies[column.related_model, value][number]
                value = getattr(parent, column.target_field.attname)
        elif column.primary_key:
            if isinstance(column, models.AutoField):
                continue
            value = _another(column, value, number)
        elif column.name in changes.written and value not in (None, ""):
            value = _another(column, value, number)
        values[column.attname] = value
    return model(**values)


def _another(column: Any, value: Any, number: int) -> Any:
    if isinstance(column, models.UUIDField):
        return uuid.uuid4()
    if isinstance(column, _NUMBER):
        return value + 10 * (number + 1)  # the rows that are copied have small numbers
    if isinstance(column, _TEXT):
        mark = f"-{number}"
        return f"{value[: (column.max_length or 1000) - len(mark)]}{mark}"
    raise TypeError(f"{column} is unique, and no copy of it is known.")


def _unique_sets(model: type[models.Model]) -> Iterator[tuple[str, ...]]:
    for column in model._meta.concrete_fields:
        if column.unique and not isinstance(column, models.AutoField):
            yield (column.name,)
    yield from (tuple(names) for names in model._meta.unique_together)
    for constraint in model._meta.constraints:
        if isinstance(constraint, UniqueConstraint):
            yield tuple(constraint.fields) or tuple(_fields_in(constraint.expressions))


def _fields_in(expressions: Iterable[Any]) -> Iterator[str]:
    for expression in expressions:
        if isinstance(expression, F):
            yield expression.name  # type: ignore[attr-defined]
        else:
            yield from _fields_in(expression.get_source_expressions())


def _changes(model: type[models.Model], copied: set[type[models.Model]]) -> CopyChanges | None:
    """What tells copies apart in each unique set; None where nothing can, as there may be one row."""
    changes = CopyChanges()
    sets = list(_unique_sets(model))
    for names in sets:
        changes.written |= set([name for name in names if _is_writable(model, name)][-1:])
    for names in sets:
        if set(names) & (changes.written | changes.moved | changes.emptied):
            continue
        parents = [
            column for column in map(model._meta.get_field, names) if isinstance(column, models.ForeignKey)
        ]
        if movable := [column.name for column in parents if column.related_model in copied]:
            changes.moved.add(min(movable, key=lambda name: name in ("annotator", "campaign")))
        elif empty := [column.name for column in parents if column.null]:
            changes.emptied.add(empty[0])
        else:
            return None
    return changes


def _is_writable(model: type[models.Model], name: str) -> bool:
    column: Any = model._meta.get_field(name)
    return isinstance(column, (*_NUMBER, *_TEXT, models.UUIDField)) and not column.choices


def _path_to_project(model: type[models.Model], project: Project) -> dict[str, Any]:
    """A filter by the project: the shortest way of foreign keys. Rows of no project have none, and are not copied."""
    ways: list[tuple[type[models.Model], str]] = [(model, "")]
    seen = {model}
    while ways:
        here, way = ways.pop(0)
        if here is Project:
            return {way.removesuffix("__") or "pk": project.pk}
        for column in here._meta.concrete_fields:
            if isinstance(column, models.ForeignKey) and column.related_model not in seen | {User}:
                seen.add(column.related_model)
                ways.append((column.related_model, f"{way}{column.name}__"))
    return {"pk__in": []}


def _by_dependence() -> list[type[models.Model]]:
    """All models, each after those that its foreign keys name."""
    ordered: list[type[models.Model]] = []

    def add(model: type[models.Model], above: tuple[type[models.Model], ...]) -> None:
        if model in ordered or model in above:
            return
        for column in model._meta.concrete_fields:
            if isinstance(column, models.ForeignKey):
                add(column.related_model, (*above, model))
        ordered.append(model)

    for model in apps.get_models():
        if model._meta.managed and not model._meta.proxy:
            add(model, ())
    return ordered
