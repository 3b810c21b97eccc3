"""Every table that holds rows of projects, and the way from its rows to their project."""

from functools import cache

from django.apps import apps
from django.db import models

from apps.accounts.models import Project

# Outlive their project, or have none.
OUTSIDE = frozenset({"accounts.AuditEvent"})


@cache
def project_paths() -> dict[type[models.Model], str]:
    """By model, the lookup that leads to the project; nearer ones come first.

    By relations that are always set, or that name the project itself and delete with it: a machine or a token without
    a project is of all of them, so that those of a deleted project must not stay without one.
    """
    found: dict[type[models.Model], str] = {Project: "pk"}
    waiting = [
        model
        for model in apps.get_models(include_auto_created=True)
        if model is not Project and model.__module__.startswith("apps.") and model._meta.label not in OUTSIDE
    ]
    while True:
        reached = {model: path for model in waiting if (path := _shortest(model, found)) is not None}
        if not reached:
            return found
        found |= reached
        waiting = [model for model in waiting if model not in reached]


def project_rows(model: type[models.Model], project_key: int) -> models.QuerySet[models.Model]:
    return model._base_manager.filter(**{project_paths()[model]: project_key})


def _shortest(model: type[models.Model], found: dict[type[models.Model], str]) -> str | None:
    paths = [
        field.name if (rest := found[field.related_model]) == "pk" else f"{field.name}__{rest}"
        for field in model._meta.concrete_fields
        if isinstance(field, models.ForeignKey)
        and (
            not field.null
            or (field.related_model is Project and field.remote_field.on_delete is models.CASCADE)
        )
        and isinstance(field.related_model, type)
        and field.related_model is not model
        and field.related_model in found
    ]
    return min(paths, key=lambda path: (path.count("__"), path), default=None)
