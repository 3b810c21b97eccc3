"""Patterns of key nodes in words."""

from django import template

from workers.schema.policy_checks import ValueTest

register = template.Library()


@register.filter
def demand(test: ValueTest) -> str:
    """What is demanded of an argument, as policy checks say it."""
    from workers.engine.rules.policy_checks import demand_text  # loads the engine

    return demand_text(test)
