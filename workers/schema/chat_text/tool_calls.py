"""Tool calls as models write them into their text, by the marks of their chat templates.

What is no well-formed call stays text: a reader takes all of the text between marks, or nothing. Arguments that a
template writes without their types are read by the types that the declared tools give them.
"""

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from workers.schema.chat_text.gemma_values import read_gemma_object
from workers.schema.chat_text.strict_values import (
    NO_JSON,
    literal,
    python_tree,
    read_json,
    whole_matches,
)
from workers.schema.patterns import PatternMatch, TextPattern

Json = dict[str, Any]
Types = Mapping[tuple[str, str], str]  # JSON types by (tool, parameter)
_NAME = TextPattern(r"[\pL\pN_.:/-]+")  # of a tool
_ID = TextPattern(r"[A-Za-z0-9_.:-]{0,64}")  # of a call: no model reads it, so it has no room for words


@dataclass(slots=True)
class WrittenCalls:
    """text: what stands around the calls. is_lossy: the text does not say everything that an argument was."""

    text: str
    calls: list[Json] = field(default_factory=list)
    is_lossy: bool = False

    def add(self, name: Any, arguments: Any, call_id: Any = None) -> None:
        """Raises ValueError for what no call has."""
        if not is_tool_name(name):
            raise ValueError("no name")
        if not isinstance(arguments, dict | str) or not (call_id is None or is_call_id(call_id)):
            raise ValueError("no arguments, or no id")
        named = {} if call_id is None else {"id": call_id}
        function = {"name": name, "arguments": arguments}
        self.calls.append(named | {"type": "function", "function": function})

    def add_json(self, call: Any) -> None:
        """A call as a JSON object. Raises ValueError for one that has anything else."""
        if not isinstance(call, dict) or not call.keys() <= {"name", "arguments", "parameters", "id"}:
            raise ValueError("no call, or more than one")
        if {"arguments", "parameters"} <= call.keys():
            raise ValueError("arguments twice")
        arguments = call.get("arguments", call.get("parameters", {}))
        self.add(call.get("name"), arguments, call.get("id"))

    def add_typed(self, name: str, written: list[PatternMatch], types: Types) -> None:
        """Parameters as text: group 1 of each is its name. Raises ValueError for one that is there twice."""
        arguments: Json = {}
        for key, text in (match.groups() for match in written):
            if key in arguments:
                raise ValueError("a parameter twice")
            value = read_json(text)
            kind = types.get((name, key))
            is_text = value is NO_JSON or kind == "string"
            arguments[key] = text if is_text else value
            self.is_lossy |= kind is None and value is not NO_JSON and not isinstance(value, dict | list)
        self.add(name, arguments)


def is_tool_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def is_call_id(value: Any) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


Reader = Callable[[str, Types], WrittenCalls | None]


def read_calls(text: str, types: Types, readers: Collection[str]) -> WrittenCalls:
    """readers: keys of READERS, those of the chat template."""
    for name in readers:
        try:
            found = READERS[name](text, types)
        except (ValueError, RecursionError, MemoryError):
            continue
        if found is not None and found.calls:
            return found
    return WrittenCalls(text)


def _between(text: str, opening: str, closing: str) -> list[tuple[int, int, str]]:
    """Start, end and content of each marked stretch. Raises ValueError for one that is not closed."""
    found, at = [], text.find(opening)
    while at >= 0:
        end = text.find(closing, at + len(opening))
        if end < 0:
            raise ValueError("not closed")
        found.append((at, end + len(closing), text[at + len(opening) : end]))
        at = text.find(opening, end + len(closing))
    return found


def _around(text: str, stretches: list[tuple[int, int, str]]) -> str:
    """What stands around them. Raises ValueError where there is none."""
    if not stretches:
        raise ValueError("no call")
    before = text[: stretches[0][0]].rstrip("\n")
    after = "".join(
        text[end:start]
        for (_, end, _), (start, _, _) in zip(stretches, [*stretches[1:], (len(text), 0, "")], strict=True)
    ).strip()
    return "\n".join(part for part in (before, after) if part)


def _tagged(text: str, types: Types) -> WrittenCalls | None:
    """`<tool_call>` with JSON (Hermes, Qwen), functions and parameters (Qwen Coder, Nemotron), or keys (GLM)."""
    stretches = _between(text, "<tool_call>", "</tool_call>")
    found = WrittenCalls(_around(text, stretches))
    if _is_quoted(text, stretches):
        return None
    for _, _, inner in stretches:
        body = inner.strip()
        if body.startswith("{"):
            found.add_json(read_json(body))
        elif (function := _FUNCTION.match(body)) is not None:
            found.add_typed(function[1], _all(_PARAMETER, function[2]), types)
        else:
            name, mark, arguments = body.partition("<arg_key>")
            found.add_typed(name.strip(), _all(_ARGUMENT, mark + arguments), types)
    return found


def _is_quoted(text: str, stretches: list[tuple[int, int, str]]) -> bool:
    """Whether a sentence goes on after the marks, or inline code has them."""
    starts = [*(start for start, _, _ in stretches[1:]), len(text)]
    goes_on = any(
        text[end:following].partition("\n")[0].strip()
        for (_, end, _), following in zip(stretches, starts, strict=True)
    )
    return goes_on or any(text[start - 1 : start] == "`" for start, _, _ in stretches)


_FUNCTION = TextPattern(r"(?s)\A<function=([^>\n]+)>(.*)</function>\z")
_PARAMETER = TextPattern(r"(?s)<parameter=([^>\n]+)>\n(.*?)\n</parameter>")
_ARGUMENT = TextPattern(r"(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>")


def _all(pattern: TextPattern, text: str) -> list[PatternMatch]:
    """Its matches, which make up the text; none for an empty one. Raises ValueError where anything else is there."""
    if not text.strip():
        return []
    if (found := whole_matches(pattern, text)) is None:
        raise ValueError("more than parameters")
    return found


def _python(text: str, types: Types) -> WrittenCalls | None:
    """LFM2: `<|tool_call_start|>[look_up(order='7')]<|tool_call_end|>`."""
    stretches = _between(text, "<|tool_call_start|>", "<|tool_call_end|>")
    found = WrittenCalls(_around(text, stretches))
    for _, _, inner in stretches:
        tree = python_tree(inner)
        for call in tree.elts if isinstance(tree, ast.List) and tree.elts else [tree]:
            if not isinstance(call, ast.Call) or call.args:
                return None
            keys = [key.arg for key in call.keywords]
            if None in keys or len(set(keys)) != len(keys):
                return None
            found.add(ast.unparse(call.func), {str(key.arg): literal(key.value) for key in call.keywords})
    return found


def _gemma(text: str, types: Types) -> WrittenCalls | None:
    """Gemma 4: `<|tool_call>call:look_up{order:<|"|>7<|"|>}<tool_call|>`, keys in order of the alphabet."""
    stretches = _between(text, "<|tool_call>", "<tool_call|>")
    found = WrittenCalls(_around(text, stretches))
    for _, _, inner in stretches:
        name, brace, rest = inner.removeprefix("call:").partition("{")
        arguments = read_gemma_object(brace + rest)
        if arguments is None or not inner.startswith("call:"):
            return None
        found.add(name, arguments)
        found.is_lossy |= len(arguments) > 1
    return found


def _deepseek(text: str, types: Types) -> WrittenCalls | None:
    """R1 and V3: `function<｜tool▁sep｜>look_up` and a fenced object; V3.1: `look_up<｜tool▁sep｜>{...}`."""
    stretches = _between(text, "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>")
    around = _around(text, stretches)
    for mark in ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"):
        around = around.replace(mark, "")
    found = WrittenCalls(around.strip("\n"))
    for _, _, inner in stretches:
        name, _, arguments = inner.partition("<｜tool▁sep｜>")
        if (fenced := _FENCED.match(arguments.strip())) is not None and name.strip() == "function":
            name, arguments = fenced[1], fenced[2]
        if not _is_object(arguments):
            return None
        found.add(name.strip(), arguments.strip())
    return found


_FENCED = TextPattern(r"(?s)\A([^\n]+)\n```json\n(.*)\n?```\z")


def _is_object(arguments: str) -> bool:
    return isinstance(read_json(arguments.strip()), dict)


def _mistral(text: str, types: Types) -> WrittenCalls | None:
    """`[TOOL_CALLS] [{"name", "arguments", "id"}]`, or `[TOOL_CALLS]name[ARGS]{...}` for each."""
    before, mark, rest = text.partition("[TOOL_CALLS]")
    found = WrittenCalls(before.strip())
    if not mark:
        return None
    calls = read_json(rest.strip())
    if isinstance(calls, list):
        for call in calls:
            found.add_json(call)
        return found
    for written in rest.split("[TOOL_CALLS]"):
        head, has_args, arguments = written.partition("[ARGS]")
        if not has_args:
            head, brace, arguments = written.partition("{")
            arguments = brace + arguments
        name, _, call_id = head.partition("[CALL_ID]")
        if not _is_object(arguments):
            return None
        found.add(name.strip(), arguments.strip(), call_id.strip() or None)
    return found


def _invoked(text: str, types: Types) -> WrittenCalls | None:
    """`<ns:function_calls>` with `<ns:invoke name=...>` and `<ns:parameter name=...>`."""
    blocks = list(_INVOCATIONS.finditer(text))
    found = WrittenCalls(_around(text, [(*block.span(), block[1]) for block in blocks]))
    for block in blocks:
        for invoked in _all(_INVOKE, block[1]):
            found.add_typed(invoked[1], _all(_NAMED, invoked[2]), types)
    return found


_INVOCATIONS = TextPattern(r"(?s)<(?:[a-z]+:)?function_calls>(.*?)</(?:[a-z]+:)?function_calls>")
_INVOKE = TextPattern(r'(?s)<(?:[a-z]+:)?invoke name="([^"]*)">(.*?)</(?:[a-z]+:)?invoke>')
_NAMED = TextPattern(r'(?s)<(?:[a-z]+:)?parameter name="([^"]*)">(.*?)</(?:[a-z]+:)?parameter>')


def _bare(text: str, types: Types) -> WrittenCalls | None:
    """Llama 3: the whole text is a call."""
    call = read_json(text.strip().removeprefix("<|python_tag|>").strip())
    if not isinstance(call, dict) or len(call) != 2:
        return None
    if not isinstance(call.get("parameters", call.get("arguments")), dict):
        return None
    found = WrittenCalls("")
    found.add_json(call)
    return found


READERS: Mapping[str, Reader] = {
    "tagged": _tagged,
    "python": _python,
    "gemma": _gemma,
    "deepseek": _deepseek,
    "mistral": _mistral,
    "invoked": _invoked,
    "bare": _bare,
}
# What the calls of each reader begin with, besides one that has no marks.
CALL_MARKS: Mapping[str, TextPattern] = {
    "tagged": TextPattern("<tool_call>"),
    "python": TextPattern(r"<\|tool_call_start\|>"),
    "gemma": TextPattern(r"<\|tool_call>"),
    "deepseek": TextPattern("<｜tool▁call▁begin｜>"),
    "mistral": TextPattern(r"\[TOOL_CALLS\]"),
    "invoked": TextPattern("<(?:[a-z]+:)?function_calls>"),
}
_ANY_CALL = TextPattern("|".join(mark.pattern for mark in CALL_MARKS.values()))


def mentions_calls(text: str) -> bool:
    """Whether a text has marks that begin a tool call, in any format."""
    return _ANY_CALL.search(text) is not None
