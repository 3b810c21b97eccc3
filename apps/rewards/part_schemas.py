"""The components and transforms of a spec as cards of a form: their fields, kinds, defaults and help."""

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from workers.schema.components import Component
from workers.schema.guards import GuardSettings
from workers.schema.patterns import TextPattern
from workers.schema.transforms import Normalise, Transform

# Fields that name something there is.
_CHOSEN = {name: name for name in ("model", "judge", "program", "component", "components")}
_TEXT_AREAS = {"code": "code"}  # texts of many lines
_NOT_TYPED = frozenset({"code_hash"})  # computed when a revision is deployed
_CHOICE_PATTERN = TextPattern(r"\^\((\w+(?:\|\w+)+)\)\$")


def part_schemas() -> dict[str, list[dict[str, Any]]]:
    """For static/js/compose.js: {"components": [{type, title, help, fields}], "transforms": the same}."""
    return {
        "components": [_part_schema(part) for part in get_args(Component)],
        "transforms": [_part_schema(part) for part in get_args(Transform)],
    }


def guard_schema() -> dict[str, Any]:
    """The guard settings of a spec, in the same form."""
    fields = msgspec.structs.fields(GuardSettings)
    whole, of_fields = _split_help(GuardSettings.__doc__ or "", {field.name for field in fields})
    return {
        "title": "Guard settings",
        "help": whole,
        "fields": [_field_schema(field) | {"help": of_fields.get(field.name, "")} for field in fields],
    }


def _part_schema(part: Any) -> dict[str, Any]:
    fields = msgspec.structs.fields(part)
    whole, of_fields = _split_help(part.__doc__ or "", {field.name for field in fields})
    return {
        "type": str(part.__struct_config__.tag),
        "title": part.title,
        "help": whole,
        "fixed": part is Normalise,
        "fields": [
            _field_schema(field) | {"help": of_fields.get(field.name, "")}
            for field in fields
            if field.name not in _NOT_TYPED
        ],
    }


def _split_help(text: str, names: set[str]) -> tuple[str, dict[str, str]]:
    """What a docstring says of the whole part, and of its fields: from `name: ` or `name, name: ` to the next one."""
    whole: list[str] = []
    of_fields: dict[str, list[str]] = {}
    current = [whole]
    for sentence in " ".join(text.replace("`", "").split()).removesuffix(".").split(". "):
        head, colon, rest = sentence.partition(": ")
        listed = head.split(", ")
        if colon and names.issuperset(listed):
            current = [of_fields.setdefault(name, []) for name in listed]
            sentence = f"{rest[0].upper()}{rest[1:]}"
        for sentences in current:
            sentences.append(f"{sentence}.")
    return " ".join(whole), {name: " ".join(sentences) for name, sentences in of_fields.items()}


def _label(name: str) -> str:
    return "URL" if name == "url" else name.replace("_", " ").capitalize()


def _field_schema(field: msgspec.structs.FieldInfo) -> dict[str, Any]:
    choices = _choices(field.type)
    names = _type_names(field.type)
    return {
        "name": field.name,
        "label": _label(field.name),
        "kind": "choice"
        if choices
        else (_CHOSEN | _TEXT_AREAS).get(field.name) or _input_kind(field.type, names),
        "whole": int in names and float not in names,
        "required": field.required,
        "default": None if field.default is msgspec.NODEFAULT else msgspec.to_builtins(field.default),
    } | ({"choices": choices} if choices else {})


def _input_kind(hint: Any, names: set[Any]) -> str:
    """Lists and objects are written as JSON, what is true or false as a box to tick."""
    if _plain(hint) in (tuple, dict):
        return "json"
    if bool in names:
        return "flag"
    return "number" if names & {int, float} else "text"


def _plain(hint: Any) -> Any:
    """The outermost type, without what `Annotated` adds."""
    return _plain(get_args(hint)[0]) if hasattr(hint, "__metadata__") else get_origin(hint) or hint


def _choices(hint: Any) -> list[Any]:
    """Of a `Literal`, or of one that may be None, and of a text whose pattern lists what it may be: `^(last|all)$`."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint):
        (own, *others) = (argument for argument in get_args(hint) if argument is not NoneType)
        return [] if others else _choices(own)
    for meta in getattr(hint, "__metadata__", ()):
        if found := _CHOICE_PATTERN.fullmatch(meta.pattern or ""):
            return str(found[1]).split("|")
    return []


def _type_names(hint: Any) -> set[Any]:
    """The plain types in an annotation."""
    arguments = get_args(hint)
    if not arguments:
        return {hint}
    first = arguments[:1] if hasattr(hint, "__metadata__") else arguments
    return set().union(*(_type_names(argument) for argument in first))
