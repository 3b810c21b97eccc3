"""Whether a page of a trajectory can show why its reward is what it is."""

from django import template

from apps.accounts.models import Project
from apps.rewards.reasons import models_with_reasons

register = template.Library()


@register.simple_tag
def has_reasons(project: Project) -> bool:
    return models_with_reasons(project).exists()
