"""`{% load charts %}`: a chart with its table, and the colour of a model or training run."""

import json
from typing import Any

from django import template
from django.utils.html import format_html

from apps.core.charts import chart_table, palette_colour

register = template.Library()


@register.inclusion_tag("components/_chart.html")
def chart(spec: dict[str, Any], name: str, label: str, size: str = "", live: bool = False) -> dict[str, Any]:
    """Of `apps.core.charts`. name: id of the element. label: in words, for who cannot see it. size: is-small.

    live: the numbers come with a fragment that polls, by {% chart_data %}.
    """
    context = {"spec": spec, "name": name, "label": label, "size": size, "live": live}
    return context | {"document": json.dumps(spec)} | _table_context(spec, name)


@register.inclusion_tag("components/_chart_data.html")
def chart_data(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """The numbers of a chart that is live, for the script that draws it."""
    return {"document": json.dumps(spec), "data_id": f"{name}-data"}


@register.inclusion_tag("components/_chart_table.html", name="chart_table")
def swapped_chart_table(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """In an answer of htmx: takes the place of the table of a chart that is live."""
    return {"swapped": True} | _table_context(spec, name)


@register.simple_tag
def swatch(style: int | None) -> str:
    """The colour that a training run, and its model, have in every chart."""
    if style is None:
        return ""
    return format_html('<span class="swatch is-c{}" aria-hidden="true"></span>', palette_colour(style))


def _table_context(spec: dict[str, Any], name: str) -> dict[str, Any]:
    return {"data_id": f"{name}-data", "table_id": f"{name}-table", "table": chart_table(spec)}
