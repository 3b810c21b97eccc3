"""What the JSON API answers, as frozen objects: short in a notebook, and open to fields of newer servers.

A class declares its fields with their types; `ObjectReader` fills them from decoded JSON. Fields of a newer server are
kept in `extra`; a field that an older server does not send takes its default.
"""

import html
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Generic,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from touchstone_client.errors import BadReply

_LONGEST = 60  # characters of a value in a repr
_NUMBERS = {int: (int,), float: (int, float)}


ClassT = TypeVar("ClassT")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def api_object(kind: type[ClassT]) -> type[ClassT]:
    """A frozen dataclass with the repr of ApiObject."""
    return dataclass(frozen=True, kw_only=True, repr=False)(kind)


@dataclass(frozen=True, kw_only=True, repr=False)
class ApiObject:
    """extra: fields of the answer that this version of the client does not know."""

    extra: dict[str, Any] = field(default_factory=dict, hash=False)
    HIDDEN: ClassVar[tuple[str, ...]] = ()  # fields that are too long for a repr

    def to_dict(self) -> dict[str, Any]:
        """All fields as the API names them, with `extra`; times stay `datetime`, tuples are lists."""
        known = {name: _plain(value) for name, value in self._fields()}
        return {**self.extra, **known}

    def to_row(self) -> dict[str, Any]:
        """`to_dict` with the fields of inner objects as columns: `outcome.reward`."""
        row: dict[str, Any] = {}
        for name, value in self._fields():
            if isinstance(value, ApiObject):
                row |= {f"{name}.{inner}": found for inner, found in value.to_row().items()}
            else:
                row[name] = _plain(value)
        return row | self.extra

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The names of the columns of `to_row`."""
        found: list[str] = []
        for name, hint in _types_of(cls).items():
            inner = isinstance(hint, type) and issubclass(hint, ApiObject)
            found += [f"{name}.{each}" for each in hint.columns()] if inner else [name]
        return tuple(found)

    def _fields(self) -> Iterator[tuple[str, Any]]:
        for each in fields(self):
            if each.name != "extra":
                yield each.name, getattr(self, each.name)

    def _repr_fields(self) -> Iterator[tuple[str, str]]:
        for name, value in self._fields():
            if value not in (None, "", (), {}) and name not in self.HIDDEN:
                yield name, _short(value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in self._repr_fields())})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in self._repr_fields()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


ObjectT = TypeVar("ObjectT", bound=ApiObject)


@dataclass(frozen=True, slots=True)
class ObjectReader(Generic[ObjectT]):
    """`read_object` of one class."""

    kind: type[ObjectT]

    def __call__(self, reply: Any) -> ObjectT:
        return read_object(self.kind, reply)


def read_object(kind: type[ObjectT], reply: Any, at: str = "") -> ObjectT:
    """Raises BadReply with the place of what does not fit."""
    if not isinstance(reply, Mapping):
        raise BadReply(
            f"The reply has {type(reply).__name__} at {at or '/'} where {kind.__name__} is an object."
        )
    known = _types_of(kind)
    values = {
        name: _read_value(known[name], value, f"{at}/{name}")
        for name, value in reply.items()
        if name in known
    }
    missing = [name for name in _required(kind) if name not in values]
    if missing:
        raise BadReply(
            f"The reply has no {at}/{missing[0]}, which {kind.__name__} needs; client and server may be of "
            "different versions: update the older one."
        )
    extra = {str(name): value for name, value in reply.items() if name not in known}
    return kind(**values, extra=extra)


_TYPES: dict[str, dict[str, Any]] = {}  # of fields, by the full name of the class: hints are slow to find


def _types_of(kind: type[ApiObject]) -> dict[str, Any]:
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name not in _TYPES:
        hints = get_type_hints(kind)
        _TYPES[name] = {each.name: hints[each.name] for each in fields(kind) if each.name != "extra"}
    return _TYPES[name]


def _required(kind: type[ApiObject]) -> tuple[str, ...]:
    return tuple(
        each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING
    )


def _read_value(wanted: Any, value: Any, at: str) -> Any:
    origin, arguments = get_origin(wanted), get_args(wanted)
    if wanted is Any:
        return value
    if origin in (Union, UnionType):
        if value is None and NoneType in arguments:
            return None
        wanted = next(argument for argument in arguments if argument is not NoneType)
        return _read_value(wanted, value, at)
    if origin is tuple and isinstance(value, list):
        inner = arguments[0]
        return tuple(_read_value(inner, each, f"{at}/{place}") for place, each in enumerate(value))
    if origin is dict and isinstance(value, Mapping):
        return {str(key): _read_value(arguments[1], each, f"{at}/{key}") for key, each in value.items()}
    if isinstance(wanted, type):
        return _read_plain(wanted, value, at)
    raise _unfit(wanted, value, at)


def _read_plain(wanted: type, value: Any, at: str) -> Any:
    if issubclass(wanted, ApiObject):
        return read_object(wanted, value, at)
    if wanted is datetime and isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            raise _unfit(wanted, value, at) from None
    if wanted in _NUMBERS and isinstance(value, _NUMBERS[wanted]) and not isinstance(value, bool):
        return float(value) if wanted is float else value
    if wanted in (str, bool) and isinstance(value, wanted):
        return value
    raise _unfit(wanted, value, at)


def _unfit(wanted: Any, value: Any, at: str) -> BadReply:
    name = getattr(wanted, "__name__", str(wanted))
    return BadReply(f"The reply has {_short(value)} at {at}, which is no {name}.")


def _plain(value: Any) -> Any:
    if isinstance(value, ApiObject):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def _short(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, tuple | list | dict) and len(repr(value)) > _LONGEST:
        return f"<{len(value)} entries>"
    text = repr(value)
    return text if len(text) <= _LONGEST or isinstance(value, ApiObject) else f"{text[: _LONGEST - 3]}..."
