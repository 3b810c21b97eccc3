"""The filter in the JSON API: as query parameters of lists, and as a field of bodies."""

from typing import TYPE_CHECKING, Annotated, Any

from ninja import Field, Schema
from pydantic import create_model

from apps.core.http.document_types import described
from apps.trajectories.filter_fields import FILTER_FIELDS, ConditionField, read_number
from apps.trajectories.filters import TrajectoryFilter, parse_filter


def _parameter(field: ConditionField) -> tuple[Any, Any]:
    if field.is_list:
        return list[str], Field([], description=field.help)
    return str | None, Field(None, description=field.help)


if TYPE_CHECKING:  # mypy sees no fields of a model that is created

    class FilterParameters(Schema):
        pass

else:
    FilterParameters = create_model(
        "FilterParameters",
        __base__=Schema,
        **{name: _parameter(field) for name, field in FILTER_FIELDS.items()},
    )


def filter_of_parameters(parameters: FilterParameters) -> TrajectoryFilter:
    """Raises FilterError."""
    return parse_filter(parameters.dict(), pointer=None)


def _property(field: ConditionField) -> dict[str, Any]:
    type_ = {"type": ["number", "string"] if field.read is read_number else ["string", "integer", "boolean"]}
    document = {"anyOf": [type_, {"type": "array", "items": type_}]} if field.is_list else type_
    return document | {"description": field.help}


_OBJECT = {
    "type": "object",
    "properties": {name: _property(field) for name, field in FILTER_FIELDS.items()},
    "additionalProperties": False,
}
_ADDRESS = {
    "type": "string",
    "description": "As the address of the trajectory list has it: agent=desk&success=no",
}
FilterDocument = Annotated[
    str | dict[str, Any],
    described(
        "TrajectoryFilter",
        {
            "description": "Which trajectories; all conditions have to hold, and an empty filter admits all.",
            "anyOf": [_ADDRESS, _OBJECT],
        },
    ),
]
