"""Reads of language models."""

from django.db.models import Count, QuerySet

from apps.accounts.models import Project
from apps.core.errors import NotFound
from apps.judges.models import LanguageModel


def language_models_of(project: Project) -> "QuerySet[LanguageModel]":
    """By name, with how many answers of each are kept (`kept`)."""
    rows = LanguageModel.objects.filter(project=project).select_related("project")
    return rows.annotate(kept=Count("answers")).order_by("name")


def language_model_named(project: Project, name: str) -> LanguageModel:
    found = LanguageModel.objects.filter(project=project, name=name).first()
    if found is None:
        there = ", ".join(project.language_models.values_list("name", flat=True)) or "none"
        raise NotFound(
            f"There is no language model {name} in {project.slug} (there: {there}). An owner adds one on the page "
            "Language models."
        )
    return found
