"""The components and transforms of a spec as cards of a form: their fields, kinds, defaults and help."""

from typing import Any, get_args

import msgspec

from workers.schema.endpoints import Component, Normalise, Transform

# The same words as for people everywhere; the first is the default of a new card.
TITLES = {
    "reward_model": "Reward model",
    "criterion": "Criterion of a model",
    "step_penalty": "Step penalty",
    "token_penalty": "Token penalty",
    "repetition_penalty": "Repetition penalty",
    "tool_format": "Tool call format",
    "tool_match": "Tool calls as in the reference",
    "pattern": "Pattern",
    "verifier": "Verifier (HTTP)",
    "judge": "Judge (language model)",
    "normalise": "Normalise",
    "clip": "Clip",
    "squash": "Squash",
    "delta": "Differences of step scores",
    "gate": "Gate",
    "pessimism": "Pessimism",
}
_CHOSEN = {
    "model": "model",
    "judge": "judge",
    "component": "component",
}  # fields that name something there is
_CHOICES = {("pattern", "within"): ["last", "all"]}


def part_schemas() -> dict[str, list[dict[str, Any]]]:
    """For static/js/compose.js: {"components": [{type, title, help, fields}], "transforms": the same}."""
    return {
        "components": [_part_schema(part) for part in get_args(Component)],
        "transforms": [_part_schema(part) for part in get_args(Transform)],
    }


def _part_schema(part: type[msgspec.Struct]) -> dict[str, Any]:
    kind = str(part.__struct_config__.tag)
    return {
        "type": kind,
        "title": TITLES[kind],
        "help": " ".join((part.__doc__ or "").replace("`", "").split()),
        "fixed": part is Normalise,
        "fields": [_field_schema(kind, field) for field in msgspec.structs.fields(part)],
    }


def _field_schema(kind: str, field: msgspec.structs.FieldInfo) -> dict[str, Any]:
    names = _type_names(field.type)
    schema = {
        "name": field.name,
        "label": field.name.replace("_", " ").capitalize(),
        "kind": _CHOSEN.get(field.name) or ("number" if names & {int, float} else "text"),
        "whole": int in names and float not in names,
        "required": field.required,
        "default": None if field.default is msgspec.NODEFAULT else field.default,
    }
    choices = _CHOICES.get((kind, field.name))
    return schema | ({"kind": "choice", "choices": choices} if choices else {})


def _type_names(hint: Any) -> set[Any]:
    """The plain types in an annotation."""
    arguments = get_args(hint)
    if not arguments:
        return {hint}
    first = arguments[:1] if hasattr(hint, "__metadata__") else arguments
    return set().union(*(_type_names(argument) for argument in first))
