"""What a record of a store says, as `observations` keeps it in a span: one attribute with what went in and came out."""

from typing import Any

from apps.trajectories.formats.tracing.span_content import SpanContent, observed, token_counts

FIELD = "observation"


def content(name: str, given: dict[str, Any]) -> SpanContent | None:
    """name: of the span. None where it is no record of a store."""
    fields = given.get(FIELD)
    if not isinstance(fields, dict):
        return None
    cost = fields.get("cost")
    return observed(
        fields.get("kind", "chain"),
        fields.get("input"),
        fields.get("output"),
        name=str(fields.get("name") or name),
        call_id=fields.get("call_id"),
        model=str(fields.get("model") or ""),
        conversation=str(fields.get("conversation") or ""),
        node=str(fields.get("node") or ""),
        usage=token_counts(fields.get("usage")),
        cost=cost if isinstance(cost, int | float) and not isinstance(cost, bool) else None,
    )
