"""Template filters for flags of scores."""

from django import template

from apps.rewards import score_flags

register = template.Library()


@register.filter
def flag_meaning(flag: str) -> str:
    return score_flags.flag_meaning(str(flag))
