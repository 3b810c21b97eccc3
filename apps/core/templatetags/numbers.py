"""`{% load numbers %}`: the formats of `apps.core.number_format` as filters. Empty for no number."""

from collections.abc import Callable
from typing import Any

from django import template

from apps.core import number_format

register = template.Library()


def _or_empty(value: Any, show: Callable[[Any], str]) -> str:
    return "" if value is None or value == "" else show(value)


@register.filter
def percent(share: Any) -> str:
    return _or_empty(share, number_format.percent)


@register.filter
def points(difference: Any) -> str:
    return _or_empty(difference, number_format.points)


@register.filter
def points_interval(interval: Any) -> str:
    return _or_empty(interval, number_format.points_interval)


@register.filter
def decimal(value: Any, places: int = 2) -> str:
    return _or_empty(value, lambda number: number_format.decimal(number, places))


@register.filter
def significant(value: Any) -> str:
    return _or_empty(value, number_format.significant)


@register.filter
def duration(seconds: Any) -> str:
    return _or_empty(seconds, number_format.duration)


@register.filter
def percent_interval(interval: Any) -> str:
    return _or_empty(interval, number_format.percent_interval)


@register.filter
def decimal_interval(interval: Any, places: int = 2) -> str:
    return _or_empty(interval, lambda numbers: number_format.decimal_interval(numbers, places))
