"""Values that models and templates write as text. Read only where nothing of the text is lost by it."""

import ast
import io
import json
import math
import tokenize
import warnings
from collections.abc import Iterable
from typing import Any

from workers.errors import InvalidRecord
from workers.schema.patterns import PatternMatch, TextPattern
from workers.schema.shape import BODY_LIMITS, check_json_shape


class _NoJson:
    """What text that is no JSON decodes to: null is a value."""


NO_JSON = _NoJson()


def read_json(text: str) -> Any:
    """NO_JSON for what is none, has a number that is not finite, names a key of an object twice, or is nested deeper
    than the body of a request may be."""
    try:
        if text.count("[") + text.count("{") > BODY_LIMITS.depth:
            check_json_shape(text, BODY_LIMITS)
        return _DECODER.decode(text)
    except (ValueError, RecursionError, InvalidRecord):
        return NO_JSON


def read_python(text: str) -> Any:
    """A Python literal of values that JSON has; NO_JSON for anything else."""
    try:
        return literal(python_tree(text))
    except ValueError:
        return NO_JSON


def python_tree(text: str) -> ast.expr:
    """Raises ValueError for what is no expression, and for one with a comment."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            tree = ast.parse(text.strip(), mode="eval").body
        if "#" in text and any(
            token.type == tokenize.COMMENT
            for token in tokenize.generate_tokens(io.StringIO(text.strip()).readline)
        ):
            raise ValueError("a comment")
    except (SyntaxError, RecursionError, MemoryError, tokenize.TokenError) as error:
        raise ValueError(str(error)) from None
    return tree


def literal(node: ast.AST, depth: int = 1) -> Any:
    """A Python literal, in which JSON's names stand too. Raises ValueError for anything else, for what is nested deeper
    than the body of a request may be, and for a whole number of more than 64 bits."""
    if depth > BODY_LIMITS.depth:
        raise ValueError("nested too deeply")
    if isinstance(node, ast.Name) and node.id in _JSON_NAMES:
        return _JSON_NAMES[node.id]
    if isinstance(node, ast.Dict):
        keys = [None if key is None else literal(key, depth + 1) for key in node.keys]
        if not all(isinstance(key, str) for key in keys):
            raise ValueError("a key that is no text")
        return _object(zip(keys, [literal(value, depth + 1) for value in node.values], strict=True))
    if isinstance(node, ast.List | ast.Tuple):
        return [literal(element, depth + 1) for element in node.elts]
    try:
        value = ast.literal_eval(node)
    except (TypeError, RecursionError, MemoryError) as error:
        raise ValueError(str(error)) from None
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return _whole(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError("no value that JSON has")


def number(text: str) -> int | float:
    """As JSON writes one. Raises ValueError."""
    if _NUMBER.fullmatch(text) is None:
        raise ValueError("no number")
    return _finite(text) if any(mark in text for mark in ".eE") else _whole(int(text))


def whole_matches(pattern: TextPattern, text: str) -> list[PatternMatch] | None:
    """The matches that make up all of a text but whitespace; None where there are none, or anything else."""
    found, at = [], 0
    for match in pattern.finditer(text):
        if text[at : match.start()].strip():
            return None
        found.append(match)
        at = match.end()
    return None if text[at:].strip() else found or None


def _object(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key!r} twice")
        found[key] = value
    return found


def _whole(value: int) -> int:
    """Python refuses to write one of thousands of digits, even where it has read it, in hexadecimal for example."""
    if value.bit_length() > _MOST_BITS:
        raise ValueError("a number of more than 64 bits")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _refuse(constant: str) -> float:
    raise ValueError(constant)  # NaN is no JSON


_MOST_BITS = 64
_JSON_NAMES = {"true": True, "false": False, "null": None}
_NUMBER = TextPattern(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_object)
